// The kernels, in the C++ that Metal, CUDA and the host's compiler share. What
// they do not share (qualifiers, lanes, entry points) stands in a header each,
// which precedes this text.
//
// A kernel is the work of one warp: 32 lanes that go in step. Warps know nothing
// of each other, so a group is any number of them, but for one thing: a warp that
// has done WAIT_FOR_GROUP may read what the warps of its group before it have
// written. There is no threadgroup memory.
//
// What follows EACH_LANE is done by each lane; between two of them all lanes have
// done the first. A value that outlives an EACH_LANE is an array of HELD times n,
// lane l's i-th part of it is x[AT(l, n, i)], and FROM(x, l, n, i) is that of
// another lane, which nobody may change in the same EACH_LANE and all lanes must
// ask for together.
//
// Where there are MATRICES, multiply adds the product of two, 16 by 16 and 16 by
// 8 bfloat16, to a third of float32. Lane 4g+t has a part of each, of which
// multiply is told the n and the first i. Of the first it is rows g and g+8 in
// columns 2t and 2t+1, a word each, and then both in the columns 8 further; of the
// second column g in those rows; of the sum columns 2t and 2t+1 in row g, and then
// in row g+8. halves makes a word of the low, or the high, halves of two.
//
// All addresses are bytes from the beginning of a buffer, which is aligned to
// 256.

// ---- Bytes ---------------------------------------------------------------

#define LANES 32u
#define BATCH 8u  // loads that a lane has under way at once

// Layout is a store: [rows, heads, columns] of width bytes in each plane.
struct Layout {
  u64 plane[6];
  u32 width[6];  // 0: no such plane
  u32 heads, columns;
};

// strip is where a row's head begins in a plane.
FN u64 strip(u64 plane, u32 width, u32 columns, u32 heads, u32 row, u32 head) {
  return plane + (u64(row) * heads + head) * columns * width;
}

// unit_of is the widest access, in bytes, that suits addresses and sizes which
// are or-ed together.
FN u32 unit_of(u64 all) { return (all & 15) == 0 ? 16 : (all & 3) == 0 ? 4 : (all & 1) == 0 ? 2 : 1; }

FN void clear(PRIVATE uint4 &x) { x.x = x.y = x.z = x.w = 0; }
FN void clear(PRIVATE u32 &x) { x = 0; }
FN void clear(PRIVATE u16 &x) { x = 0; }
FN void clear(PRIVATE u8 &x) { x = 0; }

// ---- Move ----------------------------------------------------------------

#define SOURCES 64
#define LAYOUTS 8

struct Run {
  i32 source;  // below 0: zeros
  u32 srcRow, dstRow, from, cycle, skip, to, n;
  u32 first;  // the run's first piece
};

// INLINE is how many runs, or rows, a launch's arguments have room for; more
// are in a table in memory, which costs a copy to the device.
#define INLINE 64

struct MoveArgs {
  Layout dst;
  u64 base[SOURCES];    // addresses of the sources; 0: one of the buffers, of which there are 16
  u32 layout[SOURCES];  // which of these is a source's; widths and heads are dst's
  u64 plane[LAYOUTS][6];
  u32 columns[LAYOUTS];
  u32 runs;
  u32 piece;  // bytes, a multiple of 16
  u32 warps;
  u32 tabled;
  u32 once;  // what is read need not stay in a cache, so that what is written can
  u32 unused;
  Run run[INLINE];
};

// move_piece fills units begin to end of a strip from a cycle.
template <class T, bool ONCE>
FN void move_piece(DEVICE u8 *to, DEVICE const u8 *from, u32 begin, u32 end, u32 skip, u32 cycle, u32 lane_) {
  DEVICE T *dst = (DEVICE T *)to;
  DEVICE const T *src = (DEVICE const T *)from;
  for (u32 at = begin; at < end; at += BATCH * LANES) {
    EACH_LANE(lane) {
      T v[BATCH];
      UNROLL for (u32 i = 0; i < BATCH; i++) {
        u32 k = at + i * LANES + lane;
        clear(v[i]);
        if (k < end && cycle > 0) {
          DEVICE const T *at = src + (skip + k < cycle ? skip + k : skip + k - cycle);
          v[i] = ONCE ? load_once(at) : *at;
        }
      }
      UNROLL for (u32 i = 0; i < BATCH; i++) {
        u32 k = at + i * LANES + lane;
        if (k < end) dst[k] = v[i];
      }
    }
  }
}

// move: a warp makes a piece of one strip of one run.
FN void move(DEVICE u8 *store, DEVICE const u8 *table, DEVICE const u8 *s0, DEVICE const u8 *s1, DEVICE const u8 *s2,
             DEVICE const u8 *s3, DEVICE const u8 *s4, DEVICE const u8 *s5, DEVICE const u8 *s6, DEVICE const u8 *s7,
             DEVICE const u8 *s8, DEVICE const u8 *s9, DEVICE const u8 *s10, DEVICE const u8 *s11, DEVICE const u8 *s12,
             DEVICE const u8 *s13, DEVICE const u8 *s14, DEVICE const u8 *s15, ARGS MoveArgs &a, u32 warp, u32 lane_) {
  Run r;
  if (a.tabled) {
    DEVICE const Run *runs = (DEVICE const Run *)table;
    u32 low = 0, high = a.runs;  // the last run that begins at or before the piece
    while (high - low > 1) {
      u32 middle = (low + high) / 2;
      if (runs[middle].first <= warp) low = middle;
      else high = middle;
    }
    r = runs[low];
  } else {
    u32 low = 0, high = a.runs;
    while (high - low > 1) {
      u32 middle = (low + high) / 2;
      if (a.run[middle].first <= warp) low = middle;
      else high = middle;
    }
    r = a.run[low];
  }
  u32 part = warp - r.first, plane = 0, parts = 0;
  for (;; plane++) {
    parts = (r.n * a.dst.width[plane] + a.piece - 1) / a.piece;
    if (part < parts * a.dst.heads) break;
    part -= parts * a.dst.heads;
  }
  u32 width = a.dst.width[plane], head = part / parts, begin = part % parts * a.piece;
  u64 dst = strip(a.dst.plane[plane], width, a.dst.columns, a.dst.heads, r.dstRow, head) + u64(r.to) * width;
  u64 src = 0;
  DEVICE const u8 *from = s0;
  if (r.source >= 0) {
    u32 layout = a.layout[r.source];
    src = strip(a.plane[layout][plane], width, a.columns[layout], a.dst.heads, r.srcRow, head) + u64(r.from) * width;
    from = r.source == 1 ? s1 : from, from = r.source == 2 ? s2 : from, from = r.source == 3 ? s3 : from;
    from = r.source == 4 ? s4 : from, from = r.source == 5 ? s5 : from, from = r.source == 6 ? s6 : from;
    from = r.source == 7 ? s7 : from, from = r.source == 8 ? s8 : from, from = r.source == 9 ? s9 : from;
    from = r.source == 10 ? s10 : from, from = r.source == 11 ? s11 : from, from = r.source == 12 ? s12 : from;
    from = r.source == 13 ? s13 : from, from = r.source == 14 ? s14 : from, from = r.source == 15 ? s15 : from;
#ifdef ADDRESSES
    if (a.base[r.source] != 0) from = (DEVICE const u8 *)a.base[r.source];
#endif
  }
  u32 bytes = r.n * width, skip = r.skip * width, cycle = r.source < 0 ? 0 : r.cycle * width;
  u32 unit = unit_of(dst | src | bytes | skip | cycle);
  u32 end = begin + a.piece < bytes ? begin + a.piece : bytes;
  begin /= unit, end /= unit, skip /= unit, cycle /= unit;
  switch (unit) {
  case 16:
    if (a.once) move_piece<uint4, true>(store + dst, from + src, begin, end, skip, cycle, lane_);
    else move_piece<uint4, false>(store + dst, from + src, begin, end, skip, cycle, lane_);
    break;
  case 4: move_piece<u32, false>(store + dst, from + src, begin, end, skip, cycle, lane_); break;
  case 2: move_piece<u16, false>(store + dst, from + src, begin, end, skip, cycle, lane_); break;
  default: move_piece<u8, false>(store + dst, from + src, begin, end, skip, cycle, lane_);
  }
}
ENTRY(move_columns, MoveArgs, 18, 1, move)

// ---- Shift: runs of a row within itself, in place -------------------------

struct ShiftArgs {
  Layout store;
  u32 rows;    // how many have runs
  u32 lanes;   // of a row: heads * the sum of width / unit
  u32 warps;
  u32 tabled;  // the table has the pairs, and behind them the runs
  u32 pair[2 * INLINE];  // of each row, the first run and how many
  Run run[INLINE];       // by row
};

#define SHIFT_BATCH 16u

#define X(c) (*(DEVICE T *)(strip + u64(c) * width))

