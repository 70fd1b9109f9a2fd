package reference

import "example.com/ringcheck/reference/ring"

// ChunkedKVCache is mlx-lm's ChunkedKVCache: a [KVCache] whose front is cut
// off, when it is told to, so that one chunk of columns remains.
type ChunkedKVCache struct {
	Step int // growth quantum in columns

	store         storage
	chunkSize     int
	offset        int
	startPosition int
}

// NewChunkedKVCache is __init__.
func NewChunkedKVCache(chunkSize int) *ChunkedKVCache {
	return &ChunkedKVCache{Step: defaultStep, chunkSize: chunkSize}
}

// TrimFront is maybe_trim_front: it drops the oldest columns where more than a
// chunk is held, and the unused tail with them (M21).
func (c *ChunkedKVCache) TrimFront() error {
	valid := c.offset - c.startPosition
	if c.store.none() || valid <= c.chunkSize {
		return nil
	}
	c.store = c.store.cut(valid-c.chunkSize, valid)
	c.startPosition += valid - c.chunkSize
	return nil
}

// Update is update_and_fetch: keys [b h s d] and values [b h s d'] are written
// behind the columns held; it returns all of them.
func (c *ChunkedKVCache) Update(keys, values ring.Array) (ring.KV, error) {
	const op = "update"
	if err := checkUpdate(op, ring.MLXLM, c.store, Format{}, -1, keys, values); err != nil {
		return ring.KV{}, err
	}
	columns, _ := Format{}.encode(keys, values)
	s, err := steppedUpdate(op, c.store, columns, columns, c.offset-c.startPosition, c.Step)
	if err != nil {
		return ring.KV{}, err
	}
	c.store = s
	c.offset += keys.Columns()
	return c.KeysAndValues(), nil
}

// KeysAndValues is keys_and_values: the columns held.
func (c *ChunkedKVCache) KeysAndValues() ring.KV {
	return c.store.cut(0, c.offset-c.startPosition).KV
}

// Size is size: always 0, upstream having not defined it here.
func (c *ChunkedKVCache) Size() int { return 0 }

// Trimmable is is_trimmable: always true.
func (c *ChunkedKVCache) Trimmable() bool { return true }

// Trim is trim: it takes back the last n tokens, or all that are held.
func (c *ChunkedKVCache) Trim(n int) (int, error) {
	n = min(c.offset-c.startPosition, n)
	c.offset -= n
	return n, nil
}

// Empty is empty: whether no column was ever written.
func (c *ChunkedKVCache) Empty() bool { return c.store.none() }

// NBytes is nbytes: the bytes of the whole buffer.
func (c *ChunkedKVCache) NBytes() (int, error) { return c.store.nbytes(), nil }
