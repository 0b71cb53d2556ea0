// A tile of 128 weight rows by TOKENS tokens on Hopper's warpgroup matrix units. q4_K and q6_K weights come as they lie and become the left
// operand in registers; activations are the right one, in shared memory. Two warpgroups multiply 64 rows each and unpack the next 64
// columns while a product runs; one lane of a third has the copy engine fill STAGES stages of 64 columns.
#pragma once
#include "f16_blocks.cuh"
#include "hopper.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr int ROWS = 128, DEPTH = 64, STAGES = 5, BUFFERS = 2;
// A buffer of weights holds a whole block's 256 columns. The copier, which has seen step i - STAGES consumed, overwrites the
// buffer of step i - 4 * BUFFERS to i - 4 * BUFFERS + 3.
static_assert(STAGES <= 4 * BUFFERS - 3);

// The bits of `mask` in a, and all of b, in one instruction: the compiler makes two of some.
DEVICE u32 and_or(u32 a, u32 mask, u32 b) {
    u32 out;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(out) : "r"(a), "r"(mask), "r"(b));
    return out;
}
// Two integers below 16, in bits 0 to 3 and 16 to 19, as packed f16 1024 too large.
DEVICE u32 plus_1024(u32 q) { return and_or(q, 0x000f000fu, 0x64006400u); }

// How a lane makes 64 columns of its rows g and g + 8 the left operand of four products. `block` points at row g's bytes of 256
// columns, columns 2 c; begin() is called where a block of 256 columns begins, before make() of its columns 0, 64, 128 and 192.
struct FusedQ4 {
    static constexpr int bytes = Q4_K::bytes;
    u32 scales[2][2];

    DEVICE void begin(const u8* block, int c) {
#pragma unroll
        for (int h = 0; h < 2; h++) scales_of_pair(block + h * 8 * bytes, c, scales[h]);
    }

    // Byte l of 32 holds column l in its low nibble and column 32 + l in its high one.
    DEVICE void make(u32 (&a)[16], const u8* block, int c, int j) {
        const u8* columns = block + 16 + 32 * j + 2 * c;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 two = __shfl_sync(0xffffffffu, scales[h][0], j, 4), minima = __shfl_sync(0xffffffffu, scales[h][1], j, 4);
            const u32 s0 = __byte_perm(two, 0, 0x1010), m0 = __byte_perm(minima, 0, 0x1010);
            const u32 s1 = __byte_perm(two, 0, 0x3232), m1 = __byte_perm(minima, 0, 0x3232);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 q = __byte_perm(*(const u16*)(columns + h * 8 * bytes + 8 * i), 0, 0x4140);
                a[4 * (i >> 1) + 2 * (i & 1) + h] = fma_f16x2(sub_f16x2(plus_1024(q), 0x64006400u), s0, m0);
                a[8 + 4 * (i >> 1) + 2 * (i & 1) + h] = fma_f16x2(sub_f16x2(plus_1024(q >> 4), 0x64006400u), s1, m1);
            }
        }
    }
};

struct FusedQ6 {
    static constexpr int bytes = Q6_K::bytes;
    float d[2];
    u32 nibbles[2][8], tops[2][4];  // of 128 columns

    DEVICE void begin(const u8* block, int) {
        d[0] = load_f16(block + 208);
        d[1] = load_f16(block + 8 * bytes + 208);
    }

    // Byte l of 64 holds column l of 128 in its low nibble and column 64 + l in its high one; byte l of 32 the upper two bits of
    // columns l, 32 + l, 64 + l and 96 + l. So bytes are read for two calls.
    DEVICE void make(u32 (&a)[16], const u8* block, int c, int j) {
        if ((j & 1) == 0) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u8* row = block + h * 8 * bytes + 2 * c;
#pragma unroll
                for (int i = 0; i < 8; i++) nibbles[h][i] = __byte_perm(*(const u16*)(row + 32 * j + 8 * i), 0, 0x4140);
#pragma unroll
                for (int i = 0; i < 4; i++) tops[h][i] = __byte_perm(*(const u16*)(row + 128 + 16 * j + 8 * i), 0, 0x4140);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 four = *(const u32*)(block + h * 8 * bytes + 192 + 4 * j);
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const float scale = d[h] * (float)(s8)(four >> (8 * s));
                const u32 both = pack_f16(scale, scale);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const u32 nibble = nibbles[h][2 * s + i] >> (4 * (j & 1)), top = tops[h][2 * (s & 1) + i];
                    const int shift = 4 * (j & 1) + 2 * (s >> 1);  // of the two bits, which belong at bit 4
                    const u32 q = and_or(shift < 4 ? top << (4 - shift) : top >> (shift - 4), 0x00300030u, plus_1024(nibble));
                    a[4 * s + 2 * i + h] = mul_f16x2(sub_f16x2(q, 0x64206420u), both);  // 1024 + 32
                }
            }
        }
    }
};

