package engine_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"example.com/ringcheck/reference"
	"example.com/ringcheck/reference/ring"
)

// tokens makes the keys, or the values, of some tokens of one sequence: one
// head of width 1, in float32, each token's element its number.
func tokens(numbers ...float32) ring.Array {
	a := ring.Array{DType: ring.Float32, Shape: [4]int{1, 1, len(numbers), 1}}
	for _, n := range numbers {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(n))
	}
	return a
}

// numbers is the inverse of tokens.
func numbers(a ring.Array) []float32 {
	var out []float32
	for i := 0; i < len(a.Data); i += 4 {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:])))
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A ring of four columns is fed a prompt of three tokens and then one at a
// time. What an update returns is what its query attends to, in physical order.
func Example_reference() {
	cache := must(reference.NewRotatingKVCache(ring.MLXLM, 4, 0))
	prompt := tokens(1, 2, 3)
	kv := must(cache.Update(prompt, prompt))
	fmt.Println("prompt:", numbers(kv.Keys[0]))
	for n := float32(4); n <= 6; n++ {
		token := tokens(n)
		kv = must(cache.Update(token, token))
		fmt.Println("decode:", numbers(kv.Keys[0]), "next column", cache.Idx())
	}
	// Output:
	// prompt: [1 2 3]
	// decode: [1 2 3 4] next column 4
	// decode: [5 2 3 4] next column 1
	// decode: [5 6 3 4] next column 2
}

// The mask of a write is asked for before it. Here two queries of a block: each
// sees the four tokens up to itself.
func Example_mask() {
	cache := must(reference.NewRotatingKVCache(ring.MLXLM, 4, 0))
	for n := float32(1); n <= 6; n++ {
		must(cache.Update(tokens(n), tokens(n)))
	}
	mask := must(cache.Mask(2, nil))
	kv := must(cache.Update(tokens(7, 8), tokens(7, 8)))
	keys := numbers(kv.Keys[0])
	for q := range mask.N {
		fmt.Print("query ", q, " sees")
		for s, key := range keys {
			if mask.At(0, q, s) {
				fmt.Print(" ", key)
			}
		}
		fmt.Println()
	}
	// Output:
	// query 0 sees 4 5 6 7
	// query 1 sees 5 6 7 8
}

// The two semantics differ where mlx-lm is wrong. A trim of a ring that has
// wrapped is one such place (M31).
func Example_semantics() {
	for _, semantics := range []ring.Semantics{ring.MLXLM, ring.Exact} {
		cache := must(reference.NewRotatingKVCache(semantics, 4, 0))
		for n := float32(1); n <= 5; n++ {
			must(cache.Update(tokens(n), tokens(n)))
		}
		trimmed, err := cache.Trim(2)
		fmt.Printf("%v: trimmed %d, code %q\n", semantics, trimmed, ring.CodeOf(err))
	}
	// Output:
	// mlxlm: trimmed 2, code ""
	// exact: trimmed 0, code "not_trimmable"
}
