package engine_test

import (
	"fmt"

	"example.com/ringcheck/accelerated"
	_ "example.com/ringcheck/accelerated/cpu" // makes Open("cpu") possible
	"example.com/ringcheck/reference/ring"
)

// The layers of a model share their masks: what one layer has built, the next
// leases. A draft tree, in which a token does not see its siblings, comes with
// a mask of its own.
func Example_masks() {
	dev := must(accelerated.Open("cpu"))
	defer dev.Close()
	masks := accelerated.NewMasks(dev)
	defer masks.Close()
	layers := make([]*accelerated.Cache, 2)
	for i := range layers {
		layers[i] = must(accelerated.NewBatchRotating(dev, accelerated.Config{
			Semantics: ring.Exact, MaxSize: 4, KVHeads: 1, KeyDim: 1, ValueDim: 1, DType: ring.Float32, Masks: masks,
		}, []int{0}))
		defer layers[i].Close()
	}

	prompt := accelerated.HostView(tokens(1, 2, 3))
	for _, layer := range layers {
		mask := must(layer.Mask(3, nil)) // before the write that it is for
		must(layer.Update(prompt, prompt))
		show(must(mask.View().Download(dev))) // your attention reads mask.View()
		mask.Release()
	}

	draft := accelerated.HostView(tokens(4, 5))
	for _, layer := range layers {
		siblings := must(masks.Upload(&ring.Mask{B: 1, N: 2, S: 5, Data: []bool{
			true, true, true, true, false,
			true, true, true, false, true,
		}}))
		read := must(layer.AppendWindowUnder(draft, draft, siblings, false)) // takes the lease
		show(must(read.Mask().Download(dev)))
		read.Close() // releases it
	}
	// Output:
	// 100 110 111
	// 100 110 111
	// 11110 11101
	// 11110 11101
}

// show prints a mask of one row, a group of columns for each query.
func show(m *ring.Mask) {
	for q := range m.N {
		if q > 0 {
			fmt.Print(" ")
		}
		for s := range m.S {
			if m.At(0, q, s) {
				fmt.Print(1)
			} else {
				fmt.Print(0)
			}
		}
	}
	fmt.Println()
}
