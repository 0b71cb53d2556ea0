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

// Of sub-blocks 2 c and 2 c + 1 of the q4_K block at `header`: their scales, and their negated minima, as packed f16.
DEVICE void scales_of_pair(const u8* header, int c, u32 (&out)[2]) {
    const uint4 words = *(const uint4*)header;
    const int shift = 16 * (c & 1);
    const u32 low = words.y >> shift, middle = words.z >> shift, high = words.w >> shift;
    const u32 scales = c < 2 ? low & 0x3f3fu : (high & 0x0f0fu) | ((low >> 2) & 0x3030u);
    const u32 minima = c < 2 ? middle & 0x3f3fu : ((high >> 4) & 0x0f0fu) | ((middle >> 2) & 0x3030u);
    // An integer's bits over 0x64 are 1024 more than it; products of integers below 64 are rounded once.
    const u32 d = __byte_perm(words.x, 0, 0x1010), dmin = __byte_perm(words.x, 0, 0x3232) ^ 0x80008000u;
    out[0] = mul_f16x2(sub_f16x2(__byte_perm(scales, 0x64646464u, 0x4140), 0x64006400u), d);
    out[1] = mul_f16x2(sub_f16x2(__byte_perm(minima, 0x64646464u, 0x4140), 0x64006400u), dmin);
}
