// experts: rows to and from the experts of a mixture.
//
// minfer_gather_rows    out f16 [count, width] = x[rows[i]]; rows int32 [count]
// minfer_scatter_rows   out f16 [.., width]: out[rows[i]] = x[i]
// minfer_moe_combine        out f16 [m, width] = sum over used of weights f32 [m, used] * y f16 [m, used, width]
// width is a multiple of 8
//
// Variants tried
//   one thread, eight elements   current
#include "common.cuh"

DEVICE void move_rows(const f16* x, const int* rows, f16* out, int count, int width, bool gather) {
    const int chunks = width / 8;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)count * chunks) return;
    const long long i = index / chunks, e = index % chunks * 8, row = rows[i];
    *(uint4*)(out + (gather ? i : row) * width + e) = *(const uint4*)(x + (gather ? row : i) * width + e);
}

KERNEL(256) minfer_gather_rows(const f16* x, const int* rows, f16* out, int count, int width) {
    move_rows(x, rows, out, count, width, true);
}
KERNEL(256) minfer_scatter_rows(const f16* x, const int* rows, f16* out, int count, int width) {
    move_rows(x, rows, out, count, width, false);
}

KERNEL(256) minfer_moe_combine(const f16* y, const float* weights, f16* out, int m, int used, int width) {
    const int chunks = width / 8;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)m * chunks) return;
    const long long token = index / chunks, e = index % chunks * 8;
    float sum[8] = {};
    for (int u = 0; u < used; u++) {
        const float weight = weights[token * used + u];
        const uint4 packed = *(const uint4*)(y + (token * used + u) * width + e);
        const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
            sum[2 * w] += weight * low_f16(words[w]);
            sum[2 * w + 1] += weight * high_f16(words[w]);
        }
    }
    uint4 packed;
    packed.x = pack_f16(clamp_f16(sum[0]), clamp_f16(sum[1]));
    packed.y = pack_f16(clamp_f16(sum[2]), clamp_f16(sum[3]));
    packed.z = pack_f16(clamp_f16(sum[4]), clamp_f16(sum[5]));
    packed.w = pack_f16(clamp_f16(sum[6]), clamp_f16(sum[7]));
    *(uint4*)(out + token * width + e) = packed;
}
