// Many rows times a quantised matrix on integers: y [m, n] = x [m, k] times the transpose of weight [n, k], for the types of
// integers; k a multiple of 32 and of the type's block.
//
// The weights' integers are exact in 16 bits. Activations are rounded to 16 bits, with one scale for each 32 of them along k: an
// error of at most 1/65534 of the largest of the 32, 256 times less than that of 8 bits. Two products a lane and instruction
// (vpdpwssd) is twice the rate of float32; an addition beside it (vpmaddwd) leaves between once and twice, by the CPU's ports.
// Sums of 32 products stay below 2^28.
//
// Time of a prefill of Gemma 3 270M through this over that through BLAS, which converts the weights and keeps them: 0.65 with
// vpdpwssd, 0.79 with AVX2, 0.67 with SSE4 (two cores of an EPYC, 6 to 10 pairs, OpenBLAS held to the same instructions). Not
// used: with AVX but not AVX2 (1.15); with AVX-512 but not VNNI (0.74 on that EPYC, but CPUs that lack VNNI add on the ports
// that multiply, and none was at hand); on ARM, where smlal has the rate of float32 (two sdot, of the high and of the low bytes,
// would have twice that).
//
// Activations are packed once: blocks of 32 tokens, VECTORS vectors; [k / 2][32 tokens][2]. A thread decodes some rows of
// weights and takes them through all blocks. Lanes are tokens and not rows of weights, since packing costs a shuffle for each
// pair, and each weight is decoded anew in every pass while a token's activation serves all rows.
#include "threads.h"
#include "types.h"

#define TOKENS 32           // of a block: VECTORS of them
#define TILE 4              // rows of weights that share the loads of activations
#define HELD 2              // vectors of tokens whose sums, TILE each, stay in registers
#define DEPTH 8             // groups of 32 along k, for which the activations of a block stay in the first cache
#define PANEL_BYTES (384 << 10)  // of decoded weights of a thread, for the second cache
#define MOST_ROWS 64

typedef struct {
    int16_t q[16][TOKENS][2];  // by pairs along k
    float scale[TOKENS];
    float first[TOKENS], total[TOKENS];  // sums of the rounded activations: of the first 16, and of all 32
} activations;

typedef struct {
    int16_t q[TILE][32];
    float scale[2][TILE], least[2][TILE];
} weights;

