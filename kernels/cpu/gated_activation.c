// gate = activation(gate) * up, in place. SiLU: x * logistic(x). GELU in its tanh form: x * (1 + tanh z) / 2 = x * logistic(2 z),
// z = sqrt(2 / pi) (x + 0.044715 x^3).
#include "elementwise.h"
#include "functions.h"

typedef struct {
    float* gate;
    const float* up;
    long count;
    int gelu;
} activation;

INLINE void activate(float* gate, const float* up, long n, int gelu) {
    EACH_VECTOR(i, n, count) {
        floats x = LOAD(gate + i, count);
        floats z = gelu ? x * (1.59576912f + 0.0713548163f * x * x) : x;
        floats y = x * logistic(z) * LOAD(up + i, count);
        STORE(gate + i, y, count);
    }
}

static void some_floats(const void* arguments, int part, int thread) {
    (void)thread;
    const activation* a = arguments;
    long start = (long)part * PART_FLOATS, n = a->count - start < PART_FLOATS ? a->count - start : PART_FLOATS;
    if (a->gelu)
        activate(a->gate + start, a->up + start, n, 1);
    else
        activate(a->gate + start, a->up + start, n, 0);
}

EXPORT void minfer_gated_activation(float* gate, const float* up, long count, int gelu, int threads) {
    activation a = {gate, up, count, gelu};
    in_parts(some_floats, &a, parts_of(count), threads);
}
