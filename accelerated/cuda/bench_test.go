package cuda

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"example.com/ringcheck/reference/ring"
)

var jsonFile = flag.String("device.json", "", "where BenchmarkDevice writes its rows, for ci/bench/h200.py")

// The shapes of BenchmarkDevice: a layer of a large model, in a large batch.
const (
	benchRows  = 64
	benchHeads = 16
	benchDim   = 128
	benchBlock = 2048
	benchSets  = 4 // of rings that are taken in turn, each larger than the cache
	tokenBytes = benchRows * benchHeads * benchDim * 2
)

// row is a line of BenchmarkDevice's result, for one call of the work.
type row struct {
	Microseconds float64 `json:"us"`
	Bytes        float64 `json:"bytes"` // read and written, as the plan has it
	Launches     float64 `json:"launches"`
	Uploads      float64 `json:"uploads"`
}

// counted is a backend that counts what it is asked for.
type counted struct {
	*backend
	launches, uploads int
}

func (c *counted) Launch(batch ...kernels.Launch) error {
	c.launches += len(batch)
	return c.backend.Launch(batch...)
}

func (c *counted) Upload(dst accelerated.Buffer, offset int, src []byte) error {
	c.uploads++
	return c.backend.Upload(dst, offset, src)
}

// weighed is a device that counts the bytes that must be read and written.
type weighed struct {
	accelerated.Device
	bytes int
}

func columnBytes(s *accelerated.Store) (n int) {
	for _, p := range s.Planes {
		n += s.Heads * p.Width
	}
	return n
}

func (d *weighed) Run(w *accelerated.Work) error {
	if w.Move != nil {
		for _, r := range w.Move.Runs {
			times := 2
			if r.Source == accelerated.Zero {
				times = 1
			}
			d.bytes += times * int(r.N) * columnBytes(w.Store)
		}
	}
	if w.Write != nil {
		d.bytes += w.Write.Keys.Bytes() + w.Write.Values.Bytes() + w.Write.Keys.Shape[0]*w.Write.Keys.Shape[2]*columnBytes(w.Store)
	}
	if w.Mask != nil {
		d.bytes += w.Mask.B * w.Mask.N * w.Mask.S
	}
	return d.Device.Run(w)
}

func (d *weighed) Attend(a *accelerated.Attention) error {
	d.bytes += a.Query.Shape[0]*a.S*columnBytes(a.Store) + a.Query.Bytes() + a.Out.Bytes()
	if a.Mask.Buffer != nil {
		d.bytes += a.Mask.B * a.Mask.N * a.Mask.S
	}
	return d.Device.Attend(a)
}

// lab is a device with instruments.
type lab struct {
	b      *testing.B
	counts *counted
	dev    *weighed
	tokens accelerated.Buffer // of two blocks
	rows   map[string]row
}

func newLab(b *testing.B) *lab {
	l := &lab{b: b, counts: &counted{backend: present(b)}, rows: map[string]row{}}
	l.dev = &weighed{Device: kernels.New(l.counts)}
	r := rand.New(rand.NewPCG(1, 2))
	some := make([]byte, 16<<20)
	for i := 0; i < len(some); i += 2 {
		bits := math.Float32bits(float32(r.NormFloat64()))
		some[i], some[i+1] = byte(bits>>16), byte(bits>>24)
	}
	l.tokens = must(l.dev.Alloc(2 * benchBlock * tokenBytes))
	for at := 0; at < l.tokens.Size(); at += len(some) {
		check(l.dev.Upload(l.tokens, at, some))
	}
	return l
}

// view is n tokens a row from the i-th place in the tokens on.
func (l *lab) view(i, n int) accelerated.View {
	v := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{benchRows, benchHeads, n, benchDim}})
	v.Buffer, v.Offset = l.tokens, i*n*tokenBytes%l.tokens.Size()
	return v
}

// event is one that the stream has come to.
func (l *lab) event() uintptr {
	var e uintptr
	b := l.counts.backend
	check(b.enter("event"))
	defer b.leave()
	check(b.driver.check("cuEventCreate", b.driver.eventCreate(&e, 0)))
	check(b.driver.check("cuEventRecord", b.driver.eventRecord(e, b.stream)))
	return e
}

