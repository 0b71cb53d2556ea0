// attention: softmax(q k^T * scale + mask) v with causal mask, grouped heads, optional sliding window and soft cap.
//
// q         f16 [nt, heads, width], `q_stride` elements between tokens
// keys      f16 [positions, kv_heads, width]; values f16 [positions, kv_heads, v_width]
// out       f16 [nt, heads * v_width]
// state     int32: state[0] is the position of the first token; token t sees positions up to state[0] + t
// window    a token sees itself and the window - 1 positions before it; 0: all
// cap       scores become cap * tanh(score / cap); 0: none
//
// Variants tried
//   plain   one warp a query and head, online softmax: reads all keys per query; the check
//   fa      FlashAttention-2 (arXiv:2307.08691) on mma.sync m16n8k16, K and V tiles double-buffered by cp.async:
//           width 64 and 128: 128 queries a block, 32 a warp, so that one read of a K fragment serves two mma;
//           width 256: 64 queries a block, 16 a warp, tiles of 32 keys, for want of registers; width 512: the same, a block sums half
//           of the columns, and each half makes its scores anew (160 KiB of shared memory, which 8.6, 8.9 and 12.x do not give):
//           8 heads on 2, 512 tokens, 35 us on an H200, 2048 322; plain 1340 and 14,600
//           Tiles of 32 keys at width 128, sums scaled for every tile: 0.471 ms a layer at 28 heads, 3325 tokens on an H200;
//           64 keys, scaled when a maximum grew: 0.321 ms
//   decode  few queries: keys split over blocks of 64, four at a time a warp, partial results combined by a second kernel.
//           Blocks of 256 keys, one at a time a warp: 79 us a layer at 530 positions on an H200, all of it waiting
//   _wide   of plain and decode, heads of more than 256 columns, however many: a block sums a slice of 256, makes its scores over
//           all columns anew, and reads the query again for each key instead of holding it
#include "softmax.cuh"

DEVICE float capped(float score, float scale, float cap) {
    const float s = score * scale;
    return cap > 0.0f ? cap * tanhf(s / cap) : s;
}

// ---- plain ----------------------------------------------------------------------------------------------------------

// Most columns that a warp's lanes hold: eight each.
constexpr int SLICE = 256;

// Columns blockIdx.y * SLICE and on of a query's sum; `wide` where there are more.
template <bool wide>
DEVICE void attention_plain(const f16* q, const f16* keys, const f16* values, f16* out, const int* state, int nt, int heads,
                            int kv_heads, int width, int v_width, int q_stride, int window, float scale, float cap) {
    const int warp = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (warp >= nt * heads) return;
    const int token = warp / heads, head = warp % heads, kv = head / (heads / kv_heads), v_first = wide ? blockIdx.y * SLICE : 0;
    const int position = state[0] + token, first = window > 0 && position >= window ? position - window + 1 : 0;
    const f16* row_q = q + (long long)token * q_stride + head * width;
    float query[8], sum[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int e = lane + 32 * i;
        query[i] = !wide && e < width ? f16_to_f32(row_q[e]) : 0.0f;
        sum[i] = 0.0f;
    }
    float most = NEGATIVE, total = 0.0f;
    for (int p = first; p <= position; p++) {
        const long long row = (long long)p * kv_heads + kv, at = row * width, v_at = row * v_width + v_first;
        float dot = 0.0f;
        if (wide) {
            for (int e = lane; e < width; e += 32) dot += f16_to_f32(row_q[e]) * f16_to_f32(keys[at + e]);
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (lane + 32 * i < width) dot += query[i] * f16_to_f32(keys[at + lane + 32 * i]);
        }
        const float score = capped(warp_sum(dot), scale, cap), above = fmaxf(most, score);
        const float keep = __expf(most - above), weight = __expf(score - above);
        total = total * keep + weight;
        most = above;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (v_first + lane + 32 * i < v_width) sum[i] = sum[i] * keep + weight * f16_to_f32(values[v_at + lane + 32 * i]);
    }
    f16* to = out + ((long long)token * heads + head) * v_width + v_first;
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (v_first + lane + 32 * i < v_width) to[lane + 32 * i] = f32_to_f16(sum[i] / total);
}

