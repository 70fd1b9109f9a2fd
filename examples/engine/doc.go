// Package engine stands for an inference engine that has a ring of its own and
// is held against ringcheck: [Ring] is the implementation, target_test.go shows
// it to package props, ring_test.go runs the suite.
//
// It is a module of its own, as yours is. Instead of the replace line in its
// go.mod, yours requires a version.
package engine
