package props

import (
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
	"github.com/google/go-cmp/cmp"
)

func TestListing(t *testing.T) {
	c := fakeCases[0]
	steps := runFake(t, fake{}, c)
	const want = `#0 a = new batch_rotating max_size=64 left_padding=[0 0] → offset 0 size 0 trimmable true buffer 0
#1 a.mask n=3 → mask [[100 110 111] [100 110 111]]
#2 a.update [[1 2 3] [4 -1 -2]] → returned 2×3, offset 3 size 3 trimmable true buffer 3
#3 a.trim n=1 → trimmed 1, offset 2 size 2 trimmable true buffer 2
#4 a.trim n=7 → refused: over_trim ("7 is too much"), offset 2 size 2 trimmable true buffer 2
#5 a.update [[-3] [5]] → returned 2×3, offset 3 size 3 trimmable true buffer 3
#6 a.mask n=1
#7 a.update [[6] [7]]
#8 b = a.extract row=1
`
	if diff := cmp.Diff(want, Listing(c, steps[:6])); diff != "" {
		t.Error(diff)
	}
}

// TestOpText shows each operation in full, so that a listing leaves nothing out.
func TestOpText(t *testing.T) {
	two := new(2)
	for want, op := range map[string]corpus.Op{
		"a = new rotating max_size=8 keep=4":                         {Verb: corpus.New, Out: "a", Kind: corpus.Rotating, MaxSize: 8, Keep: 4},
		"l = new list a b":                                           {Verb: corpus.New, Out: "l", Kind: corpus.List, Caches: []string{"a", "b"}},
		"a = new chunked chunk_size=8":                               {Verb: corpus.New, Out: "a", Kind: corpus.Chunked, ChunkSize: 8},
		"a = new arrays slots=2":                                     {Verb: corpus.New, Out: "a", Kind: corpus.Arrays, Slots: 2},
		"a.mask n=3 window=2":                                        {Verb: corpus.MaskOp, Cache: "a", N: 3, Window: two},
		"a.prepare lengths=[1] right_padding=[0] right_padded=false": {Verb: corpus.Prepare, Cache: "a", Lengths: []int{1}, RightPadding: []int{0}, RightPadded: new(false)},
		"a.prepare left_padding=[1]":                                 {Verb: corpus.Prepare, Cache: "a", LeftPadding: []int{1}},
		"a.filter rows=[]":                                           {Verb: corpus.Filter, Cache: "a"},
		"a.extend b":                                                 {Verb: corpus.Extend, Cache: "a", Other: "b"},
		"m = merge a b":                                              {Verb: corpus.Merge, Out: "m", Caches: []string{"a", "b"}},
		"x = a.extract row=0 limit=2":                                {Verb: corpus.Extract, Cache: "a", Out: "x", Limit: two},
		"save f a b":                                                 {Verb: corpus.Save, File: "f", Caches: []string{"a", "b"}},
		"a, b = load f":                                              {Verb: corpus.Load, File: "f", Outs: []string{"a", "b"}},
		"a.write [[1] [2]] slot=0":                                   {Verb: corpus.Write, Cache: "a", Tokens: [][]int{{1}, {2}}},
		"a.append_window_under [[1]] mask=[[10]] causal=true":        {Verb: corpus.AppendWindowUnder, Cache: "a", Tokens: [][]int{{1}}, Mask: &ring.Mask{B: 1, N: 1, S: 2, Data: []bool{true, false}}, Causal: true},
		"a.rollback keep=0":                                          {Verb: corpus.Rollback, Cache: "a"},
		"a.rollback keep=[1 2] preserve_columns=true":                {Verb: corpus.Rollback, Cache: "a", KeepRows: []int{1, 2}, Preserve: true},
		"s = a.snapshot":                                             {Verb: corpus.Snapshot, Cache: "a", As: "s"},
		"a.restore s":                                                {Verb: corpus.Restore, Cache: "a", From: "s"},
		"b = adopt s":                                                {Verb: corpus.Adopt, Out: "b", From: "s"},
		"a.projected_bytes n=0":                                      {Verb: corpus.ProjectedBytes, Cache: "a"},
		"a.attend queries=1 scale=0.5":                               {Verb: corpus.Attend, Cache: "a", Queries: 1, Scale: 0.5},
	} {
		if got := opText(op); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAnswerText(t *testing.T) {
	for want, s := range map[string]corpus.Step{
		"done":                 {},
		"unsupported":          {Unsupported: "trim"},
		"mask null":            {Mask: &ring.Mask{}},
		"mask [[10 01]]":       {Mask: &ring.Mask{B: 1, N: 2, S: 2, Data: []bool{true, false, false, true}}},
		"offsets [1], bytes 2": {Offsets: []int{1}, Bytes: new(2)},
		"attended 2 numbers":   {Attended: []float32{1, 2}},
		"stored 1×2":           {Stored: []corpus.Plane{{Name: "keys", Array: ring.Array{Shape: [4]int{1, 1, 2, 4}}}}},
		"ends null caches [{offset [1 2]}]": {State: corpus.State{corpus.IntsField(corpus.FEnds, nil), {
			Name: corpus.FCaches, Kind: corpus.States, States: []corpus.State{{corpus.IntsField(corpus.FOffset, []int{1, 2})}},
		}}},
	} {
		if got := answerText(s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestDrawColumns(t *testing.T) {
	got := DrawColumns([][]int{{1, 2, 3}, {10, -1, 0}, {7}}, [][]int{{1, 2, 3}, {10, 12, Unknown, 5}})
	const want = `row 0 equal 1 2 3
row 1 want  10 -1 .
      got   10 12 ? 5
                ^ ^ ^
row 2 want  7
      got
            ^
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
