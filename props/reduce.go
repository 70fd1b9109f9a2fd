package props

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/models"
	"example.com/ringcheck/reference/ring"
)

// reduceChecks bounds how often a reduction asks whether a smaller case still
// shows the failure.
const reduceChecks = 4000

// reduceFaults is that bound where the target crashes, since each time it is
// started again.
const reduceFaults = 300

// reducedFrom begins the source of a reduced case. What else the header of a case
// says of its origin does not fit the reduced one.
const reducedFrom = "reduced from "

// Reduce returns a finding of the same property on the smallest case that it
// finds: operations are left out, replaced by simpler ones and joined, sizes
// lowered, names and tokens numbered in the order in which they appear. No
// single step of these makes the result smaller and keeps the failure, unless
// the bound on the work was reached or ctx ended. Every case that is tried is
// well-formed, claimed by the target, and one of which package models can speak
// where f.Case is one. The same finding is reduced to the same one.
//
// What a case wants is part of it. So where it is not answered as it wants, it is
// made smaller only if it is not answered as the reference does either, and the
// finding is then of that property, "reference". A case on which the target hangs, or does not
// stop answering, stays as it is: each try would take as long. Of what stays as it
// is, the finding is f itself.
func Reduce(ctx context.Context, t Target, f *Finding) (*Finding, error) {
	whole := f
	if f.Property == "corpus" {
		list, err := Named([]string{"reference"})
		if err == nil {
			f, err = Check(ctx, t, corpus.Unwanted(f.Case), list)
		}
		if err != nil || f == nil || (f.Fault != nil) != (whole.Fault != nil) {
			return whole, err
		}
	}
	list, err := Named([]string{f.Property})
	if err != nil || f.Fault != nil && f.Fault.Slow {
		return whole, err
	}
	r := &reducer{ctx: ctx, t: t, p: list, fault: f.Fault != nil, best: f, left: reduceChecks, tried: map[string]bool{f.Case.Content(): true}}
	if r.fault {
		r.left = reduceFaults
	}
	if r.source = f.Case.Source; !strings.HasPrefix(r.source, reducedFrom) {
		r.source = reducedFrom + f.Case.Name
	}
	r.modelled = modelled(&f.Case)
	for again := true; again && r.left > 0 && ctx.Err() == nil; {
		again = r.pass((*reducer).deletions)
		for _, step := range []func(*corpus.Case, func(corpus.Case)){substitutions, joins, rowsDropped, lowered, headers} {
			again = r.pass(func(r *reducer) bool { return r.first(step) }) || again
		}
	}
	r.try(canonical(r.best.Case), false)
	return r.best, ctx.Err()
}

// reducer is a reduction under way.
type reducer struct {
	ctx      context.Context
	t        Target
	p        []Property // the one
	source   string     // of cases that are made
	fault    bool       // whether what is reduced is a fault of the target
	best     *Finding
	modelled bool // whether cases must be such that package models can speak of them
	left     int
	tried    map[string]bool // by content
}

// pass repeats a step until it finds nothing more, and reports whether it
// found anything.
func (r *reducer) pass(step func(*reducer) bool) (found bool) {
	for r.left > 0 && r.ctx.Err() == nil && step(r) {
		found = true
	}
	return found
}

// first takes the first candidate that is smaller and still fails.
func (r *reducer) first(candidates func(*corpus.Case, func(corpus.Case))) bool {
	found := false
	candidates(&r.best.Case, func(c corpus.Case) {
		found = found || r.try(c, true)
	})
	return found
}

// try makes c the best case if it is well-formed and shows the failure, and is
// smaller where it must be.
func (r *reducer) try(c corpus.Case, smaller bool) bool {
	if r.left == 0 || r.ctx.Err() != nil {
		return false
	}
	c.Source, c.ID, c.Link, c.Notes, c.Found = r.source, "", "", "", nil
	if c = corpus.Unwanted(c); r.modelled && !modelled(&c) {
		c = fitted(c)
	} else {
		c = closed(c)
	}
	if smaller && slices.Compare(size(&c), size(&r.best.Case)) >= 0 {
		return false
	}
	if id := c.Content(); r.tried[id] {
		return false
	} else {
		r.tried[id] = true
	}
	if len(c.Ops) == 0 || !wellFormed(c) {
		return false
	}
	if r.t.Info().Lacks(c) != "" {
		return false // it may do there what it likes
	}
	r.left--
	f, err := Check(r.ctx, r.t, c, r.p)
	var gaveUp *GaveUp
	if errors.As(err, &gaveUp) {
		r.left = 0
	}
	if f == nil || err != nil || (f.Fault != nil) != r.fault || r.fault && f.Fault.Slow {
		return false
	}
	r.best = f
	return true
}

