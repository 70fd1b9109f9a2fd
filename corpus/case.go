package corpus

import "example.com/ringcheck/reference/ring"

// Schema is the identifier that every case file carries.
const Schema = "ringcheck/case/v1"

// DefaultStep is the growth quantum, in columns, of a case that names none.
const DefaultStep = 256

// Case is one sequence of operations on named caches, with what must be
// observed after each. It is a value: generated, stored, reduced, drawn and
// sent as such, and never changed by running it.
type Case struct {
	Name      string
	Source    string
	Semantics ring.Semantics
	Shape     Shape
	Quant     *Quant // nil: no quantized kind occurs
	Step      int    // growth quantum in columns
	Fill      Fill
	ID        string // of the ledger, or of the list of known bugs
	Link      string
	Notes     string
	Found     *Found // nil unless a run filed the case
	Ops       []Op
}

// Shape is what all caches of a case have in common. Widths are in elements.
type Shape struct {
	KVHeads  int
	KeyDim   int
	ValueDim int
	DType    ring.DType
}

// Quant is the affine quantization of a case's quantized kinds.
type Quant struct{ GroupSize, Bits int }

// Fill says how a token's bytes come from its id.
type Fill uint8

const (
	// Grid makes small values that every data type holds exactly.
	Grid Fill = iota
	// Bits makes arbitrary bit patterns, NaNs and subnormals included.
	Bits
)

// Found says how a filed failure was found. Seed may be any uint64.
type Found struct {
	Property string
	Target   string
	Seed     uint64
	Version  string
}

// Verb names an operation; see docs/case-format.md for what each does.
type Verb string

// The operations.
const (
	New               Verb = "new"
	Update            Verb = "update"
	MaskOp            Verb = "mask"
	Prepare           Verb = "prepare"
	Finalize          Verb = "finalize"
	Filter            Verb = "filter"
	Extend            Verb = "extend"
	Merge             Verb = "merge"
	Extract           Verb = "extract"
	Trim              Verb = "trim"
	Save              Verb = "save"
	Load              Verb = "load"
	ToQuantized       Verb = "to_quantized"
	TrimFront         Verb = "trim_front"
	Write             Verb = "write"
	Advance           Verb = "advance"
	AppendDecode      Verb = "append_decode"
	AppendWindow      Verb = "append_window"
	AppendWindowUnder Verb = "append_window_under"
	Rollback          Verb = "rollback"
	Snapshot          Verb = "snapshot"
	Restore           Verb = "restore"
	Adopt             Verb = "adopt"
	TemporalView      Verb = "temporal_view"
	Release           Verb = "release"
	ValidOffset       Verb = "valid_offset"
	ProjectedBytes    Verb = "projected_bytes"
	Attend            Verb = "attend"
)

// Kind names a class of cache.
type Kind string

// The kinds of cache.
const (
	KV                     Kind = "kv"
	Rotating               Kind = "rotating"
	BatchKV                Kind = "batch_kv"
	BatchRotating          Kind = "batch_rotating"
	Quantized              Kind = "quantized"
	Arrays                 Kind = "arrays"
	List                   Kind = "list"
	Chunked                Kind = "chunked"
	Concatenate            Kind = "concatenate"
	RotatingQuantized      Kind = "rotating_quantized"
	BatchRotatingQuantized Kind = "batch_rotating_quantized"
	BatchRecurrent         Kind = "batch_recurrent"
)

