package draw

import (
	"strconv"
)

// Table is a grid of columns: a cache's buffer, what an operation returned, or
// a mask beside its keys. Its lines all have Columns cells; lines that would
// make it too long to be read are left out, and a gap stands for them.
type Table struct {
	Caption string
	Side    Side
	Columns int
	Write   int    // the column of the next write, Columns for the one after the last; -1 where that says nothing
	Next    string // says of Write what it means
	Lines   []Line
	Notes   []string
}

// Side says whose columns a table shows.
type Side uint8

const (
	Both   Side = iota // wanted, and nothing else came
	Wanted             // beside a table of what came
	Came
)

func (s Side) String() string { return [...]string{"", "wanted", "came"}[s] }

// LineKind says what the cells of a line are.
type LineKind uint8

const (
	OrderLine LineKind = iota // how old a column is, 1 for the oldest
	RowLine                   // tokens of a row
	KeyLine                   // tokens of a row that a mask is over
	QueryLine                 // what a query attends to
	GapLine                   // lines left out; no cells
)

// Line is one line of a table.
type Line struct {
	Kind  LineKind
	Label string
	Cells []Cell
	Tail  string // says the line in words
}

// Cell is one column of a line: a token id, how old a column is, or a bit of a
// mask.
type Cell struct {
	ID    int32
	Class Class
	Mark  Mark
}

// Class says what a cell is.
type Class uint8

const (
	Nothing Class = iota // the line has no such column
	Token                // a token that the row holds
	Padding              // a negative id
	Zeros                // zero bytes among the columns in use
	Stale                // a token that is evicted, taken back, or out of use
	Spare                // a column not yet written
	Unknown              // bytes of no token
	Order                // how old a column is
	Attends
	Hidden
	Extra   // attends and must not
	Missing // must attend and does not
)

// Mark is what is special about a cell; marks add up.
type Mark uint8

const (
	Fresh   Mark = 1 << iota // a token that this operation fed
	Differs                  // from what was wanted, or from what came
	Left                     // part of the row's left padding
	Right                    // right padding that finalize will turn to the left
)

// Text is a cell on a page or in a picture: short, and to be told from others
// by its style too.
func (c Cell) Text() string {
	switch c.Class {
	case Token, Padding, Stale, Order:
		return strconv.Itoa(int(c.ID))
	case Zeros:
		return "0"
	case Unknown:
		return "?"
	case Attends:
		return "●"
	case Extra:
		return "+"
	case Missing:
		return "!"
	}
	return ""
}

// className is the name of a class where style is.
var className = [...]string{
	Nothing: "none", Token: "token", Padding: "pad", Zeros: "zeros", Stale: "stale", Spare: "spare",
	Unknown: "unknown", Order: "order", Attends: "attends", Hidden: "hidden", Extra: "extra", Missing: "missing",
}

// Says is what a cell is, in the words of the legend; "" where its text says
// all.
func (c Cell) Says() string {
	switch c.Class {
	case Padding:
		return "padding"
	case Zeros:
		return "zero bytes"
	case Stale:
		return "evicted or taken back"
	case Spare:
		return "not yet written"
	case Unknown:
		return "bytes of no token"
	case Attends:
		return "attends"
	case Hidden:
		return "hidden"
	case Extra:
		return "attends and must not"
	case Missing:
		return "must attend and does not"
	case Nothing:
		return "no column"
	}
	return ""
}

// Classes are the names of a cell's class and marks where style is.
func (c Cell) Classes() string {
	names := "cell " + className[c.Class]
	for i, name := range [...]string{"fresh", "differs", "left", "right"} {
		if c.Mark&(1<<i) != 0 {
			names += " " + name
		}
	}
	return names
}

// legend is what the legend says of a cell.
func (c Cell) legend() string {
	switch {
	case c.Mark&Differs != 0:
		return "differs"
	case c.Mark&Fresh != 0:
		return "written by this step"
	case c.Class == Token:
		return "token"
	}
	return c.Says()
}

// legendOf returns a cell of each look that occurs in tables.
func legendOf(tables []Table) []Cell {
	var used [Missing + 1]bool
	var marks Mark
	for _, t := range tables {
		for _, l := range t.Lines {
			for _, c := range l.Cells {
				used[c.Class] = true
				if c.Class < Extra { // those say themselves that they differ
					marks |= c.Mark
				}
			}
		}
	}
	var cells []Cell
	for class, is := range used {
		if is && Class(class) != Nothing && Class(class) != Order {
			cells = append(cells, Cell{ID: map[bool]int32{true: -7, false: 7}[Class(class) == Padding], Class: Class(class)})
		}
	}
	for _, m := range []Mark{Fresh, Differs} {
		if marks&m != 0 {
			cells = append(cells, Cell{ID: 7, Class: Token, Mark: m})
		}
	}
	return cells
}

// span is a run of columns or lines, drawn or left out.
type span struct {
	from, to int
	hidden   bool
}

// How much a column or line matters, the least the most. Its neighbours matter
// one less for each step away.
const (
	matters    = 0 // a difference, the write position
	bounds     = 1 // where a region begins or ends
	ends       = 2 // the first and the last
	irregular  = 4 // where the tokens are not one after the other
	immaterial = 1 << 16
)

