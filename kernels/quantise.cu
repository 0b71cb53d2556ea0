// quantise: f16 activations -> q8_1: signed bytes with a scale for every 32, and the sum that a weight's minimum multiplies.
//
// x         f16 [m, k]; k is a multiple of 32
// q         int8
// scales    f32 pairs (d, s): x is about d * q, s = d * (sum of q over the 32)
//
// Variants tried
//   _q8_1      q [m, k], scales [m, k / 32]: as the tokens lie                                          for mmq
//   _q8_1_bt   transposed: q in the order in which lanes hold mma operands, [m / 16, k / 32, 32 lanes, 16 bytes], scales
//              [k / 32, m]; m is padded to 128 tokens of zeros                                          for bt
#include "common.cuh"

struct Quantised8 {
    u32 low, high;  // elements 0 to 3 and 4 to 7
    float d, s;
};

// Eight elements a thread; four neighbouring lanes share a group of 32.
DEVICE Quantised8 quantise_8(const uint4& packed) {
    const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
    float v[8], largest = 0.0f;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        v[2 * w] = low_f16(words[w]);
        v[2 * w + 1] = high_f16(words[w]);
        largest = fmaxf(largest, fmaxf(fabsf(v[2 * w]), fabsf(v[2 * w + 1])));
    }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    Quantised8 out;
    out.d = largest / 127.0f;
    const float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    int sum = 0;
    out.low = out.high = 0;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int a = __float2int_rn(v[e] * inverse), b = __float2int_rn(v[e + 4] * inverse);
        sum += a + b;
        out.low |= (u32)(a & 0xff) << (8 * e);
        out.high |= (u32)(b & 0xff) << (8 * e);
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    out.s = out.d * (float)sum;
    return out;
}

KERNEL(256) minfer_quantise_q8_1(const f16* x, u8* q, float2* scales, int m, int k) {
    const long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 8, count = (long long)m * k;
    const Quantised8 out = quantise_8(i < count ? *(const uint4*)(x + i) : make_uint4(0, 0, 0, 0));
    if (i >= count) return;
    *(uint2*)(q + i) = make_uint2(out.low, out.high);
    if ((i & 31) == 0) scales[i / 32] = make_float2(out.d, out.s);
}

KERNEL(256) minfer_quantise_q8_1_bt(const f16* x, u8* q, float2* scales, int m, int k, int padded) {
    const u32 chunk = blockIdx.x * blockDim.x + threadIdx.x;
    const int token = chunk / (k / 8), at = chunk % (k / 8) * 8;
    const Quantised8 out = quantise_8(token < m ? *(const uint4*)(x + (long long)chunk * 8) : make_uint4(0, 0, 0, 0));
    if (token >= padded) return;
    const int row = token & 15, within = at & 31;
    const int lane = (row & 7) * 4 + ((within & 15) >> 2), word = (row >> 3) + 2 * (within >> 4);
    u32* to = (u32*)(q + ((long long)(token >> 4) * (k / 32) + at / 32) * 512);
    to[lane * 4 + word] = out.low;
    to[(lane + 1) * 4 + word] = out.high;
    if (within == 0) scales[(long long)(at / 32) * padded + token] = make_float2(out.d, out.s);
}
