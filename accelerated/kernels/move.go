package kernels

import (
	"cmp"
	"slices"

	"example.com/ringcheck/accelerated"
)

func layoutOf(s *accelerated.Store) layout {
	l := layout{Heads: uint32(s.Heads), Columns: uint32(s.Columns)}
	for i, p := range s.Planes {
		l.Plane[i], l.Width[i] = uint64(p.Offset), uint32(p.Width)
	}
	return l
}

// move adds the launches of a move.
func (e *engine) move(store *accelerated.Store, m *accelerated.Move) error {
	if len(m.Sources) != 1 || m.Sources[0].Buffer != store.Buffer || independent(m.Runs) {
		e.moveApart(store, m.Sources, m.Runs)
		return nil
	}
	if closesRanks(m.Runs) {
		e.closeRanks(store, m.Runs)
		return nil
	}
	if withinRows(m.Runs) {
		e.shiftRows(store, m.Runs)
		return nil
	}
	return e.moveThrough(store, m.Runs)
}

// span is some columns of a row.
type span struct{ row, from, to int32 }

func written(r *accelerated.Run) span { return span{r.DstRow, r.To, r.To + r.N} }

func read(r *accelerated.Run) span {
	switch {
	case r.Source < 0:
		return span{row: -1}
	case wraps(r):
		return span{r.SrcRow, r.From, r.From + r.Cycle}
	}
	return span{r.SrcRow, r.From + r.Skip, r.From + r.Skip + r.N}
}

func wraps(r *accelerated.Run) bool { return r.Skip+r.N > r.Cycle }

func (s span) meets(o span) bool { return s.row == o.row && s.from < o.to && o.from < s.to }

// independent reports whether no run writes what another, or itself, reads or
// writes, so that all can be done at once.
func independent(runs []accelerated.Run) bool {
	spans := make([]span, len(runs))
	for i := range runs {
		spans[i] = written(&runs[i])
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.from, b.from)) })
	for i := 1; i < len(spans); i++ {
		if spans[i-1].meets(spans[i]) {
			return false
		}
	}
	for i := range runs {
		r := read(&runs[i])
		// The first that ends behind the beginning of r.
		at, _ := slices.BinarySearchFunc(spans, r, func(s, r span) int {
			return cmp.Or(cmp.Compare(s.row, r.row), cmp.Compare(s.to, r.from+1))
		})
		if at < len(spans) && spans[at].meets(r) {
			return false
		}
	}
	return true
}

// A warp moves a piece. What fits into the cache of a large processor is small:
// it can stay there for the next reader if what it is copied from does not, and
// groups of one warp each end sooner.
const (
	largePiece = 8 << 10
	smallPiece = 16 << 10
	smallMove  = 48 << 20
)

// moveApart adds launches for runs that can be done in any order.
func (e *engine) moveApart(dst *accelerated.Store, sources []*accelerated.Store, runs []accelerated.Run) {
	width, columns := 0, 0
	for _, p := range dst.Planes {
		width += p.Width
	}
	for i := range runs {
		columns += int(runs[i].N)
	}
	piece, group, once := largePiece, groupWarps, uint32(0)
	if width*dst.Heads*columns <= smallMove {
		piece, group, once = smallPiece, 1, 1
	}
	for first := 0; first == 0 || first < len(sources); {
		a := moveArgs{Dst: layoutOf(dst), Piece: uint32(piece), Once: once}
		bindings := [2 + boundSources]Binding{{dst.Buffer, 0}}
		next := first + e.addSources(&a, bindings[2:], sources[first:])
		var table []run
		for i := range runs {
			r := &runs[i]
			source := int(r.Source) - first
			if r.Source == accelerated.Zero && first == 0 {
				source = accelerated.Zero
			} else if source < 0 || source >= next-first {
				continue
			}
			t := runOf(r)
			t.Source, t.First = int32(source), a.Warps
			for _, p := range dst.Planes {
				a.Warps += uint32(dst.Heads * ((int(r.N)*p.Width + piece - 1) / piece))
			}
			table = append(table, t)
		}
		if len(table) > 0 {
			a.Runs = uint32(len(table))
			if copy(a.Run[:], table) < len(table) {
				a.Tabled, bindings[1] = 1, e.stage(bytesOf(table))
			}
			launchGroups(e, "move_columns", a.Warps, group, &a, bindings[:]...)
		}
		first = max(next, first+1)
	}
}

// addSources lets a launch move from the first of some sources, and returns how
// many it is.
func (e *engine) addSources(a *moveArgs, bindings []Binding, sources []*accelerated.Store) int {
	var layouts []layout
	for i, s := range sources {
		l := layoutOf(s)
		at := slices.Index(layouts, l)
		if at < 0 {
			at = len(layouts)
			layouts = append(layouts, l)
		}
		if i == maxSources || at == maxLayouts || e.addresser == nil && i == boundSources {
			return i
		}
		a.Layout[i], a.Plane[at], a.Columns[at] = uint32(at), l.Plane, l.Columns
		switch {
		case s.Buffer == nil: // of a store without columns, from which nothing moves
		case e.addresser != nil:
			a.Base[i] = e.addresser.Address(s.Buffer)
		default:
			bindings[i] = Binding{s.Buffer, 0}
		}
	}
	return len(sources)
}

func runOf(r *accelerated.Run) run {
	return run{
		Source: r.Source, SrcRow: uint32(r.SrcRow), DstRow: uint32(r.DstRow),
		From: uint32(r.From), Cycle: uint32(r.Cycle), Skip: uint32(r.Skip), To: uint32(r.To), N: uint32(r.N),
	}
}

