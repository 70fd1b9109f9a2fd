// What the kernels need of the host's C++. A warp is one call: its lanes take
// turns, from one EACH_LANE to the next.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef float f32;
struct alignas(16) uint4 { u32 x, y, z, w; };

#define FN static inline
#define DEVICE
#define PRIVATE
#define ARGS const
#define UNROLL
#define UNROLL_SOME 

// What the lanes of a warp hold lies side by side.
#define HELD 32
#define EACH_LANE(lane) for (u32 lane = 0; lane < 32; lane++)
#define AT(lane, n, i) ((lane) * (n) + (i))
#define FROM(array, lane, n, i) array[AT(lane, n, i)]

// The warps of a group have come before, one after another.
#define WAIT_FOR_GROUP

// ballot has a bit for each lane whose x is not 0.
FN u32 ballot(const u32 *x) {
  u32 set = 0;
  EACH_LANE(lane) set |= u32(x[lane] != 0) << lane;
  return set;
}

FN u32 lowest(u32 set) { return u32(__builtin_ctz(set)); }

FN u32 bits_of(f32 x) { u32 u; memcpy(&u, &x, 4); return u; }
FN f32 float_of(u32 u) { f32 x; memcpy(&x, &u, 4); return x; }
FN f32 round_even(f32 x) { return __builtin_rintf(x); }
// The sums of attention may be fused elsewhere; here that would be slow.
FN f32 add_product(f32 a, f32 b, f32 sum) { return sum + a * b; }

// Products of matrices, see kernels.h.
#define MATRICES 1
FN void multiply(f32 *sum, u32 ns, u32 is, const u32 *a, u32 na, u32 ia, const u32 *b, u32 nb, u32 ib) {
  f32 x[16][16], y[8][16];
  EACH_LANE(lane) {
    u32 g = lane / 4, t = lane % 4;
    for (u32 i = 0; i < 8; i++) x[g + i % 4 % 2 * 8][2 * t + i % 4 / 2 * 8 + i / 4] = float_of(a[AT(lane, na, ia + i % 4)] >> (i / 4 * 16) << 16);
    for (u32 i = 0; i < 4; i++) y[g][2 * t + i % 2 * 8 + i / 2] = float_of(b[AT(lane, nb, ib + i % 2)] >> (i / 2 * 16) << 16);
  }
  EACH_LANE(lane) {
    for (u32 i = 0; i < 4; i++) {
      const f32 *row = x[lane / 4 + i / 2 * 8], *column = y[lane % 4 * 2 + i % 2];
      f32 all = 0;
      for (u32 k = 0; k < 16; k++) all += row[k] * column[k];
      sum[AT(lane, ns, is + i)] += all;
    }
  }
}
FN u32 halves(u32 a, u32 b, bool high) { return high ? a >> 16 | (b & 0xFFFF0000u) : (a & 0xFFFFu) | b << 16; }

#define ADDRESSES 1  // a number can be a pointer

#define load_once(at) (*(at))

#define GIVEN_2 b[0], b[1]
#define GIVEN_5 GIVEN_2, b[2], b[3], b[4]
#define GIVEN_18 GIVEN_5, b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15], b[16], b[17]

#define ENTRY(name, Args, n, least, ...)                                                                  \
  extern "C" void name(u8 *const *b, const Args *args, u32 warps) {                                \
    for (u32 warp = 0; warp < warps && warp < args->warps; warp++)                                 \
      __VA_ARGS__(GIVEN_##n, *args, warp, 0);                                                      \
  }

// Memory of the device, from the C heap, so that sanitizers know where each
// buffer ends.
extern "C" void *host_alloc(size_t size) {
  void *p = nullptr;
  return posix_memalign(&p, 256, size) == 0 ? p : nullptr;
}
extern "C" void host_free(void *p) { free(p); }
