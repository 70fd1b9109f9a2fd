package reference

import (
	"fmt"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// Value is a node of a cache's state as a prompt-cache file holds it: upstream's
// state property, made of arrays, numbers, texts, None and tuples of these.
type Value struct {
	Kind   ValueKind
	Tensor ring.Tensor // of TensorValue
	Ints   []int       // of IntsValue: an int32 array of one axis
	Int    int         // of IntValue, and of BoolValue (0 or 1)
	Text   string      // of TextValue
	List   []Value     // of ListValue
}

// ValueKind says which field of a Value counts.
type ValueKind uint8

// The kinds of Value. None is mlx-lm's None.
const (
	NoneValue ValueKind = iota
	TensorValue
	IntsValue
	IntValue
	BoolValue
	TextValue
	ListValue
)

// State returns a cache's class name as a prompt-cache file has it, and its
// state. Classes and semantics that mlx-lm does not have are named
// "ringcheck.X", so that mlx-lm refuses the file (E8).
func State(c Cache) (class string, v Value) { return c.className(), c.state() }

func tensorValue(t ring.Tensor) Value {
	if t.IsZero() {
		return Value{}
	}
	return Value{Kind: TensorValue, Tensor: cloneTensor(t)}
}

func intsValue(v []int) Value {
	if v == nil {
		return Value{}
	}
	return Value{Kind: IntsValue, Ints: append([]int{}, v...)}
}

func intValue(v int) Value       { return Value{Kind: IntValue, Int: v} }
func textValue(v string) Value   { return Value{Kind: TextValue, Text: v} }
func listValue(v ...Value) Value { return Value{Kind: ListValue, List: v} }

func boolValue(v bool) Value {
	out := Value{Kind: BoolValue}
	if v {
		out.Int = 1
	}
	return out
}

// planesValue is None, one array, or a tuple of three.
func planesValue(p ring.Planes) Value {
	switch len(p) {
	case 0:
		return Value{}
	case 1:
		return tensorValue(p[0].Tensor())
	}
	list := make([]Value, len(p))
	for i, a := range p {
		list[i] = tensorValue(a.Tensor())
	}
	return listValue(list...)
}

func (c *KVCache) className() string            { return "KVCache" }
func (c *BatchKVCache) className() string       { return "BatchKVCache" }
func (c *QuantizedKVCache) className() string   { return "QuantizedKVCache" }
func (c *ArraysCache) className() string        { return "ArraysCache" }
func (c *ChunkedKVCache) className() string     { return "ChunkedKVCache" }
func (c *ConcatenateKVCache) className() string { return "ConcatenateKVCache" }
func (c *CacheList) className() string          { return "CacheList" }
func (c *BatchRecurrent) className() string     { return "ringcheck.BatchRecurrent" }

func (c *RotatingKVCache) className() string {
	return ringClass("RotatingKVCache", c.semantics, c.format)
}

func (c *BatchRotatingKVCache) className() string {
	return ringClass("BatchRotatingKVCache", c.semantics, c.format)
}

func ringClass(name string, semantics ring.Semantics, f Format) string {
	if semantics == ring.MLXLM && f == (Format{}) {
		return name
	}
	return "ringcheck." + name
}

func (c *KVCache) state() Value {
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values), intValue(c.offset))
}

func (c *RotatingKVCache) state() Value {
	if c.className() != "RotatingKVCache" {
		return ringState(c.semantics, c.keep, c.format, c.store, c.position())
	}
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values),
		intValue(c.offset), intValue(c.keep), intValue(c.maxSize), intValue(c.idx))
}

func (c *BatchKVCache) state() Value {
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values),
		intsValue(c.offset), intsValue(c.leftPadding), intValue(c.idx))
}

func (c *BatchRotatingKVCache) state() Value {
	p := c.rows.p
	if c.className() != "BatchRotatingKVCache" {
		return ringState(c.semantics, 0, c.format, c.store, p)
	}
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values), intsValue(p.Offset), intsValue(p.LeftPadding),
		intValue(p.MaxSize), intValue(p.Total), intValue(p.Idx), boolValue(p.Rotated))
}

