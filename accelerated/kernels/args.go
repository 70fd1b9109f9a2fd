package kernels

import (
	"reflect"

	"example.com/ringcheck/accelerated"
)

// Warp is how many lanes go in step. A launch's threads are whole warps, and a
// kernel's index of a warp is that of the group times warps a group, plus that
// within the group. Metal must have SIMD-groups of this width.
const Warp = 32

// groupWarps is how many warps are a group, at most; attention whose splits are
// fewer takes as many.
const groupWarps = 4

// Entry is a kernel as a backend has to know it.
type Entry struct {
	Buffers  int // parameters that are pointers; the argument structure follows
	ArgBytes int // size of that structure
}

// What the structures of kernels.h are in Go: the same fields, in their order,
// with all padding spelled out.

type layout struct {
	Plane          [accelerated.Planes]uint64
	Width          [accelerated.Planes]uint32
	Heads, Columns uint32
}

// One launch can move from boundSources stores that are buffers of the launch,
// or from maxSources whose addresses it is given; and from maxLayouts layouts.
const (
	boundSources = 16
	maxSources   = 64
	maxLayouts   = 8
)

// inline is how many runs, or rows, a launch's arguments have room for.
const inline = 64

type run struct {
	Source                                          int32
	SrcRow, DstRow, From, Cycle, Skip, To, N, First uint32
}

type moveArgs struct {
	Dst     layout
	Base    [maxSources]uint64
	Layout  [maxSources]uint32
	Plane   [maxLayouts][accelerated.Planes]uint64
	Columns [maxLayouts]uint32
	Runs    uint32
	Piece   uint32
	Warps   uint32
	Tabled  uint32
	Once    uint32
	Unused  uint32
	Run     [inline]run
}

type shiftArgs struct {
	Store                      layout
	Rows, Lanes, Warps, Tabled uint32
	Pair                       [2 * inline]uint32
	Run                        [inline]run
}

type closeArgs struct {
	Store          layout
	From, N        uint32
	Pairs, Warps   uint32
	Lanes          uint64
	Tabled, Unused uint32
	Pair           [2 * inline]uint32
}

type side struct {
	Src    uint64
	Stride [3]uint64
	Plane  [3]uint64
	Width  [3]uint32
	Unit   uint32
	Dim    uint32
	Parts  uint32
	Warps  uint32
	Unused uint32
}

type maskPart struct {
	Offset       uint64
	N, S         uint32
	Past, Window int32
	Shift        uint32
	Tabled       uint32
	Warps        uint32
	Unused       uint32
}

// maxFirsts is how many rows of a mask need no table.
const maxFirsts = 128

type writeArgs struct {
	Sides                 [2]side
	Mask                  maskPart
	Heads, Columns, At, N uint32
	Group, Bits           uint32
	Per                   uint32
	Warps                 uint32
	First                 [maxFirsts]int32
}

type attendArgs struct {
	Keys, Values         [3]uint64
	Query                uint64
	Stride               [3]uint64
	Mask, Out            uint64
	Sums, Totals         uint64
	KeyWidth, ValueWidth [3]uint32
	Heads, Columns       uint32
	From, S              uint32
	KeyDim, ValueDim     uint32
	Ratio, N             uint32
	DType, Group, Bits   uint32
	Masked               uint32
	Splits, Tiles        uint32
	Chunks               uint32
	Blocks               uint32
	Warps                uint32
	Scale                float32
	Joined, Unused       uint32
}

type combineArgs struct {
	Out, Sums, Totals               uint64
	Splits, ValueDim, Warps, Unused uint32
}

// Layouts is, structure by structure, the size of each and the offsets of its
// fields: what the function host_layouts of the host's library must say too.
func Layouts() []uint32 {
	var all []uint32
	for _, v := range []any{
		layout{}, run{}, moveArgs{}, shiftArgs{}, closeArgs{}, side{}, maskPart{}, writeArgs{}, attendArgs{}, combineArgs{},
	} {
		t := reflect.TypeOf(v)
		all = append(all, uint32(t.Size()))
		for i := range t.NumField() {
			all = append(all, uint32(t.Field(i).Offset))
		}
	}
	return all
}
