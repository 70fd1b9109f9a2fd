"""Tests of the mlx-lm target: ci/mlxlm/.venv/bin/python ci/mlxlm/test_target.py"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import record
import target

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE.parent.parent / "corpus" / "cases" / "mlx-lm"

SHAPE = {"kv_heads": 1, "key_dim": 4, "value_dim": 4, "dtype": "float32"}


def case(*ops, **more):
    return {"shape": SHAPE, "ops": list(ops)} | more


def new(out, kind, **more):
    return {"op": "new", "out": out, "kind": kind} | more


def update(cache, *rows):
    return {"op": "update", "cache": cache, "tokens": list(rows)}


def run(*ops, **more):
    """What mlx-lm answers, in token ids."""
    return record.answers(case(*ops, **more))


class Protocol(unittest.TestCase):
    def converse(self, *lines):
        child = subprocess.run(
            [sys.executable, HERE / "target.py"],
            input="".join(line + "\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(child.returncode, 0, child.stderr)
        return [json.loads(line) for line in child.stdout.splitlines()]

    def test_hello_run_bye(self):
        request = {"cmd": "run", "seq": 7, "case": case(new("k", "kv"), update("k", [1, 2])), "layout": True}
        hello, ran, bye = self.converse(
            '{"cmd":"hello","protocol":1}', json.dumps(request), '{"cmd":"bye"}', '{"cmd":"hello","protocol":1}'
        )
        self.assertEqual(hello["name"], "mlx-lm")
        self.assertEqual(hello["version"], "0.32.2")
        self.assertEqual(hello["kinds"], list(target.KINDS))
        self.assertIn([64, 4], hello["quant"])
        self.assertTrue(hello["layout"])
        self.assertEqual(ran["seq"], 7)
        self.assertEqual(ran["steps"][0]["state"]["buffer"], 0)
        self.assertEqual(ran["steps"][1]["returned"]["keys"]["shape"], [1, 1, 2, 4])
        self.assertEqual(ran["steps"][1]["stored"]["values"]["shape"], [1, 1, 256, 4])
        self.assertEqual(bye, {})

    def test_faults(self):
        new_kv = new("k", "kv")
        requests = [
            "garbage",
            "[]",
            '{"cmd":"dance","seq":1}',
            '{"cmd":"hello","protocol":2}',
            '{"cmd":"run","seq":2}',
            json.dumps({"cmd": "run", "seq": 4, "case": case(new_kv, update("k", [1], [2, 3]))}),
            json.dumps({"cmd": "run", "seq": 5, "case": case(new_kv, semantics="exact")}),
            json.dumps({"cmd": "run", "seq": 6, "case": case(new_kv)}),
        ]
        *faults, last = self.converse(*requests)
        for request, answer in zip(requests, faults, strict=False):
            self.assertTrue(answer["fault"]["message"], request)
        self.assertEqual([a["seq"] for a in faults], [None, None, 1, None, 2, 4, 5])
        self.assertEqual(len(last["steps"]), 1)

    def test_a_cache_that_was_not_made(self):
        step = target.Run(case(update("nobody", [1])), False, None).steps()[0]
        self.assertEqual(step["error"], "raises")
        self.assertIn("nobody", step["message"])

    def test_unsupported_ends_the_answer(self):
        for op in ({"op": "rollback", "cache": "k", "keep": 1}, new("r", "rotating_quantized", max_size=4)):
            steps = target.Run(case(new("k", "kv"), op, update("k", [1])), False, None).steps()
            self.assertEqual(steps[1:], [{"unsupported": op["op"]}])

    def test_stored_only_for_layout(self):
        steps = target.Run(case(new("k", "kv"), update("k", [1])), False, None).steps()
        self.assertNotIn("stored", steps[1])
        self.assertIn("returned", steps[1])


class Tokens(unittest.TestCase):
    def expected(self, token, head, plane, d):
        mask = 0xFFFFFFFF
        x = (token * 0x9E3779B1 + (2 * head + plane) * 0x85EBCA6B + d * 0xC2B2AE35) & mask
        x ^= x >> 16
        x = x * 0x7FEB352D & mask
        x ^= x >> 15
        x = x * 0x846CA68B & mask
        return x ^ x >> 16

    def test_bytes(self):
        ids = [1, 2, -7, 1_000_003]
        for dtype, size in (("bfloat16", 2), ("float16", 2), ("float32", 4)):
            shape = {"kv_heads": 3, "key_dim": 5, "value_dim": 2, "dtype": dtype}
            for fill in ("grid", "bits"):
                for plane, table in enumerate(target.token_tables(ids, shape, fill)):
                    got = record.as_bytes(table)
                    width = (5, 2)[plane]
                    want = b""
                    for token in ids:
                        for head in range(3):
                            for d in range(width):
                                x = self.expected(token, head, plane, d)
                                value = ((x & 0xFF) - 128) / 64
                                if fill == "bits":
                                    want += (x & (1 << 8 * size) - 1).to_bytes(size, "little")
                                elif dtype == "bfloat16":
                                    want += struct.pack("<f", value)[2:]
                                else:
                                    want += struct.pack("<e" if size == 2 else "<f", value)
                    self.assertEqual(got, want, (dtype, fill, plane))


class Kinds(unittest.TestCase):
    def test_kv(self):
        steps = run(new("k", "kv"), update("k", [1, 2, 3]), {"op": "trim", "cache": "k", "n": 1}, step=2)
        self.assertEqual(steps[0], {"state": {"offset": 0, "buffer": 0, "size": 0, "trimmable": True}})
        self.assertEqual(steps[1]["returned"], [[1, 2, 3]])
        self.assertEqual(steps[1]["stored"], [[1, 2, 3, 0]])
        self.assertEqual(steps[2]["trimmed"], 1)
        self.assertEqual(steps[2]["state"]["offset"], 2)

    def test_step_is_the_case_s(self):
        self.assertEqual(run(new("k", "kv"), update("k", [1]), step=3)[1]["state"]["buffer"], 3)
        self.assertEqual(run(new("k", "kv"), update("k", [1]))[1]["state"]["buffer"], 256)

    def test_rotating_keeps_sinks(self):
        steps = run(
            new("r", "rotating", max_size=4, keep=1),
            update("r", [1, 2, 3, 4]),
            update("r", [5]),
            {"op": "mask", "cache": "r", "n": 1},
            {"op": "mask", "cache": "r", "n": 1, "window": 2},
            {"op": "mask", "cache": "r", "n": 2},
        )
        self.assertEqual(steps[2]["stored"], [[1, 5, 3, 4]])
        self.assertEqual(steps[2]["state"], {"offset": 5, "idx": 2, "buffer": 4, "size": 4, "trimmable": False})
        self.assertEqual(steps[3], {"mask": None})
        self.assertEqual(steps[4], {"mask": [["0110"]]})
        self.assertEqual(steps[5], {"mask": [["11110", "01111"]]})

    def test_what_was_shown_stays(self):
        # The buffer that the block returned is the one that the decode writes to.
        steps = run(new("r", "rotating", max_size=4), update("r", [1, 2, 3, 4]), update("r", [5]))
        self.assertEqual(steps[1]["returned"], [[1, 2, 3, 4]])
        self.assertEqual(steps[1]["stored"], [[1, 2, 3, 4]])
        self.assertEqual(steps[2]["returned"], [[5, 2, 3, 4]])

    def test_batch_kv(self):
        steps = run(
            new("b", "batch_kv", left_padding=[0, 0]),
            {"op": "prepare", "cache": "b", "lengths": [2, 1], "right_padding": [0, 1]},
            update("b", [1, 2], [3, -4]),
            {"op": "finalize", "cache": "b"},
            {"op": "mask", "cache": "b", "n": 1},
            step=2,
        )
        self.assertEqual(steps[1]["state"]["right_padding"], [0, 1])
        self.assertEqual(steps[3]["stored"], [[1, 2], [-4, 3]])
        self.assertEqual(
            steps[3]["state"],
            {
                "offset": [2, 1], "left_padding": [0, 1], "idx": 2, "right_padding": None,
                "buffer": 2, "size": 2, "trimmable": True,
            },
        )  # fmt: skip
        self.assertEqual(steps[4]["mask"], [["111"], ["011"]])

    def test_batch_rotating(self):
        steps = run(
            new("a", "batch_rotating", max_size=2, left_padding=[0]),
            new("b", "batch_rotating", max_size=2, left_padding=[0]),
            update("a", [1, 2]),
            update("a", [3]),
            update("b", [4]),
            {"op": "extend", "cache": "a", "other": "b"},
            {"op": "extract", "cache": "a", "row": 1, "out": "s"},
            {"op": "filter", "cache": "a", "rows": [1, 0]},
        )
        self.assertEqual(
            steps[3]["state"],
            {
                "offset": [3], "left_padding": [-1], "idx": 1, "total": 3, "rotated": True, "ends": None,
                "buffer": 2, "size": 2, "trimmable": False,
            },
        )  # fmt: skip
        self.assertEqual(steps[5]["stored"], [[2, 3], [0, 4]])
        self.assertEqual(steps[6]["stored"], [[4]])
        self.assertEqual(steps[7]["stored"], [[0, 4], [2, 3]])

    def test_quantized(self):
        shape = SHAPE | {"key_dim": 32, "value_dim": 64, "dtype": "bfloat16"}
        quant = {"group_size": 32, "bits": 4}
        ops = [
            new("k", "kv"),
            update("k", [1, 2]),
            {"op": "to_quantized", "cache": "k", "out": "q"},
            update("q", [3]),
            {"op": "mask", "cache": "q", "n": 2},
        ]
        steps = target.Run(case(*ops, shape=shape, quant=quant, step=2), True, None).steps()
        self.assertEqual(
            {name: (plane["dtype"], list(plane["shape"])) for name, plane in steps[3]["returned"].items()},
            {
                "keys.packed": ("uint32", [1, 1, 3, 4]),
                "keys.scales": ("bfloat16", [1, 1, 3, 1]),
                "keys.biases": ("bfloat16", [1, 1, 3, 1]),
                "values.packed": ("uint32", [1, 1, 3, 8]),
                "values.scales": ("bfloat16", [1, 1, 3, 2]),
                "values.biases": ("bfloat16", [1, 1, 3, 2]),
            },
        )
        self.assertEqual(
            steps[3]["state"],
            {"offset": 3, "group_size": 32, "bits": 4, "buffer": 4, "size": 0, "trimmable": True},
        )
        ids = run(*ops, shape=shape, quant=quant, step=2)
        self.assertEqual(ids[2]["stored"], [[1, 2]])
        self.assertEqual(ids[3]["returned"], [[1, 2, 3]])
        self.assertEqual(ids[4]["mask"], [["11110", "11111"]])

    def test_arrays(self):
        write = {"op": "write", "cache": "s", "tokens": [[5], [6]]}
        steps = run(
            new("s", "arrays", slots=2, left_padding=[0, 2]),
            {"op": "mask", "cache": "s", "n": 3},
            write | {"slot": 0},
            write | {"slot": 1, "tokens": [[7], [8]]},
            {"op": "prepare", "cache": "s", "lengths": [3, 3]},
            {"op": "advance", "cache": "s", "n": 2},
            {"op": "extract", "cache": "s", "row": 1, "out": "one"},
        )
        self.assertEqual(steps[1]["mask"], [["111"], ["001"]])
        self.assertEqual(steps[2]["stored"], [[5], [6]])
        self.assertEqual(steps[3]["stored"], [[5, 7], [6, 8]])
        self.assertEqual(
            steps[5]["state"], {"left_padding": [-2, 0], "lengths": [1, 1], "size": 0, "trimmable": False}
        )
        self.assertEqual(steps[6]["stored"], [[6, 8]])

    def test_list(self):
        steps = run(
            new("k", "kv"),
            new("r", "rotating", max_size=4),
            new("l", "list", caches=["k", "r"]),
            update("k", [1, 2]),
            update("r", [3]),
            {"op": "trim", "cache": "l", "n": 1},
        )
        self.assertEqual(steps[5]["trimmed"], 1)
        state = steps[5]["state"]
        self.assertEqual((state["size"], state["trimmable"]), (1, True))
        self.assertEqual([child["offset"] for child in state["caches"]], [1, 0])
        self.assertNotIn("stored", steps[5])

    def test_chunked(self):
        steps = run(
            new("c", "chunked", chunk_size=2), update("c", [1, 2, 3]), {"op": "trim_front", "cache": "c"}, step=4
        )
        self.assertEqual(steps[2]["stored"], [[2, 3]])
        self.assertEqual(
            steps[2]["state"],
            {"offset": 3, "chunk_size": 2, "start_position": 1, "buffer": 2, "size": 0, "trimmable": True},
        )

    def test_concatenate(self):
        steps = run(new("c", "concatenate"), update("c", [1, 2]), update("c", [3]))
        self.assertEqual(steps[2]["returned"], [[1, 2, 3]])
        self.assertEqual(steps[2]["state"], {"offset": 3, "buffer": 3, "size": 0, "trimmable": True})

    def test_empty_block(self):
        steps = run(new("c", "concatenate"), update("c", []))
        self.assertEqual(steps[1]["stored"], [[]])


class Errors(unittest.TestCase):
    def error(self, *ops, **more):
        step = run(*ops, **more)[-1]
        return step["error"], step.get("state")

    def test_codes(self):
        pending = {"op": "prepare", "cache": "b", "lengths": [1, 0], "right_padding": [0, 1]}
        ring = new("b", "batch_rotating", max_size=4, left_padding=[0, 0])
        code, state = self.error(ring, pending, update("b", [1], [2]))
        self.assertEqual(code, "pending_padding")
        self.assertEqual(state["ends"], [1, 0])
        left = {"op": "prepare", "cache": "b", "left_padding": [0, 1]}
        self.assertEqual(self.error(ring, update("b", [1], [2]), left)[0], "left_padding_on_non_empty")
        self.assertEqual(
            self.error(new("x", "rotating", max_size=4), new("y", "rotating", max_size=8),
                       {"op": "merge", "caches": ["x", "y"], "out": "m"}),
            ("max_size", None),
        )  # fmt: skip
        self.assertEqual(self.error(ring, {"op": "extract", "cache": "b", "row": 0, "out": "s"})[0], "raises")
        self.assertEqual(self.error(ring, {"op": "filter", "cache": "b", "rows": []})[0], "raises")

    def test_not_supported(self):
        quant = {"group_size": 64, "bits": 4}
        for kind, fields, op in (
            ("kv", {}, {"op": "filter", "rows": [0]}),
            ("kv", {}, {"op": "trim_front"}),
            ("rotating", {"max_size": 4}, {"op": "to_quantized", "out": "q"}),
            ("batch_rotating", {"max_size": 4, "left_padding": [0]}, {"op": "to_quantized", "out": "q"}),
            ("chunked", {"chunk_size": 4}, {"op": "mask", "n": 1}),
            ("list", {"caches": ["k"]}, {"op": "mask", "n": 1}),
            ("arrays", {"slots": 1}, {"op": "trim", "n": 1}),
            ("arrays", {"slots": 1}, {"op": "update", "tokens": [[1]]}),
            ("quantized", {}, {"op": "write", "slot": 0, "tokens": [[1]]}),
        ):
            code, _ = self.error(new("k", "kv"), new("c", kind, **fields), op | {"cache": "c"}, quant=quant)
            self.assertEqual(code, "not_supported", (kind, op))

    def test_a_case_goes_on_after_a_refusal(self):
        steps = run(new("k", "kv"), {"op": "finalize", "cache": "k"}, update("k", [1]), step=1)
        self.assertEqual(steps[2]["stored"], [[1]])


class Files(unittest.TestCase):
    def test_save_and_load(self):
        save = {"op": "save", "file": "two"}
        steps = run(
            new("k", "kv"),
            new("b", "batch_rotating", max_size=4, left_padding=[0, 1]),
            update("k", [1, 2]),
            update("b", [3, 4], [-5, 6]),
            save | {"caches": ["k", "b"]},
            {"op": "load", "file": "two", "outs": ["k2", "b2"]},
            save | {"caches": ["k"]},  # over the file that the loaded caches came from
            {"op": "load", "file": "two", "outs": ["k3"]},
            {"op": "filter", "cache": "b2", "rows": [1]},
            update("b2", [7]),
            step=2,
        )
        self.assertEqual(steps[4], {})
        self.assertEqual([s["offset"] for s in steps[5]["state"]["caches"]], [2, [2, 1]])
        self.assertEqual(steps[7]["stored"], [[1, 2]])
        self.assertEqual(steps[8]["stored"], [[-5, 6]])
        self.assertIs(steps[8]["state"]["rotated"], False)
        self.assertEqual(steps[9]["error"], "raises")  # a loaded ring has no _lengths

    def test_names_stay_in_the_folder(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("", ".", "..", "../x", "a/b", "/x", "a\\b", "a\0b"):
                for op in ({"op": "save", "caches": ["k"]}, {"op": "load", "outs": ["k"]}):
                    with self.assertRaises(target.Fault, msg=name):
                        target.Run(case(new("k", "kv"), op | {"file": name}), True, directory).steps()
            self.assertEqual(list(pathlib.Path(directory).iterdir()), [])

    def test_suffix(self):
        with tempfile.TemporaryDirectory() as directory:
            ops = [new("k", "kv"), *({"op": "save", "caches": ["k"], "file": n} for n in ("a", "b.safetensors"))]
            target.Run(case(*ops), True, directory).steps()
            names = sorted(path.name for path in pathlib.Path(directory).iterdir())
        self.assertEqual(names, ["a.safetensors", "b.safetensors"])


class Recorded(unittest.TestCase):
    """The corpus's recordings are what this mlx-lm answers."""

    def test_recordings(self):
        paths = sorted(RECORDED.glob("*.json"))
        self.assertGreaterEqual(len(paths), 200, f"recordings in {RECORDED}")
        for path in paths:
            with self.subTest(path.name):
                self.assertEqual(list(record.differences(json.loads(path.read_text("utf-8")))), [])

    def test_recording_agrees_with_itself(self):
        recorded = record.record(case(new("r", "rotating", max_size=2), update("r", [1, 2, 3]), update("r", [4])))
        self.assertEqual(list(record.differences(recorded)), [])
        recorded["ops"][2]["want"]["returned"] = [[4, 9]]
        self.assertEqual(list(record.differences(recorded)), [(2, "returned", [[4, 9]], [[4, 3]])])


if __name__ == "__main__":
    unittest.main()
