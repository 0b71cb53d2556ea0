// Causal attention of q [m, heads, d], the first token at ``position``, over keys [kv_heads, positions, d] and values
// [kv_heads, positions, dv] of a cache: out [m, heads, dv]. A token sees itself and what is before it, or the last ``window`` of
// that; ``softcap`` c > 0 turns scores s into c tanh(s / c).
//
// Many tokens: the lanes of two vectors are queries of one head, keys and values are read as scalars; keys in blocks with a
// running maximum (arXiv:2205.14135), so that scores stay in the first cache. Few tokens: a head at a time, lanes along d.
#include <math.h>

#include "elementwise.h"
#include "functions.h"

#define QUERIES (2 * LANES)
#define KEYS 128  // of a block: their scores are 16 KiB at 16 lanes
#define TILE 6    // scalars that share the loads of a pair of vectors
#define FEW 8     // tokens below which lanes of queries would stay empty
#define UNSEEN (-1e30f)
#define PADDING 16  // floats by which the scratch may have to be moved to begin at a cache line

typedef struct {
    const float *q, *keys, *values;
    float *out, *scratch;
    long kv_stride_keys, kv_stride_values, thread_floats;
    int m, heads, kv_heads, d, dv, position, window;
    float scale, softcap;
} attention;

EXPORT long minfer_attention_floats(int m, int d, int dv, int position, int threads) {
    return threads * (m < FEW ? (long)position + m + PADDING : (long)(d + dv + KEYS) * QUERIES) + PADDING;
}

static int first_seen(const attention* a, int token) {
    int all = a->position + token + 1;
    return a->window > 0 && a->window < all ? all - a->window : 0;
}

