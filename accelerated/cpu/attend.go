package cpu

import (
	"encoding/binary"
	"math"
	"math/bits"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

const (
	tileColumns = 32 // most columns whose keys, then values, are taken at once
	// plainColumns is how many are where nothing is to be dequantized: reading
	// keys and values in turns goes fastest in short stretches.
	plainColumns = 16
	tileQueries  = 32 // queries, of all heads of a group, that share them
	// fewQueries is up to how many it costs less to widen columns for each anew
	// than to write a tile and read it back.
	fewQueries = 4
)

// attendTask computes attention. An item is one key head of one row for up to
// tileQueries of its queries.
type attendTask struct {
	kernels *kernels
	*accelerated.Attention
	columns int // a tile's
	group   int // query heads a key head
	blocks  int // items a key head
}

func (t *attendTask) run(d *Device, a *accelerated.Attention) {
	t.kernels, t.Attention = &d.kernels, a
	t.columns = tileColumns
	if a.Store.Quant.Bits == 0 {
		t.columns = plainColumns
	}
	t.group = a.Query.Shape[1] / a.Store.Heads
	t.blocks = (t.group*a.Query.Shape[2] + tileQueries - 1) / tileQueries
	items := a.Query.Shape[0] * a.Store.Heads * t.blocks
	d.workers.run(t, items, items*a.S*(a.Store.KeyDim+a.Store.ValueDim)*4)
	t.Attention = nil
}

// flash is the state of an item: it goes over the columns tile by tile, with a
// running maximum and a running sum of weights for each query.
type flash struct {
	*attendTask
	row, head, from, count int       // of the queries: heads of the group first
	keyDim, valueDim       int       // padded
	queries                []float32 // [count, keyDim]
	sums                   []float32 // [count, valueDim], of weighted values
	weights                []float32 // [count, tileColumns]
	most, total            []float32 // of each query's scores, weights
	tile                   []float32 // [tileColumns, keyDim or valueDim]
	stored                 []byte    // the columns themselves, where they are not widened into the tile
	admits                 [tileQueries]uint32
}

func (t *attendTask) item(i int, s *scratch) {
	f := flash{attendTask: t, keyDim: padded(t.Store.KeyDim), valueDim: padded(t.Store.ValueDim)}
	f.row, f.head, f.from = i/t.blocks/t.Store.Heads, i/t.blocks%t.Store.Heads, i%t.blocks*tileQueries
	f.count = min(tileQueries, t.group*t.Query.Shape[2]-f.from)
	f.allocate(s)
	for at := 0; at < t.S; at += t.columns {
		columns := min(t.columns, t.S-at)
		if !f.admit(at, columns) {
			continue
		}
		f.load(accelerated.KeyData, t.Store.KeyDim, at, columns)
		for q := range f.count {
			f.weigh(q)
		}
		f.load(accelerated.ValueData, t.Store.ValueDim, at, columns)
		for q := range f.count {
			f.add(q)
		}
	}
	f.store()
}

// padded is the length of a row as the kernels take it.
func padded(n int) int { return (n + 7) &^ 7 }

func (f *flash) allocate(s *scratch) {
	wide := max(f.keyDim, f.valueDim)
	all := s.floats(f.count*(f.keyDim+f.valueDim+tileColumns+2) + tileColumns*wide)
	for _, part := range [...]struct {
		of *[]float32
		n  int
	}{
		{&f.tile, tileColumns * wide}, {&f.queries, f.count * f.keyDim}, {&f.sums, f.count * f.valueDim},
		{&f.weights, f.count * tileColumns}, {&f.most, f.count}, {&f.total, f.count},
	} {
		*part.of, all = all[:part.n:part.n], all[part.n:]
	}
	clear(f.queries)
	clear(f.sums)
	clear(f.total)
	v := &f.Query
	from := memory(v)
	for q := range f.count {
		f.most[q] = float32(math.Inf(-1))
		head, query := f.query(q)
		at := v.Offset + f.row*v.Stride[0] + head*v.Stride[1] + query*v.Stride[2]
		f.kernels.widen(f.queries[q*f.keyDim:][:f.Store.KeyDim], f.Store.DType, from[at:])
	}
}

// query is the head and the place of the item's query q.
func (f *flash) query(q int) (head, place int) {
	n := f.Query.Shape[2]
	return f.head*f.group + (f.from+q)/n, (f.from + q) % n
}

// admit notes which of the tile's columns each query admits, and reports
// whether any does.
func (f *flash) admit(at, columns int) bool {
	n, any := f.Query.Shape[2], uint32(0)
	for q := range f.count {
		_, place := f.query(q)
		all := uint32(1<<columns - 1)
		if f.Mask.Buffer == nil {
			last := f.S - n + place - at
			f.admits[q] = all & uint32(1<<max(0, min(last+1, tileColumns))-1)
		} else {
			row := f.Mask.Buffer.(*Buffer).bytes[f.Mask.Offset+(f.row*n+place)*f.S+at:]
			f.admits[q] = bitsOf(row[:columns])
		}
		any |= f.admits[q]
	}
	return any != 0
}

// bitsOf packs up to 32 bytes of 0 or 1.
func bitsOf(row []byte) (set uint32) {
	i := 0
	for ; i+8 <= len(row); i += 8 {
		set |= uint32(binary.LittleEndian.Uint64(row[i:])*0x0102040810204080>>56) << i
	}
	for ; i < len(row); i++ {
		set |= uint32(row[i]) << i
	}
	return set
}

// load makes columns of one side ready: in the tile, or where they are.
func (f *flash) load(data, dim, at, columns int) {
	part := func(plane int) []byte {
		return lane(f.Store, plane, f.row, f.head)[(f.From+at)*f.Store.Planes[plane].Width:]
	}
	f.stored = nil
	switch wide := padded(dim); {
	case f.count <= fewQueries && wide == dim && f.Store.Quant.Bits == 0 && f.Store.DType == ring.BFloat16 && f.kernels.dotsBFloat16 != nil:
		f.stored = part(data)
	case f.Store.Quant.Bits > 0:
		f.kernels.dequantize(f.Store.Quant, f.Store.DType, f.tile[:columns*dim], part(data), part(data+1), part(data+2))
	case wide == dim:
		f.kernels.widen(f.tile[:columns*dim], f.Store.DType, part(data))
	default:
		clear(f.tile[:columns*wide])
		for c := range columns {
			f.kernels.widen(f.tile[c*wide:][:dim], f.Store.DType, part(data)[c*f.Store.Planes[data].Width:])
		}
	}
}

// weigh turns query q's scores of the admitted columns into weights.
func (f *flash) weigh(q int) {
	weights := f.weights[q*tileColumns:][:tileColumns]
	most := f.most[q]
	for set := f.admits[q]; set != 0; {
		c, n := nextRun(&set)
		run := weights[c : c+n]
		if query := f.queries[q*f.keyDim:][:f.keyDim]; f.stored != nil {
			f.kernels.dotsBFloat16(run, query, f.stored[2*c*f.keyDim:])
		} else {
			f.kernels.dots(run, query, f.tile[c*f.keyDim:])
		}
		for i, s := range run {
			s = float32(s * f.Scale)
			run[i] = s
			if s > most {
				most = s
			}
		}
	}
	if most > f.most[q] {
		old := exp(f.most[q] - most)
		f.most[q] = most
		f.total[q] = float32(f.total[q] * old) // the conversion forbids a fused sum
		sums := f.sums[q*f.valueDim:][:f.valueDim]
		for i := range sums {
			sums[i] = float32(sums[i] * old)
		}
	}
	total := f.total[q]
	for set := f.admits[q]; set != 0; {
		c, n := nextRun(&set)
		run := weights[c : c+n]
		f.kernels.exps(run, most)
		for _, w := range run {
			total += w
		}
	}
	f.total[q] = total
}

// add adds query q's weighted values.
func (f *flash) add(q int) {
	for set := f.admits[q]; set != 0; {
		c, n := nextRun(&set)
		sums, weights := f.sums[q*f.valueDim:][:f.valueDim], f.weights[q*tileColumns+c:][:n]
		if f.stored != nil {
			f.kernels.accumulateBFloat16(sums, weights, f.stored[2*c*f.valueDim:])
		} else {
			f.kernels.accumulate(sums, weights, f.tile[c*f.valueDim:])
		}
	}
}

// nextRun takes the first run of ones out of set: n of them from bit c on.
func nextRun(set *uint32) (c, n int) {
	c = bits.TrailingZeros32(*set)
	n = bits.TrailingZeros32(^(*set >> c))
	*set &^= uint32((1<<n - 1) << c)
	return c, n
}

// store writes the item's results.
func (f *flash) store() {
	dst := memory(&f.Out)
	n, dim := f.Query.Shape[2], f.Store.ValueDim
	for q := range f.count {
		head, place := f.query(q)
		out := dst[f.Out.Offset+((f.row*f.Query.Shape[1]+head)*n+place)*dim*4:]
		for i, s := range f.sums[q*f.valueDim:][:dim] {
			if f.total[q] > 0 || f.total[q] != f.total[q] {
				s /= f.total[q]
			}
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(s))
		}
	}
}
