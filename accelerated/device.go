package accelerated

import (
	"errors"
	"fmt"

	"example.com/ringcheck/reference/ring"
)

// Device moves bytes by plan. It knows no semantics: which column comes from
// where, where new tokens go and which mask bits are set is decided before a
// call, and a device that is given the same calls makes the same bytes.
//
// Calls take effect in the order in which they are made. Run, Attend and
// Upload may return before the work is done; what goes wrong later surfaces,
// once and for all later calls, as a [*DeviceError] at the next call that
// synchronizes (Download, Sync). A call that returns an error has done nothing:
// no buffer has changed and none has been taken. A device never keeps a
// pointer to an argument, to a slice in it or to host memory after the call
// has returned.
//
// All methods may be called by several goroutines at once. Arguments are
// trusted: the caches check shapes, data types and bounds before they call.
type Device interface {
	// Name says what runs the work, for a person: "cpu (avx2)".
	Name() string

	// Alloc returns a buffer of at least size bytes (size ≥ 1) whose contents
	// are undefined, aligned to [Align] bytes or more, from a pool where there
	// is one: a [*MemoryError] where there is no room.
	Alloc(size int) (Buffer, error)

	// Free gives a buffer back. Work that uses it and was begun before still
	// completes. Free of a buffer that is not live does nothing.
	Free(Buffer)

	// Owns reports whether b is a live buffer of this device. Views that callers
	// hand in are checked with it.
	Owns(b Buffer) bool

	// Run does the parts of w that are not nil: move, then write, then mask. It
	// is one call so that a device can do a decode step in one launch.
	Run(w *Work) error

	// Attend computes attention over stored columns.
	Attend(a *Attention) error

	// Upload copies src to dst, from offset on.
	Upload(dst Buffer, offset int, src []byte) error

	// Download waits for all work, then copies the elements of src, in
	// row-major order b h s d, to dst, whose length is src.Bytes().
	Download(dst []byte, src View) error

	// Sync waits for all work and returns what went wrong, if anything did.
	Sync() error

	// Stats counts what is held now.
	Stats() Stats

	// Close waits for all work and gives everything back, live buffers too.
	// It is idempotent. After it, Alloc, Run, Attend, Upload, Download and Sync
	// return [*ring.ClosedError]; Free does nothing.
	Close() error
}

// Align is the alignment of a buffer and of each plane in it, in bytes.
const Align = 256

// Buffer is memory of a device. What else can be done with it (a device
// pointer, a slice of host memory) is a matter of the device's own type.
type Buffer interface {
	// Size is the number of bytes that may be used.
	Size() int
}

// Stats counts the memory of a device.
type Stats struct {
	Live      int // buffers allocated and not freed
	LiveBytes int // bytes in them, as given out by the pool
	PoolBytes int // bytes free in the pool
}

// View is an array [b, h, s, d] that somebody else holds: device memory
// (Buffer), or host memory (Host) where Buffer is nil. Element (b, h, s, 0)
// begins at byte Offset + b*Stride[0] + h*Stride[1] + s*Stride[2]; the d axis
// is dense. The zero View stands for "no array".
type View struct {
	Buffer Buffer
	Host   []byte
	Offset int
	DType  ring.DType
	Shape  [4]int
	Stride [3]int // bytes between neighbours along b, h, s
}

// HostView is a dense array in host memory as a view. Nothing is copied.
func HostView(a ring.Array) View {
	v := View{Host: a.Data, DType: a.DType, Shape: a.Shape}
	v.Stride[2] = a.Shape[3] * a.DType.Size()
	v.Stride[1] = a.Shape[2] * v.Stride[2]
	v.Stride[0] = a.Shape[1] * v.Stride[1]
	return v
}

// Bytes is the size of the view's elements.
func (v *View) Bytes() int {
	return v.Shape[0] * v.Shape[1] * v.Shape[2] * v.Shape[3] * v.DType.Size()
}

