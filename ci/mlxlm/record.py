"""Records cases from the real mlx-lm.

    record.py FILE...          prints each case again, its wants as mlx-lm answers now
    record.py -diff FILE...    prints each operation whose want mlx-lm answers differently

A case travels as tokens: bytes become ids again by looking up every token that
the case feeds, quantized where the cache is.
"""

import base64
import json
import sys
import tempfile

import mlx.core as mx

import target

LONGEST = 64  # columns of a buffer that a want still lists after update and trim


class Tokens:
    """The tokens of a case, found by their bytes."""

    def __init__(self, case):
        self.ids = sorted({t for op in case["ops"] for row in op.get("tokens", ()) for t in row})
        self.tables = target.token_tables(self.ids, case["shape"], case.get("fill", "grid"))
        self.quant = case.get("quant")
        self.known = {}

    def table(self, plane):
        """What every token holds in one plane: [ids, heads, width]."""
        side, _, part = plane.partition(".")
        if side == "slot":
            return self.tables[int(part) % 2]
        table = self.tables[side == "values"]
        if part:
            table = mx.quantize(table, group_size=self.quant["group_size"], bits=self.quant["bits"])
            table = table[("packed", "scales", "biases").index(part)]
        return table

    def of_bytes(self, planes):
        """Which token's planes, of these names, are these bytes."""
        names = tuple(planes)
        if names not in self.known:
            known = {}
            tables = [self.table(name) for name in names]
            for i, token in enumerate(self.ids):
                data = b"".join(as_bytes(table[i]) for table in tables)
                if data in known:
                    raise ValueError(f"tokens {known[data]} and {token} have the same bytes in {names}")
                known[data] = token
            known[bytes(len(data))] = 0
            self.known[names] = known
        return self.known[names].get(b"".join(planes.values()))

    def of_planes(self, planes):
        """Token ids, one list a row, of planes as the protocol has them; None
        where a column is no token's. Of recurrent state, a row lists its slots up
        to the last that holds anything, 0 for one that holds nothing."""
        planes = {name: columns(plane) for name, plane in planes.items()}
        if all(name.startswith("slot.") for name in planes):
            slots = range(1 + max(int(name[5:]) for name in planes))
            rows = len(next(iter(planes.values())))
            held = lambda n, row: self.of_bytes({f"slot.{n}": planes[f"slot.{n}"][row][0]}) if f"slot.{n}" in planes else 0
            ids = [[held(n, row) for n in slots] for row in range(rows)]
        else:
            ids = [[self.of_bytes(dict(zip(planes, c))) for c in zip(*row)] for row in zip(*planes.values())]
        return None if any(token is None for row in ids for token in row) else ids


def as_bytes(array):
    return memoryview(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array).tobytes()


def columns(plane):
    """The bytes of each column, all heads together, one list a row."""
    b, h, s, d = plane["shape"]
    data = base64.b64decode(plane["data"])
    width = len(data) // max(1, b * h * s)
    head = lambda r, i, c: data[((r * h + i) * s + c) * width :][:width]
    return [[b"".join(head(r, i, c) for i in range(h)) for c in range(s)] for r in range(b)]


def answers(case):
    """What mlx-lm answers to each operation, as a want."""
    tokens = Tokens(case)
    with tempfile.TemporaryDirectory() as directory:
        steps = target.Run(case, True, directory).steps()
    if len(steps) < len(case["ops"]) or "unsupported" in steps[-1]:
        raise ValueError(f"operation {len(steps) - 1}: mlx-lm has no {steps[-1]['unsupported']}")
    for step in steps:
        step.pop("message", None)
        for name in ("returned", "stored"):
            if name in step:
                step[name] = tokens.of_planes(step[name])
    return steps


def record(case):
    """The case, with mlx-lm's answers as its wants."""
    ops = []
    for op, want in zip(case["ops"], answers(case)):
        stored = want.get("stored")
        long = op["op"] in ("update", "trim") and stored and len(stored[0]) > LONGEST
        if stored is None or long:
            want.pop("stored", None)
        if want.get("error") == "raises":
            want.pop("state", None)
        ops.append({k: v for k, v in op.items() if k != "want"} | {"want": want})
    return case | {"ops": ops}


def differences(case):
    """Yields operation number, field, wanted and answered, where the two differ."""
    for i, (op, got) in enumerate(zip(case["ops"], answers(case))):
        for field, want in op.get("want", {}).items():
            if got.get(field) != want:
                yield i, field, want, got.get(field, got.get("error"))


def text(case):
    """A case with one operation a line."""
    dump = lambda value: json.dumps(value, separators=(",", ":"))
    head = ",".join(f"{dump(k)}:{dump(v)}" for k, v in case.items() if k != "ops")
    return "{" + head + ',\n "ops":[\n  ' + ",\n  ".join(map(dump, case["ops"])) + "\n]}"


def main(arguments):
    diff = arguments[:1] == ["-diff"]
    different = 0
    for path in arguments[diff:]:
        with open(path, encoding="utf-8") as file:
            case = json.load(file)
        if not diff:
            print(text(record(case)))
            continue
        for i, field, want, got in differences(case):
            different += 1
            print(f"{path}: ops[{i}] {case['ops'][i]['op']}: {field}: want {json.dumps(want)}, got {json.dumps(got)}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
