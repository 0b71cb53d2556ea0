// dequantise: quantised weights -> f16 scratch, for the f16 path (then a cuBLAS GEMM reads the scratch).
//
// weights   u8, `count / block * bytes` bytes; count is a multiple of 8 and of the type's block
// out       f16 [count]
//
// Variants tried
//   one thread, eight elements, one 16-byte store   current: 4.9 ms for a 7B file on an H200, where its bytes need 4.0
#include "blocks.cuh"

template <class T>
DEVICE void dequantise(const u8* weights, f16* out, long long count) {
    const long long stride = (long long)gridDim.x * blockDim.x * 8;
    for (long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 8; i < count; i += stride) {
        int within;
        const u8* block = block_of<T>(weights, i, within);
        float v[8];
        T::decode8(block, within, v);
        uint4 packed;
        packed.x = pack_f16(v[0], v[1]);
        packed.y = pack_f16(v[2], v[3]);
        packed.z = pack_f16(v[4], v[5]);
        packed.w = pack_f16(v[6], v[7]);
        *(uint4*)(out + i) = packed;
    }
}

#define VARIANT(name, type) \
    KERNEL(256) minfer_dequantise_##name(const u8* weights, f16* out, long long count) { dequantise<type>(weights, out, count); }
EACH_WEIGHT_TYPE(VARIANT)