// Plane is one plane of a [Store]: [rows, heads, columns] elements of Width
// bytes, dense and row-major from byte Offset (a multiple of [Align]) on. A
// plane that a store does not have has Width 0.
type Plane struct{ Offset, Width int }

// The planes of a store. Plain storage has KeyData and ValueData; a recurrent
// state KeyData alone.
const (
	KeyData = iota // elements, or packed codes
	KeyScales
	KeyBiases
	ValueData
	ValueScales
	ValueBiases
	Planes // how many there are
)

// Store is a buffer laid out as the planes of a cache. A column of a row is
// Width bytes in each head of each plane. Columns beyond those in use, and
// rows beyond them, hold anything.
type Store struct {
	Buffer  Buffer
	Rows    int // allocated
	Heads   int
	Columns int // allocated
	Planes  [Planes]Plane

	DType    ring.DType // of tokens as they are written, and of scales and biases
	KeyDim   int        // elements of a token's key, per head
	ValueDim int
	Quant    Quant
}

// Quant is the affine quantization of a store's planes; Bits 0 means plain
// storage. Packing runs along the head dimension: a column of Dim elements
// packs into Dim*Bits/8 bytes of 32-bit words, little-endian.
type Quant struct{ GroupSize, Bits int }

// Work is what one operation does to one store. Parts that are nil do not
// occur.
type Work struct {
	Store *Store
	Move  *Move
	Write *Write
	Mask  *Mask
}

// Move fills columns of the work's store. In each run, destination column
// To+k of row DstRow (all heads, all planes) becomes a copy of the source
// column From + (Skip+k) mod Cycle of row SrcRow, for k = 0 to N-1; or zero
// bytes, where Source is [Zero].
//
// Either no source is the work's own store: then all destinations are
// disjoint and the runs may be done in any order. Or the only source is the
// work's own store, in place: then the result is as if the runs were done one
// after another, each through a copy of what it reads. In that case no run
// reads a row below the one it writes, and a run reads or writes only its own
// two rows, so that whoever executes all runs in order for one lane (a head
// and some bytes of each column of one plane), reading a run's columns before
// writing them, needs to know of no other lane.
//
// Sources have the heads, the widths and the data types of the store.
type Move struct {
	Sources []*Store
	Runs    []Run
}

// Run is one element of a [Move]. All numbers fit in 31 bits; 0 ≤ Skip < Cycle,
// 0 < N ≤ Cycle, and From+Cycle is within the source's columns. Where the run
// is Zero, SrcRow, From, Cycle and Skip are 0.
type Run struct {
	Source         int32 // index of Move.Sources, or Zero
	SrcRow, DstRow int32
	From, Cycle    int32
	Skip           int32
	To, N          int32
}

// Zero in Run.Source makes a run that clears its destination.
const Zero = -1

// Write puts new tokens into columns At to At+n-1 of rows 0 to b-1, where
// [b, h, n, d] is the shape of Keys. Both views have the store's data type. If
// the store is quantized, each column is quantized as it is written: the
// canonical arithmetic of docs/semantics.md, to the bit. Values is the zero View
// where the store has no values.
type Write struct {
	Keys, Values View
	At           int
}

// Mask is how to build a mask, one byte (0 or 1) an element, row-major over
// [B, 1, N, S] from byte Offset of Buffer on. With j from 0 to S-1, element
// (b, q, (j+Shift) mod S) is 1 where
//
//	First[b] ≤ j  and  Past+q-Window < j ≤ Past+q
//
// and 0 elsewhere. First and Past+q-Window may lie outside 0 to S.
type Mask struct {
	Buffer  Buffer
	Offset  int
	B, N, S int
	Past    int // columns before the first query's own
	Window  int // at least 1
	Shift   int // 0 ≤ Shift < S
	First   []int32
}