#define PLAIN(name, wide)                                                                                                      \
    KERNEL(128) minfer_attention_##name(const f16* q, const f16* keys, const f16* values, f16* out, const int* state, int nt,  \
                                        int heads, int kv_heads, int width, int v_width, int q_stride, int window, float scale, \
                                        float cap) {                                                                           \
        attention_plain<wide>(q, keys, values, out, state, nt, heads, kv_heads, width, v_width, q_stride, window, scale, cap);  \
    }
PLAIN(plain, false)
PLAIN(plain_wide, true)

// ---- fa -------------------------------------------------------------------------------------------------------------

// Address of 16-byte chunk `chunk` of row `row` in a tile whose rows hold `width` f16; xor keeps ldmatrix free of conflicts.
template <int width>
DEVICE u32 tile_address(u32 tile, int row, int chunk) {
    return tile + row * (width * 2) + ((chunk ^ (row & 7)) << 4);
}

template <int width, int rows>
DEVICE void load_tile(u32 tile, const f16* source, long long stride, int first, int count) {
    // 128 threads take whole groups of eight rows (width 64: sixteen, 256: four), so a thread's chunk stays and rows advance.
    constexpr int chunks = width / 8, step = 128 / chunks;
    const int chunk = threadIdx.x % chunks, row = threadIdx.x / chunks, left = count - first - row;
    const f16* from = source + (first + row) * stride + chunk * 8;
    u32 to = tile_address<width>(tile, row, chunk);
#pragma unroll
    for (int r = 0; r < rows; r += step) {
        // Rows beyond the last read the first one's address and none of its bytes: they become zeros.
        copy_async_16(step % 8 == 0 ? to + r * (width * 2) : tile_address<width>(tile, row + r, chunk), r < left ? from : source,
                      r < left ? 16 : 0);
        from += step * stride;
    }
}

