// add: the small sums between matrix products.
//
// minfer_add_residual   x f32 [count] += y f16 [count]; count is a multiple of 4
// minfer_add_bias       x f16 [nt, width], `stride` between tokens, += bias f32 [width]; width is a multiple of 2
// minfer_softcap       x f32 [count] = cap * tanh(x / cap)
//
// Variants tried
//   one thread, four (residual), two (bias) or one (cap) elements   current
#include "common.cuh"

KERNEL(256) minfer_add_residual(float* x, const f16* y, long long count) {
    const long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= count) return;
    float4 v = *(float4*)(x + i);
    const uint2 a = *(const uint2*)(y + i);
    v.x += low_f16(a.x);
    v.y += high_f16(a.x);
    v.z += low_f16(a.y);
    v.w += high_f16(a.y);
    *(float4*)(x + i) = v;
}

KERNEL(256) minfer_add_bias(f16* x, const float* bias, int nt, int width, int stride) {
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)nt * (width / 2)) return;
    const int i = (int)(index % (width / 2)) * 2;
    u32* at = (u32*)(x + index / (width / 2) * stride + i);
    *at = pack_f16(low_f16(*at) + bias[i], high_f16(*at) + bias[i + 1]);
}

KERNEL(256) minfer_softcap(float* x, float cap, long long count) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] = cap * tanhf(x[i] / cap);
}
