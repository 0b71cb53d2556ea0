// A few rows times a quantised matrix, straight from its blocks: decode, and the output head of a prefill.
// x [m, k] float32, weight [n, k] as stored, y [m, n] = x times the weight's transpose; 1 <= m <= 8, k a multiple of 32 and of
// the type's block. The weights are decoded once for all rows; nothing is kept.
#include "threads.h"
#include "types.h"

#define MOST_ROWS 8
#define PART_BYTES (64 << 10)  // of weights that a thread takes at a time

typedef struct {
    const u8* weight;
    long row_bytes;
    const float* x;
    float* y;
    int m, n, k, rows;
    void (*several)(const u8*, const float*, int, int, float*, long);
} product;

// One row of weights times m rows of x; the loop over m is unrolled, as m is a constant where this is inlined. Two sums a row
// of x, by the parity of the group: one chain of additions would wait for itself.
#define DOT(name, id, block, bytes, ...) \
    INLINE void name##_dot(const u8* row, const float* x, int m, int k, float* y, long n) { \
        f32x16 even[MOST_ROWS], odd[MOST_ROWS]; \
        for (int i = 0; i < m; i++) even[i] = odd[i] = splat(0); \
        for (int at = 0; at < k; at += block, row += bytes) \
            for (int g = 0; g < block / 32; g++) { \
                f32x16 w[2]; \
                name##_decode(row, g, w); \
                for (int i = 0; i < m; i++) { \
                    const float* here = x + (long)i * k + at + 32 * g; \
                    even[i] += w[0] * load(here); \
                    odd[i] += w[1] * load(here + LANES); \
                } \
            } \
        for (int i = 0; i < m; i++) y[i * n] = sum(even[i] + odd[i]); \
    } \
    static void name##_rows(const u8* row, const float* x, int m, int k, float* y, long n) { \
        switch (m) { \
            case 1: name##_dot(row, x, 1, k, y, n); break; \
            case 2: name##_dot(row, x, 2, k, y, n); break; \
            case 3: name##_dot(row, x, 3, k, y, n); break; \
            case 4: name##_dot(row, x, 4, k, y, n); break; \
            default: \
                name##_dot(row, x, 4, k, y, n); \
                name##_rows(row, x + 4L * k, m - 4, k, y + 4 * n, n); \
        } \
    }
EACH_INTEGER_TYPE(DOT)
EACH_FLOAT_TYPE(DOT)

static void some_rows(const void* arguments, int part, int thread) {
    (void)thread;
    const product* p = arguments;
    int end = (part + 1) * p->rows < p->n ? (part + 1) * p->rows : p->n;
    for (int row = part * p->rows; row < end; row++)
        p->several(p->weight + row * p->row_bytes, p->x, p->m, p->k, p->y + row, p->n);
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
