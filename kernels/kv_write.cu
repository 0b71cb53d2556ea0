// kv_write: keys and values of new tokens into one layer of the cache.
//
// k, v      f16 [nt, kv_heads * width], strides in elements between tokens; multiples of 8
// bias      f32 [kv_heads * width of v] added to the values, or null
// keys, values   f16 [positions, kv_heads * width]
// state     int32: state[0] is the position of the first token
//
// Variants tried
//   one thread, eight elements   current
#include "common.cuh"

KERNEL(256) minfer_kv_write(const f16* k, const f16* v, const float* bias, f16* keys, f16* values, const int* state, int nt,
                            int k_width, int v_width, int k_stride, int v_stride) {
    const int chunks = (k_width + v_width) / 8;
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)nt * chunks) return;
    const int token = (int)(index / chunks), i = (int)(index % chunks) * 8;
    const long long position = state[0] + token;
    if (i < k_width) {
        *(uint4*)(keys + position * k_width + i) = *(const uint4*)(k + (long long)token * k_stride + i);
        return;
    }
    const int e = i - k_width;
    uint4 value = *(const uint4*)(v + (long long)token * v_stride + e);
    if (bias) {
        u32* words = (u32*)&value;
#pragma unroll
        for (int w = 0; w < 4; w++)
            words[w] = pack_f16(low_f16(words[w]) + bias[e + 2 * w], high_f16(words[w]) + bias[e + 2 * w + 1]);
    }
    *(uint4*)(values + position * v_width + e) = value;
}
