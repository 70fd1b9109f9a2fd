package props

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/ringcheck/corpus"
)

// Suite is a target and what it is held to: the one way in which properties are
// run, by go test ([Suite.Test]) as by the command.
type Suite struct {
	Target     Target
	Domain     Domain // of random cases
	Properties []Property
	Folder     string // where failures are filed; see [Folder] and [File]
}

// NewSuite returns the suite of a target: all that it claims, all properties.
func NewSuite(t Target) *Suite {
	return &Suite{Target: t, Domain: Domain{Info: t.Info()}, Properties: Properties()}
}

// Case returns random case number i of a seed.
func (s *Suite) Case(seed uint64, i int) corpus.Case {
	return Generate(RandomSource(seed, i), s.Domain)
}

// Check holds the target against all properties on one case.
func (s *Suite) Check(ctx context.Context, c corpus.Case) (*Finding, error) {
	return Check(ctx, s.Target, c, s.Properties)
}

// Replay asks a case of the corpus for what it wants and, where a run has filed
// it, for the property that failed then. A case that needs what the target does
// not claim is passed over.
func (s *Suite) Replay(ctx context.Context, c corpus.Case) (*Finding, error) {
	if s.Domain.Info.Lacks(c) != "" {
		return nil, nil
	}
	names := []string{"answers", "corpus"}
	if c.Found != nil {
		names = append(names, c.Found.Property)
	}
	list, err := Named(names)
	if err != nil {
		return nil, fmt.Errorf("case %q: %w", c.Name, err)
	}
	return Check(ctx, s.Target, c, list)
}

// Keep reduces a finding and files it. The finding that it returns is the
// reduced one, as far as ctx allowed.
func (s *Suite) Keep(ctx context.Context, f *Finding, seed uint64) (*Finding, string, error) {
	small, err := Reduce(ctx, s.Target, f)
	if small == nil {
		small = f
	}
	dir := s.Folder
	if dir == "" {
		dir = Folder()
	}
	file, fileErr := File(dir, small, seed)
	return small, file, errors.Join(err, fileErr)
}

// Explain keeps a finding of the test of that name and returns all there is to
// say: the reduced finding's report, its file, and the command that repeats it.
// The command line knows the built-in targets by name; for any other one that
// is the test itself, with the seed unless it is 0.
func (s *Suite) Explain(ctx context.Context, f *Finding, test string, seed uint64) string {
	small, file, err := s.Keep(ctx, f, seed)
	text := small.Report()
	if err != nil {
		text += fmt.Sprintf("the case could not be kept: %v\n", err)
	}
	switch {
	case !builtin(s.Domain.Info.Name):
		if file != "" {
			text += "kept: " + file + "\n"
		}
		text += "repeat: " + testCommand(test, seed) + "\n"
	case file != "":
		text += fmt.Sprintf("repeat: go run ./cmd/ringcheck replay -target %s %s\n", s.Domain.Info.Name, fromModule(file))
	}
	return text
}

// testCommand runs a test again, in its package's folder.
func testCommand(test string, seed uint64) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	command := "go test -run '" + strings.Join(parts, "/") + "'"
	if seed != 0 {
		command += fmt.Sprintf(" -rapid.checks=%d -rapid.seed=%d", rapidFlag[int]("checks"), seed)
	}
	return command
}

