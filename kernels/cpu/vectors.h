// Vectors of 32-bit lanes in the compiler's own notation, as wide as the CPU's registers: wider ones the compiler would keep in
// memory, 30 times slower (GCC 12, AVX2). A group of 32 weights, or of anything else, is VECTORS of them.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#define VECTORS (32 / LANES)

typedef uint8_t u8;
typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))

INLINE floats load(const float* p) {
    floats v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float* p, floats v) { memcpy(p, &v, sizeof v); }

INLINE u8x16 load_bytes(const u8* p) {
    u8x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE floats splat(float x) { return x - (floats){0}; }

// LANES of 16 bytes from ``at`` on, a multiple of LANES. GCC makes single bytes of the general conversion.
INLINE floats to_floats(i8x16 q, int at) {
#if LANES == 16
    (void)at;
    return (floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)q));
#elif LANES == 8
    return (floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(at ? _mm_srli_si128((__m128i)q, 8) : (__m128i)q));
#elif defined(__x86_64__)
    __m128i all = (__m128i)q, twice = at < 8 ? _mm_unpacklo_epi8(all, all) : _mm_unpackhi_epi8(all, all);
    __m128i four = at % 8 < 4 ? _mm_unpacklo_epi16(twice, twice) : _mm_unpackhi_epi16(twice, twice);
    return (floats)_mm_cvtepi32_ps(_mm_srai_epi32(four, 24));
#elif defined(__aarch64__)
    int8x16_t all = (int8x16_t)q;
    int16x8_t wide = at < 8 ? vmovl_s8(vget_low_s8(all)) : vmovl_high_s8(all);
    return (floats)vcvtq_f32_s32(at % 8 < 4 ? vmovl_s16(vget_low_s16(wide)) : vmovl_high_s16(wide));
#else
    // Each lane's byte to the top, by a product, since not every CPU shifts lanes by different counts; then down with its sign.
    const words to_top = {1 << 24, 1 << 16, 1 << 8, 1};
    uint32_t bytes;
    memcpy(&bytes, (const char*)&q + at, sizeof bytes);
    return __builtin_convertvector((ints)((bytes - (words){0}) * to_top) >> 24, floats);
#endif
}

INLINE float sum(floats v) {
#if LANES == 16
    return _mm512_reduce_add_ps((__m512)v);
#else
    float lanes[LANES];
    store(lanes, v);
    for (int step = LANES / 2; step; step /= 2)
        for (int i = 0; i < step; i++) lanes[i] += lanes[i + step];
    return lanes[0];
#endif
}

INLINE float greatest(floats v) {
#if LANES == 16
    return _mm512_reduce_max_ps((__m512)v);
#else
    float most = v[0];
    for (int i = 1; i < LANES; i++) most = v[i] > most ? v[i] : most;
    return most;
#endif
}

// Lane by lane: x where the mask's bits are set, else y.
INLINE floats choose(ints mask, floats x, floats y) { return (floats)((mask & (ints)x) | (~mask & (ints)y)); }

// Nearest whole number, |x| < 2^22.
INLINE floats nearest(floats x) {
    const float shift = 0x1.8p23f;
    return x + shift - shift;
}

INLINE ints to_integers(floats x) { return __builtin_convertvector(x, ints); }

// IEEE binary16 at p, which need not be aligned.
INLINE float half(const u8* p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
#if defined(__F16C__)
    return _cvtsh_ss(h);
#elif defined(__aarch64__)
    __fp16 x;
    memcpy(&x, &h, sizeof x);
    return x;
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
