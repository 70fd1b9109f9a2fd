package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"example.com/ringcheck/reference/ring"
)

// Parse reads one case. It accepts what docs/case-format.md describes, within
// the bounds of this package, and nothing else: no field, kind or operation
// that it does not know, no field that the operation or the kind does not have,
// no field twice, nothing behind the case. An error is an [*Error] that names
// the file (name), the operation and the field.
func Parse(text []byte, name string) (Case, error) {
	c, err := readCase(text)
	if err == nil {
		err = weigh(&c)
	}
	if err != nil {
		if e, ok := err.(*Error); ok {
			e.File = name
		}
		return Case{}, err
	}
	return c, nil
}

func readCase(text []byte) (Case, error) {
	if len(text) > MaxFile {
		return Case{}, fail("", "is %d bytes long, want at most %d", len(text), MaxFile)
	}
	v, err := valid(text)
	if err != nil {
		return Case{}, err
	}
	h := header{Case: Case{Step: DefaultStep}}
	h.Semantics = ring.MLXLM
	fields := append(slices.Clip(headerFields), field[header]{
		name: "ops",
		read: func(v raw, h *header) (err error) {
			i := -1
			h.Ops, err = readList(v, MaxOps, func(v raw) (Op, error) {
				i++
				o, err := readOp(v)
				return o, inOp(i, o.Verb, err)
			})
			return err
		},
	})
	if err := readObject(v, fields, &h); err != nil {
		return Case{}, err
	}
	switch p, t, s, v := h.property, h.target, h.seed, h.version; {
	case p != nil && t != nil && s != nil && v != nil:
		h.Found = &Found{*p, *t, *s, *v}
	case p != nil || t != nil || s != nil || v != nil:
		return Case{}, fail("", "has some of property, target, seed and version; want all four of a filed failure, or none")
	}
	return h.Case, nil
}

// readOp reads one operation. Which fields it may have depends on two of them,
// which are looked for first; an error comes with what is known of o.
func readOp(v raw) (o Op, err error) {
	if v[0] != '{' {
		return o, mismatch(v, "an object")
	}
	verb, kind := raw("null"), raw("null")
	for quotedName, value := range members(v) {
		switch name, _ := readString(quotedName); name {
		case "op":
			verb = value
		case "kind":
			kind = value
		}
	}
	if o.Verb, err = verbType.read(verb); err != nil {
		return o, within("op", err)
	}
	fields := opFields[o.Verb]
	if o.Verb == New {
		k, err := kindType.read(kind)
		if err != nil {
			return o, within("kind", err)
		}
		fields = newFields[k]
	}
	return o, readObject(v, fields, &o)
}

// Format returns the canonical text of c: the header on one line, each
// operation on one, fields in a fixed order, what is the default left out. For
// a c that breaks the format (an unknown verb, a number out of bounds) it
// returns text that Parse refuses.
func Format(c Case) []byte {
	b := appendHeader(make([]byte, 0, 256+256*len(c.Ops)), c)
	b = append(b, ",\n \"ops\":["...)
	for i := range c.Ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n  "...)
		b = appendOp(b, &c.Ops[i])
	}
	return append(b, "\n]}\n"...)
}

// CompactJSON returns c without its wants on one line, without a newline: the
// form in which a case travels to an implementation.
func CompactJSON(c Case) []byte {
	b := appendHeader(nil, c)
	b = append(b, `,"ops":`...)
	b = appendList(b, c.Ops, func(b []byte, o Op) []byte {
		o.Want = nil
		return appendOp(b, &o)
	})
	return append(b, '}')
}

// appendHeader prints all of c but the operations and the closing brace.
func appendHeader(b []byte, c Case) []byte {
	h := header{Case: c}
	if f := c.Found; f != nil {
		h.property, h.target, h.seed, h.version = &f.Property, &f.Target, &f.Seed, &f.Version
	}
	return appendObject(b, headerFields, &h)
}

func appendOp(b []byte, o *Op) []byte {
	fields, known := opFields[o.Verb]
	switch {
	case o.Verb == New:
		fields, known = newFields[o.Kind]
		if !known {
			fields = opOf(fOut, fKind)
		}
	case !known:
		fields = opOf()
	}
	return append(appendObject(b, fields, o), '}')
}

// Unwanted returns c without its wants. It shares all else with c.
func Unwanted(c Case) Case {
	c.Ops = slices.Clone(c.Ops)
	for i := range c.Ops {
		c.Ops[i].Want = nil
	}
	return c
}

// Content returns the id of what c executes: 16 hexadecimal digits, the same
// for cases that differ only in name, source, notes and wants.
func (c Case) Content() string {
	sum := sha256.Sum256(CompactJSON(Case{
		Semantics: c.Semantics, Shape: c.Shape, Quant: c.Quant, Step: c.Step, Fill: c.Fill, Ops: c.Ops,
	}))
	return hex.EncodeToString(sum[:8])
}
