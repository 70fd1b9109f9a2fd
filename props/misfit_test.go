package props

import (
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
)

// blockOnRing writes a block to a ring that has wrapped: #3 is its mask, over
// the 3 columns that #4 returns.
const blockOnRing = `{"schema":"ringcheck/case/v1","name":"block","source":"test",
"shape":{"kv_heads":2,"key_dim":4,"value_dim":4,"dtype":"bfloat16"},"ops":[
{"op":"new","out":"c1","kind":"rotating","max_size":2},
{"op":"update","cache":"c1","tokens":[[1,2]]},
{"op":"update","cache":"c1","tokens":[[3]]},
{"op":"mask","cache":"c1","n":2},
{"op":"update","cache":"c1","tokens":[[4,5]]}]}`

// TestCompareMisfit: of a mask and a write that do not fit each other, the one
// is blamed that is not as wide as is wanted.
func TestCompareMisfit(t *testing.T) {
	c, err := corpus.Parse([]byte(blockOnRing), "case")
	if err != nil {
		t.Fatal(err)
	}
	want, err := referenceAnswers(c)
	if err != nil {
		t.Fatal(err)
	}
	array := func(ids ...int) []corpus.Plane {
		return []corpus.Plane{
			{Name: "keys", Array: corpus.TokenArray(c.Shape, c.Fill, 0, [][]int{ids})},
			{Name: "values", Array: corpus.TokenArray(c.Shape, c.Fill, 1, [][]int{ids})},
		}
	}
	mask := func(text string) func([]corpus.Step) {
		return func(got []corpus.Step) {
			m, err := corpus.ParseMask([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got[3].Mask = m
		}
	}
	tests := map[string]struct {
		change func(got []corpus.Step)
		step   int
		text   string
	}{
		"the write is too wide": {
			func(got []corpus.Step) { got[4].Returned = array(2, 3, 4, 5) }, 4,
			"#4 c1.update [[4 5]]: returned 4 columns, want 3; the mask of #3 has 3",
		},
		"the mask is too wide": {
			mask(`[["1100","0110"]]`), 3,
			"#3 c1.mask n=2: the mask of #3 has 4 columns, want 3, which is what #4 returned (-want +got)",
		},
		"neither is as wanted, and they do not fit": {
			func(got []corpus.Step) {
				mask(`[["1100","0110"]]`)(got)
				got[4].Returned = array(1, 2, 3, 4, 5)
			}, 3,
			"#3 c1.mask n=2: the mask of #3 has 4 columns, want 5, which is what #4 returned (-want +got)",
		},
		"the mask has too few queries": {
			mask(`[["110"]]`), 3,
			"#3 c1.mask n=2: mask differs; got [1, 1, 1, 3], want [1, 1, 2, 3]",
		},
		"heads and columns the wrong way round": {
			func(got []corpus.Step) {
				for k := range got[4].Returned {
					s := &got[4].Returned[k].Array.Shape
					s[1], s[2] = s[2], s[1]
				}
			}, 4,
			"returned differs; keys is bfloat16[1 3 2 4], want [1 2 3 4] ([b h s d])",
		},
		"keys of other columns than values": {
			func(got []corpus.Step) {
				a := &got[4].Returned[0].Array
				a.Shape[2] = 20000
				a.Data = make([]byte, 2*20000*4*2)
			}, 4,
			"returned differs; keys has 20000 columns, values 3",
		},
		"bytes of no token": {
			func(got []corpus.Step) { got[4].Returned[1].Array.Data[2*(2*4+1)]++ }, 4, // values, head 0, column 2, element 1
			"#4 c1.update [[4 5]]: visible tokens differs; row 0, query 1 (token 5), under the mask of #3; token 5: first differing element: values[b=0 h=0 s=2 d=1] is ",
		},
	}
	for name, test := range tests {
		got := clone(want)
		test.change(got)
		byWants := CompareWants(wantOf(c, want), got, Visible)
		for by, d := range map[string]*Difference{"runs": CompareRuns(c, want, got, Visible), "wants": byWants} {
			if d == nil {
				t.Errorf("%s: %s: no difference", name, by)
				continue
			}
			text := d.Error()
			if d.Step != test.step || !strings.Contains(text, test.text) {
				t.Errorf("%s: %s: #%d %s\nwant #%d %s", name, by, d.Step, text, test.step, test.text)
			}
			if strings.Contains(text, "-9223372036854775808") || name == "bytes of no token" && !strings.Contains(text, "?,") {
				t.Errorf("%s: %s: a column that is no token's is not printed as ?:\n%s", name, by, text)
			}
		}
	}
}

// TestUnlike: a column that is no token's is held against the missing token that
// it is most like, of quantized planes too.
func TestUnlike(t *testing.T) {
	for _, c := range fakeCases {
		want := runFake(t, fake{}, c)
		k := slices.IndexFunc(want, func(s corpus.Step) bool { return s.Returned != nil })
		planes := clone(want)[k].Returned
		ids := NewTokens(c).IDs(planes)[0]
		last := len(planes) - 1
		planes[last].Array.Data[len(planes[last].Array.Data)/len(NewTokens(c).IDs(planes))-1] ^= 1 // of the last column of row 0, in the last head
		x := comparison{c: &c}
		text := x.unlike(planes, 0, len(ids)-1, ids)
		if !strings.Contains(text, "first differing element: "+planes[last].Name+"[b=0 h=") || !strings.Contains(text, "(little-endian)") {
			t.Errorf("%s: %q", planes[0].Name, text)
		}
	}
}
