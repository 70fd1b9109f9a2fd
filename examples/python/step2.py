"""A port that takes tokens and makes masks. It has a defect."""

import base64
import json
import struct
import sys

HELLO = {
    "protocol": 1,
    "name": "my-port",
    "version": "0.2",
    "kinds": ["rotating"],
    "ops": ["new", "update", "mask"],
    "dtypes": ["bfloat16"],
    "semantics": ["mlxlm"],
    "quant": [],
    "fills": ["grid"],
    "layout": False,
}


class RotatingCache:
    def __init__(self, max_size):
        self.max_size = max_size
        self.offset = 0  # the position of the next token
        self.columns = []

    def update(self, block):
        """Adds tokens; returns the columns that they may attend to."""
        self.columns = (self.columns + block)[-self.max_size :]
        self.offset += len(block)
        return self.columns

    def mask(self, n):
        """One string a query, a character a column: 1 where it may attend."""
        columns = min(self.offset + n, self.max_size)
        return ["".join("1" if j <= columns - n + q else "0" for j in range(columns)) for q in range(n)]

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


def pack(number):
    """A bfloat16 is the upper half of a float32."""
    return struct.pack("<f", number)[2:]


def column(shape, token):
    """A token's column: for keys and values a list of each head's bytes."""
    return [
        [b"".join(pack(element(token, plane, h, d)) for d in range(dim)) for h in range(shape["kv_heads"])]
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
        if op["op"] == "new":
            cache = caches[op["out"]] = RotatingCache(op["max_size"])
            steps.append({"state": cache.state()})
        elif op["op"] == "update":
            cache = caches[op["cache"]]
            returned = cache.update([column(shape, token) for token in op["tokens"][0]])
            steps.append({"returned": planes(shape, returned), "state": cache.state()})
        elif op["op"] == "mask":
            steps.append({"mask": [caches[op["cache"]].mask(op["n"])]})
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
