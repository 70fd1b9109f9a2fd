package props

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

var levels = map[string]Level{"visible": Visible, "columns": Columns, "layout": Layout}

// clone copies steps deeply enough to change one.
func clone(steps []corpus.Step) []corpus.Step {
	steps = slices.Clone(steps)
	for i := range steps {
		s := &steps[i]
		for _, planes := range []*[]corpus.Plane{&s.Returned, &s.Stored} {
			*planes = slices.Clone(*planes)
			for k := range *planes {
				(*planes)[k].Array.Data = slices.Clone((*planes)[k].Array.Data)
			}
		}
		s.State = slices.Clone(s.State)
		if s.Mask != nil {
			m := *s.Mask
			m.Data = slices.Clone(m.Data)
			s.Mask = &m
		}
		if s.Trimmed != nil {
			s.Trimmed = new(*s.Trimmed)
		}
	}
	return steps
}

func runFake(t testing.TB, f fake, c corpus.Case) []corpus.Step {
	t.Helper()
	steps, err := f.Run(context.Background(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// wantOf makes a case's wants from a run.
func wantOf(c corpus.Case, steps []corpus.Step) corpus.Case {
	tokens := NewTokens(c)
	c.Ops = slices.Clone(c.Ops)
	for i, s := range steps {
		c.Ops[i].Want = &corpus.Want{
			Returned: tokens.IDs(s.Returned), Stored: tokens.IDs(s.Stored), State: s.State, Mask: s.Mask,
			Trimmed: s.Trimmed, Offsets: s.Offsets, Bytes: s.Bytes, Error: s.Error,
		}
	}
	return c
}

func TestCompareEqual(t *testing.T) {
	for _, c := range fakeCases {
		want := runFake(t, fake{}, c)
		for name, level := range levels {
			if d := CompareRuns(c, want, runFake(t, fake{}, c), level); d != nil {
				t.Errorf("%s: runs: %v", name, d)
			}
			if d := CompareWants(wantOf(c, want), want, level); d != nil {
				t.Errorf("%s: wants: %v", name, d)
			}
			if d := CompareWants(c, want, level); d != nil {
				t.Errorf("%s: a case that wants nothing: %v", name, d)
			}
		}
	}
}

// TestCompareOtherLayout: columns in another order are the same to a query, and
// to nobody else.
func TestCompareOtherLayout(t *testing.T) {
	for _, c := range fakeCases {
		c.Ops = c.Ops[:len(c.Ops)-1] // an extract shows its columns in order at every level
		want, got := runFake(t, fake{}, c), runFake(t, fake{reversed: true}, c)
		if d := CompareRuns(c, want, got, Visible); d != nil {
			t.Errorf("visible: %v", d)
		}
		if d := CompareWants(wantOf(c, want), got, Visible); d != nil {
			t.Errorf("visible, by ids: %v", d)
		}
		for _, level := range []Level{Columns, Layout} {
			if d := CompareRuns(c, want, got, level); d == nil || d.Field != "mask" && d.Field != "returned" {
				t.Errorf("level %d: %v, want a difference in mask or returned", level, d)
			}
		}
	}
}

// TestCompareDifferences changes one thing in an answer and says which field is
// to be reported, and at which levels.
func TestCompareDifferences(t *testing.T) {
	// #0 new, #1 mask 3, #2 update 3 (row 1 is 4 -1 -2), #3 trim 1, #4 trim 7
	// refused, #5 update 1 (row 0 is padding), #6 mask 1, #7 update 1, #8 extract.
	flip := func(p []corpus.Plane, plane, b, h, s int) {
		a := p[plane].Array
		width := a.Shape[3] * a.DType.Size()
		a.Data[((b*a.Shape[1]+h)*a.Shape[2]+s)*width]++
	}
	state := func(name corpus.FieldName, step int) func([]corpus.Step) {
		return func(got []corpus.Step) {
			for k := range got[step].State {
				if f := &got[step].State[k]; f.Name == name {
					f.Int ^= 1
				}
			}
		}
	}
	tests := map[string]struct {
		change                   func(got []corpus.Step)
		step                     int
		visible, columns, layout string
	}{
		"a byte that a query sees": {
			change: func(got []corpus.Step) { flip(got[2].Returned, 0, 0, 1, 2) },
			step:   2, visible: "visible tokens", columns: "returned", layout: "returned",
		},
		"the value of a key": {
			change: func(got []corpus.Step) { flip(got[2].Returned, 1, 0, 0, 0) },
			step:   2, visible: "visible tokens", columns: "returned", layout: "returned",
		},
		"a byte that only padding sees": {
			change: func(got []corpus.Step) { flip(got[2].Returned, 0, 1, 0, 1) },
			step:   2, columns: "returned", layout: "returned",
		},
		"a byte under no mask": {
			change: func(got []corpus.Step) { flip(got[5].Returned, 0, 1, 0, 1) },
			step:   5, columns: "returned", layout: "returned",
		},
		"a token shown twice": {
			change: func(got []corpus.Step) {
				c := fakeCases[0]
				got[2].Returned = plainPlanes(c, [][]int{{1, 2, 2}, {4, -1, -2}})
			},
			step: 2, visible: "visible tokens", columns: "returned", layout: "returned",
		},
		"no returned": {
			change: func(got []corpus.Step) { got[7].Returned = nil },
			step:   7, visible: "returned", columns: "returned", layout: "returned",
		},
		"a mask bit of a real token": {
			change: func(got []corpus.Step) { got[1].Mask.Data[0] = false },
			step:   1, columns: "mask",
			// The reference sees mask and columns together only at the update.
			visible: "visible tokens@2", layout: "mask",
		},
		"a mask that does not fit": {
			change: func(got []corpus.Step) { got[1].Mask = &ring.Mask{B: 2, N: 3, S: 1, Data: make([]bool, 6)} },
			step:   1, visible: "mask", columns: "mask", layout: "mask",
		},
		"a mask of null instead": {
			change: func(got []corpus.Step) { got[1].Mask = &ring.Mask{} },
			step:   1, visible: "visible tokens@2", columns: "mask", layout: "mask",
		},
		"null for a mask of ones": {
			change: func(got []corpus.Step) { got[6].Mask = &ring.Mask{} },
			step:   6, columns: "mask", layout: "mask",
		},
		"no mask": {
			change: func(got []corpus.Step) { got[1].Mask = nil },
			step:   1, visible: "mask", columns: "mask", layout: "mask",
		},
		"a mask bit of padding": { // fakeCases are exact
			change: func(got []corpus.Step) { m := got[1].Mask; m.Data[(1*m.N+1)*m.S] = false },
		},
		"buffer":         {change: state(corpus.FBuffer, 2), step: 2, layout: "state.buffer"},
		"offset":         {change: state(corpus.FOffset, 3), step: 3, visible: "state.offset", columns: "state.offset", layout: "state.offset"},
		"a refusal's":    {change: state(corpus.FSize, 4), step: 4, visible: "state.size", columns: "state.size", layout: "state.size"},
		"no field":       {change: func(got []corpus.Step) { got[0].State = got[0].State[1:] }, visible: "state.offset", columns: "state.offset", layout: "state.offset"},
		"one field more": {change: func(got []corpus.Step) { got[0].State = append(got[0].State, corpus.IntField(corpus.FIdx, 0)) }, columns: "state.idx", layout: "state.idx"},
		"trimmed":        {change: func(got []corpus.Step) { *got[3].Trimmed = 2 }, step: 3, visible: "trimmed", columns: "trimmed", layout: "trimmed"},
		"no trimmed":     {change: func(got []corpus.Step) { got[3].Trimmed = nil }, step: 3, visible: "trimmed", columns: "trimmed", layout: "trimmed"},
		"offsets":        {change: func(got []corpus.Step) { got[3].Offsets = []int{1} }, step: 3, visible: "offsets", columns: "offsets", layout: "offsets"},
		"bytes":          {change: func(got []corpus.Step) { got[3].Bytes = new(1) }, step: 3, visible: "bytes", columns: "bytes", layout: "bytes"},
		"another code":   {change: func(got []corpus.Step) { got[4].Error = "range" }, step: 4, visible: "error", columns: "error", layout: "error"},
		"not refused":    {change: func(got []corpus.Step) { got[4].Error = "" }, step: 4, visible: "error", columns: "error", layout: "error"},
		"refused":        {change: func(got []corpus.Step) { got[2] = corpus.Step{Error: "rows"} }, step: 2, visible: "error", columns: "error", layout: "error"},
		"the message":    {change: func(got []corpus.Step) { got[4].Message = "in other words" }},
		"stored": {
			change: func(got []corpus.Step) { flip(got[8].Stored, 0, 0, 0, 3) },
			step:   8, visible: "last tokens", columns: "last tokens", layout: "stored",
		},
		"what stands before the last tokens": { // 4 -1 5 7: the run of real ones is 5 7
			change: func(got []corpus.Step) { flip(got[8].Stored, 0, 0, 0, 1) },
			step:   8, layout: "stored",
		},
		"unsupported from here": {
			change: func(got []corpus.Step) { got[2], got[5].Error = corpus.Step{Unsupported: "update"}, "range" },
		},
	}
	c := fakeCases[0]
	want := runFake(t, fake{}, c)
	for name, test := range tests {
		got := clone(want)
		test.change(got)
		for levelName, field := range map[string]string{"visible": test.visible, "columns": test.columns, "layout": test.layout} {
			t.Run(name+"/"+levelName, func(t *testing.T) {
				step := test.step
				if before, ok := strings.CutSuffix(field, "@2"); ok {
					field, step = before, 2
				}
				check(t, CompareRuns(c, want, got, levels[levelName]), field, step)
				switch name { // what a want cannot say
				case "offsets", "bytes", "one field more":
					field = ""
				}
				check(t, CompareWants(wantOf(c, want), got, levels[levelName]), field, step)
			})
		}
	}
}

func check(t *testing.T, d *Difference, field string, step int) {
	t.Helper()
	switch {
	case d == nil && field != "":
		t.Errorf("no difference, want one in %s of #%d", field, step)
	case d != nil && (d.Field != field || d.Step != step):
		t.Errorf("difference in %s of #%d, want %q of #%d:\n%v", d.Field, d.Step, field, step, d)
	case d != nil && d.Case == "":
		t.Errorf("no case named: %v", d)
	}
}

// TestCompareMLXLMPaddingMask: under mlxlm padding queries have a value too.
func TestCompareMLXLMPaddingMask(t *testing.T) {
	c := fakeCases[0]
	c.Semantics = ring.MLXLM
	want := runFake(t, fake{}, c)
	got := clone(want)
	m := got[1].Mask
	m.Data[(1*m.N+1)*m.S] = false
	check(t, CompareRuns(c, want, got, Layout), "mask", 1)
	check(t, CompareRuns(c, want, got, Visible), "", 0)
}

func TestCompareLength(t *testing.T) {
	c := fakeCases[0]
	want := runFake(t, fake{}, c)
	for _, got := range [][]corpus.Step{want[:4], append(clone(want), corpus.Step{})} {
		if d := CompareRuns(c, want, got, Visible); d == nil || d.Field != "steps" {
			t.Errorf("%d steps: %v", len(got), d)
		}
		if d := CompareWants(wantOf(c, want), got, Visible); d == nil || d.Field != "steps" {
			t.Errorf("%d steps against wants: %v", len(got), d)
		}
	}
	if d := CompareRuns(corpus.Case{Name: "empty"}, nil, want[:1], Layout); d == nil || d.Field != "steps" {
		t.Errorf("an answer to nothing: %v", d)
	}
}

// TestComparePairing: which masks belong to which write.
func TestComparePairing(t *testing.T) {
	other := corpus.Op{Verb: corpus.Update, Cache: "b", Tokens: [][]int{{9}}}
	window := corpus.Op{Verb: corpus.AppendWindow, Cache: "a", Tokens: [][]int{{9}}}
	decode := corpus.Op{Verb: corpus.AppendDecode, Cache: "a", Tokens: [][]int{{9}}}
	view := corpus.Op{Verb: corpus.TemporalView, Cache: "a"}
	tests := map[string]struct {
		between []corpus.Op // the mask of one query, and the write
		paired  bool
	}{
		"nothing between":       {[]corpus.Op{update([]int{9})}, true},
		"another cache's write": {[]corpus.Op{other, update([]int{9})}, true},
		"an operation that only reads": {
			[]corpus.Op{view, extract(0, "c"), mask(4), update([]int{9})}, true,
		},
		"a refused trim":   {[]corpus.Op{trim(7), update([]int{9})}, true},
		"a trim":           {[]corpus.Op{trim(1), update([]int{9})}, false},
		"a write":          {[]corpus.Op{update([]int{7, 8}), update([]int{9})}, false},
		"another width":    {[]corpus.Op{update([]int{8, 9})}, false},
		"append_decode":    {[]corpus.Op{decode}, true},
		"append_window(1)": {[]corpus.Op{window}, false},
		"extended by it": {
			[]corpus.Op{{Verb: corpus.Extend, Cache: "b", Other: "a"}, update([]int{9})}, false,
		},
		"its list filtered": {
			[]corpus.Op{{Verb: corpus.Filter, Cache: "l", Rows: []int{0}}, update([]int{9})}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := fakeCase("pairing", corpus.BatchRotating, append([]corpus.Op{
				{Verb: corpus.New, Kind: corpus.List, Out: "l", Caches: []string{"a"}},
				{Verb: corpus.New, Kind: corpus.KV, Out: "b"}, mask(1),
			}, test.between...)...)
			want := make([]corpus.Step, len(c.Ops))
			for i, op := range c.Ops {
				switch {
				case op.Verb == corpus.MaskOp && op.N == 1:
					want[i].Mask = &ring.Mask{B: 1, N: 1, S: 2, Data: []bool{true, true}}
				case op.Verb == corpus.Trim && op.N == 7:
					want[i].Error = "over_trim"
				case op.Tokens != nil:
					want[i].Returned = plainPlanes(c, [][]int{{8, 9}})
				}
			}
			got := clone(want)
			got[3].Mask.Data[0] = false
			if d := CompareRuns(c, want, got, Visible); (d != nil) != test.paired {
				t.Errorf("paired: want %v; the difference is %v", test.paired, d)
			}
		})
	}
}

// TestCompareAppend: an append answers a mask of its own.
func TestCompareAppend(t *testing.T) {
	for _, verb := range []corpus.Verb{corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder} {
		c := fakeCase("append", corpus.BatchRotating, update([]int{1, 2}), corpus.Op{Verb: verb, Cache: "a", Tokens: [][]int{{3}}})
		want := make([]corpus.Step, 3)
		want[2].Returned = plainPlanes(c, [][]int{{1, 2, 3}})
		want[2].Mask = &ring.Mask{B: 1, N: 1, S: 3, Data: []bool{false, true, true}}
		other := clone(want) // the same to a query
		other[2].Returned = plainPlanes(c, [][]int{{3, 2}})
		other[2].Mask = &ring.Mask{}
		check(t, CompareRuns(c, want, other, Visible), "", 0)
		check(t, CompareWants(wantOf(c, want), other, Visible), "", 0)
		check(t, CompareRuns(c, want, other, Columns), "returned", 2)
		got := clone(want)
		got[2].Mask.Data[0] = true
		check(t, CompareRuns(c, want, got, Visible), "visible tokens", 2)
		check(t, CompareRuns(c, want, got, Columns), "mask", 2)
		c.Ops[2].Tokens[0][0] = -3
		check(t, CompareRuns(c, want, got, Columns), "", 0)
		got[2].Mask = nil // an implementation whose appends answer none
		check(t, CompareRuns(c, want, got, Visible), "", 0)
	}
}

// TestComparePaddingMask: which rows of an exact mask are padding's.
func TestComparePaddingMask(t *testing.T) {
	m := func(data ...bool) *ring.Mask { return &ring.Mask{B: 1, N: 2, S: len(data) / 2, Data: data} }
	want, padding, token := m(true, true), m(true, false), m(false, true)
	for name, test := range map[string]struct {
		ops    []corpus.Op
		got    *ring.Mask
		differ bool
	}{
		"padding":             {[]corpus.Op{update([]int{1, -1})}, padding, false},
		"a token":             {[]corpus.Op{update([]int{1, -1})}, token, true},
		"after a mask":        {[]corpus.Op{mask(1), update([]int{1, -1})}, padding, false},
		"no write":            {nil, padding, true},
		"another write":       {[]corpus.Op{update([]int{1})}, padding, true},
		"a change before it":  {[]corpus.Op{trim(1), update([]int{1, -1})}, padding, true},
		"a refusal before it": {[]corpus.Op{trim(7), update([]int{1, -1})}, padding, false},
		"another row":         {[]corpus.Op{update([]int{1, -1}, []int{1, -1})}, padding, true},
		"no rows":             {[]corpus.Op{update()}, padding, true},
	} {
		c := fakeCase("padding", corpus.BatchRotating, append([]corpus.Op{mask(2)}, test.ops...)...)
		steps := func(m *ring.Mask) []corpus.Step {
			s := make([]corpus.Step, len(c.Ops))
			s[1].Mask = m
			if name == "a refusal before it" {
				s[2].Error = "over_trim"
			}
			return s
		}
		if d := CompareRuns(c, steps(want), steps(test.got), Columns); (d != nil) != test.differ {
			t.Errorf("%s: difference %v, want one: %v", name, d, test.differ)
		}
	}
}

// TestCompareRecurrentMask: a mask of recurrent state has no columns, and is
// compared as it stands.
func TestCompareRecurrentMask(t *testing.T) {
	c := fakeCase("recurrent", corpus.Arrays, mask(2), corpus.Op{Verb: corpus.Advance, Cache: "a", N: 2})
	want := []corpus.Step{{}, {Mask: &ring.Mask{B: 1, N: 1, S: 2, Data: []bool{false, true}}}, {}}
	got := clone(want)
	got[1].Mask.Data[0] = true
	check(t, CompareRuns(c, want, got, Visible), "mask", 1)
	check(t, CompareRuns(c, want, clone(want), Visible), "", 0)
}

// TestCompareTail: how much of an extract belongs to its row.
func TestCompareTail(t *testing.T) {
	c := fakeCase("tail", corpus.BatchRotating, update([]int{1, 2, 3, 4, 5, 6, 7, -1}), extract(0, "b"))
	tests := map[string]struct {
		want, got []int
		differ    bool
	}{
		"equal":                         {[]int{1, 2, 3}, []int{1, 2, 3}, false},
		"padding before it":             {[]int{-1, 2, 3}, []int{0, 2, 3}, false},
		"nothing before it":             {[]int{-1, 2, 3}, []int{2, 3}, false},
		"more before it":                {[]int{2, 3}, []int{1, 2, 3}, false},
		"a rejected token before it":    {[]int{7, 2, 3}, []int{6, 2, 3}, false},
		"a token of the row is missing": {[]int{1, 2, 3}, []int{2, 3}, true},
		"another token":                 {[]int{1, 2, 3}, []int{1, 2, 4}, true},
		"another order":                 {[]int{1, 2, 3}, []int{2, 1, 3}, true},
		"the row holds nothing":         {[]int{3, -1}, []int{4, 0}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := make([]corpus.Step, 3)
			got := make([]corpus.Step, 3)
			want[2].Stored = plainPlanes(c, [][]int{test.want})
			got[2].Stored = plainPlanes(c, [][]int{test.got})
			for _, level := range []Level{Visible, Columns} {
				if d := CompareRuns(c, want, got, level); (d != nil) != test.differ {
					t.Errorf("level %d: difference %v, want one: %v", level, d, test.differ)
				}
			}
			// A temporal view is compared so at Visible only.
			c := fakeCase("view", corpus.BatchRotating, c.Ops[1], corpus.Op{Verb: corpus.TemporalView, Cache: "a"})
			want[2] = corpus.Step{Returned: want[2].Stored}
			got[2] = corpus.Step{Returned: got[2].Stored}
			if d := CompareRuns(c, want, got, Visible); (d != nil) != test.differ {
				t.Errorf("temporal view: difference %v, want one: %v", d, test.differ)
			}
			if d := CompareRuns(c, want, got, Columns); (d != nil) != !slices.Equal(test.want, test.got) {
				t.Errorf("temporal view at columns: difference %v", d)
			}
			if d := CompareWants(wantOf(c, want), got, Visible); (d != nil) != test.differ {
				t.Errorf("temporal view by ids: difference %v, want one: %v", d, test.differ)
			}
		})
	}
}

func TestCompareChildrenOfLists(t *testing.T) {
	c := fakeCase("list", corpus.List)
	state := func(buffer, offset int) []corpus.Step {
		return []corpus.Step{{State: corpus.State{corpus.IntField(corpus.FSize, 1), {
			Name: corpus.FCaches, Kind: corpus.States,
			States: []corpus.State{{corpus.IntField(corpus.FOffset, offset), corpus.IntField(corpus.FBuffer, buffer)}},
		}}}}
	}
	check(t, CompareRuns(c, state(1, 1), state(2, 1), Layout), "state.caches.0.buffer", 0)
	check(t, CompareRuns(c, state(1, 1), state(2, 1), Columns), "", 0)
	check(t, CompareRuns(c, state(1, 1), state(1, 2), Visible), "state.caches.0.offset", 0)
}

func TestCompareAttended(t *testing.T) {
	c := fakeCase("attend", corpus.BatchRotating)
	run := func(v ...float32) []corpus.Step { return []corpus.Step{{Attended: v}} }
	nan := float32(0)
	nan /= nan
	for name, test := range map[string]struct {
		got    []corpus.Step
		differ bool
	}{
		"close":         {run(1, 2.00001), false},
		"not close":     {run(1, 2.0001), true},
		"NaN":           {run(nan, 2), true},
		"fewer":         {run(1), true},
		"none: a child": {run(), false},
	} {
		if d := CompareRuns(c, run(1, 2), test.got, Visible); (d != nil) != test.differ {
			t.Errorf("%s: %v", name, d)
		}
	}
	c.Fill = corpus.Bits
	if d := CompareRuns(c, run(1), run(2), Visible); d != nil {
		t.Errorf("arbitrary bits have no tolerance: %v", d)
	}
}

func TestDropAfterRaises(t *testing.T) {
	op := func(v corpus.Verb, o corpus.Op) corpus.Op { o.Verb = v; return o }
	ops := []corpus.Op{
		op(corpus.New, corpus.Op{Out: "a", Kind: corpus.KV}),
		op(corpus.New, corpus.Op{Out: "b", Kind: corpus.KV}),
		op(corpus.New, corpus.Op{Out: "c", Kind: corpus.KV}),
		op(corpus.New, corpus.Op{Out: "l", Kind: corpus.List, Caches: []string{"c"}}),
		op(corpus.Trim, corpus.Op{Cache: "a"}), // raises
		op(corpus.Update, corpus.Op{Cache: "b"}),
		op(corpus.Update, corpus.Op{Cache: "a"}),                          // dropped
		op(corpus.Extract, corpus.Op{Cache: "a", Out: "x"}),               // dropped
		op(corpus.Update, corpus.Op{Cache: "x"}),                          // dropped
		op(corpus.Snapshot, corpus.Op{Cache: "a", As: "b"}),               // dropped; a snapshot named as a cache is
		op(corpus.Update, corpus.Op{Cache: "b"}),                          //
		op(corpus.Adopt, corpus.Op{Out: "y", From: "b"}),                  // dropped
		op(corpus.Save, corpus.Op{Caches: []string{"a"}, File: "f"}),      // dropped
		op(corpus.Load, corpus.Op{Outs: []string{"z"}, File: "f"}),        // dropped
		op(corpus.New, corpus.Op{Out: "x", Kind: corpus.KV}),              // anew
		op(corpus.Update, corpus.Op{Cache: "x"}),                          //
		op(corpus.Update, corpus.Op{Cache: "c"}),                          // raises
		op(corpus.Filter, corpus.Op{Cache: "l"}),                          // dropped
		op(corpus.Merge, corpus.Op{Out: "m", Caches: []string{"b", "l"}}), // dropped, but b is sound
		op(corpus.Update, corpus.Op{Cache: "b"}),                          //
		op(corpus.Extend, corpus.Op{Cache: "x", Other: "m"}),              // dropped
		op(corpus.New, corpus.Op{Out: "w", Kind: corpus.KV}),              //
		op(corpus.Update, corpus.Op{Cache: "w"}),                          //
	}
	want := []bool{
		false, false, false, false, false, false, true, true, true, true, false, true, true, true,
		false, false, false, true, true, false, true, false, false,
	}
	steps := make([]corpus.Step, len(ops))
	if got := DropAfterRaises(corpus.Case{Ops: ops}, steps); got != nil {
		t.Errorf("nothing raised: %v", got)
	}
	steps[4].Error, steps[16].Error = "raises", "raises"
	got := DropAfterRaises(corpus.Case{Ops: ops}, steps)
	for i := range ops {
		if got[i] != want[i] {
			t.Errorf("#%d %s: dropped %v, want %v", i, opText(ops[i]), got[i], want[i])
		}
	}

	// What is dropped, and what state a raise leaves, is not compared.
	other := slices.Clone(steps)
	other[6].Error, other[16].State = "rows", corpus.State{corpus.IntField(corpus.FOffset, 9)}
	if d := CompareRuns(corpus.Case{Ops: ops}, steps, other, Layout); d != nil {
		t.Error(d)
	}
}

// TestCompareFindsEveryByte: at Layout, whatever byte of an answer changes, the
// step that it is in is reported, in runs and against wants.
func TestCompareFindsEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(fakeCases).Draw(t, "case")
		want, _ := fake{}.Run(context.Background(), c, "")
		got := clone(want)
		type place struct {
			step int
			at   *byte
		}
		var places []place
		for i, s := range got {
			for _, p := range append(slices.Clone(s.Returned), s.Stored...) {
				for k := range p.Array.Data {
					places = append(places, place{i, &p.Array.Data[k]})
				}
			}
		}
		p := rapid.SampledFrom(places).Draw(t, "place")
		*p.at ^= rapid.ByteRange(1, 255).Draw(t, "change")
		d, byID := CompareRuns(c, want, got, Layout), CompareWants(wantOf(c, want), got, Layout)
		if d == nil || d.Step != p.step || byID == nil || byID.Step != p.step {
			t.Fatalf("a byte of #%d is changed; the comparison of runs finds %v, that with wants %v", p.step, d, byID)
		}
	})
}

