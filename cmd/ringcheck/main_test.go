package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
	_ "pgregory.net/rapid" // so that -rapid.checks is known here
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ringcheck": main, "child": child})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status runs a command that must end with an exit status: status 2 ringcheck …
func status(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: status N command arg…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// child is an implementation under test that is good or bad in one way:
//
//	child WAY [CASE…]
//
// WAY says what is wrong. Where cases are named, the others are answered well.
func child() {
	way, cases := os.Args[1], os.Args[2:]
	t := &wayward{Target: props.ReferenceTarget(), way: way, cases: cases}
	if way == "chats" {
		fmt.Println("Loading the model…")
	}
	if way == "mute" {
		fmt.Fprintln(os.Stderr, "no such model")
		os.Exit(3)
	}
	if err := props.Serve(context.Background(), t, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if way == "stays" {
		time.Sleep(time.Hour)
	}
}

// wayward is the reference, gone wrong.
type wayward struct {
	props.Target
	way   string
	cases []string
	runs  int
}

func (w *wayward) Info() props.Info {
	info := w.Target.Info()
	if w.way == "hostile" {
		info.Name, info.Version = "<script>alert(1)</script>", "\x1b[31m<b>"
	}
	if w.way == "modest" {
		info.Kinds, info.Level = []corpus.Kind{corpus.Rotating}, props.Visible
		info.Ops = []corpus.Verb{corpus.New, corpus.Update, corpus.MaskOp}
	}
	return info
}

func (w *wayward) Run(ctx context.Context, c corpus.Case, dir string) ([]corpus.Step, error) {
	steps, err := w.Target.Run(ctx, c, dir)
	if err != nil || len(w.cases) > 0 && !slices.Contains(w.cases, c.Name) {
		return steps, err
	}
	switch w.way {
	case "bounded": // it holds no more than so many tokens
		if slices.ContainsFunc(steps, func(s corpus.Step) bool { offset, _ := s.State.Get(corpus.FOffset); return offset.Int > 12 }) {
			fmt.Fprintln(os.Stderr, "index out of range")
			os.Exit(2)
		}
	case "tires":
		if w.runs++; w.runs > 3 {
			os.Exit(1)
		}
	case "crashes":
		fmt.Fprintln(os.Stderr, "out of memory, as always")
		os.Exit(7)
	case "hangs":
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("Loading the model…")
	case "floods":
		out := bufio.NewWriter(os.Stdout)
		for {
			if _, err := out.WriteString("0123456789abcdef"); err != nil {
				os.Exit(1)
			}
		}
	case "stale":
		fmt.Println(`{"seq":0,"steps":[]}`)
	case "explains": // as Python does, at length
		fmt.Fprintf(os.Stderr, "Traceback (most recent call last):\n  File \"port.py\", line 1\nValueError: %s: the last word\n", strings.Repeat("shapes differ, ", 40))
		os.Exit(1)
	case "refuses", "hostile":
		steps[0] = corpus.Step{Error: "busy", Message: "come back later"}
	case "swaps":
		for i := range steps {
			for _, p := range steps[i].Returned {
				slices.Reverse(p.Array.Data)
			}
		}
	}
	return steps, nil
}

// TestShards: each case is judged by one shard, and each shard has as much of
// everything as any other.
func TestShards(t *testing.T) {
	f := checkFlags{checks: 210, properties: []string{corpusProperty, literalProperty}}
	if err := f.choose(props.ReferenceTarget().Info()); err != nil {
		t.Fatal(err)
	}
	f.list = props.Properties()
	info := props.ReferenceTarget().Info()
	sorts := map[string]func(w work) bool{
		"literal": func(w work) bool { return w.property == literalProperty },
		"random":  func(w work) bool { return w.property == "" },
		"corpus":  func(w work) bool { return w.property == corpusProperty },
		"exact": func(w work) bool {
			c, err := w.load()
			return err == nil && w.property == corpusProperty && c.Semantics == ring.Exact
		},
	}
	all := map[string]bool{}
	for w := range f.all(info) {
		all[w.property+w.name] = true
	}
	for _, shards := range []int{1, 2, 3, 8} {
		seen, counts := map[string]bool{}, map[string][]int{}
		for shard := range shards {
			had := map[string]int{}
			for w := range f.works(info, shard+1, shards, &knownFailures{}) {
				if seen[w.property+w.name] {
					t.Fatalf("of %d: %s is judged twice", shards, w.name)
				}
				seen[w.property+w.name] = true
				for name, is := range sorts {
					if is(w) {
						had[name]++
					}
				}
			}
			for name := range sorts {
				counts[name] = append(counts[name], had[name])
			}
		}
		if len(seen) != len(all) {
			t.Errorf("of %d: %d pieces of work, want %d", shards, len(seen), len(all))
		}
		for name, list := range counts {
			most := 1
			if name == "corpus" { // those of either semantics are dealt out by themselves
				most = 2
			}
			if slices.Max(list)-slices.Min(list) > most {
				t.Errorf("of %d: %v of %s", shards, list, name)
			}
		}
	}
}

// leaking is a target that holds something for ever.
type leaking struct{ props.Target }

func (leaking) Leaked() string { return "1 buffer" }

// TestNarrowTo: a target of which less is asked can still say what it holds.
func TestNarrowTo(t *testing.T) {
	info := props.ReferenceTarget().Info()
	info.Kinds = []corpus.Kind{corpus.Rotating}
	list, err := props.Named([]string{"no leak"})
	if err != nil {
		t.Fatal(err)
	}
	c := props.Generate(props.RandomSource(1, 0), props.Domain{Info: info})
	for _, test := range []struct {
		t     props.Target
		leaks bool
	}{{props.ReferenceTarget(), false}, {leaking{props.ReferenceTarget()}, true}} {
		n := narrowTo(test.t, info)
		if got := n.Info().Kinds; !slices.Equal(got, info.Kinds) {
			t.Errorf("it claims %v", got)
		}
		if f, err := props.Check(t.Context(), n, c, list); err != nil || (f != nil) != test.leaks {
			t.Errorf("%v, %v; want a finding: %v", f, err, test.leaks)
		}
	}
}

// TestAgain: the command that repeats a run has what the run was asked for.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	known := filepath.Join(dir, "some known.txt")
	if err := os.WriteFile(known, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	args := []string{"check", "-target", "reference", "-property", "answers,size", "-kinds", "rotating,kv", "-semantics", "mlxlm",
		"-known", known, "-shard", "1/2", "-checks", "4", "-seed", "5", "-timeout", "5s", "-report", dir}
	if status := run(args, nil, &out, &errs); status != exitPassed {
		t.Fatalf("status %d: %s%s", status, &out, &errs)
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	want := "ringcheck check -seed 5 -checks 4 -kinds rotating,kv -property answers,size -semantics mlxlm -known '" + known + "' -shard 1/2 -timeout 5s -target reference"
	if text := html.UnescapeString(string(page)); !strings.Contains(text, ">"+want+"<") {
		t.Errorf("no %s in the page", want)
	}
}

// TestExamples: each command shows how it is used.
func TestExamples(t *testing.T) {
	n := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		n++
		if !strings.HasPrefix(cmd.Example, "  ringcheck ") && !strings.HasPrefix(cmd.Example, "  echo ") {
			t.Errorf("%s has the example %q", cmd.CommandPath(), cmd.Example)
		}
		if cmd.Short == "" || cmd.HasParent() && cmd.Name() != "version" && cmd.Long == "" {
			t.Errorf("%s does not say what it does", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(rootCommand())
	if n < 12 {
		t.Errorf("there are %d commands", n)
	}
}

// TestCollectRarely: who judges cases collects garbage rarely, unless the user
// has decided otherwise.
func TestCollectRarely(t *testing.T) {
	t.Chdir(t.TempDir())
	before, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetGCPercent(before)
	defer debug.SetMemoryLimit(limit)
	for _, test := range []struct {
		gogc, gomemlimit string
		percent          int
		limit            int64
	}{{"", "", 800, 2 << 30}, {"50", "", 100, math.MaxInt64}, {"", "1GiB", 100, math.MaxInt64}} {
		t.Setenv("GOGC", test.gogc)
		t.Setenv("GOMEMLIMIT", test.gomemlimit)
		var out, errs strings.Builder
		if status := run([]string{"check", "-target", "reference", "-property", "repeatable", "-checks", "1"}, nil, &out, &errs); status != exitPassed {
			t.Fatalf("status %d: %s%s", status, &out, &errs)
		}
		percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
		if percent != test.percent || limit != test.limit {
			t.Errorf("GOGC=%q GOMEMLIMIT=%q: %d percent, limit %d", test.gogc, test.gomemlimit, percent, limit)
		}
	}
}

// TestCut: what is cut loses its middle, where it is no line of a listing.
func TestCut(t *testing.T) {
	long := strings.Repeat("x", 500) + strings.Repeat("y", 500) + "why"
	if got := cutMiddle(long); !strings.HasSuffix(got, "yyy"+"why") || len(got) != widest+longest+len(" … ") {
		t.Errorf("got %q", got)
	}
	if got := cutEnd(long); got != long[:widest]+"…" {
		t.Errorf("got %q", got)
	}
	for _, cut := range []func(string) string{cutMiddle, cutEnd} {
		if got := cut("short"); got != "short" {
			t.Errorf("got %q", got)
		}
	}
}

func TestGoFlags(t *testing.T) {
	got := goFlags([]string{"check", "-checks", "5", "--seed=1", "-shard=1/2", "-h", "-5", "-", "--", "cmd", "-version"})
	want := []string{"check", "--checks", "5", "--seed=1", "--shard=1/2", "-h", "-5", "-", "--", "cmd", "-version"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"a/b.py": "a/b.py", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
