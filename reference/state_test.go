package reference_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// lived draws a cache of any class, with a life behind it.
func lived(t *rapid.T) reference.Cache {
	semantics := rapid.SampledFrom(semanticses).Draw(t, "semantics")
	f := reference.Format{GroupSize: 32, Bits: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "bits")}
	w := rapid.IntRange(1, 5).Draw(t, "max size")
	left := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 3).Draw(t, "left padding")
	var c reference.Cache
	rows, width := 1, 4
	switch rapid.IntRange(0, 11).Draw(t, "class") {
	case 0:
		c = newKV(3)
	case 1:
		keep := 0
		if semantics == ring.MLXLM {
			keep = rapid.IntRange(0, 2).Draw(t, "keep")
		}
		c = serial(t, semantics, w, keep)
	case 2:
		c, rows = newBatchKV(3, left...), len(left)
	case 3:
		c, rows = batch(t, semantics, w, left...), len(left)
	case 4:
		q := must(reference.NewQuantizedKVCache(f))
		q.Step = 3
		c, width = q, 32
	case 5:
		c, rows = reference.NewArraysCache(2, left), len(left)
	case 6:
		k := reference.NewChunkedKVCache(w)
		k.Step = 3
		c = k
	case 7:
		j := reference.NewConcatenateKVCache()
		must(j.Update(columns(0, ring.BFloat16, rows, 1, width))) // an empty one has no state that comes back
		c = j
	case 8:
		q := must(reference.NewRotatingQuantizedKVCache(semantics, w, f))
		q.Step = 3
		c, width = q, 32
	case 9:
		q := must(reference.NewBatchRotatingQuantizedKVCache(semantics, w, left, f))
		q.Step = 3
		c, rows, width = q, len(left), 32
	case 10:
		c, rows = reference.NewBatchRecurrent(2), len(left)
	case 11:
		inner := lived(t)
		return reference.NewCacheList(inner, reference.NewCacheList(), reference.NewCacheList(newKV(2)))
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "operations") {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		switch rapid.IntRange(0, 6).Draw(t, "operation") {
		case 0, 1:
			n = 1
			fallthrough
		case 2:
			if u, ok := c.(updater); ok {
				_ = one(u.Update(columns(i, ring.BFloat16, rows, n, width)))
			}
		case 3:
			_ = one(reference.Trim(c, n))
		case 4:
			pad := reference.Padding{Lengths: make([]int, rows), RightPadding: make([]int, rows)}
			for r := range rows {
				pad.RightPadding[r] = (r + i) % (n + 1)
				pad.Lengths[r] = n - pad.RightPadding[r]
			}
			_ = reference.Prepare(c, pad)
		case 5:
			_ = reference.Finalize(c)
		case 6:
			if w, ok := c.(interface {
				Write(int, ring.Tensor) error
			}); ok {
				k, _ := columns(i, ring.BFloat16, rows, n, width)
				slot := k.Tensor()
				slot.Shape = slot.Shape[:rapid.IntRange(1, 4).Draw(t, "rank")]
				size := 2
				for _, d := range slot.Shape {
					size *= d
				}
				slot.Data = slot.Data[:size]
				_ = w.Write(n%2, slot)
			}
		}
	}
	return c
}

// normal is a cache's state with memory of no bytes as no memory.
func normal(c reference.Cache) (string, reference.Value) {
	class, v := reference.State(c)
	return class, normalValue(v)
}

func normalValue(v reference.Value) reference.Value {
	if len(v.Tensor.Data) == 0 {
		v.Tensor.Data = nil
	}
	if len(v.List) == 0 {
		v.List = nil
	}
	for i := range v.List {
		v.List[i] = normalValue(v.List[i])
	}
	return v
}

// TestStateComesBack: a cache's state makes the same cache, in all that its
// class saves; the rings of our own save all.
func TestStateComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := lived(t)
		class, v := normal(c)
		d, err := reference.FromState(class, v)
		if err != nil {
			t.Fatalf("%s: %v", class, err)
		}
		if again, w := normal(d); again != class || !reflect.DeepEqual(w, v) {
			t.Fatalf("%s came back as %s:\n%v\n%v", class, again, v, w)
		}
		if strings.HasPrefix(class, "ringcheck.") {
			if s := reflect.ValueOf(d).Elem().FieldByName("Step"); s.IsValid() {
				s.SetInt(3)
			}
			if b, ok := c.(*reference.BatchRotatingKVCache); ok {
				b.Release()
			}
			if look(d) != look(c) {
				t.Fatalf("%s came back as\n%s\nfrom\n%s", class, look(d), look(c))
			}
		}
	})
}

