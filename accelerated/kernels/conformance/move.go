package conformance

import "example.com/ringcheck/accelerated"

// move adds a move to a work: from other stores, or in place.
func (p *pair) move(s *store, out [2]*accelerated.Work) {
	sources := []*store{s}
	var runs []accelerated.Run
	if p.bool() {
		sources = sources[:0]
		most := 20
		if p.draw(12) == 0 { // more than a launch can move from
			most = 100
		}
		for range p.draw(most) {
			if len(sources) == 0 || p.draw(4) == 0 {
				sources = append(sources, p.like(s))
			} else {
				sources = append(sources, p.again(sources[len(sources)-1]))
			}
		}
		runs = p.apart(s, sources)
	} else {
		runs = [...]func(*store) []accelerated.Run{p.turn, p.shift, p.close, p.anyhow}[p.draw(4)](s)
	}
	if len(runs) == 0 {
		return
	}
	for i := range out {
		m := &accelerated.Move{Runs: runs}
		for _, from := range sources {
			m.Sources = append(m.Sources, from.on(i))
		}
		out[i].Move = m
	}
}

// like is another store of the same shape.
func (p *pair) like(s *store) *store {
	shape := s.Store
	shape.Planes = [accelerated.Planes]accelerated.Plane{}
	return p.store(shape)
}

// again is another store that is laid out the same.
func (p *pair) again(s *store) *store {
	out := &store{Store: s.Store}
	out.buffer = p.upload(p.noise(lay(&out.Store, s.Rows, s.Columns)))
	return out
}

// apart fills disjoint columns.
func (p *pair) apart(s *store, sources []*store) []accelerated.Run {
	var runs []accelerated.Run
	for row := range s.Rows {
		for at := 0; at < s.Columns; {
			n := p.between(1, s.Columns-at)
			r := accelerated.Run{Source: accelerated.Zero, DstRow: int32(row), To: int32(at), N: int32(n)}
			if len(sources) > 0 && p.draw(4) > 0 {
				r.Source = int32(p.draw(len(sources)))
				p.from(&r, sources[r.Source], p.draw(sources[r.Source].Rows))
			}
			if p.draw(4) > 0 {
				runs = append(runs, r)
			}
			at += int(r.N)
		}
	}
	// In any order.
	for i := range runs {
		j := i + p.draw(len(runs)-i)
		runs[i], runs[j] = runs[j], runs[i]
	}
	return runs
}

// from draws what a run reads: of a row, as many columns as it fills, or fewer.
func (p *pair) from(r *accelerated.Run, s *store, row int) {
	cycle := p.between(1, s.Columns)
	r.SrcRow, r.Cycle = int32(row), int32(cycle)
	r.From = int32(p.between(0, s.Columns-cycle))
	r.Skip = int32(p.draw(cycle))
	r.N = min(r.N, int32(cycle))
}

// turn turns the same columns of some rows, each by its own number.
func (p *pair) turn(s *store) []accelerated.Run {
	var runs []accelerated.Run
	cycle := p.between(1, s.Columns)
	from := p.between(0, s.Columns-cycle)
	for row := range s.Rows {
		if p.draw(4) == 0 {
			continue
		}
		r := accelerated.Run{SrcRow: int32(row), DstRow: int32(row), From: int32(from), Cycle: int32(cycle), To: int32(from), N: int32(cycle)}
		r.Skip = int32(p.draw(cycle))
		if p.draw(4) == 0 { // some of it, and elsewhere
			r.N = int32(p.between(1, cycle))
			r.To = int32(p.between(0, s.Columns-int(r.N)))
		}
		runs = append(runs, r)
	}
	return runs
}

// shift moves columns within rows, in runs that may overlap.
func (p *pair) shift(s *store) []accelerated.Run {
	var runs []accelerated.Run
	for row := range s.Rows {
		for range p.draw(4) {
			n := p.between(1, s.Columns)
			r := accelerated.Run{SrcRow: int32(row), DstRow: int32(row), To: int32(p.between(0, s.Columns-n)), N: int32(n)}
			if p.draw(4) == 0 {
				r = accelerated.Run{Source: accelerated.Zero, DstRow: r.DstRow, To: r.To, N: r.N}
			} else {
				r.Cycle = r.N
				r.From = int32(p.between(0, s.Columns-n))
				if p.bool() {
					r.Cycle += int32(p.between(0, s.Columns-n-int(r.From)))
					r.Skip = int32(p.between(0, int(r.Cycle-r.N)))
				}
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// close moves rows to lower ones.
func (p *pair) close(s *store) []accelerated.Run {
	var runs []accelerated.Run
	n := p.between(1, s.Columns)
	from := p.between(0, s.Columns-n)
	to := from
	if p.draw(4) == 0 {
		to = p.between(0, s.Columns-n)
	}
	dst := 0
	for row := range s.Rows {
		if p.draw(3) == 0 {
			continue
		}
		if row != dst {
			runs = append(runs, accelerated.Run{
				SrcRow: int32(row), DstRow: int32(dst), From: int32(from), Cycle: int32(n), To: int32(to), N: int32(n),
			})
		}
		dst++
	}
	return runs
}

// anyhow is all that the contract of a move in place allows.
func (p *pair) anyhow(s *store) []accelerated.Run {
	var runs []accelerated.Run
	for range p.between(1, 6) {
		n := p.between(1, s.Columns)
		r := accelerated.Run{Source: accelerated.Zero, DstRow: int32(p.draw(s.Rows)), N: int32(n)}
		if p.draw(5) > 0 {
			r.Source = 0
			p.from(&r, s, p.between(int(r.DstRow), s.Rows-1))
		}
		r.To = int32(p.between(0, s.Columns-int(r.N)))
		runs = append(runs, r)
	}
	return runs
}
