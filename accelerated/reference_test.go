package accelerated_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/cpu"
	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// serialRef and batchRef are the two classes of the reference; anyRef is what
// they have in common.
type (
	serialRef = reference.RotatingKVCache
	batchRef  = reference.BatchRotatingKVCache
	anyRef    interface {
		reference.Cache
		Update(keys, values ring.Array) (ring.KV, error)
		Mask(n int, window *int) (*ring.Mask, error)
		Trim(n int) (int, error)
		Position() ring.Position
		Columns() ring.KV
		TemporalView() (ring.KV, error)
		Attend(queries ring.Array, scale float64) ([]float32, error)
		Snapshot() *reference.Snapshot
	}
)

// pair is a cache and its counterpart in the reference.
type pair struct {
	acc *accelerated.Cache
	ref anyRef
}

func (p *pair) batch() *batchRef { b, _ := p.ref.(*batchRef); return b }

// world is some caches of one configuration, driven in step on both sides.
type world struct {
	t       *rapid.T
	dev     accelerated.Device
	cfg     accelerated.Config
	caches  []*pair
	tokens  *rand.Rand
	history []string
}

const maxRows = 4

func (w *world) exact() bool { return w.cfg.Semantics == ring.Exact }

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	ops := ""
	for _, h := range w.history {
		ops += "\n  " + h
	}
	w.t.Fatalf("%s\nconfiguration %+v\noperations:%s", fmt.Sprintf(format, args...), w.cfg, ops)
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf(format, args...))
}

// array makes tokens of random bits, or of small values where they are read as
// numbers.
func (w *world) array(b, h, n, d int) ring.Array {
	a := ring.Array{DType: w.cfg.DType, Shape: [4]int{b, h, n, d}, Data: make([]byte, b*h*n*d*w.cfg.DType.Size())}
	for i := 0; i < len(a.Data); i += a.DType.Size() {
		bits := reference.FloatBits(a.DType, float32(w.tokens.IntN(256)-128)/64)
		for j := range a.DType.Size() {
			a.Data[i+j] = byte(bits >> (8 * j))
		}
	}
	return a
}

func (w *world) kv(rows, n int) (keys, values ring.Array) {
	return w.array(rows, w.cfg.KVHeads, n, w.cfg.KeyDim), w.array(rows, w.cfg.KVHeads, n, w.cfg.ValueDim)
}

func (w *world) newPair(serial bool, left []int) {
	p := &pair{}
	f := reference.Format(w.cfg.Quant)
	var err, refErr error
	cfg := w.cfg
	switch {
	case serial && f.Bits > 0:
		var r *serialRef
		r, refErr = reference.NewRotatingQuantizedKVCache(cfg.Semantics, cfg.MaxSize, f)
		r.Step, p.ref = cfg.Step, r
	case serial:
		var r *serialRef
		r, refErr = reference.NewRotatingKVCache(cfg.Semantics, cfg.MaxSize, cfg.Keep)
		r.Step, p.ref = cfg.Step, r
	case f.Bits > 0:
		var r *batchRef
		r, refErr = reference.NewBatchRotatingQuantizedKVCache(cfg.Semantics, cfg.MaxSize, left, f)
		r.Step, p.ref = cfg.Step, r
	default:
		var r *batchRef
		r, refErr = reference.NewBatchRotatingKVCache(cfg.Semantics, cfg.MaxSize, left)
		r.Step, p.ref = cfg.Step, r
	}
	if serial {
		p.acc, err = accelerated.NewRotating(w.dev, cfg)
	} else {
		cfg.Keep = 0
		p.acc, err = accelerated.NewBatchRotating(w.dev, cfg, left)
	}
	if err != nil || refErr != nil {
		w.failf("new: %v, reference %v", err, refErr)
	}
	w.add(p)
}

func (w *world) add(p *pair) {
	w.caches = append(w.caches, p)
	w.note("  is c%d", len(w.caches)-1)
	w.same(p)
}