// ringState is the state of the rings that mlx-lm does not have: all of it,
// pending padding included.
func ringState(semantics ring.Semantics, keep int, f Format, s storage, p ring.Position) Value {
	return listValue(textValue(semantics.String()), planesValue(s.Keys), planesValue(s.Values),
		intValue(p.MaxSize), intsValue(p.Offset), intsValue(p.LeftPadding), intValue(p.Idx), intValue(p.Total),
		boolValue(p.Rotated), intsValue(p.Ends), intValue(keep), intValue(f.GroupSize), intValue(f.Bits))
}

func (c *QuantizedKVCache) state() Value {
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values),
		intValue(c.offset), intValue(c.format.GroupSize), intValue(c.format.Bits))
}

func (c *ArraysCache) state() Value {
	return listValue(slotsValue(c.slots), intsValue(c.leftPadding), intsValue(c.lengths))
}

func slotsValue(slots []ring.Tensor) Value {
	list := make([]Value, len(slots))
	for i, t := range slots {
		list[i] = tensorValue(t)
	}
	return listValue(list...)
}

func (c *ChunkedKVCache) state() Value {
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values),
		intValue(c.offset), intValue(c.chunkSize), intValue(c.startPosition))
}

func (c *ConcatenateKVCache) state() Value {
	return listValue(planesValue(c.store.Keys), planesValue(c.store.Values))
}

func (c *CacheList) state() Value {
	list := make([]Value, len(c.caches))
	for i, child := range c.caches {
		class, v := State(child)
		list[i] = listValue(v, textValue(class))
	}
	return listValue(list...)
}

func (c *BatchRecurrent) state() Value {
	return listValue(slotsValue(c.slots), intsValue(c.offset), intsValue(c.leftPadding), intsValue(c.lengths))
}

// StateError refuses a state that is not one of its class.
type StateError struct{ Class, Why string }

func (e *StateError) Error() string {
	return fmt.Sprintf("state of %.64q: %s", e.Class, e.Why)
}

// Code makes a refused state count as what mlx-lm does with it: it raises.
func (e *StateError) Code() string { return "raises" }

