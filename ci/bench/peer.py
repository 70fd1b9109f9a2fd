"""The real mlx-lm as the peer of `ringcheck bench`.

One JSON object a line, in and out. On start it says who it is:

    {"peer": "mlx-lm 0.32.2 on MLX 0.32.4, CPU"}

then it answers requests, in order:

    {"setup": {"kind": "decode", "rows": 8, …}}  {"ready": true}
    {"run": 20}                                  {"seconds": 0.0041, "bytes": 33554432}

A setup replaces the one before it. A run does the work so many times, and answers
with the time that this took, evaluation included and preparation not, and with
the nbytes of the cache. What cannot be done is answered by {"error": "…"}.
"""

import importlib
import importlib.metadata
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mlxlm"))

import target  # loads mlx-lm's cache module alone, and chooses the CPU

mx, cache = target.mx, target.mlxlm
base = importlib.import_module("mlx_lm.models.base")


class Work:
    """What is timed is step, which returns what is to be evaluated. Before every
    budget-th step, reset prepares the ground; without a budget, never."""

    budget = 0

    def __init__(self, rows, heads, query_heads, key_dim, value_dim, window, block, bits, group):
        self.rows, self.heads, self.query_heads, self.dims = rows, heads, query_heads, (key_dim, value_dim)
        self.window, self.block, self.bits, self.group = window, block, bits, group
        self.prepare()

    def prepare(self):
        raise NotImplementedError

    def reset(self):
        pass

    def nbytes(self):
        return 0

    def tokens(self, n, rows=None):
        kv = [mx.random.normal((rows or self.rows, self.heads, n, dim)).astype(mx.bfloat16) for dim in self.dims]
        mx.eval(kv)
        return kv

    def full(self, left_padding=None):
        """A batch whose window is full and has begun to wrap."""
        ring = cache.BatchRotatingKVCache(self.window, left_padding or [0] * self.rows)
        return self.filled(ring, self.rows)

    def filled(self, ring, rows):
        ring.update_and_fetch(*self.tokens(self.window, rows))
        mx.eval(ring.update_and_fetch(*self.tokens(1, rows)))
        return ring


class Decode(Work):
    def prepare(self):
        self.ring, self.new = self.full(), self.tokens(1)

    def step(self):
        mask = self.ring.make_mask(1)
        return mask, self.ring.update_and_fetch(*self.new)

    def nbytes(self):
        return self.ring.nbytes


