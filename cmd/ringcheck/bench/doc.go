// Package bench measures the accelerated caches beside the real mlx-lm and
// beside the machine's own copy, and shows what came of it as a table, as JSON
// and as plots.
//
// A [Work] is one thing that a cache does, at one [Shape]. [Measure] lets all
// contenders (the device; the device without assembly; a peer in a child
// process; the machine's copy or read) do the same work in turns, round after
// round, and keeps each round's mean time of a step. [Report] holds that, and
// what is said of it is derived: medians with their spread, ratios as the
// median of the ratios of each round, bytes written against the least
// possible, memory held against its limit. [Suite] does the same for the
// property suite beside Hypothesis.
//
// The invariant: a ratio is only ever taken within one round of one run. What
// was not measured is left out and said to be so; nothing is compared with a
// number from another machine or day.
//
// Whether a cache is right does not belong here (package props), nor do Go
// benchmarks for benchstat, which stand beside the code that they measure.
package bench
