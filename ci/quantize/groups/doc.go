// Package groups makes groups of floats that are hard to quantize: one
// generator a [Kind], each aimed at a place where two implementations of the
// same arithmetic may part (ties, ends of the range, zeros, NaN). Its groups
// are for holding one implementation against another, here the reference
// against the real MLX.
//
// Its invariant: the groups follow from the seed alone.
//
// What does not belong here: quantizing, and judging the result.
package groups
