// What the int8 products share: their accumulators as floats, and how a warp's tile of results goes out.
#pragma once
#include "common.cuh"

// int32 accumulator as float: exact below 2^22, and on the pipe that has time. An accumulator starts at SMALL_INT_ZERO.
DEVICE float small_int(int v) { return __int_as_float(v) - 12582912.0f; }
constexpr int SMALL_INT_ZERO = 0x4b400000;

// A warp's 64 tokens by 32 rows, as four by four mma results, times `scale`, into out [m, n].
DEVICE void store_tile(const float (&acc)[4][4][4], void* out, int token, int m, int row, int n, float scale, int wide) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int mt = 0; mt < 4; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int t = token + mt * 16 + h * 8 + (lane >> 2);
            if (t >= m) continue;
#pragma unroll
            for (int nt = 0; nt < 4; nt++) {
                const int r = row + nt * 8 + 2 * (lane & 3);
                if (r >= n) continue;
                const float a = acc[mt][nt][2 * h] * scale, b = acc[mt][nt][2 * h + 1] * scale;
                const long long at = (long long)t * n + r;
                if (wide)
                    *(float2*)((float*)out + at) = make_float2(a, b);
                else
                    *(u32*)((f16*)out + at) = pack_f16(clamp_f16(a), clamp_f16(b));
            }
        }
}
