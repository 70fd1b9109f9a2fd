package props

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzCase turns bytes into a legal case directly, without rapid's draws in
// between, and checks it by the properties that need one run and by one other,
// which the first byte names. Cases of the corpus cannot be turned back into
// such bytes; they are replayed by TestTargets. What starts the fuzzer are
// bytes of several lengths.
func FuzzCase(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 48 {
		seed := make([]byte, 16+8*i)
		for k := range seed {
			seed[k] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	one := slices.DeleteFunc(Properties(), func(p Property) bool { return p.look == nil })
	more := slices.DeleteFunc(Properties(), func(p Property) bool { return p.look != nil })
	var suites []*Suite
	for _, target := range BuiltinTargets() {
		suites = append(suites, NewSuite(target))
	}
	explained := map[string]bool{} // by property; the fuzzer asks again and again
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		list := append(slices.Clip(one), more[int(data[0])%len(more)])
		for _, s := range suites {
			c := Generate(ByteSource(data[1:]), s.Domain)
			finding, err := Check(t.Context(), s.Target, c, list)
			if err != nil {
				t.Fatal(err)
			}
			if finding == nil {
				continue
			}
			text := finding.Error()
			if !explained[finding.Property] {
				explained[finding.Property] = true
				text = s.Explain(t.Context(), finding, t.Name(), 0)
			}
			t.Fatal(text)
		}
	})
}
