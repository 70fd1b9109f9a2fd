package accelerated

import (
	"errors"
	"math"
	"slices"
	"sync"
	"unsafe"

	"example.com/ringcheck/reference/ring"
)

// Masks remembers the last mask that was built for each window, so that the
// layers of a model build it once for each step: give their caches one Masks.
// Equal positions make equal masks, and so do unequal ones where all is
// visible. It may be used by several goroutines at once.
type Masks struct {
	dev Device

	mu     sync.Mutex
	memo   map[int]*builtMask // by window of the ring
	grants []grant            // what the leases hold
	spare  []int              // grants that no lease holds
}

// grant is what one lease and its copies hold. It is used again for later
// leases: a lease is live while its turn is the grant's.
type grant struct {
	built *builtMask
	turn  uint64
}

// NewMasks makes an empty memory of masks on a device.
func NewMasks(dev Device) *Masks { return &Masks{dev: told(dev), memo: map[int]*builtMask{}} }

// Close forgets all masks. Those that are leased live until they are released.
func (m *Masks) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.memo {
		b.drop(m.dev)
	}
	clear(m.memo)
}

// Upload leases a mask of the caller's. The errors are [*UnavailableError]
// where there is no device, and [ring.ShapeError].
func (m *Masks) Upload(mask *ring.Mask) (Lease, error) {
	const op = "upload"
	if m == nil || m.dev == nil {
		return Lease{}, errNoDevice()
	}
	if mask == nil {
		return Lease{}, &ring.ShapeError{Op: op, What: "mask, which is nil: [b 1 n s]", Want: []int{1, 1, 1, 1}}
	}
	n := product(mask.B, mask.N, mask.S)
	if mask.B < 0 || mask.N < 0 || mask.S < 0 || len(mask.Data) != n {
		return Lease{}, &ring.ShapeError{Op: op, What: "mask", Got: []int{mask.B, 1, mask.N, mask.S, len(mask.Data)}, Want: []int{mask.B, 1, mask.N, mask.S, n}}
	}
	b := &builtMask{holders: 1, spec: Mask{B: mask.B, N: mask.N, S: mask.S}}
	var err error
	if b.spec.Buffer, err = m.dev.Alloc(max(n, 1)); err != nil {
		return Lease{}, err
	}
	// A bool is a byte that is 0 or 1.
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(mask.Data))), n)
	if err := m.dev.Upload(b.spec.Buffer, 0, bytes); err != nil {
		m.dev.Free(b.spec.Buffer)
		return Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grant(b), nil
}

// builtMask is a mask that some lease or the memory holds.
type builtMask struct {
	holders int // guarded by Masks.mu
	spec    Mask
}

func (b *builtMask) drop(dev Device) {
	if b.holders--; b.holders == 0 {
		dev.Free(b.spec.Buffer)
	}
}

// Lease is a mask that is held. The zero Lease stands for no mask. It must be
// released once; a copy is the same lease, and is released with it.
type Lease struct {
	masks *Masks
	index int // of Masks.grants
	turn  uint64
}

// grant makes a lease of a mask, which one holder more was counted for. m.mu
// is held, as it is in live.
func (m *Masks) grant(b *builtMask) Lease {
	if len(m.spare) == 0 {
		m.spare = append(m.spare, len(m.grants))
		m.grants = append(m.grants, grant{})
	}
	i := m.spare[len(m.spare)-1]
	m.spare = m.spare[:len(m.spare)-1]
	m.grants[i].built = b
	return Lease{m, i, m.grants[i].turn}
}

// live is what a lease holds; nil after its release.
func (l Lease) live() *grant {
	if g := &l.masks.grants[l.index]; g.turn == l.turn {
		return g
	}
	return nil
}

// take makes a lease of what l holds; l and its copies are released by it.
func (l Lease) take() Lease {
	if l.masks == nil {
		return Lease{}
	}
	l.masks.mu.Lock()
	defer l.masks.mu.Unlock()
	g := l.live()
	if g == nil {
		return Lease{}
	}
	g.turn++
	l.turn = g.turn
	return l
}

// owns reports whether a buffer is that of a mask which is held.
func (m *Masks) owns(b Buffer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, built := range m.memo {
		if built.spec.Buffer == b {
			return true
		}
	}
	return slices.ContainsFunc(m.grants, func(g grant) bool { return g.built != nil && g.built.spec.Buffer == b })
}

