// bt: x w^T on the int8 matrix units for q4_K, whose raw bytes go to shared memory as they are and become operands in registers.
//
// weights   u8 [n, k / 256 * 144]; k is a multiple of 256, n is even
// q, scales q8_1 activations, transposed (quantise.cu, _q8_1_bt): int8 [padded / 16, k / 32, 512], f32 pairs [k / 32, padded]
// out       f16 or f32 [m, n], times `scale`
// grid      (ceil(n / 128), padded / 128); padded is m rounded up to 128
//
// Variants tried
//   q4_K   128 tokens by 128 rows, 256 deep, two buffers by cp.async; one ldmatrix of raw bytes gives the operands of two
//          sub-blocks (low and high nibbles), activations come as one 16-byte read a lane      current: 10.9 us per GMAC at 3325 tokens on an
//          H200, 13.0 at 512 (mmq 17.3 and 20.9)
#include "blocks.cuh"
#include "int8_tile.cuh"

constexpr int TOKENS = 128, ROWS = 128, DEPTH = 256, GROUPS = DEPTH / 32, BLOCK = Q4_K::bytes;
constexpr int X_BYTES = TOKENS * DEPTH, W_BYTES = ROWS * BLOCK, SCALE_BYTES = GROUPS * TOKENS * 8;
constexpr int STAGE = X_BYTES + W_BYTES + SCALE_BYTES;
// Two stages need 124 KiB of shared memory, which only data-centre chips give a block; the others wait for each stage.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900)
constexpr int STAGES = 2;
#else
constexpr int STAGES = 1;
#endif
// Shared memory of a block: the stages, then the scales and minima of the weights of one.

DEVICE void load_stage(u32 stage, const u8* weights, const u8* q, const float2* scales, long long row_bytes, int rows, int k,
                       int padded, int first_token, int depth) {
    const u32 at_x = stage, at_w = stage + X_BYTES, at_s = at_w + W_BYTES;
    // Activations: 8 runs of 16 tokens, each DEPTH * 16 bytes in a row.
#pragma unroll
    for (int i = threadIdx.x; i < X_BYTES / 16; i += 256) {
        const int run = i >> 8, chunk = i & 255;
        copy_async_16(at_x + i * 16, q + ((long long)(first_token / 16 + run) * (k / 32) + depth / 32) * 512 + chunk * 16);
    }
    // Weights: one block of 144 bytes a row, nine pieces.
    for (int i = threadIdx.x; i < W_BYTES / 16; i += 256) {
        const int row = i / 9, piece = i - row * 9;
        copy_async_16(at_w + i * 16, weights + (row < rows ? row * row_bytes + depth / 256 * BLOCK + piece * 16 : 0), row < rows ? 16 : 0);
    }
#pragma unroll
    for (int i = threadIdx.x; i < SCALE_BYTES / 16; i += 256) {
        const int group = i >> 6, pair = i & 63;
        copy_async_16(at_s + i * 16, scales + (long long)(depth / 32 + group) * padded + first_token + pair * 2);
    }
    copy_async_commit();
}

