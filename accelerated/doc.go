// Package accelerated holds mlx-lm's ring KV caches as an inference engine
// wants them: fast, in little memory, on the processor or an accelerator, and
// equal to package reference in every byte that an operation returns. It has
// the rings of one sequence and of a batch, plain and quantized ([Cache]), and
// recurrent state in batches ([Recurrent]), under both semantics.
//
// Three layers. positions.go keeps a few integers a row; both semantics begin
// and end there. plan.go turns what an operation does to columns into runs of
// bytes that move, and into a place for the new tokens. A [Device] does that,
// and knows bytes only. The caches on top check arguments, own memory, and
// commit a new position after the device has taken the work.
//
// A ring's logical column j, mlx-lm's, lies at physical column base+j of a
// store with room to spare, so that most appends write behind the window and
// move nothing: a block costs its own tokens, a decode one column. Every view
// is one contiguous run of columns in mlx-lm's order, which masks line up with.
// Held between operations is at most 1.5 windows and the largest block, for up
// to a third more rows than are in use after a filter.
//
// Invariants. An operation that returns an error has changed nothing. A decode
// step in a full ring allocates nothing. What mlx-lm corrupts silently, and
// what docs/semantics.md calls illegal, is refused under both semantics, with
// the typed errors of package ring.
//
// Devices are packages of their own; import those that may be opened:
//
//	import _ "example.com/ringcheck/accelerated/cpu"
//
// What is right, and what mlx-lm does, is not decided here: see packages models
// and reference. Nothing here reads or writes files.
package accelerated