// A block sums columns blockIdx.z * slice and on, `slice` of them.
template <int width, int slice, int mtiles, int columns, bool soft_cap>
DEVICE void attention_fa(const f16* q, const f16* keys, const f16* values, f16* out, const int* state, int nt, int heads,
                         int kv_heads, int q_stride, int window, float scale, float cap) {
    constexpr int rows = 64 * mtiles;
    extern __shared__ __align__(128) u8 shared[];
    const u32 tile_q = shared_address(shared);
    const u32 tile_k = tile_q + rows * width * 2, tile_v = tile_k + 2 * columns * width * 2;
    constexpr u32 k_stage = columns * width * 2, v_stage = columns * slice * 2;

    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int head = blockIdx.y, kv = head / (heads / kv_heads);
    const int first_row = ((int)gridDim.x - 1 - (int)blockIdx.x) * rows;  // the longest rows first
    const int past = state[0];
    const int last = min(first_row + rows, nt) - 1 + past;  // last position that any row of the block sees
    const int seen = window > 0 ? max(0, past + first_row - window + 1) : 0;
    const int begin = seen / columns, end = last / columns + 1;
    const int positions = last + 1;
    const long long kv_stride = (long long)kv_heads * width;
    const int v_first = slice < width ? blockIdx.z * slice : 0;
    keys += kv * width;
    values += kv * width + v_first;

    load_tile<width, rows>(tile_q, q + head * width, q_stride, first_row, nt);
    load_tile<width, columns>(tile_k, keys, kv_stride, begin * columns, positions);
    load_tile<slice, columns>(tile_v, values, kv_stride, begin * columns, positions);
    copy_async_commit();

    float acc[mtiles][slice / 8][4];
    float most[mtiles][2], total[mtiles][2];
#pragma unroll
    for (int mt = 0; mt < mtiles; mt++) {
        most[mt][0] = most[mt][1] = NEGATIVE;
        total[mt][0] = total[mt][1] = 0.0f;
#pragma unroll
        for (int n = 0; n < slice / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) acc[mt][n][e] = 0.0f;
    }
    const int warp_row = warp * 16 * mtiles;
    const float scale_log2 = scale * LOG2E;

    for (int j = begin; j < end; j++) {
        copy_async_wait<0>();
        __syncthreads();
        const u32 now = (j - begin) & 1, k_now = tile_k + now * k_stage, v_now = tile_v + now * v_stage;
        if (j + 1 < end) {
            load_tile<width, columns>(tile_k + (now ^ 1) * k_stage, keys, kv_stride, (j + 1) * columns, positions);
            load_tile<slice, columns>(tile_v + (now ^ 1) * v_stage, values, kv_stride, (j + 1) * columns, positions);
            copy_async_commit();
        }

        float s[mtiles][columns / 8][4];
#pragma unroll
        for (int mt = 0; mt < mtiles; mt++)
#pragma unroll
            for (int n = 0; n < columns / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) s[mt][n][e] = 0.0f;
#pragma unroll
        for (int kk = 0; kk < width / 16; kk++) {
            u32 a[mtiles][4];
#pragma unroll
            for (int mt = 0; mt < mtiles; mt++)
                load_matrix_4(a[mt], tile_address<width>(tile_q, warp_row + mt * 16 + (lane & 15), 2 * kk + (lane >> 4)));
#pragma unroll
            for (int n = 0; n < columns / 16; n++) {
                u32 b[4];
                load_matrix_4(b, tile_address<width>(k_now, n * 16 + (lane & 7) + ((lane >> 4) << 3), 2 * kk + ((lane >> 3) & 1)));
#pragma unroll
                for (int mt = 0; mt < mtiles; mt++) {
                    mma_f16(s[mt][2 * n], a[mt], b[0], b[1]);
                    mma_f16(s[mt][2 * n + 1], a[mt], b[2], b[3]);
                }
            }
        }

        const bool edge = (j + 1) * columns - 1 > past + first_row || (window > 0 && j * columns <= last - window);
#pragma unroll
        for (int mt = 0; mt < mtiles; mt++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int position = past + first_row + warp_row + mt * 16 + half * 8 + (lane >> 2);
                float above = NEGATIVE;
#pragma unroll
                for (int n = 0; n < columns / 8; n++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float& score = s[mt][n][2 * half + e];
                        if (soft_cap) score = cap * tanhf(score * scale / cap) * LOG2E;
                        if (edge) {
                            const int key = j * columns + n * 8 + 2 * (lane & 3) + e;
                            if (key > position || (window > 0 && key <= position - window)) score = MASKED;
                        }
                        above = fmaxf(above, score);
                    }
                above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, 1));
                above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, 2));
                if (!soft_cap) above *= scale_log2;
                // Weights may exceed 1 up to 2^SLACK before the sums are brought down to a new maximum: that is seldom needed
                // after the first tile, and the division at the end undoes whatever maximum was used.
                float keep = 1.0f;
                if (above > most[mt][half] + SLACK) {
                    keep = exp2_fast(most[mt][half] - above);
                    most[mt][half] = above;
                }
                const float top = most[mt][half];
                float sum = 0.0f;
#pragma unroll
                for (int n = 0; n < columns / 8; n++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float& score = s[mt][n][2 * half + e];
                        score = exp2_fast(soft_cap ? score - top : score * scale_log2 - top);
                        sum += score;
                    }
                total[mt][half] = total[mt][half] * keep + sum;
                if (__any_sync(0xffffffffu, keep != 1.0f)) {
#pragma unroll
                    for (int n = 0; n < slice / 8; n++) {
                        acc[mt][n][2 * half] *= keep;
                        acc[mt][n][2 * half + 1] *= keep;
                    }
                }
            }
        }

#pragma unroll
        for (int kk = 0; kk < columns / 16; kk++) {
            u32 a[mtiles][4];
#pragma unroll
            for (int mt = 0; mt < mtiles; mt++) {
                a[mt][0] = pack_f16(s[mt][2 * kk][0], s[mt][2 * kk][1]);
                a[mt][1] = pack_f16(s[mt][2 * kk][2], s[mt][2 * kk][3]);
                a[mt][2] = pack_f16(s[mt][2 * kk + 1][0], s[mt][2 * kk + 1][1]);
                a[mt][3] = pack_f16(s[mt][2 * kk + 1][2], s[mt][2 * kk + 1][3]);
            }
#pragma unroll
            for (int n = 0; n < slice / 16; n++) {
                u32 b[4];
                load_matrix_4_transposed(b, tile_address<slice>(v_now, kk * 16 + (lane & 15), 2 * n + (lane >> 4)));
#pragma unroll
                for (int mt = 0; mt < mtiles; mt++) {
                    mma_f16(acc[mt][2 * n], a[mt], b[0], b[1]);
                    mma_f16(acc[mt][2 * n + 1], a[mt], b[2], b[3]);
                }
            }
        }
    }

