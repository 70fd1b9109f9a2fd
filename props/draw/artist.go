package draw

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/props"
)

const (
	maxRows    = 12 // rows of a batch that are drawn
	maxQueries = 12 // queries of a row that are drawn
	maxSources = 6  // caches that are drawn beside what is made of them
)

// artist draws the steps of a case, in order.
type artist struct {
	in     *Input
	tokens *props.Tokens
	model  *models.Model // says which tokens a row holds
	rings  map[string]buffer
	lost   []bool // by step: an operation that raised has spoiled what it is done to

	compare    bool              // what came is drawn, too
	difference *props.Difference // at the failing step
}

// buffer is what a cache held when it was last seen.
type buffer struct {
	ids   [][]int
	state corpus.State
}

func newArtist(in *Input) *artist {
	c := &in.Case
	return &artist{
		in: in, tokens: props.NewTokens(*c), model: models.New(c.Semantics, c.Shape, c.Quant),
		rings: map[string]buffer{}, lost: props.DropAfterRaises(*c, in.Reference),
	}
}

// observation is what there is to see of an operation, as token ids.
type observation struct {
	corpus.Want
	message     string
	unsupported bool
	attended    int // numbers that attend returned
	there       bool
}

// observe is an answer as an observation.
func (a *artist) observe(steps []corpus.Step, i int) observation {
	if i >= len(steps) {
		return observation{}
	}
	s := &steps[i]
	return observation{
		Want: corpus.Want{
			Returned: a.tokens.IDs(s.Returned), Stored: a.tokens.IDs(s.Stored), State: s.State, Mask: s.Mask,
			Trimmed: s.Trimmed, Offsets: s.Offsets, Bytes: s.Bytes, Error: s.Error,
		},
		message: s.Message, unsupported: s.Unsupported != "", attended: len(s.Attended), there: true,
	}
}

// wanted is what must be observed: what the case wants, and where it is silent
// what the reference answers.
func (a *artist) wanted(i int) observation {
	o := a.observe(a.in.Reference, i)
	w := a.in.Case.Ops[i].Want
	if w == nil {
		return o
	}
	if w.Error != o.Error { // of one that is refused nothing holds that holds of one that is not
		o = observation{Want: corpus.Want{Error: w.Error}, there: true}
	}
	if w.Returned != nil {
		o.Returned = w.Returned
	}
	if w.Stored != nil {
		o.Stored = w.Stored
	}
	if w.Mask != nil {
		o.Mask = w.Mask
	}
	if w.Trimmed != nil {
		o.Trimmed = w.Trimmed
	}
	if w.Offsets != nil {
		o.Offsets = w.Offsets
	}
	if w.Bytes != nil {
		o.Bytes = w.Bytes
	}
	state := slices.Clone(w.State)
	for _, f := range o.State {
		if _, ok := state.Get(f.Name); !ok {
			state = append(state, f)
		}
	}
	slices.SortStableFunc(state, func(x, y corpus.Field) int { return cmp.Compare(x.Name, y.Name) })
	o.State = state
	return o
}

// counts reports whether a field, of a state apart, is compared for its own sake.
func (a *artist) counts(field string) bool {
	switch a.in.Level {
	case props.Layout:
		return true
	case props.Columns:
		return field != "stored"
	}
	return field != "stored" && field != "returned" && field != "mask"
}

// step fills in what is to be seen of operation i.
func (a *artist) step(i int, s *Step) {
	op := &a.in.Case.Ops[i]
	want, got := a.wanted(i), observation{}
	if a.compare {
		got = a.observe(a.in.Answers, i)
	}
	if want.unsupported {
		s.Notes = append(s.Notes, "not implemented by what is drawn")
	}
	if got.unsupported {
		s.Notes = append(s.Notes, "what came: not implemented; the answer ends here")
	}
	if a.compare && !got.there {
		s.Notes = append(s.Notes, "nothing came: the answer has ended before")
	}
	if a.lost != nil && a.lost[i] {
		s.Notes = append(s.Notes, "compared by nobody: an operation before this one raised")
	}
	s.Facts = facts(&want, &got, a.in.Level)
	if d := a.difference; d != nil {
		for k := range s.Facts {
			if "state."+s.Facts[k].Name == d.Field || s.Facts[k].Name == d.Field {
				s.Facts[k].Differs = true
			}
		}
	}
	if op.Verb == corpus.MaskOp {
		s.Tables = a.masks(i, &want, &got)
		a.model.Apply(op)
		return
	}
	s.Tables = a.sources(op)
	a.model.Apply(op)
	name := cmp.Or(op.Out, op.Cache)
	if want.Stored != nil {
		a.rings[name] = buffer{want.Stored, want.State}
	} else if ring, ok := a.rings[name]; ok && name != "" && want.Returned == nil && op.Out == "" {
		s.Tables = append(s.Tables, a.grid(grid{cache: name, what: "unchanged", ids: ring.ids, state: ring.state}))
	}
	if op.Other != "" && want.Error == "" {
		delete(a.rings, op.Other)
	}
	s.Tables = append(s.Tables, a.columns(name, op, &want, &got)...)
	if op.Tokens != nil && (want.Mask != nil || got.Mask != nil) {
		s.Tables = append(s.Tables, a.masks(i, &want, &got)...)
	}
	if d := a.difference; d != nil && (d.Field == "visible tokens" || d.Field == "returned" && !a.counts("returned")) { // follows from masks and columns
		for m := range i {
			if a.writeOf(m) == i {
				w, g := a.wanted(m), a.observe(a.in.Answers, m)
				s.Tables = append(s.Tables, a.masks(m, &w, &g)...)
			}
		}
	}
}

