package bench

import (
	"fmt"
	"time"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// Kind names what a cache does. A peer knows it by the same name.
type Kind string

// The kinds of work. "Full" is a ring whose window is full and has begun to
// wrap; a mask is made before each write, and counts.
const (
	Decode           Kind = "decode"            // one token a row into a full ring
	DecodePadded     Kind = "decode_padded"     // the same while padding is still in the window: each step has another mask
	Block            Kind = "block"             // Block tokens a row, one block after the other
	BlockUnseen      Kind = "block_unseen"      // the same where no mask is remembered
	Merge            Kind = "merge"             // Rows full rings of one sequence into a batch
	Extract          Kind = "extract"           // one row of a full batch, the next one each time
	Filter           Kind = "filter"            // all rows of a full batch but the second and the last
	Finalize         Kind = "finalize"          // a block of Block, of which row i's last i columns are padding
	Rollback         Kind = "rollback"          // of a round of Block, of which row i keeps 1+i
	Quantize         Kind = "quantize"          // Window tokens a row into an empty ring
	QuantizingDecode Kind = "quantizing_decode" // Decode into a quantized ring
	Attend           Kind = "attend"            // one query a row and head over a full ring
)

// Shape is how large the rings and the steps are.
type Shape struct {
	Rows       int `json:"rows"`
	Heads      int `json:"heads"`       // of keys and values
	QueryHeads int `json:"query_heads"` // of Attend
	KeyDim     int `json:"key_dim"`     // elements
	ValueDim   int `json:"value_dim"`
	Window     int `json:"window"` // columns
	Block      int `json:"block"`  // columns a step, where a step is a block
	Bits       int `json:"bits"`   // 0: plain, bfloat16
	Group      int `json:"group"`
}

// columnBytes is the size of one column of one row, all heads and planes.
func (s Shape) columnBytes() int {
	n := 0
	for _, dim := range [2]int{s.KeyDim, s.ValueDim} {
		if s.Bits == 0 {
			n += dim * ring.BFloat16.Size()
		} else {
			n += dim*s.Bits/8 + 2*dim/s.Group*ring.BFloat16.Size()
		}
	}
	return n * s.Heads
}

// kept is which rows Filter keeps.
func (s Shape) kept() []int {
	rows := []int{0}
	for i := 2; i < s.Rows-1; i++ {
		rows = append(rows, i)
	}
	return rows
}

// Bars are what is asked of a result; a bar that is zero is none.
type Bars struct {
	Faster      float64       `json:"faster,omitempty"`       // how many times the peer's speed
	FasterPlain float64       `json:"faster_plain,omitempty"` // the same without assembly
	Within      time.Duration `json:"within,omitempty"`       // nanoseconds
	Share       float64       `json:"share,omitempty"`        // of the machine's own copy or read
	SharePlain  float64       `json:"share_plain,omitempty"`
}

// Work is one kind of work at one shape.
type Work struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Shape Shape  `json:"shape"`
	Bars  Bars   `json:"bars,omitzero"`
}

// least is how many bytes a step cannot do without: those that it must write,
// or, of Attend, read. A mask that is the same as at the step before need not be
// written.
func (w Work) least() int {
	s := w.Shape
	column := s.columnBytes()
	switch w.Kind {
	case Decode, QuantizingDecode:
		return column * s.Rows
	case DecodePadded:
		return column*s.Rows + s.Rows*s.Window
	case Block:
		return column * s.Rows * s.Block
	case BlockUnseen:
		return s.Rows * (column*s.Block + s.Block*(s.Window-1+s.Block))
	case Extract:
		return column * s.Window
	case Filter:
		return column * s.Window * (len(s.kept()) - 1)
	case Finalize, Rollback: // one row in Block stays as it is
		return column * (s.Window - 1 + s.Block) * (s.Rows - (s.Rows+s.Block-1)/s.Block)
	default:
		return column * s.Window * s.Rows
	}
}

// limit is how many bytes the planes of the ring may hold that a step leaves:
// one and a half windows and the largest block, and each plane aligned.
func (w Work) limit() int {
	s := w.Shape
	rows, block := s.Rows, 1
	switch w.Kind {
	case Block, BlockUnseen, Finalize, Rollback:
		block = s.Block
	case Quantize:
		block = s.Window
	case Extract:
		rows = 1
	}
	return (s.Window+s.Window/2+block)*rows*s.columnBytes() + accelerated.Planes*accelerated.Align
}

// yardstick is the machine's own speed that a kind of work is held against:
// that of copying as many bytes, that of reading them, or none.
func (k Kind) yardstick() string {
	switch k {
	case Merge, Extract, Filter:
		return CopyMemory
	case Attend:
		return ReadMemory
	default:
		return ""
	}
}

// usual is the shape that the table and the sweeps start from; a quick one is
// for trying the whole out.
func usual(quick bool) Shape {
	if quick {
		return Shape{Rows: 4, Heads: 2, QueryHeads: 2, KeyDim: 64, ValueDim: 64, Window: 32, Block: 16, Group: 64}
	}
	return Shape{Rows: 8, Heads: 8, QueryHeads: 8, KeyDim: 128, ValueDim: 128, Window: 1024, Block: 512, Group: 64}
}

