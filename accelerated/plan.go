package accelerated

// layout says where mlx-lm's columns lie in a store: logical column j is
// physical column base+j, and the store has room for capacity columns. There is
// no store where capacity is 0.
type layout struct {
	rows, capacity int
	base           int
	maxSize        int
}

// plan is what a device has to do for an edit: at most one relocation or roll
// of columns, in place or into a new store, and then one write.
type plan struct {
	fresh    bool // runs read the old store and fill a new one of capacity columns
	capacity int
	base     int
	at       int   // physical column of the write
	runs     []Run // reused from plan to plan
}

// roomFor is the capacity of a store that an edit to length columns moves to:
// the headroom behind a window is what makes most blocks a plain write. With
// length at most W-1 + n it is within 1.5 W + n columns.
func roomFor(length, maxSize int) int { return length + min(length, maxSize/2) }

// make plans e for all rows. What it needs least: a pointer, where the kept
// columns are one run with room behind it; else moving the few columns that
// stand in the way; else all to the front; else all to a new store.
func (p *plan) make(l layout, e *edit) {
	p.runs = p.runs[:0]
	p.fresh, p.capacity = false, l.capacity
	switch {
	case l.capacity == 0:
		p.move(l, e)
	case e.roll != nil:
		p.rollRows(l, e)
	case e.wraps():
		p.unwrap(l, e)
	default:
		p.point(l, e)
	}
	p.at = p.base + e.at
}

// first is the column of the cycle that comes first in row i.
func (e *edit) first(row int) int {
	first := e.skip
	if e.roll != nil {
		first -= e.roll[row]
	}
	if first %= max(e.cycle, 1); first < 0 {
		first += e.cycle
	}
	return first
}

// wraps reports whether what an edit without rolls keeps is two runs.
func (e *edit) wraps() bool { return e.first(0)+e.kept-e.sinks > e.cycle }

// point moves the base alone, and the sinks with it.
func (p *plan) point(l layout, e *edit) {
	first := e.first(0)
	p.base = l.base + first
	if p.base+e.length > l.capacity {
		p.move(l, e)
		return
	}
	if first > 0 {
		p.copySinks(l, e)
	}
	for row := 0; e.right > 0 && row < l.rows; row++ {
		p.zero(row, p.base+e.kept, e.right)
	}
}

// unwrap puts the two runs of a ring that has wrapped side by side: the newer
// behind the older, or the older before the newer, whichever has room and
// fewer columns.
func (p *plan) unwrap(l layout, e *edit) {
	first := e.first(0)
	older := e.cycle - first
	newer := e.kept - e.sinks - older
	behind := l.base+first+e.length <= l.capacity
	before := e.sinks == 0 && l.base >= older && l.base-older+e.length <= l.capacity
	switch {
	case behind && !(before && older < newer):
		p.base = l.base + first
		for row := range l.rows {
			p.copy(0, row, row, l.base+e.sinks, newer, 0, newer, l.base+e.sinks+e.cycle)
		}
		p.copySinks(l, e)
	case before:
		p.base = l.base - older
		for row := range l.rows {
			p.copy(0, row, row, l.base+first, older, 0, older, p.base)
		}
	default:
		p.move(l, e)
	}
}

// rollRows rolls the rows that shift, and no others, where there is room.
func (p *plan) rollRows(l layout, e *edit) {
	if e.skip+e.kept > e.cycle || l.base+e.skip+e.length > l.capacity {
		p.move(l, e)
		return
	}
	p.base = l.base + e.skip
	for row := range l.rows {
		if e.roll[row]%e.cycle != 0 {
			p.copy(0, row, row, l.base, e.cycle, e.first(row), e.kept, p.base)
		}
	}
}

// move moves everything: to the front, or to a new store where this one has no
// room, or would have none for the next block.
func (p *plan) move(l layout, e *edit) {
	p.base = 0
	if room := roomFor(e.length, l.maxSize); l.capacity < room {
		p.fresh, p.capacity = true, room
	}
	for row := range l.rows {
		p.place(0, row, row, l.base, e)
	}
}

// place makes the whole of row to, from column 0 on, of a row of a source
// whose columns begin at base.
func (p *plan) place(source, row, to, base int, e *edit) {
	p.zero(to, 0, e.left)
	p.copy(source, row, to, base, e.sinks, 0, e.sinks, e.left)
	p.copy(source, row, to, base+e.sinks, e.cycle, e.first(row), e.kept-e.sinks, e.left+e.sinks)
	p.zero(to, e.left+e.kept, e.right)
}

func (p *plan) copySinks(l layout, e *edit) {
	for row := 0; e.sinks > 0 && row < l.rows; row++ {
		p.copy(0, row, row, l.base, e.sinks, 0, e.sinks, p.base)
	}
}

func (p *plan) copy(source, row, toRow, from, cycle, skip, n, to int) {
	if n > 0 {
		p.runs = append(p.runs, Run{
			Source: int32(source), SrcRow: int32(row), DstRow: int32(toRow),
			From: int32(from), Cycle: int32(cycle), Skip: int32(skip), To: int32(to), N: int32(n),
		})
	}
}

func (p *plan) zero(row, to, n int) {
	if n > 0 {
		p.runs = append(p.runs, Run{Source: Zero, DstRow: int32(row), To: int32(to), N: int32(n)})
	}
}
