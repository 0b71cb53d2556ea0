// Quantised weights to float32: ``groups`` times 32 weights, whole blocks, from ``raw`` to ``out``.
#include "threads.h"
#include "types.h"

#define PART_WEIGHTS (1 << 14)

typedef struct {
    const u8* raw;
    float* out;
    long count;
    void (*some)(const u8*, float*, long, long);
} conversion;

#define SOME(name, id, block, bytes, ...) \
    static void name##_some(const u8* raw, float* out, long start, long end) { \
        for (long at = start; at < end; at += block) \
            for (int g = 0; g < block / 32; g++) { \
                floats w[VECTORS]; \
                name##_decode(raw + at / block * bytes, g, w); \
                for (int v = 0; v < VECTORS; v++) store(out + at + 32 * g + v * LANES, w[v]); \
            } \
    }
EACH_INTEGER_TYPE(SOME)
EACH_FLOAT_TYPE(SOME)

static void one_part(const void* arguments, int part, int thread) {
    (void)thread;
    const conversion* c = arguments;
    long start = (long)part * PART_WEIGHTS, end = start + PART_WEIGHTS;
    c->some(c->raw, c->out, start, end < c->count ? end : c->count);
}

EXPORT void minfer_dequantise(int type, const u8* raw, float* out, long count, int threads) {
    conversion c = {raw, out, count, 0};
    switch (type) {
#define CHOOSE(name, id, ...) \
    case id: c.some = name##_some; break;
        EACH_INTEGER_TYPE(CHOOSE)
        EACH_FLOAT_TYPE(CHOOSE)
#undef CHOOSE
    }
    in_parts(one_part, &c, (int)((count + PART_WEIGHTS - 1) / PART_WEIGHTS), threads);
}
