// rope: bias and rotary embedding (arXiv:2104.09864) of queries or keys, in place.
//
// x         f16 [nt, heads, width], `stride` elements between tokens
// bias      f32 [heads * width] added first, or null
// turns     f32 [positions, pairs, 2]: cosine and sine of each position, made once on the host in float64
// state     int32: state[0] is the position of the first token, read on the device so that a graph can be replayed
// interleaved: pairs (0, 1), (2, 3), ... ; otherwise (0, pairs), (1, pairs + 1), ...
//
// Variants tried
//   _pairs    one thread a pair, table of cosines: sincosf of large angles costs more than the read; 1.3 ms @3325 on an
//             H200 for 28 layers of 28 + 4 heads, three times what its bytes need
//   (plain)   eight elements of each half a thread, 16-byte accesses of values, biases and turns: 0.60 ms, where biases and
//             turns one by one took 0.90         current
#include "common.cuh"

KERNEL(256) minfer_rope_pairs(f16* x, const float* bias, const float2* turns, const int* state, int nt, int heads, int width, int stride,
                        int pairs, int interleaved) {
    const int half = width / 2;  // threads a head: pairs that turn, then pairs that only take the bias
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)nt * heads * half) return;
    const int p = (int)(index % half), head = (int)(index / half % heads), token = (int)(index / half / heads);
    f16* row = x + (long long)token * stride + head * width;
    const float* add = bias ? bias + head * width : nullptr;
    int i, j;
    if (p < pairs) {
        i = interleaved ? 2 * p : p;
        j = interleaved ? 2 * p + 1 : p + pairs;
    } else {
        i = 2 * p;
        j = 2 * p + 1;
    }
    float a = f16_to_f32(row[i]), b = f16_to_f32(row[j]);
    if (add) {
        a += add[i];
        b += add[j];
    }
    if (p < pairs) {
        const float2 turn = turns[(long long)(state[0] + token) * pairs + p];
        const float turned = a * turn.x - b * turn.y;
        b = a * turn.y + b * turn.x;
        a = turned;
    }
    row[i] = f32_to_f16(a);
    row[j] = f32_to_f16(b);
}

// Adds eight biases, where there are any, to eight packed values.
DEVICE void unpack_8(const uint4& packed, const float* bias, float (&v)[8]) {
    const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
    float4 added[2] = {};
    if (bias) {
        added[0] = ((const float4*)bias)[0];
        added[1] = ((const float4*)bias)[1];
    }
    const float* add = (const float*)added;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        v[2 * w] = low_f16(words[w]) + add[2 * w];
        v[2 * w + 1] = high_f16(words[w]) + add[2 * w + 1];
    }
}

DEVICE uint4 pack_8(const float (&v)[8]) {
    return make_uint4(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]), pack_f16(v[4], v[5]), pack_f16(v[6], v[7]));
}

// As minfer_rope_pairs where pairs (2 * pairs where interleaved) and the part that does not turn are multiples of 8.
KERNEL(256) minfer_rope(f16* x, const float* bias, const float2* turns, const int* state, int nt, int heads, int width, int stride,
                        int pairs, int interleaved) {
    const int turning = interleaved ? pairs / 4 : pairs / 8, units = turning + (width - 2 * pairs) / 8;
    const u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (u32)nt * heads * units) return;
    const int unit = index % units, head = index / units % heads, token = index / units / heads;
    f16* row = x + (long long)token * stride + head * width;
    const float* add = bias ? bias + head * width : nullptr;
    const float2* turn = turns + (long long)(state[0] + token) * pairs;
    float a[8];
    if (unit >= turning) {
        if (!add) return;
        const int e = 2 * pairs + 8 * (unit - turning);
        unpack_8(*(const uint4*)(row + e), add + e, a);
        *(uint4*)(row + e) = pack_8(a);
        return;
    }
    if (interleaved) {
        const int e = 8 * unit;
        unpack_8(*(const uint4*)(row + e), add ? add + e : nullptr, a);
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const float2 t = turn[4 * unit + p];
            const float first = a[2 * p], second = a[2 * p + 1];
            a[2 * p] = first * t.x - second * t.y;
            a[2 * p + 1] = first * t.y + second * t.x;
        }
        *(uint4*)(row + e) = pack_8(a);
        return;
    }
    float b[8];
    const int i = 8 * unit, j = pairs + i;
    float4 t[4];  // two pairs each
#pragma unroll
    for (int p = 0; p < 4; p++) t[p] = ((const float4*)(turn + i))[p];
    unpack_8(*(const uint4*)(row + i), add ? add + i : nullptr, a);
    unpack_8(*(const uint4*)(row + j), add ? add + j : nullptr, b);
#pragma unroll
    for (int p = 0; p < 8; p++) {
        const float cosine = p & 1 ? t[p >> 1].z : t[p >> 1].x, sine = p & 1 ? t[p >> 1].w : t[p >> 1].y;
        const float first = a[p];
        a[p] = first * cosine - b[p] * sine;
        b[p] = first * sine + b[p] * cosine;
    }
    *(uint4*)(row + i) = pack_8(a);
    *(uint4*)(row + j) = pack_8(b);
}