// sources draws the caches that an operation makes another from, as they were.
func (a *artist) sources(op *corpus.Op) []Table {
	var names []string
	switch op.Verb {
	case corpus.Merge:
		names = op.Caches
	case corpus.Extend:
		names = []string{op.Cache, op.Other}
	case corpus.Extract, corpus.ToQuantized:
		names = []string{op.Cache}
	}
	var tables []Table
	for _, name := range names[:min(len(names), maxSources)] {
		if ring, ok := a.rings[name]; ok && len(ring.ids) > 0 && len(ring.ids[0]) > 0 {
			tables = append(tables, a.grid(grid{cache: name, what: "before", ids: ring.ids, state: ring.state}))
		}
	}
	return tables
}

// columns draws what a cache holds and what was returned, which mostly is the
// first columns of what it holds, once or as wanted and as it came.
func (a *artist) columns(name string, op *corpus.Op, want, got *observation) []Table {
	n, within := prefix(want.Returned, want.Stored)
	holds := grid{cache: name, what: "holds", ids: want.Stored, state: want.State, fed: op.Tokens}
	returned := grid{cache: name, what: "returned", ids: want.Returned, fed: op.Tokens}
	if within {
		holds.what = fmt.Sprintf("holds; returned: columns 0 to %d", n-1)
		if n == len(want.Stored[0]) {
			holds.what = "holds and returned"
		}
	}
	other := got.Returned != nil && !equal(want.Returned, got.Returned) // what was returned

	var tables []Table
	switch {
	case want.Stored == nil:
		within = false
	case got.Stored != nil && !equal(want.Stored, got.Stored):
		if m, too := prefix(got.Returned, got.Stored); got.Returned != nil && (!too || m != n) {
			within = false
			holds.what = "holds"
		}
		came := grid{what: holds.what, ids: got.Stored, state: got.State}
		if came.state == nil {
			came.state = want.State
		}
		tables = a.sides(holds, "stored", came)
	case other && within: // what it holds is as wanted, or it does not say
		tables = a.sides(holds, "returned", grid{what: "returned", ids: got.Returned})
	default:
		tables = []Table{a.grid(holds)}
	}
	switch {
	case within:
	case other:
		tables = append(tables, a.sides(returned, "returned", grid{what: "returned", ids: got.Returned})...)
	case want.Returned != nil:
		tables = append(tables, a.grid(returned))
	}
	return tables
}

// prefix reports whether ids are the first columns of all, and how many.
func prefix(ids, all [][]int) (n int, ok bool) {
	if len(ids) == 0 || len(ids) != len(all) || len(ids[0]) == 0 {
		return 0, false
	}
	for b := range ids {
		if len(ids[b]) > len(all[b]) || !slices.Equal(ids[b], all[b][:len(ids[b])]) {
			return 0, false
		}
	}
	return len(ids[0]), true
}

func equal(a, b [][]int) bool { return slices.EqualFunc(a, b, slices.Equal[[]int]) }

// sides draws columns as wanted, and what came in their place.
func (a *artist) sides(want grid, field string, got grid) []Table {
	want.side, got.side = Wanted, Came
	got.cache, got.fed = want.cache, want.fed
	want.width = max(columnsOf(want.ids), columnsOf(got.ids))
	got.width = want.width
	want.differs = a.differing(field, want.ids, got.ids)
	got.differs = want.differs
	return []Table{a.grid(want), a.grid(got)}
}

