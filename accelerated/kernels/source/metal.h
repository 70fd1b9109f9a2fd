// What the kernels need of Metal. Floating point is as written: no contraction,
// no reordering, whatever the options of the compilation are.

#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef int i32;
typedef ulong u64;
typedef float f32;

#define FN static inline
#define DEVICE device
#define PRIVATE thread
#define ARGS constant
#define UNROLL _Pragma("unroll")
#define UNROLL_SOME _Pragma("unroll(some)")

// A lane holds its own part of what the warp (a SIMD-group of 32) knows, and
// asks others for theirs.
#define HELD 1
#define EACH_LANE(lane) for (u32 lane = lane_, once_ = 0; once_ == 0; once_ = 1)
#define AT(lane, n, i) (i)
#define FROM(array, lane, n, i) simd_shuffle(array[i], ushort(lane))

#define WAIT_FOR_GROUP threadgroup_barrier(mem_flags::mem_device)

// ballot has a bit for each lane whose x is not 0.
FN u32 ballot(thread const u32 *x) { return u32(static_cast<simd_vote::vote_t>(simd_ballot(x[0] != 0))); }

FN u32 lowest(u32 set) { return ctz(set); }

FN u32 bits_of(f32 x) { return as_type<uint>(x); }
FN f32 float_of(u32 x) { return as_type<float>(x); }
FN f32 round_even(f32 x) { return rint(x); }
// The sums of attention, whose order is free, may be fused; nothing else may.
FN f32 add_product(f32 a, f32 b, f32 sum) { return fma(a, b, sum); }

#define load_once(at) (*(at))

#define BUFFER(i) device u8 *b##i [[buffer(i)]]
#define BUFFERS_2 BUFFER(0), BUFFER(1)
#define BUFFERS_5 BUFFERS_2, BUFFER(2), BUFFER(3), BUFFER(4)
#define BUFFERS_18 BUFFERS_5, BUFFER(5), BUFFER(6), BUFFER(7), BUFFER(8), BUFFER(9), BUFFER(10), BUFFER(11), \
                   BUFFER(12), BUFFER(13), BUFFER(14), BUFFER(15), BUFFER(16), BUFFER(17)
#define GIVEN_2 b0, b1
#define GIVEN_5 GIVEN_2, b2, b3, b4
#define GIVEN_18 GIVEN_5, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17

#define ENTRY(name, Args, n, least, ...)                                                                  \
  kernel void name(BUFFERS_##n, constant Args &args [[buffer(n)]],                                 \
                   uint group [[threadgroup_position_in_grid]],                                    \
                   uint groups_warps [[simdgroups_per_threadgroup]],                               \
                   uint group_warp [[simdgroup_index_in_threadgroup]],                             \
                   uint lane [[thread_index_in_simdgroup]]) {                                      \
    u32 warp = group * groups_warps + group_warp;                                                  \
    if (warp < args.warps) __VA_ARGS__(GIVEN_##n, args, warp, lane);                               \
  }
