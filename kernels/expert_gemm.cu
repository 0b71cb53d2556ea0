// expert_gemm: activations of many choices, each times the transpose of its expert's matrix, in one launch (experts.cu: a choice).
//
// weights   u8 [experts, n, k / block * bytes]; n is even, k a multiple of 8 and of the type's block
// x         f16 [.., k]: the choice at place p of `order` reads row order[p] / share (share = used: a token's experts read one row), or
//           row p where share is 0
// order     int32 [choices], the choices in the order of their experts; tiles int32 [grid.y, 4]: expert, first place, place after the
//           last; an empty tile's block leaves at once. So the grid holds as many tiles as there can be, and no count comes to the host
// out       f16 [choices, n], times `scale`, in the order of `order`
// grid      (ceil(n / 128), tiles); experts_TOKENS: as many choices a tile
//
// Weights are the left operand of mma.sync, in registers, each decoded once a tile and by one lane, so no f16 copy of them is ever
// written; activations come through shared memory. Four warps of 32 rows; a tile's tokens beyond its count cost nothing but
// their rounding to 16. Within 32 columns lane t holds 8 t to 8 t + 7 in the place of the operand's own order, on both sides.
//
// Variants tried
//   q4_K, q6_K   raw blocks through shared memory by cp.async, a block of 256 columns ahead; decoded two at a time as f16 (two
//                or three roundings a weight where dequantise.cu makes one). 128 experts of [768, 2048] by 512 tokens of 8
//                choices on an H200: 79 us, by 64 tokens 57, by 3325 with the larger tile 293; q6_K of [2048, 768] by 512: 96      current
//                each lane made the address of each 16 bytes anew, scales went through f32: 98, 72 and 430 us, all of it
//                instructions; q6_K in blocks of 210 bytes 172                                                                   gone
//   other types  eight weights at a time from device memory, decoded to f32 and rounded once; q8_0 299 us by 512 tokens          current
#include "f16_blocks.cuh"

constexpr int ROWS = 128, DEPTH = 64, THREADS = 128;

// ---- weights: 64 columns of a row as packed pairs, v[h][i] elements 8 t + 2 i and the next of the step's half h ---------------------

struct StagedQ4 {
    // The pitch puts eight rows' 32 bytes into all banks.
    static constexpr bool staged = true;
    static constexpr int bytes = Q4_K::bytes, block = 256, pitch = 160;

    static DEVICE void scales(const u8* b, int c, u32 (&out)[2]) { scales_of_pair(b, c, out); }

    // Byte l of 32 holds column l in its low nibble and column 32 + l in its high one.
    static DEVICE void unpack(const u8* b, u32 scales, u32 minima, int j, int t, u32 (&v)[2][4]) {
        const uint2 raw = *(const uint2*)(b + 16 + 32 * j + 8 * t);
        const u32 s0 = __byte_perm(scales, 0, 0x1010), m0 = __byte_perm(minima, 0, 0x1010);
        const u32 s1 = __byte_perm(scales, 0, 0x3232), m1 = __byte_perm(minima, 0, 0x3232);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            // Bits over 0x64: 1024 plus the low nibble, 1024 plus 16 times the high one.
            const u32 two = __byte_perm(i < 2 ? raw.x : raw.y, 0x64646464u, i & 1 ? 0x4342 : 0x4140);
            v[0][i] = fma_f16x2(sub_f16x2(two & 0xff0fff0fu, 0x64006400u), s0, m0);
            v[1][i] = fma_f16x2(fma_f16x2(two & 0xfff0fff0u, 0x2c002c00u, 0xd400d400u), s1, m1);  // / 16 - 64
        }
    }
};

struct StagedQ6 {
    static constexpr bool staged = true;
    static constexpr int bytes = Q6_K::bytes, block = 256, pitch = bytes;

    // Of the 64 columns that are step c: four scales.
    static DEVICE void scales(const u8* b, int c, u32 (&out)[2]) {
        const u32 four = *(const u32*)(b + 192 + 4 * c) ^ 0x80808080u, d = __byte_perm(*(const u16*)(b + 208), 0, 0x1010);
#pragma unroll
        for (int i = 0; i < 2; i++)  // 1024 + 128 + scale
            out[i] = mul_f16x2(sub_f16x2(__byte_perm(four, 0x64646464u, i ? 0x4342 : 0x4140), 0x64806480u), d);
    }

