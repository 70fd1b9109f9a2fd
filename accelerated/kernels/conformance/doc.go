// Package conformance holds one device to another: random calls, the same on
// both, must leave the same bytes, and attention the same numbers within the
// rounding of sums. Device packages call it from their tests, with a source of
// numbers that they choose, against the device cpu.
//
// The invariant: what it calls is legal by the contract of accelerated.Device,
// and as nasty as that allows (odd widths and alignments, runs that overlap,
// numbers on which roundings depend, garbage where a mask admits nothing).
//
// What caches do with devices does not belong here: see props.
package conformance
