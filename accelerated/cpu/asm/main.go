// Command asm generates the AVX2 kernels of package cpu:
//
//	go run . -out ../kernels_amd64.s -stubs ../stubs_amd64.go -pkg cpu
//
// Each function computes the same bytes as its twin in plain Go: products and
// sums are separate instructions in the twin's order, and eight lanes are the
// twin's eight sums.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	permutation = GLOBL("permutation", RODATA|NOPTR)
	for i, eighth := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(4*i, U32(eighth))
	}
	widening = GLOBL("widening", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(0x00008080|uint32(2*i)<<16|uint32(2*i+1)<<24))
	}
	stream()
	scatter()
	fence()
	for _, t := range types {
		widen(t)
		scales(t)
		pack(t)
		dequantize(t)
	}
	narrow()
	for _, t := range []elements{types[0], types[2]} {
		dots(t)
		accumulate(t)
	}
	exps()
	Generate()
}

// elements is a data type: how eight of its elements are loaded as float32, and
// how eight float32 are rounded to it.
type elements struct {
	name    string
	size    int
	stored  bool   // in a store, whose rows are not in the cache; a tile is
	prepare func() // comes before load in a function
	load    func(m Mem, to VecVirtual)
	round   func(v VecVirtual)
}

var types = []elements{
	{"BFloat16", 2, true, prepareWidening, widenBFloat16, roundBFloat16},
	{"Float16", 2, true, func() {}, func(m Mem, to VecVirtual) { VCVTPH2PS(m, to) }, func(v VecVirtual) {
		half := XMM()
		VCVTPS2PH(U8(0), v, half)
		VCVTPH2PS(half, v)
	}},
	{"Float32", 4, false, func() {}, func(m Mem, to VecVirtual) { VMOVUPS(m, to) }, func(VecVirtual) {}},
}

// wide holds the constant of widenBFloat16.
var wide VecVirtual

func prepareWidening() {
	wide = YMM()
	VMOVDQU(widening, wide)
}

// widenBFloat16 puts zeros below eight elements. The load that fills both halves
// is no dearer than a plain one, and saves what would move elements across.
func widenBFloat16(m Mem, to VecVirtual) {
	VBROADCASTI128(m, to)
	VPSHUFB(wide, to, to)
}

// widening selects the elements of each half, each into the upper bytes of four.
var widening Mem

