// x += y, and x[m, n] += bias[n].
#include "elementwise.h"

typedef struct {
    float* x;
    const float* y;
    long count;
} addition;

static void some_floats(const void* arguments, int part, int thread) {
    (void)thread;
    const addition* a = arguments;
    long start = (long)part * PART_FLOATS, n = a->count - start < PART_FLOATS ? a->count - start : PART_FLOATS;
    float* x = a->x + start;
    const float* y = a->y + start;
    for (long i = 0; i < n; i++) x[i] += y[i];
}

EXPORT void minfer_add(float* x, const float* y, long count, int threads) {
    addition a = {x, y, count};
    in_parts(some_floats, &a, parts_of(count), threads);
}
