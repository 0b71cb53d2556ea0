// Quantised weights as integers: 32 consecutive elements of a block as signed bytes, with the scales and the minimum that
// make them weights again: w = d * q - m. Types with a scale for every 16 elements give two scales, the others the same twice.
#pragma once
#include "blocks.cuh"

struct Group32 {
    u32 q[8];
    float d0, d1;  // of elements 0 to 15 and 16 to 31
    float m;
};

// Nibbles of the 16 bytes at q: low ones are elements 0 to 15, high ones 16 to 31.
DEVICE void nibbles_halves(const u8* q, u32 (&out)[8]) {
#pragma unroll
    for (int w = 0; w < 4; w++) {
        const u32 word = load_u32_even(q + 4 * w);
        out[w] = word & 0x0f0f0f0fu;
        out[w + 4] = (word >> 4) & 0x0f0f0f0fu;
    }
}

// One scale for all 32, and a minimum.
DEVICE void scales_of(Group32& g, float d, float m) {
    g.d0 = g.d1 = d;
    g.m = m;
}

// Those of sub-block j of a q4_K or q5_K block.
DEVICE void scales_k4(Group32& g, const u8* b, int j) {
    float scale, minimum;
    scale_min_k4(b + 4, j, scale, minimum);
    const u32 both = *(const u32*)b;
    scales_of(g, low_f16(both) * scale, high_f16(both) * minimum);
}

template <class T>
DEVICE Group32 group_of(const u8* b, int i);

template <>
DEVICE Group32 group_of<Q4_0>(const u8* b, int) {
    Group32 g;
    nibbles_halves(b + 2, g.q);
#pragma unroll
    for (int w = 0; w < 8; w++) g.q[w] = __vsub4(g.q[w], 0x08080808u);
    scales_of(g, load_f16(b), 0.0f);
    return g;
}

template <>
DEVICE Group32 group_of<Q4_1>(const u8* b, int) {
    Group32 g;
    nibbles_halves(b + 4, g.q);
    scales_of(g, load_f16(b), -load_f16(b + 2));
    return g;
}

template <>
DEVICE Group32 group_of<Q5_0>(const u8* b, int) {
    Group32 g;
    nibbles_halves(b + 6, g.q);
    const u32 fifth = load_u32_even(b + 2);
#pragma unroll
    for (int w = 0; w < 8; w++) g.q[w] = __vsub4(g.q[w] | spread_fifth_bit(fifth >> (4 * w)), 0x10101010u);
    scales_of(g, load_f16(b), 0.0f);
    return g;
}

template <>
DEVICE Group32 group_of<Q5_1>(const u8* b, int) {
    Group32 g;
    nibbles_halves(b + 8, g.q);
    const u32 fifth = load_u32_even(b + 4);
#pragma unroll
    for (int w = 0; w < 8; w++) g.q[w] |= spread_fifth_bit(fifth >> (4 * w));
    scales_of(g, load_f16(b), -load_f16(b + 2));
    return g;
}

template <>
DEVICE Group32 group_of<Q8_0>(const u8* b, int) {
    Group32 g;
#pragma unroll
    for (int w = 0; w < 8; w++) g.q[w] = load_u32_even(b + 2 + 4 * w);
    scales_of(g, load_f16(b), 0.0f);
    return g;
}

template <>
DEVICE Group32 group_of<Q4_K>(const u8* b, int i) {
    Group32 g;
    const int j = i >> 5, shift = 4 * (j & 1);
    const uint4* q = (const uint4*)(b + 16 + 32 * (j >> 1));
    const uint4 first = q[0], second = q[1];
    const u32 words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
#pragma unroll
    for (int w = 0; w < 8; w++) g.q[w] = (words[w] >> shift) & 0x0f0f0f0fu;
    scales_k4(g, b, j);
    return g;
}

template <>
DEVICE Group32 group_of<Q5_K>(const u8* b, int i) {
    Group32 g;
    const int j = i >> 5, shift = 4 * (j & 1);
    const u32 *q = (const u32*)(b + 48 + 32 * (j >> 1)), *fifth = (const u32*)(b + 16);
#pragma unroll
    for (int w = 0; w < 8; w++) g.q[w] = ((q[w] >> shift) & 0x0f0f0f0fu) | (((fifth[w] >> j) & 0x01010101u) << 4);
    scales_k4(g, b, j);
    return g;
}

template <>
DEVICE Group32 group_of<Q6_K>(const u8* b, int i) {
    Group32 g;
    const int half = i >> 7, group = (i >> 5) & 3;
    const u8 *low = b + 64 * half + 32 * (group & 1), *high = b + 128 + 32 * half;
#pragma unroll
    for (int w = 0; w < 8; w++) {
        const u32 nibbles = (((const u32*)low)[w] >> (4 * (group >> 1))) & 0x0f0f0f0fu;
        const u32 top = ((((const u32*)high)[w] >> (2 * group)) & 0x03030303u) << 4;
        g.q[w] = __vsub4(nibbles | top, 0x20202020u);
    }
    const float d = load_f16(b + 208);
    const u8* scales = b + 192 + 8 * half + 2 * group;
    g.d0 = d * (float)(s8)scales[0];
    g.d1 = d * (float)(s8)scales[1];
    g.m = 0.0f;
    return g;
}

DEVICE void iq4_levels(const u8* q, u32 (&out)[8]) {
#pragma unroll
    for (int w = 0; w < 4; w++) {
        out[w] = out[w + 4] = 0;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            out[w] |= (u32)(u8)IQ4_LEVELS[q[4 * w + e] & 0xf] << (8 * e);
            out[w + 4] |= (u32)(u8)IQ4_LEVELS[q[4 * w + e] >> 4] << (8 * e);
        }
    }
}

template <>
DEVICE Group32 group_of<IQ4_NL>(const u8* b, int) {
    Group32 g;
    iq4_levels(b + 2, g.q);
    scales_of(g, load_f16(b), 0.0f);
    return g;
}

template <>
DEVICE Group32 group_of<IQ4_XS>(const u8* b, int i) {
    Group32 g;
    const int j = i >> 5;
    iq4_levels(b + 8 + 16 * j, g.q);
    const int scale = ((b[4 + (j >> 1)] >> (4 * (j & 1))) & 0xf) | (((load_u16(b + 2) >> (2 * j)) & 3) << 4);
    scales_of(g, load_f16(b) * (float)(scale - 32), 0.0f);
    return g;
}

// Calls X(type in symbols, struct, whether it has a scale for every 16 elements, whether it has minima).
#define EACH_INTEGER_TYPE(X)                                                                                             \
    X(q4_0, Q4_0, false, false) X(q4_1, Q4_1, false, true) X(q5_0, Q5_0, false, false) X(q5_1, Q5_1, false, true)        \
    X(q8_0, Q8_0, false, false) X(q4_K, Q4_K, false, true) X(q5_K, Q5_K, false, true) X(q6_K, Q6_K, true, false)         \
    X(iq4_nl, IQ4_NL, false, false) X(iq4_xs, IQ4_XS, false, false)
