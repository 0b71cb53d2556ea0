// How ggml stores quantised weights, one struct a type: `block` elements in `bytes` bytes, and the decoding of eight
// consecutive elements. Layouts: ggml-common.h and ggml-quants.c of ggml (MIT); checked against gguf-py's dequantize.
#pragma once
#include "common.cuh"

DEVICE u32 load_u16(const u8* p) { return *(const u16*)p; }
DEVICE float load_f16(const u8* p) { return f16_to_f32(*(const u16*)p); }
// Four bytes at an address that is only even.
DEVICE u32 load_u32_even(const u8* p) { return load_u16(p) | (load_u16(p + 2) << 16); }

// Each byte of `word` as a float, times d, plus m.
DEVICE void expand_bytes(u32 word, float d, float m, float* out) {
    out[0] = d * (float)(word & 0xffu) + m;
    out[1] = d * (float)((word >> 8) & 0xffu) + m;
    out[2] = d * (float)((word >> 16) & 0xffu) + m;
    out[3] = d * (float)(word >> 24) + m;
}

// The 6-bit scale and minimum of sub-block j (0..7) of a q4_K or q5_K block, from its 12 packed bytes.
DEVICE void scale_min_k4(const u8* q, int j, float& scale, float& minimum) {
    if (j < 4) {
        scale = (float)(q[j] & 63);
        minimum = (float)(q[j + 4] & 63);
    } else {
        scale = (float)((q[j + 4] & 0xf) | ((q[j - 4] >> 6) << 4));
        minimum = (float)((q[j + 4] >> 4) | ((q[j] >> 6) << 4));
    }
}

struct F32 {
    static constexpr int block = 8, bytes = 32;
    static DEVICE void decode8(const u8* b, int, float* out) {
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = ((const float*)b)[i];
    }
};

struct F16 {
    static constexpr int block = 8, bytes = 16;
    static DEVICE void decode8(const u8* b, int, float* out) {
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = load_f16(b + 2 * i);
    }
};

struct BF16 {
    static constexpr int block = 8, bytes = 16;
    static DEVICE void decode8(const u8* b, int, float* out) {
#pragma unroll
        for (int i = 0; i < 8; i++) out[i] = bf16_to_f32((u16)load_u16(b + 2 * i));
    }
};

struct Q4_0 {  // d, 16 bytes: element l low nibble of byte l, element 16 + l its high nibble
    static constexpr int block = 32, bytes = 18;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const float d = load_f16(b);
        const u8* q = b + 2 + (i & 15);
        const int shift = (i >> 4) * 4;
#pragma unroll
        for (int w = 0; w < 2; w++) expand_bytes((load_u32_even(q + 4 * w) >> shift) & 0x0f0f0f0fu, d, -8.0f * d, out + 4 * w);
    }
};

struct Q4_1 {  // d, m, 16 bytes as q4_0
    static constexpr int block = 32, bytes = 20;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const float d = load_f16(b), m = load_f16(b + 2);
        const u8* q = b + 4 + (i & 15);
        const int shift = (i >> 4) * 4;
#pragma unroll
        for (int w = 0; w < 2; w++) expand_bytes((load_u32_even(q + 4 * w) >> shift) & 0x0f0f0f0fu, d, m, out + 4 * w);
    }
};

// Bit l of `bits` becomes bit 4 of byte l, for four bytes.
DEVICE u32 spread_fifth_bit(u32 bits) {
    return ((bits & 1u) << 4) | ((bits & 2u) << 11) | ((bits & 4u) << 18) | ((bits & 8u) << 25);
}

struct Q5_0 {  // d, 32 fifth bits, 16 bytes as q4_0
    static constexpr int block = 32, bytes = 22;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const float d = load_f16(b);
        const u32 fifth = load_u32_even(b + 2) >> i;
        const u8* q = b + 6 + (i & 15);
        const int shift = (i >> 4) * 4;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            const u32 word = ((load_u32_even(q + 4 * w) >> shift) & 0x0f0f0f0fu) | spread_fifth_bit(fifth >> (4 * w));
            expand_bytes(word, d, -16.0f * d, out + 4 * w);
        }
    }
};

