package corpus

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/ringcheck/reference/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

type tree = map[string]any

func ref(def string) tree { return tree{"$ref": "#/$defs/" + def} }

// objectSchema says of an object what its table of fields says.
func objectSchema(fields []member) tree {
	props, required := tree{}, []any{}
	for _, f := range fields {
		props[f.name] = ref(f.def)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	return tree{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func integerSchema(low, high any) tree {
	return tree{"type": "integer", "minimum": low, "maximum": high}
}

func listSchema(item any, most int) tree {
	return tree{"type": "array", "items": item, "maxItems": most}
}

func enum[V any](all []V, text func(V) string) tree {
	var names []any
	for _, v := range all {
		names = append(names, text(v))
	}
	return tree{"enum": names}
}

func when(field, value string, then string) any {
	return tree{"if": tree{"properties": tree{field: tree{"const": value}}}, "then": ref(then)}
}

// schemaOfTables is the schema that the tables of the codec amount to.
func schemaOfTables() tree {
	top := objectSchema(membersOf(headerFields))
	top["properties"].(tree)["ops"] = listSchema(ref("operation"), MaxOps)
	top["required"] = append(top["required"].([]any), "ops")
	dependent := tree{}
	found := []string{"property", "target", "seed", "version"}
	for i, f := range found {
		var rest []any
		for j, g := range found {
			if i != j {
				rest = append(rest, g)
			}
		}
		dependent[f] = rest
	}
	top["dependentRequired"] = dependent
	maskRow := tree{"type": "array", "minItems": 1, "items": tree{"type": "string", "pattern": "^[01]*$"}}
	null := tree{"type": "null"}
	defs := tree{
		"schema":            tree{"const": Schema},
		"name":              tree{"type": "string", "pattern": namePattern},
		"text":              tree{"type": "string", "maxLength": MaxText},
		"flag":              tree{"type": "boolean"},
		"seed":              integerSchema(0, uint64(1<<64-1)),
		"scale":             tree{"type": "number"},
		"int":               integerSchema(-MaxNumber, MaxNumber),
		"count":             integerSchema(0, MaxNumber),
		"slots":             integerSchema(0, MaxSlots),
		"answer":            integerSchema(-MaxAnswer, MaxAnswer),
		"token":             integerSchema(-MaxToken-1, MaxToken),
		"heads":             integerSchema(1, MaxHeads),
		"width":             integerSchema(1, MaxWidth),
		"step":              integerSchema(1, MaxStep),
		"ints":              listSchema(ref("int"), MaxRows),
		"answers":           listSchema(ref("answer"), MaxRows),
		"names":             listSchema(ref("name"), MaxRows),
		"tokens":            listSchema(listSchema(ref("token"), MaxColumns), MaxRows),
		"ids":               listSchema(listSchema(ref("token"), MaxNumber), MaxRows),
		"mask":              listSchema(maskRow, MaxRows),
		"mask_or_null":      tree{"anyOf": []any{ref("mask"), null}},
		"int_or_ints":       tree{"anyOf": []any{ref("int"), ref("ints")}},
		"answer_or_answers": tree{"anyOf": []any{ref("answer"), ref("answers")}},
		"answers_or_null":   tree{"anyOf": []any{ref("answers"), null}},
		"states":            listSchema(ref("state"), MaxRows),
		"op":                enum(Verbs, func(v Verb) string { return string(v) }),
		"kind":              enum(Kinds, func(k Kind) string { return string(k) }),
		"code":              enum(ring.Codes, func(c string) string { return c }),
		"semantics":         enum([]ring.Semantics{ring.MLXLM, ring.Exact}, ring.Semantics.String),
		"fill":              enum([]Fill{Grid, Bits}, Fill.String),
		"dtype":             enum([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}, ring.DType.String),
		"shape":             objectSchema(membersOf(shapeFields)),
		"quant":             objectSchema(membersOf(quantFields)),
		"want":              objectSchema(membersOf(wantFields)),
		"state":             objectSchema(stateMembers()),
	}
	var ops, kinds []any
	for _, v := range Verbs {
		ops = append(ops, when("op", string(v), "op."+string(v)))
		if v != New {
			defs["op."+string(v)] = objectSchema(membersOf(opFields[v]))
		}
	}
	for _, k := range Kinds {
		kinds = append(kinds, when("kind", string(k), "new."+string(k)))
		defs["new."+string(k)] = objectSchema(membersOf(newFields[k]))
	}
	defs["operation"] = tree{"type": "object", "properties": tree{"op": ref("op")}, "required": []any{"op"}, "allOf": ops}
	defs["op.new"] = tree{"properties": tree{"kind": ref("kind")}, "required": []any{"kind"}, "allOf": kinds}
	top["$defs"] = defs
	return top
}

// plain turns v into what JSON decoding gives, numbers exact.
func plain(t *testing.T, text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// undescribed drops what is for people alone.
func undescribed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, isText := v["description"].(string); isText {
			delete(v, "description")
		}
		for _, x := range v {
			undescribed(x)
		}
	case []any:
		for _, x := range v {
			undescribed(x)
		}
	}
	return v
}

// The schema file says what the tables of the codec say: every operation, kind,
// field, type, bound and code.
func TestSchemaEqualsTables(t *testing.T) {
	text, err := json.Marshal(schemaOfTables())
	if err != nil {
		t.Fatal(err)
	}
	file := undescribed(plain(t, JSONSchema())).(map[string]any)
	for _, k := range []string{"$schema", "$id", "title"} {
		if _, ok := file[k].(string); !ok {
			t.Errorf("%s is missing", k)
		}
		delete(file, k)
	}
	if d := cmp.Diff(plain(t, text), any(file)); d != "" {
		t.Errorf("case.schema.json differs from the tables (-tables +file):\n%s", d)
	}
}

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("case.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("case.schema.json")
})

// schemaRefuses returns why the schema refuses text, "" if it does not.
func schemaRefuses(text []byte) string {
	s, err := compiled()
	if err != nil {
		return "no schema: " + err.Error()
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		return "schema: " + err.Error()
	}
	return ""
}

func TestSchemaAcceptsCases(t *testing.T) {
	for f, err := range All(FS()) {
		if err != nil {
			t.Fatal(err)
		}
		if why := schemaRefuses(Format(f.Case)); why != "" {
			t.Errorf("%s: %s", f.Path, why)
		}
	}
}

// sample holds a text of each type, and foreign texts of no type but those
// that notForeign names.
var sample = map[string]string{
	"schema": `"` + Schema + `"`, "name": `"a"`, "text": `"t"`, "flag": `true`, "seed": `1`, "scale": `0.5`,
	"int": `1`, "count": `1`, "slots": `1`, "answer": `1`, "heads": `1`, "width": `4`, "step": `2`,
	"ints": `[1]`, "answers": `[1]`, "names": `["b"]`, "tokens": `[[1,2]]`, "ids": `[[1],[]]`,
	"mask": `[["01"]]`, "mask_or_null": `null`, "int_or_ints": `[2]`, "answer_or_answers": `[2]`, "answers_or_null": `null`,
	"states": `[{}]`, "state": `{}`, "want": `{}`, "code": `"range"`,
	"semantics": `"exact"`, "fill": `"bits"`, "dtype": `"float32"`,
	"shape": `{"kv_heads":1,"key_dim":4,"value_dim":4,"dtype":"float16"}`, "quant": `{"group_size":32,"bits":4}`,
}

var foreign = []string{`{"no":1}`, `[[["x"]]]`, `"\u0000"`, `1.5`, `true`, `null`}

var notForeign = map[string]string{
	"text": `"\u0000"`, "scale": `1.5`, "flag": `true`, "mask_or_null": `null`, "answers_or_null": `null`,
}

type member struct {
	name, def string
	optional  bool
}

func membersOf[T any](fields []field[T]) (m []member) {
	for _, f := range fields {
		m = append(m, member{f.name, f.def, f.optional})
	}
	return m
}

// Schema and Parse refuse the same: of every object, operation and kind, each
// field in turn missing or of a foreign type, and a field too many.
func TestMutations(t *testing.T) {
	sound := func(what, text string) {
		if why := schemaRefuses([]byte(text)); why != "" {
			t.Errorf("%s: %s", what, why)
		}
		if _, err := Parse([]byte(text), ""); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	mutations := 0
	refused := func(what, text string) {
		mutations++
		if schemaRefuses([]byte(text)) == "" {
			t.Errorf("%s: the schema accepts %s", what, text)
		}
		if _, err := Parse([]byte(text), ""); err == nil {
			t.Errorf("%s: Parse accepts %s", what, text)
		}
	}
	mutate := func(what string, members []member, wrap func(string) string) {
		texts := make([]string, len(members))
		for i, m := range members {
			text, ok := sample[m.def]
			switch {
			case m.name == "op":
				text = `"` + strings.TrimPrefix(strings.Split(what, " ")[0], "op.") + `"`
			case m.name == "kind":
				text = `"` + strings.Split(what, " ")[1] + `"`
			case !ok:
				t.Fatalf("no sample of type %q", m.def)
			}
			texts[i] = `"` + m.name + `":` + text
		}
		print := func(i int, instead ...string) string {
			return wrap("{" + strings.Join(slices.Concat(texts[:i], instead, texts[min(i+1, len(texts)):]), ",") + "}")
		}
		sound(what, print(len(texts)))
		refused(what+" with a field too many", print(len(texts), `"extra":1`))
		for i, m := range members {
			if m.optional {
				sound(what+" without "+m.name, print(i))
			} else {
				refused(what+" without "+m.name, print(i))
			}
			for _, text := range foreign {
				if notForeign[m.def] != text {
					refused(what, print(i, `"`+m.name+`":`+text))
				}
			}
		}
	}
	alone := func(op string) string { return caseOf(op) }
	for _, v := range Verbs[1:] {
		mutate(string(v), membersOf(opFields[v]), alone)
	}
	for _, k := range Kinds {
		mutate("new "+string(k), membersOf(newFields[k]), alone)
	}
	mutate("want", membersOf(wantFields), func(s string) string { return caseOf(`{"op":"finalize","cache":"a","want":` + s + `}`) })
	mutate("state", stateMembers(), func(s string) string {
		return caseOf(`{"op":"finalize","cache":"a","want":{"state":` + s + `}}`)
	})
	mutate("shape", membersOf(shapeFields), func(s string) string { return strings.Replace(caseOf(), sampleShape, s, 1) })
	mutate("quant", membersOf(quantFields), func(s string) string { return head + `"quant":` + s + `,"ops":[]}` })
	header := membersOf(headerFields)
	for i := range header {
		switch header[i].name {
		case "property", "target", "seed", "version":
			header[i].optional = false // all four or none
		}
	}
	mutate("header", header, func(s string) string { return s[:len(s)-1] + `,"ops":[]}` })
	if mutations < 1000 {
		t.Errorf("%d mutations tried; the tables have shrunk", mutations)
	}
	for _, ops := range []string{``, `,"ops":{}`, `,"ops":[1]`, `,"ops":[{}]`, `,"ops":[{"op":"jump"}]`, `,"ops":[{"op":"new"}]`, `,"ops":[{"op":"new","kind":"heap"}]`} {
		refused("ops", strings.Replace(caseOf(), `,"ops":[]`, ops, 1))
	}
}

func stateMembers() (m []member) {
	for n := FOffset; n <= FCaches; n++ {
		m = append(m, member{n.String(), stateFields[n].def, true})
	}
	return m
}
