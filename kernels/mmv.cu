// mmv: a few activation rows times a quantised matrix: y = x w^T (decode, and the output head of a prefill).
//
// weights   u8 [n, k / block * bytes]; k is a multiple of 8 and of the type's block
// x         f16 [m, k]
// bias      f32 [n], or null
// out       f16 or f32 [m, n]: the product times `scale`, plus the bias; grid.x = ceil(n / 4), grid.y = m
//
// Variants tried
//   (any type)  four rows a block of 128 threads, eight weights a thread decoded to f32, exact activations. 0.86 TB/s of
//               q4_K on an H200: 8.6 instructions a weight, most of them the block's scales     current but for
//   q4_K        32 weights a thread: one 16-byte read of the block's head and one of 32 nibbles     current
#include "blocks.cuh"

constexpr int ROWS = 4, THREADS = 128;

// Sums of a block's rows over its threads, and the results.
DEVICE void finish(const float (&sum)[ROWS], const float* bias, void* out, int n, float scale, int wide) {
    const int first = blockIdx.x * ROWS;
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
    finish(sum, bias, out, n, scale, wide);
}

// The scales and minima of sub-blocks 2 * pair and 2 * pair + 1, from the first 16 bytes of a q4_K block.
DEVICE void pair_scales(const uint4& head, int pair, float (&d)[2], float (&m)[2]) {
    const int shift = 16 * (pair & 1);
    const u32 low = head.y >> shift, minima = head.z >> shift, high = head.w >> shift;
    u32 scales, offsets;  // two bytes each
    if (pair < 2) {
        scales = low & 0x3f3fu;
        offsets = minima & 0x3f3fu;
    } else {
        scales = (high & 0x0f0fu) | ((low >> 2) & 0x3030u);
        offsets = ((high >> 4) & 0x0f0fu) | ((minima >> 2) & 0x3030u);
    }
    const float scale = low_f16(head.x), minimum = high_f16(head.x);
    d[0] = scale * (float)(scales & 0xffu);
    d[1] = scale * (float)(scales >> 8 & 0xffu);
    m[0] = minimum * (float)(offsets & 0xffu);
    m[1] = minimum * (float)(offsets >> 8 & 0xffu);
}

// A thread takes 16 bytes of nibbles: 16 weights of an even sub-block and 16 of the odd one after it.
KERNEL(THREADS) minfer_mmv_q4_K(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, int wide) {
    const int first = blockIdx.x * ROWS, chunk = threadIdx.x & 7, pair = chunk >> 1;
    const long long row_bytes = (long long)(k / Q4_K::block) * Q4_K::bytes;
    const f16* row = x + (long long)blockIdx.y * k;
    const u8* from = weights + first * row_bytes;
    float sum[ROWS] = {};
    for (int block = threadIdx.x >> 3; block < k / Q4_K::block; block += THREADS / 8) {
        const u8* at = from + (long long)block * Q4_K::bytes;
        uint4 head[ROWS], nibbles[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const u8* b = at + (first + r < n ? r : 0) * row_bytes;
            head[r] = *(const uint4*)b;
            nibbles[r] = *(const uint4*)(b + 16 + 16 * chunk);
        }
        float v[2][16], total[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint4* p = (const uint4*)(row + block * 256 + pair * 64 + half * 32 + (chunk & 1) * 16);
            const uint4 a = p[0], b = p[1];
            const u32 words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
            total[half] = 0.0f;
#pragma unroll
            for (int w = 0; w < 8; w++) {
                v[half][2 * w] = low_f16(words[w]);
                v[half][2 * w + 1] = high_f16(words[w]);
                total[half] += v[half][2 * w] + v[half][2 * w + 1];
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float d[2], m[2];
            pair_scales(head[r], pair, d, m);
            const u32 words[4] = {nibbles[r].x, nibbles[r].y, nibbles[r].z, nibbles[r].w};
            float dot[2] = {0.0f, 0.0f};
#pragma unroll
            for (int w = 0; w < 4; w++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const u32 q = (words[w] >> (4 * half)) & 0x0f0f0f0fu;
#pragma unroll
                    for (int e = 0; e < 4; e++) dot[half] += (float)((q >> (8 * e)) & 0xffu) * v[half][4 * w + e];
                }
            sum[r] += d[0] * dot[0] - m[0] * total[0] + d[1] * dot[1] - m[1] * total[1];
        }
    }
    finish(sum, bias, out, n, scale, wide);
}

#define VARIANT(name, type)                                                                                               \
    KERNEL(THREADS) minfer_mmv_##name(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, \
                                      int wide) {                                                                           \
        mmv<type>(weights, x, bias, out, n, k, scale, wide);                                                                \
    }
EACH_OTHER_TYPE(VARIANT)