// plainWidth is that of a key or value, where it is of no account: all reduced
// cases that differ in nothing else should be one.
const plainWidth = 4

// size is what is to be lowered, the most important first.
func size(c *corpus.Case) []int {
	made, tokens, names, numbers := 0, 0, 0, 0
	abs := func(list ...int) {
		for _, n := range list {
			numbers += max(n, -n)
		}
	}
	flag := func(set bool) {
		if set {
			numbers++
		}
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Verb != corpus.New && (op.Out != "" || op.Outs != nil) {
			made++ // a cache made of others
		}
		for _, row := range op.Tokens {
			tokens += 1 + len(row)
		}
		names += len(op.Caches) + len(op.Outs)
		abs(op.MaxSize, op.Keep, op.ChunkSize, op.Slots, op.N, op.Row, op.Slot, op.Queries)
		for _, list := range [][]int{op.KeepRows, op.LeftPadding, op.Lengths, op.RightPadding, op.Rows} {
			abs(list...)
			numbers += len(list)
		}
		for _, p := range []*int{op.Window, op.Limit} {
			if flag(p != nil); p != nil {
				abs(*p)
			}
		}
		flag(op.RightPadded != nil)
		flag(op.Preserve)
		flag(op.Causal)
	}
	header := c.Shape.KVHeads + int(c.Fill) + int(c.Shape.DType)
	for _, dim := range []int{c.Shape.KeyDim, c.Shape.ValueDim} {
		header += max(dim-plainWidth, plainWidth-dim)
	}
	if c.Step != corpus.DefaultStep {
		header += 1 + c.Step
	}
	if q := c.Quant; q != nil {
		header += q.GroupSize + q.Bits
	}
	return []int{len(c.Ops), made, tokens, names, numbers, header}
}

// wellFormed reports whether c can be kept in the corpus.
func wellFormed(c corpus.Case) bool {
	if steps, err := referenceAnswers(c); err == nil {
		c = corpus.Unwanted(c)
		for i := range steps {
			if e := steps[i].Error; e != "" { // what is refused makes no name
				c.Ops[i].Want = &corpus.Want{Error: e}
			}
		}
	}
	return len(corpus.Lint(c)) == 0
}

// modelled reports whether package models can speak of all of c.
func modelled(c *corpus.Case) bool {
	m := models.New(c.Semantics, c.Shape, c.Quant)
	for i := range c.Ops {
		if !m.Apply(&c.Ops[i]).Known {
			return false
		}
	}
	return true
}

// closed drops the operations that name what is not there any more.
func closed(c corpus.Case) corpus.Case {
	there := map[string]bool{}
	c.Ops = slices.DeleteFunc(slices.Clone(c.Ops), func(op corpus.Op) bool {
		reads, changes, makes := namesOf(&op)
		if slices.ContainsFunc(append(reads, changes...), func(name string) bool { return !there[name] }) {
			return true
		}
		for _, name := range makes {
			there[name] = true
		}
		return false
	})
	return c
}

// fitted makes a case of which package models can speak: it gives lists of one
// element a row as many as the cache now has, and drops what still does not
// fit.
func fitted(c corpus.Case) corpus.Case {
	m := models.New(c.Semantics, c.Shape, c.Quant)
	fresh := 1
	for _, id := range c.TokenIDs() {
		fresh = max(fresh, 1+id, 1-id)
	}
	c.Ops = slices.Clone(c.Ops)
	for i := range c.Ops {
		fitRows(m, &c.Ops[i], &fresh)
	}
	c.Ops = slices.DeleteFunc(c.Ops, func(op corpus.Op) bool { return op.Verb == "" })
	return c
}

