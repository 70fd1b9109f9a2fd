package corpus

import (
	"math/bits"
	"strconv"
	"strings"

	"example.com/ringcheck/reference/ring"
)

// stateFields says which values each field of a state may hold, and the name
// of that type in case.schema.json.
var stateFields = [...]struct {
	def   string
	kinds []FieldKind
}{
	FOffset:        {"answer_or_answers", []FieldKind{Int, Ints}},
	FLeftPadding:   {"answers_or_null", []FieldKind{Ints, Null}},
	FIdx:           {"answer", []FieldKind{Int}},
	FTotal:         {"answer", []FieldKind{Int}},
	FRotated:       {"flag", []FieldKind{Bool}},
	FEnds:          {"answers_or_null", []FieldKind{Ints, Null}},
	FRightPadding:  {"answers_or_null", []FieldKind{Ints, Null}},
	FLengths:       {"answers_or_null", []FieldKind{Ints, Null}},
	FSize:          {"answer", []FieldKind{Int}},
	FTrimmable:     {"flag", []FieldKind{Bool}},
	FBuffer:        {"answer", []FieldKind{Int}},
	FGroupSize:     {"answer", []FieldKind{Int}},
	FBits:          {"answer", []FieldKind{Int}},
	FChunkSize:     {"answer", []FieldKind{Int}},
	FStartPosition: {"answer", []FieldKind{Int}},
	FCaches:        {"states", []FieldKind{States}},
}

// AppendState appends s as a JSON object to b, in the order of s.
func AppendState(b []byte, s State) []byte {
	b = append(b, '{')
	for i, f := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, f.Name.String()...)
		b = append(b, '"', ':')
		switch f.Kind {
		case Null:
			b = append(b, "null"...)
		case Int:
			b = appendInt(b, f.Int)
		case Bool:
			b = strconv.AppendBool(b, f.Int != 0)
		case Ints:
			b = appendList(b, f.Ints, appendInt)
		case States:
			b = appendList(b, f.States, AppendState)
		}
	}
	return append(b, '}')
}

// ParseState reads a JSON object, such as AppendState prints, into a State in
// the order of the FieldName constants. An error is an [*Error].
func ParseState(text []byte) (State, error) {
	v, err := valid(text)
	if err != nil {
		return nil, err
	}
	return readState(v, 0)
}

func readState(v raw, depth int) (State, error) {
	if v[0] != '{' {
		return nil, mismatch(v, "an object")
	}
	if depth > MaxDepth {
		return nil, fail("", "lists stand more than %d deep", MaxDepth)
	}
	var fields [FCaches + 1]Field
	var seen uint
	for quotedName, value := range members(v) {
		name, err := readString(quotedName)
		if err != nil {
			return nil, err
		}
		n := FOffset
		for n <= FCaches && fieldNames[n] != name {
			n++
		}
		if n > FCaches {
			return nil, fail(clip(name), "no state has such a field")
		}
		if seen&(1<<n) != 0 {
			return nil, fail(name, "comes twice")
		}
		seen |= 1 << n
		f, err := readField(n, value, depth)
		if err != nil {
			return nil, within(name, err)
		}
		fields[n] = f
	}
	s := make(State, 0, bits.OnesCount(seen))
	for n := FOffset; n <= FCaches; n++ {
		if seen&(1<<n) != 0 {
			s = append(s, fields[n])
		}
	}
	return s, nil
}

func readField(n FieldName, v raw, depth int) (f Field, err error) {
	f.Name = n
	for _, f.Kind = range stateFields[n].kinds {
		switch {
		case f.Kind == Null && isNull(v):
			return f, nil
		case f.Kind == Int && (v[0] == '-' || '0' <= v[0] && v[0] <= '9'):
			f.Int, err = answerType.read(v)
			return f, err
		case f.Kind == Bool:
			yes, err := readBool(v)
			return BoolField(n, yes), err
		case f.Kind == Ints && v[0] == '[':
			f.Ints, err = answersType.read(v)
			return f, err
		case f.Kind == States && v[0] == '[':
			f.States, err = readList(v, MaxRows, func(v raw) (State, error) { return readState(v, depth+1) })
			return f, err
		}
	}
	var wants []string
	for _, kind := range stateFields[n].kinds {
		wants = append(wants, kindTexts[kind])
	}
	return f, mismatch(v, strings.Join(wants, " or "))
}

// kindTexts say in a message what a field may hold.
var kindTexts = map[FieldKind]string{
	Null: "null", Int: "a number", Bool: "true or false", Ints: "a list of numbers", States: "a list of states",
}

// AppendMask appends m as JSON to b: one list a row of one string a query, of 1
// where the query attends to the column and 0 where not; null where m has no
// query.
func AppendMask(b []byte, m *ring.Mask) []byte {
	if m.N == 0 {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for row := range m.B {
		if row > 0 {
			b = append(b, ',')
		}
		for q := range m.N {
			b = append(b, "[,"[min(q, 1)], '"')
			for col := range m.S {
				bit := byte('0')
				if m.At(row, q, col) {
					bit = '1'
				}
				b = append(b, bit)
			}
			b = append(b, '"')
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

// ParseMask reads what AppendMask prints. Null is a mask whose N is 0. The
// text [], a mask of no rows, does not say how many queries and columns it has:
// N is 1 then, and S 0. An error is an [*Error].
func ParseMask(text []byte) (*ring.Mask, error) {
	v, err := valid(text)
	if err != nil {
		return nil, err
	}
	return maskOrNull.read(v)
}

func readMask(v raw) (*ring.Mask, error) {
	if v[0] != '[' {
		return nil, mismatch(v, "a list of rows")
	}
	m := &ring.Mask{}
	for row := range elements(v) {
		at := strconv.Itoa(m.B)
		if m.B++; m.B > MaxRows {
			return nil, fail("", "more than %d rows", MaxRows)
		}
		if row[0] != '[' {
			return nil, within(at, mismatch(row, "a list of queries"))
		}
		n := 0
		for query := range elements(row) {
			s, err := readString(query)
			if err != nil {
				return nil, within(at, err)
			}
			if m.B == 1 && n == 0 {
				m.S = len(s)
			}
			if len(s) != m.S {
				return nil, fail(at, "query %d has %d columns, the first %d", n, len(s), m.S)
			}
			for i := range len(s) {
				if s[i] != '0' && s[i] != '1' {
					return nil, within(at, mismatch(query, "a string of 0 and 1"))
				}
				m.Data = append(m.Data, s[i] == '1')
			}
			n++
		}
		if m.B == 1 {
			m.N = n
		}
		if n == 0 || n != m.N {
			return nil, fail(at, "has %d queries, want at least one, and as many as the first row", n)
		}
	}
	if m.B == 0 {
		m.N = 1
	}
	return m, nil
}
