package props

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
	"pgregory.net/rapid"
)

// drawStep draws an observation that is right in form for op.
func drawStep(t *rapid.T, op corpus.Op) corpus.Step {
	var s corpus.Step
	num := rapid.IntRange(-1<<40, 1<<40)
	ints := rapid.SliceOfN(num, 0, 4)
	if op.Verb != corpus.MaskOp {
		s.State = corpus.State{corpus.IntsField(corpus.FOffset, ints.Draw(t, "offset")), corpus.IntField(corpus.FIdx, num.Draw(t, "idx")),
			corpus.BoolField(corpus.FRotated, rapid.Bool().Draw(t, "rotated")), corpus.IntsField(corpus.FEnds, nil)}
	}
	if rapid.IntRange(0, 9).Draw(t, "refused") == 0 {
		s.Error, s.Message = rapid.SampledFrom(ring.Codes).Draw(t, "code"), rapid.String().Draw(t, "message")
		return s
	}
	planes := func() []corpus.Plane {
		names := rapid.SampledFrom([][]string{planeSets[0], planeSets[1], {"slot.0", "slot.3", "slot.11"}, {}}).Draw(t, "planes")
		planes := []corpus.Plane{}
		for _, name := range names {
			a := ring.Array{DType: rapid.SampledFrom([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}).Draw(t, "dtype")}
			if strings.HasSuffix(name, ".packed") {
				a.DType = ring.Uint32
			}
			size := a.DType.Size()
			for k := range a.Shape {
				a.Shape[k] = rapid.IntRange(0, 3).Draw(t, "axis")
				size *= a.Shape[k]
			}
			a.Data = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
			planes = append(planes, corpus.Plane{Name: name, Array: a})
		}
		return planes
	}
	switch op.Verb {
	case corpus.MaskOp:
		s.Mask = &ring.Mask{}
		if rapid.Bool().Draw(t, "array") {
			m := s.Mask
			m.B, m.N, m.S = rapid.IntRange(1, 3).Draw(t, "b"), rapid.IntRange(1, 3).Draw(t, "n"), rapid.IntRange(0, 5).Draw(t, "s")
			if n := m.B * m.N * m.S; n > 0 { // no mask reads as nil data
				m.Data = rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "mask")
			}
		}
	case corpus.Update:
		s.Returned, s.Stored = planes(), planes()
	case corpus.Trim:
		s.Trimmed = new(num.Draw(t, "trimmed"))
	case corpus.ValidOffset:
		s.Offsets = ints.Draw(t, "offsets")
	case corpus.ProjectedBytes:
		s.Bytes = new(num.Draw(t, "bytes"))
	}
	return s
}

