package kernels

import "unsafe"

// Entries are the kernels. Threads of a launch are a multiple of [Warp], at
// most 128. No kernel uses threadgroup memory; attention has a barrier, which
// all threads of its groups reach. The buffers of each:
//
//	move_columns     store; table; 16 sources (those not used, or that are given by
//	                 their addresses, are any buffer)
//	shift_rows       store; table
//	close_ranks      store; table
//	write_*          store; keys; values; mask; table (those not used are any buffer)
//	attend_*         store; query; mask; out; partial (likewise)
//	combine_splits   out; partial
//
// All but store, mask, out and partial are only read, and so is the store in
// attend.
var Entries = entries()

func entries() map[string]Entry {
	all := map[string]Entry{
		"move_columns":   {2 + boundSources, int(unsafe.Sizeof(moveArgs{}))},
		"shift_rows":     {2, int(unsafe.Sizeof(shiftArgs{}))},
		"close_ranks":    {2, int(unsafe.Sizeof(closeArgs{}))},
		"combine_splits": {2, int(unsafe.Sizeof(combineArgs{}))},
	}
	for _, name := range writers {
		all[name] = Entry{5, int(unsafe.Sizeof(writeArgs{}))}
	}
	for _, name := range attenders {
		for _, suffix := range [...]string{"_1", "_4"} {
			all[name+suffix] = Entry{5, int(unsafe.Sizeof(attendArgs{}))}
		}
	}
	return all
}

// How columns are stored, as far as attention is concerned.
const (
	anyPlain = iota
	plainBFloat16
	plainFloat16
	plainFloat32
	fourBFloat16
	fourFloat16
	anyQuantized
)

var attenders = [...]string{
	anyPlain:      "attend_plain_any",
	plainBFloat16: "attend_plain_bfloat16",
	plainFloat16:  "attend_plain_float16",
	plainFloat32:  "attend_plain_float32",
	fourBFloat16:  "attend_four_bfloat16",
	fourFloat16:   "attend_four_float16",
	anyQuantized:  "attend_quantized_any",
}

// writers are by data type; 0 is plain.
var writers = [...]string{"write_plain", "write_quantized_bfloat16", "write_quantized_float16", "write_quantized_float32"}
