// Hopper's own instructions: barriers in shared memory, the copy engine, clusters, the warpgroup matrix units.
#pragma once
#include "common.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

DEVICE void barrier_init(u32 barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void barrier_wait(u32 barrier, u32 parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(barrier), "r"(parity) : "memory");
}
// One arrival, and so many bytes to come.
DEVICE void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes) : "memory");
}

// Four floats to the same place of the other block's shared memory.
DEVICE void store_in_other(u32 shared, u32 block, const float* v) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.v4.f32 [there], {%2, %3, %4, %5}; }" ::"r"(shared), "r"(block), "f"(v[0]), "f"(v[1]), "f"(v[2]),
                 "f"(v[3]) : "memory");
}

struct alignas(64) TensorMap {
    u8 opaque[128];
};
DEVICE void barrier_arrive(u32 barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}

// All threads of both blocks meet; what they wrote before is seen after.
DEVICE void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// The copy engine brings a box of the tensor whose first element is (column, row); what lies outside comes as zeros.
DEVICE void copy_box(u32 shared, const TensorMap& map, int column, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     shared), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
DEVICE void prefetch_box(const TensorMap& map, int column, int row) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(column), "r"(row) : "memory");
}

// Rows of 64 columns (128 bytes), swizzled by 128 bytes, groups of eight rows 1024 bytes apart. An operand whose rows are the
// reduction (`transposed`) goes on with its next 64 columns `panel` bytes further; other operands have no use for it.
DEVICE u64 descriptor(u32 shared, u32 panel = 16) {
    return (u64)((shared & 0x3ffffu) >> 4) | ((u64)(panel >> 4) << 16) | (64ull << 32) | (1ull << 62);
}

DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Keeps the compiler from using these registers for anything else before this point, or from reading them before it: products in
// flight read and write them.
template <int n>
DEVICE void pin(u32 (&a)[n]) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("" : "+r"(a[i])::"memory");
}
template <int n>
DEVICE void pin(float (&d)[n]) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Some warps of a block meet at barrier `id` (1 to 15), or pass it by and only count.
DEVICE void meet(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void pass(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
// What this thread stored in shared memory will be seen by the copy engine and the matrix units, once the others have met it.
DEVICE void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define NAMES(a, b, c, d, e, f, g, h) "%" #a ",%" #b ",%" #c ",%" #d ",%" #e ",%" #f ",%" #g ",%" #h
#define SUMS(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS(i), SUMS(i + 8), SUMS(i + 16), SUMS(i + 24)
#define NAMES32 NAMES(0, 1, 2, 3, 4, 5, 6, 7) "," NAMES(8, 9, 10, 11, 12, 13, 14, 15) "," NAMES(16, 17, 18, 19, 20, 21, 22, 23) "," NAMES(24, 25, 26, 27, 28, 29, 30, 31)
#define NAMES64 NAMES32 "," NAMES(32, 33, 34, 35, 36, 37, 38, 39) "," NAMES(40, 41, 42, 43, 44, 45, 46, 47) "," NAMES(48, 49, 50, 51, 52, 53, 54, 55) "," NAMES(56, 57, 58, 59, 60, 61, 62, 63)
#define NAMES128 NAMES64 "," NAMES(64, 65, 66, 67, 68, 69, 70, 71) "," NAMES(72, 73, 74, 75, 76, 77, 78, 79) "," NAMES(80, 81, 82, 83, 84, 85, 86, 87) "," NAMES(88, 89, 90, 91, 92, 93, 94, 95) "," \
    NAMES(96, 97, 98, 99, 100, 101, 102, 103) "," NAMES(104, 105, 106, 107, 108, 109, 110, 111) "," NAMES(112, 113, 114, 115, 116, 117, 118, 119) "," NAMES(120, 121, 122, 123, 124, 125, 126, 127)

// d[64 x N] (+)= a[64 x 16] b[16 x N] in f16; `add` 0 starts anew. `transposed`: b is stored as 16 rows of N columns, else as N of 16.
template <int transposed = 0>
DEVICE void wgmma(float (&d)[32], const u32* a, u64 b, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" NAMES32 "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38; }"
                 : SUMS32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(transposed));
}
template <int transposed = 0>
DEVICE void wgmma(float (&d)[64], const u32* a, u64 b, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" NAMES64 "}, {%64,%65,%66,%67}, %68, p, 1, 1, %70; }"
                 : SUMS32(0), SUMS32(32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(transposed));
}
template <int transposed = 0>
DEVICE void wgmma(float (&d)[128], const u32* a, u64 b, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %133, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" NAMES128 "}, {%128,%129,%130,%131}, %132, p, 1, 1, %134; }"
                 : SUMS32(0), SUMS32(32), SUMS32(64), SUMS32(96)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(transposed));
}
// The same with a in shared memory, too.
DEVICE void wgmma(float (&d)[32], u64 a, u64 b, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" NAMES32 "}, %32, %33, p, 1, 1, 0, 0; }"
                 : SUMS32(0) : "l"(a), "l"(b), "r"(add));
}
DEVICE void wgmma(float (&d)[64], u64 a, u64 b, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" NAMES64 "}, %64, %65, p, 1, 1, 0, 0; }"
                 : SUMS32(0), SUMS32(32) : "l"(a), "l"(b), "r"(add));
}

#endif