// shift_some moves m units, or SHIFT_BATCH where FULL, from column src to column
// to and up, or from the columns before src to those before to and down.
template <class T, bool FULL>
FN void shift_some(DEVICE u8 *strip, u32 width, u32 src, u32 to, bool up, u32 m) {
  T v[SHIFT_BATCH];
  if (up) {
    UNROLL for (u32 i = 0; i < SHIFT_BATCH; i++) if (FULL || i < m) v[i] = X(src + i);
    UNROLL for (u32 i = 0; i < SHIFT_BATCH; i++) if (FULL || i < m) X(to + i) = v[i];
  } else {
    UNROLL for (u32 i = 0; i < SHIFT_BATCH; i++) if (FULL || i < m) v[i] = X(src - 1 - i);
    UNROLL for (u32 i = 0; i < SHIFT_BATCH; i++) if (FULL || i < m) X(to - 1 - i) = v[i];
  }
}

// turn_some moves m units, or SHIFT_BATCH where FULL, each to where the one
// before it was, skip columns before it in a cycle of n; the first goes to column
// at, and the column where the last came from is returned.
template <class T, bool FULL>
FN u32 turn_some(DEVICE u8 *strip, u32 width, u32 n, u32 skip, u32 at, u32 m) {
  T v[SHIFT_BATCH];
  u32 p[SHIFT_BATCH + 1], last = at;
  p[0] = at;
  UNROLL for (u32 i = 0; i < SHIFT_BATCH; i++) {
    p[i + 1] = p[i] + skip < n ? p[i] + skip : p[i] + skip - n;
    if (FULL || i < m) v[i] = X(p[i + 1]), last = p[i + 1];
  }
  UNROLL for (u32 i = 0; i < SHIFT_BATCH; i++) if (FULL || i < m) X(p[i]) = v[i];
  return last;
}

// shift_lane does a run for one unit of each column of a strip.
template <class T>
FN void shift_lane(DEVICE u8 *strip, u32 width, PRIVATE const Run &r) {
  if (r.source < 0) {
    T zero;
    clear(zero);
    for (u32 k = 0; k < r.n; k++) X(r.to + k) = zero;
  } else if (r.skip + r.n <= r.cycle) {
    u32 src = r.from + r.skip, k = 0;
    bool up = r.to < src;
    if (r.to == src) return;
    for (; r.n - k >= SHIFT_BATCH; k += SHIFT_BATCH) {
      u32 done = up ? k : r.n - k;
      shift_some<T, true>(strip, width, src + done, r.to + done, up, SHIFT_BATCH);
    }
    shift_some<T, false>(strip, width, src + (up ? k : r.n - k), r.to + (up ? k : r.n - k), up, r.n - k);
  } else {  // the whole cycle turns: each column goes where the one before it was
    u32 turns = r.n, rest = r.skip;  // turns becomes their greatest common divisor
    while (rest > 0) {
      u32 t = turns % rest;
      turns = rest, rest = t;
    }
    strip += u64(r.from) * width;
    for (u32 start = 0; start < turns; start++) {
      T first = X(start);
      u32 at = start, m = r.n / turns - 1;
      for (; m >= SHIFT_BATCH; m -= SHIFT_BATCH) at = turn_some<T, true>(strip, width, r.n, r.skip, at, SHIFT_BATCH);
      at = turn_some<T, false>(strip, width, r.n, r.skip, at, m);
      X(at) = first;
    }
  }
}
#undef X

FN void shift(DEVICE u8 *store, DEVICE const u8 *table, ARGS ShiftArgs &a, u32 warp, u32 lane_) {
  EACH_LANE(lane) {
    u64 i = u64(warp) * LANES + lane;
    u32 which = u32(i / a.lanes), rest = u32(i % a.lanes);
    if (which < a.rows) {
      DEVICE const u32 *pairs = (DEVICE const u32 *)table;
      DEVICE const Run *runs = (DEVICE const Run *)(pairs + 2 * a.rows);
      u32 begin = a.tabled ? pairs[2 * which] : a.pair[2 * which];
      u32 end = begin + (a.tabled ? pairs[2 * which + 1] : a.pair[2 * which + 1]);
      u32 plane = 0, unit = 0, units = 0;
      for (;; plane++) {
        if (a.store.width[plane] == 0) continue;
        unit = unit_of(a.store.width[plane]);
        units = a.store.width[plane] / unit;
        if (rest < units * a.store.heads) break;
        rest -= units * a.store.heads;
      }
      u32 width = a.store.width[plane];
      for (u32 j = begin; j < end; j++) {
        Run r;
        if (a.tabled) r = runs[j];
        else r = a.run[j];
        DEVICE u8 *at = store + rest % units * unit +
                        strip(a.store.plane[plane], width, a.store.columns, a.store.heads, r.dstRow, rest / units);
        switch (unit) {
        case 16: shift_lane<uint4>(at, width, r); break;
        case 4: shift_lane<u32>(at, width, r); break;
        case 2: shift_lane<u16>(at, width, r); break;
        default: shift_lane<u8>(at, width, r);
        }
      }
    }
  }
}
ENTRY(shift_rows, ShiftArgs, 2, 1, shift)

// ---- Close: rows take the places of lower ones, column for column, in place

struct CloseArgs {
  Layout store;
  u32 from, n;  // columns
  u32 pairs;    // source row and destination row, which rise
  u32 warps;
  u64 lanes;
  u32 tabled, unused;
  u32 pair[2 * INLINE];
};

template <class T>
FN void close_lane(DEVICE u8 *at, u64 row, DEVICE const u32 *table, ARGS CloseArgs &a) {
  T v[BATCH];
  u32 rows[2 * BATCH];
  for (u32 j = 0; j < a.pairs; j += BATCH) {
    u32 m = a.pairs - j;
    if (a.tabled) {
      UNROLL for (u32 i = 0; i < 2 * BATCH; i++) rows[i] = i < 2 * m ? table[2 * j + i] : 0;
    } else {
      UNROLL for (u32 i = 0; i < 2 * BATCH; i++) rows[i] = i < 2 * m ? a.pair[2 * j + i] : 0;
    }
    UNROLL for (u32 i = 0; i < BATCH; i++)
      if (i < m) v[i] = *(DEVICE const T *)(at + row * rows[2 * i]);
    UNROLL for (u32 i = 0; i < BATCH; i++)
      if (i < m) *(DEVICE T *)(at + row * rows[2 * i + 1]) = v[i];
  }
}

FN void close(DEVICE u8 *store, DEVICE const u8 *table, ARGS CloseArgs &a, u32 warp, u32 lane_) {
  DEVICE const u32 *pairs = (DEVICE const u32 *)table;
  EACH_LANE(lane) {
    u64 rest = u64(warp) * LANES + lane;
    if (rest < a.lanes) {
      u32 plane = 0, unit = 0;
      u64 units = 0;
      for (;; plane++) {
        if (a.store.width[plane] == 0) continue;
        unit = unit_of(a.store.width[plane]);
        units = u64(a.n) * (a.store.width[plane] / unit);
        if (rest < units * a.store.heads) break;
        rest -= units * a.store.heads;
      }
      u64 columns = u64(a.store.columns) * a.store.width[plane];
      DEVICE u8 *at = store + a.store.plane[plane] + rest / units * columns + u64(a.from) * a.store.width[plane] + rest % units * unit;
      switch (unit) {
      case 16: close_lane<uint4>(at, columns * a.store.heads, pairs, a); break;
      case 4: close_lane<u32>(at, columns * a.store.heads, pairs, a); break;
      case 2: close_lane<u16>(at, columns * a.store.heads, pairs, a); break;
      default: close_lane<u8>(at, columns * a.store.heads, pairs, a);
      }
    }
  }
}
ENTRY(close_ranks, CloseArgs, 2, 1, close)

// ---- Numbers -------------------------------------------------------------

#define BFLOAT16 1u
#define FLOAT16 2u
#define FLOAT32 3u

FN u32 size_of(u32 dtype) { return dtype == FLOAT32 ? 4 : 2; }

