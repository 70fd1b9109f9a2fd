// Answers ringcheck's protocol (docs/wire.md) for the two caches.

import { createInterface } from "node:readline";
import { BatchRotatingCache, type Padding } from "./batch_rotating.js";
import { type Column, type Mask, Refused, type Rows, width, ZERO } from "./columns.js";
import { RotatingCache } from "./rotating.js";

interface Shape {
  kv_heads: number;
  key_dim: number;
  value_dim: number;
  dtype: "bfloat16" | "float16" | "float32";
}

interface Op extends Padding {
  op: string;
  cache: string;
  out: string;
  other: string;
  kind: string;
  max_size: number;
  keep?: number;
  tokens: number[][];
  n: number;
  window?: number;
  rows: number[];
  row: number;
  caches: string[];
}

interface Case {
  shape: Shape;
  step?: number;
  fill?: "grid" | "bits";
  ops: Op[];
}

type Request = { cmd: "hello" } | { cmd: "bye" } | { cmd: "run"; seq: number; case: Case; layout?: boolean };

type Cache = RotatingCache | BatchRotatingCache;

/** The element of a token: see docs/case-format.md. */
function element(token: number, head: number, plane: number, d: number): number {
  let x = (Math.imul(token, 0x9e3779b1) + Math.imul(2 * head + plane, 0x85ebca6b) + Math.imul(d, 0xc2b2ae35)) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}

/** The bits of a multiple of 1/64 that is less than 4. */
function float16(v: number): number {
  if (v === 0) {
    return 0;
  }
  const exponent = Math.floor(Math.log2(Math.abs(v)));
  const fraction = (Math.abs(v) / 2 ** exponent - 1) * 1024;
  return (v < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | fraction;
}

/** The bytes of a token's keys (plane 0) or values (1), all heads. */
function bytes(c: Case, token: number, plane: number): Uint8Array {
  const { kv_heads, key_dim, value_dim, dtype } = c.shape;
  const dim = plane === 0 ? key_dim : value_dim;
  const size = dtype === "float32" ? 4 : 2;
  const out = new DataView(new ArrayBuffer(kv_heads * dim * size));
  for (let i = 0; i < kv_heads * dim; i++) {
    const x = element(token, Math.floor(i / dim), plane, i % dim);
    const grid = ((x & 255) - 128) / 64;
    if (c.fill === "bits") {
      size === 4 ? out.setUint32(i * 4, x, true) : out.setUint16(i * 2, x & 0xffff, true);
    } else if (dtype === "float32") {
      out.setFloat32(i * 4, grid, true);
    } else if (dtype === "float16") {
      out.setUint16(i * 2, float16(grid), true);
    } else {
      const wide = new DataView(new ArrayBuffer(4));
      wide.setFloat32(0, grid);
      out.setUint16(i * 2, wide.getUint16(0), true);
    }
  }
  return new Uint8Array(out.buffer);
}

/** Columns as the protocol's planes, [b, h, s, d]. */
function planes(c: Case, rows: Rows): object {
  const { kv_heads, key_dim, value_dim, dtype } = c.shape;
  const plane = (side: keyof Column, dim: number) => {
    const n = dim * (dtype === "float32" ? 4 : 2);
    const s = width(rows);
    const data = Buffer.alloc(rows.length * kv_heads * s * n);
    rows.forEach((row, b) =>
      row.forEach((column, j) => {
        for (let h = 0; h < kv_heads && column !== ZERO; h++) {
          data.set(column[side].subarray(h * n, (h + 1) * n), ((b * kv_heads + h) * s + j) * n);
        }
      }),
    );
    return { dtype, shape: [rows.length, kv_heads, s, dim], data: data.toString("base64") };
  };
  return { keys: plane("keys", key_dim), values: plane("values", value_dim) };
}

interface Answer {
  returned?: Rows;
  mask?: Mask | null;
  trimmed?: number;
  cache?: Cache; // made or changed
}

/** Runs one case: an observation for each operation. */
function run(c: Case, layout: boolean): object[] {
  const caches = new Map<string, Cache>();
  const step = c.step ?? 256;

  const named = (name: string): Cache => {
    const cache = caches.get(name);
    if (!cache) {
      throw new Refused("raises", `there is no cache ${name}`);
    }
    return cache;
  };
  const batch = (op: Op, name = op.cache): BatchRotatingCache => {
    const cache = named(name);
    if (cache instanceof RotatingCache) {
      throw new Refused("not_supported", `a rotating cache has no ${op.op}`);
    }
    return cache;
  };
  const serial = (name: string): RotatingCache => {
    const cache = named(name);
    if (cache instanceof BatchRotatingCache) {
      throw new Refused("raises", "a batch cannot be merged");
    }
    return cache;
  };
  const made = (op: Op, cache: Cache): Answer => {
    caches.set(op.out, cache);
    return { cache };
  };
  const columns = (op: Op): Rows =>
    op.tokens.map((row) => row.map((token) => ({ keys: bytes(c, token, 0), values: bytes(c, token, 1) })));

  const operations: Record<string, (op: Op) => Answer> = {
    new: (op) =>
      made(op, op.kind === "rotating"
        ? new RotatingCache(op.max_size, op.keep ?? 0, step)
        : new BatchRotatingCache(op.max_size, op.left_padding!, step)),
    update: (op) => ({ cache: named(op.cache), returned: named(op.cache).update(columns(op)) }),
    mask: (op) => ({ mask: named(op.cache).mask(op.n, op.window) }),
    trim: (op) => ({ cache: named(op.cache), trimmed: named(op.cache).trim(op.n) }),
    merge: (op) => made(op, BatchRotatingCache.merge(op.caches.map(serial))),
    extract: (op) => made(op, batch(op).extract(op.row)),
    prepare: (op) => (batch(op).prepare(op), { cache: batch(op) }),
    finalize: (op) => (batch(op).finalize(), { cache: batch(op) }),
    filter: (op) => (batch(op).filter(op.rows), { cache: batch(op) }),
    extend: (op) => {
      batch(op).extend(batch(op, op.other));
      caches.delete(op.other);
      return { cache: batch(op) };
    },
  };

  return c.ops.map((op) => {
    try {
      const answer = operations[op.op]!(op);
      return {
        ...(answer.returned && { returned: planes(c, answer.returned) }),
        ...(answer.mask !== undefined && { mask: answer.mask }),
        ...(answer.trimmed !== undefined && { trimmed: answer.trimmed }),
        ...(answer.cache && { state: answer.cache.state }),
        ...(layout && answer.cache?.columns && { stored: planes(c, answer.cache.columns) }),
      };
    } catch (error) {
      if (!(error instanceof Refused)) {
        throw error;
      }
      return { error: error.code, message: error.message, state: caches.get(op.cache)?.state };
    }
  });
}

const hello = {
  protocol: 1,
  name: "typescript-example",
  version: "1",
  kinds: ["rotating", "batch_rotating"],
  ops: ["new", "update", "mask", "prepare", "finalize", "filter", "extend", "merge", "extract", "trim"],
  dtypes: ["bfloat16", "float16", "float32"],
  semantics: ["mlxlm"],
  quant: [],
  fills: ["grid", "bits"],
  layout: true,
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  const answer =
    request.cmd === "hello" ? hello
    : request.cmd === "run" ? { seq: request.seq, steps: run(request.case, request.layout ?? false) }
    : {};
  process.stdout.write(JSON.stringify(answer) + "\n");
  if (request.cmd === "bye") {
    break;
  }
}