// Op is one operation. Which fields count depends on Verb (and, for New, on
// Kind); all others are zero.
type Op struct {
	Verb  Verb
	Cache string
	Out   string
	Other string
	As    string // name of a snapshot taken
	From  string // name of a snapshot used
	File  string // a name within the run, no path

	Kind        Kind
	MaxSize     int
	Keep        int // New: sinks; Rollback: of every row, unless KeepRows
	KeepRows    []int
	LeftPadding []int // nil: not given
	ChunkSize   int
	Slots       int
	Caches      []string
	Outs        []string

	Tokens       [][]int // one list a row
	N            int     // of mask, trim, advance, projected_bytes (tokens)
	Window       *int    // nil: none given
	Lengths      []int   // nil: not given
	RightPadding []int   // nil: not given
	RightPadded  *bool   // nil: not given
	Rows         []int
	Row          int
	Limit        *int // nil: none
	Slot         int
	Mask         *ring.Mask
	Causal       bool
	Preserve     bool // preserve_columns
	Queries      int  // a row
	Scale        float64

	Want *Want // nil: nothing is said of this operation
}

// Want is what must be observed of one operation. A nil field is not compared.
type Want struct {
	Returned [][]int // token ids, one list a row; 0 is a column of zero bytes
	Stored   [][]int
	State    State
	Mask     *ring.Mask // N is 0 where there is none (null)
	Trimmed  *int
	Offsets  []int
	Bytes    *int
	Error    string
}

// Step is what an implementation answered to one operation: a Want's twin,
// with bytes in place of token ids.
type Step struct {
	Returned    []Plane
	Stored      []Plane // only from implementations that claim mlx-lm's layout
	State       State
	Mask        *ring.Mask // N is 0 where there is none (null)
	Trimmed     *int
	Offsets     []int
	Bytes       *int
	Attended    []float32 // of attend: [b, query heads, queries, d], row-major; never on the wire
	Error       string    // a code; the operation was refused
	Message     string
	Unsupported string // the operation that is not implemented; the last step of an answer
}

// Plane is a named array: "keys", "values", or "keys.packed", "keys.scales",
// "keys.biases" and the same for values, or "slot.0" and so on.
type Plane struct {
	Name  string
	Array ring.Array
}

// State is what a cache says of itself, one field a name, in the order of the
// Field constants. Which fields occur depends on the kind of cache.
type State []Field

// Field is one entry of a State.
type Field struct {
	Name   FieldName
	Kind   FieldKind
	Int    int // of Int and Bool (0 or 1)
	Ints   []int
	States []State // of a list's children
}

// FieldKind says which value a Field holds.
type FieldKind uint8

const (
	Null FieldKind = iota
	Int
	Bool
	Ints
	States
)

// FieldName names a field of a State; its String is the name in text.
type FieldName uint8

const (
	FOffset FieldName = iota + 1
	FLeftPadding
	FIdx
	FTotal
	FRotated
	FEnds
	FRightPadding
	FLengths
	FSize
	FTrimmable
	FBuffer
	FGroupSize
	FBits
	FChunkSize
	FStartPosition
	FCaches
)

var fieldNames = [...]string{
	FOffset: "offset", FLeftPadding: "left_padding", FIdx: "idx", FTotal: "total", FRotated: "rotated",
	FEnds: "ends", FRightPadding: "right_padding", FLengths: "lengths", FSize: "size", FTrimmable: "trimmable",
	FBuffer: "buffer", FGroupSize: "group_size", FBits: "bits", FChunkSize: "chunk_size",
	FStartPosition: "start_position", FCaches: "caches",
}

func (n FieldName) String() string { return fieldNames[n] }

// IntField, BoolField and IntsField make fields; IntsField of nil is null.
func IntField(n FieldName, v int) Field { return Field{Name: n, Kind: Int, Int: v} }

// BoolField makes a field that holds a truth value.
func BoolField(n FieldName, v bool) Field {
	f := Field{Name: n, Kind: Bool}
	if v {
		f.Int = 1
	}
	return f
}

// IntsField makes a field that holds one number a row, or null where v is nil.
func IntsField(n FieldName, v []int) Field {
	if v == nil {
		return Field{Name: n}
	}
	return Field{Name: n, Kind: Ints, Ints: v}
}

// Get returns the field of that name, and whether s has it.
func (s State) Get(n FieldName) (Field, bool) {
	for _, f := range s {
		if f.Name == n {
			return f, true
		}
	}
	return Field{}, false
}