FN bool is_nan(f32 x) { return (bits_of(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// Rounding is to nearest, ties to even; every NaN becomes one.
FN u32 to_bfloat16(f32 x) {
  u32 u = bits_of(x);
  return is_nan(x) ? 0x7FC0u : (u + 0x7FFFu + (u >> 16 & 1)) >> 16;
}

FN u32 to_float16(f32 x) {
  u32 u = bits_of(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return 0x7E00u;
  if (magnitude >= 0x47800000u) return sign | 0x7C00u;  // 65536 and above
  if (magnitude < 0x38800000u) return sign | u32(round_even(float_of(magnitude) * 16777216.0f));  // a multiple of 2^-24
  magnitude -= (127 - 15) << 23;
  return sign | (magnitude + 0xFFFu + (magnitude >> 13 & 1)) >> 13;
}

FN f32 from_float16(u32 u) {
#ifdef CONVERTS
  return machine_float16(u);
#endif
  u32 sign = u >> 15 << 31, magnitude = u & 0x7FFFu;
  if (magnitude < 0x0400u) return float_of(sign | bits_of(f32(magnitude) * 5.9604644775390625e-8f));
  if (magnitude >= 0x7C00u) return float_of(sign | 0x7F800000u | magnitude << 13);
  return float_of(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

// widened is the value of a stored number, given in the low bits.
template <u32 DTYPE>
FN f32 widened(u32 u) {
  return DTYPE == BFLOAT16 ? float_of(u << 16) : DTYPE == FLOAT16 ? from_float16(u) : float_of(u);
}

template <u32 DTYPE>
FN u32 rounded(f32 x) {
  return DTYPE == BFLOAT16 ? to_bfloat16(x) : DTYPE == FLOAT16 ? to_float16(x) : is_nan(x) ? 0x7FC00000u : bits_of(x);
}

template <u32 DTYPE>
FN u32 load(DEVICE const u8 *at) {
  return DTYPE == FLOAT32 ? *(DEVICE const u32 *)at : u32(*(DEVICE const u16 *)at);
}

template <u32 DTYPE>
FN void store_rounded(DEVICE u8 *at, f32 x) {
  if (DTYPE == FLOAT32) *(DEVICE u32 *)at = rounded<DTYPE>(x);
  else *(DEVICE u16 *)at = u16(rounded<DTYPE>(x));
}

// eight widens eight numbers that lie side by side: at 16 bytes' alignment, or
// at their own.
template <u32 DTYPE>
FN void eight(PRIVATE f32 *x, DEVICE const u8 *at, bool aligned) {
  if (!aligned) {
    UNROLL for (u32 i = 0; i < 8; i++) x[i] = widened<DTYPE>(load<DTYPE>(at + i * (DTYPE == FLOAT32 ? 4 : 2)));
    return;
  }
  uint4 v = ((DEVICE const uint4 *)at)[0];
  u32 w[8] = {v.x, v.y, v.z, v.w};
  if (DTYPE == FLOAT32) {
    v = ((DEVICE const uint4 *)at)[1];
    w[4] = v.x, w[5] = v.y, w[6] = v.z, w[7] = v.w;
    UNROLL for (u32 i = 0; i < 8; i++) x[i] = float_of(w[i]);
  } else {
    UNROLL for (u32 i = 0; i < 4; i++) x[2 * i] = widened<DTYPE>(w[i] & 0xFFFFu), x[2 * i + 1] = widened<DTYPE>(w[i] >> 16);
  }
}

// ---- Write: new keys, new values and the mask, in one launch ---------------

// Side is the keys or the values: [b, h, n, d] somewhere, and where they go.
struct Side {
  u64 src, stride[3];
  u64 plane[3];  // data, scales, biases
  u32 width[3];
  u32 unit;   // bytes of an access to the tokens
  u32 dim;    // elements, of what is quantized
  u32 parts;  // warps for each head of each row
  u32 warps;
  u32 unused;
};

struct MaskPart {
  u64 offset;
  u32 n, s;
  i32 past, window;
  u32 shift;
  u32 tabled;  // first is in the table
  u32 warps;
  u32 unused;
};

#define FIRSTS 128

struct WriteArgs {
  Side sides[2];
  MaskPart mask;
  u32 heads, columns, at, n;
  u32 group, bits;
  u32 per;  // plain: units for each lane, 1 or BATCH
  u32 warps;
  i32 first[FIRSTS];
};

template <class T, u32 PER>
FN void copy_units(DEVICE u8 *dst, DEVICE const u8 *src, u64 stride, u32 width, u32 units, u32 begin, u32 lane_) {
  u32 each = width / u32(sizeof(T));
  EACH_LANE(lane) {
    T v[PER];
    UNROLL for (u32 i = 0; i < PER; i++) {
      u32 k = begin + i * LANES + lane;
      if (k < units) v[i] = ((DEVICE const T *)(src + k / each * stride))[k % each];
    }
    UNROLL for (u32 i = 0; i < PER; i++) {
      u32 k = begin + i * LANES + lane;
      if (k < units) ((DEVICE T *)dst)[k] = v[i];
    }
  }
}

template <class T>
FN void copy_part(DEVICE u8 *dst, DEVICE const u8 *src, u64 stride, u32 width, u32 n, u32 part, u32 per, u32 lane_) {
  u32 units = n * (width / u32(sizeof(T)));
  if (per == 1) copy_units<T, 1>(dst, src, stride, width, units, part * LANES, lane_);
  else copy_units<T, BATCH>(dst, src, stride, width, units, part * LANES * BATCH, lane_);
}

// write_copy: a warp copies some units of one head of one row.
FN void write_copy(DEVICE u8 *store, DEVICE const u8 *tokens, ARGS WriteArgs &a, ARGS Side &side, u32 warp, u32 lane_) {
  u32 strips = warp / side.parts, part = warp % side.parts, width = side.width[0];
  DEVICE const u8 *src = tokens + side.src + strips / a.heads * side.stride[0] + strips % a.heads * side.stride[1];
  DEVICE u8 *dst = store + side.plane[0] + (u64(strips) * a.columns + a.at) * width;
  switch (side.unit) {
  case 16: copy_part<uint4>(dst, src, side.stride[2], width, a.n, part, a.per, lane_); break;
  case 4: copy_part<u32>(dst, src, side.stride[2], width, a.n, part, a.per, lane_); break;
  case 2: copy_part<u16>(dst, src, side.stride[2], width, a.n, part, a.per, lane_); break;
  default: copy_part<u8>(dst, src, side.stride[2], width, a.n, part, a.per, lane_);
  }
}

// ordered is an integer that is ordered as the number is; it is its own inverse.
FN i32 ordered(i32 b) { return b ^ (b >> 31 & 0x7FFFFFFF); }

// code is the code of an element: NaN and what is below 0 are 0.
FN u32 code(f32 v, f32 scale, f32 bias, f32 largest) {
  f32 x = round_even((v - bias) / scale);
  return !(x > 0) ? 0 : u32(x > largest ? largest : x);
}

// write_quantized: each lane quantizes eight elements of a token; the lanes of
// a group find its range together. The end of the range that is farther from
// zero gets a code of its own, exactly, and zero gets one too.
template <u32 DTYPE>
FN void write_quantized(DEVICE u8 *store, DEVICE const u8 *tokens, ARGS WriteArgs &a, ARGS Side &side, u32 warp, u32 lane_) {
  u32 strips = warp / side.parts, begin = warp % side.parts * LANES, each = side.dim / 8;
  DEVICE const u8 *src = tokens + side.src + strips / a.heads * side.stride[0] + strips % a.heads * side.stride[1];
  u64 column = u64(strips) * a.columns + a.at;
  f32 x[HELD * 8];
  i32 range[HELD * 2], seen[HELD * 2];  // the least, and the least of the negated
  EACH_LANE(lane) {
    u32 k = begin + lane;
    i32 least = 0x7F800000, most = ordered(i32(0xFF800000u));
    if (k < a.n * each) {
      eight<DTYPE>(x + AT(lane, 8, 0), src + k / each * side.stride[2] + k % each * 8 * size_of(DTYPE), side.unit == 16);
      UNROLL for (u32 i = 0; i < 8; i++) {
        f32 v = x[AT(lane, 8, i)];
        i32 o = ordered(i32(bits_of(v)));
        if (!is_nan(v) && o < least) least = o;
        if (!is_nan(v) && o > most) most = o;
      }
    }
    range[AT(lane, 2, 0)] = least, range[AT(lane, 2, 1)] = ~most;
  }
  for (u32 w = a.group / 16; w > 0; w /= 2) {
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < 2; i++) seen[AT(lane, 2, i)] = range[AT(lane, 2, i)];
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < 2; i++) {
      i32 other = FROM(seen, lane ^ w, 2, i);
      if (other < range[AT(lane, 2, i)]) range[AT(lane, 2, i)] = other;
    }
  }
  f32 largest = f32((1u << a.bits) - 1);
  EACH_LANE(lane) {
    u32 k = begin + lane;
    if (k < a.n * each) {
      u32 low = u32(ordered(range[AT(lane, 2, 0)])), high = u32(ordered(~range[AT(lane, 2, 1)]));
      f32 scale = (float_of(high) - float_of(low)) / largest, bias = 0;
      if (scale < 1e-7f) scale = 1e-7f;
      bool below = (low & 0x7FFFFFFFu) > (high & 0x7FFFFFFFu);
      f32 edge = float_of(below ? low : high);
      if (!below) scale = -scale;
      f32 zero = round_even(edge / scale);
      if (!(zero == 0)) scale = edge / zero, bias = edge;
      u64 packed = 0;
      UNROLL for (u32 i = 0; i < 8; i++) packed |= u64(code(x[AT(lane, 8, i)], scale, bias, largest)) << (i * a.bits);
      u64 to = column + k / each;
      DEVICE u8 *codes = store + side.plane[0] + to * side.width[0] + k % each * a.bits;
      switch (a.bits) {
      case 8: *(DEVICE u64 *)codes = packed; break;
      case 4: *(DEVICE u32 *)codes = u32(packed); break;
      case 2: *(DEVICE u16 *)codes = u16(packed); break;
      default:
        for (u32 i = 0; i < a.bits; i++) codes[i] = u8(packed >> (8 * i));
      }
      if (k % (a.group / 8) == 0) {
        u32 group = k % each / (a.group / 8) * size_of(DTYPE);
        store_rounded<DTYPE>(store + side.plane[1] + to * side.width[1] + group, scale);
        store_rounded<DTYPE>(store + side.plane[2] + to * side.width[2] + group, bias);
      }
    }
  }
}

FN u32 clamp16(i32 x) { return x < 0 ? 0 : x > 16 ? 16 : u32(x); }

// ones has a bit for each of 16 columns from c on that is in [begin, end).
FN u32 ones(i32 c, i32 begin, i32 end) { return ((1u << clamp16(end - c)) - 1) & ~((1u << clamp16(begin - c)) - 1); }

// spread makes four bytes of four bits.
FN u32 spread(u32 bits) { return (bits & 15u) * 0x00204081u & 0x01010101u; }

// write_mask: a warp writes one query's row of the mask.
FN void write_mask(DEVICE u8 *mask, DEVICE const u8 *table, ARGS WriteArgs &a, u32 warp, u32 lane_) {
  i32 s = i32(a.mask.s), last = a.mask.past + i32(warp % a.mask.n);
  i32 begin = a.mask.tabled ? ((DEVICE const i32 *)table)[warp / a.mask.n] : a.first[warp / a.mask.n];
  i32 end = last + 1 < s ? last + 1 : s;
  if (end < 0) end = 0;
  if (begin < last + 1 - a.mask.window) begin = last + 1 - a.mask.window;
  if (begin < 0) begin = 0;
  if (begin > end) begin = end;
  // As stored, ones are one range or two.
  begin += i32(a.mask.shift), end += i32(a.mask.shift);
  i32 begin1 = begin < s ? begin : s, end1 = end < s ? end : s;
  i32 begin2 = begin > s ? begin - s : 0, end2 = end > s ? end - s : 0;
  u64 at = a.mask.offset + u64(warp) * a.mask.s;
  i32 head = i32((16 - (at & 15)) & 15);
  if (head > s) head = s;
  i32 tail = head + (s - head) / 16 * 16;
  EACH_LANE(lane) {
    i32 c = i32(lane);
    if (c < head) mask[at + u64(c)] = u8((begin1 <= c && c < end1) || (begin2 <= c && c < end2));
    for (c = head + i32(lane) * 16; c < tail; c += 16 * i32(LANES)) {
      u32 set = ones(c, begin1, end1) | ones(c, begin2, end2);
      uint4 v;
      v.x = spread(set), v.y = spread(set >> 4), v.z = spread(set >> 8), v.w = spread(set >> 12);
      *(DEVICE uint4 *)(mask + at + u64(c)) = v;
    }
    c = tail + i32(lane);
    if (c < s) mask[at + u64(c)] = u8((begin1 <= c && c < end1) || (begin2 <= c && c < end2));
  }
}

// write: DTYPE 0 copies, others quantize.
template <u32 DTYPE>
FN void write(DEVICE u8 *store, DEVICE const u8 *keys, DEVICE const u8 *values, DEVICE u8 *mask, DEVICE const u8 *table,
              ARGS WriteArgs &a, u32 warp, u32 lane_) {
  u32 side = warp < a.sides[0].warps ? 0 : 1;
  if (side == 1) warp -= a.sides[0].warps;
  if (side == 1 && warp >= a.sides[1].warps) {
    write_mask(mask, table, a, warp - a.sides[1].warps, lane_);
  } else if (DTYPE == 0) {
    write_copy(store, side == 0 ? keys : values, a, a.sides[side], warp, lane_);
  } else {
    write_quantized<DTYPE == 0 ? BFLOAT16 : DTYPE>(store, side == 0 ? keys : values, a, a.sides[side], warp, lane_);
  }
}
ENTRY(write_plain, WriteArgs, 5, 1, write<0>)
ENTRY(write_quantized_bfloat16, WriteArgs, 5, 1, write<BFLOAT16>)
ENTRY(write_quantized_float16, WriteArgs, 5, 1, write<FLOAT16>)
ENTRY(write_quantized_float32, WriteArgs, 5, 1, write<FLOAT32>)

// ---- Attention -------------------------------------------------------------

struct AttendArgs {
  u64 keys[3], values[3];  // planes
  u64 query, stride[3];
  u64 mask, out;
  u64 sums, totals;  // of the splits
  u32 keyWidth[3], valueWidth[3];
  u32 heads, columns, from, s;
  u32 keyDim, valueDim;
  u32 ratio, n;  // query heads for each head, queries of a head
  u32 dtype, group, bits;
  u32 masked;  // 0: causal
  u32 splits, tiles;  // tiles of LANES columns in a split
  u32 chunks;         // of queries
  u32 blocks;         // of WIDE elements of values
  u32 warps;
  f32 scale;
  u32 joined;  // the splits are the warps of a group, the last of which joins them
  u32 unused;
};

// How columns are stored.
#define ANY_PLAIN 0
#define PLAIN_BFLOAT16 1
#define PLAIN_FLOAT16 2
#define PLAIN_FLOAT32 3
#define FOUR_BFLOAT16 4
#define FOUR_FLOAT16 5
#define ANY_QUANTIZED 6

// A warp holds WIDE elements of a column at once, E in each of WIDE/E lanes.
#define WIDE 128u

// Reader is where a lane reads its part of the columns of one side.
struct Reader {
  DEVICE const u8 *data;
  DEVICE const u8 *scales;
  DEVICE const u8 *biases;
  u32 width, scaleWidth;
  u32 left;  // elements from the lane's first on; 0: the lane has none, and reads others'
  u32 dtype, bits;
};

// Part is a lane's part of a column, as it is stored.
struct Part { u32 w[8]; };

FN f32 widened_any(u32 dtype, DEVICE const u8 *at) {
  return dtype == BFLOAT16  ? widened<BFLOAT16>(load<BFLOAT16>(at))
         : dtype == FLOAT16 ? widened<FLOAT16>(load<FLOAT16>(at))
                            : widened<FLOAT32>(load<FLOAT32>(at));
}

FN f32 rounded_any(u32 dtype, f32 x) {
#ifdef CONVERTS
  return dtype == BFLOAT16 ? machine_round_bfloat16(x) : dtype == FLOAT16 ? machine_round_float16(x) : x;
#endif
  return dtype == BFLOAT16  ? widened<BFLOAT16>(rounded<BFLOAT16>(x))
         : dtype == FLOAT16 ? widened<FLOAT16>(rounded<FLOAT16>(x))
                            : x;
}

// reader begins at element e of the first column of a strip.
template <int HOW>
FN Reader reader(DEVICE const u8 *store, ARGS u64 *planes, ARGS u32 *widths, u64 columns, u32 e, u32 dim, ARGS AttendArgs &a) {
  Reader r;
  r.left = e < dim ? dim - e : 0;
  if (e >= dim) e = 0;
  r.width = widths[0], r.scaleWidth = widths[1], r.dtype = a.dtype, r.bits = a.bits;
  r.data = store + planes[0] + columns * r.width;
  r.scales = r.biases = store;
  if (HOW < FOUR_BFLOAT16) {
    r.data += e * size_of(a.dtype);
  } else {
    r.data += e / 8 * a.bits;
    u64 group = columns * r.scaleWidth + e / a.group * size_of(a.dtype);
    r.scales += planes[1] + group, r.biases += planes[2] + group;
  }
  return r;
}

// fetch reads a lane's part of a column.
template <int HOW, u32 E>
FN Part fetch(PRIVATE const Reader &r, u32 column) {
  Part x;
  DEVICE const u8 *data = r.data + u64(column) * r.width;
  if (HOW == ANY_PLAIN) {
    for (u32 i = 0; i < E; i++) x.w[i] = i < r.left ? bits_of(widened_any(r.dtype, data + i * size_of(r.dtype))) : 0;
  } else if (HOW == ANY_QUANTIZED) {
    u64 codes = 0;
    for (u32 i = 0; i < r.bits; i++) codes |= u64(data[i]) << (8 * i);
    x.w[0] = u32(codes), x.w[1] = u32(codes >> 32);
    x.w[2] = bits_of(widened_any(r.dtype, r.scales + u64(column) * r.scaleWidth));
    x.w[3] = bits_of(widened_any(r.dtype, r.biases + u64(column) * r.scaleWidth));
  } else {
    if (HOW >= FOUR_BFLOAT16 && E == 8) {
      x.w[0] = *(DEVICE const u32 *)data;
    } else {
      uint4 v = ((DEVICE const uint4 *)data)[0];
      x.w[0] = v.x, x.w[1] = v.y, x.w[2] = v.z, x.w[3] = v.w;
    }
    if (HOW == PLAIN_FLOAT32) {
      uint4 v = ((DEVICE const uint4 *)data)[1];
      x.w[4] = v.x, x.w[5] = v.y, x.w[6] = v.z, x.w[7] = v.w;
    }
    if (HOW >= FOUR_BFLOAT16) {
      x.w[4] = *(DEVICE const u16 *)(r.scales + u64(column) * r.scaleWidth);
      x.w[5] = *(DEVICE const u16 *)(r.biases + u64(column) * r.scaleWidth);
    }
  }
  return x;
}

// value makes numbers of what fetch has read. Dequantizing rounds twice, the
// product and then the sum.
template <int HOW, u32 E>
FN void value(PRIVATE f32 *x, PRIVATE const Reader &r, PRIVATE const Part &v) {
  if (HOW == ANY_PLAIN || HOW == PLAIN_FLOAT32) {
    UNROLL for (u32 i = 0; i < 8; i++) x[i] = float_of(v.w[i]);
  } else if (HOW == PLAIN_BFLOAT16) {
    UNROLL for (u32 i = 0; i < 4; i++) x[2 * i] = float_of(v.w[i] << 16), x[2 * i + 1] = float_of(v.w[i] & 0xFFFF0000u);
  } else if (HOW == PLAIN_FLOAT16) {
    UNROLL for (u32 i = 0; i < 4; i++) x[2 * i] = from_float16(v.w[i] & 0xFFFFu), x[2 * i + 1] = from_float16(v.w[i] >> 16);
  } else if (HOW == ANY_QUANTIZED) {
    u64 codes = v.w[0] | u64(v.w[1]) << 32;
    for (u32 i = 0; i < E; i++) {
      f32 product = f32(u32(codes >> (i * r.bits)) & ((1u << r.bits) - 1)) * float_of(v.w[2]);
      x[i] = rounded_any(r.dtype, rounded_any(r.dtype, product) + float_of(v.w[3]));
    }
  } else {
#ifdef PAIRS
    // Codes i and i+4 of a word are a pair: with bits in front a code is 128, or
    // 1024, more. Taking that away is exact; times scale, and then plus bias,
    // round as the canonical arithmetic does.
    u32 scale = v.w[4] | v.w[4] << 16, bias = v.w[5] | v.w[5] << 16;
    UNROLL for (u32 i = 0; i < E / 2; i++) {
      u32 codes = v.w[i / 4] >> (4 * (i % 4)), low = i / 4 * 8 + i % 4;
      if (HOW == FOUR_BFLOAT16) {
        codes = pair_fma_bfloat16(tagged(codes, 0x000F000Fu, 0x43004300u), 0x3F803F80u, 0xC300C300u);
        u32 two = pair_fma_bfloat16(pair_fma_bfloat16(codes, scale, 0x80008000u), 0x3F803F80u, bias);
        x[low] = float_of(two << 16), x[low + 4] = float_of(two & 0xFFFF0000u);
      } else {
        codes = pair_fma_float16(tagged(codes, 0x000F000Fu, 0x64006400u), 0x3C003C00u, 0xE400E400u);
        u32 two = pair_fma_float16(pair_fma_float16(codes, scale, 0x80008000u), 0x3C003C00u, bias);
        x[low] = from_float16(two & 0xFFFFu), x[low + 4] = from_float16(two >> 16);
      }
    }
#else
    const u32 dtype = HOW == FOUR_BFLOAT16 ? BFLOAT16 : FLOAT16;
    f32 scale = widened<dtype>(v.w[4]), bias = widened<dtype>(v.w[5]);
    UNROLL for (u32 i = 0; i < E; i++) {
      f32 product = f32(v.w[i / 8] >> (4 * (i % 8)) & 15u) * scale;
      x[i] = rounded_any(dtype, rounded_any(dtype, product) + bias);
    }
#endif
  }
}

// queried widens elements e to e+E-1 of a query; those behind its end are 0.
template <int HOW, u32 E>
FN void queried(PRIVATE f32 *x, DEVICE const u8 *query, u32 dtype, u32 dim, u32 e) {
  UNROLL for (u32 i = 0; i < E; i++) x[i] = 0;
  if (HOW == ANY_PLAIN || HOW == ANY_QUANTIZED) {
    for (u32 i = 0; i < E; i++)
      if (e + i < dim) x[i] = widened_any(dtype, query + (e + i) * size_of(dtype));
  } else if (e < dim) {
    UNROLL for (u32 i = 0; i < E; i += 8) {
      if (HOW == PLAIN_BFLOAT16 || HOW == FOUR_BFLOAT16) eight<BFLOAT16>(x + i, query + 2 * (e + i), true);
      else if (HOW == PLAIN_FLOAT32) eight<FLOAT32>(x + i, query + 4 * (e + i), true);
      else eight<FLOAT16>(x + i, query + 2 * (e + i), true);
    }
  }
}

// exponential is e to the x for x of at most 0, to about one unit in the last
// place; below -87 it is that of -87, which no sum with a 1 in it notices. NaN
// stays.
FN f32 exponential(f32 x) {
  if (x < -87.0f) x = -87.0f;
#ifdef POWERS
  return machine_power(x * 1.44269502f);
#endif
  // x = n ln 2 + r; the first part of ln 2 is so short that n times it is exact.
  f32 n = round_even(x * 1.44269502f);
  f32 r = x - n * 0.693359375f;
  r = r + n * 2.12194442e-4f;
  f32 p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return n > -1000.0f ? float_of(bits_of(p) + (u32(i32(n)) << 23)) : p;
}

// sum_lanes and most_lanes give each lane the sum, or the most, of all lanes'
// numbers, for N numbers each.
template <u32 N>
FN void sum_lanes(PRIVATE f32 *x, u32 lane_) {
  f32 seen[HELD * N];
  UNROLL for (u32 w = LANES / 2; w > 0; w /= 2) {
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < N; i++) seen[AT(lane, N, i)] = x[AT(lane, N, i)];
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < N; i++) x[AT(lane, N, i)] += FROM(seen, lane ^ w, N, i);
  }
}

template <u32 N>
FN void most_lanes(PRIVATE f32 *x, u32 lane_) {
  f32 seen[HELD * N];
  UNROLL for (u32 w = LANES / 2; w > 0; w /= 2) {
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < N; i++) seen[AT(lane, N, i)] = x[AT(lane, N, i)];
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < N; i++) {
      f32 other = FROM(seen, lane ^ w, N, i);
      if (other > x[AT(lane, N, i)]) x[AT(lane, N, i)] = other;
    }
  }
}

