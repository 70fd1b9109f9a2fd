package kernels_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"example.com/ringcheck/accelerated/kernels"
	_ "pgregory.net/rapid"
)

// ptxEntries is the text of each entry point of the PTX.
func ptxEntries() map[string]string {
	entries := map[string]string{}
	for _, text := range strings.Split(kernels.PTX(), ".visible .entry ")[1:] {
		name, rest, _ := strings.Cut(text, "(")
		entries[name] = rest
	}
	return entries
}

// TestPTX holds the embedded PTX to the source: it is made of it, and has the
// entry points that the table says, with those parameters.
func TestPTX(t *testing.T) {
	if !strings.HasPrefix(kernels.PTX(), kernels.PTXHeader()) {
		t.Fatal("kernels.ptx.gz was made of another source; run make kernels")
	}
	entries := ptxEntries()
	if len(entries) != len(kernels.Entries) {
		t.Errorf("the PTX has %d entry points, the table %d", len(entries), len(kernels.Entries))
	}
	for name, e := range kernels.Entries {
		text, ok := entries[name]
		last := fmt.Sprintf(".param .align 8 .b8 %s_param_%d[%d]\n)", name, e.Buffers, e.ArgBytes)
		if !ok || strings.Count(strings.SplitN(text, ")", 2)[0], ".param .u64 ") != e.Buffers || !strings.Contains(text, last) {
			t.Errorf("%s in the PTX does not take %d pointers and %d bytes", name, e.Buffers, e.ArgBytes)
		}
	}
}

// TestPTXArithmetic looks for operations that round otherwise than written.
func TestPTXArithmetic(t *testing.T) {
	for name, text := range ptxEntries() {
		for what, pattern := range map[string]string{
			"flushes":               `\.ftz`,
			"divides approximately": `\b(div|rcp|sqrt)\.(full|approx)`,
			"may be contracted":     `\b(mul|add|sub)\.(f32|f16|bf16)`,
		} {
			if found := regexp.MustCompile(pattern).FindString(text); found != "" {
				t.Errorf("%s %s: %s", name, what, found)
			}
		}
		if strings.HasPrefix(name, "write") && strings.Contains(text, "\tfma.") {
			t.Errorf("%s fuses", name)
		}
	}
}

// TestMetalSource holds what Metal compiles to saying how it rounds.
func TestMetalSource(t *testing.T) {
	text := kernels.MetalSource()
	for _, want := range []string{"#pragma METAL fp math_mode(safe)", "#pragma METAL fp contract(off)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