func TestDifferenceText(t *testing.T) {
	c := fakeCases[0]
	want := runFake(t, fake{}, c)
	got := clone(want)
	got[2].Returned = plainPlanes(c, [][]int{{1, 2, 2}, {4, 0, -2}})
	d := CompareRuns(c, want, got, Layout)
	if d == nil {
		t.Fatal("no difference")
	}
	text := d.String()
	for _, part := range []string{
		`case "case-of-batch_rotating", #2 a.update [[1 2 3] [4 -1 -2]]: returned differs; first differing element: keys[b=0 h=0 s=2 d=0]`,
		"(-want +got)",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
	var err error = d
	if !errors.As(err, &d) || err.Error() != text {
		t.Error("a Difference is no error of its text")
	}
	got = clone(want)
	*got[3].Trimmed = 0
	if got, want := CompareRuns(c, want, got, Layout).String(), `case "case-of-batch_rotating", #3 a.trim n=1: trimmed is 0, want 1`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = clone(want)
	got[4].Error, got[4].Message = "range", "\x1b[31m"
	if got, want := CompareRuns(c, want, got, Layout).String(), `case "case-of-batch_rotating", #4 a.trim n=7: error is range, want over_trim; "\x1b[31m"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got[4].Message = strings.Repeat("é", 1000) + ": why"
	if got := CompareRuns(c, want, got, Layout).String(); len(got) > 1000 || !strings.Contains(got, "é … é") || !strings.HasSuffix(got, `é: why"`) {
		t.Errorf("a long message is not cut in its middle: %s", got)
	}
	got = clone(want)
	got[2].Returned[0].Array.Shape[2] = 6
	if got := CompareRuns(c, want, got, Layout).String(); !strings.Contains(got, "the planes are keys bfloat16[2 2 6 4], values bfloat16[2 2 3 6], want keys bfloat16[2 2 3 4]") {
		t.Error(got)
	}
}

