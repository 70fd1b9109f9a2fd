package corpus

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// source draws the text of values and counts the names it has made, so that no
// cache is in two lists.
type source struct {
	t     *rapid.T
	names int
}

func (s *source) between(low, high int) int { return rapid.IntRange(low, high).Draw(s.t, "n") }

func (s *source) list(low, high int, of func() string) string {
	parts := make([]string, s.between(low, high))
	for i := range parts {
		parts[i] = of()
	}
	return s.space() + "[" + strings.Join(parts, s.space()+",") + s.space() + "]"
}

func (s *source) space() string {
	return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(s.t, "space")
}

func (s *source) pick(of ...string) string { return rapid.SampledFrom(of).Draw(s.t, "pick") }

func (s *source) number(low, high int) string { return fmt.Sprint(s.between(low, high)) }

// rect draws rows of one length.
func (s *source) rect(least int, cell, join, open, end string) string {
	n := s.between(least, 3)
	return s.list(0, 3, func() string {
		cells := make([]string, n)
		for i := range cells {
			cells[i] = s.pick(strings.Split(cell, "|")...)
		}
		return open + strings.Join(cells, join) + end
	})
}

// value draws the text of a value of a type, by its name in the schema.
func (s *source) value(def string) string {
	switch def {
	case "schema":
		return `"` + Schema + `"`
	case "name":
		s.names++
		return fmt.Sprintf(`"%s%d"`, s.pick("a", "B.", "9-_"), s.names)
	case "text":
		return s.pick(`"plain"`, `"é \"quoted\" \\ \u00e9\n<&>"`, `"\ud83d\ude00"`, `"x y"`)
	case "flag":
		return s.pick("true", "false")
	case "seed":
		return s.pick("0", "7", "18446744073709551615")
	case "scale":
		return s.pick("0", "0.125", "1e-7", "-2.5E+3", "0.1")
	case "int", "answer":
		return s.number(-4, 4)
	case "count", "slots":
		return s.number(0, 4)
	case "heads", "width", "step":
		return s.number(1, 4)
	case "ints", "answers":
		return s.list(0, 3, func() string { return s.value("int") })
	case "names":
		return s.list(0, 3, func() string { return s.value("name") })
	case "ids":
		return s.list(0, 3, func() string { return s.list(0, 3, func() string { return s.number(-3, 3) }) })
	case "tokens":
		return s.rect(0, "5|-2147483648|2147483647|0", ",", "[", "]")
	case "mask":
		return s.rect(1, `"01"|"10"|"\u00311"`, ",", "[", "]")
	case "mask_or_null":
		return s.pick("null", s.value("mask"))
	case "int_or_ints", "answer_or_answers":
		return s.pick(s.value("int"), s.value("ints"))
	case "answers_or_null":
		return s.pick("null", s.value("ints"))
	case "states":
		return s.list(0, 2, func() string { return s.value("state") })
	case "state":
		members := stateMembers()
		if s.between(0, 3) > 0 {
			members = fixed(members, "caches") // so that it ends
		}
		return s.object(members)
	case "want":
		return s.object(membersOf(wantFields))
	case "shape":
		return s.object(membersOf(shapeFields))
	case "quant":
		return s.object(membersOf(quantFields))
	case "code":
		return s.pick(`"range"`, `"raises"`, `"pending_padding"`)
	case "semantics":
		return s.pick(`"mlxlm"`, `"exact"`)
	case "fill":
		return s.pick(`"grid"`, `"bits"`)
	case "dtype":
		return s.pick(`"bfloat16"`, `"float16"`, `"float32"`)
	}
	s.t.Fatalf("the generator does not know the type %q", def)
	return ""
}

// object draws an object, its members in any order, with more beside.
func (s *source) object(members []member, more ...string) string {
	texts := more
	for _, m := range members {
		if !m.optional || s.between(0, 1) == 0 {
			texts = append(texts, fmt.Sprintf(`"%s"%s:%s`, m.name, s.space(), s.value(m.def)))
		}
	}
	texts = rapid.Permutation(texts).Draw(s.t, "order")
	return "{" + strings.Join(texts, ","+s.space()) + s.space() + "}"
}

// fixed returns members but those of these names.
func fixed(members []member, names ...string) []member {
	return slices.DeleteFunc(members, func(m member) bool { return slices.Contains(names, m.name) })
}

func (s *source) operation(v Verb, k Kind) string {
	if v == New {
		return s.object(fixed(membersOf(newFields[k]), "op", "kind"), `"op":"new"`, `"kind":"`+string(k)+`"`)
	}
	return s.object(fixed(membersOf(opFields[v]), "op"), `"op":"`+string(v)+`"`)
}

// text draws the text of a case that Parse must accept.
func (s *source) text() string {
	more := []string{`"ops":` + s.list(0, 6, func() string {
		return s.operation(rapid.SampledFrom(Verbs).Draw(s.t, "op"), rapid.SampledFrom(Kinds).Draw(s.t, "kind"))
	})}
	if s.between(0, 1) == 0 {
		more = append(more, `"property":"p"`, `"target":""`, `"version":"1"`, `"seed":`+s.value("seed"))
	}
	members := fixed(membersOf(headerFields), "property", "target", "seed", "version")
	return s.space() + s.object(members, more...) + s.space()
}

func must(t testing.TB, text string) Case {
	t.Helper()
	c, err := Parse([]byte(text), "test.json")
	if err != nil {
		t.Fatalf("Parse of %s: %v", text, err)
	}
	return c
}

const sampleShape = `{"kv_heads":1,"key_dim":4,"value_dim":8,"dtype":"bfloat16"}`

const head = `{"schema":"ringcheck/case/v1","name":"n","source":"s","shape":` + sampleShape + `,`

// caseOf returns a case of these operations.
func caseOf(ops ...string) string { return head + `"ops":[` + strings.Join(ops, ",") + `]}` }