// FromState is from_state: the cache of that class whose state v is. Upstream
// sets the fields of the state and no others, so that a batched cache comes
// back without what is pending, and raises when it is asked for it (Q03).
//
// The values are untrusted: what could not have come from a cache is refused,
// and no number may exceed 2^24.
func FromState(class string, v Value) (Cache, error) {
	r := &stateReader{class: class, list: v.List}
	if v.Kind != ListValue {
		r.fail("it is not a tuple")
	}
	var c Cache
	switch class {
	case "KVCache":
		c = &KVCache{Step: defaultStep, store: r.plain(), offset: r.int()}
	case "RotatingKVCache":
		b := &RotatingKVCache{Step: defaultStep, semantics: ring.MLXLM, store: r.plain(), offset: r.int(), keep: r.int(), maxSize: r.int(), idx: r.int()}
		b.rotated = b.idx < b.offset && b.idx < b.maxSize && b.store.columns() == b.maxSize
		c = b
	case "BatchKVCache":
		b := &BatchKVCache{Step: defaultStep, store: r.plain(), offset: r.ints(), leftPadding: r.ints(), idx: r.int(), loaded: true}
		r.rows(b.store, b.offset, b.leftPadding)
		c = b
	case "BatchRotatingKVCache":
		b := &BatchRotatingKVCache{Step: defaultStep, semantics: ring.MLXLM, store: r.plain(), loaded: true}
		p := ring.Position{Offset: r.ints(), LeftPadding: r.ints(), MaxSize: r.int(), Total: r.int(), Idx: r.int(), Rotated: r.bool()}
		r.rows(b.store, p.Offset, p.LeftPadding)
		b.rows = RowState{ring.MLXLM, p}
		b.Release()
		c = b
	case "QuantizedKVCache":
		keys, values := r.next(), r.next()
		q := &QuantizedKVCache{Step: defaultStep, offset: r.int(), format: Format{r.int(), r.int()}}
		q.store = r.planes(keys, values, q.format)
		if err := q.format.check("load"); err != nil {
			r.fail(err.Error())
		}
		c = q
	case "ArraysCache":
		c = &ArraysCache{slots: r.slots(), leftPadding: r.intsOrNone(), lengths: r.intsOrNone()}
	case "ChunkedKVCache":
		c = &ChunkedKVCache{Step: defaultStep, store: r.plain(), offset: r.int(), chunkSize: r.int(), startPosition: r.int()}
	case "ConcatenateKVCache":
		b := &ConcatenateKVCache{store: r.plain()}
		if b.store.none() {
			r.fail("it has no columns")
		}
		b.offset = b.store.columns()
		c = b
	case "CacheList":
		c = r.children()
	case "ringcheck.RotatingKVCache", "ringcheck.BatchRotatingKVCache":
		c = r.ring(class == "ringcheck.RotatingKVCache")
	case "ringcheck.BatchRecurrent":
		b, err := AdoptBatchRecurrent(r.slots(), r.ints(), r.intsOrNone(), r.intsOrNone())
		if err != nil {
			r.fail(err.Error())
		}
		c = b
	default:
		r.fail("no such class")
	}
	if len(r.list) > 0 {
		r.fail("it has too many fields")
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

// stateReader takes a state apart field by field and keeps the first error.
type stateReader struct {
	class string
	list  []Value // what is left
	field int     // how many were read
	err   error
}

func (r *stateReader) fail(why string) {
	if r.err == nil {
		r.err = &StateError{r.class, why}
	}
}

func (r *stateReader) next() Value {
	if len(r.list) == 0 {
		r.fail("it has too few fields")
		return Value{}
	}
	v := r.list[0]
	r.list = r.list[1:]
	r.field++
	return v
}

// wants fails because the field read last is not what it should be.
func (r *stateReader) wants(what string) { r.fail(fmt.Sprintf("field %d is not %s", r.field-1, what)) }

const largestStateInt = 1 << 24

func (r *stateReader) bounded(v int) int {
	if v > largestStateInt || v < -largestStateInt {
		r.fail(fmt.Sprintf("the number %d is out of bounds", v))
		return 0
	}
	return v
}

func (r *stateReader) int() int {
	v := r.next()
	if v.Kind != IntValue {
		r.wants("a number")
	}
	return r.bounded(v.Int)
}

func (r *stateReader) bool() bool {
	v := r.next()
	if v.Kind != BoolValue {
		r.wants("a truth value")
	}
	return v.Int != 0
}

func (r *stateReader) intsOrNone() []int {
	v := r.next()
	if v.Kind == NoneValue {
		return nil
	}
	if v.Kind == TensorValue && v.Tensor.DType == ring.Float32 && slices.Equal(v.Tensor.Shape, []int{0}) {
		return []int{} // what MLX makes of a list without elements
	}
	if v.Kind != IntsValue {
		r.wants("a list of numbers")
	}
	out := make([]int, len(v.Ints))
	for i, n := range v.Ints {
		out[i] = r.bounded(n)
	}
	return out
}

func (r *stateReader) ints() []int {
	out := r.intsOrNone()
	if out == nil {
		r.wants("a list of numbers")
		return []int{}
	}
	return out
}

func (r *stateReader) tensor(v Value) ring.Tensor {
	if v.Kind == NoneValue {
		return ring.Tensor{}
	}
	if v.Kind != TensorValue {
		r.wants("made of arrays")
		return ring.Tensor{}
	}
	for _, extent := range v.Tensor.Shape {
		r.bounded(extent)
	}
	if err := checkTensor("load", v.Tensor); err != nil {
		r.fail(err.Error())
		return ring.Tensor{}
	}
	return cloneTensor(v.Tensor)
}

func (r *stateReader) slots() []ring.Tensor {
	v := r.next()
	if v.Kind != ListValue {
		r.wants("a list of slots")
	}
	out := make([]ring.Tensor, len(v.List))
	for i, s := range v.List {
		out[i] = r.tensor(s)
	}
	return out
}

func (r *stateReader) plain() storage { return r.planes(r.next(), r.next(), Format{}) }

// planes reads the two sides of a storage: both absent, or both there with
// planes that fit each other and the format.
func (r *stateReader) planes(keys, values Value, f Format) storage {
	side := func(v Value) ring.Planes {
		list := []Value{v}
		if v.Kind == NoneValue {
			return nil
		}
		if f != (Format{}) {
			list = v.List
		}
		var out ring.Planes
		for _, v := range list {
			a, ok := r.tensor(v).Array()
			if !ok {
				r.fail("a plane does not have the axes b h s d")
				return nil
			}
			out = append(out, a)
		}
		return out
	}
	s := storage{ring.KV{Keys: side(keys), Values: side(values)}}
	if r.err != nil {
		return storage{}
	}
	if s.none() != (len(s.Values) == 0) {
		r.fail("it has keys or values alone")
		return storage{}
	}
	if s.none() {
		return storage{}
	}
	like := s.Keys[len(s.Keys)-1]
	for _, p := range [2]ring.Planes{s.Keys, s.Values} {
		if f != (Format{}) && (len(p) != 3 || checkQuant("load", f.GroupSize, f.Bits, f.GroupSize) != nil ||
			p[0].DType != ring.Uint32 || p[0].Shape[3]*32 != p[1].Shape[3]*f.GroupSize*f.Bits || p[1].Shape[3] != p[2].Shape[3]) {
			r.fail("its planes are not those of its group size and bits")
			return storage{}
		}
		for i, a := range p {
			if [3]int(a.Shape[:3]) != [3]int(like.Shape[:3]) || (a.DType != like.DType && !(i == 0 && len(p) == 3)) || (a.DType == ring.Uint32) != (i == 0 && len(p) == 3) {
				r.fail("its planes do not fit each other")
				return storage{}
			}
		}
	}
	return s
}

// rows refuses lists whose length is not the number of rows.
func (r *stateReader) rows(s storage, lists ...[]int) {
	n := len(lists[0])
	for _, l := range lists {
		if len(l) != n || (!s.none() && s.rows() != n) {
			r.fail("rows, offsets and padding differ in number")
		}
	}
}

func (r *stateReader) children() Cache {
	out := &CacheList{}
	for len(r.list) > 0 && r.err == nil {
		v := r.next()
		if v.Kind != ListValue || len(v.List) != 2 || v.List[1].Kind != TextValue {
			r.fail("a child is not a state and a class name")
			break
		}
		child, err := FromState(v.List[1].Text, v.List[0])
		if err != nil {
			r.fail(err.Error())
			break
		}
		out.caches = append(out.caches, child)
	}
	return out
}

// ring reads what ringState wrote.
func (r *stateReader) ring(serial bool) Cache {
	text := r.next()
	semantics, err := ring.ParseSemantics(text.Text)
	if err != nil || text.Kind != TextValue {
		r.fail("the semantics are missing")
	}
	keys, values := r.next(), r.next()
	p := ring.Position{MaxSize: r.int(), Offset: r.ints(), LeftPadding: r.ints(), Idx: r.int(), Total: r.int(), Rotated: r.bool(), Ends: r.intsOrNone()}
	keep := r.int()
	f := Format{r.int(), r.int()}
	s := r.planes(keys, values, f)
	if f != (Format{}) {
		if err := f.check("load"); err != nil {
			r.fail(err.Error())
		}
	}
	r.rows(s, p.Offset, p.LeftPadding)
	if p.Ends != nil && len(p.Ends) != len(p.Offset) {
		r.fail("rows and pending ends differ in number")
	}
	if semantics == ring.Exact { // mlx-lm's rings get anywhere
		switch {
		case p.MaxSize < 1 || p.Idx < 0 || p.Total < 0:
			r.fail("the window, the write position or the total is out of range")
		case p.Idx > s.columns() || (p.Rotated && s.columns() != p.MaxSize):
			r.fail("the write position is outside the buffer")
		case slices.ContainsFunc(p.LeftPadding, func(n int) bool { return n < 0 }):
			r.fail("left padding is negative")
		case keep != 0:
			r.fail("it has sinks")
		}
	}
	if r.err == nil && serial && (len(p.Offset) != 1 || p.LeftPadding[0] != 0 || p.Total != p.Offset[0] || p.Ends != nil) {
		r.fail("it is not that of one row without padding")
	}
	if r.err != nil {
		return nil
	}
	snapshot := &Snapshot{semantics: semantics, serial: serial, step: defaultStep, keep: keep, format: f, store: s, position: p}
	if serial {
		return snapshot.rotating()
	}
	c, _ := AdoptBatchRotating(snapshot)
	return c
}