// exchange halves the numbers that a lane has a part of each of: lanes APART
// from each other swap halves, W numbers for each query, and add.
template <u32 APART, u32 W, u32 Q, u32 N>
FN void exchange(PRIVATE f32 *x, u32 lane_) {
  f32 sent[HELD * W * Q];
  EACH_LANE(lane) UNROLL for (u32 i = 0; i < W * Q; i++) {
    f32 low = x[AT(lane, N * Q, i)], high = x[AT(lane, N * Q, i + W * Q)];
    bool upper = (lane & APART) != 0;
    x[AT(lane, N * Q, i)] = upper ? high : low;
    sent[AT(lane, W * Q, i)] = upper ? low : high;
  }
  EACH_LANE(lane) UNROLL for (u32 i = 0; i < W * Q; i++) x[AT(lane, N * Q, i)] += FROM(sent, lane ^ APART, W * Q, i);
}

// joined is the weight of a split among all; one that admits nothing has none.
FN f32 joined(DEVICE const f32 *totals, u32 i, f32 most) {
  return totals[2 * i + 1] == 0 ? 0 : exponential(totals[2 * i] - most);
}

// join joins the splits of one query, LANES of them at a time.
FN void join(DEVICE u8 *out, DEVICE const u8 *partial, u32 flat, u64 to, u64 sumsAt, u64 totalsAt, u32 splits, u32 valueDim, u32 lane_) {
  DEVICE const f32 *totals = (DEVICE const f32 *)(partial + totalsAt) + 2 * u64(flat) * splits;
  DEVICE const f32 *sums = (DEVICE const f32 *)(partial + sumsAt) + u64(flat) * splits * valueDim;
  f32 most[HELD], total[HELD], weights[HELD];
  EACH_LANE(lane) {
    f32 x = -float_of(0x7F800000u);
    for (u32 i = lane; i < splits; i += LANES) x = totals[2 * i] > x ? totals[2 * i] : x;
    most[AT(lane, 1, 0)] = x, total[AT(lane, 1, 0)] = 0;
  }
  most_lanes<1>(most, lane_);
  EACH_LANE(lane)
    for (u32 i = lane; i < splits; i += LANES) total[AT(lane, 1, 0)] += joined(totals, i, most[AT(lane, 1, 0)]) * totals[2 * i + 1];
  sum_lanes<1>(total, lane_);
  for (u32 begin = 0; begin < valueDim; begin += 4 * LANES) {
    f32 sum[HELD * 4];
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < 4; i++) sum[AT(lane, 4, i)] = 0;
    for (u32 i0 = 0; i0 < splits; i0 += LANES) {
      EACH_LANE(lane) weights[AT(lane, 1, 0)] = i0 + lane < splits ? joined(totals, i0 + lane, most[AT(lane, 1, 0)]) : 0;
      for (u32 j = 0; j < LANES && i0 + j < splits; j += 4) {
        EACH_LANE(lane) {
          f32 part[16];
          UNROLL for (u32 i = 0; i < 16; i++) {
            u32 split = i0 + j + i / 4, e = begin + i % 4 * LANES + lane;
            part[i] = split < splits && e < valueDim ? sums[split * valueDim + e] : 0;
          }
          UNROLL for (u32 i = 0; i < 16; i++) {
            f32 weight = FROM(weights, j + i / 4, 1, 0);
            if (!(weight == 0)) sum[AT(lane, 4, i % 4)] = add_product(weight, part[i], sum[AT(lane, 4, i % 4)]);
          }
        }
      }
    }
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < 4; i++) {
      u32 e = begin + i * LANES + lane;
      f32 all = total[AT(lane, 1, 0)];
      if (e < valueDim) ((DEVICE f32 *)(out + to))[u64(flat) * valueDim + e] = all == 0 ? 0 : sum[AT(lane, 4, i)] / all;
    }
  }
}

