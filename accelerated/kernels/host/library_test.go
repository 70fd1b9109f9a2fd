package host

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
)

// library is the library. Without a compiler the test is skipped, saying so.
func library(t *testing.T) *Library {
	l, err := Load()
	if errors.As(err, new(*accelerated.UnavailableError)) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestNoCompiler tells a machine without a compiler from a compiler that fails.
func TestNoCompiler(t *testing.T) {
	t.Setenv("CXX", "false")
	if _, err := load(); err == nil || errors.As(err, new(*accelerated.UnavailableError)) {
		t.Errorf("a compiler that fails: %v", err)
	}
	t.Setenv("CXX", "")
	t.Setenv("PATH", "")
	if _, err := load(); !errors.As(err, new(*accelerated.UnavailableError)) {
		t.Errorf("no compiler: %v", err)
	}
}

// TestLayouts holds the argument structures of Go to those of C++.
func TestLayouts(t *testing.T) {
	var n uint32
	at := library(t).layouts(&n)
	if got, want := unsafe.Slice(at, n), kernels.Layouts(); !slices.Equal(got, want) {
		t.Fatalf("C++ has sizes and offsets\n%v, Go\n%v", got, want)
	}
}