INLINE ints pairs(ints total, ints a, ints b) {
#if defined(__AVX512VNNI__)
    return (ints)_mm512_dpwssd_epi32((__m512i)total, (__m512i)a, (__m512i)b);
#elif LANES == 8 && defined(__AVXVNNI__)
    return (ints)_mm256_dpwssd_avx_epi32((__m256i)total, (__m256i)a, (__m256i)b);
#elif LANES == 8
    return total + (ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif LANES == 4 && defined(__x86_64__)
    return total + (ints)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return total + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

INLINE ints load_pairs(const void* p) {
    ints v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE ints splat_pair(const int16_t* p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return pair - (ints){0};
}

static long groups_of(int k) { return k / 32; }
static long blocks_of(int m) { return (m + TOKENS - 1) / TOKENS; }

static int panel_rows(int k) {
    long tiles = PANEL_BYTES / (groups_of(k) * (long)sizeof(weights));
    return tiles < 2 ? 2 * TILE : tiles * TILE < MOST_ROWS ? (int)tiles * TILE : MOST_ROWS;
}

static float* aligned(void* p) { return (float*)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

EXPORT int minfer_integers_fast(void) {
#if defined(__AVX512VNNI__) || LANES == 8 || (defined(__x86_64__) && !defined(__AVX__))
    return 1;
#else
    return 0;
#endif
}

// Bytes that packed activations take, and that ``threads`` threads need while they multiply.
EXPORT long minfer_packed_bytes(int m, int k) { return blocks_of(m) * groups_of(k) * (long)sizeof(activations) + 64; }
EXPORT long minfer_panel_bytes(int k, int threads) {
    return threads * (panel_rows(k) / TILE * groups_of(k) * (long)sizeof(weights)) + 64;
}

typedef struct {
    const float* x;
    activations* packed;
    int m, k;
} packing;

// Whole numbers of 16 bits.
INLINE void narrow(floats v, int16_t* out) {
#if LANES == 16
    __m256i q = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32((__m512)v));
    memcpy(out, &q, sizeof q);
#else
    for (int i = 0; i < LANES; i++) out[i] = (int16_t)v[i];
#endif
}

static void pack_group(const float* x, activations* out, int token) {
    floats v[VECTORS], most = splat(0);
    for (int i = 0; i < VECTORS; i++) {
        v[i] = load(x + i * LANES);
        floats size = choose(v[i] < 0.0f, -v[i], v[i]);
        most = choose(size > most, size, most);
    }
    float largest = greatest(most), halves[2] = {0, 0};
    // What is too small to be divided by counts as nothing.
    float inverse = largest > 1e-30f ? 32767.0f / largest : 0, scale = largest * (1.0f / 32767);
    for (int i = 0; i < VECTORS; i++) {
        v[i] = nearest(v[i] * inverse);
        halves[i * LANES / 16] += sum(v[i]);  // whole numbers below 2^24
    }
    float total = halves[0] + halves[1];
    // Of a NaN or an infinity the sum is NaN. It must not become a number by rounding.
    int sound = total == total;
    if (!sound) scale = total;
    int16_t q[32];
    for (int i = 0; i < VECTORS; i++) narrow(sound ? v[i] : splat(0), q + i * LANES);
    for (int i = 0; i < 16; i++) memcpy(out->q[i][token], q + 2 * i, 2 * sizeof *q);
    out->scale[token] = scale;
    out->first[token] = halves[0] * scale;
    out->total[token] = total * scale;
}

static void pack_block(const void* arguments, int part, int thread) {
    (void)thread;
    const packing* p = arguments;
    activations* out = p->packed + part * groups_of(p->k);
    int tokens = p->m - part * TOKENS < TOKENS ? p->m - part * TOKENS : TOKENS;
    if (tokens < TOKENS) memset(out, 0, groups_of(p->k) * sizeof *out);
    for (long g = 0; g < groups_of(p->k); g++)
        for (int token = 0; token < tokens; token++)
            pack_group(p->x + ((long)part * TOKENS + token) * p->k + 32 * g, out + g, token);
}

EXPORT void minfer_pack(const float* x, void* packed, int m, int k, int threads) {
    packing p = {x, (activations*)aligned(packed), m, k};
    in_parts(pack_block, &p, (int)blocks_of(m), threads);
}

typedef struct {
    const u8* weight;
    const activations* packed;
    float* y;
    weights* panels;
    long row_bytes;
    int m, n, k, rows, chunk, chunks;  // rows of weights and tokens of a part; ``chunks`` parts for the same rows
    void (*panel)(const u8*, const activations*, float*, weights*, int, int, int, int);
} product;

// Add to sums [TILE, TOKENS] what ``groups`` groups along k give. ``halved``: the halves of a group have scales of their own.
INLINE void tile(const weights* w, const activations* a, long groups, float* sums, int halved, int leasts) {
    floats result[TILE][VECTORS];
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < VECTORS; v++) result[r][v] = load(sums + r * TOKENS + v * LANES);
    for (long g = 0; g < groups; g++, w++, a++) {
        for (int part = 0; part <= halved; part++) {
            for (int first = 0; first < VECTORS; first += HELD) {
                ints total[TILE][HELD] = {0};
                for (int p = halved ? 8 * part : 0; p < (halved ? 8 * part + 8 : 16); p++) {
                    ints x[HELD];
                    for (int v = 0; v < HELD; v++) x[v] = load_pairs(a->q[p][(first + v) * LANES]);
                    for (int r = 0; r < TILE; r++) {
                        ints both = splat_pair(&w->q[r][2 * p]);
                        for (int v = 0; v < HELD; v++) total[r][v] = pairs(total[r][v], x[v], both);
                    }
                }
                for (int v = 0; v < HELD; v++) {
                    floats scale = load(a->scale + (first + v) * LANES);
                    for (int r = 0; r < TILE; r++)
                        result[r][first + v] += __builtin_convertvector(total[r][v], floats) * (scale * w->scale[part][r]);
                }
            }
        }
        if (leasts)
            for (int v = 0; v < VECTORS; v++) {
                floats all = load(a->total + v * LANES), first = load(a->first + v * LANES);
                for (int r = 0; r < TILE; r++) {
                    result[r][v] -= all * w->least[1][r];
                    if (halved) result[r][v] -= first * (w->least[0][r] - w->least[1][r]);
                }
            }
    }
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < VECTORS; v++) store(sums + r * TOKENS + v * LANES, result[r][v]);
}

INLINE void through_blocks(
    const weights* w, const activations* a, float* y, int rows, int m, int n, int k, int halved, int leasts
) {
    long all = groups_of(k);
    for (int start = 0; start < m; start += TOKENS, a += all) {
        float sums[MOST_ROWS][TOKENS] = {{0}};
        for (long g = 0; g < all; g += DEPTH)
            for (int r = 0; r < rows; r += TILE)
                tile(w + r / TILE * all + g, a + g, all - g < DEPTH ? all - g : DEPTH, sums[r], halved, leasts);
        int tokens = m - start < TOKENS ? m - start : TOKENS;
        for (int token = 0; token < tokens; token++)
            for (int r = 0; r < rows; r++) y[(long)(start + token) * n + r] = sums[r][token];
    }
}

INLINE void widen(i8x16 q, int16_t* out) {
#ifdef __AVX2__
    __m256i wide = _mm256_cvtepi8_epi16((__m128i)q);
    memcpy(out, &wide, sizeof wide);
#else
    for (int i = 0; i < 16; i++) out[i] = q[i];
#endif
}

// ``rows`` rows of weights, decoded into w, times all of m tokens. A last tile that is not full repeats its last row.
#define PANEL(name, id, block, bytes, halved, leasts) \
    static void name##_panel(const u8* raw, const activations* a, float* y, weights* w, int rows, int m, int n, int k) { \
        long all = groups_of(k); \
        for (int r = 0; r < (rows + TILE - 1) / TILE * TILE; r++) { \
            const u8* row = raw + (long)(r < rows ? r : rows - 1) * (k / block * bytes); \
            weights* out = w + r / TILE * all; \
            for (int at = 0; at < k; at += block, row += bytes) \
                for (int g = 0; g < block / 32; g++, out++) { \
                    group v = name##_group(row, g); \
                    for (int i = 0; i < 2; i++) { \
                        widen(v.q[i], out->q[r % TILE] + 16 * i); \
                        out->scale[i][r % TILE] = v.scale[i]; \
                        out->least[i][r % TILE] = v.least[i]; \
                    } \
                } \
        } \
        through_blocks(w, a, y, rows, m, n, k, halved, leasts); \
    }

