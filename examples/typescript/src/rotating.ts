import { assign, causal, cut, join, type Mask, Refused, rollMask, type Rows, width, zeros } from "./columns.js";

/**
 * The ring of one sequence. One token is written in place; more are appended
 * behind at most maxSize - 1 older columns. The first keep columns are never
 * overwritten.
 */
export class RotatingCache {
  columns: Rows | null = null;
  offset = 0;
  idx = 0; // the column of the next write

  constructor(readonly maxSize: number, readonly keep: number, readonly step: number) {}

  /** The columns in use, oldest first, the kept ones before all others. */
  ordered(columns: Rows): Rows {
    if (this.idx === width(columns)) {
      return columns;
    }
    if (this.idx < this.offset) {
      return join(cut(columns, 0, this.keep), cut(columns, this.idx), cut(columns, this.keep, this.idx));
    }
    return cut(columns, 0, this.idx);
  }

  /** Drops n columns behind the kept ones. */
  private dropped(columns: Rows, n: number): Rows {
    return n > 0 ? join(cut(columns, 0, this.keep), cut(columns, n + this.keep)) : columns;
  }

  update(block: Rows): Rows {
    return width(block) === 1 ? this.write(block) : this.append(block);
  }

  private append(block: Rows): Rows {
    let columns = block;
    if (this.columns) {
      const old = this.ordered(this.columns);
      columns = join(this.dropped(old, width(old) - this.maxSize + 1), block);
    }
    this.columns = columns;
    this.offset += width(block);
    this.idx = width(columns);
    return columns;
  }

  private write(column: Rows): Rows {
    let columns = this.columns ?? zeros(column, 0);
    let idx = this.idx;
    if (!this.columns || (this.offset >= width(columns) && width(columns) < this.maxSize)) {
      columns = join(columns, zeros(columns, Math.min(this.step, this.maxSize - this.offset)));
      idx = this.offset;
    }
    if (width(columns) > this.maxSize) {
      columns = this.dropped(columns, width(columns) - this.maxSize);
      idx = this.maxSize;
    }
    if (idx === this.maxSize) {
      idx = this.keep;
    }
    this.columns = assign(columns, idx, column);
    this.idx = idx + 1;
    this.offset++;
    return this.offset < width(this.columns) ? cut(this.columns, 0, this.offset) : this.columns;
  }

  /** The mask of a write of n columns to come; null hides nothing. */
  mask(n: number, window?: number): Mask | null {
    if (n > 1) {
      return causal(n, Math.min(this.maxSize - 1, this.offset), window || this.maxSize, [0]);
    }
    if (window === undefined || this.offset < window || this.maxSize <= window) {
      return null;
    }
    const s = Math.min(this.offset + 1, this.maxSize);
    const newest = Array.from({ length: s }, (_, j) => (j >= s - window ? "1" : "0"));
    return rollMask([[newest.join("")]], (this.idx >= this.maxSize ? 0 : this.idx) + 1);
  }

  trim(n: number): number {
    n = Math.min(this.offset, n);
    this.offset -= n;
    this.idx -= n;
    return n;
  }

  get size(): number {
    return Math.min(this.offset, this.maxSize);
  }

  get state(): object {
    const { offset, idx, size, maxSize, columns } = this;
    return { offset, idx, size, trimmable: offset < maxSize, buffer: width(columns) };
  }
}

/** What merge needs of a batch: a row for each ring, right-justified. */
export function merged(rings: readonly RotatingCache[]): { columns: Rows | null; leftPadding: number[] } {
  const sizes = rings.map((r) => r.size);
  const w = Math.max(...sizes);
  const leftPadding = w === 0 ? rings.map(() => 0) : sizes.map((size) => w - size);
  if (w === 0) {
    return { columns: null, leftPadding };
  }
  if (rings.every((r) => !r.columns)) {
    throw new Refused("raises", "no ring has the columns that it claims");
  }
  const columns = rings.map((r, i) => {
    const row = zeros([[]], w)[0]!;
    if (!r.columns) {
      return row;
    }
    const last = cut(r.ordered(r.columns), -sizes[i]!); // -0 and a size below 0 count from the front
    const slots = Math.max(0, sizes[i]!);
    if (last.length !== 1 || (width(last) !== slots && width(last) !== 1)) {
      throw new Refused("raises", `cannot assign ${last.length} rows of ${width(last)} columns to ${slots}`);
    }
    return row.map((zero, j) => (j < leftPadding[i]! ? zero : last[0]![(j - leftPadding[i]!) % width(last)]!));
  });
  return { columns, leftPadding };
}
