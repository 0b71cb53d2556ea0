// How each weight type decodes: the one place to touch for a new one. A type of integers gives groups of 32 weights,
// w = q * scale - least, with one scale and one least for each 16 of them; a float type gives the 32 weights themselves.
// Layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
#pragma once

#include "vectors.h"

typedef struct {
    i8x16 q[2];
    float scale[2], least[2];
} group;

// name, ggml's number, weights a block, bytes a block, whether the halves of a group have scales of their own, whether
// there is a least.
#define EACH_INTEGER_TYPE(V) \
    V(q4_0, 2, 32, 18, 0, 0) \
    V(q4_1, 3, 32, 20, 0, 1) \
    V(q5_0, 6, 32, 22, 0, 0) \
    V(q5_1, 7, 32, 24, 0, 1) \
    V(q8_0, 8, 32, 34, 0, 0) \
    V(q2_K, 10, 256, 84, 1, 1) \
    V(q3_K, 11, 256, 110, 1, 0) \
    V(q4_K, 12, 256, 144, 0, 1) \
    V(q5_K, 13, 256, 176, 0, 1) \
    V(q6_K, 14, 256, 210, 1, 0)

// name, ggml's number, weights and bytes that are decoded at a time.
#define EACH_FLOAT_TYPE(V) \
    V(f32, 0, 32, 128) \
    V(f16, 1, 32, 64) \
    V(bf16, 30, 32, 64)

INLINE group same(i8x16 low, i8x16 high, float scale, float least) {
    return (group){{low, high}, {scale, scale}, {least, least}};
}

// Four-bit values of 16 bytes: the low ones are a group's first half.
INLINE i8x16 low_nibbles(u8x16 packed) { return (i8x16)(packed & 15); }
INLINE i8x16 high_nibbles(u8x16 packed) { return (i8x16)(packed >> 4); }

// 16 where a bit of ``bits`` is set, from the lowest on; else 0.
INLINE i8x16 fifth_bits(const u8* bits) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    return (i8x16)_mm_maskz_set1_epi8((__mmask16)(bits[0] | bits[1] << 8), 16);
#else
    typedef uint64_t u64x2 __attribute__((vector_size(16)));
    u64x2 spread = {bits[0] * 0x0101010101010101u, bits[1] * 0x0101010101010101u};
    u8x16 each = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    return (i8x16)(((u8x16)spread & each) == each) & 16;
#endif
}

INLINE group q4_0_group(const u8* block, int g) {
    (void)g;
    u8x16 packed = load_bytes(block + 2);
    return same(low_nibbles(packed) - 8, high_nibbles(packed) - 8, half(block), 0);
}

INLINE group q4_1_group(const u8* block, int g) {
    (void)g;
    u8x16 packed = load_bytes(block + 4);
    return same(low_nibbles(packed), high_nibbles(packed), half(block), -half(block + 2));
}

INLINE group q5_0_group(const u8* block, int g) {
    (void)g;
    u8x16 packed = load_bytes(block + 6);
    i8x16 low = low_nibbles(packed) | fifth_bits(block + 2), high = high_nibbles(packed) | fifth_bits(block + 4);
    return same(low - 16, high - 16, half(block), 0);
}

INLINE group q5_1_group(const u8* block, int g) {
    (void)g;
    u8x16 packed = load_bytes(block + 8);
    i8x16 low = low_nibbles(packed) | fifth_bits(block + 4), high = high_nibbles(packed) | fifth_bits(block + 6);
    return same(low, high, half(block), -half(block + 2));
}

INLINE group q8_0_group(const u8* block, int g) {
    (void)g;
    return same((i8x16)load_bytes(block + 2), (i8x16)load_bytes(block + 18), half(block), 0);
}

INLINE group q2_K_group(const u8* block, int g) {
    const u8 *scales = block + 2 * g, *q = block + 16 + g / 4 * 32;
    int shift = 2 * (g % 4);
    float d = half(block + 80), least = half(block + 82);
    return (group){
        {(i8x16)(load_bytes(q) >> shift & 3), (i8x16)(load_bytes(q + 16) >> shift & 3)},
        {d * (scales[0] & 15), d * (scales[1] & 15)},
        {least * (scales[0] >> 4), least * (scales[1] >> 4)},
    };
}

// Scale ``j`` of 16, six bits with an offset of 32: four of them in 8 bytes, two in 4 more.
INLINE int q3_K_scale(const u8* packed, int j) {
    int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    return (low | (packed[8 + j % 4] >> 2 * (j / 4) & 3) << 4) - 32;
}

