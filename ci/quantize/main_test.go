package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"example.com/ringcheck/reference/ring"
	_ "pgregory.net/rapid"
)

// asChild, in the environment, makes the test binary the child of a run.
const asChild = "QUANTIZE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		if err := serve(os.Stdin, os.Stdout, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve answers as ci/mlxlm/quantize.py does, with the reference in MLX's
// place. spoil, where there is one, may change an answer's arrays.
func serve(in io.Reader, out io.Writer, spoil func(c combination, answer *[arrays]ring.Array)) error {
	fmt.Fprintln(out, "none")
	for requests := bufio.NewReader(in); ; {
		line, err := requests.ReadString('\n')
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var c combination
		var dtype string
		var count int
		if _, err := fmt.Sscan(line, &dtype, &c.groupSize, &c.bits, &count); err != nil {
			return err
		}
		if c.dtype, err = ring.ParseDType(dtype); err != nil {
			return err
		}
		data := make([]byte, count*c.groupSize*c.dtype.Size())
		if _, err := io.ReadFull(requests, data); err != nil {
			return err
		}
		all, err := answer(request{combination: c, groups: ring.Array{DType: c.dtype, Shape: [4]int{1, 1, count, c.groupSize}, Data: data}})
		if err != nil {
			return err
		}
		if spoil != nil {
			spoil(c, &all)
		}
		for _, a := range all {
			if _, err := out.Write(a.Data); err != nil {
				return err
			}
		}
	}
}

// compareWith compares with a child that answers spoiled.
func compareWith(t *testing.T, groups int, seed uint64, spoil func(combination, *[arrays]ring.Array)) (tally, string, error) {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serve(inRead, outWrite, spoil)
		outWrite.CloseWithError(err) // io.EOF where err is nil
		served <- err
	}()
	var table strings.Builder
	total, err := compare(context.Background(), inWrite, outRead, groups, seed, &table)
	outRead.CloseWithError(io.ErrClosedPipe)
	inRead.CloseWithError(io.ErrClosedPipe)
	<-served
	return total, table.String(), err
}

// digests returns the last word of every combination's line.
func digests(t *testing.T, table string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) == 14 && f[0] != "dtype" {
			all[strings.Join(f[:3], " ")] = f[13]
		}
	}
	if len(all) != 54 {
		t.Fatalf("%d combinations, want 54, in\n%s", len(all), table)
	}
	return all
}

// The table in testdata was printed by this command with the real MLX.
func TestReferenceIsWhatMLXWas(t *testing.T) {
	golden, err := os.ReadFile("testdata/mlx-0.32.4.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, table, err := compareWith(t, 180, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := digests(t, table)
	for c, want := range digests(t, string(golden)) {
		if got[c] != want {
			t.Errorf("%s: digest %s, want %s; run ci/quantize with -groups 180 -seed 1 for the bytes", c, got[c], want)
		}
	}
}

// A byte that differs is counted where it is, and the first one is described.
func TestCompareCountsDifferences(t *testing.T) {
	for array, name := range []string{"packed codes", "scale", "bias", "dequantized", "dequantized with the first two"} {
		total, table, err := compareWith(t, 4, 1, func(c combination, answer *[arrays]ring.Array) {
			if (c == combination{ring.Float16, 64, 5}) {
				answer[array].Data[0] ^= 1
				answer[array].Data[len(answer[array].Data)-1] ^= 1
			}
		})
		var want [arrays]int
		want[array] = 2
		if err != nil || total.differ != want || total.differing() != 2 || total.groups != 4*54 || total.nans != 0 {
			t.Errorf("%s: %v, %v", name, total, err)
		}
		if first := "first difference: float16     64    5: " + name; !strings.Contains(table, first) {
			t.Errorf("%q is not in\n%s", first, table)
		}
	}
}

// A NaN with other bits is no difference in floats, and counted; a number in
// the place of a NaN is one.
func TestCompareMakesNaNsEqual(t *testing.T) {
	for name, c := range map[string]struct {
		dtype        ring.DType
		nan, put     []byte
		nans, differ int
	}{
		"another float16 NaN": {ring.Float16, []byte{0x00, 0x7E}, []byte{0x00, 0xFD}, 1, 0},
		"float16 infinity":    {ring.Float16, []byte{0x00, 0x7E}, []byte{0x00, 0x7C}, 0, 1},
		"another float32 NaN": {ring.Float32, []byte{0x00, 0x00, 0xC0, 0x7F}, []byte{0x01, 0x00, 0x80, 0xFF}, 1, 0},
		"float32 infinity":    {ring.Float32, []byte{0x00, 0x00, 0xC0, 0x7F}, []byte{0x00, 0x00, 0x80, 0x7F}, 0, 1},
	} {
		changed := 0
		total, _, err := compareWith(t, 18, 1, func(_ combination, answer *[arrays]ring.Array) {
			scales := answer[scales]
			for at := 0; scales.DType == c.dtype && changed == 0 && at < len(scales.Data); at += len(c.nan) {
				if bytes.HasPrefix(scales.Data[at:], c.nan) {
					changed += copy(scales.Data[at:], c.put)
				}
			}
		})
		if err != nil || changed != len(c.put) || total.nans != c.nans || total.differing() != c.differ {
			t.Errorf("%s: %d changed, %v, %v", name, changed, total, err)
		}
	}
}

func TestCompareRefusesOtherAnswers(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"too short": func(b []byte) []byte { return b[1:] },
		"too long":  func(b []byte) []byte { return append(b, 0) },
	} {
		_, _, err := compareWith(t, 1, 1, func(c combination, answer *[arrays]ring.Array) {
			if (c == combination{ring.Float32, 128, 8}) {
				answer[other].Data = change(answer[other].Data)
			}
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRun(t *testing.T) {
	t.Setenv(asChild, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	total, err := run(self, "unused", chunk/100, 7, &table)
	if err != nil || total.differing() != 0 || total.groups != 54*(chunk/100) || !strings.Contains(table.String(), "seed 7\n") {
		t.Errorf("%v, %v\n%s", total, err, &table)
	}
}

func TestRunReportsAChildThatFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, python := range map[string]string{"missing": self + ".missing", "no child": "/dev/null", "says nothing": self} {
		script := "-test.list=^$" // makes the test binary say nothing, and end
		if _, err := run(python, script, 1, 1, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
