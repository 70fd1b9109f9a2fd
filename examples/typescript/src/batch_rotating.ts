import { add, assign, broadcast, causal, cut, join, type Mask, Refused, roll, rollMask, type Rows, stacked, subtract, width, zeros } from "./columns.js";
import { merged, RotatingCache } from "./rotating.js";

export interface Padding {
  left_padding?: number[];
  lengths?: number[];
  right_padding?: number[];
}

/**
 * The ring of a batch: all rows wrap together, and a row that is shorter has
 * left padding. Right padding is announced by prepare; the next block, or
 * finalize, rolls it to the row's front.
 */
export class BatchRotatingCache {
  columns: Rows | null = null;
  offset: number[]; // of each row's next token
  idx = 0; // the column of the next write
  total = 0; // columns ever written, less those trimmed
  rotated = false;
  ends: number[] | null = null; // while padding is pending: where each row's begins

  constructor(readonly maxSize: number, public leftPadding: number[], readonly step: number) {
    this.offset = leftPadding.map((n) => -n);
  }

  static merge(rings: readonly RotatingCache[]): BatchRotatingCache {
    const first = rings[0]!;
    if (rings.some((r) => r.maxSize !== first.maxSize)) {
      throw new Refused("max_size", "rings of different windows");
    }
    const { columns, leftPadding } = merged(rings);
    const out = new BatchRotatingCache(first.maxSize, leftPadding, first.step);
    out.columns = columns;
    if (columns) {
      out.offset = rings.map((r) => r.offset);
      out.idx = out.total = width(columns);
    }
    return out;
  }

  /** The ring in temporal order: its columns, and the column after the last. */
  private ordered(): { columns: Rows | null; idx: number; rotated: boolean } {
    const { columns, idx, rotated } = this;
    if (!columns || !rotated) {
      return { columns, idx, rotated };
    }
    return { columns: columns.map((row) => roll(row, -idx)), idx: width(columns), rotated: false };
  }

  /** How far each row must roll so that its trailing padding comes first. */
  private pendingRoll(): number[] | null {
    return this.ends && broadcast(this.offset, this.ends, (offset, end) => Math.max(0, offset - end));
  }

  update(block: Rows): Rows {
    if (width(block) === 1 && this.ends) {
      throw new Refused("pending_padding", "padding is pending; finalize first");
    }
    if (block.length !== this.leftPadding.length) {
      throw new Refused("rows", `${block.length} rows for a batch of ${this.leftPadding.length}`);
    }
    return width(block) === 1 ? this.write(block) : this.append(block);
  }

  private append(block: Rows): Rows {
    let { leftPadding, offset } = this;
    let columns = block;
    if (this.columns) {
      const order = this.ordered();
      let held = cut(order.columns!, 0, width(order.columns) > order.idx ? order.idx : undefined);
      const by = this.pendingRoll();
      if (by) {
        held = broadcast(held, by, roll);
        leftPadding = broadcast(leftPadding, by, add);
        offset = broadcast(offset, by, subtract);
      }
      const evicted = Math.max(0, order.idx - this.maxSize + 1);
      columns = join(cut(held, evicted), block);
      leftPadding = leftPadding.map((n) => n - evicted);
    }
    this.columns = columns;
    this.leftPadding = leftPadding;
    this.offset = offset.map((n) => n + width(block));
    this.total += width(block);
    this.idx = width(columns);
    this.rotated = false;
    return columns;
  }

  private write(column: Rows): Rows {
    let { columns, idx, leftPadding, rotated } = this;
    if (!columns || (this.total >= width(columns) && width(columns) < this.maxSize)) {
      columns = join(columns ?? zeros(column, 0), zeros(column, Math.min(this.step, this.maxSize - this.total)));
      idx = this.total;
    }
    const over = width(columns) - this.maxSize;
    if (over > 0) {
      columns = cut(columns, over);
      idx = this.maxSize;
      leftPadding = leftPadding.map((n) => n - over);
    }
    if (idx === this.maxSize) {
      idx = 0;
      rotated = true;
    }
    this.columns = assign(columns, idx, column);
    this.idx = idx + 1;
    this.rotated = rotated;
    this.leftPadding = rotated ? leftPadding.map((n) => n - 1) : leftPadding;
    this.offset = this.offset.map((n) => n + 1);
    this.total++;
    return this.total < width(this.columns) ? cut(this.columns, 0, this.total) : this.columns;
  }

