"""Makes the *.safetensors files of this folder with the real mlx-lm:

    ci/mlxlm/.venv/bin/python reference/promptfile/testdata/make.py [folder]

The caches are those of examples in promptfile_test.go, which must stay in step.
Array k of a file holds 100 k, 100 k + 1, ... in its data type.
"""

import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[2] / "ci" / "mlxlm"))

from target import mlxlm as c, mx  # noqa: E402  loads mlx_lm's caches alone

folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here


class Arrays:
    def __init__(self, k):
        self.k = k - 1

    def __call__(self, *shape, dtype=mx.bfloat16):
        self.k += 1
        return (mx.arange(mx.zeros(shape).size).reshape(shape) + self.k * 100.0).astype(dtype)

    def update(self, cache, rows, heads, columns, dim, value_dim=None, dtype=mx.bfloat16):
        keys = self(rows, heads, columns, dim, dtype=dtype)
        cache.update_and_fetch(keys, self(rows, heads, columns, value_dim or dim, dtype=dtype))
        return cache


def stepped(cache, step):
    cache.step = step
    return cache


def save(name, *caches, metadata=None):
    c.save_prompt_cache(str(folder / f"{name}.safetensors"), list(caches), metadata)


save("kv", Arrays(1).update(stepped(c.KVCache(), 4), 1, 2, 3, 4, 2))
save("kv-empty", c.KVCache())
a, ring = Arrays(3), c.RotatingKVCache(4, keep=1)
for columns in (3, 1, 1):
    a.update(ring, 1, 1, columns, 4)
save("rotating", ring)
save("rotating-empty", c.RotatingKVCache(4))
batch = Arrays(9).update(stepped(c.BatchKVCache([0, 1]), 4), 2, 1, 3, 4)
save("batch_kv", batch)
save("batch_kv-empty", c.BatchKVCache([0, 1]))
batch.prepare(lengths=[1, 0], right_padding=[0, 1])
save("batch_kv-pending", batch)
a, ring = Arrays(11), c.BatchRotatingKVCache(4, [0, 1])
save("batch_rotating", a.update(ring, 2, 1, 3, 4))
a.update(ring, 2, 1, 1, 4)
save("batch_rotating-rotated", a.update(ring, 2, 1, 1, 4))
save("batch_rotating-empty", c.BatchRotatingKVCache(4, [0, 1]))
save("quantized", Arrays(17).update(stepped(c.QuantizedKVCache(32, 4), 4), 1, 1, 3, 32, 64))
save("quantized-empty", c.QuantizedKVCache(32, 4))
a, slots = Arrays(19), c.ArraysCache(2)
slots[0], slots[1] = a(2, 1, 1, 4), a(2, 1, 1, 3, dtype=mx.float32)
save("arrays", slots)
slots = c.ArraysCache(2, [0, 1])
slots[0] = Arrays(21)(2, 1, 1, 4)
slots.prepare(lengths=[3, 2])
save("arrays-partial", slots)
save("arrays-empty", c.ArraysCache(2))
save("arrays-noslots", c.ArraysCache(0))
chunked = Arrays(22).update(stepped(c.ChunkedKVCache(2), 4), 1, 1, 3, 4)
chunked.maybe_trim_front()
save("chunked", chunked)
save("chunked-empty", c.ChunkedKVCache(2))
joined = Arrays(24).update(c.ConcatenateKVCache(), 1, 1, 2, 4)
joined.trim(1)
save("concatenate", joined)
save("concatenate-empty", c.ConcatenateKVCache())
kv = Arrays(26).update(stepped(c.KVCache(), 2), 1, 1, 2, 4)
save("list", c.CacheList(kv, c.ArraysCache(1), c.RotatingKVCache(4)))
save("list-nested", c.CacheList(c.CacheList(kv)))
save("list-empty", c.CacheList())
save("list-one", c.CacheList(kv))
save("two", kv, c.RotatingKVCache(4), metadata={"model": "m", "n": "1"})
save("eleven", *[c.KVCache() for _ in range(11)])
save("none")
for k, dtype in ((28, mx.float16), (30, mx.float32)):
    cache = Arrays(k).update(stepped(c.KVCache(), 2), 1, 1, 2, 4, dtype=dtype)
    save(f"kv-f{8 * dtype.size}", cache)
save("rotating-zero-columns", Arrays(32).update(c.RotatingKVCache(4), 1, 1, 0, 4))
batch = Arrays(34).update(c.BatchRotatingKVCache(4, [0, 0, 0]), 3, 1, 2, 4)
save("rotating-extracted", batch.extract(1))
