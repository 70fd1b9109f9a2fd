package main

// ofReference are the bugs planted in the reference, by file.
var ofReference = []mutant{
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
		kills: []string{"D-30", "P21", "Q05", "item-095"},
	},
	{
		name: "keep ignored in wrap", file: "reference/rotating.go",
		old: `idx = c.keep
`,
		new: `idx = 0
`,
		kills: []string{"D-30", "M35", "P21", "Q05", "Q07", "item-095"},
	},
	{
		name: "keep ignored in trim", file: "reference/rotating.go",
		old:   "return s.cut(0, c.keep).concatenate(op, s.cut(t+c.keep, s.columns()))",
		new:   "return s.cut(t, s.columns()), nil",
		kills: []string{"D-30", "M35", "P21", "Q05", "item-095"},
	},
	{
		name: "growth in one step", file: "reference/rotating.go",
		old:   "size := min(c.Step, c.maxSize-c.offset)",
		new:   "size := c.maxSize - c.offset",
		blind: "layout: where columns are held",
		kills: []string{"M33-exact", "Q29"},
	},
	{
		name: "growth of a batch in one step", file: "reference/batch_rotating.go",
		old:   "size := min(c.Step, w-total)",
		new:   "size := w - total",
		blind: "layout: where columns are held",
		kills: []string{"item-012", "item-024", "item-047", "item-073", "item-082"},
	},
	{
		name: "batch trim a no-op", file: "reference/rowstate.go",
		old: `n = min(s.p.Total, n)
`,
		new: `n = 0
`,
		kills: []string{"Q12"},
	},
	{
		name: "extend without its crop", file: "reference/batch_kv.go",
		old: `s = s.cut(0, right)
`,
		new:   "",
		kills: []string{"item-083", "item-100"},
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
		kills: []string{"E7"},
	},
	{
		name: "spare columns not cut before a block", file: "reference/batch_rotating.go",
		old:   "held = held.cut(0, state.p.Idx)",
		new:   "held = held.cut(0, held.columns())",
		kills: []string{"D-23", "S-2", "S-2-exact", "item-047", "item-078"},
	},
	{
		name: "roll to the left", file: "reference/array.go",
		old:   "shift := shifts[b%len(shifts)] % s",
		new:   "shift := -shifts[b%len(shifts)] % s",
		kills: []string{"Q20", "item-028", "item-042"},
	},
	{
		name: "left padding not lowered on rotation", file: "reference/rowstate.go",
		old: `if s.p.Rotated {
		s.lower(n)
	}`,
		new:   "",
		kills: []string{"item-040"},
	},
	{
		name: "mask rolled one column short", file: "reference/mask.go",
		old:   "m = rollMask(m, idx+1)",
		new:   "m = rollMask(m, idx)",
		kills: []string{"D-2", "E3", "M05", "item-032", "item-045", "item-071"},
	},
	{
		name: "extract without the clamp", file: "reference/batch_rotating.go",
		old:   "from := max(0, p.LeftPadding[row])",
		new:   "from := p.LeftPadding[row]",
		kills: []string{"D-22", "D-30", "M11", "M35", "O-2"},
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
		kills: []string{"M01"},
	},
	{
		name: "block drops by the write position", file: "reference/rotating.go",
		old:   "c.trimmed(op, ordered.columns()-c.maxSize+1, ordered)",
		new:   "c.trimmed(op, c.idx-c.maxSize+1, ordered)",
		kills: []string{"M04", "Q10", "Q11"},
	},
	{
		name: "block keeps W columns", file: "reference/rotating.go",
		old:   "ordered.columns()-c.maxSize+1, ordered)",
		new:   "ordered.columns()-c.maxSize, ordered)",
		kills: []string{"M02"},
	},
	{
		name: "block keeps W-2 columns", file: "reference/rotating.go",
		old:   "ordered.columns()-c.maxSize+1, ordered)",
		new:   "ordered.columns()-c.maxSize+2, ordered)",
		kills: []string{"P01"},
	},
	{
		name: "block returns W columns at most", file: "reference/rotating.go",
		old: `c.rotated = false
	return s.clone().KV, nil`,
		new: `c.rotated = false
	return s.cut(-c.maxSize, s.columns()).KV, nil`,
		kills: []string{"P22"},
	},
	{
		name: "serial ring wraps one column early", file: "reference/rotating.go",
		old:   "if idx == c.maxSize {",
		new:   "if idx == c.maxSize-1 {",
		kills: []string{"M37", "M37-exact", "P29"},
	},
	{
		name: "serial overshoot cut one column short", file: "reference/rotating.go",
		old:   "if t := s.columns() - c.maxSize; t > 0 {",
		new:   "if t := s.columns() - c.maxSize - 1; t > 0 {",
		kills: []string{"M32", "Q27"},
	},
	{
		name: "serial trim unguarded", file: "reference/rotating.go",
		old: `if err := checkTrim(n, c.offset, c.maxSize, c.active()); err != nil {
			return 0, err
		}`,
		new:   "",
		kills: []string{"M31-exact", "M33-exact", "P10-exact", "P13-exact", "Q09-exact"},
	},
	{
		name: "serial trim leaves the write position", file: "reference/rotating.go",
		old: `c.offset -= n
	c.idx -= n`,
		new:   "c.offset -= n",
		kills: []string{"M31", "P04", "P10"},
	},
	{
		name: "ring quantized in either semantics", file: "reference/rotating.go",
		old:   "if c.semantics == ring.MLXLM || c.format != (Format{}) {",
		new:   "if c.format != (Format{}) {",
		kills: []string{"D-25", "M36"},
	},
	{
		name: "quantized form starts anew", file: "reference/rotating.go",
		old: `out := *c
	out.format = f`,
		new: `out := *c
	out.idx = 0
	out.format = f`,
		kills: []string{"D-25-exact", "M36-exact"},
	},
	{
		name: "one query of a ring without a mask", file: "reference/rotating.go",
		old: "return RingMask(c.position(), n, w, n > 1 || c.short(), ring.Exact), nil",
		new: `if n == 1 {
			return nil, nil
		}
		return RingMask(c.position(), n, w, n > 1 || c.short(), ring.Exact), nil`,
		kills: []string{"D-17-exact", "E3", "item-034"},
	},
	{
		name: "one query's window one column wide of it", file: "reference/rotating.go",
		old:   "m.Data[j] = j >= m.S-*window",
		new:   "m.Data[j] = j >= m.S-*window-1",
		kills: []string{"D-17", "Q24", "item-097"},
	},
	{
		name: "block's mask as wide as the offset", file: "reference/rotating.go",
		old:   "return CausalMask(n, min(c.maxSize-1, c.offset), &w, nil), nil",
		new:   "return CausalMask(n, c.offset, &w, nil), nil",
		kills: []string{"M02", "P01", "P03", "P22", "Q05", "item-097"},
	},
	{
		name: "window of 0 taken as it stands", file: "reference/rotating.go",
		old:   "if window == nil || *window == 0 {",
		new:   "if window == nil {",
		blind: "what mlx-lm makes of a window of 0 is its own (D-18)",
		kills: []string{"D-18", "Q24"},
	},
	{
		name: "window below 1 accepted", file: "reference/rotating.go",
		old:   "if *window < 1 {",
		new:   "if *window < -1 {",
		kills: []string{"D-18-exact", "E3", "Q24-exact", "item-071"},
	},
	{
		name: "window wider than the ring", file: "reference/rotating.go",
		old:   "return min(*window, maxSize), nil",
		new:   "return *window, nil",
		kills: []string{"E3", "item-045"},
	},
	{
		name: "full ring trimmed", file: "reference/rotating.go",
		old:   "case total >= maxSize:",
		new:   "case total > maxSize:",
		kills: []string{"S-4", "item-078"},
	},
	{
		name: "trim past the shortest row", file: "reference/rotating.go",
		old:   "case n > held:",
		new:   "case n > held+1:",
		kills: []string{"E6", "O-5-exact", "Q04-exact", "item-078"},
	},
	{
		name: "update of no tokens accepted", file: "reference/rotating.go",
		old:   "if semantics == ring.Exact && keys.Columns() == 0 {",
		new:   "if semantics == ring.MLXLM && keys.Columns() == 0 {",
		kills: []string{"E6", "M34", "M34-exact"},
	},
	{
		name: "sinks accepted", file: "reference/rotating.go",
		old:   "if keep != 0 {",
		new:   "if keep < 0 {",
		kills: []string{"D-30-exact", "E6", "M35-exact", "Q07-exact"},
	},
	{
		name: "ring without a window accepted", file: "reference/rotating.go",
		old:   "if maxSize < 1 {",
		new:   "if maxSize < 0 {",
		kills: []string{"E9"},
	},
	{
		name: "batch ring without a window accepted", file: "reference/batch_rotating.go",
		old:   "if maxSize < 1 {",
		new:   "if maxSize < 0 {",
		kills: []string{"E9", "item-058"},
	},
	{
		name: "short ring written in place", file: "reference/rotating.go",
		old:   "return c.semantics == ring.Exact && c.active() < min(c.offset, c.maxSize)",
		new:   "return false",
		kills: []string{"E10", "O-3-exact", "P12"},
	},
	{
		name: "short ring taken for a wrapped one", file: "reference/rotating.go",
		old:   "wrapped = c.rotated // a short row is not a wrapped one (E10)",
		new:   "wrapped = wrapped || c.rotated",
		kills: []string{"E10"},
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
		kills: []string{"O-6-exact", "item-031"},
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
		kills: []string{"Q02-exact", "item-009", "item-043"},
	},
	{
		name: "one pending column is a decode", file: "reference/batch_rotating.go",
		old:   "inPlace := keys.Columns() == 1 && !(c.semantics == ring.Exact && c.rows.Pending())",
		new:   "inPlace := keys.Columns() == 1",
		kills: []string{"D-1-exact"},
	},
	{
		name: "one pending column is a block everywhere", file: "reference/batch_rotating.go",
		old: `!(c.semantics == ring.Exact && c.rows.Pending())
	if inPlace`,
		new: `!c.rows.Pending()
	if inPlace`,
		kills: []string{"D-1", "D-5", "O-6", "Q02"},
	},
	{
		name: "loaded batch decodes", file: "reference/batch_rotating.go",
		old: `if c.loaded {
		return ring.KV{}, &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
	}
	if c.rows.Pending() {`,
		new:   "if c.rows.Pending() {",
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"M23"},
	},
	{
		name: "loaded batch finalizes", file: "reference/batch_rotating.go",
		old: `if c.loaded {
		return &ring.RaisesError{Op: op, Why: "a loaded cache has no lengths"}
	}
`,
		new:   "",
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"D-24", "O-4", "Q03"},
	},
	{
		name: "announcement does not repair a loaded batch", file: "reference/batch_rotating.go",
		old: `c.loaded = c.loaded && !state.Pending()
`,
		new:   "",
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"O-4"},
	},
	{
		name: "batch growth where none is due", file: "reference/batch_rotating.go",
		old:   "(total >= s.columns() && s.columns() < w)",
		new:   "(total >= s.columns()-1 && s.columns() < w)",
		kills: []string{"P09", "Q04-exact", "item-012", "item-052", "item-073", "item-082"},
	},
	{
		name: "batch overshoot cut one column short", file: "reference/batch_rotating.go",
		old:   "if t := s.columns() - w; t > 0 {",
		new:   "if t := s.columns() - w - 1; t > 0 {",
		kills: []string{"item-046", "item-074"},
	},
	{
		name: "left padding on columns accepted", file: "reference/batch_rotating.go",
		old:   "late := pad.LeftPadding != nil && !c.store.none()",
		new:   "late := pad.LeftPadding != nil && c.store.none() && c.rows.p.Total > 0",
		kills: []string{"D-8", "D-8-exact", "E6"},
	},
	{
		name: "finalize of nothing refused", file: "reference/batch_rotating.go",
		old:   "if s.none() && c.semantics == ring.MLXLM {",
		new:   "if s.none() {",
		kills: []string{"D-9-exact", "E7", "item-042"},
	},
	{
		name: "finalize of nothing accepted", file: "reference/batch_rotating.go",
		old:   "if s.none() && c.semantics == ring.MLXLM {",
		new:   "if false {",
		kills: []string{"D-9"},
	},
	{
		name: "finalize moves no column", file: "reference/batch_rotating.go",
		old: `if s, err = s.rollRows(op, roll); err != nil {
		return err
	}
	if err := state.Finalize()`,
		new:   "if err := state.Finalize()",
		kills: []string{"item-042"},
	},
	{
		name: "batch trim unguarded", file: "reference/batch_rotating.go",
		old: `if err := checkTrim(n, c.rows.p.Total, c.rows.p.MaxSize, c.shortestRow()); err != nil {
			return 0, err
		}`,
		new:   "",
		kills: []string{"Q10-exact", "Q12-exact"},
	},
	{
		name: "trim while padding is pending", file: "reference/batch_rotating.go",
		old: `if c.rows.Pending() {
			return 0, &ring.PendingPaddingError{Op: "trim"}
		}
`,
		new:   "",
		kills: []string{"D-23-exact", "E5", "S-4"},
	},
	{
		name: "mask of a pending column is a decode's", file: "reference/batch_rotating.go",
		old:   "n > 1 || (c.semantics == ring.Exact && c.rows.Pending())",
		new:   "n > 1",
		kills: []string{"D-2-exact", "item-035", "item-045", "item-071"},
	},
	{
		name: "mask of a pending column is a block's everywhere", file: "reference/batch_rotating.go",
		old:   "n > 1 || (c.semantics == ring.Exact && c.rows.Pending())",
		new:   "n > 1 || c.rows.Pending()",
		blind: "mlx-lm refuses the write that the mask would be for",
		kills: []string{"D-2"},
	},
	{
		name: "filter of no rows refused", file: "reference/batch_rotating.go",
		old:   "if len(rows) == 0 && c.semantics == ring.MLXLM {",
		new:   "if len(rows) == 0 {",
		kills: []string{"E6", "item-069", "item-070", "item-077"},
	},
	{
		name: "extend of a pending batch", file: "reference/batch_rotating.go",
		old:   "if c.rows.Pending() || other.rows.Pending() {",
		new:   "if c.rows.Pending() {",
		kills: []string{"E5"},
	},
	{
		name: "extend across windows", file: "reference/batch_rotating.go",
		old:   "if a.rows.p.MaxSize != b.rows.p.MaxSize {",
		new:   "if false {",
		kills: []string{"E6", "Q16-exact"},
	},
	{
		name: "extend of a wrapped ring out of order", file: "reference/batch_rotating.go",
		old:   "if a.p.Rotated != b.p.Rotated || a.p.Idx != b.p.Idx {",
		new:   "if a.p.Idx != b.p.Idx {",
		kills: []string{"item-083"},
	},
	{
		name: "extend forgets the padding that it adds", file: "reference/batch_rotating.go",
		old: `b.p.LeftPadding = each(b.p.LeftPadding, lefts[1], add)
`,
		new: `_ = lefts
`,
		kills: []string{"M09", "item-025", "item-083"},
	},
	{
		name: "extend forgets the larger total", file: "reference/batch_rotating.go",
		old: `a.p.Total = max(a.p.Total, b.p.Total)
`,
		new:   "",
		kills: []string{"Q16"},
	},
	{
		name: "extract while padding is pending", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.Exact && c.rows.Pending() {
		return nil, &ring.PendingPaddingError{Op: op}
	}
`,
		new:   "",
		kills: []string{"E5", "M29-exact"},
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
		blind: "mlx-lm corrupts the cache",
		kills: []string{"M29"},
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
		kills: []string{"D-12-exact", "E7", "E9", "Q13-exact", "item-076", "item-080"},
	},
	{
		name: "extract of nothing is empty everywhere", file: "reference/batch_rotating.go",
		old: `if c.semantics == ring.MLXLM {
			return nil, &ring.RaisesError{Op: op, Why: "the cache is empty"}
		}
		out.offset`,
		new:   "out.offset",
		kills: []string{"D-12", "Q13"},
	},
	{
		name: "extract out of order", file: "reference/batch_rotating.go",
		old:   "s, to = s.temporal(p.Idx), p.MaxSize",
		new:   "to = p.MaxSize",
		kills: []string{"D-22-exact"},
	},
	{
		name: "extract brings the spare columns", file: "reference/batch_rotating.go",
		old:   "s, to := c.store.takeRows([]int{row}), p.Idx",
		new:   "s, to := c.store.takeRows([]int{row}), c.store.columns()",
		kills: []string{"D-16", "D-16-exact", "O-5"},
	},
	{
		name: "extract ignores its limit", file: "reference/batch_rotating.go",
		old:   "from = max(from, to-limit)",
		new:   "from = max(from, 0)",
		kills: []string{"D-11", "E10", "item-030", "item-050", "item-076"},
	},
	{
		name: "extract without a limit to its limit", file: "reference/batch_rotating.go",
		old:   "if limit < 1 {",
		new:   "if limit < 0 {",
		kills: []string{"D-11"},
	},
	{
		name: "merge measures by the offset", file: "reference/batch_rotating.go",
		old:   "stores[i], lengths[i], offset[i] = c.store, c.Size(), c.offset",
		new:   "stores[i], lengths[i], offset[i] = c.store, c.offset, c.offset",
		kills: []string{"M06", "O-3"},
	},
	{
		name: "merge measures by the write position", file: "reference/batch_rotating.go",
		old:   "stores[i], lengths[i], offset[i] = c.store, c.Size(), c.offset",
		new:   "stores[i], lengths[i], offset[i] = c.store, c.idx, c.offset",
		kills: []string{"M07", "P13"},
	},
	{
		name: "merge believes a short ring", file: "reference/batch_rotating.go",
		old: `lengths[i] = min(c.active(), c.maxSize)
`,
		new:   "",
		kills: []string{"E10", "O-3-exact"},
	},
	{
		name: "merge takes the oldest columns", file: "reference/batch_rotating.go",
		old: "stores[i] = ordered.cut(from, ordered.columns())",
		new: `_ = from
		stores[i] = ordered.cut(0, lengths[i])`,
		kills: []string{"M07", "O-3"},
	},
	{
		name: "merge out of order", file: "reference/batch_rotating.go",
		old:   "ordered, err := c.temporalOrder(op, c.store)",
		new:   "ordered, err := c.store, error(nil)",
		kills: []string{"P11"},
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
		kills: []string{"M08", "item-029", "item-054"},
	},
	{
		name: "merge across windows", file: "reference/batch_rotating.go",
		old:   "if want := caches[0].maxSize; c.maxSize != want {",
		new:   "if want := caches[0].maxSize; false {",
		kills: []string{"D-20", "D-20-exact"},
	},
	{
		name: "merge across formats", file: "reference/batch_rotating.go",
		old:   "if c.format != caches[0].format {",
		new:   "if false {",
		kills: []string{"E9", "item-080"},
	},
	{
		name: "offsets start at zero", file: "reference/rowstate.go",
		old: `s.p.Offset[i] = -left
`,
		new: `s.p.Offset[i] = 0 * left
`,
		kills: []string{"item-002"},
	},
	{
		name: "restore keeps what is pending", file: "reference/serving.go",
		old: "c.store, c.rows.p = s.store.clone(), s.position.Clone()",
		new: `ends := c.rows.p.Ends
	c.store, c.rows.p = s.store.clone(), s.position.Clone()
	if c.rows.p.Ends == nil {
		c.rows.p.Ends = ends
	}`,
		kills: []string{"item-004"},
	},
	{
		name: "restore drops what is pending", file: "reference/serving.go",
		old: "c.store, c.rows.p = s.store.clone(), s.position.Clone()",
		new: `c.store, c.rows.p = s.store.clone(), s.position.Clone()
	c.rows.p.Ends = nil`,
		kills: []string{"E5"},
	},
	{
		name: "restore shares the columns", file: "reference/serving.go",
		old:   "c.store, c.rows.p = s.store.clone(), s.position.Clone()",
		new:   "c.store, c.rows.p = s.store, s.position.Clone()",
		kills: []string{"P09"},
	},
	{
		name: "snapshot shares the columns", file: "reference/serving.go",
		old:   "return &Snapshot{semantics: c.semantics, step: c.Step, format: c.format, store: c.store.clone(), position: c.rows.Position()}",
		new:   "return &Snapshot{semantics: c.semantics, step: c.Step, format: c.format, store: c.store, position: c.rows.Position()}",
		kills: []string{"P09", "Q08", "item-068"},
	},
	{
		name: "serial snapshot shares the columns", file: "reference/serving.go",
		old:   "keep: c.keep, format: c.format, store: c.store.clone()",
		new:   "keep: c.keep, format: c.format, store: c.store",
		kills: []string{"P10-exact"},
	},
	{
		name: "snapshot of one kind serves the other", file: "reference/serving.go",
		old: `case s.serial != serial:
		return &ring.NotSupportedError{Op: op, Kind: "a snapshot of the other kind of ring"}
`,
		new:   "",
		kills: []string{"item-039"},
	},
	{
		name: "announcement makes no rows", file: "reference/rowstate.go",
		old:   "s.BatchSize() == 0 && rows > 0 {",
		new:   "s.BatchSize() == 0 && rows > 99 {",
		kills: []string{"D-7-exact", "item-005", "item-058"},
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
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"D-7"},
	},
	{
		name: "ends counted before the left padding", file: "reference/rowstate.go",
		old:   "broadcast(op, pad.Lengths, next.Offset, add)",
		new:   "broadcast(op, pad.Lengths, s.p.Offset, add)",
		kills: []string{"D-7-exact", "item-058", "item-093"},
	},
	{
		name: "explicit flag ignored", file: "reference/rowstate.go",
		old:   "right = *pad.RightPadded",
		new:   "_ = *pad.RightPadded",
		kills: []string{"D-6-exact", "E4", "S-4", "item-045", "item-072"},
	},
	{
		name: "explicit flag heeded everywhere", file: "reference/rowstate.go",
		old:   "if s.semantics == ring.Exact && pad.RightPadded != nil {",
		new:   "if pad.RightPadded != nil {",
		blind: "mlx-lm has no such flag (D-6)",
		kills: []string{"D-6"},
	},
	{
		name: "any right padding makes a ring pending", file: "reference/rowstate.go",
		old:   "right = right || n > 0",
		new:   "right = right || n >= 0",
		kills: []string{"E7", "item-006"},
	},
	{
		name: "second announcement accepted", file: "reference/rowstate.go",
		old: `if s.Pending() {
		return &ring.PendingPaddingError{Op: op}
	}`,
		new:   "",
		kills: []string{"D-5-exact", "E5"},
	},
	{
		name: "second announcement clears the first", file: "reference/rowstate.go",
		old: `right := false
`,
		new: `right := false
	next.Ends = nil
`,
		blind: "mlx-lm corrupts the cache",
		kills: []string{"D-5"},
	},
	{
		name: "padded widths may differ", file: "reference/rowstate.go",
		old: `got != want {
			return &ring.ShapeError{Op: op, What: "length and`,
		new: `got > want+9 {
			return &ring.ShapeError{Op: op, What: "length and`,
		kills: []string{"E9"},
	},
	{
		name: "roll one column short", file: "reference/rowstate.go",
		old:   "return max(0, offset-end)",
		new:   "return max(0, offset-end-1)",
		kills: []string{"item-008"},
	},
	{
		name: "roll not added to the left padding", file: "reference/rowstate.go",
		old:   `left, err := broadcast("roll", s.p.LeftPadding, roll, add)`,
		new:   `left, err := broadcast("roll", s.p.LeftPadding, roll, func(a, _ int) int { return a })`,
		kills: []string{"item-003"},
	},
	{
		name: "finalize leaves padding pending", file: "reference/rowstate.go",
		old: `s.p.Ends = nil
	return nil`,
		new:   "return nil",
		kills: []string{"item-010"},
	},
	{
		name: "left padding below zero", file: "reference/rowstate.go",
		old: `left[i] = max(0, left[i])
`,
		new:   "",
		kills: []string{"E1", "O-2-exact"},
	},
	{
		name: "left padding clamped everywhere", file: "reference/rowstate.go",
		old: `if s.semantics == ring.Exact {
			left[i] = max(0, left[i])
		}`,
		new:   "left[i] = max(0, left[i])",
		kills: []string{"O-2"},
	},
	{
		name: "growth moves the write position", file: "reference/rowstate.go",
		old:   "s.p.Idx = prevTotal }",
		new:   "s.p.Idx = prevTotal - 1 }",
		kills: []string{"item-012"},
	},
	{
		name: "overshoot cut leaves the write position", file: "reference/rowstate.go",
		old: `s.p.Idx = s.p.MaxSize
		s.lower(t)`,
		new:   "s.lower(t)",
		kills: []string{"item-013"},
	},
	{
		name: "wrap not noted", file: "reference/rowstate.go",
		old: `s.p.Rotated = true
`,
		new:   "",
		kills: []string{"item-014"},
	},
	{
		name: "write position stands still", file: "reference/rowstate.go",
		old: `s.advance(n)
	s.p.Idx += n`,
		new:   "s.advance(n)",
		kills: []string{"item-015"},
	},
	{
		name: "block's eviction not taken off the padding", file: "reference/rowstate.go",
		old: `if evicted > 0 {
		s.lower(evicted)
	}`,
		new:   "",
		kills: []string{"item-016"},
	},
	{
		name: "filter forgets the pending ends", file: "reference/rowstate.go",
		old:   "if s.semantics == ring.Exact && s.p.Ends != nil {",
		new:   "if false {",
		kills: []string{"D-4-exact", "E5", "M28-exact", "item-017"},
	},
	{
		name: "filter heeds the pending ends everywhere", file: "reference/rowstate.go",
		old:   "if s.semantics == ring.Exact && s.p.Ends != nil {",
		new:   "if s.p.Ends != nil {",
		blind: "mlx-lm corrupts the cache",
		kills: []string{"D-4", "M28"},
	},
	{
		name: "filter leaves the left padding", file: "reference/rowstate.go",
		old: `s.p.LeftPadding = pick(s.p.LeftPadding, rows)
`,
		new: `s.p.LeftPadding = append([]int{}, s.p.LeftPadding[:len(rows):len(rows)]...)
`,
		kills: []string{"P25"},
	},
	{
		name: "batch trim leaves the write position", file: "reference/rowstate.go",
		old: `s.advance(-n)
	s.p.Idx -= n`,
		new:   "s.advance(-n)",
		kills: []string{"item-018"},
	},
	{
		name: "batch trim past the start", file: "reference/rowstate.go",
		old: `n = min(s.p.Total, n)
`,
		new: `n = min(s.p.MaxSize, n)
`,
		blind: "mlx-lm corrupts the cache",
		kills: []string{"D-23"},
	},
	{
		name: "merge forgets the total", file: "reference/rowstate.go",
		old:   "s.p.Idx, s.p.Total = width, width",
		new:   "s.p.Idx = width",
		kills: []string{"item-019"},
	},
	{
		name: "valid offset counts trailing padding", file: "reference/rowstate.go",
		old:   "return min(s.p.Offset[i], s.p.Ends[i])",
		new:   "return s.p.Offset[i]",
		kills: []string{"item-007", "item-067"},
	},
	{
		name: "valid offset is the end announced", file: "reference/rowstate.go",
		old:   "return min(s.p.Offset[i], s.p.Ends[i])",
		new:   "return s.p.Ends[i]",
		kills: []string{"item-007", "item-041", "item-055"},
	},
	{
		name: "batch trimmable while pending", file: "reference/rowstate.go",
		old:   "!(s.semantics == ring.Exact && s.Pending())",
		new:   "!(s.semantics == ring.Exact && s.Pending() && s.p.Rotated)",
		kills: []string{"D-10-exact", "D-14-exact"},
	},
	{
		name: "batch not trimmable while pending everywhere", file: "reference/rowstate.go",
		old:   "!(s.semantics == ring.Exact && s.Pending())",
		new:   "!s.Pending()",
		kills: []string{"D-10", "D-14"},
	},
	{
		name: "rollback trims a full ring", file: "reference/rowstate.go",
		old:   "if !preserveColumns && len(p.Offset) == 1 && p.Total < p.MaxSize {",
		new:   "if !preserveColumns && len(p.Offset) == 1 {",
		kills: []string{"M32-exact", "P04-exact", "item-024"},
	},
	{
		name: "rollback preserves no columns", file: "reference/rowstate.go",
		old:   "if !preserveColumns && len(p.Offset) == 1",
		new:   "if len(p.Offset) == 1",
		kills: []string{"item-024"},
	},
	{
		name: "rollback takes what it should keep", file: "reference/rowstate.go",
		old:   "return RollbackPlan{Trim: p.Offset[0] - before[0] - keep[0]}",
		new:   "return RollbackPlan{Trim: keep[0]}",
		kills: []string{"item-022"},
	},
	{
		name: "rollback keeps one token more", file: "reference/rowstate.go",
		old:   "to.Offset[i] = before[i] + keep[i]",
		new:   "to.Offset[i] = min(before[i]+keep[i]+1, p.Offset[i])",
		kills: []string{"item-021", "item-023"},
	},
	{
		name: "rollback shifts every row alike", file: "reference/rowstate.go",
		old:   "shifts[i] = p.Offset[i] - to.Offset[i]",
		new:   "shifts[i] = p.Offset[0] - to.Offset[0]",
		kills: []string{"E1", "P17", "S-5", "item-021", "item-023", "item-027"},
	},
	{
		name: "rollback while padding is pending", file: "reference/serving.go",
		old: `const op = "rollback"
	if c.rows.Pending() {`,
		new: `const op = "rollback"
	if false {`,
		kills: []string{"E5"},
	},
	{
		name: "rollback keeps more than was written", file: "reference/serving.go",
		old:   "k < least || k > written {",
		new:   "k < -9 || k > written+9 {",
		kills: []string{"E9", "item-027"},
	},
	{
		name: "rollback of some rows", file: "reference/serving.go",
		old:   "if len(l.list) != c.rows.BatchSize() {",
		new:   "if len(l.list) > c.rows.BatchSize() {",
		kills: []string{"S-5"},
	},
	{
		name: "window one column wide of it", file: "reference/mask.go",
		old:   "from = max(from, offset+q-*window+1)",
		new:   "from = max(from, offset+q-*window)",
		kills: []string{"M03", "P02"},
	},
	{
		name: "mask without left padding", file: "reference/mask.go",
		old: `low = leftPadding[b]
`,
		new: `low = min(0, leftPadding[b])
`,
		kills: []string{"D-19", "D-19-exact", "M40", "O-4-exact", "item-033"},
	},
	{
		name: "a mask for one query of a plain cache", file: "reference/mask.go",
		old:   "if window == nil && n == 1 {",
		new:   "if window == nil && n == 0 {",
		kills: []string{"M17"},
	},
	{
		name: "block's mask from the write position", file: "reference/mask.go",
		old: `if block {
			idx = held
		}`,
		new:   "",
		kills: []string{"E2", "O-1-exact", "P26-exact", "Q01-exact", "item-037", "item-063"},
	},
	{
		name: "block's mask from the columns in use everywhere", file: "reference/mask.go",
		old: "idx, held := p.Idx, p.Total",
		new: `idx, held := p.Idx, p.Total
	if block {
		idx = activeLength(p)
	}`,
		kills: []string{"O-1", "P26", "Q01", "item-037-mlxlm"},
	},
	{
		name: "mask as wide as the window", file: "reference/mask.go",
		old:   "o := min(w-1, held)",
		new:   "o := min(w, held)",
		kills: []string{"item-036"},
	},
	{
		name: "mask forgets the column that is replaced", file: "reference/mask.go",
		old: `if wrapped {
			low[i]--
		}`,
		new:   "",
		kills: []string{"M05", "M32-exact", "P04-exact", "item-032", "item-051", "item-071"},
	},
	{
		name: "append_decode of two columns", file: "reference/serving.go",
		old:   "if keys.Columns() != 1 {",
		new:   "if keys.Columns() > 9 {",
		kills: []string{"item-060"},
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
		kills: []string{"D-3", "E4", "S-2", "S-2-exact", "item-061", "item-072"},
	},
	{
		name: "mask of fewer rows fits a window", file: "reference/serving.go",
		old:   "if mask.B != c.rows.BatchSize() || mask.N",
		new:   "if mask.N",
		kills: []string{"item-062"},
	},
	{
		name: "view of the whole overshoot", file: "reference/serving.go",
		old:   "return s.cut(max(0, a-p.MaxSize), a).KV, nil",
		new:   "return s.cut(0, a).KV, nil",
		kills: []string{"D-15-exact", "item-011", "item-030"},
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
		kills: []string{"item-020", "item-056"},
	},
	{
		name: "view of an empty ring", file: "reference/serving.go",
		old: `if s.none() || activeLength(p) == 0 {
		return ring.KV{}, &ring.EmptyError{Op: "temporal_view"}
	}
`,
		new:   "",
		kills: []string{"E9", "item-038", "item-049", "item-059", "item-075"},
	},
	{
		name: "view puts the ring in order", file: "reference/serving.go",
		old: "return temporalView(c.store, c.rows.p)",
		new: `c.store, c.rows = c.temporalOrder()
	return temporalView(c.store, c.rows.p)`,
		kills: []string{"D-13"},
	},
	{
		name: "projected bytes without the window", file: "reference/serving.go",
		old:   "return c.store.nbytes() / columns * min(tokens, c.rows.p.MaxSize)",
		new:   "return c.store.nbytes() / columns * tokens",
		kills: []string{"item-070"},
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
		kills: []string{"S-1"},
	},
	{
		name: "merge loses a batch's rows but one", file: "reference/serving.go",
		old: `for i := range c.rows.BatchSize() {
				row`,
		new: `for i := range min(1, c.rows.BatchSize()) {
				row`,
		kills: []string{"S-3", "item-094"},
	},
	{
		name: "release moves the ring", file: "reference/serving.go",
		old:   "c.positions = append([]int{}, c.rows.p.Offset...) }",
		new:   "c.positions = append([]int{}, c.rows.p.Offset...); c.rows.p.Idx = activeLength(c.rows.p) }",
		kills: []string{"item-001"},
	},
	{
		name: "batches can be merged everywhere", file: "reference/cache.go",
		old: `case *BatchRotatingKVCache:
		if first.semantics == ring.Exact {`,
		new: `case *BatchRotatingKVCache:
		if first.semantics != 0 {`,
		blind: "mlx-lm cannot (D-15)",
		kills: []string{"D-15"},
	},
	{
		name: "growth of stale columns", file: "reference/storage.go",
		old: "return s.pad(0, n), nil",
		new: `if c := s.columns(); c >= n && n > 0 {
		return s.concatenate(op, s.cut(0, n))
	}
	return s.pad(0, n), nil`,
		blind: "layout: where columns are held",
		kills: []string{"item-048"},
	},
	{
		name: "values not rolled", file: "reference/storage.go",
		old: "return s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })",
		new: `out, err := s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })
	if err == nil && len(shifts) == s.rows() {
		out.Values = s.Values
	}
	return out, err`,
		kills: []string{"item-028", "item-042"},
	},
	{
		name: "scales not rolled", file: "reference/storage.go",
		old: "return s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })",
		new: `out, err := s.eachErr(func(a ring.Array) (ring.Array, error) { return rollRows(op, a, shifts) })
	if err == nil && len(out.Keys) == 3 && len(shifts) == s.rows() {
		out.Keys[1] = s.Keys[1]
	}
	return out, err`,
		kills: []string{"item-027", "item-058", "item-061", "item-067", "item-084"},
	},
	{
		name: "scales of rows not gathered", file: "reference/storage.go",
		old: "return s.each(func(a ring.Array) ring.Array { return takeRows(a, rows) })",
		new: `out := s.each(func(a ring.Array) ring.Array { return takeRows(a, rows) })
	if len(out.Keys) == 3 && len(rows) == s.rows() {
		out.Keys[1] = clone(s.Keys[1])
	}
	return out`,
		kills: []string{"item-026", "item-077"},
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
		kills: []string{"item-057", "item-069", "item-080", "item-081", "item-099"},
	},
	{
		name: "step counted in words", file: "reference/batch_rotating.go",
		old: "size := min(c.Step, w-total)",
		new: `size := min(c.Step, w-total)
		if c.format.Bits > 0 {
			size = min(max(1, c.Step*c.format.Bits/8), w-total)
		}`,
		blind: "layout: where columns are held",
		kills: []string{"item-073", "item-082"},
	},
	{
		name: "state without what is pending", file: "reference/state.go",
		old:   "boolValue(p.Rotated), intsValue(p.Ends), intValue(keep)",
		new:   "boolValue(p.Rotated), intsValue(nil), intValue(keep)",
		kills: []string{"D-24-exact", "E8", "Q03-exact"},
	},
	{
		name: "state without rotation", file: "reference/state.go",
		old:   "boolValue(p.Rotated), intsValue(p.Ends)",
		new:   "boolValue(false), intsValue(p.Ends)",
		kills: []string{"E8"},
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
		blind: "mlx-lm corrupts the cache",
		kills: []string{"Q09", "item-096"},
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
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"Q13"},
	},
	{
		name: "classes of a list forgotten", file: "reference/state.go",
		old: "list[i] = listValue(v, textValue(class))",
		new: `list[i] = listValue(v, textValue("KVCache"))
		_ = class`,
		kills: []string{"M15"},
	},
	{
		name: "loaded batch works at once", file: "reference/state.go",
		old:   "leftPadding: r.ints(), idx: r.int(), loaded: true}",
		new:   "leftPadding: r.ints(), idx: r.int()}",
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"Q03"},
	},
	{
		name: "plain batch filter keeps the shared padding", file: "reference/batch_kv.go",
		old:   "if shared > 0 {",
		new:   "if shared > 99 {",
		kills: []string{"D-29", "M27", "Q18"},
	},
	{
		name: "plain batch filter spares an empty cache", file: "reference/batch_kv.go",
		old:   "if shared > 0 {",
		new:   "if shared > 0 && !c.store.none() {",
		blind: "mlx-lm corrupts the cache",
		kills: []string{"M27"},
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
		blind: "mlx-lm corrupts the cache",
		kills: []string{"M28"},
	},
	{
		name: "plain batch rolls to the right only", file: "reference/batch_kv.go",
		old:   "c.rightPadding = append([]int{}, pad.RightPadding...)",
		new:   "c.rightPadding = each(pad.RightPadding, 0, func(a, b int) int { return max(a, b) })",
		blind: "mlx-lm corrupts the cache",
		kills: []string{"Q25", "item-028"},
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
		kills: []string{"Q04"},
	},
	{
		name: "plain batch mask without padding", file: "reference/batch_kv.go",
		old:   "return CausalMask(n, c.idx, window, c.leftPadding), nil",
		new:   "return CausalMask(n, c.idx, window, make([]int, len(c.leftPadding))), nil",
		kills: []string{"Q04", "item-098"},
	},
	{
		name: "plain trim takes no negative number", file: "reference/kv.go",
		old:   "n = min(c.offset, n)",
		new:   "n = max(0, min(c.offset, n))",
		blind: "mlx-lm corrupts the cache",
		kills: []string{"M33"},
	},
	{
		name: "plain buffer never cut before it grows", file: "reference/storage.go",
		old: `if prev%step != 0 {
		s = s.cut(0, prev)
	}`,
		new:   "",
		blind: "layout: where columns are held",
		kills: []string{"item-100"},
	},
	{
		name: "plain growth one step short", file: "reference/storage.go",
		old:   "size := (step + n - 1) / step * step",
		new:   "size := max(1, n/step) * step",
		kills: []string{"P20", "Q20"},
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
		kills: []string{"M21", "P20"},
	},
	{
		name: "chunk cut leaves the start position", file: "reference/chunked.go",
		old: `c.startPosition += valid - c.chunkSize
`,
		new:   "",
		kills: []string{"M21", "P20"},
	},
	{
		name: "concatenating cache cuts what was trimmed", file: "reference/concatenate.go",
		old:   "if s, err = c.store.concatenate(op, s); err != nil {",
		new:   "if s, err = c.store.cut(0, c.offset).concatenate(op, s); err != nil {",
		blind: "mlx-lm corrupts the cache",
		kills: []string{"M30"},
	},
	{
		name: "list merges its first child alone", file: "reference/list.go",
		old: `out.caches = append(out.caches, merged)
	}`,
		new: `out.caches = append(out.caches, merged)
		break
	}`,
		kills: []string{"M19"},
	},
	{
		name: "row of a list is a batch", file: "reference/list.go",
		old: "one, err := Extract(child, row)",
		new: `one, err := Extract(child, row)
		if ring.CodeOf(err) == "not_supported" {
			one, err = child, nil
		}`,
		blind: "mlx-lm raises whatever Python does",
		kills: []string{"P19"},
	},
	{
		name: "quantized size is its offset", file: "reference/quantized.go",
		old:   "func (c *QuantizedKVCache) Size() int { return 0 }",
		new:   "func (c *QuantizedKVCache) Size() int { return c.offset }",
		kills: []string{"Q15"},
	},
	{
		name: "packed columns as wide as they are", file: "reference/quantized.go",
		old:   "dim/(32/f.Bits))",
		new:   "dim*f.Bits/32)",
		kills: []string{"Q31"},
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
		kills: []string{"M10"},
	},
	{
		name: "recurrent extend counts rows too late", file: "reference/arrays.go",
		old: `if a.IsZero() {
			a = zeroRows(b, rows[0])
		}`,
		new: `if a.IsZero() {
			a = zeroRows(b, 1)
		}`,
		kills: []string{"D-28"},
	},
	{
		name: "recurrent lengths ignored", file: "reference/arrays.go",
		old: "return paddingMask(n, c.leftPadding, c.lengths)",
		new: `if c.leftPadding != nil {
		return paddingMask(n, c.leftPadding, nil)
	}
	return paddingMask(n, nil, c.lengths)`,
		kills: []string{"D-26", "M13", "M26"},
	},
	{
		name: "recurrent left padding ignored", file: "reference/arrays.go",
		old:   "t >= low[b%len(low)] && t < high[b%len(high)]",
		new:   "t < high[b%len(high)]",
		kills: []string{"D-26", "D-26-exact", "M13", "M18", "item-091"},
	},
	{
		name: "recurrent mask where none is due", file: "reference/arrays.go",
		old: `if leftPadding == nil && lengths == nil {
		return nil, nil
	}`,
		new: `if leftPadding == nil && lengths == nil {
		lengths = []int{n}
	}`,
		kills: []string{"M14"},
	},
	{
		name: "recurrent lengths stop at zero", file: "reference/arrays.go",
		old:   "c.lengths = each(c.lengths, n, subtract)",
		new:   "c.lengths = each(c.lengths, n, func(a, b int) int { return max(0, a-b) })",
		kills: []string{"D-27", "M13"},
	},
	{
		name: "recurrent batch ignores left padding", file: "reference/recurrent.go",
		old: "return paddingMask(n, c.leftPadding, c.lengths)",
		new: `if c.lengths == nil {
		return nil, nil
	}
	return paddingMask(n, nil, c.lengths)`,
		kills: []string{"D-26-exact", "item-091"},
	},
	{
		name: "recurrent offsets count padding", file: "reference/recurrent.go",
		old:   "offset[i] = c.offset[i] + max(0, min(n, c.lengths[i])-clamp(c.leftPadding[i], n))",
		new:   "offset[i] = c.offset[i] + n",
		kills: []string{"D-26-exact", "D-27-exact", "item-091", "item-092"},
	},
	{
		name: "recurrent finalize keeps the padding", file: "reference/recurrent.go",
		old: `func (c *BatchRecurrent) Finalize() error {
	c.leftPadding, c.lengths = nil, nil
`,
		new: `func (c *BatchRecurrent) Finalize() error {
`,
		kills: []string{"D-27-exact", "item-087", "item-090", "item-092"},
	},
	{
		name: "recurrent announcement keeps the old one", file: "reference/recurrent.go",
		old: `c.leftPadding, c.lengths = nil, nil
	if !padded`,
		new:   "if !padded",
		kills: []string{"item-086"},
	},
	{
		name: "recurrent bytes grow", file: "reference/recurrent.go",
		old:   "return tensorBytes(c.slots) / len(c.offset)",
		new:   "return tensorBytes(c.slots) / len(c.offset) * (1 + c.offset[0])",
		kills: []string{"item-088"},
	},
	{
		name: "recurrent merge drops an absent slot's rows", file: "reference/recurrent.go",
		old: `if t.IsZero() {
				t = zeroRows(like, len(s.offset))
			}`,
		new: `if t.IsZero() {
				continue
			}`,
		kills: []string{"item-089"},
	},
	{
		name: "recurrent merge forgets the offsets", file: "reference/recurrent.go",
		old:   "out.offset = append(out.offset, s.offset...)",
		new:   "out.offset = append(out.offset, make([]int, len(s.offset))...)",
		kills: []string{"D-28-exact", "item-089"},
	},
	{
		name: "recurrent filter leaves the padding", file: "reference/recurrent.go",
		old:   "c.leftPadding, c.lengths = pick(c.leftPadding, rows), pick(c.lengths, rows)",
		new:   "c.leftPadding, c.lengths = c.leftPadding[:len(rows)], c.lengths[:len(rows)]",
		kills: []string{"item-091"},
	},
	{
		name: "recurrent extract with the first offset", file: "reference/recurrent.go",
		old:   "offset: []int{c.offset[row]}}, nil",
		new:   "offset: []int{c.offset[0]}}, nil",
		kills: []string{"item-092"},
	},
	{
		name: "recurrent write shares its rows", file: "reference/recurrent.go",
		old:   "if rows := t.Rows(); rows != len(c.offset) && len(c.offset) > 0 {",
		new:   "if rows := t.Rows(); rows != len(c.offset) && len(c.offset) > 99 {",
		kills: []string{"item-085"},
	},
	{
		name: "quantize counts one code too many", file: "reference/quantize.go",
		old: "func largestCode(bits int) float32 { return float32(int(1)<<bits - 1) }", new: "func largestCode(bits int) float32 { return float32(int(1) << bits) }",
	},
	{
		name: "quantize's edge where both ends are as far", file: "reference/quantize.go",
		old: "if !(abs(low) > abs(high)) {", new: "if !(abs(low) >= abs(high)) {",
	},
	{
		name: "quantize forgets that zero has a code", file: "reference/quantize.go",
		old: "		scale, bias = edge/zero, edge\n", new: "		bias = edge\n",
	},
	{
		name: "quantize rounds down", file: "reference/quantize.go",
		old: "code := roundToEven((v - bias) / scale)", new: "code := float32(int((v - bias) / scale))",
	},
	{
		name: "quantize packs one bit on", file: "reference/quantize.go",
		old: "stream |= uint32(code) << held", new: "stream |= uint32(code) << (held + 1)",
	},
	{
		name: "quantize wraps the largest code", file: "reference/quantize.go",
		old: "			code = largest\n", new: "			code = 0\n",
	},
}
