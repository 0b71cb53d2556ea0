// Turn the first 2 * pairs dimensions of each head of x[m, heads, d] in place: pair i of token t by the angle whose cosine and
// sine are at [t, pairs] of two tables. Pairs are (i, i + pairs), or neighbours where ``interleaved``.
#include "elementwise.h"

typedef struct {
    float* x;
    const float *cosine, *sine;
    int m, heads, d, pairs, interleaved, step;
} rotation;

INLINE void turn_neighbours(float* restrict x, const float* restrict c, const float* restrict s, int pairs) {
    for (int i = 0; i < pairs; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * c[i] - b * s[i];
        x[2 * i + 1] = b * c[i] + a * s[i];
    }
}

// The two parts of a head do not overlap, which the compiler cannot know of one pointer.
INLINE void turn_halves(float* restrict low, float* restrict high, const float* restrict c, const float* restrict s, int pairs) {
    for (int i = 0; i < pairs; i++) {
        float a = low[i], b = high[i];
        low[i] = a * c[i] - b * s[i];
        high[i] = b * c[i] + a * s[i];
    }
}

static void some_tokens(const void* arguments, int part, int thread) {
    (void)thread;
    const rotation* a = arguments;
    int end = (part + 1) * a->step < a->m ? (part + 1) * a->step : a->m;
    for (int t = part * a->step; t < end; t++)
        for (int h = 0; h < a->heads; h++) {
            float* x = a->x + ((long)t * a->heads + h) * a->d;
            const float *cosine = a->cosine + (long)t * a->pairs, *sine = a->sine + (long)t * a->pairs;
            if (a->interleaved)
                turn_neighbours(x, cosine, sine, a->pairs);
            else
                turn_halves(x, x + a->pairs, cosine, sine, a->pairs);
        }
}

EXPORT void minfer_rope(
    float* x, const float* cosine, const float* sine, int m, int heads, int d, int pairs, int interleaved, int threads
) {
    int step = PART_FLOATS / (heads * d) + 1;
    rotation a = {x, cosine, sine, m, heads, d, pairs, interleaved, step};
    in_parts(some_tokens, &a, (m + step - 1) / step, threads);
}
