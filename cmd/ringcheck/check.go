package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// What check judges besides the properties of package props.
const (
	corpusProperty  = "corpus"  // each case of the corpus is answered as it wants
	literalProperty = "literal" // random sequences that mlx-lm corrupts or refuses are answered as by the reference
	ledgerProperty  = "ledger"  // what the quirk ledger says of mlx-lm is true of the target
)

const (
	defaultChecks = 1000
	foundFolder   = "ringcheck-found"
	detailed      = 5  // failures that are printed in full
	mostReduced   = 25 // findings that are made smaller; a target of which more is wrong has enough to mend
	mostAlike     = 2  // findings of one sort that were made smaller in vain, after which others are not
)

// checkFlags are what check was asked for.
type checkFlags struct {
	targetFlags
	checks     int
	duration   time.Duration
	seed       uint64
	kinds      []string
	properties []string         // by name
	list       []props.Property // those of them that are held against random cases
	semantics  string
	knownFile  string
	shard      string
	reportDir  string
}

func checkCommand() *cobra.Command {
	f := checkFlags{targetFlags: targetFlags{name: best}}
	cmd := &cobra.Command{
		Use:   "check [flags] [-- CMD…]",
		Short: "Judge an implementation on the corpus and on random cases",
		Long: `check judges a built-in implementation, or the program CMD that speaks the
protocol of docs/wire.md: on the cases of the corpus, and on random cases by
these properties:

` + propertyHelp() + `
Unless -property names some, it takes all, but "literal" and "ledger" only for a
program CMD that claims mlx-lm's layout. Of those below "no leak" each random
case is held against two, in turn. A case that fails is made smaller and stored
in ` + foundFolder + `, and the commands that repeat and draw it are printed. It stays
as it is where it can fail only as it is, makes the target hang, or is one of
many that fail alike. A target that does nothing but fail is given up.

A file of known failures (-known) has an entry a line; # begins a comment. An
entry is the name of a case, or a content id: that of a file in ` + foundFolder + `,
without .json. It is strict: a listed case must fail, and an entry that matches
no case is an error, but for a content id where -shard left some work out or a
finding was not made smaller. A listed case that the target does not claim is
named, and counts as skipped.`,
		Example: `  ringcheck check
  ringcheck check -checks 2000 -kinds rotating,batch_rotating -- python3 target.py
  ringcheck check -seed 1 -known known.txt -report report -- ./port`,
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := f.split(cmd, args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return fmt.Errorf("check takes no file (%q); give a command to be judged after --, or use ringcheck replay for files", rest[0])
			}
			return f.run(cmd)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.checks, "checks", defaultChecks, "random cases, and as many again for \"literal\"; without end where only -duration is given")
	flags.DurationVar(&f.duration, "duration", 0, "stop after this time, such as 10m")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the random cases (default: a new one, which is printed)")
	flags.StringSliceVar(&f.kinds, "kinds", nil, "kinds of cache to use, separated by commas (default: all that the target claims)")
	flags.StringSliceVar(&f.properties, "property", nil, "properties to judge, separated by commas")
	flags.StringVar(&f.semantics, "semantics", "", "mlxlm or exact (default: all that the target claims)")
	flags.StringVar(&f.knownFile, "known", "", "file of known failures: names of cases, or content ids as in the names of the files in "+foundFolder)
	flags.StringVar(&f.reportDir, "report", "", "folder for a page about the run and for junit.xml")
	flags.StringVar(&f.shard, "shard", "1/1", "i/n: do the i-th of n equal parts of the work")
	complete := func(flag string, names []string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("kinds", texts(corpus.Kinds))
	complete("property", propertyNames())
	complete("semantics", []string{ring.MLXLM.String(), ring.Exact.String()})
	return cmd
}

func propertyHelp() string {
	var b strings.Builder
	line := func(name, says string) { fmt.Fprintf(&b, "  %-23s %s\n", name, says) }
	line(corpusProperty, "each case of the corpus is answered as it wants")
	line(literalProperty, "random sequences that mlx-lm corrupts or refuses are answered as by the reference")
	line(ledgerProperty, "what the quirk ledger says of mlx-lm is true of the target")
	for _, p := range randomProperties() {
		if p.Level > props.Visible {
			p.Doc += " (layout only)"
		}
		line(p.Name, p.Doc)
	}
	return b.String()
}

func propertyNames() []string {
	names := []string{corpusProperty, literalProperty, ledgerProperty}
	for _, p := range randomProperties() {
		names = append(names, p.Name)
	}
	return names
}

// randomProperties are those of package props that random cases are for.
func randomProperties() []props.Property {
	return slices.DeleteFunc(props.Properties(), func(p props.Property) bool { return p.Name == corpusProperty })
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// run does the work of check.
func (f *checkFlags) run(cmd *cobra.Command) error {
	if err := f.settle(cmd); err != nil {
		return err
	}
	collectRarely()
	shard, shards, err := parseShard(f.shard)
	if err != nil {
		return err
	}
	known, err := readKnown(f.knownFile)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	t, closeTarget, err := f.open(ctx)
	if err != nil {
		return err
	}
	info, err := f.narrow(t.Info())
	if err != nil {
		closeTarget()
		return err
	}

	out := cmd.OutOrStdout()
	if err := f.choose(info); err != nil {
		closeTarget()
		return err
	}
	fmt.Fprintf(out, "%s, seed %d\n", titled(info), f.seed)
	timed := ctx
	if f.duration > 0 {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	var total tally
	judged := t
	if f.semantics != "" || len(f.kinds) > 0 {
		judged = narrowTo(t, info)
	}
	r := reporter{ctx: ctx, f: f, target: judged, known: known, out: out, errs: cmd.ErrOrStderr(), total: &total, found: map[string]int{}, alike: map[string]int{}}
	if f.reportDir != "" {
		if err := os.MkdirAll(f.reportDir, 0o755); err != nil {
			closeTarget()
			return fmt.Errorf("-report: %w", err)
		}
		r.page = newReporting(info, f, cmd)
	}
	r.bar = newProgress(cmd.ErrOrStderr(), f.size(shards), "cases")
	for j := range judgeAll(timed, judged, f.works(info, shard, shards, known)) {
		r.report(j)
	}
	r.bar.clear()
	r.printFound()
	var failures []error // of what is not the target's
	if f.has(ledgerProperty) && shard == 1 && ctx.Err() == nil && total.gaveUp == nil {
		if err := f.ledger(ctx, judged, out, &total, r.page); err != nil {
			failures = append(failures, err)
		}
	}
	if unmatched := known.unmatched(shards == 1 && r.left == 0); timed.Err() == nil && total.gaveUp == nil && len(unmatched) > 0 {
		failures = append(failures, fmt.Errorf("%s: no case of this run matches %s; take that off the list", f.knownFile, strings.Join(unmatched, ", ")))
	}
	endErr := total.end(cmd, closeTarget)
	if r.page != nil {
		r.page.broken(append(slices.Clone(failures), endErr)...)
		if err := r.page.write(f.reportDir, &total); err != nil {
			failures = append(failures, err)
		} else {
			fmt.Fprintf(out, "report: %s\n", filepath.Join(f.reportDir, "index.html"))
		}
	}
	return total.close(ctx, out, failures...)
}

// titled is a target's name and version.
func titled(info props.Info) string { return info.Name + " " + info.Version }

// ledger asks a target that claims to be mlx-lm whether the quirk ledger is
// still true of it, and counts each row, also in the page if there is one.
func (f *checkFlags) ledger(ctx context.Context, t props.Target, out io.Writer, total *tally, page *reporting) error {
	failed, checked, err := props.CheckLedger(ctx, t)
	passed := checked - len(failed)
	var fault *props.Fault
	if errors.As(err, &fault) {
		failed, err = append(failed, err.Error()), nil
	}
	for _, line := range failed {
		fmt.Fprintln(out, "FAIL ledger:", line)
	}
	total.passed += passed
	total.failed += len(failed)
	if page != nil {
		page.ledger(passed, failed)
	}
	return err
}

// settle fills in what depends on other flags.
func (f *checkFlags) settle(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.checks < 0 || f.duration < 0 {
		return fmt.Errorf("-checks is %d and -duration is %v; neither may be negative", f.checks, f.duration)
	}
	if given("duration") && !given("checks") {
		f.checks = -1
	}
	if !given("seed") {
		f.seed = rand.Uint64()
	}
	for _, name := range f.properties {
		if !slices.Contains(propertyNames(), name) {
			return fmt.Errorf("-property has %q; use some of: %s", name, strings.Join(propertyNames(), ", "))
		}
	}
	return nil
}

// choose settles which properties a target is held to.
func (f *checkFlags) choose(info props.Info) error {
	given := f.properties
	if len(f.properties) == 0 {
		f.properties = slices.DeleteFunc(propertyNames(), func(name string) bool {
			return (name == literalProperty || name == ledgerProperty) && (f.command == nil || info.Level < props.Layout)
		})
	}
	named := slices.DeleteFunc(slices.Clone(f.properties), func(name string) bool {
		return name == corpusProperty || name == literalProperty || name == ledgerProperty
	})
	if len(named) == 0 {
		return nil
	}
	var err error
	if f.list, err = props.Named(named); err != nil {
		return err
	}
	for _, p := range f.list {
		if slices.Contains(given, p.Name) && p.Level > info.Level {
			return fmt.Errorf("-property has %q, which is asked only of a target that claims layout", p.Name)
		}
	}
	return nil
}

// parseShard reads i/n.
func parseShard(text string) (shard, shards int, err error) {
	left, right, _ := strings.Cut(text, "/")
	shard, err1 := strconv.Atoi(left)
	shards, err2 := strconv.Atoi(right)
	if err1 != nil || err2 != nil || shard < 1 || shard > shards {
		return 0, 0, fmt.Errorf("-shard is %q; give i/n with i from 1 to n, such as 2/4", text)
	}
	return shard, shards, nil
}

// narrow returns what is left of a target's claims after -kinds and -semantics.
func (f *checkFlags) narrow(info props.Info) (props.Info, error) {
	if f.semantics != "" {
		s, err := ring.ParseSemantics(f.semantics)
		if err != nil {
			return info, fmt.Errorf("-semantics: %w", err)
		}
		if !slices.Contains(info.Semantics, s) {
			return info, fmt.Errorf("-semantics is %v, but the target claims only %v", s, info.Semantics)
		}
		info.Semantics = []ring.Semantics{s}
	}
	if len(f.kinds) > 0 {
		var kinds []corpus.Kind
		for _, name := range f.kinds {
			k := corpus.Kind(name)
			if !slices.Contains(corpus.Kinds, k) {
				return info, fmt.Errorf("-kinds has %q; use some of: %s", name, strings.Join(texts(corpus.Kinds), ", "))
			}
			if !slices.Contains(info.Kinds, k) {
				return info, fmt.Errorf("-kinds has %s, but the target claims only: %s", name, strings.Join(texts(info.Kinds), ", "))
			}
			kinds = append(kinds, k)
		}
		info.Kinds = kinds
	}
	return info, nil
}

// narrowed is a target that claims less than it might.
type narrowed struct {
	props.Target
	info props.Info
}

func (n narrowed) Info() props.Info { return n.info }

// narrowTo makes t claim info. A target that can say what it holds still can.
func narrowTo(t props.Target, info props.Info) props.Target {
	n := narrowed{t, info}
	if l, ok := t.(props.Leaker); ok {
		return struct {
			narrowed
			props.Leaker
		}{n, l}
	}
	return n
}

// size is how many cases a shard has, -1 where that is not known.
func (f *checkFlags) size(shards int) int {
	if f.checks < 0 {
		return -1
	}
	n := 0
	if f.has(corpusProperty) {
		for range corpus.All(corpus.FS()) {
			n++
		}
	}
	if f.has(literalProperty) {
		n += f.checks
	}
	if len(f.list) > 0 {
		n += f.checks
	}
	return n / shards
}

func (f *checkFlags) has(name string) bool { return slices.Contains(f.properties, name) }

// works is the work of one shard.
func (f *checkFlags) works(info props.Info, shard, shards int, known *knownFailures) iter.Seq[work] {
	return func(yield func(work) bool) {
		for w := range f.all(info) {
			if dealt(w.number, shards) != shard {
				known.seeElsewhere(w)
				continue
			}
			if !yield(w) {
				return
			}
		}
	}
}

// dealt is the shard, from 1, of case number i. Each in turn begins a round, so
// that what takes turns among the cases, such as semantics and properties, does
// not always fall to the same one.
func dealt(i, shards int) int { return (i+i/shards)%shards + 1 }

// all is the work of all shards: the corpus, then one random case after the
// other. Work is dealt out by its number, which the literal and the random case
// of one index share.
func (f *checkFlags) all(info props.Info) iter.Seq[work] {
	domain := props.Domain{Info: info}
	return func(yield func(work) bool) {
		if f.has(corpusProperty) {
			numbers := map[ring.Semantics]int{} // each semantics is dealt out by itself
			for file, err := range corpus.All(corpus.FS()) {
				load := func() (corpus.Case, error) { return file.Case, err }
				if !yield(work{file.Path, numbers[file.Case.Semantics], corpusProperty, load, judgeFiled}) {
					return
				}
				numbers[file.Case.Semantics]++
			}
		}
		literal, random := f.has(literalProperty), len(f.list) > 0
		for i := 0; (literal || random) && i != f.checks; i++ {
			name := fmt.Sprintf("random case %d", i)
			if literal {
				load := func() (corpus.Case, error) { return props.Literal(f.seed, i, info), nil }
				if !yield(work{name, i, literalProperty, load, judgeLiteral}) {
					return
				}
			}
			if random {
				load := func() (corpus.Case, error) {
					c := props.Generate(props.RandomSource(f.seed, i), domain)
					c.Name = fmt.Sprintf("random-%d-%d", f.seed, i)
					return c, nil
				}
				if !yield(work{name, i, "", load, judgeProperties(props.Turn(f.list, i))}) {
					return
				}
			}
		}
	}
}

// reporter prints and stores what check finds.
type reporter struct {
	ctx       context.Context // until the user stops the run
	f         *checkFlags
	target    props.Target
	page      *reporting // nil unless -report
	known     *knownFailures
	out, errs io.Writer
	total     *tally
	bar       progress
	printed   int
	files     []string       // of small cases, in the order in which they were found
	found     map[string]int // by such a file: how many cases came down to it
	alike     map[string]int // by sort: findings in a row that came down to what was found before
	reduced   int            // findings, listed ones not counted
	left      int            // findings that nobody has tried to make smaller
}

func (r *reporter) report(j judged) {
	r.bar.step()
	j = r.known.judge(j)
	if strings.HasPrefix(j.skip, notJudged) {
		r.bar.clear()
		fmt.Fprintf(r.out, "%s (%s): %s\n", j.name, j.c.Name, j.skip)
	}
	if j.finding != nil && j.finding != errKnownPassed {
		j = r.smaller(j)
	}
	r.total.count(j)
	file := ""
	if j.err != nil || j.finding != nil {
		r.bar.clear()
		file = r.print(j)
	}
	if r.page != nil {
		repeat, show := "", ""
		if file != "" {
			repeat, show = r.repeat(file), r.show(file)
		}
		r.page.add(r.ctx, r.target, j, file, repeat, show)
	}
}

// smaller makes the case that is to be filed smaller, which may then turn out to
// be listed. It leaves a finding as it is where others of its sort are not
// printed in full any more or came down to what had been found before.
func (r *reporter) smaller(j judged) judged {
	f, ok := j.finding.(*props.Finding)
	if !ok { // of its own wants, or of the reference's answers
		f = &props.Finding{Property: corpusProperty, Case: j.c}
		errors.As(j.finding, &f.Fault)
	}
	if ok {
		j.small = f
	}
	alike, seen := r.alike[j.sort()]
	if seen && (r.printed >= detailed || alike >= mostAlike) || r.reduced >= mostReduced {
		r.left++
		j.left = true
		return j
	}
	if small, err := props.Reduce(r.ctx, r.target, f); small != f && (err == nil || r.ctx.Err() != nil) {
		j.small = small
	}
	if j = r.known.judgeSmall(j); j.finding != nil {
		r.reduced++
	}
	return j
}

// sort tells findings apart that are hardly of one bug.
func (j judged) sort() string {
	var fault *props.Fault
	var d *props.Difference
	var f *props.Finding
	switch {
	case errors.As(j.finding, &fault):
		return fault.Reason
	case errors.As(j.finding, &d):
		return fmt.Sprintf("%s of %s %s", d.Field, d.Op.Verb, d.Op.Kind)
	case errors.As(j.finding, &f) && f.Fault != nil:
		return f.Fault.Reason
	case f != nil:
		op := &f.Run.Ops[f.Step]
		return fmt.Sprintf("%s of %s %s", f.Property, op.Verb, op.Kind)
	}
	return ""
}

// print stores and prints what went wrong with one case, in full the first few
// times that it is something else. It returns the file.
func (r *reporter) print(j judged) string {
	switch {
	case j.gaveUp(): // the last line says so
		return ""
	case j.err != nil:
		fmt.Fprintln(r.errs, j.line())
		return ""
	case j.finding == errKnownPassed:
		fmt.Fprintf(r.out, "FAIL %s: %s\n", cmp.Or(j.property, "all properties"), j.line())
		return ""
	}
	file := r.store(j)
	switch {
	case j.left:
		fmt.Fprintf(r.out, "FAIL %s: %s\n", j.property, j.line())
		return file
	case r.found[file] > 0:
		r.found[file]++
		r.alike[j.sort()]++
		fmt.Fprintf(r.out, "FAIL %s: %s\n  as above: %s\n", j.property, j.line(), file)
		return file
	}
	r.alike[j.sort()] = 0
	if file != "" {
		r.found[file] = 1
		r.files = append(r.files, file)
	}
	switch r.printed++; {
	case r.printed <= detailed:
		fmt.Fprintf(r.out, "FAIL %s: ", j.property)
		j.details(r.out)
		if file != "" {
			if r.passesAlone(j, file) {
				fmt.Fprintln(r.out, "alone in a new child it passes: the failure depends on the runs before it")
			}
			fmt.Fprintf(r.out, "repeat: %s\nsee it: %s\n\n", r.repeat(file), r.show(file))
		}
	case r.printed == detailed+1:
		fmt.Fprintf(r.out, "only the first %d findings are printed in full\n", detailed)
		fallthrough
	default:
		fmt.Fprintf(r.out, "FAIL %s: %s\n", j.property, j.line())
	}
	return file
}

// printFound says which small cases stand for several that failed, and how many
// were left as they are.
func (r *reporter) printFound() {
	for _, file := range r.files {
		if n := r.found[file]; n > 1 {
			fmt.Fprintf(r.out, "%s: %d cases\n", file, n)
		}
	}
	if r.left > 0 {
		fmt.Fprintf(r.out, "not made smaller, since alike or too many: %d cases\n", r.left)
	}
}

// passesAlone reports whether a stored case passes in a child that has run
// nothing else, as with the command that repeats it. One that hangs is not asked
// again.
func (r *reporter) passesAlone(j judged, file string) bool {
	var fault *props.Fault
	if f, ok := j.finding.(*props.Finding); ok {
		fault = f.Fault
	} else {
		errors.As(j.finding, &fault)
	}
	if r.f.command == nil || fault != nil && fault.Slow {
		return false
	}
	c, err := oneCase(file)
	if err != nil {
		return false
	}
	t, closeTarget, err := r.f.open(r.ctx)
	if err != nil {
		return false
	}
	defer closeTarget()
	v, err := judgeFiled(r.ctx, t, c)
	return err == nil && v.finding == nil && v.skip == ""
}

func (r *reporter) repeat(file string) string {
	return "ringcheck replay " + file + " " + r.f.arguments()
}

func (r *reporter) show(file string) string {
	return "ringcheck show " + file + " " + r.f.arguments()
}

// store files a failed case, the smaller one if there is one, and returns the
// file.
func (r *reporter) store(j judged) string {
	file, err := "", error(nil)
	if j.small != nil {
		file, err = props.File(foundFolder, j.small, r.f.seed)
	} else {
		c := j.wanted
		c.Found = &corpus.Found{Property: j.property, Target: r.f.name, Seed: r.f.seed, Version: props.Version()}
		if r.f.command != nil {
			c.Found.Target = strings.Join(r.f.command, " ")
		}
		file, err = corpus.Add(foundFolder, c)
	}
	if err != nil {
		fmt.Fprintln(r.errs, "the case could not be stored:", err)
		r.total.broken++
	}
	return file
}