struct Q5_1 {  // d, m, 32 fifth bits, 16 bytes as q4_0
    static constexpr int block = 32, bytes = 24;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const float d = load_f16(b), m = load_f16(b + 2);
        const u32 fifth = load_u32_even(b + 4) >> i;
        const u8* q = b + 8 + (i & 15);
        const int shift = (i >> 4) * 4;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            const u32 word = ((load_u32_even(q + 4 * w) >> shift) & 0x0f0f0f0fu) | spread_fifth_bit(fifth >> (4 * w));
            expand_bytes(word, d, m, out + 4 * w);
        }
    }
};

struct Q8_0 {  // d, 32 signed bytes
    static constexpr int block = 32, bytes = 34;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const float d = load_f16(b);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const u32 pair = load_u16(b + 2 + i + 2 * w);
            out[2 * w] = d * (float)(s8)(pair & 0xffu);
            out[2 * w + 1] = d * (float)(s8)(pair >> 8);
        }
    }
};

struct Q2_K {  // 16 bytes of 4-bit scale and minimum, 64 bytes of 2-bit values, d, dmin
    static constexpr int block = 256, bytes = 84;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const int half = i >> 7, group = (i >> 5) & 3, l = i & 31;
        const u8 scale = b[8 * half + 2 * group + (l >> 4)];
        const float d = load_f16(b + 80) * (float)(scale & 0xf), m = load_f16(b + 82) * (float)(scale >> 4);
        const u8* q = b + 16 + 32 * half + l;
#pragma unroll
        for (int w = 0; w < 2; w++) expand_bytes((load_u32_even(q + 4 * w) >> (2 * group)) & 0x03030303u, d, -m, out + 4 * w);
    }
};

struct Q3_K {  // 32 bytes of third bits, 64 of 2-bit values, 12 of 6-bit scales, d
    static constexpr int block = 256, bytes = 110;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const int half = i >> 7, group = (i >> 5) & 3, l = i & 31, s = 8 * half + 2 * group + (l >> 4);
        const u8* packed = b + 96;
        const int low = s < 8 ? packed[s] & 0xf : packed[s - 8] >> 4;
        const int scale = (low | (((packed[8 + (s & 3)] >> (2 * (s >> 2))) & 3) << 4)) - 32;
        const float d = load_f16(b + 108) * (float)scale;
        const u8 *q = b + 32 + 32 * half + l, *third = b + l;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            const u32 low2 = (load_u32_even(q + 4 * w) >> (2 * group)) & 0x03030303u;
            const u32 bit = ((load_u32_even(third + 4 * w) >> (4 * half + group)) & 0x01010101u) << 2;
            expand_bytes(low2 | bit, d, -4.0f * d, out + 4 * w);
        }
    }
};

struct Q4_K {  // d, dmin, 12 bytes of 6-bit scales and minima, 128 bytes: 32 low nibbles then 32 high ones, four times
    static constexpr int block = 256, bytes = 144;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const int j = i >> 5;
        float scale, minimum;
        scale_min_k4(b + 4, j, scale, minimum);
        const u32 both = *(const u32*)b;
        const float d = low_f16(both) * scale, m = high_f16(both) * minimum;
        const u32* q = (const u32*)(b + 16 + 32 * (j >> 1) + (i & 31));
        const int shift = 4 * (j & 1);
        expand_bytes((q[0] >> shift) & 0x0f0f0f0fu, d, -m, out);
        expand_bytes((q[1] >> shift) & 0x0f0f0f0fu, d, -m, out + 4);
    }
};

