package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"

	"example.com/ringcheck/reference/ring"
)

func main() {
	python := flag.String("python", "ci/mlxlm/.venv/bin/python", "the Python that has MLX")
	script := flag.String("script", "ci/mlxlm/quantize.py", "the child to run")
	groups := flag.Int("groups", 10_000, "groups of each combination")
	seed := flag.Uint64("seed", rand.Uint64(), "seed of the groups (default: a random one)")
	flag.Parse()
	if *groups < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "quantize: give flags only, and at least one group")
		os.Exit(2)
	}

	total, err := run(*python, *script, *groups, *seed, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "quantize:", err)
		os.Exit(2)
	}
	if total.differing() > 0 {
		os.Exit(1)
	}
}

// run starts the child and compares, with a line a combination on w.
func run(python, script string, groups int, seed uint64, w io.Writer) (tally, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, python, script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return tally{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	if err := cmd.Start(); err != nil {
		return tally{}, fmt.Errorf("%w; make the environment with ci/mlxlm/setup, or give -python", err)
	}
	total, err := compare(ctx, in, out, groups, seed, w)
	if err != nil {
		cancel()
		cmd.Wait() // the child was killed; err says why
		return tally{}, err
	}
	return total, cmd.Wait()
}

// compare holds the reference against the child at the other end of in and
// out, and closes in.
func compare(ctx context.Context, in io.WriteCloser, out io.Reader, groups int, seed uint64, w io.Writer) (tally, error) {
	answers := bufio.NewReaderSize(out, 1<<20)
	version, err := answers.ReadString('\n')
	if err != nil {
		return tally{}, fmt.Errorf("the child gave no version: %w", err)
	}
	version = strings.TrimSpace(version)
	fmt.Fprintf(w, "MLX %s on the CPU, seed %d\n", version, seed)
	fmt.Fprintf(w, "%-19s %9s %13s | differing bytes of %26s | NaNs made equal\n", "", "", "", "")
	fmt.Fprintf(w, "%-8s %5s %4s %9s %13s | %8s %8s %8s %8s %8s |\n", "dtype", "group", "bits", "groups", "bytes", "packed", "scales", "biases", "back", "other")

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan request, 1)
	failed := make(chan error, 1)
	go func() {
		failed <- ask(ctx, in, groups, seed, asked)
		close(asked)
	}()
	var total, sum tally
	var first string
	digest := sha256.New()
	for r := range asked {
		difference, err := sum.add(r, answers, digest)
		if err != nil {
			return tally{}, fmt.Errorf("%v: %w", r.combination, err)
		}
		if first == "" && difference != "" {
			first = fmt.Sprintf("%v: %s", r.combination, difference)
		}
		if r.last {
			fmt.Fprintf(w, "%v %v %x\n", r.combination, sum, digest.Sum(nil)[:8])
			total.merge(sum)
			sum = tally{}
			digest.Reset()
		}
	}
	if err := <-failed; err != nil {
		return tally{}, err
	}
	if _, err := answers.ReadByte(); err != io.EOF {
		return tally{}, fmt.Errorf("the child's last answer is too long, or its output did not end: %v", err)
	}
	fmt.Fprintf(w, "%-19s %v\n", "all", total)
	if first != "" {
		fmt.Fprintln(w, "first difference:", first)
	}
	return total, nil
}

// combination is one way to quantize.
type combination struct {
	dtype           ring.DType
	groupSize, bits int
}

func (c combination) String() string {
	return fmt.Sprintf("%-8v %5d %4d", c.dtype, c.groupSize, c.bits)
}

// combinations are all that there are.
func combinations() []combination {
	var all []combination
	for _, dtype := range []ring.DType{ring.BFloat16, ring.Float16, ring.Float32} {
		for _, groupSize := range []int{32, 64, 128} {
			for _, bits := range []int{2, 3, 4, 5, 6, 8} {
				all = append(all, combination{dtype, groupSize, bits})
			}
		}
	}
	return all
}
