// Command mutants plants bugs in the reference and shows that the corpus finds
// each of them.
//
//	go run ./ci/mutants [-run REGEXP] [-v]
//
// A mutant replaces one piece of text in one file. It is built as an overlay,
// so that the source stays as it is: the program of the folder replay runs the
// cases of the corpus on the mutated reference and prints those that fail. The
// mutant is killed if every case that the table names for it is among them. The
// last line counts: "N killed, N survived".
//
// The invariant, which a test checks without building anything: each case of
// corpus/cases/known is named by at least one mutant. A survivor means that a
// case has lost its bite; put the case right, and leave the mutant.
package main