// sums [rows, QUERIES] += for each row r the sum over i < depth of lanes [i, QUERIES] * scalars [r * row_step + i * step].
INLINE void accumulate(
    const float* lanes, const float* scalars, long row_step, long step, int rows, int depth, float* sums
) {
    floats total[TILE][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++) total[r][v] = load(sums + r * QUERIES + v * LANES);
    for (int i = 0; i < depth; i++) {
        floats low = load(lanes + (long)i * QUERIES), high = load(lanes + (long)i * QUERIES + LANES);
        for (int r = 0; r < rows; r++) {
            float scalar = scalars[r * row_step + i * step];
            total[r][0] += low * scalar;
            total[r][1] += high * scalar;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++) store(sums + r * QUERIES + v * LANES, total[r][v]);
}

static void tiles(const float* lanes, const float* scalars, long row_step, long step, int rows, int depth, float* sums) {
    int r = 0;
    for (; r + TILE <= rows; r += TILE)
        accumulate(lanes, scalars + r * row_step, row_step, step, TILE, depth, sums + r * QUERIES);
    for (; r < rows; r++) accumulate(lanes, scalars + r * row_step, row_step, step, 1, depth, sums + r * QUERIES);
}

// Scores [keys, QUERIES] of one block: capped, and where ``masked``, UNSEEN for what a query does not see.
INLINE void cap_and_mask(const attention* a, float* scores, int keys, int first_key, int first_query, int masked) {
    const int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    ints lane;
    memcpy(&lane, numbers, sizeof lane);
    for (int key = 0; key < keys; key++)
        for (int v = 0; v < 2; v++) {
            float* here = scores + key * QUERIES + v * LANES;
            floats s = load(here);
            if (a->softcap > 0) s = a->softcap * hyperbolic_tangent(s * (1.0f / a->softcap));
            if (masked) {
                ints distance = lane + (a->position + first_query + v * LANES - first_key - key);
                ints seen = distance >= 0;
                if (a->window > 0) seen &= distance < a->window;
                s = choose(seen, s, splat(UNSEEN));
            }
            store(here, s);
        }
}

// Scores become exp(score - maximum); sums and mixed values of earlier blocks are brought to the new maximum.
INLINE void soften(float* scores, int keys, floats most[2], floats total[2], float* mixed, int dv) {
    for (int v = 0; v < 2; v++) {
        floats maximum = most[v], sum = splat(0);
        for (int key = 0; key < keys; key++) {
            floats s = load(scores + key * QUERIES + v * LANES);
            maximum = choose(s > maximum, s, maximum);
        }
        floats factor = exponential(most[v] - maximum);
        for (int key = 0; key < keys; key++) {
            float* here = scores + key * QUERIES + v * LANES;
            floats s = load(here);
            floats p = choose(s <= UNSEEN, splat(0), exponential(s - maximum));  // a NaN stays one
            sum += p;
            store(here, p);
        }
        total[v] = total[v] * factor + sum;
        most[v] = maximum;
        for (int c = 0; c < dv; c++) {
            float* here = mixed + c * QUERIES + v * LANES;
            store(here, load(here) * factor);
        }
    }
}

static void query_block(const void* arguments, int part, int thread) {
    const attention* a = arguments;
    int blocks = (a->m + QUERIES - 1) / QUERIES, head = part % a->heads;
    int start = (blocks - 1 - part / a->heads) * QUERIES;  // the longest rows first
    int queries = a->m - start < QUERIES ? a->m - start : QUERIES, kv = head / (a->heads / a->kv_heads);
    float *turned = a->scratch + thread * a->thread_floats, *mixed = turned + (long)a->d * QUERIES;
    float* scores = mixed + (long)a->dv * QUERIES;
    memset(turned, 0, (long)(a->d + a->dv) * QUERIES * sizeof(float));
    for (int i = 0; i < queries; i++) {
        const float* q = a->q + ((long)(start + i) * a->heads + head) * a->d;
        for (int c = 0; c < a->d; c++) turned[c * QUERIES + i] = q[c] * a->scale;
    }
    floats most[2] = {splat(UNSEEN), splat(UNSEEN)}, total[2] = {splat(0), splat(0)};
    int end = a->position + start + queries;
    for (int first = first_seen(a, start); first < end; first += KEYS) {
        int keys = end - first < KEYS ? end - first : KEYS;
        memset(scores, 0, (long)keys * QUERIES * sizeof(float));
        tiles(turned, a->keys + kv * a->kv_stride_keys + (long)first * a->d, a->d, 1, keys, a->d, scores);
        int all_seen = first + keys <= a->position + start + 1 && first >= first_seen(a, start + queries - 1);
        if (!all_seen)
            cap_and_mask(a, scores, keys, first, start, 1);
        else if (a->softcap > 0)
            cap_and_mask(a, scores, keys, first, start, 0);
        soften(scores, keys, most, total, mixed, a->dv);
        tiles(scores, a->values + kv * a->kv_stride_values + (long)first * a->dv, 1, a->dv, a->dv, keys, mixed);
    }
    float inverse[QUERIES];
    for (int v = 0; v < 2; v++) store(inverse + v * LANES, 1.0f / total[v]);
    for (int i = 0; i < queries; i++) {
        float* out = a->out + ((long)(start + i) * a->heads + head) * a->dv;
        for (int c = 0; c < a->dv; c++) out[c] = mixed[c * QUERIES + i] * inverse[i];
    }
}

static float dot(const float* x, const float* y, int n) {
    floats total = splat(0);
    EACH_VECTOR(i, n, count) total += LOAD(x + i, count) * LOAD(y + i, count);
    return sum(total);
}

static void one_query(const void* arguments, int part, int thread) {
    const attention* a = arguments;
    int token = part / a->heads, head = part % a->heads, kv = head / (a->heads / a->kv_heads);
    const float* q = a->q + ((long)token * a->heads + head) * a->d;
    int first = first_seen(a, token), keys = a->position + token + 1 - first;
    const float* key = a->keys + kv * a->kv_stride_keys + (long)first * a->d;
    const float* value = a->values + kv * a->kv_stride_values + (long)first * a->dv;
    float *scores = a->scratch + thread * a->thread_floats, *out = a->out + ((long)token * a->heads + head) * a->dv;
    float most = -INFINITY;
    for (int i = 0; i < keys; i++) {
        float s = dot(q, key + (long)i * a->d, a->d) * a->scale;
        scores[i] = s = a->softcap > 0 ? a->softcap * tanhf(s / a->softcap) : s;
        most = s > most ? s : most;
    }
    floats total = splat(0);
    EACH_VECTOR(i, keys, count) {
        floats p = exponential(LOAD(scores + i, count) - most);
        STORE(scores + i, p, count);
        total += LOAD(scores + i, count);
    }
    float inverse = 1.0f / sum(total);
    EACH_VECTOR(c, a->dv, count) {
        floats mixed = splat(0);
        for (int i = 0; i < keys; i++) mixed += LOAD(value + (long)i * a->dv + c, count) * scores[i];
        mixed *= inverse;
        STORE(out + c, mixed, count);
    }
}

// ``kv_stride_keys`` and ``kv_stride_values``: floats from one head of the cache to the next. ``window`` 0: none. ``scratch``:
// minfer_attention_floats() of them.
EXPORT void minfer_attention(
    const float* q, const float* keys, const float* values, float* out, float* scratch, long kv_stride_keys,
    long kv_stride_values, int m, int heads, int kv_heads, int d, int dv, int position, int window, float scale, float softcap,
    int threads
) {
    long thread_floats = (minfer_attention_floats(m, d, dv, position, threads) - PADDING) / threads;
    float* aligned = (float*)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    attention a = {
        q, keys, values, out, aligned, kv_stride_keys, kv_stride_values, thread_floats,
        m, heads, kv_heads, d, dv, position, window, scale, softcap,
    };
    if (m < FEW)
        in_parts(one_query, &a, m * heads, threads);
    else
        in_parts(query_block, &a, (m + QUERIES - 1) / QUERIES * heads, threads);
}
