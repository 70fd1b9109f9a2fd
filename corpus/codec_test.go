package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"example.com/ringcheck/reference/ring"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Any text of a case reads, prints canonically, and reads again as the same
// case; what travels is the same without its wants.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := (&source{t: t}).text()
		problem := roundTrip([]byte(text))
		if problem == "" {
			problem = schemaRefuses([]byte(text))
		}
		if problem != "" {
			t.Fatalf("%s\n%s", problem, text)
		}
	})
}

// roundTrip returns what is wrong with the reading and printing of text, which
// Parse must accept.
func roundTrip(text []byte) string {
	c, err := Parse(text, "a")
	if err != nil {
		return err.Error()
	}
	printed := Format(c)
	again, err := Parse(printed, "b")
	if err != nil {
		return "printed: " + err.Error()
	}
	if !reflect.DeepEqual(c, again) {
		return "read again: " + cmp.Diff(c, again)
	}
	if twice := Format(again); !bytes.Equal(printed, twice) {
		return "printed again: " + cmp.Diff(string(printed), string(twice))
	}
	if lines := bytes.Count(printed, []byte("\n")); lines != len(c.Ops)+3 {
		return fmt.Sprintf("%d lines for a header, %d operations and two brackets", lines, len(c.Ops))
	}
	compact := CompactJSON(c)
	sent, err := Parse(compact, "c")
	if err != nil {
		return "sent: " + err.Error()
	}
	if bytes.IndexByte(compact, '\n') >= 0 || !reflect.DeepEqual(sent, Unwanted(c)) {
		return "sent: " + cmp.Diff(Unwanted(c), sent)
	}
	if c.Content() != sent.Content() {
		return "the content id depends on wants"
	}
	return ""
}

func TestFormat(t *testing.T) {
	c := Case{
		Name: "all", Source: `a "b"`, Semantics: ring.Exact, Step: 4, Fill: Bits, ID: "M01", Link: "https://example.com/?a&b", Notes: "n",
		Shape: Shape{1, 32, 64, ring.Float16}, Quant: &Quant{32, 4},
		Found: &Found{"window", "cpu", 1<<64 - 1, "v1"},
		Ops: []Op{
			{Verb: New, Out: "r", Kind: Rotating, MaxSize: 0, Keep: -1, Want: &Want{Error: "max_size"}},
			{Verb: Rollback, Cache: "r", Keep: 2, Preserve: true},
			{Verb: Rollback, Cache: "r", KeepRows: []int{}, Want: &Want{}},
			{Verb: Filter, Cache: "r", Rows: []int{}, Want: &Want{
				Returned: [][]int{{}}, Stored: [][]int{}, Offsets: []int{}, Trimmed: new(int), Bytes: new(int),
				Mask:  &ring.Mask{},
				State: State{IntField(FOffset, 3), IntsField(FLeftPadding, nil), BoolField(FTrimmable, true), {Name: FCaches, Kind: States, States: []State{{}}}},
			}},
			{Verb: AppendWindowUnder, Cache: "r", Tokens: [][]int{{1, 2}}, Causal: true, Mask: &ring.Mask{B: 1, N: 2, S: 2, Data: []bool{true, false, true, true}}},
			{Verb: Attend, Cache: "r", Queries: 1, Scale: 0.125},
			{Verb: ProjectedBytes, Cache: "r", N: 7},
			{Verb: Prepare, Cache: "r", RightPadded: new(bool)},
			{Verb: MaskOp, Cache: "r", N: 1, Window: new(int)},
		},
	}
	want := `{"schema":"ringcheck/case/v1","name":"all","source":"a \"b\"","id":"M01","link":"https://example.com/?a&b","notes":"n",` +
		`"property":"window","target":"cpu","seed":18446744073709551615,"version":"v1","semantics":"exact",` +
		`"shape":{"kv_heads":1,"key_dim":32,"value_dim":64,"dtype":"float16"},"quant":{"group_size":32,"bits":4},"step":4,"fill":"bits",
 "ops":[
  {"op":"new","out":"r","kind":"rotating","max_size":0,"keep":-1,"want":{"error":"max_size"}},
  {"op":"rollback","cache":"r","keep":2,"preserve_columns":true},
  {"op":"rollback","cache":"r","keep":[],"want":{}},
  {"op":"filter","cache":"r","rows":[],"want":{"trimmed":0,"mask":null,"offsets":[],"bytes":0,"returned":[[]],"stored":[],"state":{"offset":3,"left_padding":null,"trimmable":true,"caches":[{}]}}},
  {"op":"append_window_under","cache":"r","tokens":[[1,2]],"mask":[["10","11"]],"causal":true},
  {"op":"attend","cache":"r","queries":1,"scale":0.125},
  {"op":"projected_bytes","cache":"r","tokens":7},
  {"op":"prepare","cache":"r","right_padded":false},
  {"op":"mask","cache":"r","n":1,"window":0}
]}
`
	if d := cmp.Diff(want, string(Format(c))); d != "" {
		t.Error(d)
	}
	if got := must(t, want); !reflect.DeepEqual(got, c) {
		t.Error(cmp.Diff(c, got))
	}
}