struct Q5_K {  // q4_K with 32 bytes of fifth bits (bit j of byte l belongs to sub-block j) before the nibbles
    static constexpr int block = 256, bytes = 176;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const int j = i >> 5, l = i & 31;
        float scale, minimum;
        scale_min_k4(b + 4, j, scale, minimum);
        const u32 both = *(const u32*)b;
        const float d = low_f16(both) * scale, m = high_f16(both) * minimum;
        const u32 *fifth = (const u32*)(b + 16 + l), *q = (const u32*)(b + 48 + 32 * (j >> 1) + l);
        const int shift = 4 * (j & 1);
#pragma unroll
        for (int w = 0; w < 2; w++) {
            const u32 word = ((q[w] >> shift) & 0x0f0f0f0fu) | (((fifth[w] >> j) & 0x01010101u) << 4);
            expand_bytes(word, d, -m, out + 4 * w);
        }
    }
};

struct Q6_K {  // 128 bytes of low nibbles, 64 of high 2 bits, 16 signed scales, d; 14 bytes more than ggml's, so that blocks are aligned
    static constexpr int block = 256, bytes = 224;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const int half = i >> 7, group = (i >> 5) & 3, l = i & 31;
        const float d = load_f16(b + 208) * (float)(s8)b[192 + 8 * half + 2 * group + (l >> 4)];
        const u8 *low = b + 64 * half + 32 * (group & 1) + l, *high = b + 128 + 32 * half + l;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            const u32 nibbles = (((const u32*)low)[w] >> (4 * (group >> 1))) & 0x0f0f0f0fu;
            const u32 top = ((((const u32*)high)[w] >> (2 * group)) & 0x03030303u) << 4;
            expand_bytes(nibbles | top, d, -32.0f * d, out + 4 * w);
        }
    }
};

// Non-linear 4-bit levels of iq4_nl and iq4_xs.
__constant__ s8 IQ4_LEVELS[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

struct IQ4_NL {  // as q4_0, the nibble indexes the levels
    static constexpr int block = 32, bytes = 18;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const float d = load_f16(b);
        const u8* q = b + 2 + (i & 15);
        const int shift = (i >> 4) * 4;
#pragma unroll
        for (int e = 0; e < 8; e++) out[e] = d * (float)IQ4_LEVELS[(q[e] >> shift) & 0xf];
    }
};

struct IQ4_XS {  // d, high scale bits, low scale nibbles, 128 bytes: 16 bytes a sub-block as iq4_nl
    static constexpr int block = 256, bytes = 136;
    static DEVICE void decode8(const u8* b, int i, float* out) {
        const int j = i >> 5, l = i & 31;
        const int scale = ((b[4 + (j >> 1)] >> (4 * (j & 1))) & 0xf) | (((load_u16(b + 2) >> (2 * j)) & 3) << 4);
        const float d = load_f16(b) * (float)(scale - 32);
        const u8* q = b + 8 + 16 * j + (l & 15);
        const int shift = (l >> 4) * 4;
#pragma unroll
        for (int e = 0; e < 8; e++) out[e] = d * (float)IQ4_LEVELS[(q[e] >> shift) & 0xf];
    }
};

// Calls X(type in symbols, struct) for every type that the kernels decode; the first list is without q4_K and q6_K.
#define EACH_SIMPLE_TYPE(X) \
    X(f32, F32) X(f16, F16) X(bf16, BF16) X(q4_0, Q4_0) X(q4_1, Q4_1) X(q5_0, Q5_0) X(q5_1, Q5_1) X(q8_0, Q8_0) \
    X(q2_K, Q2_K) X(q3_K, Q3_K) X(q5_K, Q5_K) X(iq4_nl, IQ4_NL) X(iq4_xs, IQ4_XS)
#define EACH_WEIGHT_TYPE(X) EACH_SIMPLE_TYPE(X) X(q4_K, Q4_K) X(q6_K, Q6_K)

// Address of the block that holds element `i` of a row, and the element's place in it.
template <class T>
DEVICE const u8* block_of(const u8* row, long long i, int& within) {
    within = (int)(i % T::block);
    return row + (i / T::block) * T::bytes;
}