#pragma unroll
    for (int mt = 0; mt < mtiles; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = total[mt][half];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            const int row = first_row + warp_row + mt * 16 + half * 8 + (lane >> 2);
            if (row >= nt) continue;
            const float inverse = 1.0f / sum;
            f16* to = out + ((long long)row * heads + head) * width + v_first + 2 * (lane & 3);
#pragma unroll
            for (int n = 0; n < slice / 8; n++)
                *(u32*)(to + n * 8) = pack_f16(acc[mt][n][2 * half] * inverse, acc[mt][n][2 * half + 1] * inverse);
        }
}

// Compiled for 12.x, 64 keys a tile need more registers than there are.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
constexpr int COLUMNS_128 = 32;
#else
constexpr int COLUMNS_128 = 64;
#endif

#define FA(name, width, mtiles, columns, soft_cap)                                                                             \
    KERNEL(128) minfer_attention_##name(const f16* q, const f16* keys, const f16* values, f16* out, const int* state, int nt,  \
                                        int heads, int kv_heads, int, int, int q_stride, int window, float scale, float cap) {      \
        attention_fa<width, width < SLICE ? width : SLICE, mtiles, columns, soft_cap>(q, keys, values, out, state, nt, heads,   \
                                                                                      kv_heads, q_stride, window, scale, cap); \
    }
FA(fa_64, 64, 2, 64, false)
FA(fa_128, 128, 2, COLUMNS_128, false)
FA(fa_256, 256, 1, 32, false)
FA(fa_64_cap, 64, 2, 64, true)
FA(fa_128_cap, 128, 1, 64, true)
FA(fa_256_cap, 256, 1, 32, true)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900
FA(fa_512, 512, 1, 32, false)
FA(fa_512_cap, 512, 1, 32, true)
#endif

// ---- decode ---------------------------------------------------------------------------------------------------------

constexpr int KEYS = 4;

