"""The real mlx-lm as a child process of ringcheck's checker.

Reads one JSON request a line from standard input and answers each with one
JSON line on standard output: protocol 1 of docs/wire.md. It drives
mlx-lm's own cache classes on MLX's CPU device and judges nothing: what a cache
returns, holds, says of itself and raises is reported as it is.

A case is run lazily. Every array that an operation shows is captured as a node
of MLX's graph, right after that operation, and all are evaluated together at
the end. Capturing makes a new array object, because mlx-lm's in-place writes
change the objects that it has handed out before.
"""

import binascii
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import types

import mlx.core as mx

PROTOCOL = 1
MAX_LINE = 64 << 20  # bytes of a request or an answer
STEP = 256  # growth quantum, in columns, of a case that names none


def load_cache_module():
    """Loads mlx_lm.models.cache without the packages' own __init__ modules,
    which import every model's dependencies."""
    for name in ("mlx_lm", "mlx_lm.models"):
        spec = importlib.util.find_spec(name)
        package = types.ModuleType(name)
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules[name] = package
    return importlib.import_module("mlx_lm.models.cache")


mlxlm = load_cache_module()
mx.set_default_device(mx.cpu)

DTYPES = {"bfloat16": mx.bfloat16, "float16": mx.float16, "float32": mx.float32}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()} | {mx.uint32: "uint32"}

KINDS = {
    "kv": mlxlm.KVCache,
    "rotating": mlxlm.RotatingKVCache,
    "batch_kv": mlxlm.BatchKVCache,
    "batch_rotating": mlxlm.BatchRotatingKVCache,
    "quantized": mlxlm.QuantizedKVCache,
    "arrays": mlxlm.ArraysCache,
    "list": mlxlm.CacheList,
    "chunked": mlxlm.ChunkedKVCache,
    "concatenate": mlxlm.ConcatenateKVCache,
}
STEPPED = [cls for cls in KINDS.values() if hasattr(cls, "step")]

# What a kind's state has between offset and size: the name in a case, and the
# attribute. A batch cache that load_prompt_cache made lacks _right_padding or
# _lengths until it is prepared; a state then says null.
FIELDS = {
    mlxlm.KVCache: {},
    mlxlm.RotatingKVCache: {"idx": "_idx"},
    mlxlm.BatchKVCache: {"left_padding": "left_padding", "idx": "_idx", "right_padding": "_right_padding"},
    mlxlm.BatchRotatingKVCache: {
        "left_padding": "left_padding", "idx": "_idx", "total": "_offset", "rotated": "rotated", "ends": "_lengths",
    },
    mlxlm.QuantizedKVCache: {"group_size": "group_size", "bits": "bits"},
    mlxlm.ChunkedKVCache: {"chunk_size": "chunk_size", "start_position": "start_position"},
    mlxlm.ConcatenateKVCache: {},
}


class Fault(Exception):
    """The run could not be done: the request is at fault, or this program."""


class Refused(Exception):
    """mlx-lm refused an operation; the answer to it, not a fault."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Unsupported(Exception):
    """mlx-lm has no such operation or kind."""


def code_of(error):
    """The case format's code for an error that mlx-lm raised."""
    text = str(error)
    if isinstance(error, NotImplementedError):
        return "not_supported"
    if isinstance(error, RuntimeError) and text.startswith("finalize() should be called"):
        return "pending_padding"
    if isinstance(error, ValueError) and text.startswith("Left padding can only be added to an empty"):
        return "left_padding_on_non_empty"
    if isinstance(error, ValueError) and text.endswith("same maximum size"):
        return "max_size"
    return "raises"


def call(cache, method, *args, **kwargs):
    """Calls a method of a cache, or of its class. A method that the class does
    not have is an operation that this kind does not have."""
    cls = cache if isinstance(cache, type) else type(cache)
    if not hasattr(cls, method):
        raise Refused("not_supported", f"{cls.__name__} has no {method}")
    try:
        return attempt(getattr(cache, method), *args, **kwargs)
    except Refused as refusal:
        if cls is mlxlm.CacheList:  # the children before this one have changed
            refusal.code = "raises"
        raise


