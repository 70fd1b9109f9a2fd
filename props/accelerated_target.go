package props

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/promptfile"
	"example.com/ringcheck/reference/ring"
)

// AcceleratedTarget returns the accelerated cache on a device, under that name,
// as a target, at columns level. It may run several cases at once. What mlx-lm
// corrupts silently the accelerated cache refuses, so cases with such
// operations are not for it: see [Corrupts].
func AcceleratedTarget(name string, dev accelerated.Device) *Accelerated {
	return &Accelerated{dev: dev, name: name}
}

// Accelerated is the accelerated cache as a target.
type Accelerated struct {
	dev    accelerated.Device
	name   string
	leaked atomic.Pointer[string]
}

// counted is a device that counts the buffers of one run.
type counted struct {
	accelerated.Device
	live int
}

func (d *counted) Alloc(size int) (accelerated.Buffer, error) {
	b, err := d.Device.Alloc(size)
	if err == nil {
		d.live++
	}
	return b, err
}

func (d *counted) Free(b accelerated.Buffer) {
	d.live--
	d.Device.Free(b)
}

// Info says what the accelerated cache implements.
func (t *Accelerated) Info() Info {
	info := ReferenceTarget().Info()
	info.Name, info.Level = t.name, Columns
	info.Kinds = []corpus.Kind{corpus.Rotating, corpus.BatchRotating, corpus.RotatingQuantized, corpus.BatchRotatingQuantized, corpus.BatchRecurrent}
	info.Ops = slices.DeleteFunc(slices.Clone(info.Ops), func(v corpus.Verb) bool { return v == corpus.TrimFront })
	return info
}

// Leaked says what a run since the last call has not given back.
func (t *Accelerated) Leaked() string {
	if what := t.leaked.Swap(nil); what != nil {
		return *what
	}
	return ""
}

// Run runs a case on caches of its own and closes them.
func (t *Accelerated) Run(ctx context.Context, c corpus.Case, dir string) (steps []corpus.Step, err error) {
	steps = make([]corpus.Step, 0, len(c.Ops))
	dev := &counted{Device: t.dev}
	r := &acceleratedRun{
		c: &c, dir: dir, dev: dev, masks: accelerated.NewMasks(dev), caches: map[string]*accelerated.Cache{},
		recurrent: map[string]*accelerated.Recurrent{}, snapshots: map[string]*accelerated.Snapshot{}, rounds: map[string]round{},
	}
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Reason: fmt.Sprintf("operation %d (%s): panic: %v", len(steps), c.Ops[len(steps)].Verb, p), Stderr: string(debug.Stack())}
		}
		r.close()
		if dev.live != 0 {
			what := fmt.Sprintf("%d buffers are still live after the run", dev.live)
			t.leaked.Store(&what)
		}
	}()
	for i := range c.Ops {
		if err := ctx.Err(); err != nil {
			return steps, err
		}
		var s corpus.Step
		op := &c.Ops[i]
		if err := r.do(op, &s); err != nil {
			code := ring.CodeOf(err)
			if code == "" {
				return steps, &Fault{Reason: fmt.Sprintf("operation %d (%s): %v", i, op.Verb, err)}
			}
			s = corpus.Step{Error: code, Message: err.Error()}
			if c, ok := r.caches[op.Cache]; ok {
				s.State = acceleratedState(c)
			} else if c, ok := r.recurrent[op.Cache]; ok {
				s.State = recurrentState(c)
			}
		}
		steps = append(steps, s)
		if s.Unsupported != "" {
			break
		}
	}
	return steps, nil
}

// acceleratedRun is the caches of one case while it runs.
type acceleratedRun struct {
	c         *corpus.Case
	dir       string
	dev       accelerated.Device
	masks     *accelerated.Masks
	caches    map[string]*accelerated.Cache
	recurrent map[string]*accelerated.Recurrent
	snapshots map[string]*accelerated.Snapshot
	rounds    map[string]round
}

