package reference

import "example.com/ringcheck/reference/ring"

// ConcatenateKVCache is mlx-lm's ConcatenateKVCache: the buffer is the columns
// written, joined at each update.
type ConcatenateKVCache struct {
	store  storage
	offset int
}

// NewConcatenateKVCache is __init__.
func NewConcatenateKVCache() *ConcatenateKVCache { return &ConcatenateKVCache{} }

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] are joined
// to the columns held; it returns all of them.
func (c *ConcatenateKVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	if err := checkUpdate(op, ring.MLXLM, c.store, Format{}, -1, keys, values); err != nil {
		return ring.KV{}, err
	}
	s, _ := Format{}.encode(keys, values)
	if c.store.none() {
		s = s.clone()
	} else {
		var err error
		if s, err = c.store.concatenate(op, s); err != nil {
			return ring.KV{}, err
		}
	}
	c.store = s
	c.offset = s.columns()
	return c.KeysAndValues(), nil
}

// KeysAndValues is keys_and_values: the whole buffer, after a trim too (M30).
func (c *ConcatenateKVCache) KeysAndValues() ring.KV { return c.store.clone().KV }

// Size is size: always 0, upstream having not defined it here.
func (c *ConcatenateKVCache) Size() int { return 0 }

// Trimmable is is_trimmable: always true.
func (c *ConcatenateKVCache) Trimmable() bool { return true }

// Trim is trim: it lowers offset and leaves the columns, which the next update
// returns again (M30).
func (c *ConcatenateKVCache) Trim(n int) (int, error) {
	n = min(c.offset, n)
	c.offset -= n
	return n, nil
}

// Mask is make_mask with return_array; nil for one column without a window.
func (c *ConcatenateKVCache) Mask(n int, window *int) (*ring.Mask, error) {
	return attentionMask(n, c.offset, window), nil
}

// Empty is empty: whether no column was ever written.
func (c *ConcatenateKVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes: the bytes of the buffer.
func (c *ConcatenateKVCache) NBytes() (int, error) { return c.store.nbytes(), nil }
