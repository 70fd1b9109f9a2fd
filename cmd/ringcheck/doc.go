// Command ringcheck judges implementations of mlx-lm's ring KV caches: the
// built-in ones, and any program that speaks the protocol of docs/wire.md.
// `ringcheck -help` lists the verbs.
//
// One file holds one verb; main.go only joins them. What a verb does beyond
// reading arguments and printing lives in props and corpus. Exit status: 0 all
// passed, 1 findings, 2 could not run. The last line of standard output counts:
// "N passed, N failed, N skipped".
package main