// agree compares errors by their codes. Where mlx-lm raises whatever Python
// does, the refusal here says what is wrong.
func (w *world) agree(err, refErr error) bool {
	w.t.Helper()
	code, want := ring.CodeOf(err), ring.CodeOf(refErr)
	if want == "raises" && !w.exact() && code != "" {
		return false
	}
	if (err == nil) != (refErr == nil) || code != want || err != nil && code == "" {
		w.failf("error %v, reference %v", err, refErr)
	}
	return err == nil
}

// same compares everything that a cache holds and says of itself.
func (w *world) same(p *pair) {
	w.t.Helper()
	got, want := p.acc.Position(), p.ref.Position()
	if fmt.Sprint(got) != fmt.Sprint(want) || (got.Ends == nil) != (want.Ends == nil) {
		w.failf("position %+v, reference %+v", got, want)
	}
	if p.acc.Size() != p.ref.Size() || p.acc.Trimmable() != p.ref.Trimmable() {
		w.failf("size %d, trimmable %v, reference %d, %v", p.acc.Size(), p.acc.Trimmable(), p.ref.Size(), p.ref.Trimmable())
	}
	if b := p.batch(); b != nil {
		if got, want := p.acc.RowPositions(nil), b.RowPositions(); !slices.Equal(got, want) {
			w.failf("row positions %v, reference %v", got, want)
		}
	}
	kv, err := p.acc.Download()
	if err != nil {
		w.failf("download: %v", err)
	}
	w.sameKV("buffer", kv, p.ref.Columns())
}

func (w *world) sameKV(what string, got, want ring.KV) {
	w.t.Helper()
	for _, side := range [2][2]ring.Planes{{got.Keys, want.Keys}, {got.Values, want.Values}} {
		g, r := side[0], side[1]
		for len(g) == 0 && len(r) > 0 && len(r[0].Data) == 0 { // arrays without an element are no arrays
			r = nil
		}
		for len(r) == 0 && len(g) > 0 && len(g[0].Data) == 0 {
			g = nil
		}
		if len(g) != len(r) {
			w.failf("%s: %d planes, reference %d", what, len(g), len(r))
		}
		for i := range g {
			if g[i].Shape != r[i].Shape || g[i].DType != r[i].DType || !bytes.Equal(g[i].Data, r[i].Data) {
				w.failf("%s: plane %d differs:\n%v\n%v", what, i, columns(g[i]), columns(r[i]))
			}
		}
	}
}

// columns prints the first bytes of each column of each row's first head.
func columns(a ring.Array) string {
	out := fmt.Sprint(a.DType, a.Shape)
	n := a.Shape[3] * a.DType.Size()
	for b := range a.Shape[0] {
		out += "\n  "
		for s := range a.Shape[2] {
			out += fmt.Sprintf(" %x", a.Data[(b*a.Shape[1]*a.Shape[2]+s)*n:][:min(n, 3)])
		}
	}
	return out
}

func (w *world) sameView(what string, kv accelerated.KV, want ring.KV) {
	w.t.Helper()
	got, err := kv.Download(w.dev)
	if err != nil {
		w.failf("%s: %v", what, err)
	}
	w.sameKV(what, got, want)
}

func (w *world) sameMask(v accelerated.MaskView, want *ring.Mask) {
	w.t.Helper()
	if want == nil {
		if v.Buffer != nil {
			w.failf("a mask %+v, reference none", v)
		}
		return
	}
	if v.Buffer == nil || v.B != want.B || v.N != want.N || v.S != want.S {
		w.failf("mask %+v, reference %d %d %d", v, want.B, want.N, want.S)
	}
	got := v.Buffer.(*cpu.Buffer).Bytes()[v.Offset:][:v.B*v.N*v.S]
	ref := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(want.Data))), len(want.Data))
	if !bytes.Equal(got, ref) {
		w.failf("mask differs:\n%v\n%v", got, ref)
	}
}