    static DEVICE void unpack(const u8* b, u32 low, u32 high, int j, int t, u32 (&v)[2][4]) {
        const u8* at = b + 64 * (j >> 1) + 8 * t;
        const uint2 first = *(const uint2*)at, second = *(const uint2*)(at + 32);
        const uint2 top = *(const uint2*)(b + 128 + 32 * (j >> 1) + 8 * t);
        const int shift = 4 * (j & 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u32 scale = __byte_perm(h ? high : low, 0, t < 2 ? 0x1010 : 0x3232);
#pragma unroll
            for (int w = 0; w < 2; w++) {
                const u32 nibbles = h ? (w ? second.y : second.x) : (w ? first.y : first.x), two_bits = w ? top.y : top.x;
                // The two bits, at shift + 2 h of each byte, turned to bit 4.
                const u32 q = ((nibbles >> shift) & 0x0f0f0f0fu) | (__funnelshift_r(two_bits, two_bits, shift + 2 * h + 28) & 0x30303030u);
#pragma unroll
                for (int i = 0; i < 2; i++) {  // 1024 + q less 1056
                    const u32 two = __byte_perm(q, 0x64646464u, i ? 0x4342 : 0x4140);
                    v[h][2 * w + i] = mul_f16x2(sub_f16x2(two, 0x64206420u), scale);
                }
            }
        }
    }
};

template <class T>
struct Direct {
    static constexpr bool staged = false;
    static constexpr int bytes = T::bytes, block = T::block, pitch = 0;

    static DEVICE void unpack(const u8* row, int depth, int k, int t, u32 (&v)[2][4]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int column = depth + 32 * h + 8 * t;
            float w[8] = {};
            if (column < k) {
                int within;
                const u8* b = block_of<T>(row, column, within);
                T::decode8(b, within, w);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) v[h][i] = pack_f16(w[2 * i], w[2 * i + 1]);
        }
    }
};

// ---- the product ----------------------------------------------------------------------------------------------------------------

// A block of 256 columns of the warp's `rows` rows, up to 32, as many at a time as 32 lanes hold whole. Where there are fewer the
// others stay as they are, for a row's bytes make no other row's result.
template <class W>
DEVICE void load_weights(u32 to, const u8* from, long long row_bytes, int rows) {
    constexpr int PIECES = W::bytes / 16, TOGETHER = 32 / PIECES;
    static_assert(W::bytes % 16 == 0);
    const int lane = threadIdx.x & 31, row = lane / PIECES, piece = lane % PIECES;
    if (row >= TOGETHER) return;
    from += row * row_bytes + piece * 16;
    to += row * W::pitch + piece * 16;
#pragma unroll
    for (int r = 0; r < 32; r += TOGETHER) {
        if (row + r < min(rows, 32)) copy_async_16(to + r * W::pitch, from);
        from += TOGETHER * row_bytes;
    }
}

// 64 columns of the tile's choices; 16-byte chunks are exchanged so that eight lanes meet all banks.
template <class W, int TOKENS>
DEVICE void load_x(u32 to, const f16* x, const u32 (&row_at)[TOKENS / 16], int count, int depth, int k) {
    const int chunk = threadIdx.x & 7, token = threadIdx.x >> 3;
    to += token * (2 * DEPTH) + ((chunk ^ ((token & 1) << 2)) << 4);
    const bool inside = W::staged || depth + chunk * 8 < k;
#pragma unroll
    for (int i = 0; i < TOKENS / 16; i++)
        if (token + 16 * i < count)
            copy_async_16(to + i * (16 * 2 * DEPTH), inside ? x + depth + 8ull * row_at[i] : x, inside ? 16 : 0);
}

template <class W, int TOKENS, int STAGES>
DEVICE void expert_gemm(const u8* weights, const f16* x, const int* order, const int4* tiles, f16* out, int n, int k, int share,
                        float scale) {
    extern __shared__ __align__(128) u8 shared[];
    const int4 tile = tiles[blockIdx.y];
    const int count = tile.z - tile.y;
    if (count <= 0) return;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    const long long row_bytes = (long long)(k / W::block) * W::bytes;
    const int first_row = blockIdx.x * ROWS + warp * 32, rows = n - first_row, steps = (k + DEPTH - 1) / DEPTH;
    const u8* matrix = weights + ((long long)tile.x * n + first_row) * row_bytes;  // the warp's rows
    constexpr int X_STAGE = TOKENS * 2 * DEPTH, W_STAGE = ROWS * W::pitch;
    const u32 at_x = shared_address(shared), at_w = at_x + STAGES * X_STAGE + warp * 32 * W::pitch;

    u32 row_at[TOKENS / 16];  // of the choices that this thread copies, this chunk's place in x, eight elements each
#pragma unroll
    for (int i = 0; i < TOKENS / 16; i++) {
        const int place = tile.y + min((int)(threadIdx.x >> 3) + 16 * i, count - 1);
        row_at[i] = (u32)(share ? order[place] / share : place) * (k / 8) + (threadIdx.x & 7);
    }
    const u8* row_of[4];  // rows g, g + 8, g + 16, g + 24 of the warp
#pragma unroll
    for (int r = 0; r < 4; r++) row_of[r] = matrix + min(8 * r + g, rows - 1) * row_bytes;

    if constexpr (W::staged) load_weights<W>(at_w, matrix, row_bytes, rows);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) load_x<W, TOKENS>(at_x + s * X_STAGE, x, row_at, count, s * DEPTH, k);
        copy_async_commit();
    }

    float acc[2][TOKENS / 8][4];
