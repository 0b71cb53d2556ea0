// embedding: rows of the quantised token table -> f32 activations, times a constant (Gemma scales by sqrt(width)).
//
// table     u8, `vocabulary` rows of row_bytes bytes
// tokens    int32 [nt], each below vocabulary (checked on the host)
// out       f32 [nt, width]; grid.x = nt
//
// Variants tried
//   one block a token, eight elements a thread   current
#include "blocks.cuh"

template <class T>
DEVICE void embed(const u8* table, const int* tokens, float* out, int width, float scale) {
    const u8* row = table + (long long)tokens[blockIdx.x] * (width / T::block) * T::bytes;
    for (int i = threadIdx.x * 8; i < width; i += blockDim.x * 8) {
        int within;
        const u8* block = block_of<T>(row, i, within);
        float v[8];
        T::decode8(block, within, v);
        float4* to = (float4*)(out + (long long)blockIdx.x * width + i);
        to[0] = make_float4(v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale);
        to[1] = make_float4(v[4] * scale, v[5] * scale, v[6] * scale, v[7] * scale);
    }
}

#define VARIANT(name, type)                                                                                                 \
    KERNEL(256) minfer_embedding_##name(const u8* table, const int* tokens, float* out, int width, float scale) { \
        embed<type>(table, tokens, out, width, scale);                                                                      \
    }
EACH_WEIGHT_TYPE(VARIANT)
