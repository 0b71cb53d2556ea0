// exp and what is made of it. Against float64: exp within 2 units in the last place; the logistic function and tanh as well,
// tanh in absolute terms.
#pragma once

#include "vectors.h"

// e^x for -87 <= x <= 88; what lies outside is taken as the bound, so that the result is neither 0 nor infinite; a NaN stays.
// x = n ln 2 + r with |r| <= ln 2 / 2; the polynomial is the Taylor series of e^r, whose next term is 2e-9 of it.
INLINE floats exponential(floats x) {
    x = choose(x > 88.0f, splat(88.0f), x);
    x = choose(x < -87.0f, splat(-87.0f), x);
    floats n = nearest(x * 1.44269504f);
    floats r = x - n * 0.693145752f - n * 1.42860677e-6f;
    floats y = r * (1.0f / 5040) + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    return y * (floats)((to_integers(n) + 127) << 23);
}

// 0 where it would be less than the smallest normal number: times a huge x that would still be something.
INLINE floats logistic(floats x) { return choose(x < -87.0f, splat(0), 1.0f / (1.0f + exponential(-x))); }

INLINE floats hyperbolic_tangent(floats x) { return 1.0f - 2.0f / (1.0f + exponential(2.0f * x)); }