// Block (head, split, token): keys of one split of `span` positions; partial f32 [nt, heads, splits, v_width + 2]. Where `wide`,
// heads blocks for each slice.
template <bool wide>
DEVICE void attention_decode(const f16* q, const f16* keys, const f16* values, float* partial, const int* state, int heads,
                             int kv_heads, int width, int v_width, int q_stride, int window, float scale, float cap, int span) {
    const int head = wide ? blockIdx.x % heads : blockIdx.x, v_first = wide ? blockIdx.x / heads * SLICE : 0, split = blockIdx.y, token = blockIdx.z, kv = head / (heads / kv_heads);
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int position = state[0] + token, first = window > 0 && position >= window ? position - window + 1 : 0;
    const int begin = max(first, split * span), end = min(position + 1, (split + 1) * span);
    float* to = partial + (((long long)token * heads + head) * gridDim.y + split) * (v_width + 2);
    if (begin >= end) {
        if (threadIdx.x == 0 && v_first == 0) {
            to[v_width] = NEGATIVE;
            to[v_width + 1] = 0.0f;
        }
        return;
    }
    __shared__ float shared_sum[4][SLICE], shared_most[4], shared_total[4];
    // A lane holds pairs 2 * lane + 64 * i, so that a warp reads whole 128-byte lines.
    const f16* row_q = q + (long long)token * q_stride + head * width;
    float query[8], sum[8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int e = 2 * lane + 64 * i;
        const u32 pair = e < width ? *(const u32*)(row_q + e) : 0u;
        query[2 * i] = low_f16(pair);
        query[2 * i + 1] = high_f16(pair);
        sum[2 * i] = sum[2 * i + 1] = 0.0f;
    }
    float most = NEGATIVE, total = 0.0f;
    // Four keys at a time: their reads and their sums over the warp do not wait for each other.
    for (int p = begin + warp * KEYS; p < end; p += 4 * KEYS) {
        u32 key[KEYS][4], value[KEYS][4];
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            const long long row = (long long)min(p + u, end - 1) * kv_heads + kv;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int e = 2 * lane + 64 * i;
                key[u][i] = e < width ? *(const u32*)(keys + row * width + e) : 0u;
                value[u][i] = v_first + e < v_width ? *(const u32*)(values + row * v_width + v_first + e) : 0u;
            }
        }
        float score[KEYS], above = most;
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            score[u] = 0.0f;
#pragma unroll
            for (int i = 0; i < 4; i++) score[u] += query[2 * i] * low_f16(key[u][i]) + query[2 * i + 1] * high_f16(key[u][i]);
        }
        for (int e = SLICE + 2 * lane; wide && e < width; e += 64) {
            const u32 pair = *(const u32*)(row_q + e);
#pragma unroll
            for (int u = 0; u < KEYS; u++) {
                const u32 other = *(const u32*)(keys + ((long long)min(p + u, end - 1) * kv_heads + kv) * width + e);
                score[u] += low_f16(pair) * low_f16(other) + high_f16(pair) * high_f16(other);
            }
        }
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            score[u] = p + u < end ? capped(warp_sum(score[u]), scale, cap) : NEGATIVE;
            above = fmaxf(above, score[u]);
        }
        const float keep = __expf(most - above);
        most = above;
        total *= keep;
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] *= keep;
#pragma unroll
        for (int u = 0; u < KEYS; u++) {
            const float weight = __expf(score[u] - above);
            total += weight;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[2 * i] += weight * low_f16(value[u][i]);
                sum[2 * i + 1] += weight * high_f16(value[u][i]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int e = 2 * lane + 64 * i;
        if (v_first + e < v_width) {
            shared_sum[warp][e] = sum[2 * i];
            shared_sum[warp][e + 1] = sum[2 * i + 1];
        }
    }
    if (lane == 0) {
        shared_most[warp] = most;
        shared_total[warp] = total;
    }
    __syncthreads();
    const float above = fmaxf(fmaxf(shared_most[0], shared_most[1]), fmaxf(shared_most[2], shared_most[3]));
    float scales[4], all = 0.0f;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        scales[w] = __expf(shared_most[w] - above);
        all += shared_total[w] * scales[w];
    }
    for (int e = threadIdx.x; e < min(SLICE, v_width - v_first); e += 128)
        to[v_first + e] = shared_sum[0][e] * scales[0] + shared_sum[1][e] * scales[1] + shared_sum[2][e] * scales[2] + shared_sum[3][e] * scales[3];
    if (threadIdx.x == 0 && v_first == 0) {
        to[v_width] = above;
        to[v_width + 1] = all;
    }
}

#define DECODE(name, wide)                                                                                                     \
    KERNEL(128) minfer_attention_##name(const f16* q, const f16* keys, const f16* values, float* partial, const int* state,    \
                                        int heads, int kv_heads, int width, int v_width, int q_stride, int window, float scale, \
                                        float cap, int span) {                                                                 \
        attention_decode<wide>(q, keys, values, partial, state, heads, kv_heads, width, v_width, q_stride, window, scale, cap, \
                               span);                                                                                          \
    }
DECODE(decode, false)
DECODE(decode_wide, true)

// Block (head, token): partial f32 [nt, heads, splits, width + 2] -> out f16 [nt, heads * width]. Each warp weighs the splits, a
// lane a split, so that their reads do not wait for each other.
KERNEL(128) minfer_attention_combine(const float* partial, f16* out, int heads, int width, int splits) {
    const int step = width + 2, lane = threadIdx.x & 31;
    const float* from = partial + ((long long)blockIdx.y * heads + blockIdx.x) * splits * step;
    float above = NEGATIVE, total = 0.0f;
    for (int s = lane; s < splits; s += 32) above = fmaxf(above, from[s * step + width]);
    above = warp_max(above);
    for (int s = lane; s < splits; s += 32) total += from[s * step + width + 1] * __expf(from[s * step + width] - above);
    total = warp_sum(total);
    for (int e = threadIdx.x; e < width; e += 128) {
        float sum = 0.0f;
#pragma unroll 8
        for (int s = 0; s < splits; s++) {
            const float* part = from + s * step;
            // A split without keys left its sums unset.
            sum += part[width + 1] > 0.0f ? part[e] * __expf(part[width] - above) : 0.0f;
        }
        out[((long long)blockIdx.y * heads + blockIdx.x) * width + e] = f32_to_f16(sum / total);
    }
}
