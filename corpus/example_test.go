package corpus_test

import (
	"fmt"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

func ExampleParse() {
	text := `{"schema":"ringcheck/case/v1","name":"decode","source":"an example",
"shape":{"kv_heads":1,"key_dim":4,"value_dim":4,"dtype":"bfloat16"},"ops":[
{"op":"new","kind":"rotating","max_size":2,"out":"r"},
{"cache":"r","op":"update","tokens":[[1,2,3]],"columns":3}]}`
	_, err := corpus.Parse([]byte(text), "decode.json")
	fmt.Println(err)
	// Output: decode.json: operation 1 (update): columns: no such field here; want one of op, cache, tokens, want
}

func ExampleFormat() {
	c := corpus.Case{
		Name: "decode", Source: "an example", Semantics: ring.MLXLM, Step: corpus.DefaultStep,
		Shape: corpus.Shape{KVHeads: 1, KeyDim: 4, ValueDim: 4, DType: ring.BFloat16},
		Ops: []corpus.Op{
			{Verb: corpus.New, Out: "r", Kind: corpus.Rotating, MaxSize: 2},
			{Verb: corpus.Update, Cache: "r", Tokens: [][]int{{1, 2, 3}}, Want: &corpus.Want{Returned: [][]int{{1, 2, 3}}}},
		},
	}
	fmt.Printf("%s%s\n", corpus.Format(c), c.Content())
	for _, p := range corpus.Lint(c) {
		fmt.Println(p)
	}
	// Output:
	// {"schema":"ringcheck/case/v1","name":"decode","source":"an example","shape":{"kv_heads":1,"key_dim":4,"value_dim":4,"dtype":"bfloat16"},
	//  "ops":[
	//   {"op":"new","out":"r","kind":"rotating","max_size":2},
	//   {"op":"update","cache":"r","tokens":[[1,2,3]],"want":{"returned":[[1,2,3]]}}
	// ]}
	// d5bc6f2d1fbe4ab2
}

func ExampleLookup() {
	shape := corpus.Shape{KVHeads: 2, KeyDim: 4, ValueDim: 8, DType: ring.Float16}
	l := corpus.NewLookup()
	for id := range 5 {
		l.Add(id+1, corpus.AppendToken(nil, id+1, corpus.KeyPlane, shape, corpus.Grid))
	}
	keys := corpus.TokenArray(shape, corpus.Grid, corpus.KeyPlane, [][]int{{4, 1}, {2, 9}})
	for row := range keys.Rows() {
		for col := range keys.Columns() {
			fmt.Println(l.ID(corpus.AppendColumn(nil, keys, row, col)))
		}
	}
	// Output:
	// 4 true
	// 1 true
	// 2 true
	// 0 false
}