func TestClasses(t *testing.T) {
	f := reference.Format{GroupSize: 32, Bits: 4}
	for want, c := range map[string]reference.Cache{
		"KVCache": newKV(3), "RotatingKVCache": serial(t, ring.MLXLM, 4, 1), "BatchKVCache": newBatchKV(3), "BatchRotatingKVCache": batch(t, ring.MLXLM, 4),
		"QuantizedKVCache": must(reference.NewQuantizedKVCache(f)), "ArraysCache": reference.NewArraysCache(1, nil), "CacheList": reference.NewCacheList(),
		"ChunkedKVCache": reference.NewChunkedKVCache(4), "ConcatenateKVCache": reference.NewConcatenateKVCache(), "ringcheck.BatchRecurrent": reference.NewBatchRecurrent(1),
		"ringcheck.RotatingKVCache":      serial(t, ring.Exact, 4, 0),
		"ringcheck.BatchRotatingKVCache": must(reference.NewBatchRotatingQuantizedKVCache(ring.MLXLM, 4, nil, f)),
	} {
		class, _ := reference.State(c)
		same(t, "class", class, want)
	}
}

// TestRotatedComesBack: mlx-lm's serial ring does not save whether it has
// wrapped; it is what its numbers say.
func TestRotatedComesBack(t *testing.T) {
	c := serial(t, ring.MLXLM, 3, 0)
	script(t, c, decodes(1, 4)...)
	d := must(reference.FromState(reference.State(c))).(*reference.RotatingKVCache)
	same(t, "position", d.Position(), c.Position())
	same(t, "in order", ids(t, must(d.TemporalView())), [][]int{{2, 3, 4}})
	c = serial(t, ring.MLXLM, 3, 0)
	script(t, c, span(1, 5))
	d = must(reference.FromState(reference.State(c))).(*reference.RotatingKVCache)
	same(t, "an overshoot", d.Position(), c.Position())
}

// Values of states, for short.
var (
	none  = reference.Value{}
	yes   = reference.Value{Kind: reference.BoolValue, Int: 1}
	noSub = reference.Value{Kind: reference.ListValue}
)

func number(n int) reference.Value {
	return reference.Value{Kind: reference.IntValue, Int: n}
}
func numbers(n ...int) reference.Value {
	return reference.Value{Kind: reference.IntsValue, Ints: n}
}
func text(s string) reference.Value { return reference.Value{Kind: reference.TextValue, Text: s} }
func tuple(v ...reference.Value) reference.Value {
	return reference.Value{Kind: reference.ListValue, List: v}
}
func tensor(t ring.DType, shape ...int) reference.Value {
	n := t.Size()
	for _, d := range shape {
		n *= d
	}
	return reference.Value{Kind: reference.TensorValue, Tensor: ring.Tensor{DType: t, Shape: shape, Data: make([]byte, n)}}
}

