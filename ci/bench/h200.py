"""The accelerated cache's work on a GPU, done with PyTorch's plain operations.

A port of mlx-lm's ring caches to PyTorch would use cat, index_select, gather,
roll, slice assignment and scaled_dot_product_attention; this does so, at the
shapes of BenchmarkDevice in accelerated/cuda, and times it with events around
repeated work. With the benchmark's result it prints both, and what is missed:

    go test -run '^$' -bench Device -benchtime 1x ./accelerated/cuda -device.json "$PWD/ours.json"
    python3 ci/bench/h200.py ours.json

Exit status 1 says that a figure is missed.
"""

import json
import statistics
import sys

import torch
import torch.nn.functional as F

ROWS, HEADS, DIM, GROUP, BITS, BLOCK = 64, 16, 128, 64, 4, 2048
SETS = 4  # of rings and inputs that are taken in turn; each is larger than the cache
DEV, DTYPE = "cuda", torch.bfloat16


def timed(work, repeats=20, rounds=5, warm=3):
    """The median, over rounds, of the microseconds that work(i) takes."""
    for i in range(warm):
        work(i)
    results = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for i in range(repeats):
            work(i)
        end.record()
        torch.cuda.synchronize()
        results.append(begin.elapsed_time(end) * 1000 / repeats)
    return statistics.median(results)


def random(*shape):
    return torch.randn(shape, device=DEV, dtype=DTYPE)


def temporal(x, idx):
    """A ring's columns in order, where its oldest is at idx."""
    return torch.cat([x[:, :, idx:], x[:, :, :idx]], dim=2)


def window_mask(n, offset, window, left):
    """mlx-lm's mask of n queries over the last columns of a window."""
    columns = torch.arange(offset + n, device=DEV)
    queries = torch.arange(offset, offset + n, device=DEV)[:, None]
    mask = (queries >= columns) & (queries < columns + window)
    return mask & (columns >= left[:, None, None, None])


def quantize(x):
    """Affine quantization: packed codes, scales, biases."""
    g = x.float().unflatten(-1, (-1, GROUP))
    low, high = g.amin(-1, keepdim=True), g.amax(-1, keepdim=True)
    bins = 2**BITS - 1
    scale = ((high - low) / bins).clamp_min(1e-7)
    flip = low.abs() > high.abs()
    scale = torch.where(flip, scale, -scale)
    edge = torch.where(flip, low, high)
    q0 = torch.round(edge / scale)
    scale = torch.where(q0 != 0, edge / q0, scale)
    bias = torch.where(q0 != 0, edge, torch.zeros_like(edge))
    codes = torch.round((g - bias) / scale).clamp(0, bins).to(torch.int32)
    per = 32 // BITS
    shifts = torch.arange(per, device=DEV, dtype=torch.int32) * BITS
    packed = (codes.flatten(-2).unflatten(-1, (-1, per)) << shifts).sum(-1, dtype=torch.int32)
    return packed, scale.squeeze(-1).to(DTYPE), bias.squeeze(-1).to(DTYPE)


