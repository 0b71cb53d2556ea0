// y[rows, d] = x / sqrt(mean(x^2) + epsilon) * weight[d], the mean over each row.
#include <math.h>

#include "elementwise.h"

typedef struct {
    const float *x, *weight;
    float* y;
    long rows;
    int d, step;
    float epsilon;
} normalisation;

static void some_rows(const void* arguments, int part, int thread) {
    (void)thread;
    const normalisation* a = arguments;
    long end = (long)(part + 1) * a->step < a->rows ? (long)(part + 1) * a->step : a->rows;
    for (long row = (long)part * a->step; row < end; row++) {
        const float* x = a->x + row * a->d;
        float* y = a->y + row * a->d;
        floats squares = splat(0);
        EACH_VECTOR(i, a->d, count) {
            floats v = LOAD(x + i, count);
            squares += v * v;
        }
        float factor = 1.0f / sqrtf(sum(squares) / a->d + a->epsilon);
        for (int i = 0; i < a->d; i++) y[i] = x[i] * factor * a->weight[i];
    }
}

EXPORT void minfer_rms_norm(const float* x, const float* weight, float* y, long rows, int d, float epsilon, int threads) {
    int step = PART_FLOATS / d + 1;
    normalisation a = {x, weight, y, rows, d, step, epsilon};
    in_parts(some_rows, &a, (int)((rows + step - 1) / step), threads);
}
