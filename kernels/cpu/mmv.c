// A few rows times a quantised matrix, straight from its blocks: decode, and the output head of a prefill.
// x [m, k] float32, weight [n, k] as stored, y [m, n] = x times the weight's transpose; 1 <= m <= 8, k a multiple of 32 and of
// the type's block. The weights are decoded once for UNROLLED rows; nothing is kept.
#include "threads.h"
#include "types.h"

#define UNROLLED (LANES == 16 ? 4 : 2)  // rows of x at a time: their sums must fit the registers
#define PART_BYTES (64 << 10)  // of weights that a thread takes at a time
#define AHEAD 3072  // bytes fetched ahead of their use: the CPU's own fetching stops at each page, 6 rows of 640 q8_0 weights

typedef struct {
    const u8* weight;
    long row_bytes;
    const float* x;
    float* y;
    int m, n, k, rows;
    void (*several)(const u8*, int, const float*, int, int, float*, long);
} product;

// One row of weights times m rows of x; the loop over m is unrolled, as m is a constant where this is inlined. Each vector of
// a group has a sum of its own: a single chain of additions would wait for itself.
#define PRODUCT(name, id, block, bytes, ...) \
    INLINE void name##_dot(const u8* row, const float* x, int m, int k, float* y, long n) { \
        floats total[UNROLLED][VECTORS]; \
        for (int i = 0; i < m; i++) \
            for (int v = 0; v < VECTORS; v++) total[i][v] = splat(0); \
        for (int at = 0; at < k; at += block, row += bytes) { \
            for (int ahead = 0; ahead < bytes; ahead += 64) __builtin_prefetch(row + AHEAD + ahead); \
            for (int g = 0; g < block / 32; g++) { \
                floats w[VECTORS]; \
                name##_decode(row, g, w); \
                for (int i = 0; i < m; i++) \
                    for (int v = 0; v < VECTORS; v++) total[i][v] += w[v] * load(x + (long)i * k + at + 32 * g + v * LANES); \
            } \
        } \
        for (int i = 0; i < m; i++) { \
            for (int v = 1; v < VECTORS; v++) total[i][0] += total[i][v]; \
            y[i * n] = sum(total[i][0]); \
        } \
    } \
    INLINE void name##_each(const u8* weight, int rows, const float* x, int m, int k, float* y, long n) { \
        for (int row = 0; row < rows; row++) name##_dot(weight + row * ((long)k / block * bytes), x, m, k, y + row, n); \
    } \
    static void name##_rows(const u8* weight, int rows, const float* x, int m, int k, float* y, long n) { \
        for (; m > UNROLLED; m -= UNROLLED, x += UNROLLED * (long)k, y += UNROLLED * n) \
            name##_each(weight, rows, x, UNROLLED, k, y, n); \
        switch (m) { \
            case 1: name##_each(weight, rows, x, 1, k, y, n); break; \
            case 2: name##_each(weight, rows, x, 2, k, y, n); break; \
            case 3: name##_each(weight, rows, x, UNROLLED < 3 ? 2 : 3, k, y, n); break; \
            case 4: name##_each(weight, rows, x, UNROLLED, k, y, n); break; \
        } \
    }
EACH_INTEGER_TYPE(PRODUCT)
EACH_FLOAT_TYPE(PRODUCT)

static void some_rows(const void* arguments, int part, int thread) {
    (void)thread;
    const product* p = arguments;
    int start = part * p->rows, rows = p->n - start < p->rows ? p->n - start : p->rows;
    p->several(p->weight + start * p->row_bytes, rows, p->x, p->m, p->k, p->y + start, p->n);
}

EXPORT void minfer_mmv(int type, const u8* weight, const float* x, float* y, int m, int n, int k, int threads) {
    product p = {weight, 0, x, y, m, n, k, 0, 0};
    switch (type) {
#define CHOOSE(name, id, block, bytes, ...) \
    case id: \
        p.row_bytes = (long)k / block * bytes; \
        p.several = name##_rows; \
        break;
        EACH_INTEGER_TYPE(CHOOSE)
        EACH_FLOAT_TYPE(CHOOSE)
#undef CHOOSE
    }
    p.rows = (int)(PART_BYTES / p.row_bytes) + 1;
    in_parts(some_rows, &p, (n + p.rows - 1) / p.rows, threads);
}