// closesRanks reports whether rows move to lower ones, rising and column for
// column: then each byte of a row has a chain of its own.
func closesRanks(runs []accelerated.Run) bool {
	first := &runs[0]
	for i := range runs {
		r := &runs[i]
		if r.Source < 0 || r.Skip != 0 || r.From != r.To || r.To != first.To || r.N != first.N ||
			i > 0 && r.DstRow <= runs[i-1].DstRow {
			return false
		}
	}
	return true
}

func (e *engine) closeRanks(store *accelerated.Store, runs []accelerated.Run) {
	a := closeArgs{Store: layoutOf(store), From: uint32(runs[0].To), N: uint32(runs[0].N), Pairs: uint32(len(runs))}
	pairs := make([]uint32, 0, 2*len(runs))
	for i := range runs {
		pairs = append(pairs, uint32(runs[i].SrcRow), uint32(runs[i].DstRow))
	}
	var table Binding
	if copy(a.Pair[:], pairs) < len(pairs) {
		a.Tabled, table = 1, e.stage(bytesOf(pairs))
	}
	a.Lanes = uint64(lanes(store)) * uint64(a.N)
	a.Warps = uint32((a.Lanes + Warp - 1) / Warp)
	launch(e, "close_ranks", a.Warps, &a, Binding{store.Buffer, 0}, table)
}

// lanes is how many accesses a column of a row is, in all heads and planes.
func lanes(s *accelerated.Store) int {
	n := 0
	for _, p := range s.Planes {
		n += p.Width / unitOf(p.Width) * s.Heads
	}
	return n
}

// withinRows reports whether all runs stay in their rows, and each is a move by
// some columns or turns a whole cycle.
func withinRows(runs []accelerated.Run) bool {
	for i := range runs {
		r := &runs[i]
		if r.Source >= 0 && (r.SrcRow != r.DstRow || wraps(r) && (r.From != r.To || r.N != r.Cycle)) {
			return false
		}
	}
	return true
}

func (e *engine) shiftRows(store *accelerated.Store, runs []accelerated.Run) {
	table := make([]run, len(runs))
	for i := range runs {
		table[i] = runOf(&runs[i])
	}
	slices.SortStableFunc(table, func(a, b run) int { return cmp.Compare(a.DstRow, b.DstRow) })
	var pairs []uint32 // of each row: its first run, how many
	for i := range table {
		if i == 0 || table[i].DstRow != table[i-1].DstRow {
			pairs = append(pairs, uint32(i), 0)
		}
		pairs[len(pairs)-1]++
	}
	a := shiftArgs{Store: layoutOf(store), Rows: uint32(len(pairs) / 2), Lanes: uint32(lanes(store))}
	var in Binding
	if copy(a.Pair[:], pairs) < len(pairs) || copy(a.Run[:], table) < len(table) {
		a.Tabled, in = 1, e.stage(append(bytesOf(pairs), bytesOf(table)...))
	}
	a.Warps = uint32((uint64(a.Rows)*uint64(a.Lanes) + Warp - 1) / Warp)
	// Warps are few and all of one size: small groups spread them evenly.
	launchGroups(e, "shift_rows", a.Warps, 2, &a, Binding{store.Buffer, 0}, in)
}

// throughAtOnce is how much memory a move in place takes beside the store, or
// that of one run.
const throughAtOnce = 256 << 20

// moveThrough adds launches that do runs in place through memory beside the
// store: as many at once as do not read what others of them write.
func (e *engine) moveThrough(store *accelerated.Store, runs []accelerated.Run) error {
	width := 0
	for _, p := range store.Planes {
		width += p.Width
	}
	limit := throughAtOnce / (width * store.Heads)
	var batches [][]accelerated.Run
	most := 0
	for len(runs) > 0 {
		n, columns := 0, 0
		for n < len(runs) && follows(runs[:n], &runs[n]) && (n == 0 || columns+int(runs[n].N) <= limit) {
			columns += int(runs[n].N)
			n++
		}
		batches, runs, most = append(batches, runs[:n]), runs[n:], max(most, columns)
	}
	through := &accelerated.Store{Rows: 1, Heads: store.Heads, Columns: most}
	size := 0
	for i, p := range store.Planes {
		through.Planes[i] = accelerated.Plane{Offset: size, Width: p.Width}
		size += (p.Width*store.Heads*most + accelerated.Align - 1) / accelerated.Align * accelerated.Align
	}
	var err error
	if through.Buffer, err = e.temp(size); err != nil {
		return err
	}
	for _, batch := range batches {
		var in, out []accelerated.Run
		at := int32(0)
		for _, r := range batch {
			if r.Source == accelerated.Zero {
				out = append(out, r)
				continue
			}
			there, back := r, r
			there.DstRow, there.To = 0, at
			back.SrcRow, back.From, back.Cycle, back.Skip = 0, at, r.N, 0
			in, out = append(in, there), append(out, back)
			at += r.N
		}
		e.moveApart(through, []*accelerated.Store{store}, in)
		e.moveApart(store, []*accelerated.Store{through}, out)
	}
	return nil
}

// follows reports whether r reads and writes nothing that runs write.
func follows(runs []accelerated.Run, r *accelerated.Run) bool {
	for i := range runs {
		if w := written(&runs[i]); w.meets(read(r)) || w.meets(written(r)) {
			return false
		}
	}
	return true
}
