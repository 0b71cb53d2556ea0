// mmv: a few activation rows times a quantised matrix: y = x w^T (decode, and the output head of a prefill).
//
// weights   u8 [n, k / block * bytes]; k is a multiple of 8 and of the type's block
// x         f16 [m, k]
// bias      f32 [n], or null
// out       f16 or f32 [m, n]: the product times `scale`, plus the bias; grid.x = ceil(n / 4), grid.y = m
//
// Variants tried
//   four rows a block of 128 threads, weights decoded to f32 in registers, exact activations   current
#include "blocks.cuh"

constexpr int ROWS = 4, THREADS = 128;

template <class T>
DEVICE void mmv(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, int wide) {
    const int first = blockIdx.x * ROWS;
    const long long row_bytes = (long long)(k / T::block) * T::bytes;
    const f16* row = x + (long long)blockIdx.y * k;
    float sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) sum[r] = 0.0f;
    for (int i = threadIdx.x * 8; i < k; i += THREADS * 8) {
        const uint4 packed = *(const uint4*)(row + i);
        const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
        int within;
        const u8* block = block_of<T>(weights + first * row_bytes, i, within);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (first + r >= n) break;
            float w[8];
            T::decode8(block + r * row_bytes, within, w);
#pragma unroll
            for (int e = 0; e < 4; e++) sum[r] += low_f16(words[e]) * w[2 * e] + high_f16(words[e]) * w[2 * e + 1];
        }
    }
    __shared__ float partial[ROWS][THREADS / 32];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float total = warp_sum(sum[r]);
        if ((threadIdx.x & 31) == 0) partial[r][threadIdx.x >> 5] = total;
    }
    __syncthreads();
    if (threadIdx.x < ROWS && first + threadIdx.x < n) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < THREADS / 32; w++) total += partial[threadIdx.x][w];
        const long long at = (long long)blockIdx.y * n + first + threadIdx.x;
        total = total * scale + (bias ? bias[first + threadIdx.x] : 0.0f);
        if (wide)
            ((float*)out)[at] = total;
        else
            ((f16*)out)[at] = f32_to_f16(clamp_f16(total));
    }
}

#define VARIANT(name, type)                                                                                               \
    KERNEL(THREADS) minfer_mmv_##name(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, \
                                      int wide) {                                                                           \
        mmv<type>(weights, x, bias, out, n, k, scale, wide);                                                                \
    }
EACH_WEIGHT_TYPE(VARIANT)