// fitRows fits an operation to its cache and applies it to the model. One that
// cannot be fitted loses its verb.
func fitRows(m *models.Model, op *corpus.Op, fresh *int) {
	if op.Verb == corpus.Merge || op.Verb == corpus.Save {
		op.Caches = slices.DeleteFunc(slices.Clone(op.Caches), func(name string) bool { _, ok := m.Info(name); return !ok })
	}
	if info, ok := m.Info(op.Cache); ok && !info.Lost && info.Rows > 0 {
		for _, list := range []*[]int{&op.LeftPadding, &op.Lengths, &op.RightPadding, &op.KeepRows} {
			*list = (*list)[:min(len(*list), info.Rows)]
		}
		fitTokens(m, op, info, fresh)
		if ok, code := m.Legal(op); !ok && code == "" {
			op.Row = min(op.Row, info.Rows-1)
			op.Rows = slices.DeleteFunc(slices.Clone(op.Rows), func(i int) bool { return i >= info.Rows })
		}
	}
	if ok, code := m.Legal(op); ok || code != "" {
		m.Apply(op)
	} else {
		op.Verb = ""
	}
}

// fitTokens gives a write a list of tokens for each row, with the signs that
// padding asks for.
func fitTokens(m *models.Model, op *corpus.Op, info models.Info, fresh *int) {
	if len(op.Tokens) == 0 {
		return
	}
	n := len(op.Tokens[0])
	rows := make([][]int, info.Rows)
	for i := range rows {
		rows[i] = make([]int, n)
		lead, real := 0, n
		if info.Slots == 0 {
			lead, real = m.Split(op.Cache, i, n)
		}
		for j := range rows[i] {
			id := *fresh
			if i < len(op.Tokens) {
				id = max(op.Tokens[i][j], -op.Tokens[i][j])
			} else {
				*fresh++
			}
			if rows[i][j] = id; j < lead || j >= lead+real {
				rows[i][j] = -id
			}
		}
	}
	op.Tokens = rows
	if op.Mask != nil {
		if s := n + min(info.Columns, info.MaxSize-1); op.Mask.B != len(rows) || op.Mask.N != n || op.Mask.S != s {
			op.Mask = seeAll(len(rows), n, s)
		}
	}
}

// without returns c without the operations [from, to).
func without(c *corpus.Case, from, to int) corpus.Case {
	out := *c
	out.Ops = slices.Delete(slices.Clone(c.Ops), from, to)
	return out
}

// with returns c with another operation i.
func with(c *corpus.Case, i int, op corpus.Op) corpus.Case {
	out := *c
	out.Ops = slices.Clone(c.Ops)
	out.Ops[i] = op
	return out
}

// deletions leaves out runs of operations, long ones first, and in the end any
// two.
func (r *reducer) deletions() bool {
	found := false
	for n := len(r.best.Case.Ops); n >= 1; n /= 2 {
		for from := len(r.best.Case.Ops) - n; from >= 0; from -= n {
			from = min(from, len(r.best.Case.Ops)-n)
			if from < 0 {
				break
			}
			found = r.try(without(&r.best.Case, from, from+n), true) || found
		}
	}
	if found {
		return true
	}
	return r.first(func(c *corpus.Case, yield func(corpus.Case)) {
		for j := len(c.Ops) - 1; j > 0; j-- {
			rest := without(c, j, j+1)
			for i := j - 1; i >= 0; i-- {
				yield(without(&rest, i, i+1))
			}
		}
	})
}

// substitutions replaces a cache that is made from others by its source, or by
// a new one.
func substitutions(c *corpus.Case, yield func(corpus.Case)) {
	m := models.New(c.Semantics, c.Shape, c.Quant)
	for i := range c.Ops {
		op := &c.Ops[i]
		m.Apply(op)
		outs := op.Outs
		if op.Out != "" && op.Verb != corpus.New {
			outs = []string{op.Out}
		}
		for _, out := range outs {
			made, ok := m.Info(out)
			if !ok || made.Lost {
				continue
			}
			for _, name := range m.Names() {
				if info, ok := m.Info(name); ok && name != out && info.Kind == made.Kind {
					yield(renamed(without(c, i, i+1), i, out, name))
				}
			}
			if made.Kind == corpus.List || len(outs) > 1 {
				continue
			}
			fresh := corpus.Op{Verb: corpus.New, Out: out, Kind: made.Kind, MaxSize: made.MaxSize, Slots: made.Slots}
			if made.Kind == corpus.BatchKV || made.Kind == corpus.BatchRotating || made.Kind == corpus.BatchRotatingQuantized {
				fresh.LeftPadding = make([]int, made.Rows)
			}
			yield(with(c, i, fresh))
		}
	}
}

