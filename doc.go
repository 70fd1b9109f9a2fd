// Package ringcheck is the executable specification of mlx-lm's ring KV caches.
// It has no code of its own: this is the map, and its test runs the whole suite,
//
//	go test -rapid.checks=1000
//
// A case is a value: a list of operations on named caches, with the tokens that
// they are fed, and what must be observed of each. Read one first, from
// corpus/cases/known, then follow it:
//
//   - corpus: what a case is, its file format, and the cases that come along.
//   - reference: mlx-lm's caches in plain Go, literally, one file a class, and
//     the ledger of their quirks. It answers a case in bytes.
//   - models: what must be true, without a ring: a row is a list of tokens, of
//     which each query sees the last few. It says what is legal, what is
//     refused, and what each query may see.
//   - props: the judges. A Target takes a case and answers with an observation
//     an operation; in process, or as a child in any language. A Property holds
//     a target to something, by the reference, by the models, or by a second
//     case that must not differ. Generate makes cases, Reduce makes them small,
//     File keeps them, a Suite does all of it.
//   - accelerated: the fast cache, in positions, plans and devices. It is held
//     to the reference at every step.
//   - cmd/ringcheck: the command, one file a verb. Start at check.go.
//   - ci: what runs on every change; the real mlx-lm as a target; planted bugs
//     that the judges must find; benchmarks.
//
// Imports go that way and no other: corpus, models, props, cmd. The reference
// and the models do not know each other, and nobody imports the command.
//
// Two semantics run through all of it, always named: mlxlm is mlx-lm, defects
// included; exact is what is right. Terms are mlx-lm's; a column is a physical
// slot, a block is a write that appends, and padding is pending between Prepare
// and Finalize. The README has the rest of the words.
package ringcheck
