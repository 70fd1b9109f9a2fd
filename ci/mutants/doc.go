// Command mutants plants bugs in the reference and in the accelerated cache, and
// shows that the corpus and the properties of package props find each of them.
//
//	go run ./ci/mutants [-run REGEXP] [-seeds N]
//
// A mutant replaces one piece of text in one function. All are built into one
// program, planted, as an overlay, so that the source stays as it is: a function
// with planted bugs has a copy of its body for each, and the program's first
// argument says which copy runs. A mutant is judged from outside:
//
//   - by the corpus: every case that the table names for it must fail;
//   - by properties, the comparison with the reference left out: the planted
//     program answers the protocol as a child, and is checked on up to 1,000
//     random cases of each seed, from 1 to N. With each seed one must fail. The
//     first finding is reduced, to at most two operations more than the shortest
//     case that the table names.
//
// Where no model can know of a bug, because it shows in the layout alone or where
// mlx-lm corrupts a cache, the table says why, and the corpus alone kills it. With
// -seeds 0 the corpus is asked alone, about the mutants that it shows. A line a mutant: the property, the median
// number of checks, the operations of the reduced case, the failing cases of the
// corpus. The last line counts: "N killed, N survived".
//
// The invariant, which a test checks without building anything: each case of
// corpus/cases/known is named by at least one mutant. A survivor means that a
// case has lost its bite, or that a property is missing; mend that, and leave the
// mutant.
package main
