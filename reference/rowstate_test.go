package reference_test

import (
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

func newState(semantics ring.Semantics, maxSize int, left ...int) *reference.RowState {
	s := reference.NewRowState(semantics, maxSize, left)
	return &s
}

func TestRowStateStartsEmpty(t *testing.T) {
	for _, semantics := range semanticses {
		left := []int{0, 2}
		s := newState(semantics, 4, left...)
		left[1] = 9
		same(t, "position", s.Position(), ring.Position{MaxSize: 4, Offset: []int{0, -2}, LeftPadding: []int{0, 2}})
		same(t, "rows", s.BatchSize(), 2)
		same(t, "pending, trimmable", [2]bool{s.Pending(), s.Trimmable()}, [2]bool{false, true})
		same(t, "roll", must(s.PrefillRoll()), nil)
		same(t, "valid offset", s.ValidOffset(1), -2)
		none := newState(semantics, 4)
		same(t, "of no rows", none.Position(), ring.Position{MaxSize: 4, Offset: []int{}, LeftPadding: []int{}})
	}
}

func TestRowStateSharesNothing(t *testing.T) {
	s := newState(ring.Exact, 4, 0, 1)
	ok(t, s.Prepare(reference.Padding{Lengths: []int{2, 1}, RightPadding: []int{0, 1}}))
	p := s.Position()
	mine := p.Clone()
	p.Offset[0], p.LeftPadding[0], p.Ends[0] = 7, 7, 7
	same(t, "position after its copy was changed", s.Position(), mine)

	ok(t, s.Restore(mine))
	mine.Offset[0], mine.LeftPadding[0], mine.Ends[0] = 8, 8, 8
	p.Offset[0], p.LeftPadding[0], p.Ends[0] = 0, 0, 2
	same(t, "position after what it was restored from was changed", s.Position(), p)

	offset := []int{5, 6}
	s.RestoreMerged(3, offset)
	offset[0] = 9
	same(t, "offset after what it was merged from was changed", s.Position().Offset, []int{5, 6})

	lengths := []int{1, 2}
	ok(t, s.Prepare(reference.Padding{Lengths: lengths, RightPadding: []int{1, 0}}))
	lengths[0] = 9
	same(t, "ends after the lengths were changed", s.Position().Ends, []int{6, 8})
}

func TestRowStateRestore(t *testing.T) {
	s := newState(ring.Exact, 4, 0, 1)
	to := ring.Position{MaxSize: 4, Offset: []int{7}, LeftPadding: []int{1}, Idx: 2, Total: 6, Rotated: true, Ends: []int{6}}
	ok(t, s.Restore(to))
	same(t, "position", s.Position(), to)
	to.Ends = nil
	ok(t, s.Restore(to))
	same(t, "pending", s.Pending(), false)
	to.MaxSize = 5
	refuses(t, "another window", "max_size", func() error { return s.Restore(to) }, s)
}

func TestRowStatePrepare(t *testing.T) {
	yes, no := true, false
	pad := func(left, lengths, right []int, flag *bool) reference.Padding {
		return reference.Padding{LeftPadding: left, Lengths: lengths, RightPadding: right, RightPadded: flag}
	}
	for name, test := range map[string]struct {
		semantics ring.Semantics
		left      []int
		pad       reference.Padding
		want      ring.Position
	}{
		"left, upstream":          {ring.MLXLM, []int{0, 1}, pad([]int{2, 3}, nil, nil, nil), ring.Position{Offset: []int{-2, -4}, LeftPadding: []int{2, 4}}},
		"left":                    {ring.Exact, []int{0, 1}, pad([]int{2, 3}, nil, nil, nil), ring.Position{Offset: []int{-2, -4}, LeftPadding: []int{2, 4}}},
		"right counts from left":  {ring.Exact, []int{0, 0}, pad([]int{1, 2}, []int{5, 4}, []int{0, 1}, nil), ring.Position{Offset: []int{-1, -2}, LeftPadding: []int{1, 2}, Ends: []int{4, 2}}},
		"lengths alone":           {ring.Exact, []int{0, 0}, pad(nil, []int{5, 4}, nil, nil), ring.Position{Offset: []int{0, 0}, LeftPadding: []int{0, 0}}},
		"no padding":              {ring.Exact, []int{0, 0}, pad(nil, []int{5, 5}, []int{0, 0}, nil), ring.Position{Offset: []int{0, 0}, LeftPadding: []int{0, 0}}},
		"the flag suppresses":     {ring.Exact, []int{0, 0}, pad(nil, []int{5, 4}, []int{0, 1}, &no), ring.Position{Offset: []int{0, 0}, LeftPadding: []int{0, 0}}},
		"the flag demands":        {ring.Exact, []int{0}, pad(nil, []int{3}, nil, &yes), ring.Position{Offset: []int{0}, LeftPadding: []int{0}, Ends: []int{3}}},
		"the flag upstream":       {ring.MLXLM, []int{0}, pad(nil, []int{3}, nil, &yes), ring.Position{Offset: []int{0}, LeftPadding: []int{0}}},
		"rows by lengths (D-7)":   {ring.Exact, []int{}, pad(nil, []int{2, 3}, nil, nil), ring.Position{Offset: []int{0, 0}, LeftPadding: []int{0, 0}}},
		"rows by left (D-7)":      {ring.Exact, []int{}, pad([]int{1, 2}, nil, nil, nil), ring.Position{Offset: []int{-1, -2}, LeftPadding: []int{1, 2}}},
		"rows of both":            {ring.Exact, []int{}, pad([]int{1, 0}, []int{3, 2}, []int{0, 1}, nil), ring.Position{Offset: []int{-1, 0}, LeftPadding: []int{1, 0}, Ends: []int{2, 2}}},
		"nothing":                 {ring.Exact, []int{}, pad(nil, nil, nil, nil), ring.Position{Offset: []int{}, LeftPadding: []int{}}},
		"one serves all upstream": {ring.MLXLM, []int{0, 1}, pad([]int{2}, []int{4}, []int{1}, nil), ring.Position{Offset: []int{-2, -3}, LeftPadding: []int{2, 3}, Ends: []int{2, 1}}},
		"no rows to add to":       {ring.MLXLM, []int{}, pad([]int{2}, nil, nil, nil), ring.Position{Offset: []int{}, LeftPadding: []int{}}},
	} {
		s := newState(test.semantics, 8, test.left...)
		ok(t, s.Prepare(test.pad))
		test.want.MaxSize = 8
		same(t, name, s.Position(), test.want)
	}

	for name, test := range map[string]struct {
		semantics ring.Semantics
		pad       reference.Padding
		code      string
	}{
		"left padding of one row too many":    {ring.Exact, pad([]int{1, 2, 3}, nil, nil, nil), "rows"},
		"lengths of one row":                  {ring.Exact, pad(nil, []int{1}, nil, nil), "rows"},
		"right padding of no row":             {ring.Exact, pad(nil, []int{1, 1}, []int{}, nil), "rows"},
		"right padding without lengths":       {ring.Exact, pad(nil, nil, []int{0, 1}, nil), "rows"},
		"widths that differ":                  {ring.Exact, pad(nil, []int{3, 3}, []int{0, 1}, nil), "shape"},
		"negative left padding":               {ring.Exact, pad([]int{0, -1}, nil, nil, nil), "range"},
		"a negative length":                   {ring.Exact, pad(nil, []int{-1, 0}, nil, nil), "range"},
		"negative right padding":              {ring.Exact, pad(nil, []int{2, 3}, []int{0, -1}, nil), "range"},
		"a demand without lengths":            {ring.Exact, pad(nil, nil, nil, &yes), "raises"},
		"upstream, right without lengths":     {ring.MLXLM, pad(nil, nil, []int{0, 1}, nil), "raises"},
		"upstream, left padding of three":     {ring.MLXLM, pad([]int{1, 2, 3}, nil, nil, nil), "raises"},
		"upstream, three lengths":             {ring.MLXLM, pad(nil, []int{1, 2, 3}, []int{1, 0, 0}, nil), "raises"},
		"upstream, left good and lengths bad": {ring.MLXLM, pad([]int{1, 1}, []int{1, 2, 3}, []int{1, 0, 0}, nil), "raises"},
	} {
		s := newState(test.semantics, 8, 0, 1)
		refuses(t, name, test.code, func() error { return s.Prepare(test.pad) }, s)
	}
}

// TestRowStatePreparesAgain: exact semantics refuse it (E5); mlx-lm keeps what
// is pending unless there is new right padding (D-5).
func TestRowStatePreparesAgain(t *testing.T) {
	first := reference.Padding{Lengths: []int{3, 1}, RightPadding: []int{0, 2}}
	lengths := reference.Padding{Lengths: []int{3, 3}}

	exact := newState(ring.Exact, 8, 0, 0)
	ok(t, exact.Prepare(first))
	refuses(t, "a second prepare", "pending_padding", func() error { return exact.Prepare(lengths) }, exact)

	upstream := newState(ring.MLXLM, 8, 0, 0)
	ok(t, upstream.Prepare(first))
	ok(t, upstream.Prepare(lengths))
	same(t, "ends", upstream.Position().Ends, []int{3, 1})
	ok(t, upstream.Prepare(reference.Padding{Lengths: []int{2, 1}, RightPadding: []int{0, 1}}))
	same(t, "ends", upstream.Position().Ends, []int{2, 1})
}

func TestRowStatePending(t *testing.T) {
	for _, semantics := range semanticses {
		s := newState(semantics, 8, 0, 0)
		ok(t, s.Prepare(reference.Padding{Lengths: []int{3, 1}, RightPadding: []int{0, 2}}))
		same(t, "pending", s.Pending(), true)
		same(t, "trimmable", s.Trimmable(), semantics == ring.MLXLM)
		same(t, "roll before the write", must(s.PrefillRoll()), []int{0, 0})
		s.CommitConcat(3, 0, 3)
		same(t, "roll", must(s.PrefillRoll()), []int{0, 2})
		same(t, "valid offsets", []int{s.ValidOffset(0), s.ValidOffset(1)}, []int{3, 1})
		same(t, "offsets", s.Position().Offset, []int{3, 3})
		ok(t, s.Finalize())
		same(t, "position", s.Position(), ring.Position{MaxSize: 8, Offset: []int{3, 1}, LeftPadding: []int{0, 2}, Idx: 3, Total: 3})
		same(t, "held", []int{s.Held(0), s.Held(1)}, []int{3, 1})
		before := s.Position()
		ok(t, s.Finalize())
		same(t, "finalized again", s.Position(), before)
	}

	// mlx-lm does not filter what is pending (D-4): the rows no longer fit.
	s := newState(ring.MLXLM, 8, 0, 0, 0)
	ok(t, s.Prepare(reference.Padding{Lengths: []int{3, 1, 2}, RightPadding: []int{0, 2, 1}}))
	s.Filter([]int{1, 2})
	same(t, "ends", s.Position().Ends, []int{3, 1, 2})
	refuses(t, "roll of other rows", "raises", func() error { return one(s.PrefillRoll()) }, s)
	refuses(t, "finalize of other rows", "raises", s.Finalize, s)
}

func TestRowStateWrites(t *testing.T) {
	for _, semantics := range semanticses {
		exact := semantics == ring.Exact
		low := func(upstream, exactly []int) []int {
			if exact {
				return exactly
			}
			return upstream
		}
		s := newState(semantics, 2, 0, 1)
		for total, want := range []struct {
			at      int
			idx     int
			rotated bool
			left    []int
		}{
			{0, 1, false, []int{0, 1}},
			{1, 2, false, []int{0, 1}},
			{0, 1, true, low([]int{-1, 0}, []int{0, 0})},
			{1, 2, true, low([]int{-2, -1}, []int{0, 0})},
			{0, 1, true, low([]int{-3, -2}, []int{0, 0})},
		} {
			same(t, "trimmable", s.Trimmable(), total < 2)
			same(t, "column", s.BeginWrite(1), want.at)
			s.CommitWrite(1)
			same(t, "position", s.Position(), ring.Position{MaxSize: 2, Offset: []int{total + 1, total}, LeftPadding: want.left, Idx: want.idx, Total: total + 1, Rotated: want.rotated})
			same(t, "active length", s.ActiveLength(), min(total+1, 2))
			same(t, "valid length", s.ValidLength(), min(total+1, 2))
		}

		s = newState(semantics, 4, 0, 3)
		s.CommitConcat(6, 0, 6)
		same(t, "active length of an overshoot", [2]int{s.ActiveLength(), s.ValidLength()}, [2]int{6, 4})
		s.TrimOvershoot(0)
		s.TrimOvershoot(-1)
		same(t, "position", s.Position(), ring.Position{MaxSize: 4, Offset: []int{6, 3}, LeftPadding: []int{0, 3}, Idx: 6, Total: 6})
		s.TrimOvershoot(2)
		same(t, "position", s.Position(), ring.Position{MaxSize: 4, Offset: []int{6, 3}, LeftPadding: low([]int{-2, 1}, []int{0, 1}), Idx: 4, Total: 6})
		s.CommitConcat(2, 1, 5)
		same(t, "position", s.Position(), ring.Position{MaxSize: 4, Offset: []int{8, 5}, LeftPadding: low([]int{-3, 0}, []int{0, 0}), Idx: 5, Total: 8})

		s = newState(semantics, 8, 0)
		s.MarkGrown(3)
		same(t, "idx after growth", s.Position().Idx, 3)
	}
}

func TestRowStateFilter(t *testing.T) {
	for _, semantics := range semanticses {
		s := newState(semantics, 8, 0, 1, 2)
		ok(t, s.Prepare(reference.Padding{Lengths: []int{3, 2, 1}, RightPadding: []int{0, 1, 2}}))
		s.Filter([]int{2, 0, 2})
		ends := []int{3, 1, -1}
		if semantics == ring.Exact {
			ends = []int{-1, 3, -1}
		}
		same(t, "position", s.Position(), ring.Position{MaxSize: 8, Offset: []int{-2, 0, -2}, LeftPadding: []int{2, 0, 2}, Ends: ends})
		s.Filter(nil)
		same(t, "rows", s.BatchSize(), 0)
	}
}

func TestRowStateTrim(t *testing.T) {
	for _, semantics := range semanticses {
		s := newState(semantics, 8, 0, 1)
		s.CommitConcat(5, 0, 5)
		same(t, "trimmed", s.Trim(2), 2)
		same(t, "position", s.Position(), ring.Position{MaxSize: 8, Offset: []int{3, 2}, LeftPadding: []int{0, 1}, Idx: 3, Total: 3})
		same(t, "trimmed", s.Trim(7), 3)
		same(t, "position", s.Position(), ring.Position{MaxSize: 8, Offset: []int{0, -1}, LeftPadding: []int{0, 1}})
	}
}

func TestRowStateRestoreMerged(t *testing.T) {
	s := newState(ring.Exact, 4, 0, 2)
	ok(t, s.Prepare(reference.Padding{Lengths: []int{2, 1}, RightPadding: []int{0, 1}}))
	s.BeginWrite(1)
	s.RestoreMerged(3, []int{9, 1})
	same(t, "position", s.Position(), ring.Position{MaxSize: 4, Offset: []int{9, 1}, LeftPadding: []int{0, 2}, Idx: 3, Total: 3})
}

func TestTemporalRanges(t *testing.T) {
	s := newState(ring.Exact, 3, 0)
	at := func(idx, total int, rotated bool) *reference.RowState {
		ok(t, s.Restore(ring.Position{MaxSize: 3, Offset: []int{total}, LeftPadding: []int{0}, Idx: idx, Total: total, Rotated: rotated}))
		return s
	}
	same(t, "in order", at(3, 3, false).TemporalRanges(3), [][2]int{{0, 3}})
	same(t, "with spare", at(2, 2, false).TemporalRanges(3), [][2]int{{0, 2}})
	same(t, "overshoot", at(5, 5, false).TemporalRanges(5), [][2]int{{0, 5}})
	same(t, "wrapped", at(1, 4, true).TemporalRanges(3), [][2]int{{1, 3}, {0, 1}})
	same(t, "wrapped and full", at(3, 6, true).TemporalRanges(3), [][2]int{{0, 3}})
}

func TestPlanRollback(t *testing.T) {
	p := ring.Position{MaxSize: 4, Offset: []int{5, 3}, LeftPadding: []int{0, 2}, Idx: 5, Total: 5}
	before := p.Clone()
	same(t, "per row", reference.PlanRollback(p, []int{2, 0}, []int{3, 1}, false), reference.RollbackPlan{
		Shifts:   []int{0, 2},
		Position: ring.Position{MaxSize: 4, Offset: []int{5, 1}, LeftPadding: []int{0, 4}, Idx: 5, Total: 5},
	})
	same(t, "the position it was planned for", p, before)

	alone := ring.Position{MaxSize: 4, Offset: []int{3}, LeftPadding: []int{0}, Idx: 3, Total: 3}
	same(t, "one row that never filled", reference.PlanRollback(alone, []int{1}, []int{1}, false), reference.RollbackPlan{Trim: 1})
	same(t, "columns preserved", reference.PlanRollback(alone, []int{1}, []int{1}, true), reference.RollbackPlan{
		Shifts:   []int{1},
		Position: ring.Position{MaxSize: 4, Offset: []int{2}, LeftPadding: []int{1}, Idx: 3, Total: 3},
	})
	alone.Total, alone.Idx, alone.Rotated = 4, 1, true
	plan := reference.PlanRollback(alone, []int{1}, []int{2}, false)
	same(t, "a full ring", plan.Shifts, []int{0})
	plan.Position.Offset[0] = 9
	same(t, "the position shared", alone.Offset, []int{3})
}

// TestRowStateAgainstTheRules drives a RowState in exact semantics and holds
// it against the sums that define it: left padding + offset - A is the number
// of columns that were evicted, and never falls; no left padding is negative.
func TestRowStateAgainstTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.IntRange(1, 5).Draw(t, "max size")
		rows := rapid.IntRange(1, 3).Draw(t, "rows")
		left := rapid.SliceOfN(rapid.IntRange(0, 3), rows, rows).Draw(t, "left padding")
		s := newState(ring.Exact, w, left...)
		evicted := make([]int, rows)
		for range rapid.IntRange(1, 15).Draw(t, "writes") {
			if rapid.Bool().Draw(t, "block") {
				n := rapid.IntRange(1, 4).Draw(t, "columns")
				// A block follows on the ring in temporal order.
				p := s.Position()
				p.Idx, p.Rotated = s.ActiveLength(), false
				ok(t, s.Restore(p))
				drop := max(0, p.Idx-w+1)
				s.CommitConcat(n, drop, p.Idx-drop+n)
			} else {
				s.TrimOvershoot(s.ActiveLength() - w)
				s.BeginWrite(1)
				s.CommitWrite(1)
			}
			p := s.Position()
			for i := range rows {
				now := p.LeftPadding[i] + p.Offset[i] - s.ActiveLength()
				if p.LeftPadding[i] < 0 || now < evicted[i] {
					t.Fatalf("row %d of %+v: %d columns evicted, before it were %d", i, p, now, evicted[i])
				}
				evicted[i] = now
			}
			if p.Rotated && (p.Idx < 1 || p.Idx > w) || !p.Rotated && p.Total < w && p.Idx != p.Total {
				t.Fatalf("position %+v", p)
			}
		}
	})
}