// View is the mask, the zero view where there is none or it was released.
func (l Lease) View() MaskView {
	if l.masks == nil {
		return MaskView{}
	}
	l.masks.mu.Lock()
	defer l.masks.mu.Unlock()
	g := l.live()
	if g == nil {
		return MaskView{}
	}
	s := &g.built.spec
	return MaskView{Buffer: s.Buffer, Offset: s.Offset, B: s.B, N: s.N, S: s.S}
}

// Release gives the mask back; more than once, also of copies, is once.
func (l *Lease) Release() {
	if m := l.masks; m != nil {
		m.mu.Lock()
		if g := l.live(); g != nil {
			g.built.drop(m.dev)
			*g = grant{turn: g.turn + 1}
			m.spare = append(m.spare, l.index)
		}
		m.mu.Unlock()
	}
	*l = Lease{}
}

// run leases the mask that want describes and does w. The mask is the one
// remembered for the ring's window, if that is the same; else it is built as
// part of w, and remembered. An error changes nothing.
func (m *Masks) run(window int, want *Mask, w *Work) (Lease, error) {
	want.normalize()
	m.mu.Lock()
	b := m.memo[window]
	if b != nil && b.spec.same(want) {
		b.holders++
		l := m.grant(b)
		m.mu.Unlock()
		if w.Store != nil {
			if err := m.dev.Run(w); err != nil {
				l.Release()
				return Lease{}, err
			}
		}
		return l, nil
	}
	defer m.mu.Unlock()
	size := product(want.B, want.N, want.S)
	if size > math.MaxInt/2 {
		return Lease{}, &MemoryError{Device: m.dev.Name(), Bytes: size, Err: errors.New("a mask of that many queries and columns")}
	}
	built := b
	if b == nil || b.holders > 1 || b.spec.Buffer.Size() < size {
		// Some room beyond, since masks grow by a column a step.
		buffer, err := m.dev.Alloc(size + size/8 + 256)
		if err != nil {
			return Lease{}, err
		}
		built = &builtMask{holders: 1, spec: Mask{Buffer: buffer}}
	}
	want.Buffer = built.spec.Buffer
	w.Mask = want
	err := m.dev.Run(w)
	w.Mask = nil
	if err != nil {
		if built != b {
			built.drop(m.dev)
		}
		return Lease{}, err
	}
	if built != b {
		if b != nil {
			b.drop(m.dev)
		}
		m.memo[window] = built
	}
	first := append(built.spec.First[:0], want.First...)
	built.spec = *want
	built.spec.First = first
	built.holders++
	return m.grant(built), nil
}

// normalize replaces what a mask does not depend on, so that equal masks are
// described alike.
func (m *Mask) normalize() {
	all := m.Past+1 == m.S
	for i, f := range m.First {
		m.First[i] = max(0, min(f, int32(m.S)))
		all = all && m.First[i] == 0
	}
	if m.Window >= m.Past+m.N {
		m.Window = m.Past + m.N
	} else {
		all = false
	}
	if all {
		m.Shift = 0
	}
}

// same reports whether two normalized descriptions are of one mask.
func (m *Mask) same(o *Mask) bool {
	return m.B == o.B && m.N == o.N && m.S == o.S && m.Past == o.Past && m.Window == o.Window &&
		m.Shift == o.Shift && slices.Equal(m.First, o.First)
}

// Download copies the mask to host memory; a mask of no queries for the zero
// view, which stands for none.
func (v MaskView) Download(dev Device) (*ring.Mask, error) {
	m := &ring.Mask{B: v.B, N: v.N, S: v.S, Data: make([]bool, v.B*v.N*v.S)}
	if v.Buffer == nil || len(m.Data) == 0 {
		return m, nil
	}
	bytes := make([]byte, len(m.Data))
	src := View{Buffer: v.Buffer, Offset: v.Offset, DType: ring.Bool, Shape: [4]int{1, 1, 1, len(bytes)}}
	if err := dev.Download(bytes, src); err != nil {
		return nil, err
	}
	for i, b := range bytes {
		m.Data[i] = b != 0
	}
	return m, nil
}
