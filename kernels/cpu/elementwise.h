// Loops over floats of any count: whole vectors, then one padded with zeros.
#pragma once

#include "threads.h"
#include "vectors.h"

#define PART_FLOATS (1 << 14)

INLINE floats load_some(const float* p, int count) {
    float lanes[LANES] = {0};
    memcpy(lanes, p, count * sizeof(float));
    return load(lanes);
}

INLINE void store_some(float* p, floats v, int count) { memcpy(p, &v, count * sizeof(float)); }

// A loop over n floats from ``at``, ``count`` of them at a time: LANES, and what is left at the end.
#define EACH_VECTOR(at, n, count) \
    for (long at = 0, count; count = (n) - at < LANES ? (n) - at : LANES, at < (n); at += LANES)
#define LOAD(p, count) ((count) == LANES ? load(p) : load_some(p, count))
#define STORE(p, v, count) ((count) == LANES ? store(p, v) : store_some(p, v, count))

INLINE int parts_of(long count) { return (int)((count + PART_FLOATS - 1) / PART_FLOATS); }
