"""How many checked operations a second does a Hypothesis stateful test reach?

It drives the real mlx-lm classes: a BatchRotatingKVCache of two rows (window 8,
two heads, width 8) and beside it one RotatingKVCache a row, and checks after
each operation that every row's newest columns are its serial twin's (row check)
and that each query sees the tokens of its window (window check), as the
stepwise properties of this project do. Prints JSON.

    ci/mlxlm/.venv/bin/python ci/bench/stateful.py [SECONDS]
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mlxlm"))

import target  # loads mlx-lm's cache module alone

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

mx, cache = target.mx, target.mlxlm

WINDOW, HEADS, WIDTH, ROWS = 8, 2, 8, 2
operations = 0


def columns(rows):
    """Keys whose every element is the token, values its negative."""
    keys = mx.broadcast_to(mx.array(rows, dtype=mx.float32)[:, None, :, None], (len(rows), HEADS, len(rows[0]), WIDTH))
    return keys, -keys


def tokens(array, row):
    return [int(t) for t in array[row, 0, :, 0].tolist()]


class Rings(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.batch = cache.BatchRotatingKVCache(WINDOW, [0] * ROWS)
        self.serial = [cache.RotatingKVCache(WINDOW) for _ in range(ROWS)]
        self.history = [[] for _ in range(ROWS)]
        self.next = 1

    def write(self, n):
        global operations
        operations += 2  # a mask and an update
        rows = [[self.next + i * n + j for j in range(n)] for i in range(len(self.history))]
        self.next += n * len(rows)
        mask = self.batch.make_mask(n)
        keys, _ = self.batch.update_and_fetch(*columns(rows))
        seen, held = mask.tolist(), [tokens(keys, i) for i in range(len(rows))]
        for i, new in enumerate(rows):
            before = len(self.history[i])
            self.history[i] += new
            self.serial[i].update_and_fetch(*columns([new]))
            for q in range(n):
                got = sorted(t for t, s in zip(held[i], seen[i][0][q]) if s)
                want = self.history[i][: before + q + 1][-WINDOW:]
                assert got == want, (got, want)

    @rule()
    def decode(self):
        self.write(1)

    @rule(n=st.integers(2, 2 * WINDOW + 1))
    def block(self, n):
        self.write(n)

    @precondition(lambda self: len(self.history) > 1)
    @rule(row=st.integers(0, ROWS - 1))
    def filter(self, row):
        global operations
        operations += 1
        row = min(row, len(self.history) - 1)
        keep = [i for i in range(len(self.history)) if i != row]
        self.batch.filter(keep)
        self.serial = [self.serial[i] for i in keep]
        self.history = [self.history[i] for i in keep]

    @rule()
    def merge(self):
        global operations
        operations += 1
        if all(self.history):
            self.batch = cache.BatchRotatingKVCache.merge(self.serial)

    @invariant()
    def rows(self):
        """Each row's newest columns are, byte for byte, its serial twin's."""
        for row, twin in enumerate(getattr(self, "serial", ())):
            held = min(len(self.history[row]), WINDOW)
            if held:
                one = self.batch.extract(row)
                for got, want in ((one.keys, twin.keys), (one.values, twin.values)):
                    want = twin._temporal_order(want)[..., -held:, :]
                    assert bytes(mx.contiguous(got[..., -held:, :])) == bytes(mx.contiguous(want))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        run_state_machine_as_test(
            Rings,
            settings=settings(max_examples=20, stateful_step_count=30, deadline=None, database=None,
                              suppress_health_check=list(HealthCheck)),
        )
    took = time.perf_counter() - begin
    print(json.dumps({"peer": "hypothesis", "operations": operations, "seconds": round(took, 3), "per_second": round(operations / took)}))


if __name__ == "__main__":
    main()