func TestFromStateRefuses(t *testing.T) {
	k := func(shape ...int) reference.Value { return tensor(ring.Float32, shape...) }
	kv := k(1, 2, 3, 4)
	far := number(1<<24 + 1)
	q := tuple(tensor(ring.Uint32, 1, 2, 3, 4), tensor(ring.BFloat16, 1, 2, 3, 1), tensor(ring.BFloat16, 1, 2, 3, 1))
	quantized := func(keys, values reference.Value, group, bits int) reference.Value {
		return tuple(keys, values, number(1), number(group), number(bits))
	}
	ringOf := func(change func(v []reference.Value)) reference.Value {
		_, v := reference.State(must(reference.NewBatchRotatingKVCache(ring.Exact, 4, []int{0, 1})))
		change(v.List)
		return v
	}
	serialOf := func(change func(v []reference.Value)) reference.Value {
		_, v := reference.State(must(reference.NewRotatingKVCache(ring.Exact, 4, 0)))
		change(v.List)
		return v
	}
	for name, test := range map[string]struct {
		class string
		v     reference.Value
		says  string
	}{
		"no such class":                {"Cache", tuple(), "no such class"},
		"a class as long as you like":  {strings.Repeat("x", 1000), tuple(), "no such class"},
		"no tuple":                     {"KVCache", number(1), "not a tuple"},
		"too few fields":               {"KVCache", tuple(none, none), "too few"},
		"too many fields":              {"KVCache", tuple(none, none, number(0), number(0)), "too many"},
		"keys alone":                   {"KVCache", tuple(kv, none, number(1)), "alone"},
		"values alone":                 {"KVCache", tuple(none, kv, number(1)), "alone"},
		"keys of another rank":         {"KVCache", tuple(k(2, 3, 4), kv, number(1)), "axes"},
		"keys that are numbers":        {"KVCache", tuple(numbers(1), kv, number(1)), "field 1 is not made of arrays"},
		"other columns":                {"KVCache", tuple(kv, k(1, 2, 4, 4), number(1)), "fit"},
		"other rows":                   {"KVCache", tuple(kv, k(2, 2, 3, 4), number(1)), "fit"},
		"another type":                 {"KVCache", tuple(kv, tensor(ring.Float16, 1, 2, 3, 4), number(1)), "fit"},
		"words":                        {"KVCache", tuple(tensor(ring.Uint32, 1, 2, 3, 4), tensor(ring.Uint32, 1, 2, 3, 4), number(1)), "fit"},
		"an offset that is a text":     {"KVCache", tuple(none, none, text("1")), "field 2 is not a number"},
		"an offset out of bounds":      {"KVCache", tuple(none, none, far), "out of bounds"},
		"a negative one":               {"KVCache", tuple(none, none, number(-1<<24-1)), "out of bounds"},
		"an array cut short":           {"KVCache", tuple(func() reference.Value { v := k(1, 2, 3, 4); v.Tensor.Data = v.Tensor.Data[1:]; return v }(), kv, number(1)), "bytes"},
		"an extent out of bounds":      {"KVCache", tuple(k(1, 0, 1<<25, 4), k(1, 0, 1<<25, 4), number(1)), "out of bounds"},
		"an array without axes":        {"ArraysCache", tuple(tuple(tensor(ring.Float32)), none, none), "array []"},
		"an array of no type":          {"ArraysCache", tuple(tuple(reference.Value{Kind: reference.TensorValue, Tensor: ring.Tensor{Shape: []int{1}}}), none, none), "data type"},
		"a missing field of a ring":    {"RotatingKVCache", tuple(none, none, number(0), number(0), number(4)), "too few"},
		"offsets that are a number":    {"BatchKVCache", tuple(none, none, number(0), numbers(0), number(0)), "field 2 is not a list of numbers"},
		"offsets that are none":        {"BatchKVCache", tuple(none, none, none, numbers(0), number(0)), "field 2 is not a list of numbers"},
		"offsets out of bounds":        {"BatchKVCache", tuple(none, none, numbers(1<<25), numbers(0), number(0)), "out of bounds"},
		"rows and padding that differ": {"BatchKVCache", tuple(none, none, numbers(0, 0), numbers(0), number(0)), "number"},
		"rows and columns that differ": {"BatchKVCache", tuple(kv, kv, numbers(0, 0), numbers(0, 0), number(0)), "number"},
		"a truth that is a number":     {"BatchRotatingKVCache", tuple(none, none, numbers(0), numbers(0), number(4), number(0), number(0), number(1)), "field 7 is not a truth value"},
		"rows of a batched ring":       {"BatchRotatingKVCache", tuple(kv, kv, numbers(0, 0), numbers(0, 0), number(4), number(0), number(0), yes), "number"},
		"bits that are none":           {"QuantizedKVCache", quantized(none, none, 32, 7), "bits 7"},
		"a group that is none":         {"QuantizedKVCache", quantized(q, q, 16, 4), "group size and bits"},
		"planes of other bits":         {"QuantizedKVCache", quantized(q, q, 32, 8), "group size and bits"},
		"one plane":                    {"QuantizedKVCache", quantized(tuple(q.List[0]), q, 32, 4), "group size and bits"},
		"planes that are one array":    {"QuantizedKVCache", quantized(kv, q, 32, 4), "alone"},
		"planes in another order":      {"QuantizedKVCache", quantized(tuple(q.List[1], q.List[0], q.List[2]), q, 32, 4), "group size and bits"},
		"biases of another type":       {"QuantizedKVCache", quantized(tuple(q.List[0], q.List[1], tensor(ring.Float16, 1, 2, 3, 1)), q, 32, 4), "fit"},
		"biases of another width":      {"QuantizedKVCache", quantized(tuple(q.List[0], q.List[1], tensor(ring.BFloat16, 1, 2, 3, 2)), q, 32, 4), "group size and bits"},
		"slots that are one array":     {"ArraysCache", tuple(kv, none, none), "field 0 is not a list of slots"},
		"a slot that is a text":        {"ArraysCache", tuple(tuple(text("x")), none, none), "field 0 is not made of arrays"},
		"lengths that are an array":    {"ArraysCache", tuple(tuple(), none, kv), "field 2 is not a list of numbers"},
		"nothing joined":               {"ConcatenateKVCache", tuple(none, none), "no columns"},
		"a child that is no pair":      {"CacheList", tuple(tuple(tuple(none, none, number(0)))), "child"},
		"a child that is a number":     {"CacheList", tuple(number(1)), "child"},
		"a child without a class":      {"CacheList", tuple(tuple(tuple(none, none, number(0)), number(1))), "child"},
		"a child of no class":          {"CacheList", tuple(tuple(tuple(), text("x"))), "no such class"},
		"a child that is broken":       {"CacheList", tuple(tuple(tuple(none), text("KVCache"))), "too few"},
		"no semantics":                 {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[0] = none }), "semantics"},
		"semantics that are none":      {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[0] = text("both") }), "semantics"},
		"a window of 0":                {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[3] = number(0) }), "out of range"},
		"a negative position":          {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[6] = number(-1) }), "out of range"},
		"a negative total":             {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[7] = number(-1) }), "out of range"},
		"negative left padding":        {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[5] = numbers(0, -1) }), "negative"},
		"a position past the buffer":   {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[6] = number(1) }), "outside"},
		"wrapped without columns":      {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[8] = yes }), "outside"},
		"ends of one row":              {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[9] = numbers(1) }), "ends"},
		"sinks":                        {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[10] = number(1) }), "sinks"},
		"half a format":                {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[11] = number(32) }), "bits 0"},
		"left padding of one row":      {"ringcheck.BatchRotatingKVCache", ringOf(func(v []reference.Value) { v[5] = numbers(0) }), "number"},
		"two rows":                     {"ringcheck.RotatingKVCache", ringOf(func([]reference.Value) {}), "one row"},
		"no rows":                      {"ringcheck.RotatingKVCache", serialOf(func(v []reference.Value) { v[4], v[5] = numbers(), numbers() }), "one row"},
		"no left padding":              {"ringcheck.RotatingKVCache", serialOf(func(v []reference.Value) { v[5] = numbers() }), "number"},
		"left padding":                 {"ringcheck.RotatingKVCache", serialOf(func(v []reference.Value) { v[5] = numbers(1) }), "one row"},
		"pending":                      {"ringcheck.RotatingKVCache", serialOf(func(v []reference.Value) { v[9] = numbers(1) }), "one row"},
		"another total":                {"ringcheck.RotatingKVCache", serialOf(func(v []reference.Value) { v[7] = number(1) }), "one row"},
		"recurrent rows that differ":   {"ringcheck.BatchRecurrent", tuple(tuple(k(2, 3)), numbers(0), none, none), "slot"},
		"recurrent padding alone":      {"ringcheck.BatchRecurrent", tuple(noSub, numbers(0), numbers(0), none), "lengths"},
		"recurrent padding of two":     {"ringcheck.BatchRecurrent", tuple(noSub, numbers(0), numbers(0, 1), numbers(0, 1)), "padding"},
	} {
		c, err := reference.FromState(test.class, test.v)
		var state *reference.StateError
		if c != nil || !errors.As(err, &state) || ring.CodeOf(err) != "raises" || !strings.Contains(err.Error(), test.says) || len(err.Error()) > 500 {
			t.Errorf("%s: %v, %v; want it to say %q", name, c, err, test.says)
		}
	}
	// A list of numbers without elements may be one of floats.
	empty := tensor(ring.Float32, 0)
	c := must(reference.FromState("BatchKVCache", tuple(none, none, empty, empty, number(0)))).(*reference.BatchKVCache)
	same(t, "offsets", c.Offsets(), []int{})
}