#ifdef MATRICES
// Affine is two scales and two biases in bfloat16, for two codes.
struct Affine { u32 scale, bias, offset; };

FN Affine affine(u32 scale, u32 bias) {
  Affine x;
  x.scale = scale, x.bias = bias, x.offset = 0;
#ifdef PAIRS
  x.offset = pair_fma_bfloat16(scale, 0xC300C300u, 0x80008000u);
#endif
  return x;
}

// dequantized is two bfloat16 of the codes in the low 4 bits of each half.
FN u32 dequantized(u32 codes, PRIVATE const Affine &x) {
#ifdef PAIRS
  // With bits in front a code is 128 more; what that adds to its product is
  // taken away before the product is rounded.
  u32 product = pair_fma_bfloat16(tagged(codes, 0x000F000Fu, 0x43004300u), x.scale, x.offset);
  return pair_fma_bfloat16(product, 0x3F803F80u, x.bias);
#else
  u32 two = 0;
  for (u32 i = 0; i < 32; i += 16) {
    f32 product = f32(codes >> i & 15u) * widened<BFLOAT16>(x.scale >> i & 0xFFFFu);
    two |= to_bfloat16(rounded_any(BFLOAT16, product) + widened<BFLOAT16>(x.bias >> i & 0xFFFFu)) << i;
  }
  return two;
#endif
}