def attempt(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise Refused(code_of(error), f"{type(error).__name__}: {error}") from error


def token_tables(ids, shape, fill):
    """The keys and the values of token ids, one token a row: [ids, heads, dim]."""
    u32 = lambda numbers: mx.array([n & 0xFFFFFFFF for n in numbers], dtype=mx.uint32)
    heads, dtype = shape["kv_heads"], DTYPES[shape["dtype"]]
    tokens = u32(i * 0x9E3779B1 for i in ids)[:, None, None]
    tables = []
    for plane, dim in enumerate((shape["key_dim"], shape["value_dim"])):
        head = u32((2 * h + plane) * 0x85EBCA6B for h in range(heads))[:, None]
        x = tokens + (head + u32(d * 0xC2B2AE35 for d in range(dim)))
        x = (x ^ (x >> 16)) * u32([0x7FEB352D])
        x = (x ^ (x >> 15)) * u32([0x846CA68B])
        x = x ^ (x >> 16)
        if fill == "grid":
            table = (((x & 0xFF).astype(mx.float32) - 128) / 64).astype(dtype)
        elif dtype.size == 2:
            table = x.astype(mx.uint16).view(dtype)
        else:
            table = x.view(dtype)
        tables.append(table)
    mx.eval(tables)
    return tables


def planes(keys, values):
    """Names the arrays that hold keys and values; a quantized side has three."""
    named = {}
    for name, side in (("keys", keys), ("values", values)):
        if isinstance(side, mx.array):
            named[name] = side
        elif side is not None:
            for part, array in zip(("packed", "scales", "biases"), side):
                named[f"{name}.{part}"] = array
    return named


def held(cache):
    """The arrays that a cache holds, by name; none for a list, whose children
    are caches of their own."""
    if isinstance(cache, mlxlm.CacheList):
        return {}
    if isinstance(cache, mlxlm.ArraysCache):
        return {f"slot.{i}": slot for i, slot in enumerate(cache.cache) if slot is not None}
    return planes(cache.keys, cache.values)


def mask_rows(mask):
    """A mask as one string of 1 and 0 a query, in one list a row."""
    if mask.ndim == 1:
        rows, queries = 1, 1
    elif mask.ndim == 2:
        rows, queries = 1, mask.shape[0]
    else:
        rows, queries = mask.shape[0], mask.shape[2]
    columns = mask.shape[-1]
    text = memoryview(mask).tobytes().translate(bytes(b"01") + bytes(254)).decode()
    query = lambda i: text[i * columns : (i + 1) * columns]
    return [[query(r * queries + q) for q in range(queries)] for r in range(rows)]


class Run:
    """One case: its named caches, and what its operations showed."""

    def __init__(self, case, layout, directory):
        if case.get("semantics", "mlxlm") != "mlxlm":
            raise Fault(f"semantics {case['semantics']!r}: mlx-lm has mlxlm only")
        self.shape = case["shape"]
        self.quant = case.get("quant", {})
        self.ops = case["ops"]
        self.layout = layout
        self.directory = directory
        self.caches = {}
        self.captured = []
        ids = [token for op in self.ops for row in op.get("tokens", ()) for token in row]
        self.tables = token_tables(ids, self.shape, case.get("fill", "grid"))
        self.first = 0  # of the tables' rows: where the operation's tokens start
        for cls in STEPPED:
            cls.step = case.get("step", STEP)

    def steps(self):
        """Runs the operations; returns an observation of each."""
        steps = []
        for op in self.ops:
            try:
                step = self.step(op)
            except Refused as refusal:
                step = self.refused(op, refusal)
            except Unsupported:
                steps.append({"unsupported": op["op"]})
                break
            steps.append(step)
            self.first += sum(map(len, op.get("tokens", ())))
        mx.eval(self.captured)
        return [self.encoded(step) for step in steps]

    def step(self, op):
        verb = VERBS.get(op["op"])
        if verb is None:
            raise Unsupported
        return verb(self, op)

    # What an operation shows.

    def shown(self, cache, **more):
        step = more | {"state": self.state(cache)}
        if self.layout and (arrays := held(cache)):
            step["stored"] = self.capture_planes(arrays)
        return step

    def refused(self, op, refusal):
        step = {"error": refusal.code, "message": str(refusal)}
        if (cache := self.caches.get(op.get("cache"))) is not None:
            try:
                step["state"] = self.state(cache)
            except Exception:  # mlx-lm raised halfway and left what cannot be read
                pass
        return step

    def state(self, cache):
        if isinstance(cache, mlxlm.CacheList):
            own = {"caches": [self.state(child) for child in cache.caches]}
        elif isinstance(cache, mlxlm.ArraysCache):
            own = {"left_padding": cache.left_padding, "lengths": cache.lengths}
        else:
            keys = next(iter(planes(cache.keys, None).values()), None)
            own = {"offset": cache.offset}
            own |= {name: getattr(cache, attribute, None) for name, attribute in FIELDS[type(cache)].items()}
            own["buffer"] = 0 if keys is None else keys.shape[2]
        own = {name: self.capture(value) if isinstance(value, mx.array) else value for name, value in own.items()}
        return own | {"size": cache.size(), "trimmable": cache.is_trimmable()}

    def capture(self, array, bits=None):
        node = array.view(bits or array.dtype)
        self.captured.append(node)
        return node

    def capture_planes(self, arrays):
        # Python's buffers know no bfloat16, so its bits are read.
        return {
            name: (DTYPE_NAMES[a.dtype], self.capture(a, mx.uint16 if a.dtype == mx.bfloat16 else None))
            for name, a in arrays.items()
        }

    def encoded(self, step):
        """An observation with its arrays, evaluated by now, as JSON values."""
        for name in ("returned", "stored"):
            if name in step:
                step[name] = {
                    plane: {
                        "dtype": dtype,
                        "shape": array.shape,
                        "data": binascii.b2a_base64(memoryview(array).tobytes(), newline=False).decode(),
                    }
                    for plane, (dtype, array) in step[name].items()
                }
        if step.get("mask") is not None:
            step["mask"] = mask_rows(step["mask"])
        if "state" in step:
            step["state"] = self.encoded_state(step["state"])
        return step

    def encoded_state(self, state):
        for name, value in state.items():
            if isinstance(value, mx.array):
                state[name] = value.tolist()
            elif name == "caches":
                state[name] = [self.encoded_state(child) for child in value]
        return state

    # What an operation names.

    def cache(self, name):
        if name not in self.caches:  # the operation that makes it was refused
            raise Refused("raises", f"there is no cache {name!r}")
        return self.caches[name]

    def tokens(self, op):
        """The keys and values of an operation's tokens: [rows, heads, columns, dim]."""
        rows, columns = len(op["tokens"]), len(op["tokens"][0]) if op["tokens"] else 0
        if any(len(row) != columns for row in op["tokens"]):
            raise Fault("rows of tokens are of unequal length")
        arrays = []
        for table in self.tables:
            tokens = table[self.first : self.first + rows * columns]
            arrays.append(tokens.reshape(rows, columns, *table.shape[1:]).swapaxes(1, 2))
        return arrays

    def path(self, op):
        """The file of save and load: mlx-lm wants the suffix .safetensors, so a
        name that lacks it gets it."""
        name = op["file"]
        if not self.directory or not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise Fault(f"file {name!r}: want a plain name, and a folder in the request")
        return os.path.join(self.directory, name if name.endswith(".safetensors") else name + ".safetensors")

    # The operations.

    def new(self, op):
        match op["kind"]:
            case "rotating":
                args = [op["max_size"], op.get("keep", 0)]
            case "batch_kv":
                args = [op["left_padding"]]
            case "batch_rotating":
                args = [op["max_size"], op["left_padding"]]
            case "quantized":
                args = [self.quant["group_size"], self.quant["bits"]]
            case "arrays":
                args = [op["slots"], op.get("left_padding")]
            case "chunked":
                args = [op["chunk_size"]]
            case "list":
                args = [self.cache(name) for name in op["caches"]]
            case "kv" | "concatenate":
                args = []
            case _:
                raise Unsupported
        return self.made(op["out"], attempt(KINDS[op["kind"]], *args))

    def made(self, name, cache):
        self.caches[name] = cache
        return self.shown(cache)

    def update(self, op):
        cache = self.cache(op["cache"])
        keys, values = call(cache, "update_and_fetch", *self.tokens(op))
        return self.shown(cache, returned=self.capture_planes(planes(keys, values)))

    def mask(self, op):
        cache = self.cache(op["cache"])
        if isinstance(cache, mlxlm.ArraysCache):
            window = {"window_size": op["window"]} if "window" in op else {}
            mask = call(cache, "make_mask", op["n"], **window)
            if mask is not None:  # [rows, columns]: a row has one query
                mask = mask[:, None, None]
        elif isinstance(cache, (mlxlm.BatchKVCache, mlxlm.BatchRotatingKVCache)):
            mask = call(cache, "make_mask", op["n"], window_size=op.get("window"))
        else:
            mask = call(cache, "make_mask", op["n"], window_size=op.get("window"), return_array=True)
        return {"mask": None if mask is None else self.capture(mask)}

    def prepare(self, op):
        cache = self.cache(op["cache"])
        call(cache, "prepare", **{k: op[k] for k in ("left_padding", "lengths", "right_padding") if k in op})
        return self.shown(cache)

    def finalize(self, op):
        cache = self.cache(op["cache"])
        call(cache, "finalize")
        return self.shown(cache)

    def filter(self, op):
        cache = self.cache(op["cache"])
        call(cache, "filter", op["rows"])
        return self.shown(cache)

    def extend(self, op):
        cache = self.cache(op["cache"])
        call(cache, "extend", self.cache(op["other"]))
        del self.caches[op["other"]]
        return self.shown(cache)

    def merge(self, op):
        caches = [self.cache(name) for name in op["caches"]]
        return self.made(op["out"], call(caches[0], "merge", caches))

    def extract(self, op):
        return self.made(op["out"], call(self.cache(op["cache"]), "extract", op["row"]))

    def trim(self, op):
        cache = self.cache(op["cache"])
        trimmed = call(cache, "trim", op["n"])
        return self.shown(cache, trimmed=trimmed)

    def save(self, op):
        caches = [self.cache(name) for name in op["caches"]]
        attempt(mlxlm.save_prompt_cache, self.path(op), caches)
        return {}

    def load(self, op):
        caches = attempt(mlxlm.load_prompt_cache, self.path(op))
        if len(caches) != len(op["outs"]):
            raise Fault(f"file {op['file']!r} holds {len(caches)} caches, outs names {len(op['outs'])}")
        # MLX reads a file when its arrays are evaluated: now, before it changes.
        mx.eval([array for cache in caches for array in arrays_of(cache)])
        self.caches |= zip(op["outs"], caches)
        if len(caches) == 1:
            return self.shown(caches[0])
        return {"state": {"caches": [self.state(cache) for cache in caches]}}

    def to_quantized(self, op):
        cache = self.cache(op["cache"])
        return self.made(
            op["out"], call(cache, "to_quantized", group_size=self.quant["group_size"], bits=self.quant["bits"])
        )

    def trim_front(self, op):
        cache = self.cache(op["cache"])
        call(cache, "maybe_trim_front")
        return self.shown(cache)

    def write(self, op):
        cache = self.cache(op["cache"])
        call(cache, "__setitem__", op["slot"], self.tokens(op)[op["slot"] % 2])
        return self.shown(cache)

    def advance(self, op):
        cache = self.cache(op["cache"])
        call(cache, "advance", op["n"])
        return self.shown(cache)


VERBS = {
    "new": Run.new,
    "update": Run.update,
    "mask": Run.mask,
    "prepare": Run.prepare,
    "finalize": Run.finalize,
    "filter": Run.filter,
    "extend": Run.extend,
    "merge": Run.merge,
    "extract": Run.extract,
    "trim": Run.trim,
    "save": Run.save,
    "load": Run.load,
    "to_quantized": Run.to_quantized,
    "trim_front": Run.trim_front,
    "write": Run.write,
    "advance": Run.advance,
}


def arrays_of(tree):
    """Every array in a cache's attributes, nested ones included."""
    if isinstance(tree, mx.array):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for child in tree:
            yield from arrays_of(child)
    elif hasattr(tree, "__dict__"):
        yield from arrays_of(list(vars(tree).values()))


def hello(request):
    if request.get("protocol") != PROTOCOL:
        raise Fault(f"protocol {request.get('protocol')!r}: this is {PROTOCOL}")
    return {
        "protocol": PROTOCOL,
        "name": "mlx-lm",
        "version": importlib.metadata.version("mlx-lm"),
        "kinds": list(KINDS),
        "ops": list(VERBS),
        "dtypes": list(DTYPES),
        "semantics": ["mlxlm"],
        "quant": [[group, bits] for group in (32, 64, 128) for bits in (2, 3, 4, 5, 6, 8)],
        "fills": ["grid", "bits"],
        "layout": True,
    }


def run(request):
    steps = Run(request["case"], request.get("layout", False), request.get("dir")).steps()
    return {"seq": request["seq"], "steps": steps}


COMMANDS = {"hello": hello, "run": run, "bye": lambda request: {}}


def answer(line):
    """The answer to one request line, and whether it was the last one."""
    seq = None
    try:
        request = json.loads(line)
        seq = request.get("seq")
        if request.get("cmd") not in COMMANDS:
            raise Fault(f"cmd {request.get('cmd')!r}: want one of {', '.join(COMMANDS)}")
        text = json.dumps(COMMANDS[request["cmd"]](request), separators=(",", ":"))
        if len(text) >= MAX_LINE:
            raise Fault(f"the answer has {len(text)} bytes, a line at most {MAX_LINE}")
        return text, request["cmd"] == "bye"
    except Exception as error:
        message = str(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}"
        return json.dumps({"seq": seq, "fault": {"message": message}}), False


def main():
    while line := sys.stdin.buffer.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            sys.exit(f"a request line is over {MAX_LINE} bytes")
        text, last = answer(line)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        if last:
            return


if __name__ == "__main__":
    main()
