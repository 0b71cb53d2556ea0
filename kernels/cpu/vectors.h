// Vectors of 16 lanes in the compiler's own notation: one instruction where the CPU has 512-bit registers, a few elsewhere.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef int16_t i16x16 __attribute__((vector_size(32)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
#define LANES 16

INLINE f32x16 load(const float* p) {
    f32x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float* p, f32x16 v) { memcpy(p, &v, sizeof v); }

INLINE u8x16 load_bytes(const u8* p) {
    u8x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE f32x16 splat(float x) { return x - (f32x16){0}; }

// GCC makes single bytes of the general conversion.
INLINE f32x16 to_floats(i8x16 q) {
#ifdef __AVX512F__
    return (f32x16)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)q));
#else
    return __builtin_convertvector(q, f32x16);
#endif
}

INLINE float sum(f32x16 v) {
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)v);
#else
    float lanes[LANES];
    store(lanes, v);
    for (int step = LANES / 2; step; step /= 2)
        for (int i = 0; i < step; i++) lanes[i] += lanes[i + step];
    return lanes[0];
#endif
}

INLINE float greatest(f32x16 v) {
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)v);
#else
    float most = v[0];
    for (int i = 1; i < LANES; i++) most = v[i] > most ? v[i] : most;
    return most;
#endif
}

// Lane by lane: x where the mask's bits are set, else y.
INLINE f32x16 choose(i32x16 mask, f32x16 x, f32x16 y) { return (f32x16)((mask & (i32x16)x) | (~mask & (i32x16)y)); }

// Nearest whole number, |x| < 2^22.
INLINE f32x16 nearest(f32x16 x) {
    const float shift = 0x1.8p23f;
    return x + shift - shift;
}

INLINE i32x16 to_integers(f32x16 x) { return __builtin_convertvector(x, i32x16); }

// IEEE binary16 at p, which need not be aligned.
INLINE float half(const u8* p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
#ifdef __F16C__
    return _cvtsh_ss(h);
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, bits;
    float x;
    if (rest >= 0x7c00) {
        bits = sign | 0x7f800000 | (rest & 0x3ff) << 13;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    bits = rest << 13;  // as a float32 it is 2^112 times too small; the product is exact, subnormals included
    memcpy(&x, &bits, sizeof x);
    x *= 0x1p112f;
    memcpy(&bits, &x, sizeof x);
    bits |= sign;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}
