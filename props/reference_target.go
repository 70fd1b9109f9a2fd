package props

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/promptfile"
	"example.com/ringcheck/reference/ring"
)

// ReferenceTarget returns package reference as a target, at layout level. It
// may run several cases at once. A panic is a [*Fault].
func ReferenceTarget() Target { return referenceTarget{} }

type referenceTarget struct{}

func (referenceTarget) Info() Info { return referenceInfo() }

var referenceInfo = sync.OnceValue(func() Info {
	info := Info{
		Name: "reference", Version: Version(), Kinds: corpus.Kinds, Ops: corpus.Verbs,
		DTypes:    []ring.DType{ring.BFloat16, ring.Float16, ring.Float32},
		Semantics: []ring.Semantics{ring.MLXLM, ring.Exact},
		Fills:     []corpus.Fill{corpus.Grid, corpus.Bits},
		Level:     Layout,
	}
	for _, g := range []int{32, 64, 128} {
		for _, b := range []int{2, 3, 4, 5, 6, 8} {
			info.Quant = append(info.Quant, corpus.Quant{GroupSize: g, Bits: b})
		}
	}
	return info
})

// Version is the version of this module as it was built.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func (referenceTarget) Run(ctx context.Context, c corpus.Case, dir string) (steps []corpus.Step, err error) {
	steps = make([]corpus.Step, 0, len(c.Ops))
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Reason: fmt.Sprintf("operation %d (%s): panic: %v", len(steps), c.Ops[len(steps)].Verb, p), Stderr: string(debug.Stack())}
		}
	}()
	r := &referenceRun{
		c: &c, dir: dir, caches: map[string]reference.Cache{},
		snapshots: map[string]*reference.Snapshot{}, rounds: map[reference.Cache]round{},
	}
	for i := range c.Ops {
		if err := ctx.Err(); err != nil {
			return steps, err
		}
		var s corpus.Step
		if err := r.op(&c.Ops[i], &s); err != nil {
			return steps, fmt.Errorf("operation %d (%s): %w", i, c.Ops[i].Verb, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// referenceRun is the caches of one case while it runs.
type referenceRun struct {
	c         *corpus.Case
	dir       string
	caches    map[string]reference.Cache
	snapshots map[string]*reference.Snapshot
	rounds    map[reference.Cache]round // what a rollback can take back
}

// round is the last update or append of a batched ring.
type round struct {
	before []int // offsets
	n      int   // columns written
}

// op runs one operation. A refusal, which has a code, goes into the step; the
// error is for a case that cannot be run.
func (r *referenceRun) op(op *corpus.Op, s *corpus.Step) error {
	err := r.do(op, s)
	code := ring.CodeOf(err)
	if err == nil || code == "" {
		return err
	}
	*s = corpus.Step{Error: code, Message: err.Error()}
	if c, ok := r.caches[op.Cache]; ok {
		s.State = r.state(c)
	}
	return nil
}

// cache returns the cache of that name. There is none where the operation that
// makes it was refused; then this one is, too.
func (r *referenceRun) cache(name string) (reference.Cache, error) {
	c, ok := r.caches[name]
	if !ok {
		return nil, absent("cache", name)
	}
	return c, nil
}

func absent(what, name string) error {
	return &ring.RaisesError{Op: "name", Why: fmt.Sprintf("there is no %s %q", what, name)}
}

func (r *referenceRun) named(names []string) ([]reference.Cache, error) {
	out := make([]reference.Cache, len(names))
	for i, name := range names {
		c, err := r.cache(name)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// made stores a new cache and observes it.
func (r *referenceRun) made(name string, c reference.Cache, s *corpus.Step) {
	r.setStep(c)
	r.caches[name] = c
	r.observe(c, s)
}

// setStep gives a cache the case's growth step.
func (r *referenceRun) setStep(c reference.Cache) {
	switch c := c.(type) {
	case *reference.KVCache:
		c.Step = r.c.Step
	case *reference.RotatingKVCache:
		c.Step = r.c.Step
	case *reference.BatchKVCache:
		c.Step = r.c.Step
	case *reference.BatchRotatingKVCache:
		c.Step = r.c.Step
	case *reference.QuantizedKVCache:
		c.Step = r.c.Step
	case *reference.ChunkedKVCache:
		c.Step = r.c.Step
	case *reference.CacheList:
		for i := range c.Len() {
			r.setStep(c.At(i))
		}
	}
}

// observe answers a cache's state and buffer.
func (r *referenceRun) observe(c reference.Cache, s *corpus.Step) {
	s.State = r.state(c)
	s.Stored = stored(c)
}

func (r *referenceRun) do(op *corpus.Op, s *corpus.Step) (err error) {
	switch op.Verb {
	case corpus.New:
		return r.make(op.Out, s)(r.new(op))
	case corpus.Merge:
		sources, err := r.named(op.Caches)
		if err != nil {
			return err
		}
		return r.make(op.Out, s)(reference.Merge(sources))
	case corpus.Save:
		caches, err := r.named(op.Caches)
		if err != nil {
			return err
		}
		return promptfile.Save(promptfile.Path(r.dir, op.File), caches, nil)
	case corpus.Load:
		return r.load(op, s)
	case corpus.Adopt:
		from, ok := r.snapshots[op.From]
		if !ok {
			return absent("snapshot", op.From)
		}
		if from.Serial() {
			return r.make(op.Out, s)(wrap(reference.AdoptRotating(from)))
		}
		return r.make(op.Out, s)(wrap(reference.AdoptBatchRotating(from)))
	}

	c, err := r.cache(op.Cache)
	if err != nil {
		return err
	}
	if k := kindOf(c); r.c.Semantics == ring.Exact && !k.Has(op.Verb, ring.Exact) && !(op.Verb == corpus.Trim && k == corpus.BatchRecurrent) {
		return unsupported(op, c)
	}
	switch op.Verb {
	case corpus.MaskOp:
		s.Mask, err = r.mask(op, c)
		return err
	case corpus.Extract:
		return r.make(op.Out, s)(r.extract(op, c))
	case corpus.ToQuantized:
		return r.make(op.Out, s)(r.toQuantized(op, c))
	case corpus.Snapshot, corpus.TemporalView, corpus.Attend, corpus.Release, corpus.ValidOffset, corpus.ProjectedBytes:
		s.State = r.state(c)
		return r.look(op, c, s)
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
		err = r.write(op, c, s)
	default:
		if err = r.change(op, c, s); err == nil {
			r.endRound(c)
		}
	}
	if err == nil {
		r.observe(c, s)
	}
	return err
}

// endRound makes the last write of a cache one that stays.
func (r *referenceRun) endRound(c reference.Cache) {
	delete(r.rounds, c)
	if l, ok := c.(*reference.CacheList); ok {
		for i := range l.Len() {
			r.endRound(l.At(i))
		}
	}
}

// make returns what stores and observes the cache that an operation made.
func (r *referenceRun) make(name string, s *corpus.Step) func(reference.Cache, error) error {
	return func(c reference.Cache, err error) error {
		if err == nil {
			r.made(name, c, s)
		}
		return err
	}
}

// look runs an operation that changes nothing that can be observed.
func (r *referenceRun) look(op *corpus.Op, c reference.Cache, s *corpus.Step) (err error) {
	switch op.Verb {
	case corpus.Snapshot:
		if from, ok := c.(interface{ Snapshot() *reference.Snapshot }); ok {
			r.snapshots[op.As] = from.Snapshot()
			return nil
		}
	case corpus.TemporalView:
		if v, ok := c.(interface{ TemporalView() (ring.KV, error) }); ok {
			kv, err := v.TemporalView()
			s.Returned = planes(kv)
			return err
		}
	case corpus.Attend:
		if a, ok := c.(interface {
			Attend(ring.Array, float64) ([]float32, error)
		}); ok {
			s.Attended, err = a.Attend(QueryArray(r.c, rowsOf(c), op.Queries), op.Scale)
			return err
		}
	case corpus.Release:
		if b, ok := c.(*reference.BatchRotatingKVCache); ok {
			b.Release()
			return nil
		}
	case corpus.ValidOffset:
		if b, ok := c.(*reference.BatchRotatingKVCache); ok {
			s.Offsets = make([]int, rowsOf(c))
			for i := range s.Offsets {
				if s.Offsets[i], err = b.ValidOffset(i); err != nil {
					return err
				}
			}
			return nil
		}
	case corpus.ProjectedBytes:
		if p, ok := c.(interface{ ProjectedBytes(int) (int, error) }); ok {
			n, err := p.ProjectedBytes(op.N)
			s.Bytes = &n
			return err
		}
	}
	return unsupported(op, c)
}

// change runs an operation that changes a cache, writes of tokens apart.
func (r *referenceRun) change(op *corpus.Op, c reference.Cache, s *corpus.Step) error {
	switch op.Verb {
	case corpus.Prepare:
		return reference.Prepare(c, reference.Padding{LeftPadding: op.LeftPadding, Lengths: op.Lengths, RightPadding: op.RightPadding, RightPadded: op.RightPadded})
	case corpus.Finalize:
		return reference.Finalize(c)
	case corpus.Filter:
		return reference.Filter(c, op.Rows)
	case corpus.Extend:
		other, err := r.cache(op.Other)
		if err != nil {
			return err
		}
		if err := reference.Extend(c, other); err != nil {
			return err
		}
		delete(r.caches, op.Other)
		return nil
	case corpus.Trim:
		n, err := reference.Trim(c, op.N)
		s.Trimmed = &n
		return err
	case corpus.TrimFront:
		if chunked, ok := c.(*reference.ChunkedKVCache); ok {
			return chunked.TrimFront()
		}
	case corpus.Write:
		if w, ok := c.(interface {
			Write(int, ring.Tensor) error
		}); ok {
			return w.Write(op.Slot, corpus.TokenArray(r.c.Shape, r.c.Fill, op.Slot%2, op.Tokens).Tensor())
		}
	case corpus.Advance:
		if a, ok := c.(interface{ Advance(int) error }); ok {
			return a.Advance(op.N)
		}
	case corpus.Rollback:
		if b, ok := c.(*reference.BatchRotatingKVCache); ok {
			return r.rollback(op, b)
		}
	case corpus.Restore:
		from, ok := r.snapshots[op.From]
		if !ok {
			return absent("snapshot", op.From)
		}
		if to, ok := c.(interface {
			Restore(*reference.Snapshot) error
		}); ok {
			return to.Restore(from)
		}
	default:
		return fmt.Errorf("unknown operation")
	}
	return unsupported(op, c)
}

func unsupported(op *corpus.Op, c reference.Cache) error {
	return &ring.NotSupportedError{Op: string(op.Verb), Kind: string(kindOf(c))}
}

// new makes the cache of a new operation.
func (r *referenceRun) new(op *corpus.Op) (reference.Cache, error) {
	if !op.Kind.Has(corpus.New, r.c.Semantics) {
		return nil, &ring.NotSupportedError{Op: "new", Kind: string(op.Kind)}
	}
	semantics, f := r.c.Semantics, r.format()
	switch op.Kind {
	case corpus.KV:
		return reference.NewKVCache(), nil
	case corpus.Rotating:
		return wrap(reference.NewRotatingKVCache(semantics, op.MaxSize, op.Keep))
	case corpus.BatchKV:
		return reference.NewBatchKVCache(op.LeftPadding), nil
	case corpus.BatchRotating:
		return wrap(reference.NewBatchRotatingKVCache(semantics, op.MaxSize, op.LeftPadding))
	case corpus.Quantized:
		return wrap(reference.NewQuantizedKVCache(f))
	case corpus.Arrays:
		return reference.NewArraysCache(op.Slots, op.LeftPadding), nil
	case corpus.List:
		children, err := r.named(op.Caches)
		return reference.NewCacheList(children...), err
	case corpus.Chunked:
		return reference.NewChunkedKVCache(op.ChunkSize), nil
	case corpus.Concatenate:
		return reference.NewConcatenateKVCache(), nil
	case corpus.RotatingQuantized:
		return wrap(reference.NewRotatingQuantizedKVCache(semantics, op.MaxSize, f))
	case corpus.BatchRotatingQuantized:
		return wrap(reference.NewBatchRotatingQuantizedKVCache(semantics, op.MaxSize, op.LeftPadding, f))
	case corpus.BatchRecurrent:
		return reference.NewBatchRecurrent(op.Slots), nil
	}
	return nil, fmt.Errorf("unknown kind %q", op.Kind)
}

func wrap[C reference.Cache](c C, err error) (reference.Cache, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (r *referenceRun) format() reference.Format {
	if r.c.Quant == nil {
		return reference.Format{}
	}
	return reference.Format{GroupSize: r.c.Quant.GroupSize, Bits: r.c.Quant.Bits}
}

// write runs an update or an append.
func (r *referenceRun) write(op *corpus.Op, c reference.Cache, s *corpus.Step) error {
	keys := corpus.TokenArray(r.c.Shape, r.c.Fill, corpus.KeyPlane, op.Tokens)
	values := corpus.TokenArray(r.c.Shape, r.c.Fill, corpus.ValuePlane, op.Tokens)
	b, batched := c.(*reference.BatchRotatingKVCache)
	var before []int
	if batched {
		before = b.Position().Offset
	}
	var kv ring.KV
	var err error
	if op.Verb == corpus.Update {
		u, ok := c.(interface {
			Update(keys, values ring.Array) (ring.KV, error)
		})
		if !ok {
			return unsupported(op, c)
		}
		kv, err = u.Update(keys, values)
	} else {
		if !batched {
			return unsupported(op, c)
		}
		var read reference.Read
		switch op.Verb {
		case corpus.AppendDecode:
			read, err = b.AppendDecode(keys, values)
		case corpus.AppendWindow:
			read, err = b.AppendWindow(keys, values)
		default:
			read, err = b.AppendWindowUnder(keys, values, op.Mask, op.Causal)
		}
		kv, s.Mask = read.KV, read.Mask
	}
	if err != nil {
		return err
	}
	s.Returned = planes(kv)
	if batched {
		r.rounds[c] = round{before, keys.Columns()}
	}
	return nil
}

// rollback takes back part of the last update or append; with none there is
// nothing to keep.
func (r *referenceRun) rollback(op *corpus.Op, c *reference.BatchRotatingKVCache) error {
	last, ok := r.rounds[c]
	if !ok {
		last = round{before: c.Position().Offset}
	}
	keep := op.KeepRows
	if keep == nil {
		keep = slices.Repeat([]int{op.Keep}, rowsOf(c))
	}
	return c.Rollback(last.before, keep, op.Preserve)
}

func (r *referenceRun) mask(op *corpus.Op, c reference.Cache) (*ring.Mask, error) {
	m, ok := c.(interface {
		Mask(int, *int) (*ring.Mask, error)
	})
	if !ok {
		return nil, unsupported(op, c)
	}
	mask, err := m.Mask(op.N, op.Window)
	if mask == nil {
		mask = &ring.Mask{}
	}
	return mask, err
}

func (r *referenceRun) extract(op *corpus.Op, c reference.Cache) (reference.Cache, error) {
	if b, ok := c.(*reference.BatchRotatingKVCache); ok && op.Limit != nil {
		return wrap(b.ExtractLimit(op.Row, *op.Limit))
	}
	return reference.Extract(c, op.Row)
}

func (r *referenceRun) toQuantized(op *corpus.Op, c reference.Cache) (reference.Cache, error) {
	switch c := c.(type) {
	case *reference.KVCache:
		return wrap(c.ToQuantized(r.format()))
	case *reference.RotatingKVCache:
		return wrap(c.ToQuantized(r.format()))
	}
	return nil, unsupported(op, c)
}

func (r *referenceRun) load(op *corpus.Op, s *corpus.Step) error {
	path := promptfile.Path(r.dir, op.File)
	if _, err := os.Stat(path); err != nil {
		return absent("file", op.File)
	}
	caches, _, err := promptfile.Load(path)
	if err != nil {
		return err
	}
	if len(caches) != len(op.Outs) {
		return fmt.Errorf("the file holds %d caches, the operation names %d", len(caches), len(op.Outs))
	}
	states := make([]corpus.State, len(caches))
	for i, c := range caches {
		r.made(op.Outs[i], c, s)
		states[i] = s.State
	}
	if len(caches) > 1 {
		*s = corpus.Step{State: corpus.State{{Name: corpus.FCaches, Kind: corpus.States, States: states}}}
	}
	return nil
}

// QueryArray makes the queries of an attend operation, [rows, heads, n, d]:
// query q of a row is token -(1000+q) of the query plane, in every head.
func QueryArray(c *corpus.Case, rows, n int) ring.Array {
	ids := make([]int, n)
	for q := range ids {
		ids[q] = -(1000 + q)
	}
	return corpus.TokenArray(c.Shape, corpus.Grid, corpus.QueryPlane, slices.Repeat([][]int{ids}, rows))
}

// rowsOf is the number of rows of a ring.
func rowsOf(c reference.Cache) int {
	if b, ok := c.(*reference.BatchRotatingKVCache); ok {
		return len(b.Position().Offset)
	}
	return 1
}

// kindOf is the kind of a cache.
func kindOf(c reference.Cache) corpus.Kind {
	plain := reference.Format{}
	switch c := c.(type) {
	case *reference.KVCache:
		return corpus.KV
	case *reference.RotatingKVCache:
		if c.Format() != plain {
			return corpus.RotatingQuantized
		}
		return corpus.Rotating
	case *reference.BatchKVCache:
		return corpus.BatchKV
	case *reference.BatchRotatingKVCache:
		if c.Format() != plain {
			return corpus.BatchRotatingQuantized
		}
		return corpus.BatchRotating
	case *reference.QuantizedKVCache:
		return corpus.Quantized
	case *reference.ArraysCache:
		return corpus.Arrays
	case *reference.CacheList:
		return corpus.List
	case *reference.ChunkedKVCache:
		return corpus.Chunked
	case *reference.ConcatenateKVCache:
		return corpus.Concatenate
	}
	return corpus.BatchRecurrent
}

// planes names the planes of what a cache returned or holds; nil where it
// holds nothing.
func planes(kv ring.KV) []corpus.Plane {
	switch len(kv.Keys) {
	case 0:
		return nil
	case 1:
		return []corpus.Plane{{Name: "keys", Array: kv.Keys[0]}, {Name: "values", Array: kv.Values[0]}}
	}
	names := [...]string{"packed", "scales", "biases"}
	out := make([]corpus.Plane, 0, 2*len(names))
	for i, a := range kv.Keys {
		out = append(out, corpus.Plane{Name: "keys." + names[i], Array: a})
	}
	for i, a := range kv.Values {
		out = append(out, corpus.Plane{Name: "values." + names[i], Array: a})
	}
	return out
}

// stored is the whole buffer of a cache, or the slots of recurrent state.
func stored(c reference.Cache) []corpus.Plane {
	if held, ok := c.(interface{ Columns() ring.KV }); ok {
		return planes(held.Columns())
	}
	recurrent, ok := c.(interface{ Slots() []ring.Tensor })
	if !ok {
		return nil
	}
	var out []corpus.Plane
	for i, t := range recurrent.Slots() {
		if a, ok := t.Array(); ok {
			out = append(out, corpus.Plane{Name: "slot." + strconv.Itoa(i), Array: a})
		}
	}
	return out
}

// state is what a cache says of itself, under the names of its kind.
func (r *referenceRun) state(c reference.Cache) corpus.State {
	size := corpus.IntField(corpus.FSize, c.Size())
	trimmable := corpus.BoolField(corpus.FTrimmable, c.Trimmable())
	offset := func(n int) corpus.Field { return corpus.IntField(corpus.FOffset, n) }
	buffer := corpus.Field{}
	if held, ok := c.(interface{ BufferColumns() int }); ok {
		buffer = corpus.IntField(corpus.FBuffer, held.BufferColumns())
	}
	switch c := c.(type) {
	case *reference.KVCache:
		return corpus.State{offset(c.Offset()), size, trimmable, buffer}
	case *reference.RotatingKVCache:
		return corpus.State{offset(c.Offset()), corpus.IntField(corpus.FIdx, c.Idx()), size, trimmable, buffer}
	case *reference.BatchKVCache:
		return corpus.State{
			corpus.IntsField(corpus.FOffset, c.Offsets()), corpus.IntsField(corpus.FLeftPadding, c.LeftPadding()),
			corpus.IntField(corpus.FIdx, c.Idx()), corpus.IntsField(corpus.FRightPadding, c.RightPadding()), size, trimmable, buffer,
		}
	case *reference.BatchRotatingKVCache:
		p := c.Position()
		return corpus.State{
			corpus.IntsField(corpus.FOffset, p.Offset), corpus.IntsField(corpus.FLeftPadding, p.LeftPadding),
			corpus.IntField(corpus.FIdx, p.Idx), corpus.IntField(corpus.FTotal, p.Total), corpus.BoolField(corpus.FRotated, p.Rotated),
			corpus.IntsField(corpus.FEnds, p.Ends), size, trimmable, buffer,
		}
	case *reference.QuantizedKVCache:
		return corpus.State{offset(c.Offset()), size, trimmable, buffer,
			corpus.IntField(corpus.FGroupSize, c.Format().GroupSize), corpus.IntField(corpus.FBits, c.Format().Bits)}
	case *reference.ArraysCache:
		left, lengths := c.Padding()
		return corpus.State{corpus.IntsField(corpus.FLeftPadding, left), corpus.IntsField(corpus.FLengths, lengths), size, trimmable}
	case *reference.ChunkedKVCache:
		return corpus.State{offset(c.Offset()), size, trimmable, buffer,
			corpus.IntField(corpus.FChunkSize, c.ChunkSize()), corpus.IntField(corpus.FStartPosition, c.StartPosition())}
	case *reference.ConcatenateKVCache:
		return corpus.State{offset(c.Offset()), size, trimmable, buffer}
	case *reference.CacheList:
		states := make([]corpus.State, c.Len())
		for i := range states {
			states[i] = r.state(c.At(i))
		}
		return corpus.State{size, trimmable, {Name: corpus.FCaches, Kind: corpus.States, States: states}}
	case *reference.BatchRecurrent:
		left, lengths := c.Padding()
		return corpus.State{corpus.IntsField(corpus.FOffset, c.Offsets()), corpus.IntsField(corpus.FLeftPadding, left), corpus.IntsField(corpus.FLengths, lengths)}
	}
	return nil
}