// admitted_at is whether the lane's column of a tile is admitted. The last tile
// may begin in the one before it, whose columns it then does not admit.
FN u32 admitted_at(DEVICE const u8 *mask, ARGS AttendArgs &a, u32 row, u32 tile, u32 end, u32 lane) {
  u32 column = (tile < a.s - LANES ? tile : a.s - LANES) + lane;
  return column >= tile && column < end && (!a.masked || mask[a.mask + u64(row) * a.s + column] != 0);
}

FN bool is_finite(f32 x) { return (bits_of(x) & 0x7F800000u) != 0x7F800000u; }

// attend_four is attend for one query and columns of WIDE codes of 4 bits, with
// two scales in bfloat16: products of matrices (see multiply) make its sums.
// Lane 4g+t has the score and the weight of column 4g+t of a tile, and in the end
// elements 16g+4t to 16g+4t+3 of the sums.
//
// Keys are 16 columns by 16 elements; of columns 4g to 4g+3 the lane has elements
// 32t to 32t+31, in pairs of one and the fourth from there. The query is all 8
// columns of the other matrix, so that each lane gets the scores of its four
// columns. Values are 16 elements by 16 columns; of columns t, 4+t, 8+t and so on
// the lane has elements 16g to 16g+15. The first two columns of the other matrix
// are the weights, in two parts of 8 bits; the others are of no account.
//
// What is not admitted is read, and multiplied by 0. It is false where something
// infinite or no number has come up, be it there or because parts of a weight
// multiply infinity otherwise than the whole: then attend has to do without.
FN bool attend_four(DEVICE const u8 *store, DEVICE const u8 *query, DEVICE const u8 *mask, ARGS AttendArgs &a, u32 row, u32 head,
                    u32 first, u32 end, PRIVATE f32 *sums, PRIVATE f32 *most, PRIVATE f32 *total, u32 lane_) {
  const u32 width = WIDE / 2, scaled = 4;  // bytes of a column
  u64 columns = (u64(row) * a.heads + head) * a.columns + a.from;
  u32 pairs[HELD * 16];  // of the query
  f32 all[HELD * 32];    // sums of weighted values
  u32 admits[HELD], next[HELD];
  EACH_LANE(lane) {
    DEVICE const uint4 *q = (DEVICE const uint4 *)(query + a.query + row * a.stride[0] + head * a.stride[1]) + lane % 4 * 4;
    UNROLL for (u32 i = 0; i < 4; i++) {
      uint4 v = q[i];
      u32 to = AT(lane, 16, 4 * i);
      pairs[to] = halves(v.x, v.z, false), pairs[to + 1] = halves(v.x, v.z, true);
      pairs[to + 2] = halves(v.y, v.w, false), pairs[to + 3] = halves(v.y, v.w, true);
    }
    UNROLL for (u32 i = 0; i < 32; i++) all[AT(lane, 32, i)] = 0;
    most[AT(lane, 1, 0)] = -float_of(0x7F800000u), total[AT(lane, 1, 0)] = 0;
    next[AT(lane, 1, 0)] = admitted_at(mask, a, row, first, end, lane);
  }
  // The first tile is read before it is known whether anything of it is admitted.
  for (u32 tile = first; tile < end; tile += LANES) {
    u32 at = tile < a.s - LANES ? tile : a.s - LANES;
    EACH_LANE(lane) {
      admits[AT(lane, 1, 0)] = next[AT(lane, 1, 0)];
      next[AT(lane, 1, 0)] = admitted_at(mask, a, row, tile + LANES, end, lane);
    }
    if (tile != first && ballot(admits) == 0) continue;

    u32 keys[HELD * 16], keyScales[HELD * 4], keyBiases[HELD * 4];
    u32 values[HELD * 16], valueScales[HELD * 8], valueBiases[HELD * 8];
    EACH_LANE(lane) {
      u64 from = columns + at + lane / 4 * 4;
      UNROLL for (u32 c = 0; c < 4; c++) {
        uint4 v = *(DEVICE const uint4 *)(store + a.keys[0] + from * width + c * width + lane % 4 * 16);
        u32 to = AT(lane, 16, 4 * c);
        keys[to] = v.x, keys[to + 1] = v.y, keys[to + 2] = v.z, keys[to + 3] = v.w;
      }
      UNROLL for (u32 c = 0; c < 4; c++) {
        keyScales[AT(lane, 4, c)] = *(DEVICE const u32 *)(store + a.keys[1] + from * scaled + c * scaled);
        keyBiases[AT(lane, 4, c)] = *(DEVICE const u32 *)(store + a.keys[2] + from * scaled + c * scaled);
      }
    }
    EACH_LANE(lane) {
      u64 from = columns + at + lane % 4;
      UNROLL for (u32 c = 0; c < 8; c++) {
        u64 v = *(DEVICE const u64 *)(store + a.values[0] + from * width + 4 * c * width + lane / 4 * 8);
        values[AT(lane, 16, 2 * c)] = u32(v), values[AT(lane, 16, 2 * c + 1)] = u32(v >> 32);
      }
      UNROLL for (u32 c = 0; c < 8; c++) {
        valueScales[AT(lane, 8, c)] = *(DEVICE const u32 *)(store + a.values[1] + from * scaled + 4 * c * scaled);
        valueBiases[AT(lane, 8, c)] = *(DEVICE const u32 *)(store + a.values[2] + from * scaled + 4 * c * scaled);
      }
    }

    f32 scores[HELD * 8];
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < 8; i++) scores[AT(lane, 8, i)] = 0;
    UNROLL for (u32 half = 0; half < 2; half++) {
      u32 x[HELD * 32];
      EACH_LANE(lane) UNROLL for (u32 i = 0; i < 2; i++) {
        u32 c = 2 * half + i, scale = keyScales[AT(lane, 4, c)], bias = keyBiases[AT(lane, 4, c)];
        bool second = lane % 4 >= 2;  // of the scales
        Affine f = affine(halves(scale, scale, second), halves(bias, bias, second));
        UNROLL for (u32 w = 0; w < 16; w++) x[AT(lane, 32, 2 * w + i)] = dequantized(keys[AT(lane, 16, 4 * c + w / 4)] >> (4 * (w % 4)), f);
      }
      UNROLL for (u32 i = 0; i < 8; i++) multiply(scores, 8, 4 * half, x, 32, 4 * i, pairs, 16, 2 * i);
    }

    f32 weights[HELD], newest[HELD];
    u32 more[HELD], halved[HELD], parts[HELD * 4];
    EACH_LANE(lane) {
      bool odd = (lane & 1) != 0;
      f32 low = odd ? scores[AT(lane, 8, 2)] : scores[AT(lane, 8, 0)], high = odd ? scores[AT(lane, 8, 6)] : scores[AT(lane, 8, 4)];
      f32 score = ((lane & 2) != 0 ? high : low) * a.scale, so_far = most[AT(lane, 1, 0)];
      weights[AT(lane, 1, 0)] = score;
      newest[AT(lane, 1, 0)] = admits[AT(lane, 1, 0)] != 0 && score > so_far ? score : so_far;
      more[AT(lane, 1, 0)] = newest[AT(lane, 1, 0)] > so_far;
    }
    if (ballot(more) != 0) {
      most_lanes<1>(newest, lane_);
      EACH_LANE(lane) {
        f32 old = exponential(most[AT(lane, 1, 0)] - newest[AT(lane, 1, 0)]);
        most[AT(lane, 1, 0)] = newest[AT(lane, 1, 0)];
        total[AT(lane, 1, 0)] *= old;
        UNROLL for (u32 i = 0; i < 32; i++) all[AT(lane, 32, i)] *= old;
      }
    }
    EACH_LANE(lane) {
      f32 weight = admits[AT(lane, 1, 0)] != 0 ? exponential(weights[AT(lane, 1, 0)] - most[AT(lane, 1, 0)]) : 0;
      // What two parts leave out is left out of the total, too.
      f32 part = rounded_any(BFLOAT16, weight), rest = rounded_any(BFLOAT16, weight - part);
      halved[AT(lane, 1, 0)] = halves(bits_of(part), bits_of(rest), true);
      total[AT(lane, 1, 0)] += part + rest;
    }
    EACH_LANE(lane) UNROLL for (u32 i = 0; i < 4; i++) {
      u32 one = FROM(halved, 8 * i + lane % 4, 1, 0), two = FROM(halved, 8 * i + 4 + lane % 4, 1, 0);
      parts[AT(lane, 4, i)] = halves(one, two, (lane & 4) != 0);
    }

    UNROLL for (u32 half = 0; half < 2; half++) {
      u32 x[HELD * 32];
      EACH_LANE(lane) UNROLL for (u32 i = 0; i < 2; i++) {
        u32 c = 4 * half + 2 * i, scale = AT(lane, 8, c), value = AT(lane, 16, 2 * c);  // and the next column's
        bool second = lane >= 16;
        Affine f = affine(halves(valueScales[scale], valueScales[scale + 1], second), halves(valueBiases[scale], valueBiases[scale + 1], second));
        UNROLL for (u32 w = 0; w < 2; w++) {
          u32 low = halves(values[value + w], values[value + 2 + w], false), high = halves(values[value + w], values[value + 2 + w], true);
          UNROLL for (u32 e = 0; e < 4; e++) {
            u32 to = AT(lane, 32, 16 * w + e / 2 * 4 + e % 2 + 2 * i);
            x[to] = dequantized(low >> (4 * e), f), x[to + 8] = dequantized(high >> (4 * e), f);
          }
        }
      }
      UNROLL for (u32 i = 0; i < 8; i++) multiply(all, 32, 4 * i, x, 32, 4 * i, parts, 4, 2 * half);
    }
  }

  f32 ends[HELD * 16];
  u32 unsound[HELD];
  EACH_LANE(lane) UNROLL for (u32 i = 0; i < 16; i++)
    ends[AT(lane, 16, i)] = lane % 4 == 0 ? all[AT(lane, 32, 2 * i)] + all[AT(lane, 32, 2 * i + 1)] : 0;
  exchange<2, 8, 1, 16>(ends, lane_);
  exchange<1, 4, 1, 16>(ends, lane_);
  sum_lanes<1>(total, lane_);
  EACH_LANE(lane) {
    unsound[AT(lane, 1, 0)] = !is_finite(total[AT(lane, 1, 0)]);
    UNROLL for (u32 i = 0; i < 4; i++) {
      sums[AT(lane, 4, i)] = ends[AT(lane, 16, i)];
      if (!is_finite(ends[AT(lane, 16, i)])) unsound[AT(lane, 1, 0)] = 1;
    }
  }
  return ballot(unsound) == 0;
}
#endif