// renamed returns c with one cache under the name of another from operation i
// on.
func renamed(c corpus.Case, i int, from, to string) corpus.Case {
	c.Ops = slices.Clone(c.Ops)
	for k := i; k < len(c.Ops); k++ {
		op := &c.Ops[k]
		for _, name := range []*string{&op.Cache, &op.Other} {
			if *name == from {
				*name = to
			}
		}
		op.Caches = slices.Clone(op.Caches)
		for n := range op.Caches {
			if op.Caches[n] == from {
				op.Caches[n] = to
			}
		}
	}
	return c
}

// joins makes one write of two that follow each other on a cache.
func joins(c *corpus.Case, yield func(corpus.Case)) {
	for j := len(c.Ops) - 1; j > 0; j-- {
		second := c.Ops[j]
		if len(second.Tokens) == 0 || second.Verb == corpus.Write {
			continue
		}
		i := j - 1
		for i >= 0 && (c.Ops[i].Cache != second.Cache || c.Ops[i].Verb == corpus.MaskOp) {
			i--
		}
		if i < 0 || len(c.Ops[i].Tokens) != len(second.Tokens) || c.Ops[i].Verb == corpus.Write {
			continue
		}
		out := withWidth(c, j, len(c.Ops[i].Tokens[0])+len(second.Tokens[0]))
		for r := range second.Tokens {
			out.Ops[j].Tokens[r] = slices.Concat(c.Ops[i].Tokens[r], second.Tokens[r])
		}
		if out.Ops[j].Verb == corpus.AppendDecode {
			out.Ops[j].Verb = corpus.Update
		}
		yield(without(&out, i, i+1))
	}
}

// withWidth returns c with the write i, and the masks made for it, cut to n
// columns; more columns than there are must be filled in.
func withWidth(c *corpus.Case, i, n int) corpus.Case {
	op := c.Ops[i]
	out := with(c, i, op)
	out.Ops[i].Tokens = make([][]int, len(op.Tokens))
	for r, row := range op.Tokens {
		out.Ops[i].Tokens[r] = row[:min(n, len(row))]
	}
	for k := i - 1; k >= 0; k-- {
		if o := &out.Ops[k]; o.Cache == op.Cache {
			if o.Verb != corpus.MaskOp {
				break
			}
			if o.N == len(op.Tokens[0]) {
				o.N = n
			}
		}
	}
	return out
}

// rowsDropped takes a row out of a new batch, and out of what is done to it
// under its name.
func rowsDropped(c *corpus.Case, yield func(corpus.Case)) {
	for i := range c.Ops {
		made := &c.Ops[i]
		if made.Verb != corpus.New || len(made.LeftPadding) < 2 {
			continue
		}
		for row := range made.LeftPadding {
			out := *c
			out.Ops = slices.Clone(c.Ops)
			for k := i; k < len(out.Ops); k++ {
				if op := &out.Ops[k]; k == i || op.Cache == made.Out {
					dropRow(op, row)
				}
			}
			yield(out)
		}
	}
}

// dropRow takes a row out of the lists of an operation.
func dropRow(op *corpus.Op, row int) {
	for _, list := range []*[]int{&op.LeftPadding, &op.Lengths, &op.RightPadding, &op.KeepRows} {
		if row < len(*list) {
			*list = slices.Delete(slices.Clone(*list), row, row+1)
		}
	}
	if row < len(op.Tokens) {
		op.Tokens = slices.Delete(slices.Clone(op.Tokens), row, row+1)
	}
	op.Rows = slices.DeleteFunc(slices.Clone(op.Rows), func(i int) bool { return i == row })
	for k := range op.Rows {
		if op.Rows[k] > row {
			op.Rows[k]--
		}
	}
	if op.Row > row {
		op.Row--
	}
}