// TestCompareRaises: where mlx-lm raises, an implementation that does not claim
// to be mlx-lm may refuse with any code, but must refuse. Of a refusal, a state
// counts that both sides tell.
func TestCompareRaises(t *testing.T) {
	c := fakeCase("raises", corpus.BatchRotating, trim(7))
	for code, differs := range map[string]map[string]bool{
		"raises": {},
		"range":  {"layout": true},
		"":       {"layout": true, "columns": true, "visible": true},
	} {
		for name, level := range levels {
			field := ""
			if differs[name] {
				field = "error"
			}
			check(t, CompareRuns(c, []corpus.Step{{}, {Error: "raises"}}, []corpus.Step{{}, {Error: code}}, level), field, 1)
		}
	}
	told := corpus.Step{Error: "range", State: corpus.State{corpus.IntField(corpus.FOffset, 1)}}
	for _, level := range levels {
		check(t, CompareRuns(c, []corpus.Step{{}, told}, []corpus.Step{{}, {Error: "range"}}, level), "", 0)
		check(t, CompareRuns(c, []corpus.Step{{}, {Error: "range"}}, []corpus.Step{{}, told}, level), "", 0)
	}
}

// TestCompareWantsOneThing: whatever a want names is held against the answer,
// also if it names nothing else; one that names nothing accepts all.
func TestCompareWantsOneThing(t *testing.T) {
	c := fakeCase("one", corpus.BatchRotating, update([]int{1, 2}))
	other := plainPlanes(c, [][]int{{2, 1}})
	for field, test := range map[string]struct {
		want corpus.Want
		got  corpus.Step
	}{
		"returned":     {corpus.Want{Returned: [][]int{{1, 2}}}, corpus.Step{Returned: other}},
		"stored":       {corpus.Want{Stored: [][]int{{1, 2}}}, corpus.Step{Stored: other}},
		"mask":         {corpus.Want{Mask: &ring.Mask{}}, corpus.Step{Mask: &ring.Mask{B: 1, N: 2, S: 2, Data: make([]bool, 4)}}},
		"state.offset": {corpus.Want{State: corpus.State{corpus.IntField(corpus.FOffset, 2)}}, corpus.Step{State: corpus.State{corpus.IntField(corpus.FOffset, 1)}}},
		"trimmed":      {corpus.Want{Trimmed: new(1)}, corpus.Step{Trimmed: new(2)}},
		"offsets":      {corpus.Want{Offsets: []int{1}}, corpus.Step{Offsets: []int{2}}},
		"bytes":        {corpus.Want{Bytes: new(1)}, corpus.Step{Bytes: new(2)}},
		"error":        {corpus.Want{Error: "rows"}, corpus.Step{Error: "range"}},
	} {
		c.Ops[1].Want = &test.want
		check(t, CompareWants(c, []corpus.Step{{}, test.got}, Layout), field, 1)
		c.Ops[1].Want = &corpus.Want{}
		check(t, CompareWants(c, []corpus.Step{{}, test.got}, Layout), "", 0)
	}
	run := func(s corpus.Step) []corpus.Step { return []corpus.Step{{}, s} }
	check(t, CompareRuns(c, run(corpus.Step{Offsets: []int{1}}), run(corpus.Step{Offsets: []int{2}}), Visible), "offsets", 1)
}