func (w *world) attend(p *pair) {
	pos := p.ref.Position()
	rows := len(pos.Offset)
	n := rapid.IntRange(1, 3).Draw(w.t, "queries")
	group := rapid.IntRange(1, 2).Draw(w.t, "group")
	q := w.array(rows, group*w.cfg.KVHeads, n, w.cfg.KeyDim)
	w.note("attend %d queries, %d heads a group", n, group)
	want, refErr := p.ref.Attend(q, 0.3)
	out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{rows, group * w.cfg.KVHeads, n, w.cfg.ValueDim}})
	out.Host = make([]byte, out.Bytes())
	err := p.acc.Attend(out, accelerated.HostView(q), 0.3)
	if w.agree(err, refErr) {
		w.close(out.Host, want)
	}
}

func (w *world) close(out []byte, want []float32) {
	w.t.Helper()
	got, err := reference.Floats(ring.Array{DType: ring.Float32, Shape: [4]int{1, 1, 1, len(want)}, Data: out})
	if err != nil {
		w.failf("%v", err)
	}
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= 1e-5*largest) {
			w.failf("attended %v, reference %v", got, want)
		}
	}
}

// update writes tokens through one of the verbs that do.
func (w *world) update(p *pair) {
	pos := p.ref.Position()
	rows := len(pos.Offset)
	n := 1
	if rapid.Bool().Draw(w.t, "block") {
		n = rapid.IntRange(1, 2*w.cfg.MaxSize+2).Draw(w.t, "n")
	}
	verb := "update"
	if p.batch() != nil {
		verb = rapid.SampledFrom([]string{"update", "update", "append_decode", "append_window", "append_window_under"}).Draw(w.t, "verb")
	}
	if verb == "append_decode" && rapid.IntRange(0, 9).Draw(w.t, "wrong") > 0 {
		n = 1
	}
	w.note("%s %d", verb, n)
	if w.cfg.Semantics == ring.MLXLM && p.batch() == nil && n == 1 && pos.Total >= w.cfg.MaxSize && p.ref.Columns().Keys != nil &&
		p.ref.Columns().Keys[0].Columns() < w.cfg.MaxSize {
		w.shortDecode(p)
		return
	}
	keys, values := w.kv(rows, n)
	if verb == "update" {
		want, refErr := p.ref.Update(keys, values)
		got, err := p.acc.Update(accelerated.HostView(keys), accelerated.HostView(values))
		if w.agree(err, refErr) {
			w.sameView("returned", got, want)
		}
		return
	}
	b := p.batch()
	var want reference.Read
	var refErr, err error
	var got accelerated.Read
	k, v := accelerated.HostView(keys), accelerated.HostView(values)
	switch verb {
	case "append_decode":
		want, refErr = b.AppendDecode(keys, values)
		got, err = p.acc.AppendDecode(k, v)
	case "append_window":
		want, refErr = b.AppendWindow(keys, values)
		got, err = p.acc.AppendWindow(k, v)
	default:
		active := pos.Idx
		if pos.Rotated {
			active = pos.MaxSize
		}
		m := &ring.Mask{B: rows, N: n, S: min(active, pos.MaxSize-1) + n}
		m.Data = make([]bool, m.B*m.N*m.S)
		for i := range m.Data {
			m.Data[i] = w.tokens.IntN(3) > 0
		}
		if rows == 0 {
			return
		}
		want, refErr = b.AppendWindowUnder(keys, values, m, false)
		masks := accelerated.NewMasks(w.dev)
		lease, leaseErr := masks.Upload(m)
		if leaseErr != nil {
			w.failf("upload: %v", leaseErr)
		}
		got, err = p.acc.AppendWindowUnder(k, v, lease, false)
		masks.Close()
	}
	if !w.agree(err, refErr) {
		return
	}
	w.sameView("read", got.KV(), want.KV)
	w.sameMask(got.Mask(), want.Mask)
	if _, err := p.acc.Update(k, v); ring.CodeOf(err) != "read_open" {
		w.failf("a write under an open read: %v", err)
	}
	if rows > 0 {
		q := w.array(rows, 2*w.cfg.KVHeads, n, w.cfg.KeyDim)
		attended, err := want.Attend(q, 0.25)
		if err != nil {
			w.failf("attend: %v", err)
		}
		out := accelerated.HostView(ring.Array{DType: ring.Float32, Shape: [4]int{rows, 2 * w.cfg.KVHeads, n, w.cfg.ValueDim}})
		out.Host = make([]byte, out.Bytes())
		if err := got.Attend(out, accelerated.HostView(q), 0.25); err != nil {
			w.failf("attend: %v", err)
		}
		w.close(out.Host, attended)
	}
	got.Close()
	got.Close()
}