// What Go can hold and the format cannot is printed so that Parse refuses it.
func TestFormatOfNoCase(t *testing.T) {
	ok := must(t, caseOf(`{"op":"finalize","cache":"a"}`))
	for name, spoil := range map[string]func(*Case){
		"verb":      func(c *Case) { c.Ops[0].Verb = "jump" },
		"no verb":   func(c *Case) { c.Ops[0].Verb = "" },
		"kind":      func(c *Case) { c.Ops[0] = Op{Verb: New, Kind: "heap", Out: "a"} },
		"step":      func(c *Case) { c.Step = 0 },
		"semantics": func(c *Case) { c.Semantics = 0 },
		"fill":      func(c *Case) { c.Fill = 9 },
		"dtype":     func(c *Case) { c.Shape.DType = 0 },
		"packed":    func(c *Case) { c.Shape.DType = ring.Uint32 },
		"code":      func(c *Case) { c.Ops[0].Want = &Want{Error: "odd"} },
		"name":      func(c *Case) { c.Name = "../n" },
		"cache":     func(c *Case) { c.Ops[0].Cache = "a/b" },
		"number":    func(c *Case) { c.Ops[0] = Op{Verb: Trim, Cache: "a", N: MaxNumber + 1} },
		"UTF-8":     func(c *Case) { c.Ops[0].Cache = "a\xff" },
	} {
		c := Unwanted(ok)
		spoil(&c)
		if _, err := Parse(Format(c), ""); err == nil {
			t.Errorf("%s: Parse accepts %s", name, Format(c))
		}
		if p := Lint(c); len(p) != 1 {
			t.Errorf("%s: Lint finds %v, want one problem", name, p)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const fin = `{"op":"finalize","cache":"a"}`
	for _, c := range []struct {
		name, text string
		want       string // the error, behind the file's name
	}{
		{"nothing", ``, "not one JSON value: unexpected end of JSON input"},
		{"half", head, "not one JSON value: unexpected end of JSON input"},
		{"trailing", caseOf() + "{}", "not one JSON value: invalid character '{' after top-level value"},
		{"bytes", "\"\xff\"", "not UTF-8"},
		{"no object", `[]`, "is [], want an object"},
		{"empty", `{}`, "schema: is missing"},
		{"other schema", strings.Replace(caseOf(), "/v1", "/v2", 1), `schema: is "ringcheck/case/v2", want one of ringcheck/case/v1`},
		{"no ops", head + `"step":2}`, "ops: is missing"},
		{"ops twice", head + `"ops":[],"ops":[]}`, "ops: comes twice"},
		{"unknown", head + `"opts":[],"ops":[]}`, "opts: no such field here; want one of schema, name, source, id, link, notes, property, target, seed, version, semantics, shape, quant, step, fill, ops"},
		{"unknown, hostile", head + `"` + strings.Repeat("x", 50) + `\u0007":[],"ops":[]}`, strings.Repeat("x", 40) + "…: no such field here"},
		{"no shape member", strings.Replace(caseOf(), `"kv_heads":1,`, "", 1), "shape.kv_heads: is missing"},
		{"no such type", strings.Replace(caseOf(), "bfloat16", "uint32", 1), `shape.dtype: is "uint32", want one of bfloat16, float16, float32`},
		{"bad name", strings.Replace(caseOf(), `"name":"n"`, `"name":"../n"`, 1), `name: is "../n", want 1 to 64 letters`},
		{"long text", strings.Replace(caseOf(), `"source":"s"`, `"source":"`+strings.Repeat("s", MaxText+1)+`"`, 1), "source: is 4097 bytes long, want at most 4096"},
		{"some of found", head + `"seed":1,"ops":[]}`, "has some of property, target, seed and version"},
		{"seed", head + `"seed":-1,"ops":[]}`, "seed: is -1, want an integer from 0 to 18446744073709551615"},
		{"seed too large", head + `"seed":18446744073709551616,"ops":[]}`, "seed: is 18446744073709551616, want"},
		{"step", head + `"step":0,"ops":[]}`, "step: is 0, want an integer from 1 to 65536"},
		{"fill", head + `"fill":0,"ops":[]}`, "fill: is 0, want one of grid, bits"},
		{"quant", head + `"quant":{"bits":4},"ops":[]}`, "quant.group_size: is missing"},
		{"no list", head + `"ops":{}}`, "ops: is {}, want a list"},
		{"no op", caseOf(`{}`), "operation 0: op: is null, want one of new, update"},
		{"op null", caseOf(`null`), "operation 0: is null, want an object"},
		{"unknown op", caseOf(fin, `{"op":"jump"}`), `operation 1: op: is "jump", want one of new, update`},
		{"op twice", caseOf(`{"op":"trim","op":"finalize","cache":"a"}`), "operation 0 (trim): op: comes twice"},
		{"key twice", caseOf(fin, `{"op":"finalize","cache":"a","ca\u0063he":"b"}`), "operation 1 (finalize): cache: comes twice"},
		{"case of key", caseOf(`{"op":"finalize","Cache":"a"}`), "operation 0 (finalize): Cache: no such field here; want one of op, cache, want"},
		{"field of other op", caseOf(`{"op":"trim","cache":"a","n":1,"window":2}`), "operation 0 (trim): window: no such field here; want one of op, cache, n, want"},
		{"no kind", caseOf(`{"op":"new","out":"a"}`), "operation 0 (new): kind: is null, want one of kv, rotating"},
		{"unknown kind", caseOf(`{"op":"new","out":"a","kind":"heap"}`), `operation 0 (new): kind: is "heap", want`},
		{"field of other kind", caseOf(`{"op":"new","kind":"batch_rotating","out":"a","max_size":2,"left_padding":[0],"keep":1}`), "operation 0 (new): keep: no such field here"},
		{"missing", caseOf(`{"op":"new","kind":"rotating","out":"a"}`), "operation 0 (new): max_size: is missing"},
		{"number", caseOf(`{"op":"trim","cache":"a","n":1.0}`), "operation 0 (trim): n: is 1.0, want an integer from -1048576 to 1048576"},
		{"exponent", caseOf(`{"op":"trim","cache":"a","n":1e1}`), "operation 0 (trim): n: is 1e1, want an integer"},
		{"large", caseOf(`{"op":"trim","cache":"a","n":99999999999999999999}`), "operation 0 (trim): n: is 99999999999999999999, want"},
		{"no list of lists", caseOf(`{"op":"update","cache":"a","tokens":[1]}`), "operation 0 (update): tokens.0: is 1, want a list"},
		{"ragged", caseOf(`{"op":"update","cache":"a","tokens":[[1],[2,3]]}`), "operation 0 (update): tokens.1: has 2 columns, the first row 1"},
		{"token", caseOf(`{"op":"update","cache":"a","tokens":[[1,2147483648]]}`), "operation 0 (update): tokens.0.1: is 2147483648, want"},
		{"count", caseOf(`{"op":"projected_bytes","cache":"a","tokens":[[1]]}`), "operation 0 (projected_bytes): tokens: is [[1]], want an integer"},
		{"keep", caseOf(`{"op":"rollback","cache":"a","keep":null}`), "operation 0 (rollback): keep: is null, want an integer"},
		{"keeps", caseOf(`{"op":"rollback","cache":"a","keep":[null]}`), "operation 0 (rollback): keep.0: is null, want an integer"},
		{"mask null", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":null}`), "operation 0 (append_window_under): mask: is null, want a list of rows"},
		{"mask row", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":["1"]}`), `operation 0 (append_window_under): mask.0: is "1", want a list of queries`},
		{"mask query", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":[[1]]}`), "operation 0 (append_window_under): mask.0: is 1, want a string"},
		{"mask digit", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":[["12"]]}`), `operation 0 (append_window_under): mask.0: is "12", want a string of 0 and 1`},
		{"mask columns", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":[["1"],["11"]]}`), "operation 0 (append_window_under): mask.1: query 0 has 2 columns, the first 1"},
		{"mask queries", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":[["1"],["1","1"]]}`), "operation 0 (append_window_under): mask.1: has 2 queries"},
		{"mask of no query", caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":[[]]}`), "operation 0 (append_window_under): mask.0: has 0 queries"},
		{"scale", caseOf(`{"op":"attend","cache":"a","queries":1,"scale":"1"}`), `operation 0 (attend): scale: is "1", want a number`},
		{"scale too large", caseOf(`{"op":"attend","cache":"a","queries":1,"scale":1e999}`), "operation 0 (attend): scale: is 1e999, want a number"},
		{"flag", caseOf(`{"op":"rollback","cache":"a","keep":1,"preserve_columns":1}`), "operation 0 (rollback): preserve_columns: is 1, want true or false"},
		{"want null", caseOf(`{"op":"finalize","cache":"a","want":null}`), "operation 0 (finalize): want: is null, want an object"},
		{"want unknown", caseOf(`{"op":"finalize","cache":"a","want":{"x":1}}`), "operation 0 (finalize): want.x: no such field here"},
		{"code", caseOf(`{"op":"finalize","cache":"a","want":{"error":""}}`), `operation 0 (finalize): want.error: is "", want one of closed`},
		{"state", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"idx":true}}}`), "operation 0 (finalize): want.state.idx: is true, want a number"},
		{"state of text", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"offset":"0"}}}`), "operation 0 (finalize): want.state.offset: is \"0\", want a number or a list of numbers"},
		{"state flag", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"rotated":1}}}`), "operation 0 (finalize): want.state.rotated: is 1, want true or false"},
		{"state list", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"offset":[{}]}}}`), "operation 0 (finalize): want.state.offset.0: is {}, want an integer"},
		{"state unknown", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"head":1}}}`), "operation 0 (finalize): want.state.head: no state has such a field"},
		{"state twice", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"idx":1,"idx":1}}}`), "operation 0 (finalize): want.state.idx: comes twice"},
		{"child state", caseOf(`{"op":"finalize","cache":"a","want":{"state":{"caches":[{},1]}}}`), "operation 0 (finalize): want.state.caches.1: is 1, want an object"},
	} {
		_, err := Parse([]byte(c.text), "f.json")
		var typed *Error
		switch {
		case err == nil:
			t.Errorf("%s: accepted", c.name)
		case !errors.As(err, &typed) || typed.File != "f.json":
			t.Errorf("%s: %#v, want an *Error that names the file", c.name, err)
		case !strings.HasPrefix(err.Error(), "f.json: "+c.want):
			t.Errorf("%s: %v\nwant f.json: %s", c.name, err, c.want)
		}
	}
	_, err := Parse([]byte(caseOf(fin, `{"op":"mask","cache":"a","n":{}}`)), "f.json")
	want := &Error{File: "f.json", Problem: Problem{Op: 1, Verb: MaskOp, Field: "n", What: "is {}, want an integer from -1048576 to 1048576"}}
	if d := cmp.Diff(want, err); d != "" {
		t.Error(d)
	}
}

