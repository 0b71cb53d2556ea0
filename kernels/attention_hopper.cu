// attention_hopper: as attention.cu's `fa`, on Hopper's warpgroup matrix units; no soft cap, keys and values of one width.
//
// q         tensor map of f16 [nt, heads * width], boxes of 64 columns by QUERIES rows, swizzled by 128 bytes
// keys      tensor map of f16 [capacity, kv_heads * width], boxes of 64 columns by KEYS rows, swizzled; values the same
// out       f16 [nt, heads * width]
// state     int32: state[0] is the position of the first token; token t sees positions up to state[0] + t
// window    a token sees itself and the window - 1 positions before it; 0: all
// grid      (heads, tiles of queries): the longest rows of all heads first
//
// After FlashAttention-3 (arXiv:2407.08608): one warp has the copy engine bring keys and values, two warpgroups of 64 queries each
// multiply. A warpgroup starts the scores of the next keys and the sums over the last ones together and weighs scores while the
// sums run; the two take turns at starting, so that one's exponentials run beside the other's products.
//
// Variants tried (width 128, 28 heads on 4, an H200; attention.cu's `fa` takes 311 us at 3325 tokens, 23 at 512)
//   64, 128      128 queries by 128 keys a step: 152 us at 3325 tokens, 521 TFLOP/s; 12.8 us at 512              current
//   256          128 queries by 64 keys: sums alone take 128 registers                                          current
//   64 keys      at width 128: 170 us, 13.6 us
//   no turns     two warpgroups start whenever they are ready: 155 us, 14.0 us
#include "hopper.cuh"
#include "softmax.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr int QUERIES = 128, STAGES = 2, CONSUMERS = 256, TAIL = 1, TURN = 2;  // the last two: named barriers

// Where a block's operands lie in shared memory: panels of 64 columns, one after the other.
template <int WIDTH, int KEYS>
struct Room {
    static constexpr int PANELS = WIDTH / 64, Q_PANEL = QUERIES * 128, PANEL = KEYS * 128, Q_BYTES = PANELS * Q_PANEL, BYTES = PANELS * PANEL;
    u32 q, k, v, q_full, k_full, v_full, k_empty, v_empty;
};

// Tiles of keys and values that a block needs, the last one first: the one with the mask's edge, then the others.
struct Span {
    int begin, end;
};

template <int WIDTH, int KEYS>
DEVICE void bring(const TensorMap& q, const TensorMap& keys, const TensorMap& values, Room<WIDTH, KEYS> room, Span span, int head, int kv,
                  int first_row) {
    using R = Room<WIDTH, KEYS>;
    barrier_expect(room.q_full, R::Q_BYTES);
    for (int p = 0; p < R::PANELS; p++) copy_box(room.q + p * R::Q_PANEL, q, head * WIDTH + 64 * p, first_row, room.q_full);
    for (int i = 0; i < span.end - span.begin; i++) {
        const int stage = i % STAGES, row = (span.end - 1 - i) * KEYS;
        const u32 free = i / STAGES & 1 ^ 1;
        barrier_wait(room.k_empty + 8 * stage, free);
        barrier_expect(room.k_full + 8 * stage, R::BYTES);
        for (int p = 0; p < R::PANELS; p++)
            copy_box(room.k + stage * R::BYTES + p * R::PANEL, keys, kv * WIDTH + 64 * p, row, room.k_full + 8 * stage);
        barrier_wait(room.v_empty + 8 * stage, free);
        barrier_expect(room.v_full + 8 * stage, R::BYTES);
        for (int p = 0; p < R::PANELS; p++)
            copy_box(room.v + stage * R::BYTES + p * R::PANEL, values, kv * WIDTH + 64 * p, row, room.v_full + 8 * stage);
    }
}

// s = 64 queries times KEYS keys.
template <int WIDTH, int KEYS>
DEVICE void start_scores(float (&s)[KEYS / 2], u32 queries, u32 keys) {
    using R = Room<WIDTH, KEYS>;
#pragma unroll
    for (int c = 0; c < WIDTH / 16; c++)
        wgmma(s, descriptor(queries + c / 4 * R::Q_PANEL + c % 4 * 32), descriptor(keys + c / 4 * R::PANEL + c % 4 * 32), c);
    wgmma_commit();
}