func TestNewSnapshot(t *testing.T) {
	c := batch(t, ring.Exact, 4, 0, 1)
	feed(t, c, []int{1, 2}, []int{pad, 11})
	ok(t, c.Prepare(right([]int{1, 0}, []int{0, 1})))
	s := must(reference.NewSnapshot(ring.Exact, false, 0, reference.Format{}, c.Position(), c.Columns()))
	d := must(reference.AdoptBatchRotating(s))
	d.Step = c.Step
	c.Release()
	same(t, "adopted", look(d), look(c))
	k := serial(t, ring.MLXLM, 4, 2)
	script(t, k, span(1, 5), []int{6})
	single := must(reference.NewSnapshot(ring.MLXLM, true, 2, reference.Format{}, k.Position(), k.Columns()))
	e := must(reference.AdoptRotating(single))
	e.Step = k.Step
	same(t, "adopted", look(e), look(k))
	p := c.Position()
	p.Idx = 99
	s, err := reference.NewSnapshot(ring.Exact, false, 0, reference.Format{}, p, c.Columns())
	var refused *reference.StateError
	if s != nil || !errors.As(err, &refused) {
		t.Errorf("a position outside the buffer: %v, %v", s, err)
	}
}

// drawHostile draws a number that is more often odd than good.
func drawHostile(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(-6, 9), rapid.SampledFrom([]int{-1 << 24, 1 << 16, -300, 300})).Draw(t, "number")
}

