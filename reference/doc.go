// Package reference is mlx-lm's KV caches in plain Go, literally: the same
// columns in the same physical places, the same integers, the same masks, and
// the same defects, for mlx-lm 0.32.2. Each class is in a file of its own, its
// methods in upstream's order, and each method's comment begins with the name
// of what it ports. Upstream's source is mlx_lm/models/cache.py and base.py in
// https://github.com/ml-explore/mlx-lm.
//
// The rings (RotatingKVCache, BatchRotatingKVCache) exist under two semantics:
// [ring.MLXLM] is mlx-lm's, [ring.Exact] is what is right. Where the two part,
// a branch on the semantics names the rule, and the quirk ledger has a row
// with a case that shows it. Beside the classes of mlx-lm there are quantized
// rings, batched recurrent state, and what a serving engine needs of a ring:
// AppendDecode, AppendWindow, Rollback, Snapshot, Restore, Adopt and others.
//
// Invariants. An operation that returns an error has changed nothing. Nothing
// that goes in or comes out shares memory with a cache, nor do two caches
// share memory: arrays are copied at the border, which mlx-lm does not do.
// Where mlx-lm raises, the error is a [ring.RaisesError] unless the case
// format has a code of its own; what upstream leaves half done when it raises
// is not ported.
//
// The growth step is the field Step of a class, 256 at first, as upstream;
// tests use 2 to 4.
//
// The package imports the standard library and reference/ring only. A cache is
// confined to its caller's goroutine. Prompt-cache files are the business of
// the subpackage promptfile.
package reference
