// How fast this CPU multiplies 16-bit integers and adds them up in 32: vpdpwssd, or vpmaddwd and an addition, on registers, 12
// independent sums. Returns the number of multiply-accumulates done; 0 where the engine does not multiply integers on such a CPU,
// as the compiler knows it (kernels/cpu/integer_product.c).
#if defined(__AVX512VNNI__)
#include <immintrin.h>
typedef __m512i vector;
#define EACH(number) _mm512_set1_epi32(number)
#define SUM(total, a, b) _mm512_dpwssd_epi32(total, a, b)
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
#include <immintrin.h>
typedef __m256i vector;
#define EACH(number) _mm256_set1_epi32(number)
#define SUM(total, a, b) _mm256_dpwssd_avx_epi32(total, a, b)
#elif defined(__AVX2__) && !defined(__AVX512F__)
#include <immintrin.h>
typedef __m256i vector;
#define EACH(number) _mm256_set1_epi32(number)
#define SUM(total, a, b) _mm256_add_epi32(total, _mm256_madd_epi16(a, b))
#elif defined(__SSE2__) && !defined(__AVX__)
#include <emmintrin.h>
typedef __m128i vector;
#define EACH(number) _mm_set1_epi32(number)
#define SUM(total, a, b) _mm_add_epi32(total, _mm_madd_epi16(a, b))
#endif

long long integer_products(long rounds) {
#ifdef SUM
    vector total[12], a = EACH(0x00030003), b = EACH(-0x00010002);
    for (int i = 0; i < 12; i++) total[i] = EACH(i);
    for (long round = 0; round < rounds; round++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            total[i] = SUM(total[i], a, b);
            __asm__ volatile("" : "+v"(a), "+v"(b));  // so that no product serves two sums
        }
    }
    for (int i = 0; i < 12; i++) __asm__ volatile("" : : "v"(total[i]));
    return rounds * 12LL * (long long)(sizeof(vector) / 2);
#else
    (void)rounds;
    return 0;
#endif
}
