package models

import (
	"maps"
	"slices"

	"example.com/ringcheck/corpus"
)

// Info is what a generator must know of a cache to choose the next operation.
type Info struct {
	Kind    corpus.Kind
	Rows    int
	MaxSize int // 0: no window
	Keep    int
	Slots   int // of recurrent state
	Caches  int // of a list
	// Lost: an operation outside the model's domain happened; nothing is
	// predicted of this cache any more.
	Lost bool
	// Columns are in use; Total is what fills the window.
	Columns, Total int
	Rotated        bool
	// Started: columns have been written or merged, so that left padding can no
	// longer be announced.
	Started bool
	// Pending: right padding is announced and not finalized; Due are the columns
	// of the padded width not yet fed.
	Pending bool
	Due     int
	// Trim is the most that a trim may take; below 0, every trim is refused or
	// outside the domain.
	Trim int
	// Round is the number of tokens of the last write that a rollback may take
	// back, 0 for none.
	Round int
}

// Info describes the cache of that name, if there is one.
func (m *Model) Info(name string) (Info, bool) {
	c, ok := m.caches[name]
	if !ok {
		return Info{}, false
	}
	i := Info{
		Kind: c.kind, Rows: len(c.rows), Keep: c.keep, Caches: len(c.kids), Lost: c.anyLost(),
		Columns: c.a, Total: c.tot, Rotated: c.rot, Started: c.buffer, Pending: c.pending, Due: c.due, Trim: -1,
	}
	if c.w < unbounded {
		i.MaxSize = c.w
	}
	if c.slots != nil {
		i.Slots, i.Rows = len(c.slots.ids), c.slots.rows(c.kind)
		i.Pending = c.slots.lengths != nil
	}
	if !i.Lost && c.ruleTrim(0) == legal {
		if i.Trim = 0; len(c.rows) > 0 && c.ruleTrim(1) == legal {
			i.Trim = c.minHeld()
		}
	}
	if c.ruleRollback(&corpus.Op{}) == legal && c.kind.Has(corpus.Rollback, c.semantics()) {
		i.Round = c.round
	}
	return i, true
}

// Names lists the caches, oldest first. The caller must not change it.
func (m *Model) Names() []string { return m.names }

// Snapshots and Files list what restore, adopt and load can name, sorted.
func (m *Model) Snapshots() []string { return slices.Sorted(maps.Keys(m.snaps)) }

// Files lists the files saved, sorted.
func (m *Model) Files() []string { return slices.Sorted(maps.Keys(m.files)) }

// Saved returns how many caches the file holds.
func (m *Model) Saved(file string) int { return len(m.files[file]) }

// Tokens returns the tokens that the row holds, oldest first. The caller must
// not change them; the next Apply may.
func (m *Model) Tokens(name string, row int) []int { return m.caches[name].rows[row].tail }

// Length returns the number of tokens of the row's history.
func (m *Model) Length(name string, row int) int { return m.caches[name].rows[row].n }

// Split says how the next n columns fed to the row must divide: lead pads, then
// real tokens, then trailing pads.
func (m *Model) Split(name string, row, n int) (lead, real int) {
	c := m.caches[name]
	return c.rows[row].split(n, c.pending)
}
