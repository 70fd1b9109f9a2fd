// Command imports checks from `go list` that each part of the module imports
// only what its place in the design allows, and that none uses cgo:
//
//	go run ./ci/imports
//
// It prints a line for each import that breaks a rule and exits 1; it exits 2
// where go list fails. The table named layers is the rule. What a test imports
// is its own affair.
package main
