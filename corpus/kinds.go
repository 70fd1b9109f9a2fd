package corpus

import (
	"slices"

	"example.com/ringcheck/reference/ring"
)

// Kinds lists every kind of cache, in the order of docs/case-format.md.
var Kinds = []Kind{
	KV, Rotating, BatchKV, BatchRotating, Quantized, Arrays, List, Chunked, Concatenate,
	RotatingQuantized, BatchRotatingQuantized, BatchRecurrent,
}

// Groups of kinds.
var (
	rings     = []Kind{Rotating, BatchRotating, RotatingQuantized, BatchRotatingQuantized}
	ringBatch = []Kind{BatchRotating, BatchRotatingQuantized}
	recurrent = []Kind{Arrays, BatchRecurrent}
	mlxlmOnly = []Kind{KV, BatchKV, Quantized, Arrays, List, Chunked, Concatenate}
	writable  = kinds(rings, KV, BatchKV, Quantized, Chunked, Concatenate)
	batches   = []Kind{BatchKV, BatchRotating, BatchRotatingQuantized, Arrays, BatchRecurrent, List}
	quantized = []Kind{Quantized, RotatingQuantized, BatchRotatingQuantized}
)

func kinds(some []Kind, more ...Kind) []Kind { return slices.Concat(some, more) }

// has says which kinds have an operation under both semantics, and which
// besides under exact alone.
var has = map[Verb]struct{ both, exact []Kind }{
	New:               {both: Kinds},
	Update:            {both: writable},
	MaskOp:            {both: kinds(rings, KV, BatchKV, Quantized, Concatenate, Arrays, BatchRecurrent)},
	Prepare:           {both: batches},
	Finalize:          {both: batches},
	Filter:            {both: batches},
	Extend:            {both: kinds(ringBatch, BatchKV, Arrays, List)},
	Merge:             {[]Kind{KV, Rotating, RotatingQuantized, Arrays, BatchRecurrent, List}, ringBatch},
	Extract:           {both: batches},
	Trim:              {both: kinds(writable, List)},
	Save:              {both: Kinds},
	Load:              {both: Kinds},
	ToQuantized:       {[]Kind{KV}, []Kind{Rotating}},
	TrimFront:         {both: []Kind{Chunked}},
	Write:             {both: recurrent},
	Advance:           {both: recurrent},
	AppendDecode:      {both: ringBatch},
	AppendWindow:      {both: ringBatch},
	AppendWindowUnder: {both: ringBatch},
	Rollback:          {both: ringBatch},
	Snapshot:          {both: rings},
	Restore:           {both: rings},
	Adopt:             {both: rings},
	TemporalView:      {both: rings},
	Release:           {both: ringBatch},
	ValidOffset:       {both: ringBatch},
	ProjectedBytes:    {both: kinds(ringBatch, BatchRecurrent)},
	Attend:            {both: rings},
}

// Has reports whether caches of kind k have operation v under s. Where it is
// false the only right answer is a refusal.
func (k Kind) Has(v Verb, s ring.Semantics) bool {
	if s == ring.Exact && slices.Contains(mlxlmOnly, k) {
		return false
	}
	return slices.Contains(has[v].both, k) || s == ring.Exact && slices.Contains(has[v].exact, k)
}

// stateOf says which fields the state of each kind has.
var stateOf = map[Kind][]FieldName{
	KV:                     {FOffset, FSize, FTrimmable, FBuffer},
	Rotating:               {FOffset, FIdx, FSize, FTrimmable, FBuffer},
	BatchKV:                {FOffset, FLeftPadding, FIdx, FRightPadding, FSize, FTrimmable, FBuffer},
	BatchRotating:          {FOffset, FLeftPadding, FIdx, FTotal, FRotated, FEnds, FSize, FTrimmable, FBuffer},
	Quantized:              {FOffset, FSize, FTrimmable, FBuffer, FGroupSize, FBits},
	Arrays:                 {FLeftPadding, FLengths, FSize, FTrimmable},
	List:                   {FSize, FTrimmable, FCaches},
	Chunked:                {FOffset, FSize, FTrimmable, FBuffer, FChunkSize, FStartPosition},
	Concatenate:            {FOffset, FSize, FTrimmable, FBuffer},
	RotatingQuantized:      {FOffset, FIdx, FSize, FTrimmable, FBuffer},
	BatchRotatingQuantized: {FOffset, FLeftPadding, FIdx, FTotal, FRotated, FEnds, FSize, FTrimmable, FBuffer},
	BatchRecurrent:         {FOffset, FLeftPadding, FLengths},
}

// What kind an operation makes of a kind. A kind that is absent stays as it is.
var (
	merged = map[Kind]Kind{
		KV: BatchKV, Rotating: BatchRotating, RotatingQuantized: BatchRotatingQuantized,
	}
	extracted = map[Kind]Kind{
		BatchKV: KV, BatchRotating: Rotating, BatchRotatingQuantized: RotatingQuantized,
	}
	requantized = map[Kind]Kind{
		KV: Quantized, Rotating: RotatingQuantized,
	}
)

func become(table map[Kind]Kind, k Kind) Kind {
	if to, ok := table[k]; ok {
		return to
	}
	return k
}
