package reference

import "example.com/ringcheck/reference/ring"

// This file is how a caller looks into a cache: upstream's public fields, and
// copies of the buffer, which upstream hands out itself.

// Offset is offset: the position of the next token.
func (c *KVCache) Offset() int { return c.offset }

// Columns is a copy of the whole buffer, its unused tail included; it has no
// planes while no column was written.
func (c *KVCache) Columns() ring.KV { return c.store.clone().KV }

// Offset is offset: the position of the next token.
func (c *QuantizedKVCache) Offset() int { return c.offset }

// Format is group_size and bits.
func (c *QuantizedKVCache) Format() Format { return c.format }

// Columns is a copy of the whole buffer; see [KVCache.Columns].
func (c *QuantizedKVCache) Columns() ring.KV { return c.store.clone().KV }

// Offset is offset: the position of the next token.
func (c *ChunkedKVCache) Offset() int { return c.offset }

// ChunkSize is chunk_size.
func (c *ChunkedKVCache) ChunkSize() int { return c.chunkSize }

// StartPosition is start_position: the position of the first column held.
func (c *ChunkedKVCache) StartPosition() int { return c.startPosition }

// Columns is a copy of the whole buffer; see [KVCache.Columns].
func (c *ChunkedKVCache) Columns() ring.KV { return c.store.clone().KV }

// Offset is offset: the columns held, less what was trimmed.
func (c *ConcatenateKVCache) Offset() int { return c.offset }

// Columns is a copy of the whole buffer; see [KVCache.Columns].
func (c *ConcatenateKVCache) Columns() ring.KV { return c.store.clone().KV }

// Offsets is offset: each row's position of the next token.
func (c *BatchKVCache) Offsets() []int { return append([]int{}, c.offset...) }

// LeftPadding is left_padding: the columns that each row hides at its front.
func (c *BatchKVCache) LeftPadding() []int { return append([]int{}, c.leftPadding...) }

// Idx is _idx: the column of the next write.
func (c *BatchKVCache) Idx() int { return c.idx }

// RightPadding is _right_padding: nil unless some is pending.
func (c *BatchKVCache) RightPadding() []int { return append([]int(nil), c.rightPadding...) }

// Columns is a copy of the whole buffer; see [KVCache.Columns].
func (c *BatchKVCache) Columns() ring.KV { return c.store.clone().KV }

// Semantics is the semantics the ring was made with.
func (c *RotatingKVCache) Semantics() ring.Semantics { return c.semantics }

// Format is how the ring stores its columns; the zero Format is plain.
func (c *RotatingKVCache) Format() Format { return c.format }

// Keep is keep: the number of attention sinks.
func (c *RotatingKVCache) Keep() int { return c.keep }

// Offset is offset: the position of the next token.
func (c *RotatingKVCache) Offset() int { return c.offset }

// Position is the bookkeeping in the form of a batch of one row.
func (c *RotatingKVCache) Position() ring.Position { return c.position() }

// Columns is a copy of the whole buffer; see [KVCache.Columns].
func (c *RotatingKVCache) Columns() ring.KV { return c.store.clone().KV }

// Semantics is the semantics the ring was made with.
func (c *BatchRotatingKVCache) Semantics() ring.Semantics { return c.semantics }

// Format is how the ring stores its columns; the zero Format is plain.
func (c *BatchRotatingKVCache) Format() Format { return c.format }

// Position is a deep copy of the bookkeeping.
func (c *BatchRotatingKVCache) Position() ring.Position { return c.rows.Position() }

// Columns is a copy of the whole buffer; see [KVCache.Columns].
func (c *BatchRotatingKVCache) Columns() ring.KV { return c.store.clone().KV }

// Padding returns copies of left_padding and lengths; nil where there is none.
func (c *ArraysCache) Padding() (left, lengths []int) {
	return append([]int(nil), c.leftPadding...), append([]int(nil), c.lengths...)
}

// BufferColumns is the number of columns that the buffer has, used or not.
func (c *KVCache) BufferColumns() int { return c.store.columns() }

// BufferColumns is the number of columns that the buffer has, used or not.
func (c *QuantizedKVCache) BufferColumns() int { return c.store.columns() }

// BufferColumns is the number of columns that the buffer has, used or not.
func (c *ChunkedKVCache) BufferColumns() int { return c.store.columns() }

// BufferColumns is the number of columns that the buffer has.
func (c *ConcatenateKVCache) BufferColumns() int { return c.store.columns() }

// BufferColumns is the number of columns that the buffer has, used or not.
func (c *BatchKVCache) BufferColumns() int { return c.store.columns() }

// BufferColumns is the number of columns that the buffer has, used or not.
func (c *RotatingKVCache) BufferColumns() int { return c.store.columns() }

// BufferColumns is the number of columns that the buffer has, used or not.
func (c *BatchRotatingKVCache) BufferColumns() int { return c.store.columns() }

// Idx is _idx: the column of the next write.
func (c *RotatingKVCache) Idx() int { return c.idx }