// everything claims all that the format knows.
func everything(level Level) Info {
	return Info{
		Name: "a \"name\"", Version: "1", Kinds: corpus.Kinds, Ops: wireVerbs,
		DTypes:    []ring.DType{ring.BFloat16, ring.Float16, ring.Float32},
		Semantics: []ring.Semantics{ring.MLXLM, ring.Exact}, Quant: []corpus.Quant{{GroupSize: 32, Bits: 4}, {GroupSize: 64, Bits: 8}},
		Fills: []corpus.Fill{corpus.Grid, corpus.Bits}, Level: level,
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		verbs := rapid.SliceOf(rapid.SampledFrom([]corpus.Verb{
			corpus.Update, corpus.MaskOp, corpus.Trim, corpus.Finalize, corpus.ValidOffset, corpus.ProjectedBytes,
		})).Draw(t, "verbs")
		c := fakeCase("round-trip", corpus.BatchRotating)
		c.Ops = nil
		want := []corpus.Step{}
		for _, v := range verbs {
			c.Ops = append(c.Ops, corpus.Op{Verb: v, Cache: "a"})
			want = append(want, drawStep(t, c.Ops[len(c.Ops)-1]))
		}
		seq := rapid.Uint64().Draw(t, "seq")
		line := encodeSteps(seq, want, true)
		if bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) {
			t.Fatalf("not one line of JSON: %q", line)
		}
		got, refused, err := decodeRun(line, seq, c, everything(Layout))
		if err != nil || refused != "" {
			t.Fatal(refused, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestHelloRoundTrip(t *testing.T) {
	for _, level := range []Level{Visible, Layout} {
		want := everything(level)
		got, err := decodeHello(encodeHello(want))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	info := everything(Layout)
	info.Ops = corpus.Verbs
	if got, err := decodeHello(encodeHello(info)); err != nil || slices.Contains(got.Ops, corpus.Attend) {
		t.Errorf("attend is claimed on the wire; error %v", err)
	}
	// A target that is compared by columns does not claim the layout.
	if got, err := decodeHello(encodeHello(everything(Columns))); err != nil || got.Level != Visible {
		t.Errorf("level %d, error %v", got.Level, err)
	}
}

// TestHelloLabels: what a child calls itself is short and plain.
func TestHelloLabels(t *testing.T) {
	info := everything(Layout)
	info.Name = "\x1b[31mport\n0 passed, 0 failed, 0 skipped\r\u202e" + strings.Repeat("ü", 5000)
	info.Version = "1\x00\n" + strings.Repeat("2", 5000)
	got, err := decodeHello(encodeHello(info))
	if err != nil {
		t.Fatal(err)
	}
	if want := "[31mport0 passed, 0 failed, 0 skipped"; got.Name != want+strings.Repeat("ü", maxLabel-len(want)) {
		t.Errorf("name is %q", got.Name)
	}
	if want := "1" + strings.Repeat("2", maxLabel-1); got.Version != want {
		t.Errorf("version is %q", got.Version)
	}
}

func TestHelloErrors(t *testing.T) {
	good := string(encodeHello(everything(Layout)))
	for name, test := range map[string]struct{ old, new, want string }{
		"another version":    {`"protocol":1`, `"protocol":2`, "protocol is 2, want 1"},
		"an unknown kind":    {`"kv"`, `"kvs"`, `"kinds": "kvs" is unknown: use [kv `},
		"an unknown op":      {`"update"`, `"updates"`, `"ops": "updates" is unknown`},
		"attend":             {`"update"`, `"attend"`, `"ops": "attend" is unknown`},
		"an unknown dtype":   {`"float16"`, `"uint32"`, `"dtypes": "uint32" is unknown`},
		"unknown semantics":  {`"mlxlm"`, `"MLXLM"`, `"semantics": "MLXLM" is unknown`},
		"an unknown fill":    {`"grid"`, `"zero"`, `"fills": "zero" is unknown`},
		"a pair of one":      {`[32,4]`, `[32]`, `"quant": [32] is not [group size, bits]`},
		"a group of nothing": {`[32,4]`, `[0,4]`, `"quant": [0 4] is not`},
		"an unknown field":   {`"fills"`, `"fill"`, `"fill": unknown field`},
		"a field in capital": {`"name"`, `"Name"`, `"Name": unknown field`},
		"no ops":             {`"ops"`, `"kinds"`, `field "kinds" occurs twice`},
		"null":               {`"layout":true`, `"layout":null`, `"layout": null is no value`},
		"a text for a flag":  {`"layout":true`, `"layout":"yes"`, `"layout": `},
		"two answers":        {"}\n", "}{}\n", "something follows"},
		"half an answer":     {`,"layout":true}`, ``, "not JSON"},
		"a list":             {good, "[]", "not an object"},
		"nothing":            {good, "", "not JSON: an empty line"},
		"no object":          {good, "{}", `field "protocol" is missing`},
		"a number for flag":  {`"layout":true`, `"layout":0`, `"layout": is 0, want true or false`},
		"a text for number":  {`"protocol":1`, `"protocol":"1"`, `"protocol": is "1", want a number`},
		"a text for a list":  {`"kinds":[`, `"kinds":"kv","x":[`, `"kinds": is "kv", want a list of strings`},
		"pretty JSON":        {good, "{", "the answer must be on one line"},
		"pretty, otherwise":  {good, `{ "protocol": 1,` + " ", "the answer must be on one line"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, test.old, test.new, 1)
			if bad == good {
				t.Fatalf("%q is not in %s", test.old, good)
			}
			if _, err := decodeHello([]byte(bad)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q in it", err, test.want)
			}
		})
	}
	if err := decodeBye([]byte(`{"seq":1}`)); err == nil {
		t.Error("bye answered by something else")
	}
}

func TestAnswerErrors(t *testing.T) {
	c := fakeCase("errors", corpus.BatchRotating, update([]int{1}), mask(1), trim(1),
		corpus.Op{Verb: corpus.ValidOffset, Cache: "a"}, corpus.Op{Verb: corpus.ProjectedBytes, Cache: "a"},
		corpus.Op{Verb: corpus.TemporalView, Cache: "a"}, corpus.Op{Verb: corpus.AppendWindow, Cache: "a", Tokens: [][]int{{2}}})
	plane := `{"dtype":"float32","shape":[1,1,1,1],"data":"AAAAAA=="}`
	kv := `{"keys":` + plane + `,"values":` + plane + `}`
	good := `{"seq":1,"steps":[{"state":{"offset":0}},{"returned":` + kv + `,"stored":` + kv + `,"state":{"offset":1}},{"mask":[["1"]]},` +
		`{"trimmed":1,"state":{"offset":0}},{"offsets":[1]},{"bytes":4},{"returned":` + kv + `},{"returned":` + kv + `,"mask":[["1"]],"state":{}}]}`
	if _, refused, err := decodeRun([]byte(good), 1, c, everything(Layout)); err != nil || refused != "" {
		t.Fatal(refused, err)
	}
	for name, test := range map[string]struct{ old, new, want string }{
		"another seq":        {`"seq":1`, `"seq":2`, "answered seq 2, want 1"},
		"no seq":             {`"seq":1,`, ``, `field "seq" is missing`},
		"a negative seq":     {`"seq":1`, `"seq":-1`, `"seq": `},
		"no steps":           {`"steps"`, `"step"`, `"step": unknown field`},
		"steps of an object": {`[{"state":{"offset":0}}`, `{"a":0},[{"state":{"offset":0}}`, `"steps": not an array`},
		"too many steps":     {`[{"state":{"offset":0}}`, `[{"state":{}},{"state":{}}`, `#1 update: the observation has no returned`},
		"one step more":      {`}]}`, `},{}]}`, `more than one observation an operation (8)`},
		"too few steps":      {`,{"bytes":4},{"returned":` + kv + `},{"returned":` + kv + `,"mask":[["1"]],"state":{}}]`, `]`, "5 observations for 8 operations"},
		"one step":           {good, `{"seq":1,"steps":[{"state":{"offset":0}}]}`, "1 observation for 8 operations"},
		"seq in quotes":      {`"seq":1`, `"seq":"1"`, `"seq": is "1", want a number`},
		"half a number":      {`"bytes":4`, `"bytes":4.5`, `"bytes": is 4.5, want a whole number`},
		"base64 in lines":    {`AAAAAA==`, `AAAAAA==\n`, `in base64 8 characters; it holds a line break`},
		"fault and steps":    {`"steps"`, `"fault":{"message":""},"steps"`, "one of the two"},
		"a fault of nothing": {good, `{"seq":1,"fault":{}}`, `"fault.message" is missing`},
		"an odd fault":       {good, `{"seq":1,"fault":{"massage":""}}`, `"massage": unknown field`},
		"unknown field":      {`"mask"`, `"masks"`, `#2 mask: "masks": unknown field`},
		"no state":           {`{"state":{"offset":0}},`, `{},`, `#0 new: the observation has no state`},
		"no returned":        {`"returned":` + kv + `,`, ``, `#1 update: the observation has no returned`},
		"no mask":            {`"mask":[["1"]]`, ``, `#2 mask: the observation has no mask`},
		"no trimmed":         {`"trimmed":1,`, ``, `#3 trim: the observation has no trimmed`},
		"no offsets":         {`"offsets":[1]`, ``, `#4 valid_offset: the observation has no offsets`},
		"no bytes":           {`"bytes":4`, ``, `#5 projected_bytes: the observation has no bytes`},
		"what was not asked": {`"mask":[["1"]]`, `"mask":null,"bytes":1`, `#2 mask: bytes is no answer to mask`},
		"message alone":      {`"bytes":4`, `"bytes":4,"message":"hm"`, `message without error`},
		"an unknown code":    {`"bytes":4`, `"error":"oops"`, `#5 projected_bytes: error is "oops": use one of closed, `},
		"error with answer":  {`"bytes":4`, `"bytes":4,"error":"range"`, `a refused operation answers`},
		"an unknown state":   {`{"offset":0}}`, `{"offsets":0}}`, `#0 new: "state": offsets`},
		"a state of text":    {`{"offset":0}}`, `{"offset":"0"}}`, `#0 new: "state": offset`},
		"a mask of numbers":  {`[["1"]]`, `[[1]]`, `#2 mask: "mask"`},
		"a ragged mask":      {`[["1"]]`, `[["1","10"]]`, `#2 mask: "mask"`},
		"an unclaimed op":    {`{"bytes":4},{"returned":` + kv + `},{"returned":` + kv + `,"mask":[["1"]],"state":{}}]`, `{"unsupported":"projected_bytes"}]`, `says unsupported, though hello claims`},
		"unsupported what":   {`"bytes":4`, `"unsupported":"trim"`, `unsupported is "trim", want the operation's name`},
		"unsupported and":    {`"bytes":4`, `"bytes":4,"unsupported":"projected_bytes"`, `unsupported stands alone`},
		"keys alone":         {`,"values":` + plane, ``, `planes "keys": values is missing`},
		"a plane of a name":  {`"values"`, `"value"`, `planes "value", "keys": values is missing`},
		"only odd planes":    {kv, `{"key":` + plane + `}`, `planes "key": want keys and values, or`},
		"slot.01":            {kv, `{"slot.01":` + plane + `}`, `planes "slot.01": want`},
		"slot.64":            {kv, `{"slot.64":` + plane + `}`, `planes "slot.64": want`},
		"a plane of null":    {plane, `null`, `"keys": not an object`},
		"no dtype":           {`"dtype":"float32",`, ``, `field "dtype" is missing`},
		"an unknown dtype":   {`float32`, `float64`, `unknown data type "float64"`},
		"packed keys":        {`float32`, `uint32`, `keys: dtype is uint32`},
		"three axes":         {`[1,1,1,1]`, `[1,1,1]`, `shape has 3 axes, want [b, h, s, d]`},
		"a negative axis":    {`[1,1,1,1]`, `[1,1,-1,-1]`, `shape is [1 1 -1 -1]: each axis`},
		"a huge shape":       {`[1,1,1,1]`, `[60000,60000,60000,60000]`, `shape is [60000 60000 60000 60000]: more than`},
		"huge and empty":     {`[1,1,1,1]`, `[60000,0,60000,60000]`, `shape is [60000 0 60000 60000]: more than`},
		"a broken axis":      {`[1,1,1,1]`, `[1,1,1,1.5]`, `"shape"`},
		"too little data":    {`AAAAAA==`, `AAAA`, `data has 4 characters; float32[1 1 1 1] is 4 bytes, in base64 8 characters`},
		"too much data":      {`AAAAAA==`, `AAAAAAAA`, `data has 6 bytes; float32[1 1 1 1] is 4`},
		"no base64":          {`AAAAAA==`, `AAAA-A==`, `illegal base64`},
		"null":               {`"bytes":4`, `"bytes":null`, `"bytes": null is no value`},
		"null in a list":     {`[1]}`, `[null]}`, `"offsets": null is no value`},
		"a field twice":      {`"bytes":4`, `"bytes":4,"bytes":4`, `field "bytes" occurs twice`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, test.old, test.new, 1)
			if bad == good {
				t.Fatalf("%q is not in %s", test.old, good)
			}
			if _, _, err := decodeRun([]byte(bad), 1, c, everything(Layout)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q in it", err, test.want)
			}
		})
	}
	t.Run("stored not asked for", func(t *testing.T) {
		if _, _, err := decodeRun([]byte(good), 1, c, everything(Visible)); err == nil || !strings.Contains(err.Error(), "stored was not asked for") {
			t.Error(err)
		}
	})
	t.Run("after unsupported", func(t *testing.T) {
		bad := `{"seq":1,"steps":[{"unsupported":"new"},{"unsupported":"update"}]}`
		if _, _, err := decodeRun([]byte(bad), 1, c, Info{}); err == nil || !strings.Contains(err.Error(), "after the unsupported #0") {
			t.Error(err)
		}
	})
	t.Run("unsupported and not claimed", func(t *testing.T) {
		info := everything(Layout)
		info.Ops = []corpus.Verb{corpus.New}
		steps, _, err := decodeRun([]byte(`{"seq":1,"steps":[{"state":{}},{"unsupported":"update"}]}`), 1, c, info)
		if err != nil || len(steps) != 2 || steps[1].Unsupported != "update" {
			t.Error(steps, err)
		}
	})
}