KERNEL(256) minfer_gemm_q4_K_bt(const u8* weights, const u8* q, const float2* scales, void* out, int m, int n, int k, int padded,
                                float scale, int wide) {
    extern __shared__ __align__(128) u8 shared[];
    float2* scale_w = (float2*)(shared + STAGES * STAGE);  // [GROUPS][ROWS]: d * scale, dmin * minimum
    const u32 base = shared_address(shared);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int first_token = blockIdx.y * TOKENS, first_row = blockIdx.x * ROWS;
    const int warp_token = (warp & 1) * 64, warp_row = (warp >> 1) * 32;
    const long long row_bytes = (long long)(k / 256) * BLOCK;
    const int rows = min(ROWS, n - first_row);
    weights += first_row * row_bytes;

    float acc[4][4][4];
#pragma unroll
    for (int i = 0; i < 64; i++) acc[i >> 4][(i >> 2) & 3][i & 3] = 0.0f;

    if (STAGES == 2) load_stage(base, weights, q, scales, row_bytes, rows, k, padded, first_token, 0);
    for (int depth = 0, turn = 0; depth < k; depth += DEPTH, turn ^= STAGES - 1) {
        if (STAGES == 1) {
            __syncthreads();
            load_stage(base, weights, q, scales, row_bytes, rows, k, padded, first_token, depth);
        }
        copy_async_wait<0>();
        __syncthreads();
        if (STAGES == 2 && depth + DEPTH < k)
            load_stage(base + (turn ^ 1) * STAGE, weights, q, scales, row_bytes, rows, k, padded, first_token, depth + DEPTH);
        const u8* stage = shared + turn * STAGE;
        {
            const int row = threadIdx.x & 127, half = threadIdx.x >> 7;
            const u8* block = stage + X_BYTES + row * BLOCK;
            const u32 both = *(const u32*)block;
            const float d = low_f16(both), dmin = high_f16(both);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float s, minimum;
                scale_min_k4(block + 4, half * 4 + j, s, minimum);
                scale_w[(half * 4 + j) * ROWS + row] = make_float2(d * s, dmin * minimum);
            }
        }
        __syncthreads();

        const uint4* at_x = (const uint4*)stage;
        const float2* scale_x = (const float2*)(stage + X_BYTES + W_BYTES);
        const u32 at_w = base + turn * STAGE + X_BYTES;
#pragma unroll 1
        for (int two = 0; two < GROUPS / 2; two++) {
            u32 raw[2][4];
#pragma unroll
            for (int pair = 0; pair < 2; pair++)
                load_matrix_4(raw[pair], at_w + (warp_row + pair * 16 + (lane & 7) + ((lane >> 4) << 3)) * BLOCK + 16 + two * 32 +
                                             ((lane >> 3) & 1) * 16);
#pragma unroll
            for (int high = 0; high < 2; high++) {
                const int group = 2 * two + high;
                u32 b[2][4];
#pragma unroll
                for (int i = 0; i < 8; i++) b[i >> 2][i & 3] = (raw[i >> 2][i & 3] >> (4 * high)) & 0x0f0f0f0fu;
                float4 sw[4];  // of this lane's two rows of each mma: scale, minimum, scale, minimum
#pragma unroll
                for (int nt = 0; nt < 4; nt++) sw[nt] = *(const float4*)&scale_w[group * ROWS + warp_row + nt * 8 + 2 * (lane & 3)];
#pragma unroll
                for (int mt = 0; mt < 4; mt++) {
                    const uint4 packed = at_x[((warp_token / 16 + mt) * GROUPS + group) * 32 + lane];
                    const u32 a[4] = {packed.x, packed.y, packed.z, packed.w};
                    float2 sx[2];
#pragma unroll
                    for (int h = 0; h < 2; h++) sx[h] = scale_x[group * TOKENS + warp_token + mt * 16 + h * 8 + (lane >> 2)];
#pragma unroll
                    for (int nt = 0; nt < 4; nt++) {
                        int c[4] = {SMALL_INT_ZERO, SMALL_INT_ZERO, SMALL_INT_ZERO, SMALL_INT_ZERO};
                        mma_s8(c, a, b[nt >> 1][2 * (nt & 1)], b[nt >> 1][2 * (nt & 1) + 1]);
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            const float d = e & 1 ? sw[nt].z : sw[nt].x, minimum = e & 1 ? sw[nt].w : sw[nt].y;
                            acc[mt][nt][e] += small_int(c[e]) * (sx[e >> 1].x * d);
                            acc[mt][nt][e] -= sx[e >> 1].y * minimum;
                        }
                    }
                }
            }
        }
    }

    store_tile(acc, out, first_token + warp_token, m, first_row + warp_row, n, scale, wide);
}
