
// ---- Layouts, for a test that the host's language lays out the same --------

#define FIELD(T, f) u32(offsetof(T, f))
static const u32 layouts[] = {
  u32(sizeof(Layout)), FIELD(Layout, plane), FIELD(Layout, width), FIELD(Layout, heads), FIELD(Layout, columns),
  u32(sizeof(Run)), FIELD(Run, source), FIELD(Run, srcRow), FIELD(Run, dstRow), FIELD(Run, from), FIELD(Run, cycle),
  FIELD(Run, skip), FIELD(Run, to), FIELD(Run, n), FIELD(Run, first),
  u32(sizeof(MoveArgs)), FIELD(MoveArgs, dst), FIELD(MoveArgs, base), FIELD(MoveArgs, layout), FIELD(MoveArgs, plane), FIELD(MoveArgs, columns), FIELD(MoveArgs, runs),
  FIELD(MoveArgs, piece), FIELD(MoveArgs, warps), FIELD(MoveArgs, tabled), FIELD(MoveArgs, once), FIELD(MoveArgs, unused), FIELD(MoveArgs, run),
  u32(sizeof(ShiftArgs)), FIELD(ShiftArgs, store), FIELD(ShiftArgs, rows), FIELD(ShiftArgs, lanes),
  FIELD(ShiftArgs, warps), FIELD(ShiftArgs, tabled), FIELD(ShiftArgs, pair), FIELD(ShiftArgs, run),
  u32(sizeof(CloseArgs)), FIELD(CloseArgs, store), FIELD(CloseArgs, from), FIELD(CloseArgs, n), FIELD(CloseArgs, pairs),
  FIELD(CloseArgs, warps), FIELD(CloseArgs, lanes), FIELD(CloseArgs, tabled), FIELD(CloseArgs, unused), FIELD(CloseArgs, pair),
  u32(sizeof(Side)), FIELD(Side, src), FIELD(Side, stride), FIELD(Side, plane), FIELD(Side, width), FIELD(Side, unit),
  FIELD(Side, dim), FIELD(Side, parts), FIELD(Side, warps), FIELD(Side, unused),
  u32(sizeof(MaskPart)), FIELD(MaskPart, offset), FIELD(MaskPart, n), FIELD(MaskPart, s), FIELD(MaskPart, past),
  FIELD(MaskPart, window), FIELD(MaskPart, shift), FIELD(MaskPart, tabled), FIELD(MaskPart, warps), FIELD(MaskPart, unused),
  u32(sizeof(WriteArgs)), FIELD(WriteArgs, sides), FIELD(WriteArgs, mask), FIELD(WriteArgs, heads), FIELD(WriteArgs, columns),
  FIELD(WriteArgs, at), FIELD(WriteArgs, n), FIELD(WriteArgs, group), FIELD(WriteArgs, bits), FIELD(WriteArgs, per),
  FIELD(WriteArgs, warps), FIELD(WriteArgs, first),
  u32(sizeof(AttendArgs)), FIELD(AttendArgs, keys), FIELD(AttendArgs, values), FIELD(AttendArgs, query), FIELD(AttendArgs, stride),
  FIELD(AttendArgs, mask), FIELD(AttendArgs, out), FIELD(AttendArgs, sums), FIELD(AttendArgs, totals), FIELD(AttendArgs, keyWidth),
  FIELD(AttendArgs, valueWidth), FIELD(AttendArgs, heads), FIELD(AttendArgs, columns), FIELD(AttendArgs, from), FIELD(AttendArgs, s),
  FIELD(AttendArgs, keyDim), FIELD(AttendArgs, valueDim), FIELD(AttendArgs, ratio), FIELD(AttendArgs, n), FIELD(AttendArgs, dtype),
  FIELD(AttendArgs, group), FIELD(AttendArgs, bits), FIELD(AttendArgs, masked), FIELD(AttendArgs, splits), FIELD(AttendArgs, tiles),
  FIELD(AttendArgs, chunks), FIELD(AttendArgs, blocks), FIELD(AttendArgs, warps), FIELD(AttendArgs, scale),
  FIELD(AttendArgs, joined), FIELD(AttendArgs, unused),
  u32(sizeof(CombineArgs)), FIELD(CombineArgs, out), FIELD(CombineArgs, sums), FIELD(CombineArgs, totals),
  FIELD(CombineArgs, splits), FIELD(CombineArgs, valueDim), FIELD(CombineArgs, warps), FIELD(CombineArgs, unused),
};
extern "C" const u32 *host_layouts(u32 *n) {
  *n = sizeof(layouts) / sizeof(layouts[0]);
  return layouts;
}