EACH_INTEGER_TYPE(PANEL)

static void one_part(const void* arguments, int part, int thread) {
    const product* p = arguments;
    int first = part / p->chunks * p->rows, start = part % p->chunks * p->chunk;
    int rows = p->n - first < p->rows ? p->n - first : p->rows, m = p->m - start < p->chunk ? p->m - start : p->chunk;
    weights* w = p->panels + thread * (panel_rows(p->k) / TILE * groups_of(p->k));
    const activations* a = p->packed + start / TOKENS * groups_of(p->k);
    p->panel(p->weight + first * p->row_bytes, a, p->y + (long)start * p->n + first, w, rows, m, p->n, p->k);
}

EXPORT void minfer_integer_product(
    int type, const u8* weight, void* packed, float* y, void* panels, int m, int n, int k, int threads
) {
    product p = {weight, (activations*)aligned(packed), y, (weights*)aligned(panels), 0, m, n, k, panel_rows(k), 0, 1, 0};
    switch (type) {
#define CHOOSE(name, id, block, bytes, ...) \
    case id: \
        p.row_bytes = (long)k / block * bytes; \
        p.panel = name##_panel; \
        break;
        EACH_INTEGER_TYPE(CHOOSE)
#undef CHOOSE
    }
    // Tokens are divided too where rows alone would not keep all threads busy; each chunk decodes its weights anew.
    int panels_of_rows = (n + p.rows - 1) / p.rows;
    long wanted = (4L * threads + panels_of_rows - 1) / panels_of_rows, blocks = blocks_of(m);
    long chunk_blocks = threads < 2 || wanted < 2 ? blocks : (blocks + wanted - 1) / wanted;
    p.chunk = (int)chunk_blocks * TOKENS;
    p.chunks = (int)((blocks + chunk_blocks - 1) / chunk_blocks);
    in_parts(one_part, &p, panels_of_rows * p.chunks, threads);
}