// Attention is one call of attention over columns From to From+S-1 of a
// store, for B rows. Query head h reads key head h / (query heads / Heads).
// For each query q, over the columns that its mask admits,
//
//	out = Σ softmax(Scale * query·key) value
//
// with products and sums in float32, without a score matrix larger than a tile.
// Elements are widened to float32; quantized ones are first dequantized by the
// canonical arithmetic (code*scale rounded to the data type, plus bias rounded
// to the data type). A column that a mask does not admit has no influence,
// whatever it holds; a query that admits none yields zeros. Sums may be taken
// in any order.
type Attention struct {
	Store   *Store
	From, S int
	Query   View // [B, query heads, N, KeyDim], the store's data type
	Scale   float32
	Mask    MaskView // Buffer nil: causal, query q admits columns 0 to S-N+q
	Out     View     // [B, query heads, N, ValueDim], float32, dense
}

// MaskView is a mask that has been built: one byte an element, 0 or 1,
// row-major over [B, 1, N, S], from byte Offset of Buffer on.
type MaskView struct {
	Buffer  Buffer
	Offset  int
	B, N, S int
}

// DeviceError says which call of a device failed, and why.
type DeviceError struct {
	Device, Call string
	Err          error
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Device, e.Call, e.Err)
}
func (e *DeviceError) Unwrap() error { return e.Err }

// MemoryError refuses an allocation.
type MemoryError struct {
	Device string
	Bytes  int
	Err    error // what the system said; may be nil
}

func (e *MemoryError) Error() string {
	s := fmt.Sprintf("%s: no memory for %d bytes; close caches, or use fewer rows or a smaller window", e.Device, e.Bytes)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}
func (e *MemoryError) Unwrap() error { return e.Err }

// BufferError refuses a view whose buffer is not, or no longer, one of the
// device's, or is the cache's own where that would be read and written at once.
type BufferError struct {
	Op, What string
	Own      bool // it is the cache's own
}

func (e *BufferError) Error() string {
	if e.Own {
		return fmt.Sprintf("%s: the memory of the %s is the cache's own; use another buffer, or host memory", e.Op, e.What)
	}
	return fmt.Sprintf("%s: the memory of the %s is not a live buffer of this cache's device; use a buffer of that device, or host memory", e.Op, e.What)
}

// ClosedDeviceError refuses what a cache asks of a device that is closed. It
// wraps the device's own [*ring.ClosedError], and so has its code.
type ClosedDeviceError struct {
	Device string
	Err    *ring.ClosedError
}

func (e *ClosedDeviceError) Error() string {
	return fmt.Sprintf("%s: the device %s is closed; open it again, and make new caches on it", e.Err.Op, e.Device)
}
func (e *ClosedDeviceError) Unwrap() error { return e.Err }

// telling is a device as caches call it: it tells a closed device from a closed
// cache.
type telling struct{ Device }

// told is dev, telling; nil of nil.
func told(dev Device) Device {
	if _, already := dev.(telling); already || dev == nil {
		return dev
	}
	return telling{dev}
}

func (d telling) tell(err error) error {
	if closed, ok := errors.AsType[*ring.ClosedError](err); ok {
		return &ClosedDeviceError{d.Name(), closed}
	}
	return err
}

func (d telling) Alloc(size int) (Buffer, error) {
	b, err := d.Device.Alloc(size)
	return b, d.tell(err)
}
func (d telling) Run(w *Work) error         { return d.tell(d.Device.Run(w)) }
func (d telling) Attend(a *Attention) error { return d.tell(d.Device.Attend(a)) }
func (d telling) Upload(dst Buffer, offset int, src []byte) error {
	return d.tell(d.Device.Upload(dst, offset, src))
}
func (d telling) Download(dst []byte, src View) error { return d.tell(d.Device.Download(dst, src)) }

// errNoDevice refuses what was given no device.
func errNoDevice() error { return &UnavailableError{Device: "nil", Why: "open a device first"} }

// UnavailableError says why a device cannot be opened here.
type UnavailableError struct{ Device, Why string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("device %s is not available: %s", e.Device, e.Why)
}