func TestContent(t *testing.T) {
	text := caseOf(`{"op":"new","out":"a","kind":"kv","want":{"state":{"offset":0}}}`)
	c := must(t, text)
	// The id is part of the names of files, and must not move.
	const want = "f6f71fa5fd4f1a62"
	if got := c.Content(); got != want {
		t.Errorf("Content() = %s, want %s", got, want)
	}
	same := c
	same.Name, same.Source, same.ID, same.Link, same.Notes = "m", "t", "i", "l", "n"
	same.Found = &Found{Seed: 1}
	same.Ops = []Op{{Verb: New, Out: "a", Kind: KV}}
	if same.Content() != c.Content() {
		t.Error("the id depends on what is not executed")
	}
	for name, change := range map[string]func(*Case){
		"semantics": func(c *Case) { c.Semantics = ring.Exact },
		"shape":     func(c *Case) { c.Shape.KeyDim++ },
		"quant":     func(c *Case) { c.Quant = &Quant{64, 4} },
		"step":      func(c *Case) { c.Step = 2 },
		"fill":      func(c *Case) { c.Fill = Bits },
		"ops":       func(c *Case) { c.Ops = []Op{{Verb: New, Out: "b", Kind: KV}} },
	} {
		other := c
		change(&other)
		if other.Content() == c.Content() {
			t.Errorf("the id does not depend on %s", name)
		}
	}
	if c.Ops[0].Want == nil {
		t.Error("Content dropped a want of its receiver")
	}
	if Unwanted(c); c.Ops[0].Want == nil {
		t.Error("Unwanted dropped a want of its argument")
	}
}

func FuzzParse(f *testing.F) {
	n := 0
	for file, err := range All(FS()) {
		if err != nil {
			f.Fatal(err)
		}
		if n++; n%10 == 0 { // beginnings of some cases: short seeds are mutated faster
			file.Case.Ops = file.Case.Ops[:min(10, len(file.Case.Ops))]
			f.Add(Format(file.Case))
		}
	}
	f.Add([]byte(caseOf(`{"op":"new","out":"l","kind":"list","caches":[]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, "fuzz")
		if err != nil {
			var typed *Error
			if !errors.As(err, &typed) {
				t.Fatalf("%#v, want an *Error", err)
			}
			return
		}
		Lint(c)
		if problem := roundTrip(text); problem != "" {
			t.Fatal(problem)
		}
	})
}
