// A matrix-vector product on the matrix units: 16 weight rows a block of threads, whose warps take the blocks of k in turn.
//
// Integers of a weight block become f16 without conversion: the bits of 0 to 1023 read as f16 are that integer times 2^-24, a
// subnormal number, which the matrix units multiply exactly. One mma takes 16 rows by 16 weights of one sub-block. Its eight
// result columns stand for eight sub-blocks, not for eight tokens: the activations of all others are zero in a column, so that
// each sub-block's sum comes out by itself and meets its scale once. Activations stay f16, sums f32: nothing is approximated.
// Raw bytes come through shared memory by cp.async, several blocks ahead.
#pragma once
#include "f16_blocks.cuh"

constexpr int TILE_ROWS = 16, X_BYTES = 512;
constexpr u32 ONES = 0x3c003c00u;

DEVICE void store_sum(float total, const float* bias, void* out, int row, int n, float scale, int wide) {
    const long long at = (long long)blockIdx.y * n + row;
    total = total * scale + (bias ? bias[row] : 0.0f);
    if (wide)
        ((float*)out)[at] = total;
    else
        ((f16*)out)[at] = f32_to_f16(clamp_f16(total));
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

// Elements 0, 2 and 1, 3 of four, as the operands pair them.
DEVICE u32 even_pair(uint2 four) { return __byte_perm(four.x, four.y, 0x5410); }
DEVICE u32 odd_pair(uint2 four) { return __byte_perm(four.x, four.y, 0x7632); }

// Lane 4 g + t holds rows g and g + 8, and what it takes of each sub-block.
struct TileQ4 {
    static constexpr int bytes = Q4_K::bytes, pitch = 160, stages = 4;

    // Eight sub-blocks of 32, each two mma of 16: lane t takes elements 8 t to 8 t + 7.
    static DEVICE void multiply(const u8* tile, const f16* x, float (&sum)[2]) {
        const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
        const uint4 eight = *(const uint4*)(x + 32 * g + 8 * t);  // of sub-block g
        const u32 mine[4] = {even_pair(make_uint2(eight.x, eight.y)), odd_pair(make_uint2(eight.x, eight.y)),
                             even_pair(make_uint2(eight.z, eight.w)), odd_pair(make_uint2(eight.z, eight.w))};
        float low[4] = {}, high[4] = {}, total[4] = {};
        const u32 ones[4] = {ONES, ONES, ONES, ONES};
        mma_f16(total, ones, mine[0], mine[1]);
        mma_f16(total, ones, mine[2], mine[3]);
        const u8 *upper = tile + g * pitch, *lower = upper + 8 * pitch;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const uint2 a = *(const uint2*)(upper + 16 + 32 * c + 8 * t), b = *(const uint2*)(lower + 16 + 32 * c + 8 * t);
#pragma unroll
            for (int w = 0; w < 2; w++) {
                const u32 p = w ? a.y : a.x, q = w ? b.y : b.x;
                const u32 even[4] = {p & 0x000f000fu, q & 0x000f000fu, (p >> 8) & 0x000f000fu, (q >> 8) & 0x000f000fu};
                const u32 odd[4] = {p & 0x00f000f0u, q & 0x00f000f0u, (p >> 8) & 0x00f000f0u, (q >> 8) & 0x00f000f0u};
                const bool in_even = g == 2 * c, in_odd = g == 2 * c + 1;
                mma_f16(low, even, in_even ? mine[2 * w] : 0u, in_even ? mine[2 * w + 1] : 0u);
                mma_f16(high, odd, in_odd ? mine[2 * w] : 0u, in_odd ? mine[2 * w + 1] : 0u);
            }
        }
        // This lane's columns are sub-blocks 2 t and 2 t + 1: low nibbles times 2^-24, and high ones times 16 * 2^-24.
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float d[2], m[2];
            pair_scales(*(const uint4*)(r ? lower : upper), t, d, m);
            sum[r] += d[0] * (low[2 * r] * 0x1p24f) + d[1] * (high[2 * r + 1] * 0x1p20f) - m[0] * total[0] - m[1] * total[1];
        }
    }
};

struct TileQ6 {
    static constexpr int bytes = Q6_K::bytes, pitch = 240, stages = 3;

