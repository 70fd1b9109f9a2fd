package corpus

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// raw is one JSON value, without space around it, of a text that valid has
// passed. Reading splits it; nothing is scanned for errors twice. The library's
// own decoding takes keys in any case and any number of times, which a strict
// reader must not.
type raw []byte

// valid returns text as one value, or what is wrong with it.
func valid(text []byte) (raw, error) {
	if !utf8.Valid(text) {
		return nil, fail("", "not UTF-8")
	}
	if !json.Valid(text) {
		var v json.RawMessage
		return nil, fail("", "not one JSON value: %v", json.Unmarshal(text, &v))
	}
	v, _ := cut(skip(text))
	return v, nil
}

// skip drops what stands between values.
func skip(v raw) raw { return bytes.TrimLeft(v, " \t\r\n,:") }

// cut splits v behind the value that it begins with.
func cut(v raw) (value, rest raw) {
	depth := 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			for i++; v[i] != '"'; i++ {
				if v[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return v[:i+1], v[i+1:]
			}
		case '[', '{':
			depth++
		case ']', '}':
			switch depth--; {
			case depth == 0:
				return v[:i+1], v[i+1:]
			case depth < 0:
				return v[:i], v[i:]
			}
		case ' ', '\t', '\r', '\n', ',', ':':
			if depth == 0 {
				return v[:i], v[i:]
			}
		}
	}
	return v, nil
}

// elements yields the elements of an array.
func elements(v raw) iter.Seq[raw] {
	return func(yield func(raw) bool) {
		for rest := skip(v[1:]); rest[0] != ']'; rest = skip(rest) {
			var e raw
			e, rest = cut(rest)
			if !yield(e) {
				return
			}
		}
	}
}

// members yields the members of an object, names still quoted.
func members(v raw) iter.Seq2[raw, raw] {
	return func(yield func(raw, raw) bool) {
		for rest := skip(v[1:]); rest[0] != '}'; rest = skip(rest) {
			var name, value raw
			name, rest = cut(rest)
			value, rest = cut(skip(rest))
			if !yield(name, value) {
				return
			}
		}
	}
}

func isNull(v raw) bool { return string(v) == "null" }

// mismatch says that v is not what was wanted.
func mismatch(v raw, want string) error {
	return fail("", "is %s, want %s", clip(string(v)), want)
}

// clip shortens foreign text for a message of one line.
func clip(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

func readInt(v raw, low, high int) (int, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < int64(low) || n > int64(high) {
		return 0, mismatch(v, "an integer from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
	return int(n), nil
}

func readBool(v raw) (bool, error) {
	if s := string(v); s == "true" || s == "false" {
		return s == "true", nil
	}
	return false, mismatch(v, "true or false")
}

func readString(v raw) (string, error) {
	if v[0] != '"' {
		return "", mismatch(v, "a string")
	}
	if s := v[1 : len(v)-1]; bytes.IndexByte(s, '\\') < 0 {
		return string(s), nil
	}
	var s string
	err := json.Unmarshal(v, &s)
	return s, err
}

// readList reads an array of at most most elements, each with read.
func readList[V any](v raw, most int, read func(raw) (V, error)) ([]V, error) {
	if v[0] != '[' {
		return nil, mismatch(v, "a list")
	}
	list := []V{}
	for e := range elements(v) {
		if len(list) == most {
			return nil, fail("", "more than %d elements", most)
		}
		x, err := read(e)
		if err != nil {
			return nil, within(strconv.Itoa(len(list)), err)
		}
		list = append(list, x)
	}
	return list, nil
}

// appendList is the inverse of readList.
func appendList[V any](b []byte, list []V, write func([]byte, V) []byte) []byte {
	b = append(b, '[')
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, x)
	}
	return append(b, ']')
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// appendString quotes s; what is no UTF-8 in it is replaced.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			w := bytes.NewBuffer(b)
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(s) // a string into memory: cannot fail
			return bytes.TrimSuffix(w.Bytes(), []byte{'\n'})
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// A codec reads and prints the values of one JSON type of the format.
type codec[V any] struct {
	def   string // its name in case.schema.json
	read  func(raw) (V, error)
	write func([]byte, V) []byte
	given func(V) bool // whether an optional field of this value is printed
}

// A field is one member of an object, read into or printed from a T.
type field[T any] struct {
	name     string
	def      string
	optional bool
	read     func(raw, *T) error
	write    func([]byte, *T) []byte
	given    func(*T) bool
}

// req makes a field that must be there.
func req[T, V any](name string, at func(*T) *V, c codec[V]) field[T] {
	return field[T]{
		name: name, def: c.def,
		read: func(v raw, t *T) (err error) {
			*at(t), err = c.read(v)
			return err
		},
		write: func(b []byte, t *T) []byte { return c.write(b, *at(t)) },
		given: func(*T) bool { return true },
	}
}

// opt makes a field that may be absent, which means the value for which c.given
// is false.
func opt[T, V any](name string, at func(*T) *V, c codec[V]) field[T] {
	f := req(name, at, c)
	f.optional = true
	f.given = func(t *T) bool { return c.given(*at(t)) }
	return f
}

// readObject reads v into t: every member must be one of fields, and come once.
func readObject[T any](v raw, fields []field[T], t *T) error {
	if v[0] != '{' {
		return mismatch(v, "an object")
	}
	var seen uint64
	for quotedName, value := range members(v) {
		name, err := readString(quotedName)
		if err != nil {
			return err
		}
		i := 0
		for i < len(fields) && fields[i].name != name {
			i++
		}
		if i == len(fields) {
			return fail(clip(name), "no such field here; want one of %s", fieldList(fields))
		}
		if seen&(1<<i) != 0 {
			return fail(name, "comes twice")
		}
		seen |= 1 << i
		if err := fields[i].read(value, t); err != nil {
			return within(name, err)
		}
	}
	for i, f := range fields {
		if !f.optional && seen&(1<<i) == 0 {
			return fail(f.name, "is missing")
		}
	}
	return nil
}

// appendObject prints t, without the closing brace.
func appendObject[T any](b []byte, fields []field[T], t *T) []byte {
	start := len(b)
	b = append(b, '{')
	for _, f := range fields {
		if !f.given(t) {
			continue
		}
		if len(b) > start+1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, f.name...)
		b = append(b, '"', ':')
		b = f.write(b, t)
	}
	return b
}

func fieldList[T any](fields []field[T]) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}