// lower calls try with each simpler number: the least, half, one less.
func lower(n, least int, try func(int)) {
	for _, v := range slices.Compact([]int{least, (least + n) / 2, n - 1}) {
		if least <= v && v < n {
			try(v)
		}
	}
}

// lowered lowers the numbers of operations, one at a time.
func lowered(c *corpus.Case, yield func(corpus.Case)) {
	for i := range c.Ops {
		op := c.Ops[i]
		if len(op.Tokens) > 0 && op.Verb != corpus.Write {
			lower(len(op.Tokens[0]), 1, func(n int) { yield(withWidth(c, i, n)) })
		}
		if op.Verb == corpus.New { // windows and chunks of one size belong together
			lower(max(op.MaxSize, op.ChunkSize), 1, func(n int) {
				out := *c
				out.Ops = slices.Clone(c.Ops)
				for k := range out.Ops {
					o := &out.Ops[k]
					if o.MaxSize != 0 && o.MaxSize == op.MaxSize {
						o.MaxSize = n
					}
					if o.ChunkSize != 0 && o.ChunkSize == op.ChunkSize {
						o.ChunkSize = n
					}
				}
				yield(out)
			})
		}
		for _, simpler := range simplerOps(op) {
			yield(with(c, i, simpler))
		}
	}
}

// simplerOps returns an operation with one of its fields simpler.
func simplerOps(op corpus.Op) (list []corpus.Op) {
	number := func(field func(*corpus.Op) *int, least int) {
		lower(*field(&op), least, func(n int) {
			o := op
			*field(&o) = n
			list = append(list, o)
		})
	}
	elements := func(field func(*corpus.Op) *[]int) {
		for e, v := range *field(&op) {
			lower(v, 0, func(n int) {
				o := op
				*field(&o) = slices.Clone(*field(&op))
				(*field(&o))[e] = n
				list = append(list, o)
			})
		}
	}
	change := func(apply bool, f func(*corpus.Op)) {
		if apply {
			o := op
			f(&o)
			list = append(list, o)
		}
	}
	leastN := 0
	if op.Verb == corpus.MaskOp {
		leastN = 1
	}
	number(func(o *corpus.Op) *int { return &o.N }, leastN)
	number(func(o *corpus.Op) *int { return &o.Keep }, 0)
	number(func(o *corpus.Op) *int { return &o.Row }, 0)
	number(func(o *corpus.Op) *int { return &o.Slot }, 0)
	number(func(o *corpus.Op) *int { return &o.Slots }, 1)
	number(func(o *corpus.Op) *int { return &o.Queries }, 1)
	elements(func(o *corpus.Op) *[]int { return &o.LeftPadding })
	elements(func(o *corpus.Op) *[]int { return &o.KeepRows })
	change(op.Window != nil, func(o *corpus.Op) { o.Window = nil })
	change(op.Limit != nil, func(o *corpus.Op) { o.Limit = nil })
	change(op.RightPadded != nil, func(o *corpus.Op) { o.RightPadded = nil })
	change(op.Preserve, func(o *corpus.Op) { o.Preserve = false })
	change(op.Causal, func(o *corpus.Op) { o.Causal = false })
	change(len(op.KeepRows) > 0, func(o *corpus.Op) { o.KeepRows, o.Keep = nil, op.KeepRows[0] })
	for _, p := range []func(*corpus.Op) **int{
		func(o *corpus.Op) **int { return &o.Window }, func(o *corpus.Op) **int { return &o.Limit },
	} {
		if v := *p(&op); v != nil {
			lower(*v, 1, func(n int) {
				o := op
				*p(&o) = &n
				list = append(list, o)
			})
		}
	}
	for e := range op.Rows {
		change(len(op.Rows) > 1, func(o *corpus.Op) { o.Rows = slices.Delete(slices.Clone(op.Rows), e, e+1) })
	}
	for e := range op.Caches {
		change(len(op.Caches) > 1, func(o *corpus.Op) { o.Caches = slices.Delete(slices.Clone(op.Caches), e, e+1) })
	}
	if op.Verb == corpus.Prepare {
		list = append(list, simplerPadding(op)...)
	}
	return list
}

