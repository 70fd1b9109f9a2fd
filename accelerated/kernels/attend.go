package kernels

import (
	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/reference/ring"
)

const (
	tile = Warp // columns that a warp takes at once
	wide = 128  // elements of a value that a warp sums

	// multiprocessors is how many a large processor has. A split is not smaller
	// than leastTiles, however few warps each of them would get.
	multiprocessors = 132
	leastTiles      = 4
)

// enoughWarps is what a large processor has room for at once (see ATTEND in
// kernels.h). More would come in a second, shorter wave.
func enoughWarps(how int) int {
	switch how {
	case plainBFloat16, plainFloat16, plainFloat32:
		return 8 * multiprocessors
	}
	return 16 * multiprocessors
}

// Attend begins the work; where the output is memory of the host, it waits for
// it.
func (e *engine) Attend(a *accelerated.Attention) error {
	const call = "attend"
	if err := e.begin(call); err != nil {
		return err
	}
	defer e.end()
	out := Binding{a.Out.Buffer, a.Out.Offset}
	if a.Out.Buffer == nil || a.Out.Offset%4 != 0 {
		temp, err := e.temp(a.Out.Bytes())
		if err != nil {
			return e.fail(call, err)
		}
		out = Binding{temp, 0}
	}
	if err := e.attend(a, out); err != nil {
		return e.fail(call, err)
	}
	if a.Out.Buffer != nil && out.Buffer != a.Out.Buffer {
		v := a.Out
		v.Buffer, v.Offset = out.Buffer, 0
		e.copyTo(a.Out.Buffer, a.Out.Offset, &v)
	}
	if err := e.submit(); err != nil {
		return e.fail(call, err)
	}
	if a.Out.Buffer == nil {
		return e.synced(call, e.backend.Download(a.Out.Host[a.Out.Offset:][:a.Out.Bytes()], out.Buffer, 0))
	}
	return nil
}

// howStored is which of the attenders suits a store.
func howStored(s *accelerated.Store) int {
	plain := map[ring.DType]int{ring.BFloat16: plainBFloat16, ring.Float16: plainFloat16, ring.Float32: plainFloat32}
	switch {
	case s.Quant.Bits == 4 && s.DType == ring.BFloat16:
		return fourBFloat16
	case s.Quant.Bits == 4 && s.DType == ring.Float16:
		return fourFloat16
	case s.Quant.Bits > 0:
		return anyQuantized
	case s.KeyDim%8 == 0 && s.ValueDim%8 == 0:
		return plain[s.DType]
	}
	return anyPlain
}

// attend adds the launches of an attention whose output begins at a binding,
// whose offset here is a multiple of 4.
func (e *engine) attend(a *accelerated.Attention, out Binding) error {
	s, how := a.Store, howStored(a.Store)
	unit := 16
	if how == anyPlain || how == anyQuantized {
		unit = s.DType.Size()
	}
	query, err := e.onDevice(&a.Query, unit)
	if err != nil {
		return err
	}
	rows, n, ratio := query.Shape[0], query.Shape[2], query.Shape[1]/s.Heads
	kernel, atOnce := attenders[how]+"_1", 1
	if ratio*n > 1 {
		kernel, atOnce = attenders[how]+"_4", 4
	}
	g := attendArgs{
		Query: uint64(query.Offset), Out: uint64(out.Offset), Mask: uint64(a.Mask.Offset),
		Heads: uint32(s.Heads), Columns: uint32(s.Columns), From: uint32(a.From), S: uint32(a.S),
		KeyDim: uint32(s.KeyDim), ValueDim: uint32(s.ValueDim), Ratio: uint32(ratio), N: uint32(n),
		DType: uint32(s.DType), Group: uint32(s.Quant.GroupSize), Bits: uint32(s.Quant.Bits), Scale: a.Scale,
	}
	for i := range g.Keys {
		k, v := s.Planes[accelerated.KeyData+i], s.Planes[accelerated.ValueData+i]
		g.Keys[i], g.KeyWidth[i] = uint64(k.Offset), uint32(k.Width)
		g.Values[i], g.ValueWidth[i] = uint64(v.Offset), uint32(v.Width)
		g.Stride[i] = uint64(query.Stride[i])
	}
	if a.Mask.Buffer != nil {
		g.Masked = 1
	}
	chunks, blocks := (ratio*n+atOnce-1)/atOnce, (s.ValueDim+wide-1)/wide
	warps, tiles := rows*s.Heads*chunks*blocks, (a.S+tile-1)/tile
	if warps == 0 {
		return nil
	}
	splits := max(1, min(enoughWarps(how)/warps, tiles/leastTiles))
	each := (tiles + splits - 1) / splits
	splits = (tiles + each - 1) / each
	g.Chunks, g.Blocks, g.Splits, g.Tiles, g.Warps = uint32(chunks), uint32(blocks), uint32(splits), uint32(each), uint32(warps*splits)

	var partial Binding
	if splits > 1 {
		sums := query.Shape[0] * query.Shape[1] * n * splits * s.ValueDim * 4
		temp, err := e.temp(sums + sums/s.ValueDim*2)
		if err != nil {
			return err
		}
		partial.Buffer, g.Totals = temp, uint64(sums)
	}
	to := Binding{out.Buffer, 0}
	buffers := []Binding{{s.Buffer, 0}, {query.Buffer, 0}, {a.Mask.Buffer, 0}, to, partial}
	if splits > 1 && splits <= groupWarps && blocks == 1 {
		g.Joined = 1
		// All warps of a group come to its barrier: there are as many as it has.
		group := splits
		if groupWarps%splits == 0 && int(g.Warps)%groupWarps == 0 {
			group = groupWarps
		}
		launchGroups(e, kernel, g.Warps, group, &g, buffers...)
		return nil
	}
	launch(e, kernel, g.Warps, &g, buffers...)
	if splits > 1 {
		c := combineArgs{
			Out: g.Out, Sums: g.Sums, Totals: g.Totals, Splits: g.Splits, ValueDim: g.ValueDim,
			Warps: uint32(query.Shape[0] * query.Shape[1] * n),
		}
		launch(e, "combine_splits", c.Warps, &c, to, partial)
	}
	return nil
}
