// Command mutants plants bugs in the reference and shows that the corpus finds
// each of them.
//
//	go run ./ci/mutants [-run REGEXP] [-v]
//
// A mutant replaces one piece of text in one function. All are built into one
// program, as an overlay, so that the source stays as it is: a function with
// planted bugs has a copy of its body for each, and the environment says which
// copy runs. The program, in the folder replay, runs the cases of the corpus on
// the reference and prints those that fail. A mutant is killed if every case
// that the table names for it is among them. The last line counts:
// "N killed, N survived".
//
// The invariant, which a test checks without building anything: each case of
// corpus/cases/known is named by at least one mutant. A survivor means that a
// case has lost its bite; put the case right, and leave the mutant.
package main