def dequantize(packed, scales, biases):
    shifts = torch.arange(32 // BITS, device=DEV, dtype=torch.int32) * BITS
    codes = ((packed[..., None] >> shifts) & (2**BITS - 1)).flatten(-2).unflatten(-1, (-1, GROUP))
    return (codes.to(DTYPE) * scales[..., None] + biases[..., None]).flatten(-2)


def measure(window):
    out = {}
    rings = [[random(ROWS, HEADS, window, DIM) for _ in "kv"] for _ in range(SETS)]
    tokens = [[random(ROWS, HEADS, 1, DIM) for _ in "kv"] for _ in range(SETS)]
    left = torch.zeros(ROWS, dtype=torch.int64, device=DEV)
    middle = window // 3

    def decode(i):
        idx = (middle + i) % window
        # The mask of one query over a ring is rolled to where the ring is.
        mask = window_mask(1, window - 1, window, left - i)
        mask = torch.roll(mask, idx + 1, dims=-1)
        for ring, token in zip(rings[i % SETS], tokens[i % SETS]):
            ring[:, :, idx : idx + 1] = token
        return mask

    out["decode"] = timed(decode, 100)

    quantized = [[quantize(x) for x in ring] for ring in rings]

    def quantizing(i):
        idx = (middle + i) % window
        mask = torch.roll(window_mask(1, window - 1, window, left - i), idx + 1, dims=-1)
        for ring, token in zip(quantized[i % SETS], tokens[i % SETS]):
            for plane, new in zip(ring, quantize(token)):
                plane[:, :, idx : idx + 1] = new
        return mask

    out["quantizing decode"] = timed(quantizing, 50)

    query = [random(ROWS, HEADS, 1, DIM) for _ in range(SETS)]
    mask = torch.ones(ROWS, 1, 1, window, dtype=torch.bool, device=DEV)

    def attend(i):
        k, v = rings[i % SETS]
        return F.scaled_dot_product_attention(query[i % SETS], k, v, attn_mask=mask, scale=DIM**-0.5)

    out["attention"] = timed(attend, 40)

    def attend4(i):
        k, v = (dequantize(*planes) for planes in quantized[i % SETS])
        return F.scaled_dot_product_attention(query[i % SETS], k, v, attn_mask=mask, scale=DIM**-0.5)

    out["attention, 4 bits"] = timed(attend4, 4, 3)
    del quantized

    blocks = [[random(ROWS, HEADS, BLOCK, DIM) for _ in "kv"] for _ in range(2)]
    held = [list(ring) for ring in rings[:2]]

    def block(i):
        mask = window_mask(BLOCK, window - 1, window, left)
        ring = held[i % 2]
        for side in range(2):
            x = ring[side]
            ring[side] = torch.cat([x[:, :, x.shape[2] - window + 1 :], blocks[i % 2][side]], dim=2)
        return mask

    out["block"] = timed(block, 16, 3)
    del held, blocks

    single = [[(k[r : r + 1].clone(), v[r : r + 1].clone()) for r in range(ROWS)] for k, v in rings[:2]]

    def merge(i):
        for side in range(2):
            made = torch.zeros(ROWS, HEADS, window, DIM, device=DEV, dtype=DTYPE)
            for r, row in enumerate(single[i % 2]):
                made[r : r + 1] = temporal(row[side], middle)

    out["merge"] = timed(merge, 6, 3)
    del single

    keep = torch.tensor([r for r in range(ROWS) if r % 16 != 1], device=DEV)
    out["filter"] = timed(lambda i: [x.index_select(0, keep) for x in rings[i % SETS]], 10)
    out["extract"] = timed(lambda i: [temporal(x[i % ROWS : i % ROWS + 1], middle) for x in rings[i % SETS]], 40)
    shifts = torch.arange(ROWS, device=DEV) % 64 + 1
    place = torch.arange(window, device=DEV)

    def finalize(i):
        index = ((place - shifts[:, None]) % window)[:, None, :, None].expand(ROWS, HEADS, window, DIM)
        return [torch.gather(x, 2, index) for x in rings[i % SETS]]

    out["finalize"] = timed(finalize, 6)
    out["temporal order"] = timed(lambda i: [torch.roll(x, -middle, dims=2) for x in rings[i % SETS]], 10)
    return out


def main():
    torch.manual_seed(1)
    a, b = (torch.empty(1 << 30, dtype=torch.uint8, device=DEV).random_() for _ in range(2))
    copy = 2 * a.numel() / timed(lambda i: (a.copy_(b) if i % 2 else b.copy_(a)), 10) / 1e6
    del a, b
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}; its copy moves {copy:.2f} TB/s")
    theirs = {}
    for window in 1024, 4096:
        for name, us in measure(window).items():
            theirs[f"{name}/{window}"] = us
        torch.cuda.empty_cache()
    if len(sys.argv) < 2:
        print(json.dumps(theirs, indent=1))
        return 0
    with open(sys.argv[1]) as f:
        ours = json.load(f)
    return compare(ours, theirs, copy)


def targets(name, window, size):
    """What is asked of a row: (share of the copy bandwidth, times PyTorch)."""
    large = size >= 64 << 20
    return {
        "block": (0.8, 5 if window == "1024" else 8),
        "decode": (None, 10),
        "quantizing decode": (None, 60),
        "attention": (0.9, 1),
        "attention, 4 bits": (None, None),
    }.get(name, (0.9 if large else None, None))


def compare(ours, theirs, copy):
    copy = max(copy, ours["copy"]["bytes"] / ours["copy"]["us"] / 1e6)
    print(f"copy: {copy:.2f} TB/s, the better of the two")
    small = ours["copy of 32 MiB"]
    print(f"copy of 32 MiB, as much as extract moves at 4096: {small['us']:.1f} us, {small['bytes'] / small['us'] / 1e6 / copy:.0%} of that")
    print("| work | window | us | PyTorch us | times | of the copy | launches | missed |\n|---|---|---|---|---|---|---|---|")
    missed = 0
    for key, row in ours.items():
        if "/" not in key:
            continue
        name, window = key.split("/")
        base = name.split(" (")[0]
        us, peer = row["us"], theirs.get(f"{base}/{window}")
        share = row["bytes"] / us / 1e6 / copy
        want_share, want_times = targets(base, window, row["bytes"])
        gaps = []
        if want_share and share < want_share:
            gaps.append(f"{share:.0%} of {want_share:.0%}")
        if want_times and peer and peer / us < want_times:
            gaps.append(f"{peer / us:.1f} of {want_times} times")
        if name == "attention, 4 bits" and (times := ours[f"attention/{window}"]["us"] / us) < 2.5:
            gaps.append(f"{times:.2f} of 2.5 times bfloat16")
        if base.endswith("decode") and row["launches"] > 1:
            gaps.append("more than one launch")
        missed += len(gaps)
        peers = (f"{peer:.0f}", f"{peer / us:.1f}") if peer else ("", "")
        print(f"| {name} | {window} | {us:.1f} | {peers[0]} | {peers[1]} | {share:.0%} | {row['launches']:g} | {'; '.join(gaps)} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
