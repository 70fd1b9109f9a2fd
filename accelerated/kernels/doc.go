// Package kernels is what devices with processors of their own have in common:
// the text of the kernels (source/), what is compiled from it for CUDA (PTX),
// and [New], which makes an accelerated.Device of the little that a [Backend]
// can do. The text is compiled three ways: by Metal as a program starts, by
// NVRTC beforehand (`make kernels`), and by the host's C++ compiler for tests
// (package host).
//
// The invariant: the bodies stand once, and compute the same bytes everywhere,
// attention apart, where sums may be in another order. Floating point is as it
// is written: nothing contracts, nothing is reordered, nothing is flushed;
// rounding to a data type is integer arithmetic.
//
// A kernel is the work of one warp of 32 lanes, without threadgroup memory, so
// that the host can do one lane, and one warp, after another. [Entries] says what
// each takes, and args.go how its arguments are laid out. Which kernel does what:
//
//	move_columns   fills columns from other stores, or zeros: runs in any order
//	shift_rows     runs in place within rows: moves by some columns, turns
//	close_ranks    rows in place to lower ones, column for column
//	write_*        keys, values and mask in one launch; quantizes or copies
//	attend_*       attention of 1 or of up to 4 queries, over a part of the columns;
//	               of one over bfloat16 codes of 4 bits by products of matrices,
//	               where the processor has those (see attend_four)
//	combine_splits joins those parts
//
// A move in place that fits none of these goes through memory beside the store.
//
// What a backend does (memory, streams, command buffers) does not belong here,
// and what caches mean by their calls neither.
package kernels