// shortDecode is where mlx-lm raises or loses a token (M34): refused here.
func (w *world) shortDecode(p *pair) {
	keys, values := w.kv(1, 1)
	_, err := p.acc.Update(accelerated.HostView(keys), accelerated.HostView(values))
	if ring.CodeOf(err) != "raises" {
		w.failf("a short ring: %v", err)
	}
}

// settled reports whether an operation that needs nothing pending may be tried:
// mlx-lm has no defined answer there.
func (w *world) settled(p *pair) bool { return w.exact() || p.ref.Position().Ends == nil }

func (w *world) mask(p *pair) {
	n := rapid.IntRange(1, w.cfg.MaxSize+2).Draw(w.t, "n")
	var window *int
	if rapid.Bool().Draw(w.t, "windowed") {
		v := rapid.IntRange(1, w.cfg.MaxSize+2).Draw(w.t, "window")
		window = &v
	}
	w.note("mask %d %v", n, window != nil)
	want, refErr := p.ref.Mask(n, window)
	lease, err := p.acc.Mask(n, window)
	if w.agree(err, refErr) {
		w.sameMask(lease.View(), want)
		lease.Release()
		lease.Release()
	}
}

func (w *world) prepare(p *pair) {
	b := p.batch()
	if b == nil || !w.settled(p) {
		return
	}
	rows := b.Position()
	n := len(rows.Offset)
	var pad reference.Padding
	if n == 0 {
		if !w.exact() || len(b.Columns().Keys) > 0 {
			return
		}
		n = rapid.IntRange(1, maxRows).Draw(w.t, "rows")
	}
	list := func(high int, label string) []int {
		return rapid.SliceOfN(rapid.IntRange(0, high), n, n).Draw(w.t, label)
	}
	if rapid.IntRange(0, 3).Draw(w.t, "left") == 0 && (w.exact() || len(b.Columns().Keys) == 0) {
		pad.LeftPadding = list(3, "left")
	}
	if rapid.IntRange(0, 4).Draw(w.t, "right") > 0 {
		width := rapid.IntRange(1, 2*w.cfg.MaxSize+2).Draw(w.t, "width")
		pad.Lengths = list(width, "lengths")
		for _, l := range pad.Lengths {
			pad.RightPadding = append(pad.RightPadding, width-l)
		}
	}
	if w.exact() && pad.Lengths != nil && rapid.IntRange(0, 5).Draw(w.t, "flag") == 0 {
		flag := rapid.Bool().Draw(w.t, "padded")
		pad.RightPadded = &flag
	}
	w.note("prepare %+v", pad)
	w.agree(p.acc.Prepare(accelerated.Padding(pad)), b.Prepare(pad))
}

func (w *world) finalize(p *pair) {
	if b := p.batch(); b != nil {
		w.note("finalize")
		w.agree(p.acc.Finalize(), b.Finalize())
	}
}