// TestCompareExtractUnseen: below Layout, who does not show the buffer of an
// extract is not held to it.
func TestCompareExtractUnseen(t *testing.T) {
	c := fakeCase("unseen", corpus.BatchRotating, update([]int{1, 2}), extract(0, "b"))
	want := []corpus.Step{{}, {}, {Stored: plainPlanes(c, [][]int{{1, 2}})}}
	got := make([]corpus.Step, 3)
	for _, level := range []Level{Visible, Columns} {
		check(t, CompareRuns(c, want, got, level), "", 0)
		check(t, CompareRuns(c, got, want, level), "", 0)
		check(t, CompareWants(wantOf(c, want), got, level), "", 0)
	}
	check(t, CompareRuns(c, want, got, Layout), "stored", 2)
}

// TestCompareTailZeros: zeros, and a token a second time, are not among the last
// tokens of a row.
func TestCompareTailZeros(t *testing.T) {
	c := fakeCase("tail", corpus.BatchRotating, update([]int{1, 2, 3}), extract(0, "b"))
	run := func(ids ...int) []corpus.Step { return []corpus.Step{{}, {}, {Stored: plainPlanes(c, [][]int{ids})}} }
	for _, before := range []int{0, 2} {
		check(t, CompareRuns(c, run(before, 2, 3), run(1, 2, 3), Visible), "", 0)
		check(t, CompareRuns(c, run(before, 2, 3), run(1, 3, 2), Visible), "last tokens", 2)
	}
}