// The copy engine brings columns begin to end of a tile; `step` counts the stages used so far, over all tiles.
template <class W, int TOKENS>
DEVICE void copy_tile(const TensorMap& x, const TensorMap& weights, int first_row, int first_token, int begin, int end, u32& step,
                      u32 at_x, u32 at_w, u32 full, u32 empty) {
    constexpr int W_BYTES = ROWS * W::bytes;
    for (int depth = begin; depth < end; depth += DEPTH, step++) {
        const u32 stage = step % STAGES, barrier = full + 8 * stage;
        const bool block_begins = depth % 256 == 0;
        barrier_wait(empty + 8 * stage, step / STAGES & 1 ^ 1);
        barrier_expect(barrier, TOKENS * 128 + (block_begins ? W_BYTES : 0));
        copy_box(at_x + stage * TOKENS * 128, x, depth, first_token, barrier);
        if (!block_begins) continue;
        copy_box(at_w + (step / 4) % BUFFERS * W_BYTES, weights, depth / 256 * W::bytes, first_row, barrier);
        if (depth + 512 < end) prefetch_box(weights, (depth / 256 + 2) * W::bytes, first_row);
    }
}

// The product of one tile's columns.
template <class W, int TOKENS>
DEVICE void multiply(float (&d)[TOKENS / 2], u32& step, int columns, const u8* mine, u32 at_x, u32 full, u32 empty) {
    const int lane = threadIdx.x & 31, c = lane & 3;
    W weights;
    u32 a[2][16];
    const u8* block = mine + (step / 4) % BUFFERS * (ROWS * W::bytes);
    barrier_wait(full + 8 * (step % STAGES), step / STAGES & 1);
    weights.begin(block, c);
    weights.make(a[0], block, c, 0);
    for (int depth = 0; depth < columns; depth += 256) {
#pragma unroll
        for (int j = 0; j < 4; j++, step++) {
            const u64 b = descriptor(at_x + step % STAGES * TOKENS * 128);
            wgmma_fence();
#pragma unroll
            for (int s = 0; s < 4; s++) wgmma(d, &a[j & 1][4 * s], b + 2 * s, depth + j + s);
            wgmma_commit();
            // The product before this one has read its operand and its stage. While this one runs, the next 64 columns.
            wgmma_wait<1>();
            pin(a[(j + 1) & 1]);
            if (lane == 0 && depth + j > 0) barrier_arrive(empty + 8 * ((step - 1) % STAGES));
            if (j < 3 || depth + 256 < columns) {
                const u32 next = step + 1;
                barrier_wait(full + 8 * (next % STAGES), next / STAGES & 1);
                if (j == 3) {
                    block = mine + (next / 4) % BUFFERS * (ROWS * W::bytes);
                    weights.begin(block, c);
                }
                weights.make(a[(j + 1) & 1], block, c, (j + 1) & 3);
            }
        }
    }
    wgmma_wait<0>();
    // The sums must not be read before: the compiler does not know that products in flight write them.
    pin(d);
    if (lane == 0) barrier_arrive(empty + 8 * ((step - 1) % STAGES));
}

// d holds rows g and g + 8 of tokens 8 t + 2 c and the next; transposed in eights, a lane has two rows of token 8 t + g.
template <int FIRST, int LAST, int N>
DEVICE void store(const float (&d)[N], f16* out, int first_token, int first_row, int m, int n, int stride, float scale) {
    const int g = (threadIdx.x & 31) >> 2, row = first_row + 2 * (threadIdx.x & 3);
#pragma unroll
    for (int t = FIRST; t < LAST; t++) {
        const int token = first_token + 8 * t + g;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 two = pack_f16(clamp_f16(d[4 * t + 2 * h] * scale), clamp_f16(d[4 * t + 2 * h + 1] * scale));
            asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(two));
            if (token < m && row + 8 * h < n) *(u32*)(out + (long long)token * stride + row + 8 * h) = two;
        }
    }
}

// Stages and weights behind `shared`, which begins at a multiple of 1024 (the swizzle repeats), and barriers for them.
template <class W, int TOKENS>
struct Space {
    u8* shared;
    u32 at_x, at_w, full, empty;

    DEVICE Space(u8* dynamic, u64* barriers) {
        shared = dynamic + (-shared_address(dynamic) & 1023u);
        at_x = shared_address(shared), at_w = at_x + STAGES * TOKENS * 128;
        full = shared_address(barriers), empty = full + 8 * STAGES;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                barrier_init(full + 8 * i, 1);
                barrier_init(empty + 8 * i, 8);
            }
            // The copy engine sees the barriers too.
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }

    // The bytes of this lane's row g among its warp's sixteen, whose first is `warp_row`.
    DEVICE const u8* weights_of(int warp_row) const {
        return shared + STAGES * TOKENS * 128 + (warp_row + ((threadIdx.x & 31) >> 2)) * W::bytes;
    }
};

#endif
