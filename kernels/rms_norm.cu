// rms_norm: root-mean-square norm of rows (arXiv:1910.07467), times a learned weight.
//
// x         f32 or f16 [rows, width]; width is a multiple of 4 (f32) or 2 (f16)
// weight    f32 [width]
// out       f16 [rows, width]
//
// Variants tried
//   _f32        one block a row, f32 in, f16 out: what the next matrix product reads; a row of up to 4 * 4 elements a
//               thread stays in registers between its sum and its scaling, which gave nothing (the second read comes from L1);
//               1024 threads where rows are few: 2.7 us instead of 4.1 for one row on an H200     current
//   _heads_f16  one warp a row, f16 to f16: queries and keys of Qwen 3 and Gemma 3       current
//   _f16        one block a row, f16 to f16: Gemma's norms after a block                 current
//   _residual   adds a f16 product to the f32 residual, then norms it: one pass for two  current
#include "common.cuh"

constexpr int THREADS = 256, MOST_THREADS = 1024, KEPT = 4;

DEVICE float block_sum(float v) {
    __shared__ float partial[MOST_THREADS / 32];
    const int lane = threadIdx.x & 31;
    v = warp_sum(v);
    if (lane == 0) partial[threadIdx.x >> 5] = v;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
}

DEVICE float square_sum(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }

DEVICE uint2 scaled(float4 v, float4 w, float scale) {
    return make_uint2(pack_f16(clamp_f16(v.x * scale * w.x), clamp_f16(v.y * scale * w.y)),
                      pack_f16(clamp_f16(v.z * scale * w.z), clamp_f16(v.w * scale * w.w)));
}

// One row a block: read(i) gives four elements, once each; they are scaled from registers where those suffice.
template <class Read>
DEVICE void norm_row(Read read, const float4* row, const float4* weight, uint2* out, int quads, float epsilon) {
    float4 kept[KEPT];
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < KEPT; j++) {
        const int i = threadIdx.x + j * blockDim.x;
        kept[j] = i < quads ? read(i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        sum += square_sum(kept[j]);
    }
    for (int i = threadIdx.x + KEPT * blockDim.x; i < quads; i += blockDim.x) sum += square_sum(read(i));
    const float scale = rsqrtf(block_sum(sum) / (4 * quads) + epsilon);
#pragma unroll
    for (int j = 0; j < KEPT; j++) {
        const int i = threadIdx.x + j * blockDim.x;
        if (i < quads) out[i] = scaled(kept[j], weight[i], scale);
    }
    for (int i = threadIdx.x + KEPT * blockDim.x; i < quads; i += blockDim.x) out[i] = scaled(row[i], weight[i], scale);
}

KERNEL(MOST_THREADS) minfer_rms_norm_f32(const float* x, const float* weight, f16* out, int width, float epsilon) {
    const float4* row = (const float4*)(x + (long long)blockIdx.x * width);
    uint2* to = (uint2*)(out + (long long)blockIdx.x * width);
    norm_row([&](int i) { return row[i]; }, row, (const float4*)weight, to, width / 4, epsilon);
}

KERNEL(MOST_THREADS) minfer_rms_norm_residual(float* x, const f16* product, const float* weight, f16* out, int width, float epsilon) {
    float4* row = (float4*)(x + (long long)blockIdx.x * width);
    const uint2* added = (const uint2*)(product + (long long)blockIdx.x * width);
    uint2* to = (uint2*)(out + (long long)blockIdx.x * width);
    const auto sum_of = [&](int i) {
        float4 v = row[i];
        const uint2 a = added[i];
        v.x += low_f16(a.x);
        v.y += high_f16(a.x);
        v.z += low_f16(a.y);
        v.w += high_f16(a.y);
        row[i] = v;
        return v;
    };
    norm_row(sum_of, row, (const float4*)weight, to, width / 4, epsilon);
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
