package host

import (
	"slices"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated/kernels"
)

// library is the library, or else the test is skipped, saying why.
func library(t *testing.T) *Library {
	l, err := Load()
	if err != nil {
		t.Skip(err)
	}
	return l
}

// TestLayouts holds the argument structures of Go to those of C++.
func TestLayouts(t *testing.T) {
	var n uint32
	at := library(t).layouts(&n)
	if got, want := unsafe.Slice(at, n), kernels.Layouts(); !slices.Equal(got, want) {
		t.Fatalf("C++ has sizes and offsets\n%v, Go\n%v", got, want)
	}
}