// constant is a float32 in all eight lanes.
func constant(bits uint32) VecVirtual {
	v, r := YMM(), GP32()
	MOVL(U32(bits), r)
	VMOVD(r, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

func float(f float32) VecVirtual { return constant(math.Float32bits(f)) }

// rounding holds the constants of roundBFloat16; a function that uses it calls
// prepareRounding first.
var rounding struct{ half, one, high VecVirtual }

func prepareRounding(t elements) {
	if t.name == "BFloat16" {
		rounding.half, rounding.one, rounding.high = constant(0x7FFF), constant(1), constant(0xFFFF0000)
	}
}

// roundBFloat16 rounds to nearest, ties to even; a NaN stays one.
func roundBFloat16(v VecVirtual) {
	nan, odd := YMM(), YMM()
	VCMPPS(U8(3), v, v, nan) // unordered
	VPSRLD(U8(16), v, odd)
	VPAND(rounding.one, odd, odd)
	VPADDD(rounding.half, odd, odd)
	VPADDD(odd, v, v)
	VPAND(rounding.high, v, v)
	VPOR(nan, v, v)
}

// stream copies n bytes, 32 at least, past the cache. The regions may overlap
// if dst is 32 bytes or more below src.
func stream() {
	TEXT("streamAVX2", NOSPLIT, "func(dst, src *byte, n int)")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	streamBody("stream", dst.(GPVirtual), src.(GPVirtual), n.(GPVirtual))
	VZEROUPPER()
	RET()
}

// streamBody changes its registers.
func streamBody(label string, dst, src, n GPVirtual) {
	first, last := YMM(), YMM()
	end, skip := GP64(), GP64()
	MOVQ(dst, skip)
	NEGQ(skip)
	ANDQ(U32(31), skip)
	JE(LabelRef(label + "Aligned"))
	// On to the next multiple of 32 of dst.
	VMOVDQU(Mem{Base: src}, first)
	VMOVDQU(first, Mem{Base: dst})
	ADDQ(skip, dst)
	ADDQ(skip, src)
	SUBQ(skip, n)
	Label(label + "Aligned")
	LEAQ(Mem{Base: dst, Index: n, Scale: 1}, end)

	var v [4]VecVirtual
	for i := range v {
		v[i] = YMM()
	}
	Label(label + "Loop")
	CMPQ(n, U32(128))
	JLT(LabelRef(label + "Rest"))
	for i := range v {
		VMOVDQU(Mem{Base: src, Disp: 32 * i}, v[i])
	}
	for i := range v {
		VMOVNTDQ(v[i], Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(U32(128), src)
	ADDQ(U32(128), dst)
	SUBQ(U32(128), n)
	JMP(LabelRef(label + "Loop"))

	Label(label + "Rest")
	CMPQ(n, U32(32))
	JLT(LabelRef(label + "Last"))
	VMOVDQU(Mem{Base: src}, v[0])
	VMOVNTDQ(v[0], Mem{Base: dst})
	ADDQ(U32(32), src)
	ADDQ(U32(32), dst)
	SUBQ(U32(32), n)
	JMP(LabelRef(label + "Rest"))

	Label(label + "Last")
	CMPQ(n, U32(0))
	JE(LabelRef(label + "Done"))
	// The last 32 bytes, some of them for the second time.
	VMOVDQU(Mem{Base: src, Index: n, Scale: 1, Disp: -32}, last)
	VMOVDQU(last, Mem{Base: end, Disp: -32})
	Label(label + "Done")
}

// scatter is stream for count strips of n bytes.
func scatter() {
	TEXT("scatterAVX2", NOSPLIT, "func(dst, src *byte, dstStride, srcStride, n, count int)")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()).(GPVirtual), Load(Param("src"), GP64()).(GPVirtual)
	dstStride, srcStride := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	n, count := Load(Param("n"), GP64()), Load(Param("count"), GP64())
	Label("scatterLoop")
	d, s, left := GP64(), GP64(), GP64()
	MOVQ(dst, d)
	MOVQ(src, s)
	MOVQ(n, left)
	streamBody("strip", d, s, left)
	ADDQ(dstStride, dst)
	ADDQ(srcStride, src)
	DECQ(count)
	JNE(LabelRef("scatterLoop"))
	VZEROUPPER()
	RET()
}

// fence makes what stream has stored visible before what is stored next.
func fence() {
	TEXT("fenceAVX2", NOSPLIT, "func()")
	SFENCE()
	RET()
}

// widen turns n elements, a multiple of 8, into float32.
func widen(t elements) {
	TEXT("widen"+t.name+"AVX2", NOSPLIT, "func(dst *float32, src *byte, n int)")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	t.prepare()
	v := YMM()
	i := GP64()
	XORQ(i, i)
	Label("widen" + t.name)
	t.load(Mem{Base: src, Index: i, Scale: uint8(t.size)}, v)
	VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 4})
	ADDQ(U32(8), i)
	CMPQ(i, n)
	JLT(LabelRef("widen" + t.name))
	VZEROUPPER()
	RET()
}

// fold combines the lanes of v into its lowest, in the order of the twins: 4 to
// 7 with 0 to 3, 2 and 3 with 0 and 1, 1 with 0.
func fold(v VecVirtual, combine func(a, b, to Register)) Register {
	low, high := v.AsX(), XMM()
	VEXTRACTF128(Imm(1), v, high)
	combine(low, high, low)
	VSHUFPS(Imm(0x0E), low, low, high)
	combine(low, high, low)
	VSHUFPS(Imm(0x01), low, low, high)
	combine(low, high, low)
	return low
}

// scales finds the scale and the bias, unrounded, of each of n groups of size
// elements, a multiple of 32. It writes eight at a time: up to 7 behind the last
// are overwritten.
func scales(t elements) {
	TEXT("scales"+t.name+"AVX2", NOSPLIT, "func(scales, biases *float32, src *byte, size, n int, largest float32)")
	Pragma("noescape")
	scales, biases := Load(Param("scales"), GP64()), Load(Param("biases"), GP64())
	src := Load(Param("src"), GP64())
	size, n := Load(Param("size"), GP64()), Load(Param("n"), GP64())
	t.prepare()

	// First the least and the greatest element of each group, in the place of
	// scales and biases.
	low0, high0 := constant(0x7F800000), constant(0xFF800000)
	group := GP64()
	XORQ(group, group)
	Label("scales" + t.name + "Group")
	low, high := YMM(), YMM()
	low2, high2 := YMM(), YMM()
	VMOVAPS(low0, low)
	VMOVAPS(high0, high)
	VMOVAPS(low0, low2)
	VMOVAPS(high0, high2)
	left := GP64()
	MOVQ(size, left)
	Label("scales" + t.name + "Elements")
	a, b := YMM(), YMM()
	t.load(Mem{Base: src}, a)
	t.load(Mem{Base: src, Disp: 8 * t.size}, b)
	// The smaller of an element and what came before it: where the element is
	// NaN, the instruction gives what came before, its first operand here.
	VMINPS(low, a, low)
	VMAXPS(high, a, high)
	VMINPS(low2, b, low2)
	VMAXPS(high2, b, high2)
	ADDQ(U32(16*t.size), src)
	SUBQ(U32(16), left)
	JNE(LabelRef("scales" + t.name + "Elements"))
	VMINPS(low2, low, low)
	VMAXPS(high2, high, high)
	VMOVSS(fold(low, func(a, b, to Register) { VMINPS(b, a, to) }), Mem{Base: scales, Index: group, Scale: 4})
	VMOVSS(fold(high, func(a, b, to Register) { VMAXPS(b, a, to) }), Mem{Base: biases, Index: group, Scale: 4})
	INCQ(group)
	CMPQ(group, n)
	JLT(LabelRef("scales" + t.name + "Group"))

	// Then the arithmetic, eight groups at once.
	smallest, sign, largest, zero := float(1e-7), constant(0x80000000), YMM(), YMM()
	l, err := Param("largest").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(l.Addr, largest)
	VXORPS(zero, zero, zero)
	Label("scales" + t.name + "Eight")
	mn, mx := YMM(), YMM()
	VMOVUPS(Mem{Base: scales}, mn)
	VMOVUPS(Mem{Base: biases}, mx)
	scale, bias, edge, near, x := YMM(), YMM(), YMM(), YMM(), YMM()
	VSUBPS(mn, mx, scale)
	VDIVPS(largest, scale, scale)
	VMAXPS(scale, smallest, scale) // a NaN stays
	// near: the lower end is the farther one from zero, |low| > |high|.
	VANDNPS(mn, sign, edge)
	VANDNPS(mx, sign, x)
	VCMPPS(Imm(30), x, edge, near)
	VANDNPS(sign, near, x)
	VXORPS(x, scale, scale)
	VBLENDVPS(near, mn, mx, edge)
	VDIVPS(scale, edge, x)
	VROUNDPS(Imm(8), x, x)
	VDIVPS(x, edge, bias)
	VCMPPS(Imm(4), zero, x, near) // not 0, or NaN
	VBLENDVPS(near, bias, scale, scale)
	VANDPS(near, edge, bias)
	VMOVUPS(scale, Mem{Base: scales})
	VMOVUPS(bias, Mem{Base: biases})
	ADDQ(U32(32), scales)
	ADDQ(U32(32), biases)
	SUBQ(U32(8), n)
	JG(LabelRef("scales" + t.name + "Eight"))
	VZEROUPPER()
	RET()
}

// pack writes the codes of n groups of size elements, a multiple of 32. Each 8
// codes are stored as 8 bytes, bits of which count: up to 6 bytes behind the
// last are overwritten. spread selects bits of each byte.
func pack(t elements) {
	TEXT("pack"+t.name+"AVX2", NOSPLIT, "func(dst, src *byte, scales, biases *float32, size, n, bits int, spread uint64, largest float32)")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	scales, biases := Load(Param("scales"), GP64()), Load(Param("biases"), GP64())
	size, n, bits := Load(Param("size"), GP64()), Load(Param("n"), GP64()), Load(Param("bits"), GP64())
	spread := Load(Param("spread"), GP64())
	largest, zero, order := YMM(), YMM(), YMM()
	l, err := Param("largest").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(l.Addr, largest)
	VXORPS(zero, zero, zero)
	// Packing works within halves; this puts the eighths in order.
	VMOVDQU(permutation, order)
	t.prepare()
	TESTQ(n, n)
	JE(LabelRef("pack" + t.name + "End"))

	Label("pack" + t.name + "Group")
	scale, bias := YMM(), YMM()
	VBROADCASTSS(Mem{Base: scales}, scale)
	VBROADCASTSS(Mem{Base: biases}, bias)
	ADDQ(U32(4), scales)
	ADDQ(U32(4), biases)
	left := GP64()
	MOVQ(size, left)
	Label("pack" + t.name + "Elements")
	var v [4]VecVirtual
	for i := range v {
		v[i] = YMM()
		t.load(Mem{Base: src, Disp: 8 * i * t.size}, v[i])
		VSUBPS(bias, v[i], v[i])
		VDIVPS(scale, v[i], v[i])
		VMAXPS(zero, v[i], v[i]) // a NaN becomes 0
		VMINPS(largest, v[i], v[i])
		VCVTPS2DQ(v[i], v[i]) // to the nearest, ties to even
	}
	VPACKUSDW(v[1], v[0], v[0])
	VPACKUSDW(v[3], v[2], v[2])
	VPACKUSWB(v[2], v[0], v[0])
	VPERMD(v[0], order, v[0])
	half := XMM()
	VEXTRACTI128(Imm(1), v[0], half)
	for i, from := range []Register{v[0].AsX(), v[0].AsX(), half, half} {
		codes := GP64()
		if i%2 == 0 {
			VMOVQ(from, codes)
		} else {
			VPEXTRQ(Imm(1), from, codes)
		}
		PEXTQ(spread, codes, codes)
		MOVQ(codes, Mem{Base: dst})
		ADDQ(bits, dst)
	}
	ADDQ(U32(32*t.size), src)
	SUBQ(U32(32), left)
	JNE(LabelRef("pack" + t.name + "Elements"))
	DECQ(n)
	JNE(LabelRef("pack" + t.name + "Group"))
	Label("pack" + t.name + "End")
	VZEROUPPER()
	RET()
}

// permutation undoes the order of two packs.
var permutation Mem

// dequantize turns the codes of n groups of size elements into values. It reads
// up to 7 bytes behind the last code.
func dequantize(t elements) {
	TEXT("dequantize"+t.name+"AVX2", NOSPLIT, "func(dst *float32, codes *byte, scales, biases *float32, size, n, bits int, spread uint64)")
	Pragma("noescape")
	dst, codes := Load(Param("dst"), GP64()), Load(Param("codes"), GP64())
	scales, biases := Load(Param("scales"), GP64()), Load(Param("biases"), GP64())
	size, n, bits := Load(Param("size"), GP64()), Load(Param("n"), GP64()), Load(Param("bits"), GP64())
	spread := Load(Param("spread"), GP64())
	prepareRounding(t)

	Label("dequantize" + t.name + "Group")
	scale, bias := YMM(), YMM()
	VBROADCASTSS(Mem{Base: scales}, scale)
	VBROADCASTSS(Mem{Base: biases}, bias)
	ADDQ(U32(4), scales)
	ADDQ(U32(4), biases)
	left := GP64()
	MOVQ(size, left)
	Label("dequantize" + t.name + "Elements")
	c, v := GP64(), YMM()
	MOVQ(Mem{Base: codes}, c)
	PDEPQ(spread, c, c)
	VMOVQ(c, v.AsX())
	VPMOVZXBD(v.AsX(), v)
	VCVTDQ2PS(v, v)
	VMULPS(scale, v, v)
	t.round(v)
	VADDPS(bias, v, v)
	t.round(v)
	VMOVUPS(v, Mem{Base: dst})
	ADDQ(U32(32), dst)
	ADDQ(bits, codes)
	SUBQ(U32(8), left)
	JNE(LabelRef("dequantize" + t.name + "Elements"))
	DECQ(n)
	JNE(LabelRef("dequantize" + t.name + "Group"))
	VZEROUPPER()
	RET()
}

// rowsAhead is how many rows ahead of use dots and accumulate fetch what is
// stored. What lies behind the last row is fetched in vain.
const rowsAhead = 8

// dots is the kernel of that name: n rows of size elements, a multiple of 8.
func dots(t elements) {
	TEXT("dots"+t.name+"AVX2", NOSPLIT, "func(scores, query *float32, rows *byte, size, n int)")
	Pragma("noescape")
	scores, query, rows := Load(Param("scores"), GP64()), Load(Param("query"), GP64()), Load(Param("rows"), GP64())
	size, n := Load(Param("size"), GP64()), Load(Param("n"), GP64())
	stride := GP64()
	IMUL3Q(U8(t.size), size, stride)
	t.prepare()

	// sums takes so many rows at once, whose sums do not wait for each other.
	sums := func(label string, count int, store func(sums []VecVirtual)) {
		label += t.name
		Label(label)
		CMPQ(n, U32(count))
		JLT(LabelRef(label + "End"))
		i, next := GP64(), GP64()
		XORQ(i, i)
		MOVQ(rows, next)
		var at []Mem
		var sums []VecVirtual
		for range count {
			row, s := GP64(), YMM()
			MOVQ(next, row)
			ADDQ(stride, next)
			at = append(at, Mem{Base: row, Index: i, Scale: uint8(t.size)})
			VXORPS(s, s, s)
			sums = append(sums, s)
		}
		ahead := GP64()
		LEAQ(Mem{Base: rows, Index: stride, Scale: rowsAhead}, ahead)
		Label(label + "Elements")
		if t.stored {
			PREFETCHT0(Mem{Base: ahead, Index: i, Scale: uint8(count * t.size)})
		}
		q := YMM()
		VMOVUPS(Mem{Base: query, Index: i, Scale: 4}, q)
		for r, s := range sums {
			p := YMM()
			t.load(at[r], p)
			VMULPS(q, p, p)
			VADDPS(p, s, s)
		}
		ADDQ(U32(8), i)
		CMPQ(i, size)
		JLT(LabelRef(label + "Elements"))
		store(sums)
		MOVQ(next, rows)
		ADDQ(U32(4*count), scores)
		SUBQ(U32(count), n)
		JMP(LabelRef(label))
		Label(label + "End")
	}
	sums("dotsFour", 4, func(s []VecVirtual) {
		VMOVUPS(foldFour(s), Mem{Base: scores})
	})
	sums("dotsOne", 1, func(s []VecVirtual) {
		VMOVSS(fold(s[0], func(a, b, to Register) { VADDPS(b, a, to) }), Mem{Base: scores})
	})
	VZEROUPPER()
	RET()
}

// foldFour is the sums of the lanes of four vectors, in the order of fold. It
// changes them.
func foldFour(v []VecVirtual) Register {
	x := YMM()
	for i := range 2 { // into each half the sums of one vector
		VPERM2F128(Imm(0x31), v[2+i], v[i], x)
		VINSERTF128(Imm(1), v[2+i].AsX(), v[i], v[i])
		VADDPS(x, v[i], v[i])
	}
	VUNPCKHPD(v[1], v[0], x)
	VUNPCKLPD(v[1], v[0], v[0])
	VADDPS(x, v[0], v[0])
	VSHUFPS(Imm(0xDD), v[0], v[0], x)
	VSHUFPS(Imm(0x88), v[0], v[0], v[0])
	VADDPS(x, v[0], v[0])
	VEXTRACTF128(Imm(1), v[0], x.AsX())
	VMOVLHPS(x.AsX(), v[0].AsX(), x.AsX())
	return x.AsX()
}

// exps is the kernel of that name for n elements, a multiple of 8.
func exps() {
	TEXT("expsAVX2", NOSPLIT, "func(x *float32, n int, most float32)")
	Pragma("noescape")
	at, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	most := YMM()
	m, err := Param("most").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(m.Addr, most)
	lowest, log2e, round := float(-87), float(math.Log2E), float(0x1.8p23)
	high, low := float(0x1.63p-1), float(math.Ln2-0x1.63p-1)
	one := float(1)
	var terms []VecVirtual
	for _, c := range []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		terms = append(terms, float(c))
	}
	Label("expsLoop")
	x, k, r, p, t := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: at}, x)
	VSUBPS(most, x, x)
	VMAXPS(x, lowest, x) // a NaN stays
	VMULPS(log2e, x, k)
	VADDPS(round, k, k)
	VSUBPS(round, k, k)
	VMULPS(high, k, t)
	VSUBPS(t, x, r)
	VMULPS(low, k, t)
	VSUBPS(t, r, r)
	VMULPS(r, terms[0], p)
	VADDPS(terms[1], p, p)
	for _, c := range terms[2:] {
		VMULPS(r, p, p)
		VADDPS(c, p, p)
	}
	VMULPS(r, p, p)
	VMULPS(r, p, p)
	VADDPS(r, p, p)
	VADDPS(one, p, p)
	VCVTPS2DQ(k, k)
	VPSLLD(Imm(23), k, k)
	VPADDD(k, p, p)
	VMOVUPS(p, Mem{Base: at})
	ADDQ(U32(32), at)
	SUBQ(U32(8), n)
	JNE(LabelRef("expsLoop"))
	VZEROUPPER()
	RET()
}

