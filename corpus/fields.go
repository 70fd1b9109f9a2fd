package corpus

import (
	"regexp"
	"strconv"

	"example.com/ringcheck/reference/ring"
)

// Verbs lists every operation, in the order of docs/case-format.md.
var Verbs = []Verb{
	New, Update, MaskOp, Prepare, Finalize, Filter, Extend, Merge, Extract, Trim, Save, Load,
	ToQuantized, TrimFront, Write, Advance, AppendDecode, AppendWindow, AppendWindowUnder,
	Rollback, Snapshot, Restore, Adopt, TemporalView, Release, ValidOffset, ProjectedBytes, Attend,
}

// namePattern is what names are made of: of caches, snapshots, cases, and of
// files, which makes every name safe as the last element of a path.
const namePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`

var nameRE = regexp.MustCompile(namePattern)

// The JSON types.
var (
	nameType = codec[string]{
		def: "name",
		read: func(v raw) (string, error) {
			s, err := readString(v)
			if err == nil && !nameRE.MatchString(s) {
				err = mismatch(v, "1 to 64 letters, digits, dots, dashes or underscores, the first a letter or a digit")
			}
			return s, err
		},
		write: appendString,
		given: func(s string) bool { return s != "" },
	}
	textType = codec[string]{
		def: "text",
		read: func(v raw) (string, error) {
			s, err := readString(v)
			if err == nil && len(s) > MaxText {
				err = fail("", "is %d bytes long, want at most %d", len(s), MaxText)
			}
			return s, err
		},
		write: appendString,
		given: func(s string) bool { return s != "" },
	}
	flagType = codec[bool]{
		def: "flag", read: readBool, write: strconv.AppendBool,
		given: func(v bool) bool { return v },
	}
	seedType = codec[uint64]{
		def: "seed",
		read: func(v raw) (uint64, error) {
			n, err := strconv.ParseUint(string(v), 10, 64)
			if err != nil {
				err = mismatch(v, "an integer from 0 to 18446744073709551615")
			}
			return n, err
		},
		write: func(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) },
	}
	scaleType = codec[float64]{
		def: "scale",
		read: func(v raw) (float64, error) {
			// What is no number fails as well as what no float64 holds.
			x, err := strconv.ParseFloat(string(v), 64)
			if err != nil {
				err = mismatch(v, "a number")
			}
			return x, err
		},
		write: func(b []byte, x float64) []byte { return strconv.AppendFloat(b, x, 'g', -1, 64) },
	}
	intType    = intFrom("int", -MaxNumber, MaxNumber)
	countType  = intFrom("count", 0, MaxNumber)
	answerType = intFrom("answer", -MaxAnswer, MaxAnswer)
	slotsType  = intFrom("slots", 0, MaxSlots)
	widthType  = intFrom("width", 1, MaxWidth)
	tokenType  = intFrom("token", -MaxToken-1, MaxToken)

	intsType    = listOf("ints", MaxRows, intType)
	answersType = listOf("answers", MaxRows, answerType)
	namesType   = listOf("names", MaxRows, nameType)
	idsType     = listOf("ids", MaxRows, listOf("", MaxNumber, tokenType))
	tokensType  = rectangular(listOf("tokens", MaxRows, listOf("", MaxColumns, tokenType)))

	maskType = codec[*ring.Mask]{
		def: "mask", read: readMask, write: AppendMask,
		given: func(m *ring.Mask) bool { return m != nil },
	}
	maskOrNull = codec[*ring.Mask]{
		def: "mask_or_null",
		read: func(v raw) (*ring.Mask, error) {
			if isNull(v) {
				return &ring.Mask{}, nil
			}
			return readMask(v)
		},
		write: AppendMask, given: maskType.given,
	}
	stateType = codec[State]{
		def:   "state",
		read:  func(v raw) (State, error) { return readState(v, 0) },
		write: AppendState,
		given: func(s State) bool { return s != nil },
	}
	wantType = codec[*Want]{
		def: "want",
		read: func(v raw) (*Want, error) {
			w := new(Want)
			return w, readObject(v, wantFields, w)
		},
		write: func(b []byte, w *Want) []byte { return append(appendObject(b, wantFields, w), '}') },
		given: func(w *Want) bool { return w != nil },
	}

	verbType      = oneOf("op", Verbs, func(v Verb) string { return string(v) }, "")
	kindType      = oneOf("kind", Kinds, func(k Kind) string { return string(k) }, "")
	codeType      = oneOf("code", ring.Codes, func(c string) string { return c }, "")
	semanticsType = oneOf("semantics", []ring.Semantics{ring.MLXLM, ring.Exact}, ring.Semantics.String, ring.MLXLM)
	fillType      = oneOf("fill", []Fill{Grid, Bits}, Fill.String, Grid)
	dtypeType     = oneOf("dtype", []ring.DType{ring.BFloat16, ring.Float16, ring.Float32}, ring.DType.String, 0)
	stepType      = codec[int]{
		def: "step", read: intFrom("", 1, MaxStep).read, write: appendInt,
		given: func(n int) bool { return n != DefaultStep },
	}
	quantType = object("quant", quantFields)
	shapeType = object("shape", shapeFields)
)

var quantFields = []field[Quant]{
	req("group_size", func(q *Quant) *int { return &q.GroupSize }, widthType),
	req("bits", func(q *Quant) *int { return &q.Bits }, widthType),
}

var shapeFields = []field[Shape]{
	req("kv_heads", func(s *Shape) *int { return &s.KVHeads }, intFrom("heads", 1, MaxHeads)),
	req("key_dim", func(s *Shape) *int { return &s.KeyDim }, widthType),
	req("value_dim", func(s *Shape) *int { return &s.ValueDim }, widthType),
	req("dtype", func(s *Shape) *ring.DType { return &s.DType }, dtypeType),
}

func intFrom(def string, low, high int) codec[int] {
	return codec[int]{
		def:   def,
		read:  func(v raw) (int, error) { return readInt(v, low, high) },
		write: appendInt,
		given: func(n int) bool { return n != 0 },
	}
}

func listOf[V any](def string, most int, c codec[V]) codec[[]V] {
	return codec[[]V]{
		def:   def,
		read:  func(v raw) ([]V, error) { return readList(v, most, c.read) },
		write: func(b []byte, list []V) []byte { return appendList(b, list, c.write) },
		given: func(list []V) bool { return list != nil },
	}
}

// rectangular refuses lists of different lengths, which no array can hold.
func rectangular(c codec[[][]int]) codec[[][]int] {
	read := c.read
	c.read = func(v raw) ([][]int, error) {
		rows, err := read(v)
		for i, r := range rows {
			if len(r) != len(rows[0]) {
				return nil, fail(strconv.Itoa(i), "has %d columns, the first row %d; an array needs rows of one length", len(r), len(rows[0]))
			}
		}
		return rows, err
	}
	return c
}

// ptr makes a type whose absence differs from every value.
func ptr[V any](c codec[V]) codec[*V] {
	return codec[*V]{
		def: c.def,
		read: func(v raw) (*V, error) {
			x, err := c.read(v)
			return &x, err
		},
		write: func(b []byte, x *V) []byte { return c.write(b, *x) },
		given: func(x *V) bool { return x != nil },
	}
}

func object[V any](def string, fields []field[V]) codec[V] {
	return codec[V]{
		def: def,
		read: func(v raw) (x V, err error) {
			err = readObject(v, fields, &x)
			return x, err
		},
		write: func(b []byte, x V) []byte { return append(appendObject(b, fields, &x), '}') },
	}
}

func oneOf[V comparable](def string, all []V, text func(V) string, absent V) codec[V] {
	list := ""
	for i, x := range all {
		if i > 0 {
			list += ", "
		}
		list += text(x)
	}
	return codec[V]{
		def: def,
		read: func(v raw) (none V, err error) {
			if s, err := readString(v); err == nil {
				for _, x := range all {
					if text(x) == s {
						return x, nil
					}
				}
			}
			return none, mismatch(v, "one of "+list)
		},
		write: func(b []byte, x V) []byte { return appendString(b, text(x)) },
		given: func(x V) bool { return x != absent },
	}
}

// The fields of an operation. Some stand for different things in different
// operations, and are named here after what they are.
var (
	fCache    = req("cache", func(o *Op) *string { return &o.Cache }, nameType)
	fOut      = req("out", func(o *Op) *string { return &o.Out }, nameType)
	fOther    = req("other", func(o *Op) *string { return &o.Other }, nameType)
	fAs       = req("as", func(o *Op) *string { return &o.As }, nameType)
	fFrom     = req("from", func(o *Op) *string { return &o.From }, nameType)
	fFile     = req("file", func(o *Op) *string { return &o.File }, nameType)
	fCaches   = req("caches", func(o *Op) *[]string { return &o.Caches }, namesType)
	fOuts     = req("outs", func(o *Op) *[]string { return &o.Outs }, namesType)
	fTokens   = req("tokens", func(o *Op) *[][]int { return &o.Tokens }, tokensType)
	fCount    = req("tokens", func(o *Op) *int { return &o.N }, intType)
	fN        = req("n", func(o *Op) *int { return &o.N }, intType)
	fWindow   = opt("window", func(o *Op) **int { return &o.Window }, ptr(intType))
	fLengths  = opt("lengths", func(o *Op) *[]int { return &o.Lengths }, intsType)
	fRightPad = opt("right_padding", func(o *Op) *[]int { return &o.RightPadding }, intsType)
	fPadded   = opt("right_padded", func(o *Op) **bool { return &o.RightPadded }, ptr(flagType))
	fRows     = req("rows", func(o *Op) *[]int { return &o.Rows }, intsType)
	fRow      = req("row", func(o *Op) *int { return &o.Row }, intType)
	fLimit    = opt("limit", func(o *Op) **int { return &o.Limit }, ptr(intType))
	fSlot     = req("slot", func(o *Op) *int { return &o.Slot }, intType)
	fMask     = req("mask", func(o *Op) **ring.Mask { return &o.Mask }, maskType)
	fCausal   = opt("causal", func(o *Op) *bool { return &o.Causal }, flagType)
	fPreserve = opt("preserve_columns", func(o *Op) *bool { return &o.Preserve }, flagType)
	fQueries  = req("queries", func(o *Op) *int { return &o.Queries }, countType)
	fScale    = req("scale", func(o *Op) *float64 { return &o.Scale }, scaleType)
	fKind     = req("kind", func(o *Op) *Kind { return &o.Kind }, kindType)
	fMaxSize  = req("max_size", func(o *Op) *int { return &o.MaxSize }, intType)
	fSinks    = opt("keep", func(o *Op) *int { return &o.Keep }, intType)
	fLeftPad  = req("left_padding", func(o *Op) *[]int { return &o.LeftPadding }, intsType)
	fLeftPad0 = opt("left_padding", func(o *Op) *[]int { return &o.LeftPadding }, intsType)
	fChunk    = req("chunk_size", func(o *Op) *int { return &o.ChunkSize }, intType)
	fSlots    = req("slots", func(o *Op) *int { return &o.Slots }, slotsType)
	fKept     = field[Op]{ // one number for all rows, or one a row
		name: "keep", def: "int_or_ints",
		read: func(v raw, o *Op) (err error) {
			if v[0] == '[' {
				o.KeepRows, err = intsType.read(v)
			} else {
				o.Keep, err = intType.read(v)
			}
			return err
		},
		write: func(b []byte, o *Op) []byte {
			if o.KeepRows != nil {
				return intsType.write(b, o.KeepRows)
			}
			return appendInt(b, o.Keep)
		},
		given: func(*Op) bool { return true },
	}
)

// opOf makes the fields of an operation, in the order in which they are
// printed.
func opOf(fields ...field[Op]) []field[Op] {
	all := []field[Op]{req("op", func(o *Op) *Verb { return &o.Verb }, verbType)}
	all = append(all, fields...)
	return append(all, opt("want", func(o *Op) **Want { return &o.Want }, wantType))
}

// opFields says which fields each operation has. Those of New depend on the
// kind.
var opFields = map[Verb][]field[Op]{
	Update:            opOf(fCache, fTokens),
	MaskOp:            opOf(fCache, fN, fWindow),
	Prepare:           opOf(fCache, fLeftPad0, fLengths, fRightPad, fPadded),
	Finalize:          opOf(fCache),
	Filter:            opOf(fCache, fRows),
	Extend:            opOf(fCache, fOther),
	Merge:             opOf(fOut, fCaches),
	Extract:           opOf(fCache, fRow, fOut, fLimit),
	Trim:              opOf(fCache, fN),
	Save:              opOf(fCaches, fFile),
	Load:              opOf(fOuts, fFile),
	ToQuantized:       opOf(fCache, fOut),
	TrimFront:         opOf(fCache),
	Write:             opOf(fCache, fSlot, fTokens),
	Advance:           opOf(fCache, fN),
	AppendDecode:      opOf(fCache, fTokens),
	AppendWindow:      opOf(fCache, fTokens),
	AppendWindowUnder: opOf(fCache, fTokens, fMask, fCausal),
	Rollback:          opOf(fCache, fKept, fPreserve),
	Snapshot:          opOf(fCache, fAs),
	Restore:           opOf(fCache, fFrom),
	Adopt:             opOf(fOut, fFrom),
	TemporalView:      opOf(fCache),
	Release:           opOf(fCache),
	ValidOffset:       opOf(fCache),
	ProjectedBytes:    opOf(fCache, fCount),
	Attend:            opOf(fCache, fQueries, fScale),
}

// newFields says which fields New has, by kind.
var newFields = map[Kind][]field[Op]{
	KV:                     opOf(fOut, fKind),
	Rotating:               opOf(fOut, fKind, fMaxSize, fSinks),
	BatchKV:                opOf(fOut, fKind, fLeftPad),
	BatchRotating:          opOf(fOut, fKind, fMaxSize, fLeftPad),
	Quantized:              opOf(fOut, fKind),
	Arrays:                 opOf(fOut, fKind, fSlots, fLeftPad0),
	List:                   opOf(fOut, fKind, fCaches),
	Chunked:                opOf(fOut, fKind, fChunk),
	Concatenate:            opOf(fOut, fKind),
	RotatingQuantized:      opOf(fOut, fKind, fMaxSize),
	BatchRotatingQuantized: opOf(fOut, fKind, fMaxSize, fLeftPad),
	BatchRecurrent:         opOf(fOut, fKind, fSlots),
}

var wantFields = []field[Want]{
	opt("error", func(w *Want) *string { return &w.Error }, codeType),
	opt("trimmed", func(w *Want) **int { return &w.Trimmed }, ptr(answerType)),
	opt("mask", func(w *Want) **ring.Mask { return &w.Mask }, maskOrNull),
	opt("offsets", func(w *Want) *[]int { return &w.Offsets }, answersType),
	opt("bytes", func(w *Want) **int { return &w.Bytes }, ptr(answerType)),
	opt("returned", func(w *Want) *[][]int { return &w.Returned }, idsType),
	opt("stored", func(w *Want) *[][]int { return &w.Stored }, idsType),
	opt("state", func(w *Want) *State { return &w.State }, stateType),
}

// header is a case as its text has it: the four parts of Found side by side
// with the rest.
type header struct {
	Case
	property, target, version *string
	seed                      *uint64
}

// headerFields are all fields of a case but ops, which readCase adds: an
// operation must be told apart in errors, and printed on a line of its own.
var headerFields = []field[header]{
	req("schema", func(*header) *string { s := Schema; return &s }, oneOf("schema", []string{Schema}, func(s string) string { return s }, "")),
	req("name", func(h *header) *string { return &h.Name }, nameType),
	req("source", func(h *header) *string { return &h.Source }, textType),
	opt("id", func(h *header) *string { return &h.ID }, textType),
	opt("link", func(h *header) *string { return &h.Link }, textType),
	opt("notes", func(h *header) *string { return &h.Notes }, textType),
	opt("property", func(h *header) **string { return &h.property }, ptr(textType)),
	opt("target", func(h *header) **string { return &h.target }, ptr(textType)),
	opt("seed", func(h *header) **uint64 { return &h.seed }, ptr(seedType)),
	opt("version", func(h *header) **string { return &h.version }, ptr(textType)),
	opt("semantics", func(h *header) *ring.Semantics { return &h.Semantics }, semanticsType),
	req("shape", func(h *header) *Shape { return &h.Shape }, shapeType),
	opt("quant", func(h *header) **Quant { return &h.Quant }, ptr(quantType)),
	opt("step", func(h *header) *int { return &h.Step }, stepType),
	opt("fill", func(h *header) *Fill { return &h.Fill }, fillType),
}
