package corpus

// What Parse accepts at most. Case files may come from anywhere; these bounds
// keep both reading and running one within a machine's means. They are far from
// what a case needs that a person is to understand.
const (
	MaxFile    = 8 << 20   // bytes of a case file
	MaxFiles   = 100_000   // files of a folder
	MaxOps     = 10_000    // operations of a case
	MaxRows    = 4096      // rows of a batch; names in a list of names
	MaxColumns = 1 << 16   // tokens that one operation feeds to one row
	MaxNumber  = 1 << 20   // magnitude of a number in an operation: windows, counts, indices, paddings
	MaxAnswer  = 1 << 53   // magnitude of a number in a want
	MaxToken   = 1<<31 - 1 // largest token id; the least is -MaxToken-1
	MaxHeads   = 256       // kv_heads
	MaxWidth   = 4096      // key_dim, value_dim and group_size, in elements
	MaxStep    = 1 << 16   // growth step, in columns
	MaxSlots   = 64        // slots of recurrent state
	MaxDepth   = 8         // lists of caches within lists
	MaxName    = 64        // bytes of the name of a case, cache, snapshot or file
	MaxText    = 4096      // bytes of any other text
	MaxWork    = 4 << 30   // bytes that the operations touch, in all; see weigh
)

// extent bounds from above what a cache holds: its rows, and the columns of
// each. A list holds what its children hold.
type extent struct {
	rows, cols float64
	kids       []*extent
	listed     bool // is a child of a list
}

// visit calls f for e, or for the children of a list and theirs.
func (e *extent) visit(f func(*extent)) {
	for _, k := range e.kids {
		k.visit(f)
	}
	if e.kids == nil {
		f(e)
	}
}

// sum returns all of e as if it were one cache.
func (e *extent) sum() extent {
	var s extent
	e.visit(func(k *extent) { s.rows, s.cols = max(s.rows, k.rows), s.cols+k.cols })
	return s
}

func (e *extent) clone() *extent {
	d := &extent{rows: e.rows, cols: e.cols}
	for _, k := range e.kids {
		d.kids = append(d.kids, k.clone())
	}
	return d
}

// depth returns how many lists stand above the deepest cache in e.
func (e *extent) depth() int {
	d := 0
	for _, k := range e.kids {
		d = max(d, 1+k.depth())
	}
	return d
}

// weigh refuses a case whose operations touch more than MaxWork bytes. It
// counts from above: what is written is never dropped, growth takes a whole
// step, a refused operation counts as done, no cache is smaller than a page.
func weigh(c *Case) error {
	var (
		column = float64(c.Shape.KVHeads * (c.Shape.KeyDim + c.Shape.ValueDim) * c.Shape.DType.Size())
		caches = map[string]*extent{}
		snaps  = map[string]*extent{}
		files  = map[string]*extent{}
		work   = 0.0
	)
	touch := func(e *extent) *extent {
		e.visit(func(k *extent) { work += max(4096, k.rows*(k.cols+float64(c.Step))*column) })
		return e
	}
	get := func(from map[string]*extent, name string) *extent {
		if e := from[name]; e != nil {
			return touch(e)
		}
		return &extent{rows: 1}
	}
	for i := range c.Ops {
		o := &c.Ops[i]
		e := get(caches, o.Cache)
		switch o.Verb {
		case New:
			e = &extent{rows: 1, cols: float64(o.Slots)}
			for _, name := range o.Caches {
				k := get(caches, name)
				if k.listed {
					return inOp(i, o.Verb, fail("caches", "%q is in a list already; a cache belongs to one list", name))
				}
				k.listed = true
				e.kids = append(e.kids, k)
			}
			if d := e.depth(); d > MaxDepth {
				return inOp(i, o.Verb, fail("caches", "lists stand %d deep, want at most %d", d, MaxDepth))
			}
		case Merge:
			e = &extent{}
			for _, name := range o.Caches {
				s := get(caches, name).sum()
				e.rows, e.cols = e.rows+s.rows, max(e.cols, s.cols)
			}
		case Extract, ToQuantized:
			s := e.sum()
			e = &s
		case Extend:
			s := get(caches, o.Other).sum()
			e.visit(func(k *extent) { k.rows, k.cols = k.rows+s.rows, max(k.cols, s.cols) })
		case Filter:
			e.visit(func(k *extent) { k.rows = float64(len(o.Rows)) })
		case Snapshot:
			snaps[o.As] = e.clone()
		case Restore:
			s := get(snaps, o.From).clone()
			e.rows, e.cols, e.kids = s.rows, s.cols, s.kids
		case Adopt:
			e = get(snaps, o.From).clone()
		case Save:
			e = &extent{}
			for _, name := range o.Caches {
				e.kids = append(e.kids, get(caches, name).clone())
			}
			files[o.File] = e
		case Load:
			e = get(files, o.File).clone()
			for k, name := range o.Outs {
				if k < len(e.kids) {
					caches[name] = e.kids[k]
				}
			}
		}
		rows := float64(max(len(o.Tokens), len(o.LeftPadding), len(o.Lengths)))
		fed := 0
		for _, p := range o.LeftPadding {
			fed = max(fed, p, -p)
		}
		if len(o.Tokens) > 0 {
			fed = len(o.Tokens[0])
		}
		if o.Verb == Trim {
			fed = max(0, -o.N) // mlx-lm's offset grows by a negative trim
		}
		e.visit(func(k *extent) { k.rows, k.cols = max(k.rows, rows), k.cols+float64(fed) })
		if o.Out != "" {
			caches[o.Out] = e
		}
		touch(e)
		if o.Verb == MaskOp || o.Verb == Attend {
			s, n := e.sum(), float64(max(o.N, o.Queries, 0))
			work += s.rows * n * (s.cols + n + column)
		}
		if work > MaxWork {
			return inOp(i, o.Verb, fail("", "the case touches %.0f bytes up to here, want at most %d; use fewer rows, columns or operations", work, MaxWork))
		}
	}
	return nil
}