class DecodePadded(Decode):
    """Padding is still in the window, so that each step's mask differs."""

    def prepare(self):
        self.budget = self.window // 2 - 1
        self.ring = self.full([self.window // 2 * (i + 1) // self.rows for i in range(self.rows)])
        self.new, self.saved = self.tokens(1), copied(self.ring.state)

    def reset(self):
        self.ring.state = copied(self.saved)


class Block(Decode):
    def prepare(self):
        self.ring, self.new = self.full(), self.tokens(self.block)

    def step(self):
        mask = self.ring.make_mask(self.block)
        return mask, self.ring.update_and_fetch(*self.new)


class Merge(Work):
    def prepare(self):
        self.rings = [self.filled(cache.RotatingKVCache(self.window), 1) for _ in range(self.rows)]

    def step(self):
        self.merged = cache.BatchRotatingKVCache.merge(self.rings)
        return arrays(self.merged)

    def nbytes(self):
        return self.merged.nbytes


class Extract(Work):
    def prepare(self):
        self.ring, self.row = self.full(), 0

    def step(self):
        self.row = (self.row + 1) % self.rows
        self.extracted = self.ring.extract(self.row)
        return self.extracted.keys, self.extracted.values

    def nbytes(self):
        return self.extracted.nbytes


class Filter(Work):
    budget = 1

    def prepare(self):
        self.ring = self.full()
        self.saved = self.ring.state
        self.keep = [0, *range(2, self.rows - 1)]

    def reset(self):
        self.ring.state = self.saved  # a filter makes new arrays

    def step(self):
        self.ring.filter(self.keep)
        return arrays(self.ring)

    def nbytes(self):
        return self.ring.nbytes


class Finalize(Filter):
    """Row i ends with i columns of padding."""

    def prepare(self):
        self.ring = self.full()
        padding = [i % self.block for i in range(self.rows)]
        self.ring.prepare(lengths=[self.block - p for p in padding], right_padding=padding)
        self.ends = self.ring._lengths
        mx.eval(self.ends, self.ring.update_and_fetch(*self.tokens(self.block)), arrays(self.ring))
        self.saved = copied(self.ring.state)

    def reset(self):
        self.ring.state = copied(self.saved)
        self.ring._lengths = self.ends

    def step(self):
        self.ring.finalize()
        return arrays(self.ring)


class Rollback(Finalize):
    """mlx-lm's way to take back what a row has rejected: say afterwards where the
    row ends, and finalize."""

    def prepare(self):
        self.ring = self.full()
        self.ends = self.ring.offset + mx.array([1 + i % self.block for i in range(self.rows)])
        mx.eval(self.ends, self.ring.update_and_fetch(*self.tokens(self.block)), arrays(self.ring))
        self.saved = copied(self.ring.state)


class Quantize(Work):
    def prepare(self):
        self.new = self.tokens(self.window)

    def step(self):
        return [mx.quantize(x, group_size=self.group, bits=self.bits) for x in self.new]


class QuantizingDecode(Work):
    """mlx-lm has no quantized ring. Nearest is its quantized cache, held at the
    window's length, under the mask of a ring that is as full."""

    def prepare(self):
        self.ring, self.new = self.full(), self.tokens(1)
        self.ring.keys = self.ring.values = None  # a mask needs none
        self.quantized = cache.QuantizedKVCache(self.group, self.bits)
        mx.eval(self.quantized.update_and_fetch(*self.tokens(self.window)))

    def step(self):
        self.quantized.trim(1)
        mask = self.ring.make_mask(1)
        return mask, self.quantized.update_and_fetch(*self.new)

    def nbytes(self):
        return self.quantized.nbytes


class Attend(Work):
    budget = 1

    def prepare(self):
        ring = self.full()
        self.mask = ring.make_mask(1)
        self.keys, self.values = ring.update_and_fetch(*self.tokens(1))
        if self.bits:
            quantized = cache.QuantizedKVCache(self.group, self.bits)
            self.keys, self.values = quantized.update_and_fetch(self.keys, self.values)
        self.held = quantized.nbytes if self.bits else ring.nbytes
        self.queries = mx.random.normal((self.rows, self.query_heads, 1, self.dims[0])).astype(mx.bfloat16)
        mx.eval(self.mask, self.keys, self.values, self.queries)

    def reset(self):
        self.query = self.queries + 0  # mlx-lm scales a quantized cache's queries in place
        mx.eval(self.query)

    def step(self):
        scale = self.dims[0] ** -0.5
        if self.bits:
            return base.quantized_scaled_dot_product_attention(
                self.query, self.keys, self.values, scale=scale, mask=self.mask, group_size=self.group, bits=self.bits)
        return mx.fast.scaled_dot_product_attention(self.query, self.keys, self.values, scale=scale, mask=self.mask)

    def nbytes(self):
        return self.held


KINDS = {
    "decode": Decode, "decode_padded": DecodePadded, "block": Block, "block_unseen": Block, "merge": Merge, "extract": Extract,
    "filter": Filter, "finalize": Finalize, "rollback": Rollback, "quantize": Quantize,
    "quantizing_decode": QuantizingDecode, "attend": Attend,
}


def arrays(ring):
    return ring.keys, ring.values, ring.offset, ring.left_padding


def copied(state):
    """mlx-lm changes some arrays of a state in place."""
    state = tuple(x + 0 if isinstance(x, mx.array) else x for x in state)
    mx.eval([x for x in state if isinstance(x, mx.array)])
    return state


def run(work, times):
    taken, since = 0.0, work.budget
    for _ in range(times):
        if work.budget and since >= work.budget:
            work.reset()
            since = 0
        begin = time.perf_counter()
        mx.eval(work.step())
        taken += time.perf_counter() - begin
        since += 1
    return {"seconds": taken, "bytes": work.nbytes()}


def main():
    def answer(message):
        print(json.dumps(message), flush=True)

    versions = {name: importlib.metadata.version(name) for name in ("mlx-lm", "mlx")}
    answer({"peer": f"mlx-lm {versions['mlx-lm']} on MLX {versions['mlx']}, CPU"})
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "setup" in request:
                work = None  # gives its memory back first
                mx.clear_cache()
                shape = request["setup"]
                work = KINDS[shape.pop("kind")](**shape)
                answer({"ready": True})
            else:
                answer(run(work, request["run"]))
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