// simplerPadding returns a prepare with less padding, and with fewer columns.
// lengths and right_padding stay of one width.
func simplerPadding(op corpus.Op) (list []corpus.Op) {
	if op.LeftPadding != nil && op.Lengths != nil {
		o := op
		o.LeftPadding = nil
		list = append(list, o)
	}
	if len(op.Lengths) != len(op.RightPadding) {
		return list
	}
	shorter := op
	shorter.Lengths, shorter.RightPadding = slices.Clone(op.Lengths), slices.Clone(op.RightPadding)
	possible := len(op.Lengths) > 0
	for i := range op.Lengths {
		switch {
		case shorter.Lengths[i] > 0:
			shorter.Lengths[i]--
		case shorter.RightPadding[i] > 0:
			shorter.RightPadding[i]--
		default:
			possible = false
		}
		lower(op.RightPadding[i], 0, func(n int) {
			o := op
			o.Lengths, o.RightPadding = slices.Clone(op.Lengths), slices.Clone(op.RightPadding)
			o.Lengths[i] += op.RightPadding[i] - n
			o.RightPadding[i] = n
			list = append(list, o)
		})
	}
	if possible {
		list = append(list, shorter)
	}
	return list
}

// headers makes the header simpler.
func headers(c *corpus.Case, yield func(corpus.Case)) {
	change := func(f func(*corpus.Case)) {
		out := *c
		f(&out)
		yield(out)
	}
	change(func(o *corpus.Case) { o.Quant = nil })
	change(func(o *corpus.Case) { o.Shape.KVHeads = 1 })
	width := plainWidth
	if c.Quant != nil {
		width = c.Quant.GroupSize
		change(func(o *corpus.Case) {
			o.Quant, o.Shape.KeyDim, o.Shape.ValueDim = &corpus.Quant{GroupSize: 32, Bits: c.Quant.Bits}, 32, 32
		})
		change(func(o *corpus.Case) {
			o.Quant = &corpus.Quant{GroupSize: c.Quant.GroupSize, Bits: min(4, c.Quant.Bits)}
		})
	}
	change(func(o *corpus.Case) { o.Shape.KeyDim = width })
	change(func(o *corpus.Case) { o.Shape.ValueDim = width })
	for d := ring.BFloat16; d < c.Shape.DType; d++ {
		change(func(o *corpus.Case) { o.Shape.DType = d })
	}
	change(func(o *corpus.Case) { o.Fill = corpus.Grid })
	change(func(o *corpus.Case) { o.Step = corpus.DefaultStep })
}

// canonical numbers caches, snapshots, files and tokens in the order in which
// they appear.
func canonical(c corpus.Case) corpus.Case {
	names, counts := map[string]string{}, map[string]int{}
	name := func(prefix string, s *string) {
		if *s == "" {
			return
		}
		key := prefix + *s
		if names[key] == "" {
			counts[prefix]++
			names[key] = fmt.Sprintf("%s%d", prefix, counts[prefix])
		}
		*s = names[key]
	}
	ids := map[int]int{}
	c.Ops = slices.Clone(c.Ops)
	for i := range c.Ops {
		op := &c.Ops[i]
		op.Caches, op.Outs = slices.Clone(op.Caches), slices.Clone(op.Outs)
		for _, s := range []*string{&op.Cache, &op.Other, &op.Out} {
			name("c", s)
		}
		for _, list := range [][]string{op.Caches, op.Outs} {
			for k := range list {
				name("c", &list[k])
			}
		}
		name("s", &op.As)
		name("s", &op.From)
		name("f", &op.File)
		op.Tokens = slices.Clone(op.Tokens)
		for r := range op.Tokens {
			op.Tokens[r] = slices.Clone(op.Tokens[r])
			for j, id := range op.Tokens[r] {
				if ids[id] == 0 {
					ids[id] = (len(ids) + 1) * cmp.Compare(id, 0)
				}
				op.Tokens[r][j] = ids[id]
			}
		}
	}
	return c
}
