package reference

import "example.com/ringcheck/reference/ring"

// KVCache is mlx-lm's KVCache: the columns of one sequence, without a window.
// The buffer grows by whole steps; what lies behind offset is zeros or stale.
type KVCache struct {
	Step int // growth quantum in columns

	store  storage
	offset int
}

// NewKVCache is __init__.
func NewKVCache() *KVCache { return &KVCache{Step: defaultStep} }

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] are written
// behind the columns held; it returns all of them.
func (c *KVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	if err := checkUpdate(op, ring.MLXLM, c.store, Format{}, -1, keys, values); err != nil {
		return ring.KV{}, err
	}
	columns, _ := Format{}.encode(keys, values)
	s, err := steppedUpdate(op, c.store, columns, columns, c.offset, c.Step)
	if err != nil {
		return ring.KV{}, err
	}
	c.store = s
	c.offset += keys.Columns()
	return c.KeysAndValues(), nil
}

// steppedUpdate writes columns at prev into a buffer that grows by whole
// steps; like gives a new buffer's shape.
func steppedUpdate(op string, s, like, columns storage, prev, step int) (storage, error) {
	n := columns.columns()
	if s.none() || prev+n > s.columns() {
		var err error
		if s, err = s.stepped(op, like, prev, n, step); err != nil {
			return storage{}, err
		}
	}
	return s, s.write(op, prev, prev+n, columns)
}

// KeysAndValues is keys_and_values: the columns up to offset.
func (c *KVCache) KeysAndValues() ring.KV {
	if c.offset < c.store.columns() {
		return c.store.cut(0, c.offset).KV
	}
	return c.store.clone().KV
}

// Size is size: the offset.
func (c *KVCache) Size() int { return c.offset }

// Trimmable is is_trimmable: always true.
func (c *KVCache) Trimmable() bool { return true }

// Trim is trim: it takes back the last min(offset, n) tokens and returns their
// number. A negative n moves offset past the data (M33).
func (c *KVCache) Trim(n int) (int, error) {
	n = min(c.offset, n)
	c.offset -= n
	return n, nil
}

// ToQuantized is to_quantized: the whole buffer is quantized, so that its
// unused tail becomes quantized zeros and not zero bytes.
func (c *KVCache) ToQuantized(f Format) (*QuantizedKVCache, error) {
	out, err := NewQuantizedKVCache(f)
	if err != nil {
		return nil, err
	}
	out.Step, out.offset = c.Step, c.offset
	if !c.store.none() {
		if out.store, err = f.encode(c.store.Keys[0], c.store.Values[0]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Mask is make_mask with return_array; nil for one column without a window.
func (c *KVCache) Mask(n int, window *int) (*ring.Mask, error) {
	return attentionMask(n, c.offset, window), nil
}

// Empty is empty: whether no column was ever written.
func (c *KVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes: the bytes of the whole buffer.
func (c *KVCache) NBytes() (int, error) { return c.store.nbytes(), nil }
