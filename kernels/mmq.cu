// mmq: x w^T on the int8 matrix units: q8_1 activations, quantised weights of any type that integers.cuh knows.
//
// weights   u8 [n, k / block * bytes]; k is a multiple of 32
// q, scales q8_1 activations (quantise.cu): int8 [m, k], f32 pairs [m, k / 32]
// out       f16 or f32 [m, n], times `scale`; n is even
// grid      (ceil(n / 128), ceil(m / 128))
//
// Variants tried
//   generic   128 tokens by 128 rows, 64 deep, one buffer; every tile expands its weights to bytes in shared memory anew;
//             types with a scale for every 16 elements need two half-deep mma where the others need one     current:
//             q4_K 17.3 and q6_K 26.7 us per GMAC at 3325 tokens on an H200 (llama.cpp 10.7 and 13.8 there)
#include "int8_tile.cuh"
#include "integers.cuh"

constexpr int TOKENS = 128, ROWS = 128, DEPTH = 64, PITCH = DEPTH + 16;

template <class T, bool halves, bool minima>
DEVICE void mmq(const u8* weights, const u8* q, const float2* scales, void* out, int m, int n, int k, float scale, int wide) {
    __shared__ __align__(16) u8 tile_x[TOKENS * PITCH], tile_w[ROWS * PITCH];
    __shared__ float2 scale_x[DEPTH / 32][TOKENS];
    __shared__ float scale_w[DEPTH / 16][ROWS], minimum_w[DEPTH / 32][ROWS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int first_token = blockIdx.y * TOKENS, first_row = blockIdx.x * ROWS;
    const int warp_token = (warp & 1) * 64, warp_row = (warp >> 1) * 32;
    const long long row_bytes = (long long)(k / T::block) * T::bytes;
    const u32 at_x = shared_address(tile_x), at_w = shared_address(tile_w);

    float acc[4][4][4];
#pragma unroll
    for (int i = 0; i < 64; i++) acc[i >> 4][(i >> 2) & 3][i & 3] = 0.0f;

    for (int depth = 0; depth < k; depth += DEPTH) {
        __syncthreads();
#pragma unroll
        for (int i = threadIdx.x; i < TOKENS * DEPTH / 16; i += 256) {
            const int token = i / (DEPTH / 16), chunk = i % (DEPTH / 16);
            const bool inside = first_token + token < m && depth + chunk * 16 < k;
            copy_async_16(at_x + token * PITCH + chunk * 16,
                          q + (inside ? (long long)(first_token + token) * k + depth + chunk * 16 : 0), inside ? 16 : 0);
        }
        copy_async_commit();
        {
            const int token = threadIdx.x & 127, group = threadIdx.x >> 7;
            const bool inside = first_token + token < m && depth + group * 32 < k;
            scale_x[group][token] =
                inside ? scales[(long long)(first_token + token) * (k / 32) + depth / 32 + group] : make_float2(0.0f, 0.0f);
        }
        {
            const int row = threadIdx.x >> 1, group = threadIdx.x & 1;
            Group32 g = {};
            if (first_row + row < n && depth + group * 32 < k) {
                int within;
                const u8* block = block_of<T>(weights + (first_row + row) * row_bytes, depth + group * 32, within);
                g = group_of<T>(block, within);
            }
            uint4* to = (uint4*)(tile_w + row * PITCH + group * 32);
            to[0] = make_uint4(g.q[0], g.q[1], g.q[2], g.q[3]);
            to[1] = make_uint4(g.q[4], g.q[5], g.q[6], g.q[7]);
            scale_w[2 * group][row] = g.d0;
            scale_w[2 * group + 1][row] = g.d1;
            minimum_w[group][row] = g.m;
        }
        copy_async_wait<0>();
        __syncthreads();

#pragma unroll
        for (int group = 0; group < DEPTH / 32; group++) {
            u32 b[2][4];
#pragma unroll
            for (int pair = 0; pair < 2; pair++)
                load_matrix_4(b[pair], at_w + (warp_row + pair * 16 + (lane & 7) + ((lane >> 4) << 3)) * PITCH + group * 32 +
                                           ((lane >> 3) & 1) * 16);
#pragma unroll
            for (int mt = 0; mt < 4; mt++) {
                u32 a[4];
                load_matrix_4(a, at_x + (warp_token + mt * 16 + (lane & 15)) * PITCH + group * 32 + (lane >> 4) * 16);
                float2 sx[2];
#pragma unroll
                for (int h = 0; h < 2; h++) sx[h] = scale_x[group][warp_token + mt * 16 + h * 8 + (lane >> 2)];
#pragma unroll
                for (int nt = 0; nt < 4; nt++) {
                    const int row = warp_row + nt * 8 + 2 * (lane & 3);
                    const u32 b0 = b[nt >> 1][2 * (nt & 1)], b1 = b[nt >> 1][2 * (nt & 1) + 1];
                    int c[4] = {SMALL_INT_ZERO, SMALL_INT_ZERO, SMALL_INT_ZERO, SMALL_INT_ZERO};
                    const float2 d0 = *(const float2*)&scale_w[2 * group][row];
                    if (halves) {
                        int c1[4] = {SMALL_INT_ZERO, SMALL_INT_ZERO, SMALL_INT_ZERO, SMALL_INT_ZERO};
                        mma_s8_k16(c, a[0], a[1], b0);
                        mma_s8_k16(c1, a[2], a[3], b1);
                        const float2 d1 = *(const float2*)&scale_w[2 * group + 1][row];
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            acc[mt][nt][e] += sx[e >> 1].x * (small_int(c[e]) * (e & 1 ? d0.y : d0.x) +
                                                              small_int(c1[e]) * (e & 1 ? d1.y : d1.x));
                    } else {
                        mma_s8(c, a, b0, b1);
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            acc[mt][nt][e] += small_int(c[e]) * (sx[e >> 1].x * (e & 1 ? d0.y : d0.x));
                    }
                    if (minima) {
                        const float2 minimum = *(const float2*)&minimum_w[group][row];
#pragma unroll
                        for (int e = 0; e < 4; e++) acc[mt][nt][e] -= sx[e >> 1].y * (e & 1 ? minimum.y : minimum.x);
                    }
                }
            }
        }
    }

    store_tile(acc, out, first_token + warp_token, m, first_row + warp_row, n, scale, wide);
}

#define VARIANT(name, type, halves, minima)                                                                                \
    KERNEL(256) minfer_mmq_##name(const u8* weights, const u8* q, const float2* scales, void* out, int m, int n, int k,       \
                                  float scale, int wide) {                                                                 \
        mmq<type, halves, minima>(weights, q, scales, out, m, n, k, scale, wide);                                          \
    }
EACH_INTEGER_TYPE(VARIANT)