func (w *world) filter(p *pair) {
	b := p.batch()
	if b == nil || !w.settled(p) {
		return
	}
	n := len(b.Position().Offset)
	low := 0
	if rapid.IntRange(0, 15).Draw(w.t, "wrong") == 0 {
		low = -1
	}
	var rows []int
	if n > 0 && rapid.Bool().Draw(w.t, "ascending") {
		for i := range n {
			if rapid.IntRange(0, 3).Draw(w.t, "keep") > 0 {
				rows = append(rows, i)
			}
		}
	} else if n > 0 {
		rows = rapid.SliceOfN(rapid.IntRange(low, n-1), 0, maxRows).Draw(w.t, "rows")
	}
	w.note("filter %v", rows)
	w.agree(p.acc.Filter(rows), b.Filter(rows))
}

func (w *world) extend(p *pair) {
	o := rapid.SampledFrom(w.caches).Draw(w.t, "other")
	b, ob := p.batch(), o.batch()
	if b == nil || ob == nil || !w.settled(p) || !w.settled(o) || len(b.Position().Offset)+len(ob.Position().Offset) > 2*maxRows {
		return
	}
	w.note("extend by c%d", slices.Index(w.caches, o))
	refErr := b.Extend(ob)
	w.agree(p.acc.Extend(o.acc), refErr)
	w.same(o)
}

func (w *world) extract(p *pair) {
	b := p.batch()
	if b == nil || !w.settled(p) {
		return
	}
	n := len(b.Position().Offset)
	row := rapid.IntRange(0, max(0, n-1)).Draw(w.t, "row")
	if rapid.IntRange(0, 15).Draw(w.t, "wrong") == 0 {
		row = n
	}
	out := &pair{}
	var err, refErr error
	var ref *serialRef
	if w.exact() && rapid.Bool().Draw(w.t, "limited") {
		limit := rapid.IntRange(0, w.cfg.MaxSize+1).Draw(w.t, "limit")
		if b.Position().Ends != nil {
			limit = max(1, limit)
		}
		w.note("extract %d, limit %d", row, limit)
		ref, refErr = b.ExtractLimit(row, limit)
		out.acc, err = p.acc.ExtractLimit(row, limit)
	} else {
		w.note("extract %d", row)
		ref, refErr = b.Extract(row)
		out.acc, err = p.acc.Extract(row)
	}
	if w.agree(err, refErr) {
		out.ref = ref
		w.same(out)
		if ref.Offset() >= ref.Position().Idx {
			w.add(out)
			return
		}
		// It was inside its left padding, of which mlx-lm makes nonsense.
		keys, values := w.kv(1, 1)
		if _, err := out.acc.Update(accelerated.HostView(keys), accelerated.HostView(values)); ring.CodeOf(err) != "range" {
			w.failf("a ring at offset %d: %v", ref.Offset(), err)
		}
		out.acc.Close()
	}
}

func (w *world) merge() {
	n := rapid.IntRange(1, 3).Draw(w.t, "sources")
	var sources []reference.Cache
	var accs []*accelerated.Cache
	rows := 0
	for range n {
		p := rapid.SampledFrom(w.caches).Draw(w.t, "source")
		pos := p.ref.Position()
		if !w.settled(p) || rows+len(pos.Offset) > 2*maxRows || w.cfg.Semantics == ring.MLXLM && p.batch() != nil {
			continue
		}
		if w.cfg.Semantics == ring.MLXLM && pos.Idx < min(pos.Total, pos.MaxSize) && !pos.Rotated {
			continue // mlx-lm raises, or takes padding for tokens
		}
		rows += len(pos.Offset)
		sources, accs = append(sources, p.ref), append(accs, p.acc)
		w.note("merge c%d", slices.Index(w.caches, p))
	}
	if len(sources) == 0 || rows == 0 {
		return
	}
	ref, refErr := reference.MergeRows(sources)
	acc, err := accelerated.Merge(accs...)
	if w.agree(err, refErr) {
		w.add(&pair{acc, ref})
	}
}