func (r *acceleratedRun) close() {
	for _, c := range r.caches {
		c.Close()
	}
	for _, c := range r.recurrent {
		c.Close()
	}
	for _, s := range r.snapshots {
		s.Close()
	}
	r.masks.Close()
}

func (r *acceleratedRun) cache(name string) (*accelerated.Cache, error) {
	c, ok := r.caches[name]
	if !ok {
		return nil, absent("cache", name)
	}
	return c, nil
}

// make returns what stores and observes the cache that an operation made.
func (r *acceleratedRun) make(name string, s *corpus.Step) func(*accelerated.Cache, error) error {
	return func(c *accelerated.Cache, err error) error {
		if err != nil {
			return err
		}
		r.caches[name] = c
		return r.observe(c, s, true)
	}
}

// observe answers a cache's state, and its buffer where that is compared.
func (r *acceleratedRun) observe(c *accelerated.Cache, s *corpus.Step, stored bool) error {
	s.State = acceleratedState(c)
	if !stored {
		return nil
	}
	kv, err := c.Download()
	s.Stored = planes(kv)
	return err
}

func (r *acceleratedRun) config(op *corpus.Op, k corpus.Kind) accelerated.Config {
	cfg := accelerated.Config{
		Semantics: r.c.Semantics, MaxSize: op.MaxSize, Keep: op.Keep, Step: r.c.Step, Masks: r.masks,
		KVHeads: r.c.Shape.KVHeads, KeyDim: r.c.Shape.KeyDim, ValueDim: r.c.Shape.ValueDim, DType: r.c.Shape.DType,
	}
	if k == corpus.RotatingQuantized || k == corpus.BatchRotatingQuantized {
		cfg.Quant = r.quant()
	}
	return cfg
}

func (r *acceleratedRun) quant() accelerated.Quant {
	if r.c.Quant == nil {
		return accelerated.Quant{GroupSize: -1}
	}
	return accelerated.Quant(*r.c.Quant)
}

func (r *acceleratedRun) do(op *corpus.Op, s *corpus.Step) error {
	if op.Verb != corpus.Save && r.isRecurrent(op) {
		return r.doRecurrent(op, s)
	}
	switch op.Verb {
	case corpus.New:
		return r.make(op.Out, s)(r.new(op))
	case corpus.Merge:
		sources := make([]*accelerated.Cache, len(op.Caches))
		for i, name := range op.Caches {
			var err error
			if sources[i], err = r.cache(name); err != nil {
				return err
			}
		}
		return r.make(op.Out, s)(accelerated.Merge(sources...))
	case corpus.Save:
		return r.save(op)
	case corpus.Load:
		return r.load(op, s)
	case corpus.Adopt:
		from, ok := r.snapshots[op.From]
		if !ok {
			return absent("snapshot", op.From)
		}
		return r.make(op.Out, s)(from.Adopt())
	}
	c, err := r.cache(op.Cache)
	if err != nil {
		return err
	}
	if k := corpus.Kind(c.Kind()); !k.Has(op.Verb, r.c.Semantics) {
		return &ring.NotSupportedError{Op: string(op.Verb), Kind: string(k)}
	}
	switch op.Verb {
	case corpus.MaskOp:
		lease, err := c.Mask(op.N, op.Window)
		if err != nil {
			return err
		}
		defer lease.Release()
		s.Mask, err = lease.View().Download(r.dev)
		return err
	case corpus.Extract:
		if op.Limit != nil {
			return r.make(op.Out, s)(c.ExtractLimit(op.Row, *op.Limit))
		}
		return r.make(op.Out, s)(c.Extract(op.Row))
	case corpus.ToQuantized:
		return r.make(op.Out, s)(c.ToQuantized(r.quant()))
	case corpus.Snapshot, corpus.TemporalView, corpus.Attend, corpus.Release, corpus.ValidOffset, corpus.ProjectedBytes:
		s.State = acceleratedState(c)
		return r.look(op, c, s)
	case corpus.Update, corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder:
		err = r.write(op, c, s)
	default:
		if err = r.change(op, c, s); err == nil {
			delete(r.rounds, op.Cache)
		}
	}
	if err != nil {
		return err
	}
	return r.observe(c, s, false)
}

