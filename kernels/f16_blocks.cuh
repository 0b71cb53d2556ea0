// Blocks of q4_K and q6_K as packed f16, made in registers for the matrix units: integers exact, scales rounded to f16.
#pragma once
#include "blocks.cuh"

DEVICE u32 sub_f16x2(u32 a, u32 b) {
    u32 out;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
    return out;
}
DEVICE u32 mul_f16x2(u32 a, u32 b) {
    u32 out;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
    return out;
}
DEVICE u32 fma_f16x2(u32 a, u32 b, u32 c) {
    u32 out;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
    return out;
}

// Scale and negated minimum, as packed f16, of sub-blocks 2 c and 2 c + 1 of the q4_K block at `header`.
DEVICE void scales_of_pair(const u8* header, int c, u32 (&out)[2]) {
    const uint4 words = *(const uint4*)header;
    const float d = low_f16(words.x), dmin = high_f16(words.x);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int shift = 8 * ((2 * c + i) & 3);
        const u32 low = words.y >> shift, middle = words.z >> shift, high = words.w >> shift;
        const u32 scale = c < 2 ? low & 63u : (high & 15u) | ((low >> 2) & 48u);
        const u32 minimum = c < 2 ? middle & 63u : ((high >> 4) & 15u) | ((middle >> 2) & 48u);
        out[i] = pack_f16(d * (float)scale, -dmin * (float)minimum);
    }
}