func (w *world) trim(p *pair) {
	pos := p.ref.Position()
	held := pos.Idx
	for _, l := range pos.LeftPadding {
		held = min(held, pos.Idx-l)
	}
	if held < 0 && !w.exact() {
		return // inside left padding
	}
	n := rapid.IntRange(-1, w.cfg.MaxSize).Draw(w.t, "n")
	if !w.exact() {
		if pos.Ends != nil || !p.ref.Trimmable() || pos.Rotated {
			return
		}
		n = rapid.IntRange(0, held).Draw(w.t, "n")
	}
	w.note("trim %d", n)
	want, refErr := p.ref.Trim(n)
	got, err := p.acc.Trim(n)
	if w.agree(err, refErr) && got != want {
		w.failf("trimmed %d, reference %d", got, want)
	}
}

// round is a speculative round: an append and its rollback.
func (w *world) round(p *pair) {
	b := p.batch()
	if b == nil || b.Position().Ends != nil {
		return
	}
	before := b.Position().Offset
	w.note("round:")
	w.update(p)
	after := b.Position().Offset
	if slices.Equal(before, after) {
		return
	}
	keep := make([]int, len(before))
	for i := range keep {
		keep[i] = rapid.IntRange(0, after[i]-before[i]).Draw(w.t, "keep")
	}
	preserve := rapid.Bool().Draw(w.t, "preserve")
	w.note("rollback to %v, %v", keep, preserve)
	refErr := b.Rollback(before, keep, preserve)
	w.agree(p.acc.Rollback(before, keep, preserve), refErr)
}

func (w *world) snapshot(p *pair) {
	w.note("snapshot, update, then restore or adopt")
	s, err := p.acc.Snapshot()
	if err != nil {
		w.failf("snapshot: %v", err)
	}
	defer s.Close()
	ref := p.ref.Snapshot()
	w.update(p)
	w.same(p)
	if rapid.Bool().Draw(w.t, "adopt") {
		out := &pair{}
		var refErr error
		if s.Serial() {
			out.ref, refErr = reference.AdoptRotating(ref)
		} else {
			out.ref, refErr = reference.AdoptBatchRotating(ref)
		}
		out.acc, err = s.Adopt()
		if w.agree(err, refErr) {
			w.add(out)
		}
		return
	}
	var refErr error
	if b := p.batch(); b != nil {
		refErr = b.Restore(ref)
	} else {
		refErr = p.ref.(*serialRef).Restore(ref)
	}
	w.agree(p.acc.Restore(s), refErr)
}

// reload takes a cache to host memory and back.
func (w *world) reload(p *pair) {
	w.note("reload")
	kv, err := p.acc.Download()
	if err != nil {
		w.failf("download: %v", err)
	}
	if b := p.batch(); b != nil {
		b.Release()
	}
	acc, err := accelerated.Adopt(w.dev, p.acc.Config(), p.batch() == nil, p.acc.Position(), kv)
	if err != nil {
		w.failf("adopt: %v", err)
	}
	if err := p.acc.Close(); err != nil {
		w.failf("close: %v", err)
	}
	p.acc = acc
}

func (w *world) look(p *pair) {
	w.note("look")
	want, refErr := p.ref.TemporalView()
	got, err := p.acc.TemporalView()
	if w.agree(err, refErr) {
		w.sameView("temporal view", got, want)
	}
	b := p.batch()
	if b == nil {
		return
	}
	for i := range b.Position().Offset {
		want, refErr := b.ValidOffset(i)
		got, err := p.acc.ValidOffset(i)
		if w.agree(err, refErr) && got != want {
			w.failf("valid offset %d, reference %d", got, want)
		}
	}
	tokens := rapid.IntRange(0, 2*w.cfg.MaxSize).Draw(w.t, "tokens")
	bytes, refErr := b.ProjectedBytes(tokens)
	if got, err := p.acc.ProjectedBytes(tokens); err != nil || refErr != nil || got != bytes {
		w.failf("projected bytes %d, %v, reference %d, %v", got, err, bytes, refErr)
	}
	b.Release()
	if err := p.acc.Release(); err != nil {
		w.failf("release: %v", err)
	}
}

