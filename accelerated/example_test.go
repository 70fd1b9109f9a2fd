package accelerated_test

import (
	"fmt"

	"example.com/ringcheck/accelerated"
	_ "example.com/ringcheck/accelerated/cpu" // makes Open("cpu") possible
	"example.com/ringcheck/reference/ring"
)

// column makes one array of n columns for each of rows rows, one head of width
// 2, in float32. A model computes these.
func column(rows, n int) accelerated.View {
	shape := [4]int{rows, 1, n, 2}
	return accelerated.HostView(ring.Array{DType: ring.Float32, Shape: shape, Data: make([]byte, rows*n*2*4)})
}

var exampleConfig = accelerated.Config{
	Semantics: ring.Exact, MaxSize: 4, KVHeads: 1, KeyDim: 2, ValueDim: 2, DType: ring.Float32,
}

// A decode loop: the mask before the write, the write, attention over what it
// returned.
func Example() {
	dev, err := accelerated.Open("cpu")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	cache, err := accelerated.NewBatchRotating(dev, exampleConfig, make([]int, 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()

	queries, out := column(2, 1), column(2, 1)
	for range 6 {
		read, err := cache.AppendDecode(column(2, 1), column(2, 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := read.Attend(out, queries, 0.7); err != nil {
			fmt.Println(err)
			return
		}
		keys := read.KV().Keys[0]
		fmt.Println("positions", cache.Position().Offset, "columns", keys.Shape[2])
		read.Close()
	}
	// Output:
	// positions [1 1] columns 1
	// positions [2 2] columns 2
	// positions [3 3] columns 3
	// positions [4 4] columns 4
	// positions [5 5] columns 4
	// positions [6 6] columns 4
}

// A batch of prompts of unequal length, padded on the right: the padding is
// rolled to the front, where no query sees it and where it is evicted first.
func ExampleCache_Prepare() {
	dev := must(accelerated.Open("cpu"))
	defer dev.Close()
	cache := must(accelerated.NewBatchRotating(dev, exampleConfig, make([]int, 2)))
	defer cache.Close()

	check(cache.Prepare(accelerated.Padding{Lengths: []int{3, 1}, RightPadding: []int{0, 2}}))
	must(cache.Update(column(2, 3), column(2, 3)))
	check(cache.Finalize())
	p := cache.Position()
	fmt.Println("positions", p.Offset, "left padding", p.LeftPadding)
	// Output: positions [3 1] left padding [0 2]
}

// Rows join a running batch and leave it.
func ExampleMerge() {
	dev := must(accelerated.Open("cpu"))
	defer dev.Close()
	running := must(accelerated.NewBatchRotating(dev, exampleConfig, make([]int, 2)))
	defer running.Close()
	must(running.Update(column(2, 3), column(2, 3)))

	joiner := must(accelerated.NewRotating(dev, exampleConfig))
	defer joiner.Close()
	must(joiner.Update(column(1, 2), column(1, 2)))

	batch := must(accelerated.Merge(running, joiner))
	defer batch.Close()
	fmt.Println("joined:", batch.Position().Offset, "left padding", batch.Position().LeftPadding)

	finished := must(batch.Extract(0)) // for a prompt cache
	defer finished.Close()
	check(batch.Filter([]int{1, 2}))
	fmt.Println("left:", batch.Position().Offset, "and one of", finished.Position().Offset)
	// Output:
	// joined: [3 3 2] left padding [0 0 1]
	// left: [3 2] and one of [3]
}

// A speculative round: all draft tokens are written, then each row keeps those
// that were accepted.
func ExampleCache_Rollback() {
	dev := must(accelerated.Open("cpu"))
	defer dev.Close()
	cache := must(accelerated.NewBatchRotating(dev, exampleConfig, make([]int, 2)))
	defer cache.Close()
	must(cache.Update(column(2, 5), column(2, 5)))

	before := cache.Position().Offset
	read := must(cache.AppendWindow(column(2, 3), column(2, 3)))
	read.Close()
	check(cache.Rollback(before, []int{3, 1}, false))
	fmt.Println(before, "->", cache.Position().Offset)
	// Output: [5 5] -> [8 6]
}

// A ring that quantizes each column as it is written: three planes a side.
func ExampleNewRotating_quantized() {
	dev := must(accelerated.Open("cpu"))
	defer dev.Close()
	cfg := exampleConfig
	cfg.KeyDim, cfg.ValueDim, cfg.DType = 64, 64, ring.BFloat16
	cfg.Quant = accelerated.Quant{GroupSize: 32, Bits: 4}
	cache := must(accelerated.NewRotating(dev, cfg))
	defer cache.Close()

	token := accelerated.HostView(ring.Array{DType: ring.BFloat16, Shape: [4]int{1, 1, 1, 64}, Data: make([]byte, 128)})
	kv := must(cache.Update(token, token))
	for i, name := range []string{"packed", "scales", "biases"} {
		fmt.Println(name, kv.Keys[i].DType, kv.Keys[i].Shape)
	}
	// Output:
	// packed uint32 [1 1 1 8]
	// scales bfloat16 [1 1 1 2]
	// biases bfloat16 [1 1 1 2]
}