// between is the time from one event to another, in microseconds.
func (l *lab) between(from, to uintptr) float64 {
	var ms float32
	b := l.counts.backend
	check(b.enter("event"))
	defer b.leave()
	check(b.driver.check("cuEventSynchronize", b.driver.eventWait(to)))
	check(b.driver.check("cuEventElapsedTime", b.driver.eventElapsed(&ms, from, to)))
	check(b.driver.check("cuEventDestroy", b.driver.eventDestroy(from)))
	check(b.driver.check("cuEventDestroy", b.driver.eventDestroy(to)))
	return 1000 * float64(ms)
}

// busy gives the device work for a quarter of a millisecond, so that it does not
// wait for what the host launches next, as it would not in a row of calls.
func (l *lab) busy() {
	half := l.tokens.Size() / 2
	check(l.counts.enter("copy"))
	defer l.counts.leave()
	at := l.tokens.(*Buffer).pointer
	check(l.counts.driver.check("cuMemcpyDtoDAsync", l.counts.driver.copyDevice(at+uint64(half), at, uint64(half), l.counts.stream)))
}

// measure is the median over rounds of some calls of the work, each of which
// gets another number. Where there is something to prepare before each call,
// that is not timed.
func (l *lab) measure(name string, repeats int, prepare, work func(i int)) {
	const rounds = 5
	l.b.Run(name, func(b *testing.B) {
		var r row
		for b.Loop() {
			var times []float64
			r = row{}
			next, calls := 0, 0
			for round := range rounds + 1 {
				var from uintptr
				var pairs [][2]uintptr
				if prepare == nil {
					from = l.event()
				}
				for range repeats {
					if prepare != nil {
						prepare(next)
						l.busy()
						from = l.event()
					}
					launches, uploads, bytes := l.counts.launches, l.counts.uploads, l.dev.bytes
					work(next)
					r.Launches += float64(l.counts.launches - launches)
					r.Uploads += float64(l.counts.uploads - uploads)
					r.Bytes += float64(l.dev.bytes - bytes)
					next, calls = next+1, calls+1
					if prepare != nil {
						pairs = append(pairs, [2]uintptr{from, l.event()})
					}
				}
				if prepare == nil {
					pairs = append(pairs, [2]uintptr{from, l.event()})
				}
				total := 0.0
				for _, p := range pairs {
					total += l.between(p[0], p[1])
				}
				if round > 0 { // the first warms up
					times = append(times, total/float64(repeats))
				}
			}
			slices.Sort(times)
			r.Microseconds = times[len(times)/2]
			r.Bytes, r.Launches, r.Uploads = r.Bytes/float64(calls), r.Launches/float64(calls), r.Uploads/float64(calls)
		}
		l.rows[name] = r
		b.ReportMetric(r.Microseconds, "us/call")
		b.ReportMetric(r.Bytes/r.Microseconds/1e6, "TB/s")
		b.ReportMetric(r.Launches, "launches/call")
		b.ReportMetric(0, "ns/op")
	})
}

// ring is a full one that has begun to wrap.
func (l *lab) ring(window, bits, wrapped int) *accelerated.Cache {
	cfg := accelerated.Config{Semantics: ring.Exact, MaxSize: window, KVHeads: benchHeads, KeyDim: benchDim, ValueDim: benchDim, DType: ring.BFloat16}
	if bits > 0 {
		cfg.Quant = accelerated.Quant{GroupSize: 64, Bits: bits}
	}
	c := must(accelerated.NewBatchRotating(l.dev, cfg, make([]int, benchRows)))
	for n := 0; n < window; {
		step := min(window-n, benchBlock)
		must(c.Update(l.view(0, step), l.view(1, step)))
		n += step
	}
	for i := range wrapped {
		must(c.Update(l.view(i, 1), l.view(i+1, 1)))
	}
	return c
}

