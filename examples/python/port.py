"""A port of mlx-lm's RotatingKVCache, tested through ringcheck's protocol."""

import base64
import json
import struct
import sys

HELLO = {
    "protocol": 1,
    "name": "my-port",
    "version": "1.0",
    "kinds": ["rotating"],
    "ops": ["new", "update", "mask", "trim"],
    "dtypes": ["float32", "float16", "bfloat16"],
    "semantics": ["mlxlm"],
    "quant": [],
    "fills": ["grid"],
    "layout": False,
}


class RotatingCache:
    def __init__(self, max_size, keep, step):
        self.max_size = max_size
        self.keep = keep  # columns at the front that are never overwritten
        self.step = step  # columns that the buffer grows by
        self.offset = 0  # the position of the next token
        self.idx = 0  # the column of the next write
        self.columns = []

    def update(self, block):
        """Adds tokens; returns the columns that they may attend to."""
        return self.write(block[0]) if len(block) == 1 else self.append(block)

    def append(self, block):
        """A block goes behind at most max_size - 1 older columns."""
        columns = self.ordered()
        self.columns = self.dropped(columns, len(columns) - self.max_size + 1) + block
        self.offset += len(block)
        self.idx = len(self.columns)
        return self.columns

    def write(self, column):
        """One token overwrites the oldest one that is not kept."""
        if self.offset >= len(self.columns) and len(self.columns) < self.max_size:
            self.columns = self.columns + [None] * min(self.step, self.max_size - self.offset)
            self.idx = self.offset
        if len(self.columns) > self.max_size:
            self.columns = self.dropped(self.columns, len(self.columns) - self.max_size)
            self.idx = self.max_size
        if self.idx == self.max_size:
            self.idx = self.keep
        self.columns[self.idx] = column
        self.idx += 1
        self.offset += 1
        return self.columns[: self.offset]

    def ordered(self):
        """The columns in use, the kept ones first, then the oldest."""
        if self.idx == len(self.columns):
            return self.columns
        if self.idx < self.offset:
            return self.columns[: self.keep] + self.columns[self.idx :] + self.columns[self.keep : self.idx]
        return self.columns[: self.idx]

    def dropped(self, columns, n):
        """Columns without the n behind the kept ones."""
        return columns[: self.keep] + columns[self.keep + max(0, n) :]

    def trim(self, n):
        """Takes the last tokens back; returns how many."""
        n = min(n, self.offset)
        self.offset -= n
        self.idx -= n
        return n

    def mask(self, n, window):
        """One string a query, a character a column: 1 where it may attend."""
        if n > 1:
            old = min(self.max_size - 1, self.offset)
            window = window or self.max_size
            return [
                "".join("1" if j <= old + q < j + window else "0" for j in range(old + n))
                for q in range(n)
            ]
        if window is None or self.offset < window or self.max_size <= window:
            return None
        columns = min(self.offset + 1, self.max_size)
        newest = "0" * (columns - window) + "1" * window
        at = columns - ((0 if self.idx >= self.max_size else self.idx) + 1) % columns
        return [newest[at:] + newest[:at]]

    def state(self):
        return {
            "offset": self.offset,
            "size": min(self.offset, self.max_size),
            "trimmable": self.offset < self.max_size,
        }


def element(token, plane, head, d):
    """Element d of a head's key (plane 0) or value (plane 1) of a token."""
    x = (token * 0x9E3779B1 + (2 * head + plane) * 0x85EBCA6B + d * 0xC2B2AE35) & 0xFFFFFFFF
    x = ((x ^ x >> 16) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 0x846CA68B) & 0xFFFFFFFF
    return (((x ^ x >> 16) & 255) - 128) / 64


def pack(dtype, number):
    """The bytes of a number; bfloat16 is the upper half of a float32."""
    if dtype == "bfloat16":
        return struct.pack("<f", number)[2:]
    return struct.pack("<f" if dtype == "float32" else "<e", number)


def column(shape, token):
    """A token's column: for keys and values a list of each head's bytes."""
    return [
        [b"".join(pack(shape["dtype"], element(token, plane, h, d)) for d in range(dim)) for h in range(shape["kv_heads"])]
        for plane, dim in enumerate((shape["key_dim"], shape["value_dim"]))
    ]


def planes(shape, columns):
    """The columns of one sequence as the protocol has them, [1, h, s, d]."""
    answer = {}
    for plane, (name, dim) in enumerate((("keys", shape["key_dim"]), ("values", shape["value_dim"]))):
        data = b"".join(c[plane][h] for h in range(shape["kv_heads"]) for c in columns)
        answer[name] = {
            "dtype": shape["dtype"],
            "shape": [1, shape["kv_heads"], len(columns), dim],
            "data": base64.b64encode(data).decode(),
        }
    return answer


def run(case):
    """Runs the operations of a case; returns an observation of each."""
    caches, steps, shape = {}, [], case["shape"]
    for op in case["ops"]:
        step = {}
        if op["op"] == "new":
            cache = caches[op["out"]] = RotatingCache(op["max_size"], op.get("keep", 0), case.get("step", 256))
        else:
            cache = caches[op["cache"]]
        if op["op"] == "update":
            step["returned"] = planes(shape, cache.update([column(shape, token) for token in op["tokens"][0]]))
        elif op["op"] == "trim":
            step["trimmed"] = cache.trim(op["n"])
        if op["op"] == "mask":
            rows = cache.mask(op["n"], op.get("window"))
            step["mask"] = rows and [rows]
        else:
            step["state"] = cache.state()
        steps.append(step)
    return steps


for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "hello":
        answer = HELLO
    elif request["cmd"] == "run":
        answer = {"seq": request["seq"], "steps": run(request["case"])}
    else:
        answer = {}
    print(json.dumps(answer), flush=True)
    if request["cmd"] == "bye":
        break