#pragma unroll
    for (int i = 0; i < TOKENS; i++) acc[i / (TOKENS / 2)][i % (TOKENS / 2) / 4][i % 4] = 0.0f;
    u32 scales[4][2] = {};
    int stage = 0;
#pragma unroll 1
    for (int s = 0; s < steps; s++) {
        copy_async_wait<STAGES - 2>();
        __syncthreads();
        // What was read in the step before may be overwritten: the oldest activations, and at a block's first step the last block.
        const int ahead = s + STAGES - 1, j = s & 3, block = s >> 2;
        if (ahead < steps)
            load_x<W, TOKENS>(at_x + (stage == 0 ? STAGES - 1 : stage - 1) * X_STAGE, x, row_at, count, ahead * DEPTH, k);
        const u8* raw = shared + STAGES * X_STAGE + (block & 1) * W_STAGE + (warp * 32 + g) * W::pitch;
        if constexpr (W::staged) {
            if (j == 0) {
                if (s + 4 < steps)
                    load_weights<W>(at_w + (block + 1 & 1) * W_STAGE, matrix + (block + 1) * W::bytes, row_bytes, rows);
#pragma unroll
                for (int r = 0; r < 4; r++) W::scales(raw + 8 * r * W::pitch, t, scales[r]);
            }
        }
        copy_async_commit();

        u32 a[2][4][4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            u32 v[2][4];
            if constexpr (W::staged) {
                const u32 low = __shfl_sync(0xffffffffu, scales[r][0], j, 4), high = __shfl_sync(0xffffffffu, scales[r][1], j, 4);
                W::unpack(raw + 8 * r * W::pitch, low, high, j, t, v);
            } else {
                W::unpack(row_of[r], s * DEPTH, k, t, v);
            }
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < 4; i++) a[r >> 1][2 * h + (i >> 1)][2 * (i & 1) + (r & 1)] = v[h][i];
        }

        const u8* tokens = shared + stage * X_STAGE + g * (2 * DEPTH);
#pragma unroll
        for (int pair = 0; pair < TOKENS / 16; pair++) {
            if (pair * 16 >= count) break;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int chunk = (4 * h + t) ^ ((g & 1) << 2);
                uint4 b[2];
#pragma unroll
                for (int i = 0; i < 2; i++) b[i] = *(const uint4*)(tokens + (16 * pair + 8 * i) * (2 * DEPTH) + 16 * chunk);
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int mt = 0; mt < 2; mt++) mma_f16(acc[mt][2 * pair + i], a[mt][2 * h], b[i].x, b[i].y);
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int mt = 0; mt < 2; mt++) mma_f16(acc[mt][2 * pair + i], a[mt][2 * h + 1], b[i].z, b[i].w);
            }
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }

    // A lane has rows g and g + 8 of two tokens; transposed in eights, two rows of token g.
    f16* to = out + (long long)tile.y * n + first_row + 2 * t;
#pragma unroll
    for (int nt = 0; nt < TOKENS / 8; nt++) {
        if (nt * 8 >= count) break;
        const int token = nt * 8 + g;
#pragma unroll
        for (int mt = 0; mt < 2; mt++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u32 two = pack_f16(clamp_f16(acc[mt][nt][2 * h] * scale), clamp_f16(acc[mt][nt][2 * h + 1] * scale));
                asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(two));
                const int row = mt * 16 + h * 8;
                if (token < count && row + 2 * t < rows) *(u32*)(to + (long long)token * n + row) = two;
            }
    }
}

#define VARIANT(name, W, tokens, stages)                                                                                        \
    KERNEL_RESIDENT(THREADS, 2)                                                                                                 \
    minfer_gemm_##name##_experts_##tokens(const u8* weights, const f16* x, const int* order, const int4* tiles, f16* out,       \
                                          int n, int k, int share, float scale) {                                               \
        expert_gemm<W, tokens, stages>(weights, x, order, tiles, out, n, k, share, scale);                                      \
    }
VARIANT(q4_K, StagedQ4, 64, 3)
VARIANT(q4_K, StagedQ4, 128, 3)
VARIANT(q6_K, StagedQ6, 64, 3)
VARIANT(q6_K, StagedQ6, 128, 2)
#define SIMPLE(name, type) VARIANT(name, Direct<type>, 64, 3)
EACH_SIMPLE_TYPE(SIMPLE)