// rings are some of them, which are closed after f.
func (l *lab) rings(window, bits, n int, f func([]*accelerated.Cache)) {
	var list []*accelerated.Cache
	for range n {
		list = append(list, l.ring(window, bits, window/3))
	}
	f(list)
	for _, c := range list {
		check(c.Close())
	}
}

// BenchmarkDevice times what ci/bench/h200.py does with PyTorch, with events on
// the device around repeated work. One iteration is enough.
func BenchmarkDevice(b *testing.B) {
	l := newLab(b)
	other := must(l.dev.Alloc(1 << 30)).(*Buffer)
	// The copy of 32 MiB is for comparison with the extraction of a row of a long
	// ring; its places are taken in turn.
	for name, size := range map[string]int{"copy": 1 << 30, "copy of 32 MiB": 32 << 20} {
		l.measure(name, 10*min(4, 1<<30/size), nil, func(i int) {
			at := uint64(i * size % (1 << 30))
			check(l.counts.enter("copy"))
			defer l.counts.leave()
			check(l.counts.driver.check("cuMemcpyDtoDAsync",
				l.counts.driver.copyDevice(other.pointer+at, l.tokens.(*Buffer).pointer+at, uint64(size), l.counts.stream)))
			l.dev.bytes += 2 * size
		})
	}
	l.dev.Free(other)
	for _, window := range []int{1024, 4096} {
		l.appends(window)
		l.attention(window)
		l.moves(window)
	}
	l.dev.Free(l.tokens)
	if n := l.dev.Stats().Live; n != 0 {
		b.Errorf("%d buffers are live", n)
	}
	if *jsonFile != "" {
		check(os.WriteFile(*jsonFile, must(json.MarshalIndent(l.rows, "", "\t")), 0o644))
	}
}

func (l *lab) appends(window int) {
	step := func(rings []*accelerated.Cache) func(int) {
		return func(i int) {
			r := must(rings[i%len(rings)].AppendDecode(l.view(2*i, 1), l.view(2*i+1, 1)))
			r.Close()
		}
	}
	l.rings(window, 0, benchSets, func(rings []*accelerated.Cache) {
		l.measure(fmt.Sprintf("decode/%d", window), 100, nil, step(rings))
		l.measure(fmt.Sprintf("block/%d", window), 16, nil, func(i int) {
			r := must(rings[i%2].AppendWindow(l.view(i%2, benchBlock), l.view((i+1)%2, benchBlock)))
			r.Close()
		})
	})
	// Half full, with padding, so that each step's mask is another one.
	var ragged []*accelerated.Cache
	for range benchSets {
		cfg := accelerated.Config{Semantics: ring.Exact, MaxSize: window, KVHeads: benchHeads, KeyDim: benchDim, ValueDim: benchDim, DType: ring.BFloat16}
		left := make([]int, benchRows)
		for i := range left {
			left[i] = i
		}
		c := must(accelerated.NewBatchRotating(l.dev, cfg, left))
		must(c.Update(l.view(0, window/2), l.view(1, window/2)))
		must(c.Update(l.view(0, 1), l.view(1, 1)))
		ragged = append(ragged, c)
	}
	l.measure(fmt.Sprintf("decode (ragged)/%d", window), 100, nil, step(ragged))
	for _, c := range ragged {
		check(c.Close())
	}
	l.rings(window, 4, benchSets, func(rings []*accelerated.Cache) {
		l.measure(fmt.Sprintf("quantizing decode/%d", window), 100, nil, step(rings))
	})
}

