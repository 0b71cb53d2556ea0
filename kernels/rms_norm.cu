// rms_norm: root-mean-square norm of rows (arXiv:1910.07467), times a learned weight.
//
// x         f32 or f16 [rows, width]; width is a multiple of 4 (f32) or 2 (f16)
// weight    f32 [width]
// out       f16 [rows, width]
//
// Variants tried
//   _f32        one block a row, f32 in, f16 out: what the next matrix product reads     current
//   _heads_f16  one warp a row, f16 to f16: queries and keys of Qwen 3 and Gemma 3       current
//   _f16        one block a row, f16 to f16: Gemma's norms after a block                 current
//   _residual   adds a f16 product to the f32 residual, then norms it: one pass for two  current
#include "common.cuh"

constexpr int THREADS = 256;

DEVICE float block_sum(float v) {
    __shared__ float partial[THREADS / 32];
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = v;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) total += partial[i];
    return total;
}

DEVICE float square_sum(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }

DEVICE uint2 scaled(float4 v, float4 w, float scale) {
    return make_uint2(pack_f16(clamp_f16(v.x * scale * w.x), clamp_f16(v.y * scale * w.y)),
                      pack_f16(clamp_f16(v.z * scale * w.z), clamp_f16(v.w * scale * w.w)));
}

KERNEL(THREADS) minfer_rms_norm_f32(const float* x, const float* weight, f16* out, int width, float epsilon) {
    const float4* row = (const float4*)(x + (long long)blockIdx.x * width);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width / 4; i += THREADS) sum += square_sum(row[i]);
    const float scale = rsqrtf(block_sum(sum) / width + epsilon);
    uint2* to = (uint2*)(out + (long long)blockIdx.x * width);
    for (int i = threadIdx.x; i < width / 4; i += THREADS) to[i] = scaled(row[i], ((const float4*)weight)[i], scale);
}

KERNEL(THREADS) minfer_rms_norm_residual(float* x, const f16* product, const float* weight, f16* out, int width, float epsilon) {
    float4* row = (float4*)(x + (long long)blockIdx.x * width);
    const uint2* added = (const uint2*)(product + (long long)blockIdx.x * width);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width / 4; i += THREADS) {
        float4 v = row[i];
        const uint2 a = added[i];
        v.x += low_f16(a.x);
        v.y += high_f16(a.x);
        v.z += low_f16(a.y);
        v.w += high_f16(a.y);
        row[i] = v;
        sum += square_sum(v);
    }
    const float scale = rsqrtf(block_sum(sum) / width + epsilon);
    uint2* to = (uint2*)(out + (long long)blockIdx.x * width);
    for (int i = threadIdx.x; i < width / 4; i += THREADS) to[i] = scaled(row[i], ((const float4*)weight)[i], scale);
}

KERNEL(THREADS) minfer_rms_norm_f16(const f16* x, const float* weight, f16* out, int width, float epsilon) {
    const u32* row = (const u32*)(x + (long long)blockIdx.x * width);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width / 2; i += THREADS) {
        const float a = low_f16(row[i]), b = high_f16(row[i]);
        sum += a * a + b * b;
    }
    const float scale = rsqrtf(block_sum(sum) / width + epsilon);
    u32* to = (u32*)(out + (long long)blockIdx.x * width);
    for (int i = threadIdx.x; i < width / 2; i += THREADS) {
        const float2 w = ((const float2*)weight)[i];
        to[i] = pack_f16(clamp_f16(low_f16(row[i]) * scale * w.x), clamp_f16(high_f16(row[i]) * scale * w.y));
    }
}

KERNEL(THREADS) minfer_rms_norm_heads_f16(const f16* x, const float* weight, f16* out, int rows, int width, float epsilon) {
    const int row = blockIdx.x * (THREADS / 32) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (row >= rows) return;
    const u32* at = (const u32*)(x + (long long)row * width);
    u32* to = (u32*)(out + (long long)row * width);
    float sum = 0.0f;
    for (int i = lane; i < width / 2; i += 32) {
        const float a = low_f16(at[i]), b = high_f16(at[i]);
        sum += a * a + b * b;
    }
    const float scale = rsqrtf(warp_sum(sum) / width + epsilon);
    for (int i = lane; i < width / 2; i += 32) {
        const float2 w = ((const float2*)weight)[i];
        to[i] = pack_f16(low_f16(at[i]) * scale * w.x, high_f16(at[i]) * scale * w.y);
    }
}