// TestCompareShortRuns: answers that end early are compared as far as they go.
func TestCompareShortRuns(t *testing.T) {
	c := fakeCases[0]
	want := runFake(t, fake{}, c)
	for n := range want {
		got := clone(want[:n])
		if n > 1 {
			m := got[1].Mask // of padding
			m.Data[(1*m.N+1)*m.S] = false
		}
		check(t, CompareRuns(c, want[:n], got, Layout), "", 0)
		check(t, CompareWants(wantOf(c, want[:n]), got, Layout), "steps", n)
	}
	c.Ops = append(c.Ops, corpus.Op{Verb: corpus.New, Out: "z", Kind: corpus.BatchRotating, MaxSize: 1, LeftPadding: []int{0}})
	steps := make([]corpus.Step, len(c.Ops)-1)
	steps[2].Error = "raises"
	dropped := DropAfterRaises(c, steps)
	if len(dropped) != len(c.Ops) || dropped[2] || !dropped[3] || dropped[len(c.Ops)-1] {
		t.Errorf("dropped after a raise: %v", dropped)
	}
	if d := CompareRuns(c, want, nil, Visible); !strings.Contains(d.String(), "#0 a = new batch_rotating") {
		t.Errorf("of no steps at all: %v", d)
	}
}

// TestCompareMaskExtents: masks as arrays, and what does not fit.
func TestCompareMaskExtents(t *testing.T) {
	c := fakeCase("masks", corpus.BatchRotating, mask(2), update([]int{1, 2}, []int{-1, 3}))
	of := func(b, n, s int, holes ...int) *ring.Mask {
		m := &ring.Mask{B: b, N: n, S: s, Data: make([]bool, b*n*s)}
		for i := range m.Data {
			m.Data[i] = true
		}
		for _, i := range holes {
			m.Data[i] = false
		}
		return m
	}
	run := func(m *ring.Mask) []corpus.Step {
		return []corpus.Step{{}, {Mask: m}, {Returned: plainPlanes(c, [][]int{{1, 2, 0}, {0, 3, 1}})}}
	}
	whole := of(2, 2, 3)
	for name, test := range map[string]struct {
		want, got        *ring.Mask
		visible, columns string
	}{
		"equal":                        {whole, of(2, 2, 3), "", ""},
		"none is wanted":               {nil, whole, "", "mask"},
		"null is wanted":               {&ring.Mask{}, whole, "", "mask"},
		"no rows, of another width":    {of(0, 2, 3), of(0, 2, 1), "", ""},
		"no rows, null is wanted":      {&ring.Mask{}, of(0, 2, 3), "mask", "mask"},
		"null, no rows are wanted":     {of(0, 2, 3), &ring.Mask{}, "", "mask"},
		"no rows for two":              {whole, of(0, 2, 3), "mask", "mask"},
		"two rows for none":            {of(0, 2, 3), whole, "", "mask"},
		"one row for all":              {whole, of(1, 2, 3), "", "mask"},
		"a query too few":              {whole, of(2, 1, 3), "mask", "mask"},
		"a column too few":             {whole, of(2, 2, 2), "mask", "mask"},
		"padding of the second row":    {whole, of(2, 2, 3, 8), "", ""},
		"a token of the second row":    {whole, of(2, 2, 3, 9), "visible tokens", "mask"},
		"a token of the first row":     {whole, of(2, 2, 3, 5), "visible tokens", "mask"},
		"the same bits of other lines": {of(2, 2, 3, 9), of(1, 4, 3, 9), "visible tokens", "mask"},
	} {
		t.Run(name, func(t *testing.T) {
			step := 1
			if test.visible == "visible tokens" {
				step = 2
			}
			check(t, CompareRuns(c, run(test.want), run(test.got), Visible), test.visible, step)
			d := CompareRuns(c, run(test.want), run(test.got), Columns)
			check(t, d, test.columns, 1)
			if test.got.N == 0 && d.Got != "null" || test.want != nil && test.want.N == 0 && d.Want != "null" {
				t.Errorf("a mask that is null is shown as %v and %v", d.Got, d.Want)
			}
		})
	}
	short := func(m *ring.Mask) []corpus.Step {
		steps := run(m)
		steps[2].Returned = plainPlanes(c, [][]int{{1, 2, 0}})
		return steps
	}
	check(t, CompareRuns(c, short(whole), short(of(2, 2, 3, 6)), Visible), "", 0) // a row is fed that neither returns
}