// fromModule is a file's path as the command is given it at the module's root.
func fromModule(file string) string {
	if _, below, ok := strings.Cut(filepath.ToSlash(file), "/corpus/cases/"); ok {
		return "corpus/cases/" + below
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

// Test replays the corpus and then holds the target against each property on
// -rapid.checks random cases, each in a subtest of its name. A failure is
// shrunk, reduced and filed, with the seed of the subtest's cases. With 10,000 checks or more, a situation that they
// have missed is a failure, too.
func (s *Suite) Test(t *testing.T) {
	t.Run("corpus replay", func(t *testing.T) {
		for f, err := range corpus.All(corpus.FS()) {
			if err == nil {
				var finding *Finding
				if finding, err = s.Replay(t.Context(), f.Case); finding != nil {
					err = errors.New(finding.Report())
				}
			}
			if err != nil {
				t.Errorf("%s: %v", f.Path, err)
			}
		}
	})
	var seen Situations
	for _, p := range s.Properties {
		t.Run(p.Name, func(t *testing.T) { s.random(t, p, &seen) })
	}
	if seen.Cases == 0 {
		return // the property whose cases are counted was not asked for
	}
	t.Run("situations", func(t *testing.T) {
		t.Log(seen.String())
		if missing := seen.Missing(s.Domain); len(missing) > 0 && seen.Cases >= enough {
			t.Errorf("%d cases have not had:\n%s", seen.Cases, strings.Join(missing, "\n"))
		}
	})
}

// enough is how many cases must get into every situation.
const enough = 10_000

// random holds the target against one property on random cases. The cases of
// one of the properties are counted.
func (s *Suite) random(t *testing.T, p Property, seen *Situations) {
	// What rapid keeps of a failure are its draws, which another generator
	// reads as another case. The case itself is filed instead.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		t.Fatal(err)
	}
	// Where no seed was asked for rapid takes one of its own and does not tell.
	seed := rapidFlag[uint64]("seed")
	if seed == 0 {
		seed = max(1, rand.Uint64())
		setSeed(t, seed)
		defer setSeed(t, 0)
	}
	var minimal *Finding // the last one of rapid's shrinking is the least
	checks := 0
	defer func() {
		if minimal != nil {
			t.Log(s.Explain(context.WithoutCancel(t.Context()), minimal, t.Name(), seed))
		}
	}()
	cases := drawnCases(s.Domain)
	rapid.Check(t, func(rt *rapid.T) {
		c := cases.Draw(rt, "case").Case
		x := newExamination(s.Target, c)
		f, err := x.check(t.Context(), []Property{p})
		message := ""
		switch checks++; {
		case err != nil:
			message = fmt.Sprintf("the case could not be run: %v\n%s", err, Listing(c, nil))
		case f != nil:
			message, minimal = f.Error(), f
		case p.Name == "repeatable" && minimal == nil:
			if err = count(seen, c); err != nil {
				message = err.Error()
			}
		}
		if message != "" {
			rt.Fatalf("%s", message)
		}
	})
	want := rapidFlag[int]("checks")
	if testing.Short() {
		want /= 5
	}
	if checks < want {
		t.Errorf("%d of %d checks were done before the deadline; give a longer -timeout", checks, want)
	}
}

func setSeed(t *testing.T, seed uint64) {
	if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
		t.Fatal(err)
	}
}

// count adds a case to what was seen.
func count(seen *Situations, c corpus.Case) error {
	steps, err := referenceAnswers(c)
	if err == nil {
		seen.Add(c, steps)
	}
	return err
}

// rapidFlag is the value of one of rapid's flags.
func rapidFlag[T int | uint64](name string) T {
	n, _ := strconv.ParseUint(flag.Lookup("rapid."+name).Value.String(), 10, 64)
	return T(n)
}

// drawnCases are the cases of a domain, as rapid draws them.
func drawnCases(d Domain) *rapid.Generator[listed] {
	return rapid.Custom(func(t *rapid.T) listed { return listed{Generate(drawn{t}, d)} })
}

// listed is a case that rapid logs as a listing.
type listed struct{ corpus.Case }

func (l listed) GoString() string { return "\n" + Listing(l.Case, nil) }

// drawn gives choices that rapid draws, and so can shrink. It draws bits: what
// rapid draws from a range favours small numbers, and the weights of the
// generator would mean something else here than elsewhere.
type drawn struct{ t *rapid.T }

var bit = rapid.Bool()

func (d drawn) Int(n int) int {
	v, width := 0, bits.Len(uint(n-1))+1
	if n == 1 {
		return 0
	}
	for range width {
		v <<= 1
		if bit.Draw(d.t, "choice") {
			v |= 1
		}
	}
	return v * n >> width
}
