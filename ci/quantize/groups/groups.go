package groups

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// Kind is one way to make a group.
type Kind struct {
	Name string
	fill func(g *maker)
}

// Kinds are all of them.
var Kinds = []Kind{
	{"normal", func(g *maker) { g.each(g.normal) }},
	{"any bits", func(g *maker) { g.each(g.anyBits) }},
	{"any magnitude", func(g *maker) { g.each(g.anyMagnitude) }},
	{"element ties", (*maker).elementTies},
	{"zero ties", (*maker).zeroTies},
	{"small integers", (*maker).smallIntegers},
	{"all negative", func(g *maker) { g.each(func() uint32 { return g.normal() | g.sign }) }},
	{"all positive", func(g *maker) { g.each(func() uint32 { return g.normal() &^ g.sign }) }},
	{"all equal", (*maker).allEqual},
	{"zeros", func(g *maker) { g.each(g.zero) }},
	{"huge", (*maker).huge},
	{"largest", (*maker).largest},
	{"near epsilon", (*maker).nearEpsilon},
	{"subnormal", func(g *maker) { g.each(g.subnormal) }},
	{"one NaN", func(g *maker) { g.each(g.normal); g.put(g.nan) }},
	{"all NaN", func(g *maker) { g.each(g.nan) }},
	{"infinite", func(g *maker) { g.each(g.normal); g.put(g.infinite); g.put(g.infinite) }},
	{"any of these", (*maker).mixed},
}

// Make returns count groups of groupSize elements, an array of shape
// [1, 1, count, groupSize], hard to quantize to that many bits: group i is of
// kind Kinds[i % len(Kinds)].
func Make(rng *rand.Rand, t ring.DType, groupSize, bits, count int) ring.Array {
	g := newMaker(rng, t, groupSize, bits)
	data := make([]byte, 0, count*groupSize*t.Size())
	for i := range count {
		Kinds[i%len(Kinds)].fill(g)
		for _, element := range g.group {
			if t.Size() == 2 {
				data = binary.LittleEndian.AppendUint16(data, uint16(element))
			} else {
				data = binary.LittleEndian.AppendUint32(data, element)
			}
		}
	}
	return ring.Array{DType: t, Shape: [4]int{1, 1, count, groupSize}, Data: data}
}

// maker fills one group after the other. An element is the bits of its value
// in the data type.
type maker struct {
	rng       *rand.Rand
	t         ring.DType
	sign      uint32 // the sign bit
	inf       uint32 // the bits of +Inf
	fraction  uint32 // the number of values that a fraction has
	exponents int    // magnitudes from 2^-exponents to 2^exponents are normal numbers
	top       int    // the largest code
	group     []uint32
}

func newMaker(rng *rand.Rand, t ring.DType, groupSize, bits int) *maker {
	inf := reference.FloatBits(t, float32(math.Inf(1)))
	g := &maker{
		rng: rng, t: t,
		sign: 1 << (8*t.Size() - 1), inf: inf, fraction: inf & -inf, exponents: 120,
		top: 1<<bits - 1, group: make([]uint32, groupSize),
	}
	if t == ring.Float16 {
		g.exponents = 12
	}
	return g
}

// each fills the group with elements of one generator.
func (g *maker) each(element func() uint32) {
	for i := range g.group {
		g.group[i] = element()
	}
}

// put replaces one element.
func (g *maker) put(element func() uint32) {
	g.group[g.rng.IntN(len(g.group))] = element()
}

// ends replaces two elements with the ends of the range, and turns the sign of
// every element or of none.
func (g *maker) ends(low, high uint32) {
	at := g.between(0, len(g.group)-1)
	g.group[at] = low
	g.group[(at+g.between(1, len(g.group)-1))%len(g.group)] = high
	if g.rng.IntN(2) == 0 {
		for i := range g.group {
			g.group[i] ^= g.sign
		}
	}
}

func (g *maker) of(f float64) uint32 { return reference.FloatBits(g.t, float32(f)) }

// between returns a number from low to high, both included.
func (g *maker) between(low, high int) int { return low + g.rng.IntN(high-low+1) }

// power returns a power of two that leaves products with small integers normal.
func (g *maker) power() float64 { return math.Ldexp(1, g.between(-g.exponents, g.exponents-9)) }

func (g *maker) either(element uint32) uint32 { return element ^ g.sign*uint32(g.rng.IntN(2)) }