// differing says which cells of two sides to mark: those in whose place the
// other side has another token, where the place counts; and at a difference
// between what can be seen those that only one side has.
func (a *artist) differing(field string, want, got [][]int) func(side Side, row, col int) bool {
	at := func(ids [][]int, row, col int) (int, bool) {
		if row < len(ids) && col < len(ids[row]) {
			return ids[row][col], true
		}
		return 0, false
	}
	if a.counts(field) {
		return func(_ Side, row, col int) bool {
			w, ok := at(want, row, col)
			g, too := at(got, row, col)
			return w != g || ok != too
		}
	}
	if a.difference != nil && a.difference.Field == "returned" { // of another length: no token is sought where it was
		lists := map[Side][][]Word{}
		for row := range max(len(want), len(got)) {
			var w, g []int
			if row < len(want) {
				w = want[row]
			}
			if row < len(got) {
				g = got[row]
			}
			lists[Wanted] = append(lists[Wanted], words(w, g))
			lists[Came] = append(lists[Came], words(g, w))
		}
		return func(side Side, row, col int) bool {
			list := lists[side]
			return row < len(list) && col < len(list[row]) && list[row][col].Differs
		}
	}
	only := map[Side]map[string]bool{Wanted: {}, Came: {}}
	if a.difference != nil {
		for _, d := range diffs(a.difference) {
			for side, list := range map[Side][]Word{Wanted: d.Want, Came: d.Got} {
				for _, w := range list {
					only[side][w.Text] = only[side][w.Text] || w.Differs
				}
			}
		}
	}
	return func(side Side, row, col int) bool {
		ids := want
		if side == Came {
			ids = got
		}
		id, ok := at(ids, row, col)
		return ok && only[side][idText(id)]
	}
}

// grid is what there is to draw of columns.
type grid struct {
	cache, what string
	ids         [][]int
	// state, of the cache that holds them, says which are in use, and in which
	// order; without it all are, from left to right.
	state corpus.State
	fed   [][]int // the tokens that the operation itself brought

	side    Side
	width   int // at least so many columns are drawn, as the other side has them
	differs func(side Side, row, col int) bool
}

// columnsOf is the length of the longest row.
func columnsOf(ids [][]int) int {
	n := 0
	for _, row := range ids {
		n = max(n, len(row))
	}
	return n
}

// grid lays g out as a table.
func (a *artist) grid(g grid) Table {
	columns := columnsOf(g.ids)
	info, known := a.model.Info(g.cache)
	r := region{active: columns, idx: -1}
	if g.state != nil {
		r = regionOf(g.state, columns, info.Keep)
	}
	t := Table{Caption: g.cache + " " + g.what, Side: g.side, Columns: max(columns, g.width), Write: r.idx}
	if t.Columns == 0 {
		t.Notes = append(t.Notes, "no columns yet")
		t.Write = -1
		return t
	}
	marked := func(row, col int) bool { return g.differs != nil && g.differs(g.side, row, col) }
	if r.order != nil {
		t.Lines = append(t.Lines, orderLine(r.order, t.Columns))
		t.Notes = append(t.Notes, "wrapped: order 1 is the oldest column")
	}
	if r.idx >= 0 {
		t.Next = r.next(info.MaxSize, columns)
	}

	cost := make([]int, len(g.ids))
	for b := range cost {
		cost[b] = immaterial
		for s := range t.Columns {
			if marked(b, s) {
				cost[b] = matters
			}
		}
	}
	for _, sp := range elide(cost, maxRows) {
		if sp.hidden {
			t.Lines = append(t.Lines, gap(sp, "rows"))
			continue
		}
		for b := sp.from; b < sp.to; b++ {
			line := Line{Kind: RowLine, Label: fmt.Sprintf("row %d", b), Cells: make([]Cell, t.Columns)}
			var held, fresh map[int]bool
			if known && !info.Lost && info.Slots == 0 && info.Caches == 0 && b < info.Rows {
				held = set(a.model.Tokens(g.cache, b))
			}
			if b < len(g.fed) {
				fresh = set(g.fed[b])
			}
			for s := range line.Cells {
				c := &line.Cells[s]
				if s < len(g.ids[b]) {
					*c = r.cell(g.ids[b][s], s, held)
					if fresh[g.ids[b][s]] && c.Class == Token {
						c.Mark |= Fresh
					}
				}
				if marked(b, s) {
					c.Mark |= Differs
				}
				switch age := r.age(s); {
				case age < 0:
				case b < len(r.left) && age < r.left[b]:
					c.Mark |= Left
				case b < len(r.right) && age >= r.active-r.right[b]:
					c.Mark |= Right
				}
			}
			t.Lines = append(t.Lines, line)
		}
	}
	return t
}

func set(ids []int) map[int]bool {
	m := make(map[int]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}

func gap(s span, what string) Line {
	return Line{Kind: GapLine, Label: fmt.Sprintf("… %d %s", s.to-s.from, what)}
}

func orderLine(order []int, columns int) Line {
	l := Line{Kind: OrderLine, Label: "order", Cells: make([]Cell, columns)}
	for i, age := range order {
		l.Cells[i] = Cell{ID: int32(age + 1), Class: Order}
	}
	return l
}