    // Sixteen sub-blocks of 16, each one mma, eight of each half of the block: lane t takes elements 4 t to 4 t + 3.
    static DEVICE void multiply(const u8* tile, const f16* x, float (&sum)[2]) {
        const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
        const u8 *upper = tile + g * pitch, *lower = upper + 8 * pitch;
        const u32 ones[4] = {ONES, ONES, ONES, ONES};
        const float d[2] = {load_f16(upper + 208), load_f16(lower + 208)};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint2 four = *(const uint2*)(x + 128 * half + 16 * g + 4 * t);  // of the half's sub-block g
            const u32 mine[2] = {even_pair(four), odd_pair(four)};
            float total[4] = {}, dot[2][4] = {};
            mma_f16(total, ones, mine[0], mine[1]);
#pragma unroll
            for (int s = 0; s < 2; s++) {
                u32 word[2][3];
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const u8* row = (r ? lower : upper) + 16 * s + 4 * t;
                    word[r][0] = *(const u32*)(row + 64 * half);
                    word[r][1] = *(const u32*)(row + 64 * half + 32);
                    word[r][2] = *(const u32*)(row + 128 + 32 * half);
                }
#pragma unroll
                for (int group = 0; group < 4; group++) {
                    u32 a[4];
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        const u32 nibbles = (word[r][group & 1] >> (4 * (group >> 1))) & 0x0f0f0f0fu;
                        const u32 top = group < 2 ? word[r][2] << (4 - 2 * group) : word[r][2] >> (2 * group - 4);
                        const u32 q = nibbles | (top & 0x30303030u);
                        a[r] = q & 0x00ff00ffu;
                        a[r + 2] = (q >> 8) & 0x00ff00ffu;
                    }
                    const bool in = g == 2 * group + s;
                    mma_f16(dot[s], a, in ? mine[0] : 0u, in ? mine[1] : 0u);
                }
            }
            // Columns 2 t and 2 t + 1: group t of the half, its first and second 16; q is stored 32 too large.
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const u32 scales = load_u16((r ? lower : upper) + 192 + 8 * half + 2 * t);
                const float first = dot[0][2 * r] * 0x1p24f - 32.0f * total[0];
                const float second = dot[1][2 * r + 1] * 0x1p24f - 32.0f * total[1];
                sum[r] += d[r] * ((float)(s8)(scales & 0xffu) * first + (float)(s8)(scales >> 8) * second);
            }
        }
    }
};

// Shared memory of a block of threads: T::stages tiles a warp, each 16 rows and the activations that meet them.
template <class T>
DEVICE void mmv_tile(int tile_of_rows, const u8* weights, const f16* row_x, const float* bias, void* out, int n, int k, float scale,
                     int wide) {
    extern __shared__ __align__(128) u8 shared[];
    static_assert(T::bytes % 16 == 0);
    constexpr int STAGE = TILE_ROWS * T::pitch + X_BYTES, PIECES = T::bytes / 16;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int first = tile_of_rows * TILE_ROWS, blocks = k / 256;
    const long long row_bytes = (long long)blocks * T::bytes;
    u8* mine = shared + warp * T::stages * STAGE;

    const auto load = [&](int turn, int block) {
        if (block < blocks) {
            const u32 tile = shared_address(mine + turn * STAGE);
#pragma unroll
            for (int i = lane; i < TILE_ROWS * PIECES; i += 32) {
                const int row = i / PIECES, piece = i - row * PIECES;
                copy_async_16(tile + row * T::pitch + piece * 16,
                              weights + min(first + row, n - 1) * row_bytes + (long long)block * T::bytes + piece * 16);
            }
            copy_async_16(tile + TILE_ROWS * T::pitch + lane * 16, row_x + block * 256 + lane * 8);
        }
        copy_async_commit();
    };

    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int s = 0; s < T::stages - 1; s++) load(s, warp + s * warps);
    int turn = 0;
    for (int block = warp; block < blocks; block += warps) {
        const int ahead = turn == 0 ? T::stages - 1 : turn - 1;
        load(ahead, block + (T::stages - 1) * warps);
        copy_async_wait<T::stages - 1>();
        __syncwarp();
        const u8* tile = mine + turn * STAGE;
        const f16* tile_x = (const f16*)(tile + TILE_ROWS * T::pitch);
        T::multiply(tile, tile_x, sum);
        __syncwarp();
        turn = turn == T::stages - 1 ? 0 : turn + 1;
    }
    copy_async_wait<0>();
    __syncthreads();
    float* partial = (float*)shared;  // [warps][16]
#pragma unroll
    for (int r = 0; r < 2; r++) {
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
        if ((lane & 3) == 0) partial[warp * TILE_ROWS + (lane >> 2) + 8 * r] = sum[r];
    }
    __syncthreads();
    if (threadIdx.x < TILE_ROWS && first + threadIdx.x < n) {
        float total = 0.0f;
        for (int w = 0; w < warps; w++) total += partial[w * TILE_ROWS + threadIdx.x];
        store_sum(total, bias, out, first + threadIdx.x, n, scale, wide);
    }
}