// o += 64 queries' weights of KEYS keys times the values.
template <int WIDTH, int KEYS>
DEVICE void start_sums(float (&o)[WIDTH / 2], const u32 (&weights)[KEYS / 4], u32 values) {
#pragma unroll
    for (int c = 0; c < KEYS / 16; c++) wgmma<1>(o, &weights[4 * c], descriptor(values + c * 16 * 128, Room<WIDTH, KEYS>::PANEL), 1);
    wgmma_commit();
}

// Scores of keys that a query must not see. A lane holds keys 8 t + 2 (lane & 3) and the next, of `position` and the one 8 further.
template <int N>
DEVICE void mask(float (&s)[N], int first_key, int position, int window) {
#pragma unroll
    for (int t = 0; t < N / 4; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int key = first_key + 8 * t + (e & 1), at = position + (e >> 1) * 8;
            if (key > at || (window > 0 && key <= at - window)) s[4 * t + e] = MASKED;
        }
}

// Scores become weights; `keep` is what earlier sums must be multiplied by, 1 as a rule. See softmax.cuh for SLACK.
template <int N>
DEVICE void weigh(float (&s)[N], float (&most)[2], float (&total)[2], float (&keep)[2], float scale) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float above = NEGATIVE, sum[2] = {0.0f, 0.0f};
#pragma unroll
        for (int t = 0; t < N / 4; t++) above = fmaxf(above, fmaxf(s[4 * t + 2 * h], s[4 * t + 2 * h + 1]));
        above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, 1));
        above = fmaxf(above, __shfl_xor_sync(0xffffffffu, above, 2));
        above *= scale;
        keep[h] = 1.0f;
        if (above > most[h] + SLACK) {
            keep[h] = exp2_fast(most[h] - above);
            most[h] = above;
        }
#pragma unroll
        for (int t = 0; t < N / 4; t++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float& score = s[4 * t + 2 * h + e];
                score = exp2_fast(score * scale - most[h]);
                sum[e] += score;
            }
        total[h] = total[h] * keep[h] + sum[0] + sum[1];
    }
}

template <int N>
DEVICE void pack(u32 (&weights)[N / 2], const float (&s)[N]) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) weights[i] = pack_f16(s[2 * i], s[2 * i + 1]);
}

// Values of positions that nothing was written to become zeros: whatever lies there times a weight of 0 need not be 0.
template <int WIDTH, int KEYS>
DEVICE void clear_tail(u32 values, int first) {
    for (int i = threadIdx.x - 128; i < (KEYS - first) * (WIDTH / 8); i += CONSUMERS) {
        const int row = first + i / (WIDTH / 8), chunk = i % (WIDTH / 8);
        const u32 at = values + chunk / 8 * Room<WIDTH, KEYS>::PANEL + row * 128 + chunk % 8 * 16;
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0u) : "memory");
    }
    publish_shared();
    meet(TAIL, CONSUMERS);
}