  /** The mask of a write of n columns to come. */
  mask(n: number, window?: number): Mask {
    const w = this.maxSize;
    const block = n > 1;
    const wrapped = !block && (this.rotated || this.idx >= w);
    const evicted = Math.max(0, this.idx - w + (block ? 1 : 0)) + (wrapped ? 1 : 0);
    const left = this.leftPadding.map((padding) => padding - evicted);
    const mask = causal(n, Math.min(w - 1, this.total), window || w, left);
    return wrapped ? rollMask(mask, (this.idx >= w ? 0 : this.idx) + 1) : mask;
  }

  prepare(pad: Padding): void {
    let { leftPadding, offset, ends } = this;
    if (pad.left_padding) {
      if (this.columns) {
        throw new Refused("left_padding_on_non_empty", "left padding comes before the first column");
      }
      leftPadding = broadcast(leftPadding, pad.left_padding, add);
      offset = broadcast(offset, pad.left_padding, subtract);
    }
    if (pad.right_padding?.some((n) => n > 0)) {
      if (!pad.lengths) {
        throw new Refused("raises", "lengths are missing");
      }
      ends = broadcast(pad.lengths, offset, add);
    }
    Object.assign(this, { leftPadding, offset, ends });
  }

  finalize(): void {
    const by = this.pendingRoll();
    if (!by) {
      return;
    }
    if (!this.columns) {
      throw new Refused("raises", "the cache is empty");
    }
    const columns = broadcast(this.columns, by, roll);
    const leftPadding = broadcast(this.leftPadding, by, add);
    const offset = broadcast(this.offset, by, subtract);
    Object.assign(this, { columns, leftPadding, offset, ends: null });
  }

  filter(rows: readonly number[]): void {
    const n = this.leftPadding.length;
    if (rows.some((r) => r < 0 || r >= n)) {
      throw new Refused("range", `rows ${rows.join(", ")} of ${n}`);
    }
    if (rows.length === 0) {
      throw new Refused("raises", "no rows are left");
    }
    this.columns &&= rows.map((r) => this.columns![r]!);
    this.offset = rows.map((r) => this.offset[r]!);
    this.leftPadding = rows.map((r) => this.leftPadding[r]!);
  }

  /** The rows of other join. The shorter ring gets left padding. */
  extend(other: BatchRotatingCache): void {
    let left = [0, 0];
    if (this.columns || other.columns) {
      const same = this.rotated === other.rotated && this.idx === other.idx;
      const [a, b] = same ? [this, other] : [this.ordered(), other.ordered()];
      const idx = Math.max(a.idx, b.idx);
      const length = Math.max(width(a.columns), width(b.columns));
      const side = (s: { columns: Rows | null; idx: number }, of: BatchRotatingCache): Rows => {
        const rows = s.columns ?? of.leftPadding.map(() => []);
        const right = length - width(rows) - (idx - s.idx);
        const body = right < 0 ? cut(rows, 0, right) : rows;
        return join(zeros(rows, idx - s.idx), body, zeros(rows, Math.max(0, right)));
      };
      this.columns = stacked(side(a, this), side(b, other));
      left = [idx - a.idx, idx - b.idx];
      this.idx = idx;
      this.rotated = a.rotated;
      this.total = Math.max(this.total, other.total);
    }
    this.leftPadding = [...this.leftPadding.map((n) => n + left[0]!), ...other.leftPadding.map((n) => n + left[1]!)];
    this.offset = [...this.offset, ...other.offset];
  }

  extract(row: number): RotatingCache {
    if (row < 0 || row >= this.leftPadding.length || !this.columns) {
      throw new Refused("raises", this.columns ? `there is no row ${row}` : "the cache is empty");
    }
    const out = new RotatingCache(this.maxSize, 0, this.step);
    const columns = this.ordered().columns!;
    out.columns = [columns[row]!.slice(Math.max(0, this.leftPadding[row]!), this.rotated ? this.maxSize : this.idx)];
    out.offset = this.offset[row]!;
    out.idx = width(out.columns);
    return out;
  }

  trim(n: number): number {
    n = Math.min(this.total, n);
    this.total -= n;
    this.idx -= n;
    this.offset = this.offset.map((o) => o - n);
    return n;
  }

  get state(): object {
    const { offset, leftPadding, idx, total, rotated, ends, maxSize, columns } = this;
    return {
      offset, left_padding: leftPadding, idx, total, rotated, ends,
      size: Math.min(total, maxSize), trimmable: total < maxSize, buffer: width(columns),
    };
  }
}