// conclude stores four sums for each query of a lane, from element e on, in the
// output or, where the columns are split, as those of a split.
template <u32 Q, u32 N>
FN void conclude(DEVICE u8 *out, DEVICE u8 *partial, ARGS AttendArgs &a, PRIVATE const u32 *flat, u32 count, u32 split, bool leads,
                 u32 e, PRIVATE const f32 *sums, PRIVATE const f32 *most, PRIVATE const f32 *total, u32 lane) {
  DEVICE f32 *results = a.splits == 1 ? (DEVICE f32 *)(out + a.out) : (DEVICE f32 *)(partial + a.sums);
  UNROLL for (u32 q = 0; q < Q; q++) {
    if (q < count) {
      f32 all = total[AT(lane, Q, q)];
      u64 to = u64(flat[q]) * a.splits + split;
      if (a.splits > 1) {
        DEVICE f32 *totals = (DEVICE f32 *)(partial + a.totals) + 2 * to;
        if (lane == 0 && leads) totals[0] = most[AT(lane, Q, q)], totals[1] = all;
        all = 1;
      }
      f32 part = all == 0 ? 0 : 1 / all;
      UNROLL for (u32 i = 0; i < 4; i++)
        if (e + i < a.valueDim) results[to * a.valueDim + e + i] = sums[AT(lane, N * Q, i * Q + q)] * part;
    }
  }
}

