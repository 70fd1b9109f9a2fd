package reference

import "example.com/ringcheck/reference/ring"

// QuantizedKVCache is mlx-lm's QuantizedKVCache: a [KVCache] whose columns are
// quantized as they are written.
type QuantizedKVCache struct {
	Step int // growth quantum in columns

	store  storage
	format Format
	offset int
}

// NewQuantizedKVCache is __init__.
func NewQuantizedKVCache(f Format) (*QuantizedKVCache, error) {
	if err := f.check("new"); err != nil {
		return nil, err
	}
	return &QuantizedKVCache{Step: defaultStep, format: f}, nil
}

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] are
// quantized and written behind the columns held; it returns all of them.
//
// Upstream allocates dim / (32 / bits) words for a packed column, both
// divisions rounded down, where dim * bits / 32 are needed: for the widths
// where the two differ the first update raises (Q31).
func (c *QuantizedKVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	if err := checkUpdate(op, ring.MLXLM, c.store, c.format, -1, keys, values); err != nil {
		return ring.KV{}, err
	}
	columns, err := c.format.encode(keys, values)
	if err != nil {
		return ring.KV{}, err
	}
	like := columns
	like.Keys = c.format.upstreamWidth(columns.Keys, keys.Shape[3])
	like.Values = c.format.upstreamWidth(columns.Values, values.Shape[3])
	s, err := steppedUpdate(op, c.store, like, columns, c.offset, c.Step)
	if err != nil {
		return ring.KV{}, err
	}
	c.store = s
	c.offset += keys.Columns()
	return c.KeysAndValues(), nil
}

// upstreamWidth returns planes without columns whose packed width is the one
// that upstream allocates for heads of width dim.
func (f Format) upstreamWidth(p ring.Planes, dim int) ring.Planes {
	packed := zeros(ring.Uint32, p[0].Shape[0], p[0].Shape[1], 0, dim/(32/f.Bits))
	return ring.Planes{packed, p[1], p[2]}
}

// KeysAndValues is keys_and_values: the columns up to offset.
func (c *QuantizedKVCache) KeysAndValues() ring.KV {
	if c.offset == c.store.columns() {
		return c.store.clone().KV
	}
	return c.store.cut(0, c.offset).KV
}

// Size is size: always 0, upstream having not defined it here (Q15).
func (c *QuantizedKVCache) Size() int { return 0 }

// Trimmable is is_trimmable: always true.
func (c *QuantizedKVCache) Trimmable() bool { return true }

// Trim is trim: it takes back the last min(offset, n) tokens.
func (c *QuantizedKVCache) Trim(n int) (int, error) {
	n = min(c.offset, n)
	c.offset -= n
	return n, nil
}

// Mask is make_mask with return_array; nil for one column without a window.
func (c *QuantizedKVCache) Mask(n int, window *int) (*ring.Mask, error) {
	return attentionMask(n, c.offset, window), nil
}

// Empty is empty: whether no column was ever written.
func (c *QuantizedKVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes. Upstream raises while the cache is empty (Q13).
func (c *QuantizedKVCache) NBytes() (int, error) {
	if c.store.none() {
		return 0, &ring.RaisesError{Op: "nbytes", Why: "the cache is empty"}
	}
	return c.store.nbytes(), nil
}
