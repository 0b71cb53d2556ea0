// attention: softmax(q k^T * scale + mask) v with causal mask, grouped heads, optional sliding window and soft cap.
//
// q         f16 [nt, heads, width], `q_stride` elements between tokens
// keys      f16 [positions, kv_heads, width]; values f16 [positions, kv_heads, width]
// out       f16 [nt, heads * width]
// state     int32: state[0] is the position of the first token; token t sees positions up to state[0] + t
// window    a token sees itself and the window - 1 positions before it; 0: all
// cap       scores become cap * tanh(score / cap); 0: none
//
// Variants tried
//   plain   one warp a query and head, online softmax, any width up to 256: reads all keys per query; the check
//   decode  few queries: keys split over blocks, partial results combined by a second kernel
#include "common.cuh"

// Below every score, yet finite.
constexpr float NEGATIVE = -1e30f;

DEVICE float capped(float score, float scale, float cap) {
    const float s = score * scale;
    return cap > 0.0f ? cap * tanhf(s / cap) : s;
}

// ---- plain ----------------------------------------------------------------------------------------------------------

KERNEL(128) minfer_attention_plain(const f16* q, const f16* keys, const f16* values, f16* out, const int* state, int nt, int heads,
                                   int kv_heads, int width, int q_stride, int window, float scale, float cap) {
    const int warp = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (warp >= nt * heads) return;
    const int token = warp / heads, head = warp % heads, kv = head / (heads / kv_heads);
    const int position = state[0] + token, first = window > 0 && position >= window ? position - window + 1 : 0;
    float query[8], sum[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int e = lane + 32 * i;
        query[i] = e < width ? f16_to_f32(q[(long long)token * q_stride + head * width + e]) : 0.0f;
        sum[i] = 0.0f;
    }
    float most = NEGATIVE, total = 0.0f;
    for (int p = first; p <= position; p++) {
        const long long at = ((long long)p * kv_heads + kv) * width;
        float dot = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (lane + 32 * i < width) dot += query[i] * f16_to_f32(keys[at + lane + 32 * i]);
        const float score = capped(warp_sum(dot), scale, cap), above = fmaxf(most, score);
        const float keep = __expf(most - above), weight = __expf(score - above);
        total = total * keep + weight;
        most = above;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (lane + 32 * i < width) sum[i] = sum[i] * keep + weight * f16_to_f32(values[at + lane + 32 * i]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (lane + 32 * i < width) out[((long long)token * heads + head) * width + lane + 32 * i] = f32_to_f16(sum[i] / total);
}

// ---- decode ---------------------------------------------------------------------------------------------------------

// Block (head, split, token): keys of one split of `span` positions; out_partial f32 [nt, heads, splits, width + 2].
KERNEL(128) minfer_attention_decode(const f16* q, const f16* keys, const f16* values, float* partial, const int* state, int heads,
                                    int kv_heads, int width, int q_stride, int window, float scale, float cap, int span) {
    const int head = blockIdx.x, split = blockIdx.y, token = blockIdx.z, kv = head / (heads / kv_heads);
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int position = state[0] + token, first = window > 0 && position >= window ? position - window + 1 : 0;
    const int begin = max(first, split * span), end = min(position + 1, (split + 1) * span);
    float* to = partial + (((long long)token * heads + head) * gridDim.y + split) * (width + 2);
    if (begin >= end) {
        if (threadIdx.x == 0) {
            to[width] = NEGATIVE;
            to[width + 1] = 0.0f;
        }
        return;
    }
    __shared__ float shared_sum[4][256], shared_most[4], shared_total[4];
    // A lane holds pairs 2 * lane + 64 * i, so that a warp reads whole 128-byte lines.
    float query[8], sum[8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int e = 2 * lane + 64 * i;
        const u32 pair = e < width ? *(const u32*)(q + (long long)token * q_stride + head * width + e) : 0u;
        query[2 * i] = low_f16(pair);
        query[2 * i + 1] = high_f16(pair);
        sum[2 * i] = sum[2 * i + 1] = 0.0f;
    }
    float most = NEGATIVE, total = 0.0f;
    for (int p = begin + warp; p < end; p += 4) {
        const long long at = ((long long)p * kv_heads + kv) * width;
        float dot = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int e = 2 * lane + 64 * i;
            if (e < width) {
                const u32 pair = *(const u32*)(keys + at + e);
                dot += query[2 * i] * low_f16(pair) + query[2 * i + 1] * high_f16(pair);
            }
        }
        const float score = capped(warp_sum(dot), scale, cap), above = fmaxf(most, score);
        const float keep = __expf(most - above), weight = __expf(score - above);
        total = total * keep + weight;
        most = above;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int e = 2 * lane + 64 * i;
            if (e < width) {
                const u32 pair = *(const u32*)(values + at + e);
                sum[2 * i] = sum[2 * i] * keep + weight * low_f16(pair);
                sum[2 * i + 1] = sum[2 * i + 1] * keep + weight * high_f16(pair);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int e = 2 * lane + 64 * i;
        if (e < width) {
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
    for (int e = threadIdx.x; e < width; e += 128)
        to[e] = shared_sum[0][e] * scales[0] + shared_sum[1][e] * scales[1] + shared_sum[2][e] * scales[2] + shared_sum[3][e] * scales[3];
    if (threadIdx.x == 0) {
        to[width] = above;
        to[width + 1] = all;
    }
}

// Block (head, token): partial f32 [nt, heads, splits, width + 2] -> out f16 [nt, heads * width].
KERNEL(128) minfer_attention_combine(const float* partial, f16* out, int heads, int width, int splits) {
    const float* from = partial + ((long long)blockIdx.y * heads + blockIdx.x) * splits * (width + 2);
    float above = NEGATIVE, total = 0.0f;
    for (int s = 0; s < splits; s++) above = fmaxf(above, from[s * (width + 2) + width]);
    for (int s = 0; s < splits; s++) total += from[s * (width + 2) + width + 1] * __expf(from[s * (width + 2) + width] - above);
    for (int e = threadIdx.x; e < width; e += 128) {
        float sum = 0.0f;
        for (int s = 0; s < splits; s++) {
            const float* part = from + s * (width + 2);
            if (part[width + 1] > 0.0f) sum += part[e] * __expf(part[width] - above);
        }
        out[((long long)blockIdx.y * heads + blockIdx.x) * width + e] = f32_to_f16(sum / total);
    }
}
