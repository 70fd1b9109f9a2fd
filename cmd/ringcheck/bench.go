package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	_ "example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/cmd/ringcheck/bench"
	"example.com/ringcheck/props"
)

// benchFlags are what bench was asked for.
type benchFlags struct {
	device   string
	plain    bool
	peer     string
	rounds   int
	work     string
	json, md string
	plots    string
	quick    bool
	suite    bool
}

func benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the accelerated cache beside mlx-lm and the machine's own copy",
		Long: `bench lets the accelerated cache on a device, the same without assembly, the real
mlx-lm on MLX's CPU backend and the machine's own copy do the same work in turns,
and prints a Markdown table: medians with their spread, ratios, the bar that a
figure is held to, bytes written against the least possible, memory held. Then it
does some of the work at growing windows, numbers of rows and blocks, and at the
shapes of real models. Bars say what is asked of 2 cores; a bar that is missed is
listed, and is no failure of the run.

The peer is a program that speaks the lines of ci/bench/peer.py; "auto" is that
program in ci/mlxlm/.venv (which ci/mlxlm/setup makes), if it is there; "none",
none. What could not be measured is listed at the end.

With -suite it measures instead how many operations of generated cases the
property suite checks a second, beside Hypothesis; then the peer is a program that
prints what ci/bench/stateful.py prints.`,
		Example: `  ringcheck bench -md table.md -json all.json -plots plots
  ringcheck bench -work 'decode|merge' -rounds 9
  ringcheck bench -suite`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.device, "device", "cpu", "device to measure: cpu, cuda, metal or auto")
	flags.BoolVar(&f.plain, "plain", true, "measure the device cpu without assembly, too")
	flags.StringVar(&f.peer, "peer", "auto", "command of the peer, its words separated by blanks; or auto, or none")
	flags.IntVar(&f.rounds, "rounds", 5, "how often each contender has its turn")
	flags.StringVar(&f.work, "work", "", "regular expression: do only the work whose name matches (default: all)")
	flags.StringVar(&f.json, "json", "", "file to write everything to, as JSON")
	flags.StringVar(&f.md, "md", "", "file to write the tables to, besides printing them")
	flags.StringVar(&f.plots, "plots", "", "folder to draw plots into, PNG and SVG")
	flags.BoolVar(&f.quick, "quick", false, "tiny shapes and short turns, to try the whole out; the figures mean nothing")
	flags.BoolVar(&f.suite, "suite", false, "measure the property suite instead of the caches")
	return cmd
}

func (f *benchFlags) run(cmd *cobra.Command) error {
	if f.rounds < 1 {
		return fmt.Errorf("-rounds is %d; give at least 1", f.rounds)
	}
	for flag, file := range map[string]string{"-json": f.json, "-md": f.md} {
		if file != "" && !isDir(filepath.Dir(file)) {
			return fmt.Errorf("%s is %s, and there is no folder %s; make it", flag, file, filepath.Dir(file))
		}
	}
	if f.plots != "" {
		if err := os.MkdirAll(f.plots, 0o777); err != nil {
			return err
		}
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	script := "peer.py"
	if f.suite {
		script = "stateful.py"
	}
	peer, leftOut := f.findPeer(script)
	var report *bench.Report
	var err error
	if f.suite {
		report, err = f.measureSuite(ctx, cmd, peer)
	} else {
		report, err = f.measure(ctx, cmd, peer)
	}
	if err != nil {
		if ctx.Err() != nil {
			if report != nil {
				fmt.Fprint(cmd.OutOrStdout(), report.Markdown())
			}
			return errors.New("interrupted before the end; what is above was measured, and no file was written")
		}
		return err
	}
	if leftOut != "" {
		report.LeftOut = append(report.LeftOut, leftOut)
	}
	return f.write(cmd, report)
}

// findPeer is the command of the peer; nil with the reason where there is none.
func (f *benchFlags) findPeer(script string) (command []string, leftOut string) {
	switch words := strings.Fields(f.peer); {
	case f.peer == "none" || len(words) == 0:
		return nil, "the peer: -peer is none"
	case f.peer != "auto":
		return words, ""
	}
	cases := corpusFolder()
	if cases == "" {
		return nil, "the peer: the working folder is not in ringcheck's source; run bench there, or name a command with -peer"
	}
	root := filepath.Dir(filepath.Dir(cases))
	python, script := filepath.Join(root, "ci", "mlxlm", ".venv", "bin", "python"), filepath.Join(root, "ci", "bench", script)
	if !isFile(python) {
		return nil, "the peer: " + python + " is not there; run ci/mlxlm/setup, or name a command with -peer"
	}
	if f.suite {
		if found, _ := filepath.Glob(filepath.Join(root, "ci", "mlxlm", ".venv", "lib", "*", "site-packages", "hypothesis")); found == nil {
			return nil, "the peer: Hypothesis is not in ci/mlxlm/.venv; ci/bench/README.md says how to install it"
		}
	}
	return []string{python, script}, ""
}

// slot is how long a contender works in a round, about.
func (f *benchFlags) slot(usual time.Duration) time.Duration {
	if f.quick {
		return 0
	}
	return usual
}

func (f *benchFlags) measure(ctx context.Context, cmd *cobra.Command, peer []string) (*bench.Report, error) {
	matches, err := regexp.Compile(f.work)
	if err != nil {
		return nil, fmt.Errorf("-work: %w", err)
	}
	o := bench.Options{Device: f.device, Plain: f.plain, Peer: peer, Rounds: f.rounds, Slot: f.slot(200 * time.Millisecond)}
	var names []string
	total := 0
	for _, w := range bench.Table(f.quick) {
		names = append(names, w.Name)
		if matches.MatchString(w.Name) {
			o.Works = append(o.Works, w)
			total++
		}
	}
	for _, s := range bench.Sweeps(f.quick) {
		names = append(names, s.FullName())
		if matches.MatchString(s.FullName()) {
			o.Sweeps = append(o.Sweeps, s)
			total += len(s.Works)
		}
	}
	if total == 0 {
		return nil, fmt.Errorf("-work is %q, which matches none of:\n  %s", f.work, strings.Join(names, "\n  "))
	}
	bar := newProgress(cmd.ErrOrStderr(), total, "works")
	defer bar.clear()
	o.Done = bar.step
	return bench.Measure(ctx, o)
}

func (f *benchFlags) measureSuite(ctx context.Context, cmd *cobra.Command, peer []string) (*bench.Report, error) {
	bar := newProgress(cmd.ErrOrStderr(), f.rounds, "rounds")
	defer bar.clear()
	o := bench.SuiteOptions{Peer: peer, Rounds: f.rounds, Slot: f.slot(4 * time.Second), Done: bar.step}
	o.Targets = props.BuiltinTargets()
	return bench.Suite(ctx, o)
}

// write prints the report and writes the files that were asked for.
func (f *benchFlags) write(cmd *cobra.Command, r *bench.Report) error {
	markdown := r.Markdown()
	fmt.Fprint(cmd.OutOrStdout(), markdown)
	files := map[string][]byte{}
	if f.md != "" {
		files[f.md] = []byte(markdown)
	}
	if f.json != "" {
		text, err := r.JSON()
		if err != nil {
			return err
		}
		files[f.json] = text
	}
	if f.plots != "" {
		plots, err := r.Plots()
		if err != nil {
			return err
		}
		for name, picture := range plots {
			files[filepath.Join(f.plots, name)] = picture
		}
	}
	for name, content := range files {
		if err := writeBytes(name, content); err != nil {
			return err
		}
	}
	return nil
}
