"""A port that can make an empty rotating cache, and nothing else."""

import json
import sys

HELLO = {
    "protocol": 1,
    "name": "my-port",
    "version": "0.1",
    "kinds": ["rotating"],
    "ops": ["new"],
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

    def state(self):
        return {
            "offset": self.offset,
            "size": min(self.offset, self.max_size),
            "trimmable": self.offset < self.max_size,
        }


def run(case):
    """Runs the operations of a case; returns an observation of each."""
    caches, steps = {}, []
    for op in case["ops"]:
        if op["op"] == "new":
            cache = caches[op["out"]] = RotatingCache(op["max_size"])
            steps.append({"state": cache.state()})
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
