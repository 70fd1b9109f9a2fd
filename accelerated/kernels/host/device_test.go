package host

import (
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/accelerated/kernels/conformance"
	"example.com/ringcheck/props"
	"pgregory.net/rapid"
)

// check holds the device to cpu, in its plain Go.
func check(t *testing.T, property func(got, want accelerated.Device, draw conformance.Draw) error) {
	library(t)
	got, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want := cpu.Open(cpu.Options{PlainGo: true, Workers: 1})
	defer want.Close()
	rapid.Check(t, func(t *rapid.T) {
		err := property(got, want, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") })
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestRun(t *testing.T) { check(t, conformance.Run) }

// TestLarge is one check: what is large is slow here.
func TestLarge(t *testing.T) {
	library(t)
	got, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want := cpu.Open(cpu.Options{PlainGo: true, Workers: 1})
	defer want.Close()
	if err := conformance.Large(got, want, conformance.Seeded(1)); err != nil {
		t.Error(err)
	}
}

func TestAttend(t *testing.T) { check(t, conformance.Attend) }

// TestProperties holds the caches on the device to the corpus and to all
// properties.
func TestProperties(t *testing.T) {
	library(t)
	dev, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	props.NewSuite(props.AcceleratedTarget("host", dev)).Test(t)
	if n := dev.Stats().Live; n != 0 {
		t.Errorf("%d buffers are live", n)
	}
}
