package models

import (
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Shapes {
		if names[s.Name] {
			t.Errorf("%s stands twice", s.Name)
		}
		names[s.Name] = true
		if s.KVHeads < 1 || s.KeyDim < 1 || s.ValueDim < 1 || s.Window < 1 || s.WindowLayers() < 1 || s.WindowLayers() > s.Layers {
			t.Errorf("%s: %+v", s.Name, s)
		}
		if len(s.Sources) == 0 {
			t.Errorf("%s has no source", s.Name)
		}
		for _, u := range s.Sources {
			if !strings.HasPrefix(u, "https://") {
				t.Errorf("%s: source %q is no address", s.Name, u)
			}
		}
	}
	for name, want := range map[string]int{"Mistral 7B v0.1": 32, "gpt-oss-20b": 12, "Gemma 3 270M": 15, "Command R7B": 24, "MiMo-V2-Flash": 39} {
		for _, s := range Shapes {
			if s.Name == name && s.WindowLayers() != want {
				t.Errorf("%s: %d layers have a window, want %d", name, s.WindowLayers(), want)
			}
		}
	}
}
