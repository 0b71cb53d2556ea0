// expert_fused: as expert_gemm.cu, on Hopper's warpgroup matrix units, for q4_K and q6_K.
//
// x         tensor map of f16 [choices, k], in the order of the choices' experts, boxes of 64 columns by TOKENS rows; k is a multiple of 256
// weights   tensor map of u8 [experts * n, k / 256 * bytes], boxes of a block by 128 rows; n is even
// tiles     int32 [slots, 4]: expert, first place, place after the last (experts.cu); some are empty
// out       f16 [choices, n], times `scale`
// grid      at most as many blocks as multiprocessors; each lists the tiles that hold choices, once, and takes every gridDim.x-th of
//           them by 128 rows, the row tiles of the same choices next to each other. A box that reaches beyond an expert's rows or
//           choices brings the next one's, whose results are not stored
//
// Variants tried
//   tokens 64, 128, 256   choices of a tile. 128 experts of q4_K [768, 2048] by 512 tokens of 8 choices on an H200: 70.5, 93.6 and 145 us
//                         (expert_gemm.cu 79); by 1024 102, 97 and 147 (119); by 3325 250, 198 and 164 (293): 512 TFLOP/s     current
#include "fused_tile.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr int THREADS = 384, WARPS = THREADS / 32;

// The tiles that hold choices, in their order: expert and count less one, and first place. Returns how many.
DEVICE int list_tiles(const int4* tiles, int slots, int2* list) {
    __shared__ int counts[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int found = 0;
    for (int base = 0; base < slots; base += THREADS) {
        const int slot = base + threadIdx.x;
        const int4 tile = slot < slots ? tiles[slot] : make_int4(0, 0, 0, 0);
        const bool holds = tile.z > tile.y;
        const u32 holding = __ballot_sync(0xffffffffu, holds);
        if (lane == 0) counts[warp] = __popc(holding);
        __syncthreads();
        int at = found + __popc(holding & ((1u << lane) - 1u));
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (w < warp) at += counts[w];
            found += counts[w];
        }
        if (holds) list[at] = make_int2(tile.x << 8 | (tile.z - tile.y - 1), tile.y);
        __syncthreads();
    }
    return found;
}

template <class W, int TOKENS>
DEVICE void expert_fused(const TensorMap& x, const TensorMap& weights, const int4* tiles, int slots, f16* out, int n, int k, float scale) {
    extern __shared__ u8 dynamic[];
    __shared__ u64 barriers[2 * STAGES];
    const Space<W, TOKENS> space(dynamic, barriers);
    int2* list = (int2*)(space.shared + STAGES * TOKENS * 128 + BUFFERS * ROWS * W::bytes);
    const int row_tiles = (n + ROWS - 1) / ROWS, count = list_tiles(tiles, slots, list) * row_tiles;
    u32 step = 0;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int tile = blockIdx.x; threadIdx.x == 0 && tile < count; tile += gridDim.x) {
            const int2 share = list[tile / row_tiles];
            copy_tile<W, TOKENS>(x, weights, (share.x >> 8) * n + tile % row_tiles * ROWS, share.y, 0, k, step, space.at_x, space.at_w,
                                 space.full, space.empty);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int warp_row = ((threadIdx.x >> 5) - 4) * 16;
    float d[TOKENS / 2];
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
        const int2 share = list[tile / row_tiles];
        multiply<W, TOKENS>(d, step, k, space.weights_of(warp_row), space.at_x, space.full, space.empty);
        store<0, TOKENS / 8>(d, out + (long long)share.y * n, 0, tile % row_tiles * ROWS + warp_row, (share.x & 255) + 1, n, n, scale);
    }
}

#define VARIANT(name, W, TOKENS)                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) minfer_gemm_##name##_experts_fused_##TOKENS(                       \
        const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap weights, const int4* tiles, int slots, f16* out, \
        int n, int k, float scale) {                                                                                            \
        expert_fused<W, TOKENS>(x, weights, tiles, slots, out, n, k, scale);                                                    \
    }
#define EACH_TILE(name, W) VARIANT(name, W, 64) VARIANT(name, W, 128) VARIANT(name, W, 256)
EACH_TILE(q4_K, FusedQ4)
EACH_TILE(q6_K, FusedQ6)

#endif
