// gated: activation(gate) * up, the input of ffn_down.
//
// gate, up  f16 [nt, width], `stride` elements between tokens (one product may hold both)
// out       f16 [nt, width], multiplied by `scale`: a power of two below 1 that keeps the product inside f16's range;
//           the matrix product that reads it multiplies by 1 / scale, so no bit is lost but below 2^-24 / scale
// overflow  int32, set to 1 where the scaled product would still pass f16's largest number (it is then clamped)
// width and stride are multiples of 8
//
// Variants tried
//   one thread, eight elements   current: moves 6 bytes an element
#include "common.cuh"

struct Silu {
    static DEVICE float of(float x) { return x / (1.0f + __expf(-x)); }
};
struct Gelu {  // the tanh form, as Gemma uses it
    static DEVICE float of(float x) {
        const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
        return 0.5f * x * (1.0f + tanhf(inner));
    }
};

template <class Activation>
DEVICE void gated(const f16* gate, const f16* up, f16* out, int nt, int width, int stride, float scale, int* overflow) {
    const int chunks = width / 8;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)nt * chunks) return;
    const long long token = index / chunks;
    const int i = (int)(index % chunks) * 8;
    const uint4 g4 = *(const uint4*)(gate + token * stride + i), u4 = *(const uint4*)(up + token * stride + i);
    const u32 *g = (const u32*)&g4, *u = (const u32*)&u4;
    uint4 result;
    u32* r = (u32*)&result;
    float largest = 0.0f;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        const float low = Activation::of(low_f16(g[w])) * low_f16(u[w]) * scale;
        const float high = Activation::of(high_f16(g[w])) * high_f16(u[w]) * scale;
        largest = fmaxf(largest, fmaxf(fabsf(low), fabsf(high)));
        r[w] = pack_f16(clamp_f16(low), clamp_f16(high));
    }
    if (!(largest <= F16_MAX)) *overflow = 1;
    *(uint4*)(out + token * width + i) = result;
}

KERNEL(256) minfer_silu_mul(const f16* gate, const f16* up, f16* out, int nt, int width, int stride, float scale, int* overflow) {
    gated<Silu>(gate, up, out, nt, width, stride, scale, overflow);
}
KERNEL(256) minfer_gelu_mul(const f16* gate, const f16* up, f16* out, int nt, int width, int stride, float scale, int* overflow) {
    gated<Gelu>(gate, up, out, nt, width, stride, scale, overflow);
}