// accumulate is the kernel of that name: n rows of size elements, a multiple
// of 8.
func accumulate(t elements) {
	TEXT("accumulate"+t.name+"AVX2", NOSPLIT, "func(sums, weights *float32, rows *byte, size, n int)")
	Pragma("noescape")
	sums, weights, rows := Load(Param("sums"), GP64()), Load(Param("weights"), GP64()), Load(Param("rows"), GP64())
	size, n := Load(Param("size"), GP64()), Load(Param("n"), GP64())
	stride := GP64()
	IMUL3Q(U8(t.size), size, stride)
	t.prepare()
	// Some vectors of the sums stay in registers over all rows.
	vectors := func(label string, count int) {
		label += t.name
		Label(label)
		CMPQ(size, U32(8*count))
		JLT(LabelRef(label + "End"))
		var s []VecVirtual
		for i := range count {
			v := YMM()
			VMOVUPS(Mem{Base: sums, Disp: 32 * i}, v)
			s = append(s, v)
		}
		i, row := GP64(), GP64()
		XORQ(i, i)
		MOVQ(rows, row)
		Label(label + "Rows")
		for line := 0; t.stored && line < 8*t.size*count; line += 64 {
			PREFETCHT0(Mem{Base: row, Index: stride, Scale: rowsAhead, Disp: line})
		}
		w := YMM()
		VBROADCASTSS(Mem{Base: weights, Index: i, Scale: 4}, w)
		for j := range count {
			p := YMM()
			t.load(Mem{Base: row, Disp: 8 * t.size * j}, p)
			VMULPS(w, p, p)
			VADDPS(p, s[j], s[j])
		}
		ADDQ(stride, row)
		INCQ(i)
		CMPQ(i, n)
		JLT(LabelRef(label + "Rows"))
		for j := range count {
			VMOVUPS(s[j], Mem{Base: sums, Disp: 32 * j})
		}
		ADDQ(U32(32*count), sums)
		ADDQ(U32(8*t.size*count), rows)
		SUBQ(U32(8*count), size)
		JMP(LabelRef(label))
		Label(label + "End")
	}
	vectors("accumulateEight", 8)
	vectors("accumulateOne", 1)
	VZEROUPPER()
	RET()
}