INLINE group q3_K_group(const u8* block, int g) {
    const u8 *q = block + 32 + g / 4 * 32, *scales = block + 96;
    int shift = 2 * (g % 4);
    float d = half(block + 108);
    group result = {{{0}}, {d * q3_K_scale(scales, 2 * g), d * q3_K_scale(scales, 2 * g + 1)}, {0, 0}};
    for (int i = 0; i < 2; i++) {
        i8x16 above = (i8x16)(load_bytes(block + 16 * i) >> g & 1);
        result.q[i] = (i8x16)(load_bytes(q + 16 * i) >> shift & 3) + above * 4 - 4;
    }
    return result;
}

// The scale and least of group ``g`` of q4_K and q5_K: six bits each, packed in 12 bytes.
INLINE void six_bits(const u8* packed, int g, int* scale, int* least) {
    *scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
    *least = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
}

INLINE group q4_K_group(const u8* block, int g) {
    const u8* q = block + 16 + g / 2 * 32;
    u8x16 first = load_bytes(q) >> 4 * (g % 2) & 15, second = load_bytes(q + 16) >> 4 * (g % 2) & 15;
    int scale, least;
    six_bits(block + 4, g, &scale, &least);
    return same((i8x16)first, (i8x16)second, half(block) * scale, half(block + 2) * least);
}

INLINE group q5_K_group(const u8* block, int g) {
    const u8* q = block + 48 + g / 2 * 32;
    int scale, least, shift = 4 * (g % 2);
    six_bits(block + 4, g, &scale, &least);
    u8x16 first = (load_bytes(q) >> shift & 15) | (load_bytes(block + 16) >> g & 1) << 4;
    u8x16 second = (load_bytes(q + 16) >> shift & 15) | (load_bytes(block + 32) >> g & 1) << 4;
    return same((i8x16)first, (i8x16)second, half(block) * scale, half(block + 2) * least);
}

INLINE group q6_K_group(const u8* block, int g) {
    const u8 *low = block + g / 4 * 64 + g % 2 * 32, *high = block + 128 + g / 4 * 32;
    const int8_t* scales = (const int8_t*)block + 192 + 2 * g;
    int pair = g % 4;
    float d = half(block + 208);
    group result = {{{0}}, {d * scales[0], d * scales[1]}, {0, 0}};
    for (int i = 0; i < 2; i++) {
        u8x16 nibbles = load_bytes(low + 16 * i) >> 4 * (pair / 2) & 15;
        result.q[i] = (i8x16)(nibbles | (load_bytes(high + 16 * i) >> 2 * pair & 3) << 4) - 32;
    }
    return result;
}

#define DECODE_GROUP(name, ...) \
    INLINE void name##_decode(const u8* block, int g, floats w[VECTORS]) { \
        group v = name##_group(block, g); \
        for (int i = 0; i < VECTORS; i++) { \
            int part = i * LANES / 16; \
            w[i] = to_floats(v.q[part], i * LANES % 16) * v.scale[part] - v.least[part]; \
        } \
    }
EACH_INTEGER_TYPE(DECODE_GROUP)
#undef DECODE_GROUP

INLINE void f32_decode(const u8* block, int g, floats w[VECTORS]) {
    (void)g;
    memcpy(w, block, 128);
}

INLINE void f16_decode(const u8* block, int g, floats w[VECTORS]) {
    (void)g;
#if LANES == 16
    for (int i = 0; i < 2; i++) w[i] = (floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(block + 32 * i)));
#elif LANES == 8 && defined(__F16C__)
    for (int i = 0; i < 4; i++) w[i] = (floats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(block + 16 * i)));
#else
    float* out = (float*)w;
    for (int i = 0; i < 32; i++) out[i] = half(block + 2 * i);
#endif
}

INLINE void bf16_decode(const u8* block, int g, floats w[VECTORS]) {
    (void)g;
#if LANES == 16
    for (int i = 0; i < 2; i++) {
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)(block + 32 * i)));
        w[i] = (floats)_mm512_slli_epi32(wide, 16);
    }
#elif LANES == 8
    for (int i = 0; i < 4; i++) {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(block + 16 * i)));
        w[i] = (floats)_mm256_slli_epi32(wide, 16);
    }
#else
    uint32_t bits[32];
    for (int i = 0; i < 32; i++) bits[i] = (uint32_t)block[2 * i] << 16 | (uint32_t)block[2 * i + 1] << 24;
    memcpy(w, bits, sizeof bits);
#endif
}