// TestComparePairingWants: a refusal does not part a mask from its write when a
// case's own wants are the measure, whether they say it or only the answer does.
// Nor does what is done to caches that have nothing to do with it; what is done
// to a list that holds the cache does.
func TestComparePairingWants(t *testing.T) {
	for name, test := range map[string]struct {
		between corpus.Op
		refused bool
		paired  bool
	}{
		"a refused trim":                     {trim(7), true, true},
		"a trim":                             {trim(1), false, false},
		"an extend of others":                {corpus.Op{Verb: corpus.Extend, Cache: "b", Other: "c"}, false, true},
		"a list that takes over its list":    {corpus.Op{Verb: corpus.Extend, Cache: "m", Other: "l"}, false, false},
		"a list that is extended by another": {corpus.Op{Verb: corpus.Extend, Cache: "l", Other: "m"}, false, false},
	} {
		c := fakeCase("pairing", corpus.BatchRotating,
			corpus.Op{Verb: corpus.New, Kind: corpus.List, Out: "l", Caches: []string{"a"}},
			mask(1), test.between, update([]int{9}))
		want := make([]corpus.Step, len(c.Ops))
		want[2].Mask = &ring.Mask{B: 1, N: 1, S: 2, Data: []bool{true, true}}
		if test.refused {
			want[3].Error = "over_trim"
		}
		want[4].Returned = plainPlanes(c, [][]int{{8, 9}})
		got := clone(want)
		got[2].Mask.Data[0] = false
		said := wantOf(c, want)
		unsaid := wantOf(c, want)
		unsaid.Ops[3].Want = nil
		for _, d := range []*Difference{CompareRuns(c, want, got, Visible), CompareWants(said, got, Visible), CompareWants(unsaid, got, Visible)} {
			if (d != nil) != test.paired {
				t.Errorf("%s: paired: want %v; the difference is %v", name, test.paired, d)
			}
		}
	}
	// A mask of one query is not of a write that a change parts from it.
	c := fakeCase("parted", corpus.BatchRotating, mask(1), trim(1), update([]int{-9}))
	run := func(b bool) []corpus.Step {
		return []corpus.Step{{}, {Mask: &ring.Mask{B: 1, N: 1, S: 1, Data: []bool{b}}}, {}, {}}
	}
	check(t, CompareRuns(c, run(true), run(false), Columns), "mask", 1)
}

