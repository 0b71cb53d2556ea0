// What every attention that keeps running sums of weights is made of.
#pragma once
#include "common.cuh"

// Below every score, yet finite: a row that has seen only masked keys keeps it, and exp2(MASKED - NEGATIVE) is still 0.
constexpr float NEGATIVE = -1e30f;
// Powers of two that a weight may grow by before sums are scaled again (f16 holds 2^15).
constexpr float SLACK = 8.0f;
#define MASKED __int_as_float(0xff800000)
constexpr float LOG2E = 1.4426950408889634f;

// 2^x in one instruction; below -126 it is 0.
DEVICE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
