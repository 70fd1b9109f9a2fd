package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/props"
	"example.com/ringcheck/reference/ring"
)

// SuiteOptions say how to measure the property suite.
type SuiteOptions struct {
	Targets []props.Target
	Peer    []string // command that prints what ci/bench/stateful.py prints; nil: none
	Rounds  int
	Slot    time.Duration // of each contender in a round
	Done    func()        // is called after each round; may be nil
}

// SuiteReport is how many operations of cases a second were checked.
type SuiteReport struct {
	Contenders []SuiteSpeed `json:"contenders"`
}

// SuiteSpeed is one contender's, a number a round.
type SuiteSpeed struct {
	Name      string  `json:"name"`
	Cores     int     `json:"cores"`
	PerSecond Samples `json:"per_second"`
}

const hypothesis = "hypothesis"

// Suite measures, in turns, the properties that judge each step of a case: each
// target on one core and on all, and the peer.
func Suite(ctx context.Context, o SuiteOptions) (*Report, error) {
	r := &Report{Machine: thisMachine(), Rounds: o.Rounds, Suite: &SuiteReport{}}
	properties, err := stepwise()
	if err != nil {
		return nil, err
	}
	type contender struct {
		SuiteSpeed
		run func(cores int) (float64, error)
	}
	var list []contender
	for _, t := range o.Targets {
		cases := smallCases(t.Info())
		for _, cores := range slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) {
			list = append(list, contender{SuiteSpeed{Name: t.Info().Name, Cores: cores}, func(cores int) (float64, error) {
				return checkAll(ctx, t, cases, properties, cores, o.Slot)
			}})
		}
	}
	if len(o.Peer) > 0 {
		list = append(list, contender{SuiteSpeed{Name: hypothesis, Cores: 1}, func(int) (float64, error) {
			return runStateful(ctx, o.Peer, o.Slot)
		}})
	}
	for range o.Rounds {
		for i := range list {
			c := &list[i]
			perSecond, err := c.run(c.Cores)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			c.PerSecond = append(c.PerSecond, perSecond)
		}
		if o.Done != nil {
			o.Done()
		}
	}
	for _, c := range list {
		r.Suite.Contenders = append(r.Suite.Contenders, c.SuiteSpeed)
	}
	r.Machine.After = load()
	return r, nil
}

// stepwise are the properties that need one run of a case, and no case made
// from it.
func stepwise() ([]props.Property, error) {
	names := []string{"reference", "pair", "finite", "no leak"}
	for rule := range models.NumRules {
		names = append(names, rule.String())
	}
	return props.Named(names)
}

// smallCases are generated for windows of 8, two rows, two heads, widths of 8:
// the size of the peer's.
func smallCases(info props.Info) []corpus.Case {
	d := props.Domain{Info: info, Kinds: []corpus.Kind{corpus.Rotating, corpus.BatchRotating}}
	d.Info.Ops = slices.DeleteFunc(slices.Clone(info.Ops), func(v corpus.Verb) bool {
		// The peer has no files, and widths of 8 cannot be quantized.
		return v == corpus.Save || v == corpus.Load || v == corpus.ToQuantized
	})
	var list []corpus.Case
	for i := 0; len(list) < 200; i++ {
		c := props.Generate(props.RandomSource(1, i), d)
		if op := c.Ops[0]; op.MaxSize != 8 || len(op.LeftPadding) != 2 {
			continue
		}
		c.Shape = corpus.Shape{KVHeads: 2, KeyDim: 8, ValueDim: 8, DType: ring.Float32}
		c.Fill = corpus.Grid
		list = append(list, c)
	}
	return list
}

// checkAll checks cases on so many cores until the slot is over, and returns
// how many of their operations it did a second.
func checkAll(ctx context.Context, t props.Target, cases []corpus.Case, properties []props.Property, cores int, slot time.Duration) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var next, operations atomic.Int64
	errs := make([]error, cores)
	var wait sync.WaitGroup
	begin := time.Now()
	for i := range cores {
		wait.Go(func() {
			for {
				c := cases[int(next.Add(1)-1)%len(cases)]
				f, err := props.Check(ctx, t, c, properties)
				if f != nil {
					err = f
				}
				if errs[i] = err; err != nil {
					return
				}
				operations.Add(int64(len(c.Ops)))
				if time.Since(begin) >= slot {
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(operations.Load()) / time.Since(begin).Seconds(), nil
}

// runStateful runs the peer for a slot, of at least one second, and returns the
// operations a second that it says it has checked.
func runStateful(ctx context.Context, command []string, slot time.Duration) (float64, error) {
	args := append(slices.Clone(command[1:]), fmt.Sprint(max(slot, time.Second).Seconds()))
	cmd := exec.CommandContext(ctx, command[0], args...)
	var errs tail
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.last))
	}
	var answer struct {
		PerSecond float64 `json:"per_second"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.PerSecond <= 0 {
		return 0, fmt.Errorf("its answer has no per_second: %q", out)
	}
	return answer.PerSecond, nil
}

// write is the report as a table.
func (r *SuiteReport) write(b *strings.Builder) {
	b.WriteString("\nOperations of generated cases that the stepwise properties check a second; windows of 8, two rows, two heads, widths of 8:\n\n")
	head := []string{"implementation judged", "cores", "operations a second"}
	var peer Samples
	if i := slices.IndexFunc(r.Contenders, func(c SuiteSpeed) bool { return c.Name == hypothesis }); i >= 0 {
		peer = r.Contenders[i].PerSecond
		head = append(head, "times Hypothesis")
	}
	writeRow(b, head)
	writeRule(b, len(head))
	for _, c := range r.Contenders {
		row := []string{c.Name, fmt.Sprint(c.Cores), c.PerSecond.show(digits)}
		if peer != nil {
			row = append(row, digits(c.PerSecond.Over(peer).Median()))
		}
		writeRow(b, row)
	}
}
