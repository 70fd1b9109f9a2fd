package accelerated_test

import (
	"testing"

	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/props"
)

func TestTmpSuite(t *testing.T) {
	for _, o := range []cpu.Options{{}, {PlainGo: true}} {
		s := props.NewSuite(props.AcceleratedTarget("cpu", cpu.Open(o)))
		s.Folder = "/tmp/acc-found"
		t.Run(s.Target.Info().Name, s.Test)
	}
}