func TestLacks(t *testing.T) {
	c := fakeCases[1]
	for want, change := range map[string]func(*Info){
		"":                                       func(*Info) {},
		"semantics exact":                        func(i *Info) { i.Semantics = i.Semantics[:1] },
		"data type bfloat16":                     func(i *Info) { i.DTypes = i.DTypes[1:] },
		"fill grid":                              func(i *Info) { i.Fills = i.Fills[1:] },
		"quantization in groups of 32 to 4 bits": func(i *Info) { i.Quant = i.Quant[1:] },
		"operation trim": func(i *Info) {
			i.Ops = slices.DeleteFunc(slices.Clone(i.Ops), func(v corpus.Verb) bool { return v == corpus.Trim })
		},
		"kind batch_rotating_quantized": func(i *Info) { i.Kinds = i.Kinds[:4] },
	} {
		info := everything(Layout)
		change(&info)
		if got := info.Lacks(c); got != want {
			t.Errorf("lacks %q, want %q", got, want)
		}
	}
}

func serve(t *testing.T, target Target, requests ...string) (answers []string) {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(context.Background(), target, strings.NewReader(strings.Join(requests, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestServe(t *testing.T) {
	run := func(c corpus.Case, rest string) string {
		return `{"cmd":"run","seq":7,"case":` + string(corpus.CompactJSON(c)) + rest + `}`
	}
	c := fakeCases[0]
	steps := runFake(t, fake{}, c)
	tests := map[string]struct{ request, answer string }{
		"hello":            {`{"cmd":"hello","protocol":1}`, strings.TrimSuffix(string(encodeHello(fake{}.Info())), "\n")},
		"run":              {run(c, `,"layout":true,"dir":""`), strings.TrimSuffix(string(encodeSteps(7, steps, true)), "\n")},
		"run, not layout":  {run(c, ``), strings.TrimSuffix(string(encodeSteps(7, steps, false)), "\n")},
		"bye":              {`{"cmd":"bye"}`, `{}`},
		"another protocol": {`{"cmd":"hello","protocol":2}`, `{"seq":0,"fault":{"message":"protocol is 2, want 1"}}`},
		"no JSON":          {`hello`, `{"seq":0,"fault":{"message":"not JSON: invalid character 'h' looking for beginning of value"}}`},
		"an empty line":    {``, `{"seq":0,"fault":{"message":"not JSON: unexpected EOF"}}`},
		"an unknown cmd":   {`{"cmd":"run!"}`, `{"seq":0,"fault":{"message":"unknown cmd \"run!\": use hello, run or bye"}}`},
		"an unknown field": {`{"cmd":"bye","now":true}`, `{"seq":0,"fault":{"message":"\"now\": unknown field"}}`},
		"no case":          {`{"cmd":"run","seq":7}`, `{"seq":7,"fault":{"message":"field \"case\" is missing"}}`},
		"no seq":           {`{"cmd":"run"}`, `{"seq":0,"fault":{"message":"field \"seq\" is missing"}}`},
		"a relative dir":   {run(c, `,"dir":"x"`), `{"seq":7,"fault":{"message":"dir is \"x\", want an absolute path"}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := serve(t, fake{}, test.request); len(got) != 1 || got[0] != test.answer {
				t.Errorf("answers\n%s\nwant\n%s", strings.Join(got, "\n"), test.answer)
			}
		})
	}
	t.Run("a bad case", func(t *testing.T) {
		got := serve(t, fake{}, `{"cmd":"run","seq":7,"case":{}}`, `{"cmd":"bye"}`, `{"cmd":"bye"}`)
		if len(got) != 2 || !strings.HasPrefix(got[0], `{"seq":7,"fault":{"message":"\"case\": case: `) || got[1] != "{}" {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("layout that is not claimed", func(t *testing.T) {
		got := serve(t, fake{reversed: true}, run(c, `,"layout":true`))
		if want := `{"seq":7,"fault":{"message":"layout is asked for, hello does not claim it"}}`; got[0] != want {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("attend", func(t *testing.T) {
		c := fakeCase("attend", corpus.BatchRotating, corpus.Op{Verb: corpus.Attend, Cache: "a", Queries: 1, Scale: 1})
		got := serve(t, fake{}, run(c, ``))
		if want := `{"seq":7,"fault":{"message":"attend is not an operation of the protocol"}}`; got[0] != want {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("a target that cannot run", func(t *testing.T) {
		got := serve(t, broken{}, run(c, ``))
		if want := `{"seq":7,"fault":{"message":"no memory"}}`; got[0] != want {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("a line too long", func(t *testing.T) {
		in := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte{' '}, MaxLine)), strings.NewReader("{\"cmd\":\"bye\"}\n"))
		if err := Serve(context.Background(), fake{}, in, io.Discard); !errors.Is(err, errLineTooLong) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("half a line", func(t *testing.T) {
		if err := Serve(context.Background(), fake{}, strings.NewReader(`{"cmd":`), io.Discard); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := Serve(ctx, fake{}, strings.NewReader(""), io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		r, w := io.Pipe()
		r.Close()
		if err := Serve(context.Background(), fake{}, strings.NewReader("{}\n"), w); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("error is %v", err)
		}
	})
}

type broken struct{ fake }

func (broken) Run(context.Context, corpus.Case, string) ([]corpus.Step, error) {
	return nil, fmt.Errorf("no memory")
}

func TestEncodeRunLimit(t *testing.T) {
	if _, err := encodeRun(1, fakeCases[0], true, strings.Repeat("x", MaxLine)); err == nil || !strings.Contains(err.Error(), "a line of the protocol") {
		t.Errorf("error is %v", err)
	}
}

// FuzzObservation feeds arbitrary bytes to the decoder of what a child sends:
// it never panics, and what it accepts it can print and read again.
func FuzzObservation(f *testing.F) {
	for _, c := range fakeCases {
		steps, _ := fake{}.Run(context.Background(), c, "")
		for i := range steps {
			f.Add(appendStep(nil, &steps[i], true))
		}
	}
	f.Add([]byte(`{"unsupported":"extend"}`))
	f.Add([]byte(`{"error":"range","message":"\u0000"}`))
	f.Add([]byte(`{"returned":{"slot.1":{"dtype":"float16","shape":[0,1,1,1],"data":""}},"mask":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := decodeStep(text)
		if err != nil {
			return
		}
		again, err := decodeStep(appendStep(nil, &s, true))
		if err != nil {
			t.Fatalf("%q prints as what does not read: %v", text, err)
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("%q reads as %+v, its print as %+v", text, s, again)
		}
		NewTokens(fakeCases[0]).IDs(s.Returned)
		NewTokens(fakeCases[1]).IDs(s.Stored)
		_ = answerText(s)
	})
}