// Table is the table of all kinds of work at the usual shape. A quick one has
// no bars.
func Table(quick bool) []Work {
	s := usual(quick)
	round, four, grouped := s, s, s
	round.Block, four.Bits, grouped.QueryHeads = 8, 4, 4*s.Heads
	list := []Work{
		{"decode step, mask included", Decode, s, Bars{Faster: 40, FasterPlain: 12, Within: 6 * time.Microsecond}},
		{"decode step, another mask each time", DecodePadded, s, Bars{Faster: 40, FasterPlain: 12, Within: 6 * time.Microsecond}},
		{fmt.Sprintf("block of %d, mask included", s.Block), Block, s, Bars{Faster: 12, FasterPlain: 8}},
		{fmt.Sprintf("block of %d, mask built each time", s.Block), BlockUnseen, s, Bars{Faster: 12, FasterPlain: 8}},
		{fmt.Sprintf("merge of %d full rings", s.Rows), Merge, s, Bars{Faster: 15, FasterPlain: 8, Share: 0.8}},
		{"extract one row", Extract, s, Bars{Faster: 4, FasterPlain: 4}},
		{fmt.Sprintf("filter %d to %d", s.Rows, len(s.kept())), Filter, s, Bars{Share: 0.8, SharePlain: 0.8}},
		{"finalize with rolls", Finalize, round, Bars{Faster: 15, FasterPlain: 10}},
		{fmt.Sprintf("rollback of a round of %d", round.Block), Rollback, round, Bars{Faster: 15, FasterPlain: 10}},
	}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		q := s
		q.Bits = bits
		list = append(list, Work{fmt.Sprintf("quantize, %d bits", bits), Quantize, q, Bars{Faster: 15, FasterPlain: 1.5}})
	}
	list = append(list,
		Work{"quantizing decode step, 4 bits, mask included", QuantizingDecode, four, Bars{Faster: 20, FasterPlain: 2}},
		Work{"attention, one query a row", Attend, s, Bars{Faster: 6, FasterPlain: 2.5, Share: 0.5}},
		Work{"attention over a 4-bit ring", Attend, four, Bars{Faster: 4, FasterPlain: 2}},
		Work{"attention, 4 query heads a head", Attend, grouped, Bars{}},
	)
	for i := range list {
		if quick {
			list[i].Bars = Bars{}
		}
	}
	return list
}

// Sweep is one kind of work at shapes that differ along one axis.
type Sweep struct {
	Name   string // of the work
	Axis   string // "window", "rows", "block" or "model"
	Works  []Work
	Values []int    // along the axis; nil where it has no numbers
	Labels []string // one a work
}

// FullName names a sweep among all others.
func (s *Sweep) FullName() string { return s.Name + " by " + s.Axis }

// Sweeps are how the work grows from the usual shape. Quick ones are short.
func Sweeps(quick bool) []Sweep {
	s := usual(quick)
	windows, rows := []int{128, 256, 512, 1024, 2048, 4096, 8192}, []int{1, 2, 4, 8, 16, 32, 64}
	blocks := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}
	if quick {
		windows, rows, blocks = []int{16, 32}, []int{1, 2}, []int{1, 8}
	}
	short := s
	short.Block = windows[0] / 2
	setWindow := func(s *Shape, n int) { s.Window = n }
	setRows := func(s *Shape, n int) { s.Rows = n }
	blockName := fmt.Sprintf("block of %d", short.Block)
	list := []Sweep{
		sweep("decode step", Decode, s, "window", windows, setWindow),
		sweep("decode step, another mask each time", DecodePadded, s, "window", windows, setWindow),
		sweep(blockName, Block, short, "window", windows, setWindow),
		sweep("attention, one query a row", Attend, s, "window", windows, setWindow),
		sweep("decode step", Decode, s, "rows", rows, setRows),
		sweep(blockName, Block, short, "rows", rows, setRows),
		sweep("merge", Merge, s, "rows", rows, setRows),
		sweep("attention, one query a row", Attend, s, "rows", rows, setRows),
		sweep("block", Block, s, "block", blocks, func(s *Shape, n int) { s.Block = n }),
	}
	if quick {
		return list
	}
	ofModels := Sweep{Name: "decode step", Axis: "model"}
	for _, m := range models.Shapes {
		if m.Chunked || m.Window > windows[len(windows)-1] {
			continue // another cache, or more memory than such a run should take
		}
		of := s
		of.Heads, of.QueryHeads, of.KeyDim, of.ValueDim, of.Window = m.KVHeads, m.KVHeads, m.KeyDim, m.ValueDim, m.Window
		ofModels.Works = append(ofModels.Works, Work{Name: ofModels.Name, Kind: Decode, Shape: of})
		ofModels.Labels = append(ofModels.Labels, m.Name)
	}
	return append(list, ofModels)
}

func sweep(name string, k Kind, s Shape, axis string, values []int, set func(*Shape, int)) Sweep {
	out := Sweep{Name: name, Axis: axis, Values: values}
	for _, v := range values {
		set(&s, v)
		out.Works = append(out.Works, Work{Name: name, Kind: k, Shape: s})
		out.Labels = append(out.Labels, fmt.Sprint(v))
	}
	return out
}
