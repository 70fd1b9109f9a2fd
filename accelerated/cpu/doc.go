// Package cpu is the accelerated caches' device on the processor: plain Go,
// and on amd64 with AVX2 assembly for what pays (moves that bypass the cache,
// quantizing, attention). Importing it makes it known to accelerated.Open.
//
// The invariant: the assembly and the plain Go compute the same bytes,
// attention included, on every processor. Products and sums are never fused,
// and sums are taken in a fixed order of eight lanes, so that no byte depends
// on the processor or on the number of cores.
//
// Memory comes from a pool; large buffers are anonymous mappings with huge
// pages where the system has them. Large work is spread over workers that live
// from Open to Close; small work, a decode step above all, runs where it is
// called, allocates nothing and starts nothing.
//
// Semantics do not belong here: see the package accelerated.
package cpu
