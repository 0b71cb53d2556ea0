// mmv: a few activation rows times a quantised matrix: y = x w^T (decode, and the output head of a prefill).
//
// weights   u8 [n, k / block * bytes]; k is a multiple of 8 and of the type's block
// x         f16 [m, k]
// bias      f32 [n], or null
// out       f16 or f32 [m, n]: the product times `scale`, plus the bias; grid.x = ceil(n / 4) (q4_K: at most), grid.y = m
//
// Variants tried
//   (any type)  four rows a block of 128 threads, eight weights a thread decoded to f32, exact activations. 0.86 TB/s of
//               q4_K, 0.93 of q6_K on an H200: 8.6 instructions a weight, most of them the block's scales     current but for
//   q4_K        32 weights a thread: one 16-byte read of the block's head and one of 32 nibbles. 1.4 TB/s when a block of
//               threads did four rows and ended, and the same 1.4 with as many blocks as fit, each reading its next rows
//               ahead: not the wait but the four instructions a weight bind it (and, shift, convert, multiply)     current
//   q6_K        32 weights a thread, read as aligned words and shifted: blocks of 210 bytes are only even; 1.1 to
//               0.62 ms a token     current
#include "blocks.cuh"

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
        const long long at = (long long)blockIdx.y * n + first + threadIdx.x;
        total = total * scale + (bias ? bias[first + threadIdx.x] : 0.0f);
        if (wide)
            ((float*)out)[at] = total;
        else
            ((f16*)out)[at] = f32_to_f16(clamp_f16(total));
    }
    __syncthreads();
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
    finish(sum, bias, out, first, n, scale, wide);
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

// What a thread reads of four rows: heads of their blocks, and 16 bytes of nibbles each.
struct FourRows {
    uint4 head[ROWS], nibbles[ROWS];

    DEVICE void read(const u8* weights, int first, int n, int block, int chunk, long long row_bytes) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const u8* b = weights + min(first + r, n - 1) * row_bytes + (long long)block * Q4_K::bytes;
            head[r] = *(const uint4*)b;
            nibbles[r] = *(const uint4*)(b + 16 + 16 * chunk);
        }
    }
};

// The 32 activations that meet a thread's weights: 16 of an even sub-block, 16 of the odd one after it; and their sums.
struct Meeting {
    float v[2][16], total[2];

    DEVICE void read(const f16* row, int block, int chunk) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint4* p = (const uint4*)(row + block * 256 + (chunk >> 1) * 64 + half * 32 + (chunk & 1) * 16);
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
    }
};

DEVICE void multiply(const FourRows& w, const Meeting& x, int chunk, float (&sum)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float d[2], m[2];
        pair_scales(w.head[r], chunk >> 1, d, m);
        const u32 words[4] = {w.nibbles[r].x, w.nibbles[r].y, w.nibbles[r].z, w.nibbles[r].w};
        float dot[2] = {0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const u32 q = (words[i] >> (4 * half)) & 0x0f0f0f0fu;
#pragma unroll
                for (int e = 0; e < 4; e++) dot[half] += (float)((q >> (8 * e)) & 0xffu) * x.v[half][4 * i + e];
            }
        sum[r] += d[0] * dot[0] - m[0] * x.total[0] + d[1] * dot[1] - m[1] * x.total[1];
    }
}

// Eight threads a block of 256 weights. A thread block goes on to further rows, and reads them before it needs them; where k
// is no more than one turn of its threads, the activations stay in registers.
KERNEL(THREADS) minfer_mmv_q4_K(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, int wide) {
    const int chunk = threadIdx.x & 7, mine = threadIdx.x >> 3, blocks = k / Q4_K::block;
    const long long row_bytes = (long long)blocks * Q4_K::bytes;
    const f16* row = x + (long long)blockIdx.y * k;
    if (blocks <= THREADS / 8) {
        Meeting here = {};
        if (mine < blocks) here.read(row, mine, chunk);
        FourRows now;
        const int block = min(mine, blocks - 1);
        now.read(weights, blockIdx.x * ROWS, n, block, chunk, row_bytes);
        for (int first = blockIdx.x * ROWS; first < n; first += gridDim.x * ROWS) {
            FourRows next;
            next.read(weights, first + gridDim.x * ROWS, n, block, chunk, row_bytes);
            float sum[ROWS] = {};
            multiply(now, here, chunk, sum);
            finish(sum, bias, out, first, n, scale, wide);
            now = next;
        }
        return;
    }
    for (int first = blockIdx.x * ROWS; first < n; first += gridDim.x * ROWS) {
        float sum[ROWS] = {};
        FourRows now;
        now.read(weights, first, n, mine, chunk, row_bytes);
        for (int block = mine; block < blocks; block += THREADS / 8) {
            FourRows next;
            next.read(weights, first, n, min(block + THREADS / 8, blocks - 1), chunk, row_bytes);
            Meeting here;
            here.read(row, block, chunk);
            multiply(now, here, chunk, sum);
            now = next;
        }
        finish(sum, bias, out, first, n, scale, wide);
    }
}