func (r *acceleratedRun) new(op *corpus.Op) (*accelerated.Cache, error) {
	cfg := r.config(op, op.Kind)
	switch op.Kind {
	case corpus.Rotating, corpus.RotatingQuantized:
		return accelerated.NewRotating(r.dev, cfg)
	case corpus.BatchRotating, corpus.BatchRotatingQuantized:
		return accelerated.NewBatchRotating(r.dev, cfg, op.LeftPadding)
	}
	return nil, &ring.NotSupportedError{Op: "new", Kind: string(op.Kind)}
}

// look runs an operation that changes nothing that can be observed.
func (r *acceleratedRun) look(op *corpus.Op, c *accelerated.Cache, s *corpus.Step) error {
	switch op.Verb {
	case corpus.Snapshot:
		snapshot, err := c.Snapshot()
		if err == nil {
			r.snapshots[op.As] = snapshot
		}
		return err
	case corpus.TemporalView:
		kv, err := c.TemporalView()
		if err != nil {
			return err
		}
		return r.returned(&kv, s)
	case corpus.Attend:
		queries := QueryArray(r.c, c.Rows(), op.Queries)
		heads, width := queries.Shape[1], r.c.Shape.ValueDim
		out := ring.Array{DType: ring.Float32, Shape: [4]int{c.Rows(), heads, op.Queries, width}}
		out.Data = make([]byte, max(0, c.Rows()*heads*op.Queries*width*out.DType.Size()))
		if err := c.Attend(accelerated.HostView(out), accelerated.HostView(queries), float32(op.Scale)); err != nil {
			return err
		}
		if err := r.dev.Sync(); err != nil {
			return err
		}
		var err error
		s.Attended, err = reference.Floats(out)
		return err
	case corpus.Release:
		return c.Release()
	case corpus.ValidOffset:
		s.Offsets = make([]int, c.Rows())
		for i := range s.Offsets {
			var err error
			if s.Offsets[i], err = c.ValidOffset(i); err != nil {
				return err
			}
		}
		return nil
	}
	n, err := c.ProjectedBytes(op.N)
	s.Bytes = &n
	return err
}

// returned downloads the columns that an operation returned.
func (r *acceleratedRun) returned(kv *accelerated.KV, s *corpus.Step) error {
	host, err := kv.Download(r.dev)
	s.Returned = planes(host)
	return err
}

// write runs an update or an append.
func (r *acceleratedRun) write(op *corpus.Op, c *accelerated.Cache, s *corpus.Step) error {
	keys := accelerated.HostView(corpus.TokenArray(r.c.Shape, r.c.Fill, corpus.KeyPlane, op.Tokens))
	values := accelerated.HostView(corpus.TokenArray(r.c.Shape, r.c.Fill, corpus.ValuePlane, op.Tokens))
	before := c.Position().Offset
	if op.Verb == corpus.Update {
		kv, err := c.Update(keys, values)
		if err != nil {
			return err
		}
		if err := r.returned(&kv, s); err != nil {
			return err
		}
	} else {
		var read accelerated.Read
		var err error
		switch op.Verb {
		case corpus.AppendDecode:
			read, err = c.AppendDecode(keys, values)
		case corpus.AppendWindow:
			read, err = c.AppendWindow(keys, values)
		default:
			var lease accelerated.Lease
			if lease, err = r.masks.Upload(op.Mask); err != nil {
				return err
			}
			read, err = c.AppendWindowUnder(keys, values, lease, op.Causal)
		}
		if err != nil {
			return err
		}
		defer read.Close()
		kv := read.KV()
		if err := r.returned(&kv, s); err != nil {
			return err
		}
		if s.Mask, err = read.Mask().Download(r.dev); err != nil {
			return err
		}
	}
	r.rounds[op.Cache] = round{before, keys.Shape[2]}
	return nil
}