// narrow rounds eight float32 to each data type; every NaN becomes the one of
// the twin.
func narrow() {
	start := func(name string) (GPVirtual, VecVirtual, VecVirtual) {
		TEXT("narrow"+name+"AVX2", NOSPLIT, "func(dst *byte, src *float32)")
		Pragma("noescape")
		dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
		v, nan := YMM(), YMM()
		VMOVUPS(Mem{Base: src}, v)
		VCMPPS(Imm(3), v, v, nan)
		return dst.(GPVirtual), v, nan
	}
	end := func() {
		VZEROUPPER()
		RET()
	}
	dst, v, nan := start("BFloat16")
	prepareRounding(types[0])
	odd := YMM()
	VPSRLD(Imm(16), v, odd)
	VPAND(rounding.one, odd, odd)
	VPADDD(rounding.half, odd, odd)
	VPADDD(odd, v, v)
	VPSRLD(Imm(16), v, v)
	VBLENDVPS(nan, constant(0x7FC0), v, v)
	VEXTRACTI128(Imm(1), v, odd.AsX())
	VPACKUSDW(odd.AsX(), v.AsX(), v.AsX())
	VMOVDQU(v.AsX(), Mem{Base: dst})
	end()

	dst, v, nan = start("Float16")
	VBLENDVPS(nan, constant(0x7FC00000), v, v)
	VCVTPS2PH(Imm(0), v, v.AsX())
	VMOVDQU(v.AsX(), Mem{Base: dst})
	end()

	dst, v, nan = start("Float32")
	VBLENDVPS(nan, constant(0x7FC00000), v, v)
	VMOVUPS(v, Mem{Base: dst})
	end()
}
