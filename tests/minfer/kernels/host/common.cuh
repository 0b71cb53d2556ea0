// Stands for kernels/common.cuh where kernels/blocks.cuh is compiled by the host's C++ compiler.
#pragma once
#include <cmath>
#include <cstring>
typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef u16 f16;
#define DEVICE inline
#define __constant__
inline float f16_to_f32(f16 h) {
    const int exponent = (h >> 10) & 31, fraction = h & 1023;
    const float size = exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp((float)fraction, -24);
    return h & 0x8000 ? -size : size;
}
inline float low_f16(u32 packed) { return f16_to_f32((f16)(packed & 0xffffu)); }
inline float high_f16(u32 packed) { return f16_to_f32((f16)(packed >> 16)); }
inline float bf16_to_f32(u16 h) {
    const u32 bits = (u32)h << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
