// What the kernels need of CUDA.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef float f32;

#define FN static __device__ __forceinline__
#define DEVICE
#define PRIVATE
#define ARGS const
#define UNROLL _Pragma("unroll")
#define UNROLL_SOME _Pragma("unroll some")

// A lane holds its own part of what the warp knows, and asks others for theirs.
#define HELD 1
#define EACH_LANE(lane) for (u32 lane = lane_, once_ = 0; once_ == 0; once_ = 1)
#define AT(lane, n, i) (i)
#define FROM(array, lane, n, i) __shfl_sync(0xFFFFFFFFu, array[i], lane)

#define WAIT_FOR_GROUP __syncthreads()

// ballot has a bit for each lane whose x is not 0.
FN u32 ballot(const u32 *x) { return __ballot_sync(0xFFFFFFFFu, x[0] != 0); }

FN u32 lowest(u32 set) { return __ffs(set) - 1; }

FN u32 bits_of(f32 x) { return __float_as_uint(x); }
FN f32 float_of(u32 x) { return __uint_as_float(x); }
FN f32 round_even(f32 x) { return rintf(x); }
// The sums of attention, whose order is free, may be fused; nothing else may.
FN f32 add_product(f32 a, f32 b, f32 sum) { return __fmaf_rn(a, b, sum); }

// Conversions that the machine has, and that make the same numbers as those
// by hand, NaNs apart.
#define CONVERTS 1
FN f32 machine_float16(u32 u) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u16(u)));
  return x;
}
FN f32 machine_round_float16(f32 x) {
  u16 u;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(u) : "f"(x));
  return machine_float16(u);
}
FN f32 machine_round_bfloat16(f32 x) {
  u16 u;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(u) : "f"(x));
  return __uint_as_float(u32(u) << 16);
}

// Two bfloat16, or two float16, in a word: a*b + c, rounded once.
#define PAIRS 1
FN u32 tagged(u32 word, u32 mask, u32 tag) {  // (word & mask) | tag, which takes two instructions otherwise
  u32 d;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(d) : "r"(word), "r"(mask), "r"(tag));
  return d;
}
FN u32 pair_fma_bfloat16(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
FN u32 pair_fma_float16(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// Two to the x, to two units in the last place.
#define POWERS 1
FN f32 machine_power(f32 x) {
  f32 y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Products of matrices, see kernels.h.
#define MATRICES 1
FN void multiply(f32 *sum, u32, u32 s, const u32 *a, u32, u32 i, const u32 *b, u32, u32 j) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[s]), "+f"(sum[s + 1]), "+f"(sum[s + 2]), "+f"(sum[s + 3])
      : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(b[j]), "r"(b[j + 1]));
}
FN u32 halves(u32 a, u32 b, bool high) { return __byte_perm(a, b, high ? 0x7632 : 0x5410); }

#define ADDRESSES 1  // a number can be a pointer

// load_once loads what need not stay in a cache.
template <class T>
FN T load_once(const T *at) { return __ldcs(at); }

#define BUFFER(i) u8 *b##i
#define BUFFERS_2 BUFFER(0), BUFFER(1)
#define BUFFERS_5 BUFFERS_2, BUFFER(2), BUFFER(3), BUFFER(4)
#define BUFFERS_18 BUFFERS_5, BUFFER(5), BUFFER(6), BUFFER(7), BUFFER(8), BUFFER(9), BUFFER(10), BUFFER(11), \
                   BUFFER(12), BUFFER(13), BUFFER(14), BUFFER(15), BUFFER(16), BUFFER(17)
#define GIVEN_2 b0, b1
#define GIVEN_5 GIVEN_2, b2, b3, b4
#define GIVEN_18 GIVEN_5, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17

// Least is how many groups a multiprocessor should have room for, in registers.
// The warp's index comes from its first lane, so that the compiler knows that it
// is the same in all: what follows from it needs one register for all lanes, and
// lanes that ask each other are known to be together.
#define ENTRY(name, Args, n, least, ...)                                                                  \
  extern "C" __global__ void __launch_bounds__(128, least) name(BUFFERS_##n, const __grid_constant__ Args args) { \
    u32 warp = blockIdx.x * (blockDim.x / 32) + __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);    \
    if (warp < args.warps) __VA_ARGS__(GIVEN_##n, args, warp, threadIdx.x % 32);                   \
  }
