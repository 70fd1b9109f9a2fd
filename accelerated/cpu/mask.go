package cpu

import "example.com/ringcheck/accelerated"

// maskTask builds a mask. An item is one query of one row.
type maskTask struct {
	mask *accelerated.Mask
}

func (t *maskTask) run(d *Device, m *accelerated.Mask) {
	t.mask = m
	d.workers.run(t, m.B*m.N, m.B*m.N*m.S)
	t.mask = nil
}

func (t *maskTask) item(i int, _ *scratch) {
	m := t.mask
	b, q := i/m.N, i%m.N
	row := m.Buffer.(*Buffer).bytes[m.Offset+i*m.S:][:m.S]
	to := max(0, min(m.S, m.Past+q+1))
	from := min(to, max(0, int(m.First[b]), m.Past+q+1-m.Window))
	// In the order that the mask is stored in, ones are one run or two.
	from, to = from+m.Shift, to+m.Shift
	fill(row, min(from, m.S), min(to, m.S))
	if to > m.S {
		over := row[:to-m.S]
		ones(over[max(0, from-m.S):])
	}
}

// fill makes row zeros with ones in [from, to).
func fill(row []byte, from, to int) {
	clear(row[:from])
	ones(row[from:to])
	clear(row[to:])
}

// ones fills row, by doubling: copying is what the machine does best.
func ones(row []byte) {
	n := copy(row, oneBytes[:])
	for n < len(row) {
		n += copy(row[n:], row[:n])
	}
}

var oneBytes = func() (b [256]byte) {
	for i := range b {
		b[i] = 1
	}
	return b
}()