// 16 bytes at an address that is only even, by aligned words.
DEVICE void read_16_even(const u8* p, u32 (&out)[4]) {
    const u32 shift = ((u64)p & 2) * 8;
    const u32* aligned = (const u32*)((u64)p & ~3ull);
    u32 words[5];
#pragma unroll
    for (int w = 0; w < 4; w++) words[w] = aligned[w];
    words[4] = shift ? aligned[4] : 0u;
#pragma unroll
    for (int w = 0; w < 4; w++) out[w] = __funnelshift_r(words[w], words[w + 1], shift);
}

// Eight threads a block of 256: thread (half, odd, s) takes 16 bytes of low nibbles, that is 16 weights of group `odd` of its
// half and 16 of group odd + 2, with their high bits.
KERNEL(THREADS) minfer_mmv_q6_K(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, int wide) {
    const int chunk = threadIdx.x & 7, half = chunk >> 2, odd = (chunk >> 1) & 1, s = chunk & 1, blocks = k / Q6_K::block;
    const long long row_bytes = (long long)blocks * Q6_K::bytes;
    const f16* row = x + (long long)blockIdx.y * k + 128 * half + 32 * odd + 16 * s;
    const int first = blockIdx.x * ROWS;
    float sum[ROWS] = {};
    for (int block = threadIdx.x >> 3; block < blocks; block += THREADS / 8) {
        u32 low[ROWS][4], high[ROWS][4];
        float d[ROWS][2];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const u8* b = weights + min(first + r, n - 1) * row_bytes + (long long)block * Q6_K::bytes;
            read_16_even(b + 64 * half + 32 * odd + 16 * s, low[r]);
            read_16_even(b + 128 + 32 * half + 16 * s, high[r]);
            const u8* scales = b + 192 + 8 * half + 2 * odd + s;
            const float whole = load_f16(b + 208);
            d[r][0] = whole * (float)(s8)scales[0];
            d[r][1] = whole * (float)(s8)scales[4];
        }
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            const uint4* at = (const uint4*)(row + block * 256 + 64 * upper);
            const uint4 a = at[0], c = at[1];
            const u32 words[8] = {a.x, a.y, a.z, a.w, c.x, c.y, c.z, c.w};
            float v[16], total = 0.0f;
#pragma unroll
            for (int w = 0; w < 8; w++) {
                v[2 * w] = low_f16(words[w]);
                v[2 * w + 1] = high_f16(words[w]);
                total += v[2 * w] + v[2 * w + 1];
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float dot = -32.0f * total;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const u32 q = ((low[r][i] >> (4 * upper)) & 0x0f0f0f0fu) |
                                  (((high[r][i] >> (2 * odd + 4 * upper)) & 0x03030303u) << 4);
#pragma unroll
                    for (int e = 0; e < 4; e++) dot += (float)((q >> (8 * e)) & 0xffu) * v[4 * i + e];
                }
                sum[r] += d[r][upper] * dot;
            }
        }
    }
    finish(sum, bias, out, first, n, scale, wide);
}

#define VARIANT(name, type)                                                                                               \
    KERNEL(THREADS) minfer_mmv_##name(const u8* weights, const f16* x, const float* bias, void* out, int n, int k, float scale, \
                                      int wide) {                                                                           \
        mmv<type>(weights, x, bias, out, n, k, scale, wide);                                                                \
    }
EACH_SIMPLE_TYPE(VARIANT)