// change runs an operation that changes a cache, writes of tokens apart.
func (r *acceleratedRun) change(op *corpus.Op, c *accelerated.Cache, s *corpus.Step) error {
	switch op.Verb {
	case corpus.Prepare:
		return c.Prepare(accelerated.Padding{LeftPadding: op.LeftPadding, Lengths: op.Lengths, RightPadding: op.RightPadding, RightPadded: op.RightPadded})
	case corpus.Finalize:
		return c.Finalize()
	case corpus.Filter:
		return c.Filter(op.Rows)
	case corpus.Extend:
		other, err := r.cache(op.Other)
		if err != nil {
			return err
		}
		if err := c.Extend(other); err != nil {
			return err
		}
		delete(r.caches, op.Other)
		return other.Close()
	case corpus.Trim:
		n, err := c.Trim(op.N)
		s.Trimmed = &n
		return err
	case corpus.Rollback:
		last, ok := r.rounds[op.Cache]
		if !ok {
			last = round{before: c.Position().Offset}
		}
		keep := op.KeepRows
		if keep == nil {
			keep = slices.Repeat([]int{op.Keep}, c.Rows())
		}
		return c.Rollback(last.before, keep, op.Preserve)
	case corpus.Restore:
		from, ok := r.snapshots[op.From]
		if !ok {
			return absent("snapshot", op.From)
		}
		return c.Restore(from)
	}
	return fmt.Errorf("unknown operation")
}

// save writes a prompt-cache file by way of the reference.
func (r *acceleratedRun) save(op *corpus.Op) error {
	caches := make([]reference.Cache, len(op.Caches))
	for i, name := range op.Caches {
		var err error
		if c := r.recurrent[name]; c != nil {
			caches[i], err = r.toBatchRecurrent(c)
		} else if c, absent := r.cache(name); absent != nil {
			err = absent
		} else {
			caches[i], err = toReference(c)
		}
		if err != nil {
			return err
		}
	}
	return promptfile.Save(promptfile.Path(r.dir, op.File), caches, nil)
}

// toBatchRecurrent is the reference's state with the same slots and
// bookkeeping.
func (r *acceleratedRun) toBatchRecurrent(c *accelerated.Recurrent) (reference.Cache, error) {
	arrays, err := r.slots(c)
	if err != nil {
		return nil, err
	}
	tensors := make([]ring.Tensor, len(arrays))
	for i, a := range arrays {
		if a.DType != 0 {
			tensors[i] = a.Tensor()
		}
	}
	left, lengths := c.Padding()
	return wrap(reference.AdoptBatchRecurrent(tensors, c.Offsets(nil), left, lengths))
}

// toReference is the reference's cache with the same columns and bookkeeping.
func toReference(c *accelerated.Cache) (reference.Cache, error) {
	cfg := c.Config()
	kv, err := c.Download()
	if err != nil {
		return nil, err
	}
	k := corpus.Kind(c.Kind())
	serial := k == corpus.Rotating || k == corpus.RotatingQuantized
	snapshot, err := reference.NewSnapshot(cfg.Semantics, serial, cfg.Keep, reference.Format(cfg.Quant), c.Position(), kv)
	if err != nil {
		return nil, err
	}
	if serial {
		return wrap(reference.AdoptRotating(snapshot))
	}
	return wrap(reference.AdoptBatchRotating(snapshot))
}

// load reads a prompt-cache file by way of the reference.
func (r *acceleratedRun) load(op *corpus.Op, s *corpus.Step) error {
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
		if b, ok := c.(*reference.BatchRecurrent); ok {
			err = r.makeRecurrent(op.Outs[i], s)(r.fromBatchRecurrent(b))
		} else {
			err = r.make(op.Outs[i], s)(r.fromReference(c))
		}
		if err != nil {
			return err
		}
		states[i] = s.State
	}
	if len(caches) > 1 {
		*s = corpus.Step{State: corpus.State{{Name: corpus.FCaches, Kind: corpus.States, States: states}}}
	}
	return nil
}

