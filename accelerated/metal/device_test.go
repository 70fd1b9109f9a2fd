package metal_test

import (
	"errors"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/accelerated/kernels/conformance"
	"example.com/ringcheck/accelerated/metal"
	"example.com/ringcheck/props"
	"pgregory.net/rapid"
)

// devices are a device over the stand-in, and the one of this machine; its
// tests are skipped where there is none.
var devices = map[string]func(t *testing.T) accelerated.Device{
	"stand-in": metal.OpenStandIn,
	"here": func(t *testing.T) accelerated.Device {
		dev, err := metal.Open(metal.Options{})
		var absent *accelerated.UnavailableError
		if errors.As(err, &absent) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if n := dev.Stats().Live; n != 0 {
				t.Errorf("%d buffers are live", n)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		return dev
	},
}

// TestDevice holds the device to cpu, in its plain Go.
func TestDevice(t *testing.T) {
	got := devices["here"](t)
	want := cpu.Open(cpu.Options{PlainGo: true, Workers: 1})
	defer want.Close()
	for name, property := range map[string]func(got, want accelerated.Device, draw conformance.Draw) error{
		"run": conformance.Run, "attend": conformance.Attend,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if err := property(got, want, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestProperties holds the accelerated cache on the device to everything.
func TestProperties(t *testing.T) {
	for name, open := range devices {
		t.Run(name, func(t *testing.T) {
			props.NewSuite(props.AcceleratedTarget("metal", open(t))).Test(t)
		})
	}
}
