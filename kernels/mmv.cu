// mmv: a few activation rows times a quantised matrix: y = x w^T (decode, and the output head of a prefill).
//
// weights   u8 [n, k / block * bytes]; k is a multiple of 8 and of the type's block
// x         f16 [m, k]
// bias      f32 [n], or null
// out       f16 or f32 [m, n]: the product times `scale`, plus the bias; grid.y = m, grid.x = ceil(n / 4) (q4_K and q6_K: 16)
//
// Variants tried
//   (any type)  four rows a block of 128 threads, eight weights a thread decoded to f32, exact activations. 0.86 TB/s of
//               q4_K, 0.93 of q6_K on an H200: 8.6 instructions a weight, most of them the block's scales     current but for
//   q4_K, q6_K  32 weights a thread on the f32 units: 1.4 and 1.7 TB/s, bound by four instructions a weight (and, shift,
//               convert at a quarter of the rate, multiply)                                                   gone
//   q4_K, q6_K  on the matrix units, activations exact: see mmv_tile.cuh. On an H200 2.35 TB/s of gate or up; 2 to 4 stages and 2
//               to 14 warps a block are within a tenth of each other                                           current
//   q6_K        in blocks of 210 bytes as in the file, the 14 aligned pieces around each read and shifted: 168 us for the head of
//               152,064 by 3584, 30 for [3584, 18944]; in aligned blocks of 224 bytes 125 and 25               gone
//   _group      up to three matrices of one input in a launch: at a decode step                                current
//   _experts    each row's matrix is that of the expert which the router chose for it; x row blockIdx.y / share, m = choices
#include "mmv_tile.cuh"

constexpr int ROWS = 4, THREADS = 128;

// Sums of a block's rows over its threads, and the results.
DEVICE void finish(const float (&sum)[ROWS], const float* bias, void* out, int first, int n, float scale, int wide) {
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
        store_sum(total, bias, out, first + threadIdx.x, n, scale, wide);
    }
}

DEVICE const f16* row_of(const f16* x, int k) { return x + (long long)blockIdx.y * k; }

template <class T>
DEVICE void mmv(const u8* weights, const f16* row, const float* bias, void* out, int n, int k, float scale, int wide) {
    const int first = blockIdx.x * ROWS;
    const long long row_bytes = (long long)(k / T::block) * T::bytes;
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
    finish(sum, bias, out, first, n, scale, wide);
}

KERNEL(256) minfer_mmv_q4_K(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, int wide) {
    mmv_tile<TileQ4>(blockIdx.x, weights, row_of(x, k), bias, out, n, k, scale, wide);
}
KERNEL(256) minfer_mmv_q6_K(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, int wide) {
    mmv_tile<TileQ6>(blockIdx.x, weights, row_of(x, k), bias, out, n, k, scale, wide);
}

// Several matrices that meet the same activations, in one launch: queries, keys and values, or gate and up. Each part is its
// weights, bias and result with its rows and its type: 4 for q4_K, 6 for q6_K; n = 0 for none.
struct Part {
    const u8* weights;
    const float* bias;
    void* out;
    int n, type;
};

DEVICE int tiles_of(const Part& part) { return (part.n + TILE_ROWS - 1) / TILE_ROWS; }

template <bool mixed>
DEVICE void mmv_group(const f16* x, int k, float scale, const Part& first, const Part& second, const Part& third) {
    int tile = blockIdx.x;
    Part part = first;
    if (tile >= tiles_of(first)) {
        tile -= tiles_of(first);
        part = second;
        if (tile >= tiles_of(second)) {
            tile -= tiles_of(second);
            part = third;
        }
    }
    if (mixed && part.type == 6)
        mmv_tile<TileQ6>(tile, part.weights, row_of(x, k), part.bias, part.out, part.n, k, scale, 0);
    else
        mmv_tile<TileQ4>(tile, part.weights, row_of(x, k), part.bias, part.out, part.n, k, scale, 0);
}

#define PARTS \
    const u8 *w0, const float *b0, void *o0, int n0, int t0, const u8 *w1, const float *b1, void *o1, int n1, int t1, \
        const u8 *w2, const float *b2, void *o2, int n2, int t2
KERNEL(256) minfer_mmv_q4_K_group(const f16* x, int k, float scale, PARTS) {
    mmv_group<false>(x, k, scale, {w0, b0, o0, n0, t0}, {w1, b1, o1, n1, t1}, {w2, b2, o2, n2, t2});
}
KERNEL_RESIDENT(256, 2) minfer_mmv_group(const f16* x, int k, float scale, PARTS) {
    mmv_group<true>(x, k, scale, {w0, b0, o0, n0, t0}, {w1, b1, o1, n1, t1}, {w2, b2, o2, n2, t2});
}

#define VARIANT(name, type)                                                                                               \
    KERNEL(THREADS) minfer_mmv_##name(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, \
                                      int wide) {                                                                           \
        mmv<type>(weights, row_of(x, k), bias, out, n, k, scale, wide);                                                     \
    }
EACH_SIMPLE_TYPE(VARIANT)

// Experts of a mixture: result row blockIdx.y is that of one choice (experts.cu), whose expert stands in device memory.
template <class T>
DEVICE const u8* expert_of(const u8* weights, const int* chosen, int n, int k) {
    return weights + chosen[blockIdx.y] * (n * ((long long)(k / T::block) * T::bytes));
}
DEVICE const f16* choice_of(const f16* x, int k, int share) { return x + (long long)(blockIdx.y / share) * k; }

#define EXPERTS const u8 *weights, const f16 *x, const int *chosen, f16 *out, int n, int k, int share, float scale
#define EXPERT(T) expert_of<T>(weights, chosen, n, k), choice_of(x, k, share), nullptr, out, n, k, scale, 0
KERNEL(256) minfer_mmv_q4_K_experts(EXPERTS) { mmv_tile<TileQ4>(blockIdx.x, EXPERT(Q4_K)); }
KERNEL(256) minfer_mmv_q6_K_experts(EXPERTS) { mmv_tile<TileQ6>(blockIdx.x, EXPERT(Q6_K)); }
#define EXPERT_VARIANT(name, type) KERNEL(THREADS) minfer_mmv_##name##_experts(EXPERTS) { mmv<type>(EXPERT(type)); }
EACH_SIMPLE_TYPE(EXPERT_VARIANT)
