// experts: which experts of a mixture each token takes, the choices in the order of their experts, and the sum of the results.
//
// A choice is one expert of one token: number token * used + u for the token's u-th. Nothing here or in expert_gemm.cu needs a number
// on the host: a pass over a mixture is launched, and kept as a graph, like any other.
//
// minfer_router_top    scores f32 [m, experts] -> chosen int32 [m, used], highest first, equal ones by their number, what is not a
//                      number last (as NumPy sorts); weights f32 [m, used], the softmax over the chosen
// minfer_router_group  chosen int32 [choices] -> order int32 [choices]: the choices of expert 0 as they come, then of expert 1, ...
//                      place int32 [choices]: where each choice stands in `order`
//                      tiles int32 [choices / tokens + experts, 4]: expert, first place in `order`, the place after the last, of at
//                      most `tokens` choices of one expert; some tiles are empty. One block an expert
// minfer_router_rows   out f16 [choices, width]: row order[i] / used of x, for a product that wants rows in the order of their experts
// minfer_moe_combine   out f16 [m, width] = sum over used of weights f32 [m, used] * the choices' y f16 [m * used, width], which lie in
//                      the order of their experts (place), or as they come (place null); width is a multiple of 8
//
// Variants tried
//   _top      one warp a token, one pass over its scores for each choice                     current
//   _group    each block counts the choices below its expert's and its own, then places its own: no atomics, always the same
//             order. Expert e's tiles begin at place first / tokens + e, which no other expert reaches: no sum over experts     current
//   _rows, _combine  one thread, eight elements   current
#include "common.cuh"

constexpr u32 ALL = 0xffffffffu;
constexpr int GROUP_THREADS = 1024, GROUP_WARPS = GROUP_THREADS / 32;

// Greater for a greater score; 0 for what is not a number.
DEVICE u32 rank_of(float score) {
    const u32 bits = __float_as_uint(score + 0.0f);  // -0 becomes 0: they are equal
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

KERNEL(128) minfer_router_top(const float* scores, int* chosen, float* weights, int m, int experts, int used) {
    const int token = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (token >= m) return;
    const float* row = scores + (long long)token * experts;
    chosen += (long long)token * used;
    weights += (long long)token * used;
    // Rank and complement of the number make one key, greater the earlier; the next choice is the greatest key below the last one's.
    u64 last = ~0ull;
    float top = 0.0f, total = 0.0f;
    for (int u = 0; u < used; u++) {
        u64 best = 0;
        for (int e = lane; e < experts; e += 32) {
            const u64 key = (u64)rank_of(row[e]) << 32 | (u32)~e;
            if (key < last && key > best) best = key;
        }
        const u32 rank = __reduce_max_sync(ALL, (u32)(best >> 32));
        const u32 complement = __reduce_max_sync(ALL, (u32)(best >> 32) == rank ? (u32)best : 0u);
        last = (u64)rank << 32 | complement;
        const int expert = (int)~complement;
        const float score = row[expert];
        if (u == 0) top = score;
        const float weight = expf(score - top);
        total += weight;
        if (lane == (u & 31)) {
            chosen[u] = expert;
            weights[u] = weight;
        }
    }
    for (int u = lane; u < used; u += 32) weights[u] /= total;
}

KERNEL(GROUP_THREADS) minfer_router_group(const int* chosen, int* order, int* place, int4* tiles, int choices, int tokens) {
    __shared__ int lower_of[GROUP_WARPS], equal_of[GROUP_WARPS];
    const int expert = blockIdx.x, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int span = (choices + GROUP_THREADS - 1) / GROUP_THREADS * 32;  // choices that a warp looks at
    const int begin = min(warp * span, choices), end = min(begin + span, choices);
    int lower = 0, equal = 0;
    for (int i = begin + lane; i < end; i += 32) {
        const int other = chosen[i];
        lower += other < expert;
        equal += other == expert;
    }
    lower = __reduce_add_sync(ALL, lower);
    equal = __reduce_add_sync(ALL, equal);
    if (lane == 0) {
        lower_of[warp] = lower;
        equal_of[warp] = equal;
    }
    __syncthreads();
    const int first = __reduce_add_sync(ALL, lower_of[lane]), count = __reduce_add_sync(ALL, equal_of[lane]);
    int next = first + __reduce_add_sync(ALL, lane < warp ? equal_of[lane] : 0);
    for (int i = begin; i < end; i += 32) {
        const bool own = i + lane < end && chosen[i + lane] == expert;
        const u32 owners = __ballot_sync(ALL, own);
        if (own) {
            const int at = next + __popc(owners & ((1u << lane) - 1u));
            order[at] = i + lane;
            place[i + lane] = at;
        }
        next += __popc(owners);
    }
    // The next expert's tiles begin at (first + count) / tokens + expert + 1.
    const int places = (first + count) / tokens - first / tokens + 1;
    for (int i = threadIdx.x; i < places; i += GROUP_THREADS) {
        const int from = first + i * tokens;
        tiles[first / tokens + expert + i] = make_int4(expert, from, min(from + tokens, first + count), 0);
    }
}

KERNEL(256) minfer_router_rows(const f16* x, const int* order, f16* out, int choices, int used, int width) {
    const int chunks = width / 8;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)choices * chunks) return;
    const long long at = index / chunks, e = index % chunks * 8;
    *(uint4*)(out + at * width + e) = *(const uint4*)(x + (long long)(order[at] / used) * width + e);
}

KERNEL(256) minfer_moe_combine(const f16* y, const int* place, const float* weights, f16* out, int m, int used, int width) {
    const int chunks = width / 8;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)m * chunks) return;
    const long long token = index / chunks, e = index % chunks * 8;
    float sum[8] = {};
    for (int u = 0; u < used; u++) {
        const long long choice = token * used + u, row = place ? place[choice] : choice;
        const float weight = weights[choice];
        const uint4 packed = *(const uint4*)(y + row * width + e);
        const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
            sum[2 * w] += weight * low_f16(words[w]);
            sum[2 * w + 1] += weight * high_f16(words[w]);
        }
    }
    uint4 packed;
    packed.x = pack_f16(clamp_f16(sum[0]), clamp_f16(sum[1]));
    packed.y = pack_f16(clamp_f16(sum[2]), clamp_f16(sum[3]));
    packed.z = pack_f16(clamp_f16(sum[4]), clamp_f16(sum[5]));
    packed.w = pack_f16(clamp_f16(sum[6]), clamp_f16(sum[7]));
    *(uint4*)(out + token * width + e) = packed;
}