// mutate changes one node of a state.
func mutate(t *rapid.T, v reference.Value) reference.Value {
	if v.Kind == reference.ListValue && len(v.List) > 0 && rapid.IntRange(0, 9).Draw(t, "here") > 0 {
		v.List = slices.Clone(v.List)
		i := rapid.IntRange(0, len(v.List)-1).Draw(t, "field")
		v.List[i] = mutate(t, v.List[i])
		return v
	}
	switch v.Kind {
	case reference.IntValue:
		v.Int = drawHostile(t)
	case reference.BoolValue:
		v.Int = 1 - v.Int
	case reference.IntsValue:
		v.Ints = slices.Clone(v.Ints)
		for i := range v.Ints {
			v.Ints[i] = drawHostile(t)
		}
		if rapid.IntRange(0, 5).Draw(t, "longer") == 0 {
			v.Ints = append(v.Ints, 0)
		}
	case reference.TensorValue:
		v.Tensor.Shape = slices.Clone(v.Tensor.Shape)
		if len(v.Tensor.Shape) > 0 {
			v.Tensor.Shape[rapid.IntRange(0, len(v.Tensor.Shape)-1).Draw(t, "axis")] = rapid.IntRange(-1, 5).Draw(t, "extent")
		}
		n := v.Tensor.DType.Size()
		for _, d := range v.Tensor.Shape {
			n *= max(0, d)
		}
		v.Tensor.Data = make([]byte, n)
	default:
		v = rapid.SampledFrom([]reference.Value{none, number(1), numbers(0), text("x"), tuple(), tensor(ring.Float32, 1, 1, 2, 4)}).Draw(t, "value")
	}
	return v
}

// TestHostileStates: whatever comes back from a state that was tampered with
// answers all its methods, and panics in none.
func TestHostileStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := lived(t)
		class, v := reference.State(c)
		for range rapid.IntRange(1, 2).Draw(t, "changes") {
			v = mutate(t, v)
		}
		d, err := reference.FromState(class, v)
		if err != nil {
			return
		}
		poke(t, d)
	})
}

// TestHostileArguments: no method of any cache panics, whatever it is given.
func TestHostileArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { poke(t, lived(t)) })
}