func (g *maker) normal() uint32       { return g.of(g.rng.NormFloat64()) }
func (g *maker) anyBits() uint32      { return g.rng.Uint32() & (g.sign<<1 - 1) }
func (g *maker) zero() uint32         { return g.either(0) }
func (g *maker) infinite() uint32     { return g.either(g.inf) }
func (g *maker) subnormal() uint32    { return g.either(g.rng.Uint32N(g.fraction)) }
func (g *maker) nan() uint32          { return g.either(g.inf + 1 + g.rng.Uint32N(g.fraction-1)) }
func (g *maker) anyMagnitude() uint32 { return g.of(g.rng.NormFloat64() * g.power()) }

// elementTies fills the group with multiples of half a scale which is a power
// of two, so that the codes of the odd ones are ties.
func (g *maker) elementTies() {
	scale, zero := g.power(), g.between(0, g.top)
	at := func(halves int) uint32 { return g.of(scale * (float64(halves)/2 - float64(zero))) }
	g.each(func() uint32 { return at(g.between(0, 2*g.top)) })
	g.ends(at(0), at(2*g.top))
}

// zeroTies makes the code of zero a tie: the ends are integers times a power of
// two, and the farther one, divided by the scale, is half way between two codes.
func (g *maker) zeroTies() {
	low, high := g.tiedEnds()
	unit := g.power()
	at := func(n int) uint32 { return g.of(unit * float64(n)) }
	g.each(func() uint32 { return at(g.between(-low, high)) })
	g.ends(at(-low), at(high))
}

// tiedEnds draws how far the two ends are from zero, in small integers. In the
// numbers, an odd low and high that add up to twice the largest code would all
// do, and so do these divided by what they have in common, of which more fit a
// narrow type; but the division by the scale has to come out exactly, too.
func (g *maker) tiedEnds() (low, high int) {
	for {
		low = 2*g.between(0, g.top-1) + 1
		high = 2*g.top - low
		divisor := gcd(low, high)
		low, high = low/divisor, high/divisor
		edge, scale := float32(max(low, high)), float32(low+high)/float32(g.top)
		tied := 2*float64(edge/scale) == float64(max(low, high)*divisor)
		if tied && reference.FloatFromBits(g.t, g.of(float64(edge))) == edge {
			return low, high
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (g *maker) smallIntegers() {
	unit := g.power()
	g.each(func() uint32 { return g.of(unit * float64(g.between(-5, 5))) })
}

func (g *maker) allEqual() {
	element := []func() uint32{g.normal, g.anyBits, g.anyMagnitude, g.subnormal}[g.rng.IntN(4)]()
	g.each(func() uint32 { return element })
}

// huge fills the group from where, in the wide types, an edge divided by the
// smallest scale is infinite; half of the groups are of one value.
func (g *maker) huge() {
	least := min(g.of(3.3e31), g.inf-g.fraction)
	element := func() uint32 { return least + g.rng.Uint32N(g.inf-least) }
	first := g.either(element())
	if g.rng.IntN(2) == 0 {
		g.each(func() uint32 { return first })
	} else {
		g.each(func() uint32 { return g.either(element()) })
	}
}

// largest makes ranges that overflow, or nearly do.
func (g *maker) largest() {
	g.each(g.anyMagnitude)
	for range g.between(1, 4) {
		g.put(func() uint32 { return g.either(g.inf - uint32(g.between(1, 3))) })
	}
}

// nearEpsilon makes ranges about as wide as the smallest scale times the
// codes, and edges of about half that scale.
func (g *maker) nearEpsilon() {
	width := 1e-7 * []float64{0.5, 1, float64(g.top)}[g.rng.IntN(3)]
	near := func() uint32 { return g.either(uint32(max(int(g.of(width))+g.between(-2, 2), 0))) }
	within := func() uint32 { return g.of(width * (2*g.rng.Float64() - 1)) }
	g.each([]func() uint32{g.zero, within}[g.rng.IntN(2)])
	for range g.between(1, 4) {
		g.put(near)
	}
}

// mixed draws each element on its own, from four values only.
func (g *maker) mixed() {
	from := []func() uint32{
		g.normal, g.anyBits, g.anyMagnitude, g.zero, g.infinite, g.subnormal, g.nan,
		func() uint32 { return g.either(g.inf - 1) },
		func() uint32 { return g.either(g.of(float64(g.between(0, 8)) / 2)) },
	}
	var values [4]uint32
	for i := range values {
		values[i] = from[g.rng.IntN(len(from))]()
	}
	g.each(func() uint32 { return values[g.rng.IntN(len(values))] })
}
