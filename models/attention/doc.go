// Package attention says what a query must read: softmax attention over a row
// of tokens, in float64, by gonum. It is the oracle for every other attention
// here, so it is short and shares no code with any of them.
//
// Its invariant: a token that a query may not see does not enter the sums at
// all, so what it holds cannot matter; a query that may see none reads zeros.
//
// What does not belong here: caches, columns, padding and their masks (a token
// is given once, oldest first, and visible or not), storage types and
// quantization (vectors come as float64).
package attention