template <int WIDTH, int KEYS>
DEVICE void consume(Room<WIDTH, KEYS> room, Span span, f16* out, int past, int nt, int first_row, int stride, int window, float scale) {
    using R = Room<WIDTH, KEYS>;
    const int group = threadIdx.x / 128 - 1, lane = threadIdx.x & 31, row = first_row + (threadIdx.x / 32 - 4) * 16 + (lane >> 2);
    const int group_row = first_row + 64 * group, tiles = span.end - span.begin;
    const u32 queries = room.q + group * 64 * 128;
    float s[KEYS / 2], o[WIDTH / 2], most[2] = {NEGATIVE, NEGATIVE}, total[2] = {0.0f, 0.0f}, keep[2];
    u32 weights[KEYS / 4];
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) o[i] = 0.0f;
    const auto hide = [&](int tile) {
        const bool edge = (tile + 1) * KEYS - 1 > past + group_row || (window > 0 && tile * KEYS <= past + group_row + 63 - window);
        if (edge) mask(s, tile * KEYS + 2 * (lane & 3), past + row, window);
    };

    barrier_wait(room.q_full, 0);
    barrier_wait(room.k_full, 0);
    wgmma_fence();
    start_scores<WIDTH, KEYS>(s, queries, room.k);
    wgmma_wait<0>();
    pin(s);
    if (lane == 0) barrier_arrive(room.k_empty);
    hide(span.end - 1);
    weigh(s, most, total, keep, scale);
    pack(weights, s);
    if (past + nt < span.end * KEYS) {
        barrier_wait(room.v_full, 0);
        clear_tail<WIDTH, KEYS>(room.v, past + nt - (span.end - 1) * KEYS);
    }

    if (group == 1 && tiles > 1) pass(TURN, CONSUMERS);
    for (int i = 1; i < tiles; i++) {
        const int stage = i % STAGES, before = (i - 1) % STAGES;
        barrier_wait(room.k_full + 8 * stage, i / STAGES & 1);
        barrier_wait(room.v_full + 8 * before, (i - 1) / STAGES & 1);
        meet(TURN + group, CONSUMERS);
        pin(o);
        wgmma_fence();
        start_scores<WIDTH, KEYS>(s, queries, room.k + stage * R::BYTES);
        start_sums<WIDTH, KEYS>(o, weights, room.v + before * R::BYTES);
        if (group == 0 || i + 1 < tiles) pass(TURN + 1 - group, CONSUMERS);
        wgmma_wait<1>();
        pin(s);
        if (lane == 0) barrier_arrive(room.k_empty + 8 * stage);
        hide(span.end - 1 - i);
        weigh(s, most, total, keep, scale);
        wgmma_wait<0>();
        pin(o);
        pin(weights);
        if (lane == 0) barrier_arrive(room.v_empty + 8 * before);
        if (__any_sync(0xffffffffu, keep[0] != 1.0f || keep[1] != 1.0f)) {
#pragma unroll
            for (int e = 0; e < WIDTH / 2; e++) o[e] *= keep[e >> 1 & 1];
        }
        pack(weights, s);
    }

    const int at = (tiles - 1) % STAGES;
    barrier_wait(room.v_full + 8 * at, (tiles - 1) / STAGES & 1);
    pin(o);
    wgmma_fence();
    start_sums<WIDTH, KEYS>(o, weights, room.v + at * R::BYTES);
    wgmma_wait<0>();
    pin(o);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        if (row + 8 * h >= nt) continue;
        const float inverse = 1.0f / total[h];
        f16* to = out + (long long)(row + 8 * h) * stride + 2 * (lane & 3);
#pragma unroll
        for (int t = 0; t < WIDTH / 8; t++) *(u32*)(to + 8 * t) = pack_f16(o[4 * t + 2 * h] * inverse, o[4 * t + 2 * h + 1] * inverse);
    }
}

template <int WIDTH, int KEYS>
DEVICE void attention(const TensorMap& q, const TensorMap& keys, const TensorMap& values, f16* out, const int* state, int nt, int heads,
                      int kv_heads, int window, float scale) {
    using R = Room<WIDTH, KEYS>;
    extern __shared__ u8 dynamic[];
    __shared__ u64 barriers[1 + 4 * STAGES];
    // The swizzle repeats every 1024 bytes.
    const u32 shared = shared_address(dynamic) + 1023u & ~1023u, full = shared_address(barriers);
    const R room = {shared, shared + R::Q_BYTES, shared + R::Q_BYTES + STAGES * R::BYTES,
                    full, full + 8, full + 8 * (1 + STAGES), full + 8 * (1 + 2 * STAGES), full + 8 * (1 + 3 * STAGES)};
    if (threadIdx.x == 0) {
        barrier_init(room.q_full, 1);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(room.k_full + 8 * i, 1);
            barrier_init(room.v_full + 8 * i, 1);
            barrier_init(room.k_empty + 8 * i, 8);
            barrier_init(room.v_empty + 8 * i, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int head = blockIdx.x, first_row = ((int)gridDim.y - 1 - (int)blockIdx.y) * QUERIES, past = state[0];
    const int last = past + min(first_row + QUERIES, nt) - 1;
    const int seen = window > 0 ? max(0, past + first_row - window + 1) : 0;
    const Span span = {seen / KEYS, last / KEYS + 1};
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) bring(q, keys, values, room, span, head, head / (heads / kv_heads), first_row);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(room, span, out + head * WIDTH, past, nt, first_row, heads * WIDTH, window, scale * LOG2E);
    }
}

#define ATTENTION(WIDTH, KEYS)                                                                                                          \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                                \
        minfer_attention_hopper_##WIDTH(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap keys,                    \
                                        const __grid_constant__ TensorMap values, f16* out, const int* state, int nt, int heads,        \
                                        int kv_heads, int window, float scale) {                                                        \
        attention<WIDTH, KEYS>(q, keys, values, out, state, nt, heads, kv_heads, window, scale);                                        \
    }
ATTENTION(64, 128)
ATTENTION(128, 128)
ATTENTION(256, 64)

#endif