func (l *lab) attention(window int) {
	out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{benchRows, benchHeads, 1, benchDim}})
	out.Buffer = must(l.dev.Alloc(out.Bytes()))
	all := &ring.Mask{B: benchRows, N: 1, S: window, Data: slices.Repeat([]bool{true}, benchRows*window)}
	masks := accelerated.NewMasks(l.dev)
	for _, bits := range []int{0, 4} {
		name := map[int]string{0: "attention", 4: "attention, 4 bits"}[bits]
		l.rings(window, bits, benchSets, func(rings []*accelerated.Cache) {
			var reads []accelerated.Read
			for i, c := range rings {
				reads = append(reads, must(c.AppendWindowUnder(l.view(i, 1), l.view(i+1, 1), must(masks.Upload(all)), false)))
			}
			l.measure(fmt.Sprintf("%s/%d", name, window), 40, nil, func(i int) {
				check(reads[i%len(reads)].Attend(out, l.view(i, 1), 1/math.Sqrt2/8))
			})
			for _, r := range reads {
				r.Close()
			}
		})
	}
	masks.Close()
	l.dev.Free(out.Buffer)
}

func (l *lab) moves(window int) {
	l.rings(window, 0, benchSets, func(rings []*accelerated.Cache) {
		l.measure(fmt.Sprintf("extract/%d", window), 40, nil, func(i int) {
			check(must(rings[i%len(rings)].Extract(i % benchRows)).Close())
		})
		l.measure(fmt.Sprintf("temporal order/%d", window), 10, nil, func(i int) {
			must(rings[i%len(rings)].TemporalView())
		})
	})
	l.rings(window, 0, 2, func(rings []*accelerated.Cache) {
		var single [2][]*accelerated.Cache
		for i := range single {
			for r := range benchRows {
				single[i] = append(single[i], must(rings[i].Extract(r)))
				v := l.view(0, 1)
				v.Shape[0] = 1
				must(single[i][r].Update(v, v))
			}
		}
		l.measure(fmt.Sprintf("merge/%d", window), 6, nil, func(i int) {
			check(must(accelerated.Merge(single[i%2]...)).Close())
		})
		for i := range single {
			for _, c := range single[i] {
				check(c.Close())
			}
		}

		before := must(rings[0].Snapshot())
		var keep []int
		for r := range benchRows {
			if r%16 != 1 {
				keep = append(keep, r)
			}
		}
		var c *accelerated.Cache
		l.measure(fmt.Sprintf("filter/%d", window), 10, func(int) {
			if c != nil {
				check(c.Close())
			}
			c = must(before.Adopt())
		}, func(int) { check(c.Filter(keep)) })
		if c != nil { // not passed over
			check(c.Close())
		}
		check(before.Close())

		lengths, right := make([]int, benchRows), make([]int, benchRows)
		for i := range right {
			lengths[i], right[i] = benchRows-i, i
		}
		l.measure(fmt.Sprintf("finalize/%d", window), 6, func(i int) {
			c := rings[i%2]
			check(c.Prepare(accelerated.Padding{Lengths: lengths, RightPadding: right}))
			must(c.Update(l.view(0, benchRows), l.view(1, benchRows)))
		}, func(i int) { check(rings[i%2].Finalize()) })
	})
}

// BenchmarkCall compares ways to call the driver in the right context, and what
// a launch of nothing costs the host.
func BenchmarkCall(b *testing.B) {
	d := present(b)
	x := must(d.Alloc(256))
	call := func() {
		check(d.enter("nothing"))
		d.leave()
	}
	b.Run("own thread", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("another thread", func(b *testing.B) {
		ask, done := make(chan struct{}), make(chan struct{})
		go func() {
			runtime.LockOSThread()
			for range ask {
				done <- struct{}{}
			}
		}()
		for b.Loop() {
			ask <- struct{}{}
			<-done
		}
		close(ask)
	})
	nothing := kernels.Launch{Kernel: "combine_splits", Groups: 1, Threads: 128, Buffers: []kernels.Binding{{Buffer: x}, {Buffer: x}}, Args: make([]byte, 40)}
	b.Run("launch", func(b *testing.B) {
		b.ReportAllocs()
		batch := []kernels.Launch{nothing}
		for b.Loop() {
			check(d.Launch(batch...))
		}
		check(d.Sync())
	})
	b.Run("upload", func(b *testing.B) {
		b.ReportAllocs()
		data := make([]byte, 200)
		for b.Loop() {
			check(d.Upload(x, 0, data))
		}
		check(d.Sync())
	})
	d.Free(x)
}