// TestDifferenceDetail: what the values alone do not show.
func TestDifferenceDetail(t *testing.T) {
	c := fakeCases[0]
	want := runFake(t, fake{}, c)
	text := func(d *Difference) string {
		t.Helper()
		if d == nil {
			t.Fatal("no difference")
		}
		return d.String()
	}
	contains := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in:\n%s", part, text)
			}
		}
	}
	got := clone(want)
	got[2].Returned = nil
	contains(text(CompareRuns(c, want, got, Layout)), "returned differs", "(-want +got)")
	contains(text(CompareWants(wantOf(c, want), got, Layout)), "the answer has no returned")
	got = clone(want)
	got[2].Returned[0].Array.Shape[3]++
	contains(text(CompareWants(wantOf(c, want), got, Layout)), "keys is bfloat16[2 2 3 5], want [2 2 3 4] ([b h s d])")
	got = clone(want)
	data := got[2].Returned[0].Array.Data
	data[len(data)-1] ^= 1
	contains(text(CompareRuns(c, want, got, Layout)), "first differing element: keys[b=1 h=1 s=2 d=3]")
	data[84] ^= 1 // ((1·2+1)·3+1)·4+2 elements of two bytes lie before it
	contains(text(CompareRuns(c, want, got, Layout)), "first differing element: keys[b=1 h=1 s=1 d=2]")
	got = clone(want)
	got[2].Returned[0].Name = "k"
	contains(text(CompareRuns(c, want, got, Layout)), "the planes are k bfloat16[2 2 3 4]")
	got = clone(want)
	got[4].Error, got[4].Message = "range", strings.Repeat("x", 800)
	contains(text(CompareRuns(c, want, got, Layout)), got[4].Message)
}

// TestCompareAllocatesNothing keeps the path on which all is equal free of
// garbage: it runs once an operation of every generated case.
func TestCompareAllocatesNothing(t *testing.T) {
	c := fakeCases[0]
	want, got := runFake(t, fake{}, c), runFake(t, fake{}, c)
	for name, level := range levels {
		if n := testing.AllocsPerRun(100, func() {
			if CompareRuns(c, want, got, level) != nil {
				t.Fatal("they differ")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCompareRuns(b *testing.B) {
	c := fakeCase("long", corpus.BatchRotating)
	c.Shape.KeyDim, c.Shape.ValueDim = 8, 8
	for i := range 8 { // a window of 8, as it fills
		c.Ops = append(c.Ops, mask(1), update([]int{2*i + 1}, []int{2*i + 2}))
	}
	want, got := runFake(b, fake{}, c), runFake(b, fake{}, c)
	for _, name := range []string{"layout", "columns", "visible"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if d := CompareRuns(c, want, got, levels[name]); d != nil {
					b.Fatal(d)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(c.Ops)), "ns/operation")
		})
	}
}