// fromBatchRecurrent makes state with the slots and bookkeeping of the
// reference's.
func (r *acceleratedRun) fromBatchRecurrent(c *reference.BatchRecurrent) (*accelerated.Recurrent, error) {
	tensors := c.Slots()
	slots := make([]ring.Array, len(tensors))
	for i, t := range tensors {
		if a, ok := t.Array(); ok {
			slots[i] = a
		} else if !t.IsZero() {
			return nil, &ring.NotSupportedError{Op: "load", Kind: fmt.Sprintf("a slot of %d axes", len(t.Shape))}
		}
	}
	left, lengths := c.Padding()
	return accelerated.AdoptRecurrent(r.dev, slots, c.Offsets(), left, lengths)
}

// fromReference makes a cache with the columns and bookkeeping of one of the
// reference's.
func (r *acceleratedRun) fromReference(c reference.Cache) (*accelerated.Cache, error) {
	held, ok := c.(interface {
		Position() ring.Position
		Columns() ring.KV
	})
	if !ok {
		return nil, &ring.NotSupportedError{Op: "load", Kind: string(kindOf(c))}
	}
	k := kindOf(c)
	cfg := r.config(&corpus.Op{MaxSize: held.Position().MaxSize}, k)
	if serial, ok := c.(*reference.RotatingKVCache); ok {
		cfg.Keep = serial.Keep()
	}
	return accelerated.Adopt(r.dev, cfg, k == corpus.Rotating || k == corpus.RotatingQuantized, held.Position(), held.Columns())
}

// acceleratedState is what a cache says of itself, under the names of its kind.
func acceleratedState(c *accelerated.Cache) corpus.State {
	p := c.Position()
	size, trimmable := corpus.IntField(corpus.FSize, c.Size()), corpus.BoolField(corpus.FTrimmable, c.Trimmable())
	buffer := corpus.IntField(corpus.FBuffer, c.Length())
	if k := corpus.Kind(c.Kind()); k == corpus.Rotating || k == corpus.RotatingQuantized {
		return corpus.State{corpus.IntField(corpus.FOffset, p.Offset[0]), corpus.IntField(corpus.FIdx, p.Idx), size, trimmable, buffer}
	}
	return corpus.State{
		corpus.IntsField(corpus.FOffset, p.Offset), corpus.IntsField(corpus.FLeftPadding, p.LeftPadding),
		corpus.IntField(corpus.FIdx, p.Idx), corpus.IntField(corpus.FTotal, p.Total), corpus.BoolField(corpus.FRotated, p.Rotated),
		corpus.IntsField(corpus.FEnds, p.Ends), size, trimmable, buffer,
	}
}

// isRecurrent reports whether an operation concerns recurrent state.
func (r *acceleratedRun) isRecurrent(op *corpus.Op) bool {
	names := append([]string{op.Cache}, op.Caches...)
	return op.Kind == corpus.BatchRecurrent || slices.ContainsFunc(names, func(n string) bool { return r.recurrent[n] != nil })
}