// attend: a warp sums the values of one split of the columns of one head of one
// row, for up to Q of its queries, tile by tile, with a running maximum and a
// running sum of weights. Lanes share columns, so that loads lie side by side;
// what they have of products is then exchanged so that each lane has the score
// of one column.
template <int HOW, u32 Q, u32 E>
FN void attend(DEVICE const u8 *store, DEVICE const u8 *query, DEVICE const u8 *mask, DEVICE u8 *out, DEVICE u8 *partial,
               ARGS AttendArgs &a, u32 warp, u32 lane_) {
  const u32 share = WIDE / E;           // lanes that share a column
  const u32 steps = share;              // columns of a tile that a lane sees
  const u32 together = LANES / share;   // columns that a warp reads at once
  const u32 batch = steps > 4 && Q > 1 ? 4 : steps > BATCH ? BATCH : steps;  // of them, at once
  const u32 some = HOW == ANY_PLAIN || HOW == ANY_QUANTIZED ? 1 : 16;  // what is rare need not be fast
  u32 rest = warp, split = 0;
  if (a.joined) split = rest % a.splits, rest /= a.splits;
  u32 chunk = rest % a.chunks; rest /= a.chunks;
  u32 block = rest % a.blocks * WIDE; rest /= a.blocks;
  if (!a.joined) split = rest % a.splits, rest /= a.splits;
  u32 head = rest % a.heads, row = rest / a.heads;

  // The chunk's queries: heads of the group first. Those behind the last repeat
  // it, and admit nothing.
  u32 count = a.ratio * a.n - chunk * Q, flat[Q], place[Q];
  u64 at[Q];
  i32 reach = 0;  // columns before this one are all that any query admits
  if (count > Q) count = Q;
  UNROLL for (u32 q = 0; q < Q; q++) {
    u32 i = chunk * Q + (q < count ? q : count - 1), h = head * a.ratio + i / a.n;
    place[q] = i % a.n;
    flat[q] = (row * a.ratio * a.heads + h) * a.n + place[q];
    at[q] = a.query + row * a.stride[0] + h * a.stride[1] + place[q] * a.stride[2];
    i32 end = a.masked ? i32(a.s) : i32(a.s) - i32(a.n) + i32(place[q]) + 1;
    if (end > reach) reach = end;
  }
  u32 first = split * a.tiles * LANES, end = first + a.tiles * LANES;
  if (end > u32(reach)) end = u32(reach);

  bool done = false;
#ifdef MATRICES
  if (Q == 1 && HOW == FOUR_BFLOAT16 && a.group == WIDE / 2 && a.keyDim == WIDE && a.valueDim == WIDE && a.s >= LANES) {
    f32 sums[HELD * 4], most[HELD], total[HELD];
    done = attend_four(store, query, mask, a, row, head, first, end, sums, most, total, lane_);
    if (done) EACH_LANE(lane) conclude<1, 4>(out, partial, a, flat, count, split, true, 4 * lane, sums, most, total, lane);
  }
#endif
  if (!done) {
    Reader keys[HELD], values[HELD];
    f32 products[HELD * steps * Q];
    f32 sums[HELD * E * Q];  // of weighted values
    f32 most[HELD * Q], total[HELD * Q], weights[HELD * Q], newest[HELD * Q];
    u32 admits[HELD], next[HELD];  // a bit for each query, for the lane's column
    u64 columns = (u64(row) * a.heads + head) * a.columns + a.from;
    EACH_LANE(lane) {
      keys[AT(lane, 1, 0)] = reader<HOW>(store, a.keys, a.keyWidth, columns, lane % share * E, a.keyDim, a);
      values[AT(lane, 1, 0)] = reader<HOW>(store, a.values, a.valueWidth, columns, block + lane % share * E, a.valueDim, a);
      UNROLL for (u32 i = 0; i < E * Q; i++) sums[AT(lane, E * Q, i)] = 0;
      UNROLL for (u32 q = 0; q < Q; q++) most[AT(lane, Q, q)] = -float_of(0x7F800000u), total[AT(lane, Q, q)] = 0;
      next[AT(lane, 1, 0)] = 0;
    }
    // One tile more than there are, in front: it only looks ahead.
    for (u32 tile = first - LANES; i32(tile) < i32(end); tile += LANES) {
      EACH_LANE(lane) {
        u32 set = 0, column = tile + LANES + lane % share * together + lane / share;
        admits[AT(lane, 1, 0)] = next[AT(lane, 1, 0)];
        if (column < end) {
          UNROLL for (u32 q = 0; q < Q; q++) {
            bool yes = a.masked ? mask[a.mask + (u64(row) * a.n + place[q]) * a.s + column] != 0
                                : i32(column) <= i32(a.s) - i32(a.n) + i32(place[q]);
            if (yes && q < count) set |= 1u << q;
          }
        }
        next[AT(lane, 1, 0)] = set;
      }
      u32 admitted = ballot(admits);
      if (admitted == 0) continue;
      // A column that no query admits is not read: one that is stands in for it.
      u32 stand_in = lowest(admitted);
      stand_in = tile + stand_in % share * together + stand_in / share;
#define COLUMN(step) ((admitted >> (lane / share * share) >> (step) & 1) != 0 ? tile + (step) * together + lane / share : stand_in)

      for (u32 e = 0; e < a.keyDim; e += WIDE) {
        EACH_LANE(lane) {
          Reader r = keys[AT(lane, 1, 0)];
          if (e > 0) r = reader<HOW>(store, a.keys, a.keyWidth, columns, e + lane % share * E, a.keyDim, a);
          f32 x[E * Q];
          UNROLL for (u32 q = 0; q < Q; q++) queried<HOW, E>(x + E * q, query + at[q], a.dtype, a.keyDim, e + lane % share * E);
          UNROLL_SOME for (u32 i0 = 0; i0 < steps; i0 += batch) {
            Part raw[batch];
            UNROLL_SOME for (u32 i = 0; i < batch; i++) raw[i] = fetch<HOW, E>(r, COLUMN(i0 + i));
            UNROLL_SOME for (u32 i = 0; i < batch; i++) {
              f32 k[E];
              value<HOW, E>(k, r, raw[i]);
              UNROLL for (u32 q = 0; q < Q; q++) {
                f32 sum = 0;
                UNROLL for (u32 j = 0; j < E; j++) sum = add_product(x[E * q + j], k[j], sum);
                if (r.left == 0) sum = 0;
                if (e > 0) sum += products[AT(lane, steps * Q, (i0 + i) * Q + q)];
                products[AT(lane, steps * Q, (i0 + i) * Q + q)] = sum;
              }
            }
          }
        }
      }
      if (steps == 16) {
        exchange<8, 8, Q, 16>(products, lane_);
        exchange<4, 4, Q, 16>(products, lane_);
      }
      exchange<2, 2, Q, steps>(products, lane_);
      exchange<1, 1, Q, steps>(products, lane_);

      EACH_LANE(lane) UNROLL for (u32 q = 0; q < Q; q++) {
        f32 score = products[AT(lane, steps * Q, q)] * a.scale;
        f32 so_far = most[AT(lane, Q, q)];
        weights[AT(lane, Q, q)] = score;
        newest[AT(lane, Q, q)] = (admits[AT(lane, 1, 0)] >> q & 1) != 0 && score > so_far ? score : so_far;
      }
      most_lanes<Q>(newest, lane_);
      EACH_LANE(lane) UNROLL for (u32 q = 0; q < Q; q++) {
        f32 now = newest[AT(lane, Q, q)];
        if (now > most[AT(lane, Q, q)]) {
          f32 old = exponential(most[AT(lane, Q, q)] - now);
          most[AT(lane, Q, q)] = now;
          total[AT(lane, Q, q)] *= old;
          UNROLL for (u32 i = 0; i < E; i++) sums[AT(lane, E * Q, i * Q + q)] *= old;
        }
        f32 weight = (admits[AT(lane, 1, 0)] >> q & 1) != 0 ? exponential(weights[AT(lane, Q, q)] - now) : 0;
        weights[AT(lane, Q, q)] = weight;
        total[AT(lane, Q, q)] += weight;
      }

      EACH_LANE(lane) {
        Reader r = values[AT(lane, 1, 0)];
        UNROLL_SOME for (u32 i0 = 0; i0 < steps; i0 += batch) {
          Part raw[batch];
          UNROLL_SOME for (u32 i = 0; i < batch; i++) raw[i] = fetch<HOW, E>(r, COLUMN(i0 + i));
          UNROLL_SOME for (u32 i = 0; i < batch; i++) {
            f32 v[E];
            value<HOW, E>(v, r, raw[i]);
            UNROLL for (u32 q = 0; q < Q; q++) {
              f32 weight = FROM(weights, lane / share * share + i0 + i, Q, q);
              // What one query does not admit is not added, whatever it holds; what
              // none admits is not here.
              if (Q == 1 || !(weight == 0)) {
                UNROLL for (u32 j = 0; j < E; j++)
                  sums[AT(lane, E * Q, j * Q + q)] = add_product(weight, v[j], sums[AT(lane, E * Q, j * Q + q)]);
              }
            }
          }
        }
      }
#undef COLUMN
    }

    // The sums of a lane are over the columns that it has seen. All exchanged, it
    // has four that are whole.
    if (E == 32) {
      exchange<16, 16, Q, 32>(sums, lane_);
      exchange<8, 8, Q, 32>(sums, lane_);
      exchange<4, 4, Q, 32>(sums, lane_);
    } else {
      exchange<16, 4, Q, 8>(sums, lane_);
    }
    sum_lanes<Q>(total, lane_);
    EACH_LANE(lane)
      conclude<Q, E>(out, partial, a, flat, count, split, block == 0, block + lane % share * E + lane / share * share / (LANES / E), sums, most,
                     total, lane);
  }
  if (a.joined) {
    WAIT_FOR_GROUP;
    if (split + 1 == a.splits)
      for (u32 q = 0; q < count; q++) {
        u32 i = chunk * Q + q;
        join(out, partial, (row * a.ratio * a.heads + head * a.ratio + i / a.n) * a.n + i % a.n, a.out, a.sums, a.totals, a.splits,
             a.valueDim, lane_);
      }
  }
}

// Least, see ENTRY: few warps with many registers, and so many loads under way,
// are best where loads are nearly all there is; more warps where there is more to
// compute.
#define ATTEND(name, HOW, E, least)                               \
  ENTRY(attend_##name##_1, AttendArgs, 5, least, attend<HOW, 1, E>)  \
  ENTRY(attend_##name##_4, AttendArgs, 5, 1, attend<HOW, 4, 8>)
ATTEND(plain_any, ANY_PLAIN, 8, 4)
ATTEND(plain_bfloat16, PLAIN_BFLOAT16, 8, 2)
ATTEND(plain_float16, PLAIN_FLOAT16, 8, 2)
ATTEND(plain_float32, PLAIN_FLOAT32, 8, 2)
ATTEND(four_bfloat16, FOUR_BFLOAT16, 32, 4)
ATTEND(four_float16, FOUR_FLOAT16, 32, 4)
ATTEND(quantized_any, ANY_QUANTIZED, 8, 4)

struct CombineArgs {
  u64 out, sums, totals;
  u32 splits, valueDim, warps, unused;
};

// combine: a warp joins the splits of one query.
FN void combine(DEVICE u8 *out, DEVICE const u8 *partial, ARGS CombineArgs &a, u32 warp, u32 lane_) {
  join(out, partial, warp, a.out, a.sums, a.totals, a.splits, a.valueDim, lane_);
}
ENTRY(combine_splits, CombineArgs, 2, 1, combine)
