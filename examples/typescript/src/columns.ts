/** An operation that is refused. Nothing has changed. */
export class Refused extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

/**
 * What one token leaves in a cache: the bytes of all heads, one head after the
 * other. Caches move columns about and never look inside one, so a column is a
 * value here, and a buffer is a list of columns for each row of the batch.
 */
export interface Column {
  readonly keys: Uint8Array;
  readonly values: Uint8Array;
}

export type Row = readonly Column[];
export type Rows = readonly Row[];

/** A column of zero bytes. */
export const ZERO: Column = { keys: new Uint8Array(0), values: new Uint8Array(0) };

/** The columns a row has; all rows have as many. */
export const width = (rows: Rows | null): number => rows?.[0]?.length ?? 0;

export const add = (a: number, b: number): number => a + b;
export const subtract = (a: number, b: number): number => a - b;

/** f of each pair; a list of one serves all of the other, as in mlx. */
export function broadcast<A, B, C>(a: readonly A[], b: readonly B[], f: (a: A, b: B) => C): C[] {
  if (a.length !== b.length && a.length !== 1 && b.length !== 1) {
    throw new Refused("raises", `cannot broadcast ${a.length} rows and ${b.length}`);
  }
  const n = Math.max(a.length, b.length);
  return Array.from({ length: n }, (_, i) => f(a[i % a.length]!, b[i % b.length]!));
}

/** Zero columns for as many rows as like has. */
export function zeros(like: Rows, n: number): Rows {
  if (n < 0) {
    throw new Refused("raises", "negative dimensions are not allowed");
  }
  return like.map(() => Array<Column>(n).fill(ZERO));
}

/** The columns [from, to) of every row; Array.slice counts as Python does. */
export const cut = (rows: Rows, from: number, to?: number): Rows => rows.map((row) => row.slice(from, to));

/** The columns of a and then those of b. */
export function join(...parts: Rows[]): Rows {
  const [first, ...more] = parts as [Rows, ...Rows[]];
  if (more.some((part) => part.length !== first.length)) {
    throw new Refused("raises", "cannot concatenate different numbers of rows");
  }
  return first.map((row, b) => row.concat(...more.map((part) => part[b]!)));
}

/** The rows of a and then those of b. */
export function stacked(a: Rows, b: Rows): Rows {
  if (width(a) !== width(b)) {
    throw new Refused("raises", `cannot concatenate rows of ${width(a)} columns and of ${width(b)}`);
  }
  return [...a, ...b];
}

/** One row, rolled cyclically to the right. */
export function roll<T>(row: readonly T[], by: number): readonly T[] {
  const at = row.length - (((by % row.length) + row.length) % row.length);
  return row.length === 0 ? row : [...row.slice(at), ...row.slice(0, at)];
}

/** Writes one column a row over the slice [at, at + 1), as Python counts it. */
export function assign(rows: Rows, at: number, column: Rows): Rows {
  if (column.length !== rows.length && column.length !== 1) {
    throw new Refused("raises", `cannot assign ${column.length} rows to ${rows.length}`);
  }
  const slot = at < -1 ? at + width(rows) : at; // [-1:0] is empty
  if (slot < 0 || slot >= width(rows)) {
    return rows;
  }
  return rows.map((row, b) => row.with(slot, column[b % column.length]![0]!));
}

/** One string a query, a character a column: 1 where the query sees it. */
export type Mask = string[][];

/**
 * Query q of n stands at offset + q and sees the columns up to itself that are
 * in its window and not left padding; one list for each element of left.
 */
export function causal(n: number, offset: number, window: number, left: readonly number[]): Mask {
  const count = (m: number) => [...Array(Math.max(0, m)).keys()];
  return left.map((padding) =>
    count(n).map((q) => {
      const at = offset + q;
      return count(offset + n)
        .map((j) => (j <= at && at < j + window && j >= padding ? "1" : "0"))
        .join("");
    }),
  );
}

/** Every query's columns, rolled to the right. */
export const rollMask = (mask: Mask, by: number): Mask =>
  mask.map((queries) => queries.map((query) => roll([...query], by).join("")));