// elide chooses what of len(cost) columns or lines to show, so that those shown
// and the gaps between them are at most budget, but for at least one.
func elide(cost []int, budget int) []span {
	n := len(cost)
	if n <= budget {
		if n == 0 {
			return nil
		}
		return []span{{0, n, false}}
	}
	near := make([]int, n)
	copy(near, cost)
	for i := 1; i < n; i++ {
		near[i] = min(near[i], near[i-1]+1)
	}
	for i := n - 2; i >= 0; i-- {
		near[i] = min(near[i], near[i+1]+1)
	}
	// Take whole levels of cost, then the rest from the left, fewer until the
	// gaps fit too.
	buckets := make(map[int][]int)
	levels := 0
	for i, c := range near {
		buckets[c] = append(buckets[c], i)
		levels = max(levels, c+1)
	}
	order := make([]int, 0, budget)
	for c := 0; c < levels && len(order) < budget; c++ {
		order = append(order, buckets[c]...)
	}
	for take := min(budget, len(order)); ; take-- {
		shown := make([]bool, n)
		for _, i := range order[:take] {
			shown[i] = true
		}
		if spans := spansOf(shown); sizeOf(spans) <= budget || take <= 1 {
			return spans
		}
	}
}

// spansOf joins what is shown. A gap of one is shown, since it takes no more
// room than its mark.
func spansOf(shown []bool) []span {
	for i := range shown {
		if !shown[i] && (i == 0 || shown[i-1]) && (i+1 == len(shown) || shown[i+1]) {
			shown[i] = true
		}
	}
	var spans []span
	for i, s := range shown {
		if k := len(spans) - 1; k >= 0 && spans[k].hidden == !s {
			spans[k].to = i + 1
		} else {
			spans = append(spans, span{i, i + 1, !s})
		}
	}
	return spans
}

// costs says how much each column of the table matters.
func (t *Table) costs() []int {
	cost := make([]int, t.Columns)
	for i := range cost {
		cost[i] = immaterial
	}
	seed := func(col, c int) {
		if 0 <= col && col < len(cost) {
			cost[col] = min(cost[col], c)
		}
	}
	seed(0, ends)
	seed(t.Columns-1, ends)
	if t.Write >= 0 {
		seed(t.Write-1, matters)
		seed(t.Write, matters)
	}
	const region = Left | Right | Fresh
	for _, l := range t.Lines {
		if l.Kind == OrderLine {
			continue
		}
		for i, c := range l.Cells {
			if c.Mark&Differs != 0 {
				seed(i, matters)
			}
			if i == 0 {
				continue
			}
			switch before := l.Cells[i-1]; {
			case c.Mark&region != before.Mark&region || c.Class != before.Class:
				seed(i-1, bounds)
				seed(i, bounds)
			case i >= 2 && c.ID-before.ID != before.ID-l.Cells[i-2].ID:
				seed(i-1, irregular)
				seed(i, irregular)
			}
		}
	}
	return cost
}

// groups are the tables that are drawn column under column: one alone, or the
// two sides of one.
func groups(tables []Table) [][]Table {
	var out [][]Table
	for i, t := range tables {
		if t.Side == Came && i > 0 && tables[i-1].Side == Wanted {
			out[len(out)-1] = tables[i-1 : i+1]
			continue
		}
		out = append(out, tables[i:i+1])
	}
	return out
}

// groupSpans chooses the columns of a group: for each, what matters most in any
// table.
func groupSpans(group []Table, budget int) []span {
	cost := group[0].costs()
	for _, t := range group[1:] {
		other := t.costs()
		if len(other) > len(cost) {
			cost, other = other, cost
		}
		for i, c := range other {
			cost[i] = min(cost[i], c)
		}
	}
	return elide(cost, max(1, budget))
}

// sizeOf is the number of cells that spans take, a gap taking one.
func sizeOf(spans []span) int {
	n := 0
	for _, s := range spans {
		n += s.size()
	}
	return n
}

// each calls f for every column that is shown, and once for every gap.
func each(spans []span, f func(col int, s span)) {
	for _, s := range spans {
		for i := range s.size() {
			f(s.from+i, s)
		}
	}
}

// position is where a column stands among those shown: its place, or that of
// the gap that it is in; one after the last for the column after all.
func position(spans []span, col int) int {
	at := 0
	for _, s := range spans {
		if col < s.to {
			if !s.hidden {
				at += col - s.from
			}
			return at
		}
		at += s.size()
	}
	return at
}

func (s span) size() int {
	if s.hidden {
		return 1
	}
	return s.to - s.from
}

// at returns the cell of a column; a line may be shorter than its table.
func (l *Line) at(col int) Cell {
	if col < len(l.Cells) {
		return l.Cells[col]
	}
	return Cell{}
}

// run returns the cells of a span; a line may be shorter than its table.
func (l *Line) run(s span) []Cell {
	cells := make([]Cell, 0, s.to-s.from)
	for i := s.from; i < s.to; i++ {
		cells = append(cells, l.at(i))
	}
	return cells
}

// title is a table's caption and whose it is.
func (t *Table) title() string {
	if t.Side == Both {
		return t.Caption
	}
	return t.Caption + ", " + t.Side.String()
}

// summary says what a run of cells is that is not drawn.
func summary(cells []Cell) string {
	n := len(cells)
	first, last := cells[0], cells[n-1]
	same, run := true, n < 2 || cells[1].ID != first.ID
	attends := 0
	for i, c := range cells {
		same = same && c.Class == first.Class
		run = run && (i == 0 || c.ID-cells[i-1].ID == cells[1].ID-first.ID)
		if c.Class == Attends || c.Class == Extra {
			attends++
		}
	}
	switch {
	case first.Class >= Attends:
		if !same {
			return strconv.Itoa(attends) + " of " + strconv.Itoa(n) + " attended"
		}
		return strconv.Itoa(n) + " " + map[bool]string{true: "attended", false: "hidden"}[attends > 0]
	case same && (first.Class == Token || first.Class == Order) && run:
		return first.Text() + " to " + last.Text()
	case same && first.Class == Token:
		return strconv.Itoa(n) + " tokens"
	case same && first.Class != Order:
		return strconv.Itoa(n) + " × " + first.Says()
	}
	return strconv.Itoa(n) + " columns"
}
