// fused: x w^T in f16 on Hopper's warpgroup matrix units. q4_K and q6_K weights come as they are stored and become the left operand in
// registers, so no f16 copy of them is ever written; activations are the right operand, in shared memory.
//
// weights   tensor map of u8 [n, k / 256 * bytes], boxes of a block by 128 rows; k is a multiple of 256, n is even
// x         tensor map of f16 [m, k], boxes of 64 columns by TOKENS rows, swizzled by 128 bytes
// out       f16 [m, stride], of which n columns are written, times `scale`
// grid      fused_TOKENS: at most as many blocks as multiprocessors, each takes tiles in turn, the token tiles of one row tile next to
//           each other; fused_TOKENS_split: two blocks a tile, a cluster whose blocks take half of the columns each
//
// A q4_K weight is scale * q - minimum with scale and minimum rounded to f16, a q6_K weight scale * q: q is exact, so the error is at
// most that of three f16 roundings where dequantise.cu makes one.
//
// Variants tried
//   tokens 64, 128, 256   tile of 128 rows by so many tokens; two warpgroups of 64 rows, each unpacks the next 64 columns while its
//                         product runs; one lane has the copy engine fill five stages of 64 columns; 700 to 710 TFLOP/s at 3325
//                         tokens with 256 (cuBLAS alone 780, with dequantise.cu before it 725)                  current
//   split                 halves of the columns, sums exchanged through the other block's shared memory: 666 instead of 570 TFLOP/s
//                         for [3584, 18944] at 512 tokens (cuBLAS alone 736, with dequantise.cu 510)            current, for few tiles
//   q6_K                  [3584, 18944] 108 us at 512 tokens (cuBLAS with dequantise.cu 139, before blocks were aligned 145); from 1024
//                         tokens on the two are even. Its 224 bytes a row put two rows of eight into one bank: 12 two-byte reads
//                         a row serve 128 columns, so that they stay beside the products                                current
//   cluster of two rows   each block brings half of the activations to both: 1 % faster at 3325 tokens, slower at 512
//   cp.async              a warpgroup copies 16 bytes a lane: 475 and 350 TFLOP/s, its addresses alone took longer than the products
#include "fused_tile.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Sums of tokens FIRST to LAST (in eights) come from the other block, which gets this one's sums of the others.
template <int FIRST, int LAST, int N>
DEVICE void exchange(float (&d)[N], float4* space, u32 other) {
    const int thread = threadIdx.x - 128;
    constexpr int THEIRS = FIRST == 0 ? LAST : 0;
    const u32 at = shared_address(space + thread);
#pragma unroll
    for (int t = 0; t < LAST - FIRST; t++) store_in_other(at + t * 256 * 16, other, &d[4 * (THEIRS + t)]);
    cluster_sync();
#pragma unroll
    for (int t = 0; t < LAST - FIRST; t++) {
        const float4 v = space[thread + t * 256];
        d[4 * (FIRST + t)] += v.x, d[4 * (FIRST + t) + 1] += v.y, d[4 * (FIRST + t) + 2] += v.z, d[4 * (FIRST + t) + 3] += v.w;
    }
}

template <class W, int TOKENS, bool SPLIT>
DEVICE void fused(const TensorMap& x, const TensorMap& weights, f16* out, int m, int n, int stride, int k, float scale) {
    extern __shared__ u8 dynamic[];
    __shared__ u64 barriers[2 * STAGES];
    const Space<W, TOKENS> space(dynamic, barriers);
    const int half = SPLIT ? blockIdx.x & 1 : 0, index = SPLIT ? blockIdx.x / 2 : blockIdx.x, blocks = SPLIT ? gridDim.x / 2 : gridDim.x;
    const int token_tiles = (m + TOKENS - 1) / TOKENS, middle = k / 512 * 256;
    const int tiles = token_tiles * ((n + ROWS - 1) / ROWS), begin = half ? middle : 0, end = SPLIT && !half ? middle : k;
    u32 step = 0;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int tile = index; threadIdx.x == 0 && tile < tiles; tile += blocks)
            copy_tile<W, TOKENS>(x, weights, tile / token_tiles * ROWS, tile % token_tiles * TOKENS, begin, end, step, space.at_x,
                                 space.at_w, space.full, space.empty);
        if (SPLIT) cluster_sync(), cluster_sync();
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int warp_row = ((threadIdx.x >> 5) - 4) * 16;
    float d[TOKENS / 2];
    for (int tile = index; tile < tiles; tile += blocks) {
        const int row = tile / token_tiles * ROWS + warp_row, token = tile % token_tiles * TOKENS;
        multiply<W, TOKENS>(d, step, end - begin, space.weights_of(warp_row), space.at_x, space.full, space.empty);
        if (!SPLIT) {
            store<0, TOKENS / 8>(d, out, token, row, m, n, stride, scale);
            continue;
        }
        // Both blocks are through with their only tile: the stages are free for sums.
        cluster_sync();
        if (half == 0) {
            exchange<0, TOKENS / 16>(d, (float4*)space.shared, 1);
            store<0, TOKENS / 16>(d, out, token, row, m, n, stride, scale);
        } else {
            exchange<TOKENS / 16, TOKENS / 8>(d, (float4*)space.shared, 0);
            store<TOKENS / 16, TOKENS / 8>(d, out, token, row, m, n, stride, scale);
        }
    }
}

#define ARGUMENTS const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap weights, f16* out, int m, int n, int stride, int k, float scale
#define FUSED(name, W, TOKENS)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(384, 1) minfer_gemm_##name##_fused_##TOKENS(ARGUMENTS) {                      \
        fused<W, TOKENS, false>(x, weights, out, m, n, stride, k, scale);                                                      \
    }                                                                                                                          \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)                                             \
        minfer_gemm_##name##_fused_##TOKENS##_split(ARGUMENTS) {                                                               \
        fused<W, TOKENS, true>(x, weights, out, m, n, stride, k, scale);                                                       \
    }
#define EACH_TILE(name, W) FUSED(name, W, 64) FUSED(name, W, 128) FUSED(name, W, 256)
EACH_TILE(q4_K, FusedQ4)
EACH_TILE(q6_K, FusedQ6)

#endif
