"""Quantizes and dequantizes groups with the real MLX, for ci/quantize.

Writes a line with MLX's version, then answers requests until its input ends.
A request is a line "DTYPE GROUP_SIZE BITS COUNT" and the bytes of COUNT groups.
The answer is bytes only, one array after the other: packed codes, scales and
biases of the groups; those dequantized; the same codes dequantized with each
group's first element as scale and its second as bias. All bytes are
little-endian and go out as MLX made them.
"""

import sys

import mlx.core as mx

DTYPES = {
    "bfloat16": (mx.bfloat16, "H"),
    "float16": (mx.float16, "H"),
    "float32": (mx.float32, "I"),
}


def answer(dtype, group_size, bits, count):
    dtype, code = DTYPES[dtype]
    data = sys.stdin.buffer.read(count * group_size * dtype.size)
    groups = mx.array(memoryview(data).cast(code)).view(dtype).reshape(count, group_size)
    packed, scales, biases = mx.quantize(groups, group_size=group_size, bits=bits)
    back = mx.dequantize(packed, scales, biases, group_size=group_size, bits=bits)
    other = mx.dequantize(
        packed,
        mx.contiguous(groups[:, 0:1]),
        mx.contiguous(groups[:, 1:2]),
        group_size=group_size,
        bits=bits,
    )
    for array in packed, scales, biases, back, other:
        sys.stdout.buffer.write(memoryview(array.view(mx.uint8)))
    sys.stdout.buffer.flush()


def main():
    mx.set_default_device(mx.cpu)
    sys.stdout.buffer.write(mx.__version__.encode() + b"\n")
    sys.stdout.buffer.flush()
    while line := sys.stdin.buffer.readline():
        dtype, group_size, bits, count = line.decode().split()
        answer(dtype, int(group_size), int(bits), int(count))


main()