// doRecurrent runs an operation on recurrent state.
func (r *acceleratedRun) doRecurrent(op *corpus.Op, s *corpus.Step) error {
	made := r.makeRecurrent(op.Out, s)
	switch op.Verb {
	case corpus.New:
		return made(accelerated.NewRecurrent(r.dev, op.Slots))
	case corpus.Merge:
		sources := make([]*accelerated.Recurrent, len(op.Caches))
		for i, name := range op.Caches {
			if sources[i] = r.recurrent[name]; sources[i] == nil {
				return absent("recurrent state", name)
			}
		}
		return made(accelerated.MergeRecurrent(sources...))
	}
	c := r.recurrent[op.Cache]
	if k := corpus.BatchRecurrent; c == nil || !k.Has(op.Verb, r.c.Semantics) && op.Verb != corpus.Trim {
		return &ring.NotSupportedError{Op: string(op.Verb), Kind: string(k)}
	}
	var err error
	switch op.Verb {
	case corpus.MaskOp:
		lease, err := c.Mask(op.N)
		if err != nil {
			return err
		}
		defer lease.Release()
		s.Mask, err = lease.View().Download(r.dev)
		return err
	case corpus.Extract:
		return made(c.Extract(op.Row))
	case corpus.ProjectedBytes:
		n, err := c.ProjectedBytes(op.N)
		s.Bytes, s.State = &n, recurrentState(c)
		return err
	case corpus.Prepare:
		err = c.Prepare(accelerated.Padding{LeftPadding: op.LeftPadding, Lengths: op.Lengths, RightPadding: op.RightPadding, RightPadded: op.RightPadded})
	case corpus.Finalize:
		err = c.Finalize()
	case corpus.Filter:
		err = c.Filter(op.Rows)
	case corpus.Trim:
		_, err = c.Trim(op.N)
	case corpus.Write:
		err = c.Write(op.Slot, accelerated.HostView(corpus.TokenArray(r.c.Shape, r.c.Fill, op.Slot%2, op.Tokens)))
	case corpus.Advance:
		err = c.Advance(op.N)
	default:
		err = &ring.NotSupportedError{Op: string(op.Verb), Kind: c.Kind()}
	}
	if err != nil {
		return err
	}
	return r.observeRecurrent(c, s)
}

// makeRecurrent gives new state its name, and answers what it is.
func (r *acceleratedRun) makeRecurrent(name string, s *corpus.Step) func(*accelerated.Recurrent, error) error {
	return func(c *accelerated.Recurrent, err error) error {
		if err != nil {
			return err
		}
		r.recurrent[name] = c
		return r.observeRecurrent(c, s)
	}
}

// observeRecurrent answers the state of recurrent state, and its slots.
func (r *acceleratedRun) observeRecurrent(c *accelerated.Recurrent, s *corpus.Step) error {
	s.State = recurrentState(c)
	slots, err := r.slots(c)
	for i, a := range slots {
		if a.DType != 0 {
			s.Stored = append(s.Stored, corpus.Plane{Name: "slot." + strconv.Itoa(i), Array: a})
		}
	}
	return err
}

// slots copies all slots; the zero Array where one was never written.
func (r *acceleratedRun) slots(c *accelerated.Recurrent) ([]ring.Array, error) {
	all := make([]ring.Array, c.Slots())
	for i := range all {
		v, err := c.Slot(i)
		if err != nil {
			return nil, err
		}
		if v.DType == 0 {
			continue
		}
		a := ring.Array{DType: v.DType, Shape: v.Shape, Data: make([]byte, v.Bytes())}
		if len(a.Data) > 0 {
			if err := r.dev.Download(a.Data, v); err != nil {
				return nil, err
			}
		}
		all[i] = a
	}
	return all, nil
}

func recurrentState(c *accelerated.Recurrent) corpus.State {
	left, lengths := c.Padding()
	return corpus.State{
		corpus.IntsField(corpus.FOffset, c.Offsets([]int{})), corpus.IntsField(corpus.FLeftPadding, left), corpus.IntsField(corpus.FLengths, lengths),
	}
}

// Corrupts reports whether a case of mlx-lm's semantics has an operation of
// which the model says nothing: mlx-lm corrupts its caches there, or raises
// whatever Python does. Only the reference and mlx-lm itself answer such a case
// as it wants. In exact semantics whatever is not right is refused.
func Corrupts(c corpus.Case) bool {
	if c.Semantics != ring.MLXLM {
		return false
	}
	m := models.New(c.Semantics, c.Shape, c.Quant)
	for i := range c.Ops {
		if ok, code := m.Legal(&c.Ops[i]); !ok && code == "" {
			return true
		}
		m.Apply(&c.Ops[i])
	}
	return false
}
