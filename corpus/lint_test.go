package corpus

import (
	"strings"
	"testing"

	"example.com/ringcheck/reference/ring"
	"github.com/google/go-cmp/cmp"
)

func TestLint(t *testing.T) {
	const (
		kv    = `{"op":"new","kind":"kv","out":"a"}`
		batch = `{"op":"new","kind":"batch_rotating","max_size":4,"left_padding":[0,0],"out":"b"}`
		arr   = `{"op":"new","kind":"arrays","slots":2,"out":"r"}`
		fed   = `{"op":"update","cache":"a","tokens":[[1,2]]}`
	)
	exact := func(text string) string { return strings.Replace(text, `"shape"`, `"semantics":"exact","shape"`, 1) }
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"sound": {caseOf(kv, fed, `{"op":"trim","cache":"a","n":1,"want":{"trimmed":1}}`, `{"op":"update","cache":"a","tokens":[[2,-3]],"want":{"returned":[[1,2,-3]],"stored":[[1,2,-3,0]],"state":{"offset":3,"buffer":4}}}`), nil},
		"header": {strings.Replace(strings.Replace(caseOf(), `"source":"s"`, `"source":""`, 1), `"key_dim":4`, `"key_dim":3`, 1), []string{
			"source: is empty; say where the case comes from",
			"ops: is empty; a case without operations shows nothing",
			"shape.key_dim: times kv_heads is 3; with fewer than 4 elements a column does not name its token",
		}},
		"narrow values": {strings.Replace(caseOf(kv), `"value_dim":8`, `"value_dim":2`, 1), []string{
			"shape.value_dim: times kv_heads is 2; with fewer than 4 elements a column does not name its token",
		}},
		"undefined": {caseOf(`{"op":"finalize","cache":"a"}`, `{"op":"extend","cache":"a","other":"o"}`, `{"op":"merge","out":"m","caches":["a","p"]}`), []string{
			`operation 0 (finalize): cache: no operation before this one makes a cache "a"`,
			`operation 1 (extend): other: no operation before this one makes a cache "o"`,
			`operation 2 (merge): caches.1: no operation before this one makes a cache "p"`,
		}},
		"defined twice": {caseOf(kv, kv, `{"op":"save","caches":["a"],"file":"f"}`, `{"op":"load","outs":["a"],"file":"f"}`, `{"op":"to_quantized","cache":"a","out":"a"}`), []string{
			"quant: is missing; a quantized kind occurs",
			`operation 1 (new): out: "a" is the name of a cache already; names are given once`,
			`operation 3 (load): outs.0: "a" is the name of a cache already; names are given once`,
			`operation 4 (to_quantized): out: "a" is the name of a cache already; names are given once`,
		}},
		"gone": {caseOf(batch, strings.Replace(batch, `"b"`, `"c"`, 1), `{"op":"extend","cache":"b","other":"c"}`, `{"op":"finalize","cache":"c"}`, `{"op":"extend","cache":"b","other":"b"}`), []string{
			`operation 3 (finalize): cache: "c" is no cache any more, or was never made`,
			`operation 4 (extend): other: is the cache itself`,
		}},
		"refused": {caseOf(batch, `{"op":"extend","cache":"b","other":"b2","want":{"error":"raises"}}`, `{"op":"extract","cache":"b","row":9,"out":"x","want":{"error":"raises","state":{"idx":0}}}`, `{"op":"finalize","cache":"x"}`,
			`{"op":"update","cache":"b","tokens":[[5],[6]],"want":{"error":"raises"}}`, `{"op":"update","cache":"b","tokens":[[5],[6]]}`,
			`{"op":"save","caches":["b"],"file":"f","want":{"error":"raises"}}`, `{"op":"load","outs":["y"],"file":"f","want":{"error":"raises"}}`, `{"op":"load","outs":["z"],"file":"f"}`), []string{
			`operation 1 (extend): other: no operation before this one makes a cache "b2"`,
			`operation 3 (finalize): cache: "x" is no cache any more, or was never made`,
			`operation 8 (load): file: no operation before this one saves "f"`,
		}},
		"refused mask": {exact(caseOf(batch, `{"op":"mask","cache":"b","n":0,"want":{"error":"range","state":{"idx":0}}}`, `{"op":"mask","cache":"b","n":1,"want":{"state":{"idx":0}}}`)), []string{
			"operation 2 (mask): want.state: mask has no such result",
		}},
		"snapshots": {exact(caseOf(batch, `{"op":"snapshot","cache":"b","as":"s"}`, `{"op":"snapshot","cache":"b","as":"s"}`, `{"op":"restore","cache":"b","from":"s"}`, `{"op":"adopt","out":"c","from":"s","want":{"state":{"ends":null}}}`, `{"op":"adopt","out":"d","from":"t"}`)), []string{
			`operation 2 (snapshot): as: "s" is the name of a snapshot already; names are given once`,
			`operation 5 (adopt): from: no operation before this one takes a snapshot "t"`,
		}},
		"files": {caseOf(kv, `{"op":"save","caches":["a"],"file":"f"}`, `{"op":"load","outs":["b","c"],"file":"f","want":{"state":{"idx":1}}}`, `{"op":"load","outs":[],"file":"f"}`), []string{
			"operation 2 (load): outs: are 2, and 1 caches were saved",
			"operation 2 (load): want.state.idx: the state of kv has no such field",
			"operation 3 (load): outs: are 0, and 1 caches were saved",
		}},
		"kinds": {caseOf(kv, `{"op":"finalize","cache":"a","want":{"state":{}}}`, `{"op":"finalize","cache":"a","want":{"state":{"offset":0}}}`, `{"op":"finalize","cache":"a"}`, `{"op":"finalize","cache":"a","want":{"error":"not_supported"}}`,
			`{"op":"merge","out":"m","caches":["a"],"want":{"state":{"idx":0,"total":0}}}`, `{"op":"merge","out":"n","caches":["m"],"want":{"state":{"idx":0}}}`, `{"op":"merge","out":"e","caches":[]}`), []string{
			"operation 1 (finalize): cache: kv has no finalize under mlxlm; want an error",
			"operation 1 (finalize): want: says nothing; leave it out or fill it",
			"operation 2 (finalize): cache: kv has no finalize under mlxlm; want an error",
			"operation 5 (merge): want.state.total: the state of batch_kv has no such field",
			"operation 6 (merge): caches.0: batch_kv has no merge under mlxlm; want an error",
		}},
		"exact kinds": {exact(caseOf(`{"op":"new","kind":"kv","out":"a","want":{"state":{"size":0}}}`, batch, `{"op":"merge","out":"n","caches":["b"],"want":{"state":{"total":0}}}`, `{"op":"extract","cache":"n","row":0,"out":"x","want":{"state":{"idx":0}}}`,
			`{"op":"to_quantized","cache":"x","out":"q","want":{"state":{"total":1}}}`, `{"op":"merge","out":"p","caches":["q"],"want":{"state":{"total":1}}}`, `{"op":"extract","cache":"p","row":0,"out":"s","want":{"state":{"total":1}}}`)), []string{
			"quant: is missing; a quantized kind occurs",
			"operation 0 (new): kind: kv has no new under exact; want an error",
			"operation 4 (to_quantized): want.state.total: the state of rotating_quantized has no such field",
			"operation 6 (extract): want.state.total: the state of rotating_quantized has no such field",
		}},
		"lists": {caseOf(kv, arr, `{"op":"new","kind":"list","out":"l","caches":["a","r"],"want":{"state":{"caches":[{},{}]}}}`), nil},
		"tokens": {caseOf(kv, `{"op":"update","cache":"a","tokens":[[1,2,1]]}`, `{"op":"update","cache":"a","tokens":[[0,2]]}`, `{"op":"trim","cache":"a","n":2}`, `{"op":"update","cache":"a","tokens":[[2]]}`, `{"op":"update","cache":"a","tokens":[[2]]}`), []string{
			"operation 1 (update): tokens: feeds 1 again, which operation 1 fed, with no trim, rollback or restore since",
			"operation 2 (update): tokens: feeds 0, which stands for a column of zero bytes",
			"operation 2 (update): tokens: feeds 2 again, which operation 1 fed, with no trim, rollback or restore since",
			"operation 5 (update): tokens: feeds 2 again, which operation 4 fed, with no trim, rollback or restore since",
		}},
		"a refused trim": {caseOf(kv, fed, `{"op":"trim","cache":"a","n":2,"want":{"error":"over_trim"}}`, fed), []string{
			"operation 3 (update): tokens: feeds 1 again, which operation 1 fed, with no trim, rollback or restore since",
			"operation 3 (update): tokens: feeds 2 again, which operation 1 fed, with no trim, rollback or restore since",
		}},
		"slots": {caseOf(arr, `{"op":"write","cache":"r","slot":0,"tokens":[[1],[2]]}`, `{"op":"write","cache":"r","slot":1,"tokens":[[3,4]]}`), []string{
			"operation 2 (write): tokens: a row has 2 tokens; a slot takes one a row",
		}},
		"wants": {caseOf(kv, `{"op":"update","cache":"a","tokens":[[1]],"want":{"trimmed":1,"mask":[["1"]],"offsets":[],"bytes":0}}`, `{"op":"trim","cache":"a","n":1,"want":{"error":"busy","trimmed":1,"stored":[[]],"state":{"offset":1}}}`,
			`{"op":"mask","cache":"a","n":1,"want":{"state":{"offset":1},"returned":[[1],[1,7]]}}`, `{"op":"save","caches":["a"],"file":"f","want":{"state":{"offset":1},"stored":[[0]]}}`, `{"op":"trim","cache":"a","n":1,"want":{}}`), []string{
			"operation 1 (update): want.trimmed: update has no such result",
			"operation 1 (update): want.mask: update has no such result",
			"operation 1 (update): want.offsets: update has no such result",
			"operation 1 (update): want.bytes: update has no such result",
			"operation 2 (trim): want.trimmed: a refused operation has no such result",
			"operation 2 (trim): want.stored: a refused operation has no such result",
			"operation 2 (trim): want.error: busy comes from the Go interface only; no case can raise it",
			"operation 3 (mask): want.returned: mask has no such result",
			"operation 3 (mask): want.state: mask has no such result",
			"operation 3 (mask): want.returned: row 1 has 2 columns, row 0 1; all rows of an array are of one length",
			"operation 3 (mask): want.returned: names token 7, which no operation has fed",
			"operation 4 (save): want.stored: save has no such result",
			"operation 4 (save): want.state: save has no such result",
			"operation 5 (trim): want: says nothing; leave it out or fill it",
		}},
		"exact wants": {exact(caseOf(batch, `{"op":"mask","cache":"b","n":1,"want":{"mask":null}}`, `{"op":"trim","cache":"b","n":1,"want":{"error":"raises"}}`)), []string{
			"operation 1 (mask): want.mask: is null; under exact a mask is always there",
			"operation 2 (trim): want.error: raises is of mlx-lm's; exact has a code for every refusal",
		}},
		"null mask": {caseOf(kv, `{"op":"mask","cache":"a","n":1,"want":{"mask":null}}`), nil},
	} {
		var got []string
		for _, p := range Lint(must(t, c.text)) {
			got = append(got, p.String())
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestLintQuant(t *testing.T) {
	for name, c := range map[string]struct {
		quant  Quant
		dim    int
		refuse string
		want   string
	}{
		"sound":         {Quant{32, 4}, 64, "", ""},
		"group":         {Quant{16, 4}, 64, "", "quant.group_size: is 16, want 32, 64 or 128"},
		"bits":          {Quant{64, 7}, 64, "", "quant.bits: is 7, want 2, 3, 4, 5, 6 or 8"},
		"width":         {Quant{64, 4}, 32, "", "quant.group_size: 64 does not divide key_dim 64 and value_dim 32"},
		"refused":       {Quant{16, 7}, 64, "quant", ""},
		"raises":        {Quant{16, 7}, 64, "raises", ""},
		"other refusal": {Quant{16, 4}, 64, "max_size", "quant.group_size: is 16, want 32, 64 or 128"},
	} {
		k := must(t, caseOf(`{"op":"new","kind":"quantized","out":"a"}`))
		k.Quant, k.Shape.KeyDim, k.Shape.ValueDim = &c.quant, 64, c.dim
		if c.refuse != "" {
			k.Ops[0].Want = &Want{Error: c.refuse}
		}
		var got []string
		for _, p := range Lint(k) {
			got = append(got, p.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	plain := must(t, caseOf(`{"op":"new","kind":"kv","out":"a"}`))
	if plain.Quant = nil; len(Lint(plain)) != 0 {
		t.Error("quant is asked for where no quantized kind occurs")
	}
}

// Four elements of 8 bits are 32 bits, so that ids can collide. These, found by
// search, have the same keys, or keys of zeros only.
func TestLintBytes(t *testing.T) {
	c := must(t, caseOf(`{"op":"new","kind":"kv","out":"a"}`, `{"op":"update","cache":"a","tokens":[[53996,81970,803226064]]}`))
	want := []Problem{
		{1, Update, "tokens", "plane 0 of 81970 has the bytes of 53996; take another id"},
		{1, Update, "tokens", "all bytes of plane 0 of 803226064 are zero; take another id"},
	}
	if d := cmp.Diff(want, Lint(c)); d != "" {
		t.Error(d)
	}
	c.Shape.KeyDim = 5
	if got := Lint(c); got != nil {
		t.Errorf("with a wider head: %v", got)
	}
}

func TestHas(t *testing.T) {
	for _, c := range []struct {
		kind      Kind
		verb      Verb
		semantics ring.Semantics
		want      bool
	}{
		{Rotating, Update, ring.MLXLM, true},
		{Rotating, Update, ring.Exact, true},
		{KV, Update, ring.MLXLM, true},
		{KV, Update, ring.Exact, false},
		{Rotating, ToQuantized, ring.MLXLM, false},
		{Rotating, ToQuantized, ring.Exact, true},
		{BatchRotating, Merge, ring.MLXLM, false},
		{BatchRotating, Merge, ring.Exact, true},
		{Arrays, Update, ring.MLXLM, false},
		{Arrays, Write, ring.MLXLM, true},
		{Chunked, TrimFront, ring.MLXLM, true},
		{KV, "jump", ring.MLXLM, false},
	} {
		if got := c.kind.Has(c.verb, c.semantics); got != c.want {
			t.Errorf("%s.Has(%s, %v) = %t", c.kind, c.verb, c.semantics, got)
		}
	}
	// Every operation is some kind's, and every kind has a state and can be made
	// under mlxlm.
	for _, v := range Verbs {
		if len(has[v].both) == 0 {
			t.Errorf("no kind has %s", v)
		}
		if v != New && opFields[v] == nil {
			t.Errorf("%s has no fields", v)
		}
	}
	for _, k := range Kinds {
		if len(stateOf[k]) == 0 || newFields[k] == nil || !k.Has(New, ring.MLXLM) {
			t.Errorf("%s is not described", k)
		}
	}
}
