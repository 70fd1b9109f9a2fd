package cpu

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPoolReuse: what was freed is what the next request of that size gets,
// also where a size fills huge pages badly, and also in a pool that is full of
// buffers of other sizes.
func TestPoolReuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pool
		defer p.empty()
		take := func(size int) *Buffer {
			b, err := p.take(size)
			if err != nil {
				t.Fatal(err)
			}
			if b.Size() != size || b.capacity() < size {
				t.Fatalf("%d bytes: size %d, capacity %d", size, b.Size(), b.capacity())
			}
			return b
		}
		size := rapid.OneOf(
			rapid.IntRange(1, 3*hugePage),
			rapid.Map(rapid.IntRange(1, 3), func(n int) int { return n * hugePage }),
		).Draw(t, "size")
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			p.give(take(rapid.IntRange(keepFree/2, keepFree).Draw(t, "other")))
		}
		b := take(size)
		p.give(b)
		limit := max(keepFree, p.peak)
		if p.stats.PoolBytes > limit || p.stats.Live != 0 || p.stats.LiveBytes != 0 {
			t.Fatalf("the pool holds %+v, the limit is %d", p.stats, limit)
		}
		if again := take(size); again != b {
			t.Fatalf("%d bytes: another buffer, of %d bytes, after one of %d was freed", size, again.capacity(), b.capacity())
		}
	})
}
