package accelerated

import (
	"fmt"
	"slices"
	"testing"

	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// physical is the columns of one row of a store, by the names of what is in
// them: 0 is zeros, -1 anything.
type physical []int

// apply does the runs that concern one row, one after another.
func apply(p *plan, row int, old physical) physical {
	to := old
	if p.fresh {
		to = make(physical, p.capacity)
		for i := range to {
			to[i] = -1
		}
	}
	for _, r := range p.runs {
		if int(r.DstRow) != row {
			continue
		}
		var taken physical
		for k := range int(r.N) {
			if r.Source == Zero {
				taken = append(taken, 0)
			} else {
				taken = append(taken, old[int(r.From)+(int(r.Skip)+k)%int(r.Cycle)])
			}
		}
		copy(to[r.To:], taken)
	}
	return to
}

// wanted is what an edit says of one row, whose old columns are given.
func wanted(e *edit, row int, old []int) []int {
	out := append(make([]int, e.left), old[:e.sinks]...)
	roll := 0
	if e.roll != nil {
		roll = e.roll[row]
	}
	for k := range e.kept - e.sinks {
		at := (e.skip - roll + k) % e.cycle
		if at < 0 {
			at += e.cycle
		}
		out = append(out, old[e.sinks+at])
	}
	return append(out, make([]int, e.right)...)
}

// TestPlan makes plans for edits of every form, and does them on lists.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(low, high int, label string) int { return rapid.IntRange(low, high).Draw(t, label) }
		l := layout{rows: n(1, 3, "rows"), maxSize: n(1, 12, "window")}
		length := n(1, 20, "length")
		l.base = n(0, 14, "base")
		l.capacity = l.base + length + n(0, 20, "room")

		e := edit{sinks: n(0, 1, "sinks") * n(0, length-1, "sinks")}
		e.cycle = n(1, length-e.sinks, "cycle")
		e.kept = e.sinks + n(0, e.cycle, "kept")
		e.skip = n(0, 2*e.cycle, "skip")
		if e.sinks == 0 && n(0, 1, "rolls") == 1 {
			e.roll = rapid.SliceOfN(rapid.IntRange(0, 2*length), l.rows, l.rows).Draw(t, "roll")
			e.skip = n(0, e.cycle-e.kept, "dropped")
		} else if e.skip%e.cycle+e.kept-e.sinks <= e.cycle {
			e.right = n(0, 3, "right")
		}
		e.n = n(0, 10, "new")
		e.at = e.kept
		e.length = e.kept + e.right + e.n

		old := make([]physical, l.rows)
		for row := range old {
			for c := range l.capacity {
				old[row] = append(old[row], 1000*(row+1)+c)
			}
		}
		var p plan
		p.make(l, &e)

		problem := ""
		if p.at+e.n > p.capacity || p.base+e.length > p.capacity || p.base < 0 || !p.fresh && p.capacity != l.capacity {
			problem = "it goes beyond the store"
		}
		for _, r := range p.runs {
			if !p.fresh && r.Source != Zero && r.SrcRow != r.DstRow || r.N <= 0 || r.Source != Zero && (r.Skip < 0 || r.Skip >= r.Cycle || r.N > r.Cycle) {
				problem = fmt.Sprintf("run %+v", r)
			}
		}
		for row := range old {
			want := wanted(&e, row, slices.Clone(old[row][l.base:]))
			got := apply(&p, row, slices.Clone(old[row]))[p.base:][:len(want)]
			if problem == "" && !slices.Equal(got, want) {
				problem = fmt.Sprintf("row %d is %v, want %v", row, got, want)
			}
		}
		if problem != "" {
			t.Fatalf("%s\nlayout %+v\nedit %+v\nplan %+v", problem, l, e, p)
		}
	})
}

// drive runs writes through positions and plans alone: it returns the columns
// moved for each write, the capacity reached, and whether a plan was over the
// limit that the package states.
type drive struct {
	p        position
	l        layout
	plan     plan
	moved    int
	largest  int
	overfull bool
}

func newDrive(window, step int) *drive {
	r := rules{semantics: ring.Exact, maxSize: window, step: step}
	return &drive{p: newPosition(r, []int{0}), l: layout{rows: 1, maxSize: window}}
}

func (d *drive) write(n int) {
	var e edit
	if d.p.blocks(n) {
		e = d.p.block(n)
		d.largest = max(d.largest, n)
	} else {
		e = d.p.decode()
	}
	d.plan.make(d.l, &e)
	for _, r := range d.plan.runs {
		if r.Source != Zero {
			d.moved += int(r.N)
		}
	}
	d.l.base, d.l.capacity = d.plan.base, d.plan.capacity
	if 2*d.l.capacity > 3*d.l.maxSize+2*d.largest {
		d.overfull = true
	}
}

// TestHeadroom holds the store to its limit, 1.5 windows and the largest block,
// under random writes.
func TestHeadroom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrive(rapid.IntRange(1, 40).Draw(t, "window"), rapid.IntRange(1, 20).Draw(t, "step"))
		ns := rapid.SliceOfN(rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 90)), 1, 60).Draw(t, "writes")
		for _, n := range ns {
			d.write(n)
		}
		if d.overfull {
			t.Fatalf("window %d, largest block %d: room for %d columns after %v", d.p.maxSize, d.largest, d.l.capacity, ns)
		}
	})
}

// TestRelocations counts the columns that move in a full ring, on average, per
// block: mlx-lm copies a window for each.
func TestRelocations(t *testing.T) {
	for _, c := range []struct {
		window, decodes, block int
		most                   int
	}{
		{1024, 0, 9, 16}, {1024, 0, 512, 512}, {1024, 37, 512, 1023}, {1024, 0, 2048, 1023}, {4096, 0, 2048, 2048},
		{1024, 1, 8, 17}, {1024, 500, 8, 800}, {1024, 1, 1, 4},
	} {
		d := newDrive(c.window, 256)
		d.write(c.window)
		d.write(1)
		d.moved = 0
		const rounds = 200
		for range rounds {
			for range c.decodes {
				d.write(1)
			}
			d.write(c.block)
		}
		t.Logf("window %d, %d decodes and a block of %d: %d columns move", c.window, c.decodes, c.block, d.moved/rounds)
		if d.moved > rounds*c.most {
			t.Errorf("window %d, %d decodes and a block of %d: %d columns move, want at most %d", c.window, c.decodes, c.block, d.moved/rounds, c.most)
		}
		if d.overfull {
			t.Errorf("window %d, block %d: room for %d columns", c.window, c.block, d.l.capacity)
		}
	}
}
