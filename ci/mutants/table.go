package main

// mutants are the planted bugs.
var mutants = []mutant{
	{
		name: "keep ignored in order", file: "reference/rotating.go",
		old: `s.cut(0, c.keep).concatenate(op, s.cut(c.idx, s.columns()))
		if err != nil {
			return storage{}, err
		}
		return sinks.concatenate(op, s.cut(c.keep, c.idx))`,
		new: `s.cut(0, 0).concatenate(op, s.cut(c.idx, s.columns()))
		if err != nil {
			return storage{}, err
		}
		return sinks.concatenate(op, s.cut(0, c.idx))`,
	},
	{
		name: "keep ignored in wrap", file: "reference/rotating.go",
		old: `idx = c.keep
`,
		new: `idx = 0
`,
	},
	{
		name: "keep ignored in trim", file: "reference/rotating.go",
		old: "return s.cut(0, c.keep).concatenate(op, s.cut(t+c.keep, s.columns()))",
		new: "return s.cut(t, s.columns()), nil",
	},
	{
		name: "growth in one step", file: "reference/rotating.go",
		old: "size := min(c.Step, c.maxSize-c.offset)",
		new: "size := c.maxSize - c.offset",
	},
	{
		name: "growth of a batch in one step", file: "reference/batch_rotating.go",
		old: "size := min(c.Step, w-total)",
		new: "size := w - total",
	},
	{
		name: "batch trim a no-op", file: "reference/rowstate.go",
		old: `n = min(s.p.Total, n)
`,
		new: `n = 0
`,
	},
	{
		name: "extend without its crop", file: "reference/batch_kv.go",
		old: `s = s.cut(0, right)
`,
		new: "",
	},
	{
		name: "extend of two empty batches joins nothing", file: "reference/batch_rotating.go",
		old: `a, b := c.rows, other.rows
`,
		new: `if c.store.none() && other.store.none() {
		return nil
	}
	a, b := c.rows, other.rows
`,
	},
	{
		name: "spare columns not cut before a block", file: "reference/batch_rotating.go",
		old: "held = held.cut(0, state.p.Idx)",
		new: "held = held.cut(0, held.columns())",
	},
	{
		name: "roll to the left", file: "reference/array.go",
		old: "shift := shifts[b%len(shifts)] % s",
		new: "shift := -shifts[b%len(shifts)] % s",
	},
	{
		name: "left padding not lowered on rotation", file: "reference/rowstate.go",
		old: `if s.p.Rotated {
		s.lower(n)
	}`,
		new: "",
	},
	{
		name: "mask rolled one column short", file: "reference/mask.go",
		old: "m = rollMask(m, idx+1)",
		new: "m = rollMask(m, idx)",
	},
	{
		name: "extract without the clamp", file: "reference/batch_rotating.go",
		old: "from := max(0, p.LeftPadding[row])",
		new: "from := p.LeftPadding[row]",
	},
	{
		name: "block before the ring is in order", file: "reference/rotating.go",
		old: `ordered, err := c.temporalOrder(op, c.store)
		if err != nil {
			return ring.KV{}, err
		}
		if ordered`,
		new: `ordered, err := c.store, error(nil)
		if ordered`,
	},
	{
		name: "block drops by the write position", file: "reference/rotating.go",
		old: "c.trimmed(op, ordered.columns()-c.maxSize+1, ordered)",
		new: "c.trimmed(op, c.idx-c.maxSize+1, ordered)",
	},
	{
		name: "block keeps W columns", file: "reference/rotating.go",
		old: "ordered.columns()-c.maxSize+1, ordered)",
		new: "ordered.columns()-c.maxSize, ordered)",
	},
	{
		name: "block keeps W-2 columns", file: "reference/rotating.go",
		old: "ordered.columns()-c.maxSize+1, ordered)",
		new: "ordered.columns()-c.maxSize+2, ordered)",
	},
	{
		name: "block returns W columns at most", file: "reference/rotating.go",
		old: `c.rotated = false
	return s.clone().KV, nil`,
		new: `c.rotated = false
	return s.cut(-c.maxSize, s.columns()).KV, nil`,
	},
	{
		name: "unused columns stay in order", file: "reference/rotating.go",
		old: "return s.cut(0, c.idx), nil",
		new: "return s, nil",
	},
	{
		name: "serial ring wraps one column early", file: "reference/rotating.go",
		old: "if idx == c.maxSize {",
		new: "if idx == c.maxSize-1 {",
	},
	{
		name: "serial overshoot cut one column short", file: "reference/rotating.go",
		old: "if t := s.columns() - c.maxSize; t > 0 {",
		new: "if t := s.columns() - c.maxSize - 1; t > 0 {",
	},
	{
		name: "serial size without the window", file: "reference/rotating.go",
		old: "Size() int { return min(c.offset, c.maxSize) }",
		new: "Size() int { return c.offset }",
	},
	{
		name: "serial ring trimmable when full", file: "reference/rotating.go",
		old: "Trimmable() bool { return c.offset < c.maxSize }",
		new: "Trimmable() bool { return c.offset <= c.maxSize }",
	},
	{
		name: "serial trim unguarded", file: "reference/rotating.go",
		old: `if err := checkTrim(n, c.offset, c.maxSize, c.active()); err != nil {
			return 0, err
		}`,
		new: "",
	},
	{
		name: "serial trim leaves the write position", file: "reference/rotating.go",
		old: `c.offset -= n
	c.idx -= n`,
		new: "c.offset -= n",
	},
	{
		name: "serial trim takes no negative number", file: "reference/rotating.go",
		old: "n = min(c.offset, n)",
		new: "n = max(0, min(c.offset, n))",
	},
	{
		name: "serial trim past the start", file: "reference/rotating.go",
		old: "n = min(c.offset, n)",
		new: "n = min(c.maxSize, n)",
	},
	{
		name: "serial view by the buffer", file: "reference/rotating.go",
		old: `if c.offset < c.store.columns() {
		return c.store.cut(0, c.offset).KV
	}
`,
		new: "",
	},
	{
		name: "ring quantized in either semantics", file: "reference/rotating.go",
		old: "if c.semantics == ring.MLXLM || c.format != (Format{}) {",
		new: "if c.format != (Format{}) {",
	},
	{
		name: "quantized form starts anew", file: "reference/rotating.go",
		old: `out := *c
	out.format = f`,
		new: `out := *c
	out.idx = 0
	out.format = f`,
	},
	{
		name: "one query of a ring without a mask", file: "reference/rotating.go",
		old: "return RingMask(c.position(), n, w, n > 1 || c.short(), ring.Exact), nil",
		new: `if n == 1 {
			return nil, nil
		}
		return RingMask(c.position(), n, w, n > 1 || c.short(), ring.Exact), nil`,
	},
	{
		name: "one query of a ring always masked", file: "reference/rotating.go",
		old: `if window == nil || c.offset < *window || c.maxSize <= *window {
		return nil, nil
	}`,
		new: `if window == nil {
		window = &c.maxSize
	}`,
	},
	{
		name: "one query's window one column wide of it", file: "reference/rotating.go",
		old: "m.Data[j] = j >= m.S-*window",
		new: "m.Data[j] = j >= m.S-*window-1",
	},
	{
		name: "block's mask as wide as the offset", file: "reference/rotating.go",
		old: "return CausalMask(n, min(c.maxSize-1, c.offset), &w, nil), nil",
		new: "return CausalMask(n, c.offset, &w, nil), nil",
	},
	{
		name: "one query's mask not rolled", file: "reference/rotating.go",
		old: "return rollMask(m, idx+1), nil",
		new: "return m, nil",
	},
	{
		name: "window of 0 taken as it stands", file: "reference/rotating.go",
		old: "if window == nil || *window == 0 {",
		new: "if window == nil {",
	},
	{
		name: "window below 1 accepted", file: "reference/rotating.go",
		old: "if *window < 1 {",
		new: "if *window < -1 {",
	},
	{
		name: "window wider than the ring", file: "reference/rotating.go",
		old: "return min(*window, maxSize), nil",
		new: "return *window, nil",
	},
	{
		name: "negative trim accepted", file: "reference/rotating.go",
		old: "case n < 0:",
		new: "case n < -maxSize:",
	},
	{
		name: "full ring trimmed", file: "reference/rotating.go",
		old: "case total >= maxSize:",
		new: "case total > maxSize:",
	},
	{
		name: "trim past the shortest row", file: "reference/rotating.go",
		old: "case n > held:",
		new: "case n > held+1:",
	},
	{
		name: "update of no tokens accepted", file: "reference/rotating.go",
		old: "if semantics == ring.Exact && keys.Columns() == 0 {",
		new: "if semantics == ring.MLXLM && keys.Columns() == 0 {",
	},
	{
		name: "rows of an update unchecked", file: "reference/rotating.go",
		old: "if rows >= 0 && keys.Rows() != rows {",
		new: "if rows >= 0 && keys.Rows() > rows {",
	},
	{
		name: "sinks accepted", file: "reference/rotating.go",
		old: "if keep != 0 {",
		new: "if keep < 0 {",
	},
	{
		name: "ring without a window accepted", file: "reference/rotating.go",
		old: "if maxSize < 1 {",
		new: "if maxSize < 0 {",
	},
	{
		name: "batch ring without a window accepted", file: "reference/batch_rotating.go",
		old: "if maxSize < 1 {",
		new: "if maxSize < 0 {",
	},
	{
		name: "short ring written in place", file: "reference/rotating.go",
		old: "return c.semantics == ring.Exact && c.active() < min(c.offset, c.maxSize)",
		new: "return false",
	},
	{
		name: "short ring taken for a wrapped one", file: "reference/rotating.go",
		old: "wrapped = c.rotated // a short row is not a wrapped one (E10)",
		new: "wrapped = wrapped || c.rotated",
	},
	{
		name: "batch block before the ring is in order", file: "reference/batch_rotating.go",
		old: `held, state = c.temporalOrder()
`,
		new: `held, state = c.store, c.rows
		state.order(held.columns())
`,
	},
	{
		name: "batch order turns the wrong way", file: "reference/storage.go",
		old: "return s.roll(-idx)",
		new: "return s.roll(idx)",
	},
	{
		name: "block drops before it rolls", file: "reference/batch_rotating.go",
		old: `roll, err := state.PrefillRoll()
		if err != nil {
			return ring.KV{}, err
		}
		if roll != nil {`,
		new: `drop := state.evictedByBlock()
		held = held.cut(drop, held.columns()).pad(drop, 0)
		roll, err := state.PrefillRoll()
		if err != nil {
			return ring.KV{}, err
		}
		if roll != nil {`,
	},
	{
		name: "pending rows not rolled by a block", file: "reference/batch_rotating.go",
		old: `if roll != nil {
			if held`,
		new: `if false {
			if held`,
	},
	{
		name: "roll of a block not counted", file: "reference/batch_rotating.go",
		old: `if err := state.rollPadding(roll); err != nil {
				return ring.KV{}, err
			}
		}
		evicted`,
		new: `}
		evicted`,
	},
	{
		name: "one pending column is a decode", file: "reference/batch_rotating.go",
		old: "inPlace := keys.Columns() == 1 && !(c.semantics == ring.Exact && c.rows.Pending())",
		new: "inPlace := keys.Columns() == 1",
	},
	{
		name: "decode while padding is pending", file: "reference/batch_rotating.go",
		old: `if c.rows.Pending() {
		return ring.KV{}, &ring.PendingPaddingError{Op: op}
	}
	s, state, n`,
		new: "s, state, n",
	},
	{
		name: "loaded batch decodes", file: "reference/batch_rotating.go",
		old: `if c.loaded {
		return ring.KV{}, &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
	}
	if c.rows.Pending() {`,
		new: "if c.rows.Pending() {",
	},
	{
		name: "loaded batch finalizes", file: "reference/batch_rotating.go",
		old: `if c.loaded {
		return &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
	}
`,
		new: "",
	},
	{
		name: "announcement does not repair a loaded batch", file: "reference/batch_rotating.go",
		old: `c.loaded = c.loaded && !state.Pending()
`,
		new: "",
	},
	{
		name: "batch growth where none is due", file: "reference/batch_rotating.go",
		old: "(total >= s.columns() && s.columns() < w)",
		new: "(total >= s.columns()-1 && s.columns() < w)",
	},
	{
		name: "batch overshoot cut one column short", file: "reference/batch_rotating.go",
		old: "if t := s.columns() - w; t > 0 {",
		new: "if t := s.columns() - w - 1; t > 0 {",
	},
	{
		name: "batch view by the buffer", file: "reference/batch_rotating.go",
		old: `if total := c.rows.p.Total; total < c.store.columns() {
		return c.store.cut(0, total).KV
	}
`,
		new: "",
	},
	{
		name: "left padding on columns accepted", file: "reference/batch_rotating.go",
		old: "late := pad.LeftPadding != nil && !c.store.none()",
		new: "late := pad.LeftPadding != nil && c.store.none() && c.rows.p.Total > 0",
	},
	{
		name: "finalize of nothing refused", file: "reference/batch_rotating.go",
		old: "if s.none() && c.semantics == ring.MLXLM {",
		new: "if s.none() {",
	},
	{
		name: "finalize of nothing accepted", file: "reference/batch_rotating.go",
		old: "if s.none() && c.semantics == ring.MLXLM {",
		new: "if false {",
	},
	{
		name: "finalize moves no column", file: "reference/batch_rotating.go",
		old: `if s, err = s.rollRows(op, roll); err != nil {
		return err
	}
	if err := state.Finalize()`,
		new: "if err := state.Finalize()",
	},
	{
		name: "batch trim unguarded", file: "reference/batch_rotating.go",
		old: `if err := checkTrim(n, c.rows.p.Total, c.rows.p.MaxSize, c.shortestRow()); err != nil {
			return 0, err
		}`,
		new: "",
	},
	{
		name: "trim while padding is pending", file: "reference/batch_rotating.go",
		old: `if c.rows.Pending() {
			return 0, &ring.PendingPaddingError{Op: "trim"}
		}
`,
		new: "",
	},
	{
		name: "trim heeds the longest row", file: "reference/batch_rotating.go",
		old: "held = min(held, c.rows.Held(i))",
		new: "held = max(held, c.rows.Held(i))",
	},
	{
		name: "mask of a pending column is a decode's", file: "reference/batch_rotating.go",
		old: "n > 1 || (c.semantics == ring.Exact && c.rows.Pending())",
		new: "n > 1",
	},
	{
		name: "mask of a pending column is a block's everywhere", file: "reference/batch_rotating.go",
		old: "n > 1 || (c.semantics == ring.Exact && c.rows.Pending())",
		new: "n > 1 || c.rows.Pending()",
	},
	{
		name: "filter of no rows refused", file: "reference/batch_rotating.go",
		old: "if len(rows) == 0 && c.semantics == ring.MLXLM {",
		new: "if len(rows) == 0 {",
	},
	{
		name: "filter moves no column", file: "reference/batch_rotating.go",
		old: "c.store = c.store.takeRows(rows)",
		new: `c.store = c.store.takeRows(rows[:len(rows):len(rows)]).clone()
		if len(rows) == c.rows.BatchSize() {
			c.store = c.store.takeRows(rows).clone()
		}`,
	},
	{
		name: "filter takes rows in the old order", file: "reference/batch_rotating.go",
		old: "c.store = c.store.takeRows(rows)",
		new: `sorted := append([]int{}, rows...)
		for i := range sorted {
			for j := range i {
				if sorted[j] > sorted[i] {
					sorted[i], sorted[j] = sorted[j], sorted[i]
				}
			}
		}
		c.store = c.store.takeRows(sorted)`,
	},
	{
		name: "extend while padding is pending", file: "reference/batch_rotating.go",
		old: "if c.rows.Pending() || other.rows.Pending() {",
		new: "if false {",
	},
	{
		name: "extend of a pending batch", file: "reference/batch_rotating.go",
		old: "if c.rows.Pending() || other.rows.Pending() {",
		new: "if c.rows.Pending() {",
	},
	{
		name: "extend across windows", file: "reference/batch_rotating.go",
		old: "if a.rows.p.MaxSize != b.rows.p.MaxSize {",
		new: "if false {",
	},
	{
		name: "extend across formats", file: "reference/batch_rotating.go",
		old: `if a.format != b.format {
		return &ring.QuantError{Op: op, GroupSize: b.format.GroupSize, Bits: b.format.Bits}
	}
	return nil`,
		new: "return nil",
	},
	{
		name: "extend asks for one window everywhere", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.Exact {
		if c.rows.Pending() || other`,
		new: `if a, b := c.rows.p.MaxSize, other.rows.p.MaxSize; a != b {
		return &ring.MaxSizeError{Op: op, Got: b, Want: a}
	}
	if c.semantics == ring.Exact {
		if c.rows.Pending() || other`,
	},
	{
		name: "extend of a wrapped ring out of order", file: "reference/batch_rotating.go",
		old: "if a.p.Rotated != b.p.Rotated || a.p.Idx != b.p.Idx {",
		new: "if a.p.Idx != b.p.Idx {",
	},
	{
		name: "extend forgets the padding that it adds", file: "reference/batch_rotating.go",
		old: `b.p.LeftPadding = each(b.p.LeftPadding, lefts[1], add)
`,
		new: `_ = lefts
`,
	},
	{
		name: "extend forgets the larger total", file: "reference/batch_rotating.go",
		old: `a.p.Total = max(a.p.Total, b.p.Total)
`,
		new: "",
	},
	{
		name: "extend reads the size of the other side", file: "reference/batch_kv.go",
		old: "return zeros(p.DType, rows, p.Shape[1], 0, p.Shape[3])",
		new: "return zeros(p.DType, p.Shape[0], p.Shape[1], 0, p.Shape[3])",
	},
	{
		name: "extract while padding is pending", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.Exact && c.rows.Pending() {
		return nil, &ring.PendingPaddingError{Op: op}
	}
`,
		new: "",
	},
	{
		name: "extract refused while pending everywhere", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.Exact && c.rows.Pending() {
		return nil, &ring.PendingPaddingError{Op: op}
	}
`,
		new: `if c.rows.Pending() {
		return nil, &ring.PendingPaddingError{Op: op}
	}
`,
	},
	{
		name: "extract of nothing raises everywhere", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.MLXLM {
			return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
		}
		out.offset`,
		new: `if c.semantics != 0 {
			return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
		}
		out.offset`,
	},
	{
		name: "extract of nothing is empty everywhere", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.MLXLM {
			return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
		}
		out.offset`,
		new: "out.offset",
	},
	{
		name: "extract out of order", file: "reference/batch_rotating.go",
		old: "s, to = s.temporal(p.Idx), p.MaxSize",
		new: "to = p.MaxSize",
	},
	{
		name: "extract brings the spare columns", file: "reference/batch_rotating.go",
		old: "s, to := c.store.takeRows([]int{row}), p.Idx",
		new: "s, to := c.store.takeRows([]int{row}), c.store.columns()",
	},
	{
		name: "extract ignores its limit", file: "reference/batch_rotating.go",
		old: "from = max(from, to-limit)",
		new: "from = max(from, 0)",
	},
	{
		name: "extract takes the oldest of its limit", file: "reference/batch_rotating.go",
		old: "from = max(from, to-limit)",
		new: "to = min(to, from+limit)",
	},
	{
		name: "extract with the ring's offset", file: "reference/batch_rotating.go",
		old: "out.offset, out.idx = p.Offset[row], out.store.columns()",
		new: "out.offset, out.idx = out.store.columns(), out.store.columns()",
	},
	{
		name: "extract without a limit to its limit", file: "reference/batch_rotating.go",
		old: "if limit < 1 {",
		new: "if limit < 0 {",
	},
	{
		name: "merge measures by the offset", file: "reference/batch_rotating.go",
		old: "stores[i], lengths[i], offset[i] = c.store, c.Size(), c.offset",
		new: "stores[i], lengths[i], offset[i] = c.store, c.offset, c.offset",
	},
	{
		name: "merge measures by the write position", file: "reference/batch_rotating.go",
		old: "stores[i], lengths[i], offset[i] = c.store, c.Size(), c.offset",
		new: "stores[i], lengths[i], offset[i] = c.store, c.idx, c.offset",
	},
	{
		name: "merge gives rows the width as offset", file: "reference/batch_rotating.go",
		old: "stores[i], lengths[i], offset[i] = c.store, c.Size(), c.offset",
		new: "stores[i], lengths[i], offset[i] = c.store, c.Size(), c.Size()",
	},
	{
		name: "merge believes a short ring", file: "reference/batch_rotating.go",
		old: `lengths[i] = min(c.active(), c.maxSize)
`,
		new: "",
	},
	{
		name: "merge takes the oldest columns", file: "reference/batch_rotating.go",
		old: "stores[i] = ordered.cut(from, ordered.columns())",
		new: `_ = from
		stores[i] = ordered.cut(0, lengths[i])`,
	},
	{
		name: "merge out of order", file: "reference/batch_rotating.go",
		old: "ordered, err := c.temporalOrder(op, c.store)",
		new: "ordered, err := c.store, error(nil)",
	},
	{
		name: "merge needs columns in every row", file: "reference/batch_rotating.go",
		old: `if c.store.none() {
			continue
		}
		ordered`,
		new: `if c.store.none() {
			return nil, &ring.EmptyError{Op: op}
		}
		ordered`,
	},
	{
		name: "merge across windows", file: "reference/batch_rotating.go",
		old: "if c.maxSize != first.maxSize {",
		new: "if false {",
	},
	{
		name: "merge across formats", file: "reference/batch_rotating.go",
		old: `if c.format != first.format {
			return nil, &ring.QuantError{Op: op, GroupSize: c.format.GroupSize, Bits: c.format.Bits}
		}`,
		new: "",
	},
	{
		name: "merge left-justified", file: "reference/batch_kv.go",
		old: `padding[i] = width - n
`,
		new: `padding[i] = 0 * n
`,
	},
	{
		name: "offsets start at zero", file: "reference/rowstate.go",
		old: `s.p.Offset[i] = -left
`,
		new: `s.p.Offset[i] = 0 * left
`,
	},
	{
		name: "restore keeps what is pending", file: "reference/serving.go",
		old: "c.store, c.rows.p = s.store.clone(), s.position.Clone()",
		new: `ends := c.rows.p.Ends
	c.store, c.rows.p = s.store.clone(), s.position.Clone()
	if c.rows.p.Ends == nil {
		c.rows.p.Ends = ends
	}`,
	},
	{
		name: "restore drops what is pending", file: "reference/serving.go",
		old: "c.store, c.rows.p = s.store.clone(), s.position.Clone()",
		new: `c.store, c.rows.p = s.store.clone(), s.position.Clone()
	c.rows.p.Ends = nil`,
	},
	{
		name: "restore shares the columns", file: "reference/serving.go",
		old: "c.store, c.rows.p = s.store.clone(), s.position.Clone()",
		new: "c.store, c.rows.p = s.store, s.position.Clone()",
	},
	{
		name: "snapshot shares the columns", file: "reference/serving.go",
		old: "return &Snapshot{semantics: c.semantics, step: c.Step, format: c.format, store: c.store.clone(), position: c.rows.Position()}",
		new: "return &Snapshot{semantics: c.semantics, step: c.Step, format: c.format, store: c.store, position: c.rows.Position()}",
	},
	{
		name: "serial snapshot shares the columns", file: "reference/serving.go",
		old: "keep: c.keep, format: c.format, store: c.store.clone()",
		new: "keep: c.keep, format: c.format, store: c.store",
	},
	{
		name: "snapshot of one kind serves the other", file: "reference/serving.go",
		old: `case s.serial != serial:
		return &ring.NotSupportedError{Op: op, Kind: "a snapshot of the other kind of ring"}
`,
		new: "",
	},
	{
		name: "announcement makes no rows", file: "reference/rowstate.go",
		old: "s.BatchSize() == 0 && rows > 0 {",
		new: "s.BatchSize() == 0 && rows > 99 {",
	},
	{
		name: "announcement makes rows everywhere", file: "reference/rowstate.go",
		old: `if s.semantics == ring.Exact {
		if err := s.checkPadding`,
		new: `if s.BatchSize() == 0 {
		next.Offset, next.LeftPadding = make([]int, len(pad.Lengths)), make([]int, len(pad.Lengths))
	}
	if s.semantics == ring.Exact {
		if err := s.checkPadding`,
	},
	{
		name: "left padding does not move the offsets", file: "reference/rowstate.go",
		old: `if next.Offset, err = broadcast(op, next.Offset, pad.LeftPadding, subtract); err != nil {
			return err
		}
	}
	right`,
		new: `}
	right`,
	},
	{
		name: "ends counted before the left padding", file: "reference/rowstate.go",
		old: "broadcast(op, pad.Lengths, next.Offset, add)",
		new: "broadcast(op, pad.Lengths, s.p.Offset, add)",
	},
	{
		name: "ends counted from zero", file: "reference/rowstate.go",
		old: "broadcast(op, pad.Lengths, next.Offset, add)",
		new: "broadcast(op, pad.Lengths, make([]int, len(next.Offset)), add)",
	},
	{
		name: "explicit flag ignored", file: "reference/rowstate.go",
		old: "right = *pad.RightPadded",
		new: "_ = *pad.RightPadded",
	},
	{
		name: "explicit flag heeded everywhere", file: "reference/rowstate.go",
		old: "if s.semantics == ring.Exact && pad.RightPadded != nil {",
		new: "if pad.RightPadded != nil {",
	},
	{
		name: "any right padding makes a ring pending", file: "reference/rowstate.go",
		old: "right = right || n > 0",
		new: "right = right || n >= 0",
	},
	{
		name: "second announcement accepted", file: "reference/rowstate.go",
		old: `if s.Pending() {
		return &ring.PendingPaddingError{Op: op}
	}`,
		new: "",
	},
	{
		name: "second announcement clears the first", file: "reference/rowstate.go",
		old: `right := false
`,
		new: `right := false
	next.Ends = nil
`,
	},
	{
		name: "lists of other lengths accepted", file: "reference/rowstate.go",
		old: "if l.list != nil && len(l.list) != rows {",
		new: "if l.list != nil && len(l.list) > rows {",
	},
	{
		name: "padded widths may differ", file: "reference/rowstate.go",
		old: `got != want {
			return &ring.ShapeError{Op: op, What: "length and`,
		new: `got > want+9 {
			return &ring.ShapeError{Op: op, What: "length and`,
	},
	{
		name: "negative padding accepted", file: "reference/batch_rotating.go",
		old: `if n < 0 {
				return nil, &ring.RangeError{Op: "new", What: "left padding"`,
		new: `if n < -9 {
				return nil, &ring.RangeError{Op: "new", What: "left padding"`,
	},
	{
		name: "roll to the left before the end", file: "reference/rowstate.go",
		old: "return max(0, offset-end)",
		new: "return offset - end",
	},
	{
		name: "roll one column short", file: "reference/rowstate.go",
		old: "return max(0, offset-end)",
		new: "return max(0, offset-end-1)",
	},
	{
		name: "roll not taken off the offsets", file: "reference/rowstate.go",
		old: `offset, err := broadcast("roll", s.p.Offset, roll, subtract)`,
		new: `offset, err := broadcast("roll", s.p.Offset, roll, func(a, _ int) int { return a })`,
	},
	{
		name: "roll not added to the left padding", file: "reference/rowstate.go",
		old: `left, err := broadcast("roll", s.p.LeftPadding, roll, add)`,
		new: `left, err := broadcast("roll", s.p.LeftPadding, roll, func(a, _ int) int { return a })`,
	},
	{
		name: "finalize leaves padding pending", file: "reference/rowstate.go",
		old: `s.p.Ends = nil
	return nil`,
		new: "return nil",
	},
	{
		name: "left padding below zero", file: "reference/rowstate.go",
		old: `left[i] = max(0, left[i])
`,
		new: "",
	},
	{
		name: "left padding clamped everywhere", file: "reference/rowstate.go",
		old: `if s.semantics == ring.Exact {
			left[i] = max(0, left[i])
		}`,
		new: "left[i] = max(0, left[i])",
	},
	{
		name: "total not counted", file: "reference/rowstate.go",
		old: `s.p.Offset = offset
	s.p.Total += n`,
		new: "s.p.Offset = offset",
	},
	{
		name: "offsets not counted", file: "reference/rowstate.go",
		old: `offset[i] = o + n
`,
		new: `offset[i] = o
`,
	},
	{
		name: "growth moves the write position", file: "reference/rowstate.go",
		old: "s.p.Idx = prevTotal }",
		new: "s.p.Idx = prevTotal - 1 }",
	},
	{
		name: "overshoot cut not taken off the padding", file: "reference/rowstate.go",
		old: `s.p.Idx = s.p.MaxSize
		s.lower(t)`,
		new: "s.p.Idx = s.p.MaxSize",
	},
	{
		name: "overshoot cut leaves the write position", file: "reference/rowstate.go",
		old: `s.p.Idx = s.p.MaxSize
		s.lower(t)`,
		new: "s.lower(t)",
	},
	{
		name: "batch ring wraps one column early", file: "reference/rowstate.go",
		old: "if s.p.Idx == s.p.MaxSize {",
		new: "if s.p.Idx == s.p.MaxSize-1 {",
	},
	{
		name: "wrap not noted", file: "reference/rowstate.go",
		old: `s.p.Rotated = true
`,
		new: "",
	},
	{
		name: "write position stands still", file: "reference/rowstate.go",
		old: `s.advance(n)
	s.p.Idx += n`,
		new: "s.advance(n)",
	},
	{
		name: "order leaves the ring rotated", file: "reference/rowstate.go",
		old: `s.p.Idx = length
		s.p.Rotated = false`,
		new: "s.p.Idx = length",
	},
	{
		name: "batch block keeps W columns", file: "reference/rowstate.go",
		old: "return max(0, s.p.Idx-s.p.MaxSize+1)",
		new: "return max(0, s.p.Idx-s.p.MaxSize)",
	},
	{
		name: "batch block keeps W-2 columns", file: "reference/rowstate.go",
		old: "return max(0, s.p.Idx-s.p.MaxSize+1)",
		new: "return max(0, s.p.Idx-s.p.MaxSize+2)",
	},
	{
		name: "block's eviction not taken off the padding", file: "reference/rowstate.go",
		old: `if evicted > 0 {
		s.lower(evicted)
	}`,
		new: "",
	},
	{
		name: "filter forgets the pending ends", file: "reference/rowstate.go",
		old: "if s.semantics == ring.Exact && s.p.Ends != nil {",
		new: "if false {",
	},
	{
		name: "filter heeds the pending ends everywhere", file: "reference/rowstate.go",
		old: "if s.semantics == ring.Exact && s.p.Ends != nil {",
		new: "if s.p.Ends != nil {",
	},
	{
		name: "filter leaves the offsets", file: "reference/rowstate.go",
		old: `s.p.Offset = pick(s.p.Offset, rows)
`,
		new: `s.p.Offset = pick(s.p.Offset, rows)
	for i := range rows {
		s.p.Offset[i] = s.p.Offset[0]
	}
`,
	},
	{
		name: "filter leaves the left padding", file: "reference/rowstate.go",
		old: `s.p.LeftPadding = pick(s.p.LeftPadding, rows)
`,
		new: `s.p.LeftPadding = append([]int{}, s.p.LeftPadding[:len(rows):len(rows)]...)
`,
	},
	{
		name: "batch trim leaves the write position", file: "reference/rowstate.go",
		old: `s.advance(-n)
	s.p.Idx -= n`,
		new: "s.advance(-n)",
	},
	{
		name: "batch trim past the start", file: "reference/rowstate.go",
		old: `n = min(s.p.Total, n)
`,
		new: `n = min(s.p.MaxSize, n)
`,
	},
	{
		name: "merge forgets the offsets", file: "reference/rowstate.go",
		old: `s.p.Offset = append([]int{}, offset...)
	s.p.Idx, s.p.Total`,
		new: "s.p.Idx, s.p.Total",
	},
	{
		name: "merge forgets the total", file: "reference/rowstate.go",
		old: "s.p.Idx, s.p.Total = width, width",
		new: "s.p.Idx = width",
	},
	{
		name: "valid offset counts trailing padding", file: "reference/rowstate.go",
		old: "return min(s.p.Offset[i], s.p.Ends[i])",
		new: "return s.p.Offset[i]",
	},
	{
		name: "valid offset is the end announced", file: "reference/rowstate.go",
		old: "return min(s.p.Offset[i], s.p.Ends[i])",
		new: "return s.p.Ends[i]",
	},
	{
		name: "size of a batch is its total", file: "reference/rowstate.go",
		old: "ValidLength() int { return min(s.p.Total, s.p.MaxSize) }",
		new: "ValidLength() int { return s.p.Total }",
	},
	{
		name: "batch trimmable when full", file: "reference/rowstate.go",
		old: "return s.p.Total < s.p.MaxSize && !",
		new: "return s.p.Total <= s.p.MaxSize && !",
	},
	{
		name: "batch trimmable while pending", file: "reference/rowstate.go",
		old: "!(s.semantics == ring.Exact && s.Pending())",
		new: "!(s.semantics == ring.Exact && s.Pending() && s.p.Rotated)",
	},
	{
		name: "batch not trimmable while pending everywhere", file: "reference/rowstate.go",
		old: "!(s.semantics == ring.Exact && s.Pending())",
		new: "!s.Pending()",
	},
	{
		name: "rollback always shifts", file: "reference/rowstate.go",
		old: "if !preserveColumns && len(p.Offset) == 1 && p.Total < p.MaxSize {",
		new: "if false {",
	},
	{
		name: "rollback trims a full ring", file: "reference/rowstate.go",
		old: "if !preserveColumns && len(p.Offset) == 1 && p.Total < p.MaxSize {",
		new: "if !preserveColumns && len(p.Offset) == 1 {",
	},
	{
		name: "rollback preserves no columns", file: "reference/rowstate.go",
		old: "if !preserveColumns && len(p.Offset) == 1",
		new: "if len(p.Offset) == 1",
	},
	{
		name: "rollback takes what it should keep", file: "reference/rowstate.go",
		old: "return RollbackPlan{Trim: p.Offset[0] - before[0] - keep[0]}",
		new: "return RollbackPlan{Trim: keep[0]}",
	},
	{
		name: "rollback keeps one token more", file: "reference/rowstate.go",
		old: "to.Offset[i] = before[i] + keep[i]",
		new: "to.Offset[i] = min(before[i]+keep[i]+1, p.Offset[i])",
	},
	{
		name: "rollback leaves the left padding", file: "reference/rowstate.go",
		old: `to.LeftPadding[i] += shifts[i]
`,
		new: "",
	},
	{
		name: "rollback shifts every row alike", file: "reference/rowstate.go",
		old: "shifts[i] = p.Offset[i] - to.Offset[i]",
		new: "shifts[i] = p.Offset[0] - to.Offset[0]",
	},
	{
		name: "rollback moves no column", file: "reference/serving.go",
		old: `c.store = s
	c.rows.p = plan.Position`,
		new: `c.rows.p = plan.Position
	_ = s`,
	},
	{
		name: "rollback while padding is pending", file: "reference/serving.go",
		old: `const op = "rollback"
	if c.rows.Pending() {`,
		new: `const op = "rollback"
	if false {`,
	},
	{
		name: "rollback keeps more than was written", file: "reference/serving.go",
		old: "k < 0 || k > high {",
		new: "k < -9 || k > high+9 {",
	},
	{
		name: "rollback of some rows", file: "reference/serving.go",
		old: "if len(l.list) != c.rows.BatchSize() {",
		new: "if len(l.list) > c.rows.BatchSize() {",
	},
	{
		name: "mask sees the next column", file: "reference/mask.go",
		old: "for j := from; j <= offset+q; j++ {",
		new: "for j := from; j <= min(offset+q+1, m.S-1); j++ {",
	},
	{
		name: "mask does not see its own column", file: "reference/mask.go",
		old: "for j := from; j <= offset+q; j++ {",
		new: "for j := from; j < offset+q; j++ {",
	},
	{
		name: "window one column wide of it", file: "reference/mask.go",
		old: "from = max(from, offset+q-*window+1)",
		new: "from = max(from, offset+q-*window)",
	},
	{
		name: "window ignored", file: "reference/mask.go",
		old: `if window != nil {
				from`,
		new: `if false {
				from`,
	},
	{
		name: "mask without left padding", file: "reference/mask.go",
		old: `low = leftPadding[b]
`,
		new: `low = min(0, leftPadding[b])
`,
	},
	{
		name: "mask hides one column of a padded row", file: "reference/mask.go",
		old: "from := max(0, low)",
		new: `from := low
			if low > 0 {
				from++
			}
			from = max(0, from)`,
	},
	{
		name: "no mask for one query of a plain cache", file: "reference/mask.go",
		old: "if window == nil && n == 1 {",
		new: "if n == 1 {",
	},
	{
		name: "a mask for one query of a plain cache", file: "reference/mask.go",
		old: "if window == nil && n == 1 {",
		new: "if window == nil && n == 0 {",
	},
	{
		name: "block's mask from the write position", file: "reference/mask.go",
		old: `if block {
			idx = held
		}`,
		new: "",
	},
	{
		name: "block's mask from the columns in use everywhere", file: "reference/mask.go",
		old: "idx, held := p.Idx, p.Total",
		new: `idx, held := p.Idx, p.Total
	if block {
		idx = activeLength(p)
	}`,
	},
	{
		name: "mask as wide as the window", file: "reference/mask.go",
		old: "o := min(w-1, held)",
		new: "o := min(w, held)",
	},
	{
		name: "mask forgets that a block evicts", file: "reference/mask.go",
		old: `if block {
		evicted++
	}`,
		new: "",
	},
	{
		name: "mask forgets the column that is replaced", file: "reference/mask.go",
		old: `if wrapped {
			low[i]--
		}`,
		new: "",
	},
	{
		name: "mask never turned", file: "reference/mask.go",
		old: "wrapped := !block && (p.Rotated || p.Idx >= w)",
		new: "wrapped := false",
	},
	{
		name: "mask turned only once wrapped", file: "reference/mask.go",
		old: "wrapped := !block && (p.Rotated || p.Idx >= w)",
		new: "wrapped := !block && p.Rotated",
	},
	{
		name: "mask turned for a block", file: "reference/mask.go",
		old: "wrapped := !block && (p.Rotated || p.Idx >= w)",
		new: "wrapped := p.Rotated || p.Idx >= w",
	},
	{
		name: "mask turned by the write position past the end", file: "reference/mask.go",
		old: `if idx >= w {
			idx = 0
		}
`,
		new: "",
	},
	{
		name: "columns in use end at the write position", file: "reference/mask.go",
		old: `if p.Rotated {
		return p.MaxSize
	}`,
		new: "",
	},
	{
		name: "append_decode while padding is pending", file: "reference/serving.go",
		old: `const op = "append_decode"
	if c.rows.Pending() {`,
		new: `const op = "append_decode"
	if c.semantics == 0 {`,
	},
	{
		name: "append_decode of two columns", file: "reference/serving.go",
		old: "if keys.Columns() != 1 {",
		new: "if keys.Columns() > 9 {",
	},
	{
		name: "window of one token written in place", file: "reference/serving.go",
		old: `kv, err := c.updateConcat(op, columns)
	return Read{kv, m, c.format}, err`,
		new: `if keys.Columns() == 1 {
		kv, err := c.updateInPlace(op, columns)
		return Read{kv, m, c.format}, err
	}
	kv, err := c.updateConcat(op, columns)
	return Read{kv, m, c.format}, err`,
	},
	{
		name: "any mask fits a window", file: "reference/serving.go",
		old: "mask.N != keys.Columns() || mask.S != s ||",
		new: "mask.N != keys.Columns() ||",
	},
	{
		name: "mask of fewer rows fits a window", file: "reference/serving.go",
		old: "if mask.B != c.rows.BatchSize() || mask.N",
		new: "if mask.N",
	},
	{
		name: "view of the oldest columns", file: "reference/serving.go",
		old: "return s.cut(max(0, a-p.MaxSize), a).KV, nil",
		new: "return s.cut(0, min(a, p.MaxSize)).KV, nil",
	},
	{
		name: "view of the whole overshoot", file: "reference/serving.go",
		old: "return s.cut(max(0, a-p.MaxSize), a).KV, nil",
		new: "return s.cut(0, a).KV, nil",
	},
	{
		name: "view in ring order", file: "reference/serving.go",
		old: `a := activeLength(p)
	if p.Rotated {
		s = s.temporal(p.Idx)
	}
	return`,
		new: `a := activeLength(p)
	return`,
	},
	{
		name: "view of an empty ring", file: "reference/serving.go",
		old: `if s.none() || activeLength(p) == 0 {
		return ring.KV{}, &ring.EmptyError{Op: "temporal_view"}
	}
`,
		new: "",
	},
	{
		name: "view puts the ring in order", file: "reference/serving.go",
		old: "return temporalView(c.store, c.rows.p)",
		new: `c.store, c.rows = c.temporalOrder()
	return temporalView(c.store, c.rows.p)`,
	},
	{
		name: "projected bytes without the window", file: "reference/serving.go",
		old: "return c.store.nbytes() / columns * min(tokens, c.rows.p.MaxSize)",
		new: "return c.store.nbytes() / columns * tokens",
	},
	{
		name: "projected bytes of all rows", file: "reference/serving.go",
		old: "columns := c.store.rows() * c.store.columns()",
		new: "columns := c.store.columns()",
	},
	{
		name: "merge takes the padding off twice", file: "reference/serving.go",
		old: `row, err := c.Extract(i)
`,
		new: `row, err := c.Extract(i)
				if a := c.rows.ActiveLength(); err == nil && a > c.rows.p.MaxSize {
					row.store = row.store.cut(min(c.rows.p.LeftPadding[i], row.store.columns()), row.store.columns())
					row.idx = row.store.columns()
				}
`,
	},
	{
		name: "merge loses a batch's rows but one", file: "reference/serving.go",
		old: `for i := range c.rows.BatchSize() {
				row`,
		new: `for i := range min(1, c.rows.BatchSize()) {
				row`,
	},
	{
		name: "release moves the ring", file: "reference/serving.go",
		old: "c.positions = append([]int{}, c.rows.p.Offset...) }",
		new: "c.positions = append([]int{}, c.rows.p.Offset...); c.rows.p.Idx = activeLength(c.rows.p) }",
	},
	{
		name: "batches can be merged everywhere", file: "reference/cache.go",
		old: `case *BatchRotatingKVCache:
		if first.semantics == ring.Exact {`,
		new: `case *BatchRotatingKVCache:
		if first.semantics != 0 {`,
	},
	{
		name: "batches cannot be merged", file: "reference/cache.go",
		old: `case *BatchRotatingKVCache:
		if first.semantics == ring.Exact {`,
		new: `case *BatchRotatingKVCache:
		if first.semantics == 0 {`,
	},
	{
		name: "growth of stale columns", file: "reference/storage.go",
		old: "return s.pad(0, n), nil",
		new: `if c := s.columns(); c >= n && n > 0 {
		return s.concatenate(op, s.cut(0, n))
	}
	return s.pad(0, n), nil`,
	},
	{
		name: "rows gathered from the first", file: "reference/array.go",
		old: "copy(out.Data[i*n:(i+1)*n], a.Data[r*n:])",
		new: "copy(out.Data[i*n:(i+1)*n], a.Data[r*0*n:])",
	},
	{
		name: "padding on the wrong side", file: "reference/array.go",
		old: "copy(out.Data[(i*(left+s+right)+left)*cb:], a.Data[i*s*cb:(i+1)*s*cb])",
		new: "copy(out.Data[(i*(left+s+right)+right)*cb:], a.Data[i*s*cb:(i+1)*s*cb])",
	},
	{
		name: "values not rolled", file: "reference/storage.go",
		old: "return s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })",
		new: `out, err := s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })
	if err == nil && len(shifts) == s.rows() {
		out.Values = s.Values
	}
	return out, err`,
	},
	{
		name: "scales not rolled", file: "reference/storage.go",
		old: "return s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })",
		new: `out, err := s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })
	if err == nil && len(out.Keys) == 3 && len(shifts) == s.rows() {
		out.Keys[1] = s.Keys[1]
	}
	return out, err`,
	},
	{
		name: "biases not cut", file: "reference/storage.go",
		old: "return s.each(func(a ring.Array) ring.Array { return cut(a, from, to) })",
		new: `out := s.each(func(a ring.Array) ring.Array { return cut(a, from, to) })
	if len(out.Keys) == 3 {
		out.Keys[2] = cut(s.Keys[2], 0, out.columns())
	}
	return out`,
	},
	{
		name: "scales of rows not gathered", file: "reference/storage.go",
		old: "return s.each(func(a ring.Array) ring.Array { return takeRows(a, rows) })",
		new: `out := s.each(func(a ring.Array) ring.Array { return takeRows(a, rows) })
	if len(out.Keys) == 3 && len(rows) == s.rows() {
		out.Keys[1] = clone(s.Keys[1])
	}
	return out`,
	},
	{
		name: "padding of quantized zeros", file: "reference/batch_kv.go",
		old: `assign(pair[0][p], i, 1, from, to, pair[1][p])
			}
		}
	}
`,
		new: `assign(pair[0][p], i, 1, from, to, pair[1][p])
			}
		}
	}
	if len(out.Keys) == 3 {
		for i := range padding {
			for c := range padding[i] {
				out.Keys[1].Data[(i*out.Keys[1].Shape[1]*width+c)*columnBytes(out.Keys[1])] = 1
			}
		}
	}
`,
	},
	{
		name: "growth of quantized zeros", file: "reference/batch_rotating.go",
		old: "s, err = column.blank(op, size)",
		new: `s, err = column.blank(op, size)
			if err == nil && len(s.Keys) == 3 {
				for i := range s.Keys[1].Data {
					s.Keys[1].Data[i] = 1
				}
			}`,
	},
	{
		name: "old columns quantized again", file: "reference/batch_rotating.go",
		old: `if s, err = held.cut(evicted, held.columns()).concatenate(op, block); err != nil {
			return ring.KV{}, err
		}`,
		new: `held = held.cut(evicted, held.columns())
		if c.format != (Format{}) {
			k, _ := Dequantize(held.Keys, c.format.GroupSize, c.format.Bits)
			v, _ := Dequantize(held.Values, c.format.GroupSize, c.format.Bits)
			if held, err = c.format.encode(k, v); err != nil {
				return ring.KV{}, err
			}
		}
		if s, err = held.concatenate(op, block); err != nil {
			return ring.KV{}, err
		}`,
	},
	{
		name: "step counted in words", file: "reference/batch_rotating.go",
		old: "size := min(c.Step, w-total)",
		new: `size := min(c.Step, w-total)
		if c.format.Bits > 0 {
			size = min(max(1, c.Step*c.format.Bits/8), w-total)
		}`,
	},
	{
		name: "quantized ring of no rows refused", file: "reference/rotating_quantized.go",
		old: "c, err := NewBatchRotatingKVCache(semantics, maxSize, leftPadding)",
		new: `if len(leftPadding) == 0 {
		return nil, &ring.RowsError{Op: "new", What: "left padding", Got: 0, Want: 1}
	}
	c, err := NewBatchRotatingKVCache(semantics, maxSize, leftPadding)`,
	},
	{
		name: "state without what is pending", file: "reference/state.go",
		old: "boolValue(p.Rotated), intsValue(p.Ends), intValue(keep)",
		new: "boolValue(p.Rotated), intsValue(nil), intValue(keep)",
	},
	{
		name: "state always rotated", file: "reference/state.go",
		old: "intValue(p.MaxSize), intValue(p.Total), intValue(p.Idx), boolValue(p.Rotated))",
		new: "intValue(p.MaxSize), intValue(p.Total), intValue(p.Idx), boolValue(true))",
	},
	{
		name: "state without rotation", file: "reference/state.go",
		old: "boolValue(p.Rotated), intsValue(p.Ends)",
		new: "boolValue(false), intsValue(p.Ends)",
	},
	{
		name: "state of a ring cut to its offset", file: "reference/state.go",
		old: `return listValue(planesValue(c.store.Keys), planesValue(c.store.Values),
		intValue(c.offset), intValue(c.keep), intValue(c.maxSize), intValue(c.idx))`,
		new: `s := c.store
	if c.offset < s.columns() {
		s = s.cut(0, c.offset)
	}
	return listValue(planesValue(s.Keys), planesValue(s.Values),
		intValue(c.offset), intValue(c.keep), intValue(c.maxSize), intValue(c.idx))`,
	},
	{
		name: "state of an empty cache raises", file: "reference/state.go",
		old: `func (c *KVCache) state() Value {
`,
		new: `func (c *KVCache) state() Value {
	if c.store.none() {
		return Value{}
	}
`,
	},
	{
		name: "start position not saved", file: "reference/state.go",
		old: "intValue(c.chunkSize), intValue(c.startPosition))",
		new: "intValue(c.chunkSize), intValue(0))",
	},
	{
		name: "classes of a list forgotten", file: "reference/state.go",
		old: "list[i] = listValue(v, textValue(class))",
		new: `list[i] = listValue(v, textValue("KVCache"))
		_ = class`,
	},
	{
		name: "padding of recurrent state forgotten", file: "reference/state.go",
		old: "c = &ArraysCache{slots: r.slots(), leftPadding: r.intsOrNone(), lengths: r.intsOrNone()}",
		new: `c = &ArraysCache{slots: r.slots(), leftPadding: r.intsOrNone(), lengths: r.intsOrNone()}
		c.(*ArraysCache).lengths = []int{1, 1}`,
	},
	{
		name: "loaded batch ring works at once", file: "reference/state.go",
		old: "b := &BatchRotatingKVCache{Step: defaultStep, semantics: ring.MLXLM, store: r.plain(), loaded: true}",
		new: "b := &BatchRotatingKVCache{Step: defaultStep, semantics: ring.MLXLM, store: r.plain()}",
	},
	{
		name: "loaded batch works at once", file: "reference/state.go",
		old: "leftPadding: r.ints(), idx: r.int(), loaded: true}",
		new: "leftPadding: r.ints(), idx: r.int()}",
	},
	{
		name: "plain batch filter keeps the shared padding", file: "reference/batch_kv.go",
		old: "if shared > 0 {",
		new: "if shared > 99 {",
	},
	{
		name: "plain batch filter spares an empty cache", file: "reference/batch_kv.go",
		old: "if shared > 0 {",
		new: "if shared > 0 && !c.store.none() {",
	},
	{
		name: "plain batch filter heeds what is pending", file: "reference/batch_kv.go",
		old: `c.leftPadding = pick(c.leftPadding, rows)
`,
		new: `c.leftPadding = pick(c.leftPadding, rows)
	if c.rightPadding != nil {
		c.rightPadding = pick(c.rightPadding, rows)
	}
`,
	},
	{
		name: "plain batch rolls what is in use", file: "reference/batch_kv.go",
		old: "s, err := c.store.rollRows(op, c.rightPadding)",
		new: "s, err := c.store.cut(0, c.idx).rollRows(op, c.rightPadding)",
	},
	{
		name: "plain batch rolls to the right only", file: "reference/batch_kv.go",
		old: "c.rightPadding = append([]int{}, pad.RightPadding...)",
		new: "c.rightPadding = each(pad.RightPadding, 0, func(a, b int) int { return max(a, b) })",
	},
	{
		name: "plain batch finalize keeps the offsets", file: "reference/batch_kv.go",
		old: "offset, err := broadcast(op, c.offset, c.rightPadding, subtract)",
		new: "offset, err := broadcast(op, c.offset, c.rightPadding, func(a, _ int) int { return a })",
	},
	{
		name: "plain batch extract heeds what is pending", file: "reference/batch_kv.go",
		old: "out.offset = out.store.columns()",
		new: `if c.rightPadding != nil {
		out.store = out.store.cut(0, out.store.columns()-c.rightPadding[row])
	}
	out.offset = out.store.columns()`,
	},
	{
		name: "plain batch extract with its padding", file: "reference/batch_kv.go",
		old: "cut(c.leftPadding[row], c.idx)",
		new: "cut(0, c.idx)",
	},
	{
		name: "plain batch trim heeds short rows", file: "reference/batch_kv.go",
		old: `n = min(c.idx, n)
`,
		new: `for _, o := range c.offset {
		n = min(n, o)
	}
	n = min(c.idx, n)
`,
	},
	{
		name: "plain batch extend left-justified", file: "reference/batch_kv.go",
		old: "return s.pad(idx-at, right)",
		new: "return s.pad(0, right+idx-at)",
	},
	{
		name: "plain batch mask without padding", file: "reference/batch_kv.go",
		old: "return CausalMask(n, c.idx, window, c.leftPadding), nil",
		new: "return CausalMask(n, c.idx, window, make([]int, len(c.leftPadding))), nil",
	},
	{
		name: "plain trim takes no negative number", file: "reference/kv.go",
		old: "n = min(c.offset, n)",
		new: "n = max(0, min(c.offset, n))",
	},
	{
		name: "plain buffer never cut before it grows", file: "reference/storage.go",
		old: `if prev%step != 0 {
		s = s.cut(0, prev)
	}`,
		new: "",
	},
	{
		name: "plain growth one step short", file: "reference/storage.go",
		old: "size := (step + n - 1) / step * step",
		new: "size := max(1, n/step) * step",
	},
	{
		name: "chunk cut by the buffer", file: "reference/chunked.go",
		old: `valid := c.offset - c.startPosition
`,
		new: `valid := c.offset - c.startPosition
	if !c.store.none() {
		valid = c.store.columns()
	}
`,
	},
	{
		name: "chunk cut keeps the unused tail", file: "reference/chunked.go",
		old: "c.store = c.store.cut(valid-c.chunkSize, valid)",
		new: "c.store = c.store.cut(valid-c.chunkSize, c.store.columns())",
	},
	{
		name: "chunk cut leaves the start position", file: "reference/chunked.go",
		old: `c.startPosition += valid - c.chunkSize
`,
		new: "",
	},
	{
		name: "chunk one column longer", file: "reference/chunked.go",
		old: "c.store.none() || valid <= c.chunkSize {",
		new: "c.store.none() || valid <= c.chunkSize+1 {",
	},
	{
		name: "concatenating cache cuts what was trimmed", file: "reference/concatenate.go",
		old: "if s, err = c.store.concatenate(op, s); err != nil {",
		new: "if s, err = c.store.cut(0, c.offset).concatenate(op, s); err != nil {",
	},
	{
		name: "list answers its first child's trim", file: "reference/list.go",
		old: "return trimmed[len(trimmed)-1], nil",
		new: "return trimmed[0], nil",
	},
	{
		name: "list merges its first child alone", file: "reference/list.go",
		old: `out.caches = append(out.caches, merged)
	}`,
		new: `out.caches = append(out.caches, merged)
		break
	}`,
	},
	{
		name: "list finalizes no child", file: "reference/list.go",
		old: `return childError("finalize", all(c.caches, func(_ int, child Cache) error { return Finalize(child) }))`,
		new: "return nil",
	},
	{
		name: "list has no extract", file: "reference/list.go",
		old: "one, err := Extract(child, row)",
		new: "one, err := Extract(child, row+1)",
	},
	{
		name: "row of a list is a batch", file: "reference/list.go",
		old: "one, err := Extract(child, row)",
		new: `one, err := Extract(child, row)
		if ring.CodeOf(err) == "not_supported" {
			one, err = child, nil
		}`,
	},
	{
		name: "list has a mask", file: "reference/list.go",
		old: "// Prepare is prepare: see each child's.",
		new: `// Mask is the first child's.
func (c *CacheList) Mask(n int, window *int) (*ring.Mask, error) {
	return c.caches[0].(interface {
		Mask(int, *int) (*ring.Mask, error)
	}).Mask(n, window)
}

// Prepare is prepare: see each child's.`,
	},
	{
		name: "quantized size is its offset", file: "reference/quantized.go",
		old: "func (c *QuantizedKVCache) Size() int { return 0 }",
		new: "func (c *QuantizedKVCache) Size() int { return c.offset }",
	},
	{
		name: "packed columns as wide as they are", file: "reference/quantized.go",
		old: "dim/(32/f.Bits))",
		new: "dim*f.Bits/32)",
	},
	{
		name: "recurrent extend without the empty side", file: "reference/arrays.go",
		old: `if b.IsZero() {
			b = zeroRows(a, rows[1])
		}`,
		new: `if b.IsZero() {
			slots[i] = cloneTensor(a)
			continue
		}`,
	},
	{
		name: "recurrent extend counts rows too late", file: "reference/arrays.go",
		old: `if a.IsZero() {
			a = zeroRows(b, rows[0])
		}`,
		new: `if a.IsZero() {
			a = zeroRows(b, 1)
		}`,
	},
	{
		name: "recurrent lengths ignored", file: "reference/arrays.go",
		old: "return paddingMask(n, c.leftPadding, c.lengths)",
		new: `if c.leftPadding != nil {
		return paddingMask(n, c.leftPadding, nil)
	}
	return paddingMask(n, nil, c.lengths)`,
	},
	{
		name: "recurrent left padding ignored", file: "reference/arrays.go",
		old: "t >= low[b%len(low)] && t < high[b%len(high)]",
		new: "t < high[b%len(high)]",
	},
	{
		name: "recurrent mask where none is due", file: "reference/arrays.go",
		old: `if leftPadding == nil && lengths == nil {
		return nil, nil
	}`,
		new: `if leftPadding == nil && lengths == nil {
		lengths = []int{n}
	}`,
	},
	{
		name: "recurrent lengths stop at zero", file: "reference/arrays.go",
		old: "c.lengths = each(c.lengths, n, subtract)",
		new: "c.lengths = each(c.lengths, n, func(a, b int) int { return max(0, a-b) })",
	},
	{
		name: "recurrent merge of nothing has no rows", file: "reference/arrays.go",
		old: `out.leftPadding = make([]int, len(caches))
`,
		new: "",
	},
	{
		name: "recurrent batch ignores left padding", file: "reference/recurrent.go",
		old: "return paddingMask(n, c.leftPadding, c.lengths)",
		new: `if c.lengths == nil {
		return nil, nil
	}
	return paddingMask(n, nil, c.lengths)`,
	},
	{
		name: "recurrent offsets count padding", file: "reference/recurrent.go",
		old: "offset[i] = c.offset[i] + max(0, min(n, c.lengths[i])-clamp(c.leftPadding[i], n))",
		new: "offset[i] = c.offset[i] + n",
	},
	{
		name: "recurrent offsets count left padding", file: "reference/recurrent.go",
		old: "max(0, min(n, c.lengths[i])-clamp(c.leftPadding[i], n))",
		new: "max(0, min(n, c.lengths[i]))",
	},
	{
		name: "recurrent padding does not count down", file: "reference/recurrent.go",
		old: `c.leftPadding, c.lengths = each(c.leftPadding, n, subtract), each(c.lengths, n, subtract)
`,
		new: "",
	},
	{
		name: "recurrent finalize keeps the padding", file: "reference/recurrent.go",
		old: `func (c *BatchRecurrent) Finalize() error {
	c.leftPadding, c.lengths = nil, nil
`,
		new: `func (c *BatchRecurrent) Finalize() error {
`,
	},
	{
		name: "recurrent announcement makes no rows", file: "reference/recurrent.go",
		old: "len(c.offset) == 0 && rows > 0 {",
		new: "len(c.offset) == 0 && rows > 99 {",
	},
	{
		name: "recurrent announcement keeps the old one", file: "reference/recurrent.go",
		old: `c.leftPadding, c.lengths = nil, nil
	if !padded`,
		new: "if !padded",
	},
	{
		name: "recurrent bytes of all rows", file: "reference/recurrent.go",
		old: "return tensorBytes(c.slots) / len(c.offset)",
		new: "return tensorBytes(c.slots)",
	},
	{
		name: "recurrent bytes grow", file: "reference/recurrent.go",
		old: `func (c *BatchRecurrent) ProjectedBytes(int) int {
	if len(c.offset) == 0 {
		return 0
	}
	return tensorBytes(c.slots) / len(c.offset)`,
		new: `func (c *BatchRecurrent) ProjectedBytes(n int) int {
	if len(c.offset) == 0 {
		return 0
	}
	return tensorBytes(c.slots) / len(c.offset) * n`,
	},
	{
		name: "recurrent state trimmed", file: "reference/recurrent.go",
		old: `return 0, &ring.NotTrimmableError{Op: "trim"}`,
		new: "return 0, nil",
	},
	{
		name: "recurrent merge drops an absent slot's rows", file: "reference/recurrent.go",
		old: `if t.IsZero() {
				t = zeroRows(like, len(s.offset))
			}`,
		new: `if t.IsZero() {
				continue
			}`,
	},
	{
		name: "recurrent merge forgets the offsets", file: "reference/recurrent.go",
		old: "out.offset = append(out.offset, s.offset...)",
		new: "out.offset = append(out.offset, make([]int, len(s.offset))...)",
	},
	{
		name: "recurrent filter leaves the padding", file: "reference/recurrent.go",
		old: "c.leftPadding, c.lengths = pick(c.leftPadding, rows), pick(c.lengths, rows)",
		new: "c.leftPadding, c.lengths = c.leftPadding[:len(rows)], c.lengths[:len(rows)]",
	},
	{
		name: "recurrent filter leaves the offsets", file: "reference/recurrent.go",
		old: `c.offset = pick(c.offset, rows)
`,
		new: `c.offset = append([]int{}, c.offset...)
`,
	},
	{
		name: "recurrent extract of an empty batch", file: "reference/recurrent.go",
		old: `if empty {
		return nil, &ring.EmptyError{Op: op}
	}
`,
		new: `_ = empty
`,
	},
	{
		name: "recurrent extract with the first offset", file: "reference/recurrent.go",
		old: "offset: []int{c.offset[row]}}, nil",
		new: "offset: []int{c.offset[0]}}, nil",
	},
	{
		name: "recurrent write shares its rows", file: "reference/recurrent.go",
		old: "if rows := t.Rows(); rows != len(c.offset) && len(c.offset) > 0 {",
		new: "if rows := t.Rows(); rows != len(c.offset) && len(c.offset) > 99 {",
	},
}