func (w *world) quantized(p *pair) {
	r, serial := p.ref.(*serialRef)
	if !serial || w.cfg.KeyDim%32 != 0 || w.cfg.ValueDim%32 != 0 {
		return
	}
	w.note("to_quantized")
	f := reference.Format{GroupSize: 32, Bits: rapid.SampledFrom([]int{2, 3, 4, 5, 6, 8}).Draw(w.t, "bits")}
	ref, refErr := r.ToQuantized(f)
	acc, err := p.acc.ToQuantized(accelerated.Quant(f))
	if w.agree(err, refErr) {
		w.same(&pair{acc, ref})
		acc.Close()
	}
}

func (w *world) step() {
	if len(w.caches) > 8 {
		p := w.caches[0]
		w.caches = w.caches[1:]
		w.note("close c0; the others move up")
		p.acc.Close()
	}
	i := rapid.IntRange(0, len(w.caches)-1).Draw(w.t, "cache")
	p := w.caches[i]
	w.note("c%d:", i)
	op := rapid.SampledFrom([]func(*pair){
		w.update, w.update, w.update, w.update, w.update, w.mask, w.prepare, w.prepare, w.finalize, w.finalize, w.filter,
		w.extend, w.extract, func(*pair) { w.merge() }, w.trim, w.round, w.round, w.snapshot, w.reload, w.look, w.attend, w.quantized,
	}).Draw(w.t, "op")
	op(p)
	w.same(p)
}

func drawConfig(t *rapid.T) accelerated.Config {
	cfg := accelerated.Config{
		Semantics: rapid.SampledFrom([]ring.Semantics{ring.MLXLM, ring.Exact}).Draw(t, "semantics"),
		MaxSize:   rapid.IntRange(1, 9).Draw(t, "window"),
		Step:      rapid.IntRange(1, 5).Draw(t, "step"),
		KVHeads:   rapid.IntRange(1, 2).Draw(t, "heads"),
		KeyDim:    rapid.SampledFrom([]int{4, 8, 6, 32}).Draw(t, "key dim"),
		ValueDim:  rapid.SampledFrom([]int{4, 8, 10, 32}).Draw(t, "value dim"),
		DType:     rapid.SampledFrom([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}).Draw(t, "dtype"),
	}
	switch rapid.IntRange(0, 5).Draw(t, "storage") {
	case 0, 1:
		cfg.KeyDim, cfg.ValueDim = 64, 32
		cfg.Quant = accelerated.Quant{GroupSize: 32, Bits: rapid.SampledFrom([]int{2, 3, 4, 5, 6, 8}).Draw(t, "bits")}
	case 2:
		if cfg.Semantics == ring.MLXLM && cfg.MaxSize > 1 {
			cfg.Keep = rapid.IntRange(1, cfg.MaxSize-1).Draw(t, "keep")
		}
	}
	return cfg
}

// TestReference drives caches and their counterparts in the reference through
// the same random operations, and compares every byte of every buffer, every
// number, mask and error after each.
func TestReference(t *testing.T) {
	dev := cpu.Open(cpu.Options{Workers: 2})
	defer dev.Close()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, dev: dev, cfg: drawConfig(t), tokens: rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))}
		defer func() {
			for _, p := range w.caches {
				p.acc.Close()
			}
			if e, ok := recover().(runtime.Error); ok {
				w.failf("panic: %v\n%s", e, debug.Stack())
			}
		}()
		w.note("new")
		if rapid.IntRange(0, 3).Draw(t, "serial") == 0 || w.cfg.Keep > 0 {
			w.newPair(true, nil)
		} else {
			w.newPair(false, rapid.SliceOfN(rapid.IntRange(0, 3), 1, maxRows).Draw(t, "left"))
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step()
		}
		for _, p := range w.caches {
			w.same(p)
			if err := p.acc.Close(); err != nil {
				w.failf("close: %v", err)
			}
		}
		if s := dev.Stats(); s.Live != 0 {
			w.failf("%d buffers are live after all caches were closed", s.Live)
		}
	})
}