// poke calls methods at random, with arguments that make no sense.
func poke(t *rapid.T, c reference.Cache) {
	var log []string
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%T panics after %v: %v", c, log, p)
		}
	}()
	list := func() []int {
		return rapid.OneOf(rapid.Just[[]int](nil), rapid.SliceOfN(rapid.Custom(drawHostile), 0, 4)).Draw(t, "list")
	}
	for i := range rapid.IntRange(1, 10).Draw(t, "calls") {
		v := reflect.ValueOf(c)
		m := rapid.IntRange(-6, v.NumMethod()-1).Draw(t, "method")
		name := "package function"
		if m >= 0 {
			name = v.Type().Method(m).Name
		}
		log = append(log, name)
		keys, values := columns(i, ring.BFloat16, rapid.IntRange(0, 3).Draw(t, "rows"), rapid.IntRange(0, 4).Draw(t, "columns"), rapid.SampledFrom([]int{1, 4, 32}).Draw(t, "width"))
		pad := reference.Padding{LeftPadding: list(), Lengths: list(), RightPadding: list()}
		n := drawHostile(t)
		switch m {
		case -1:
			_ = one(reference.Merge([]reference.Cache{c, c}))
			continue
		case -2:
			_ = reference.Extend(c, c)
			continue
		case -3:
			_ = one(reference.MergeRows([]reference.Cache{c}))
			continue
		case -4:
			_ = one(reference.TrimPromptCache([]reference.Cache{c, c}, n))
			continue
		case -5:
			_ = one(reference.Merge([]reference.Cache{c, lived(t)}))
			continue
		case -6:
			_ = reference.Extend(c, lived(t))
			continue
		}
		method := v.Method(m)
		var args []reflect.Value
		for k := range method.Type().NumIn() {
			switch in := method.Type().In(k); in {
			case reflect.TypeFor[int]():
				if name == "Mask" || name == "Advance" {
					n = max(-9, min(n, 9))
				}
				if name == "At" {
					n = 0
				}
				args = append(args, reflect.ValueOf(n))
			case reflect.TypeFor[*int]():
				args = append(args, reflect.ValueOf(rapid.SampledFrom([]*int{nil, &n}).Draw(t, "pointer")))
			case reflect.TypeFor[bool]():
				args = append(args, reflect.ValueOf(n%2 == 0))
			case reflect.TypeFor[float64]():
				args = append(args, reflect.ValueOf(float64(n)))
			case reflect.TypeFor[[]int]():
				args = append(args, reflect.ValueOf(list()))
			case reflect.TypeFor[reference.Padding]():
				args = append(args, reflect.ValueOf(pad))
			case reflect.TypeFor[ring.Array]():
				a := keys
				if k == 1 {
					a = values
				}
				args = append(args, reflect.ValueOf(a))
			case reflect.TypeFor[ring.Tensor]():
				args = append(args, reflect.ValueOf(keys.Tensor()))
			case reflect.TypeFor[*ring.Mask]():
				args = append(args, reflect.ValueOf(rapid.SampledFrom([]*ring.Mask{nil, {}, {B: 1, N: 1, S: 2, Data: make([]bool, 2)}}).Draw(t, "mask")))
			case reflect.TypeFor[reference.Format]():
				args = append(args, reflect.ValueOf(reference.Format{GroupSize: 32, Bits: n}))
			case reflect.TypeFor[*reference.Snapshot]():
				s := must(reference.NewRotatingKVCache(ring.MLXLM, 4, 0)).Snapshot()
				if own, ok := c.(interface{ Snapshot() *reference.Snapshot }); ok && n > 0 {
					s = own.Snapshot()
				}
				args = append(args, reflect.ValueOf(s))
			default:
				if !in.Implements(reflect.TypeFor[reference.Cache]()) {
					t.Fatalf("%s takes a %v", name, in)
				}
				args = append(args, v) // of itself
			}
		}
		if name == "At" && c.(*reference.CacheList).Len() == 0 {
			continue
		}
		for _, result := range method.Call(args) {
			if err, ok := result.Interface().(error); ok && ring.CodeOf(err) == "" {
				t.Fatalf("%s answers %v, an error without a code", name, err)
			}
		}
	}
	_ = fmt.Sprint(reference.State(c))
}
