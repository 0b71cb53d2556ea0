// How fast this CPU multiplies 16-bit integers: vpdpwssd on registers, 32 products each, 12 of them independent.
// Returns the number of multiply-accumulates done; 0 where the CPU, as the compiler knows it, lacks the instruction.
#ifdef __AVX512VNNI__
#include <immintrin.h>

long long integer_products(long rounds) {
    __m512i total[12], a = _mm512_set1_epi16(3), b = _mm512_set1_epi16(-2);
    for (int i = 0; i < 12; i++) total[i] = _mm512_set1_epi32(i);
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 12; i++) total[i] = _mm512_dpwssd_epi32(total[i], a, b);
        __asm__ volatile("" : "+v"(a), "+v"(b));
    }
    for (int i = 0; i < 12; i++) __asm__ volatile("" : : "v"(total[i]));
    return rounds * 12LL * 32;
}
#else
long long integer_products(long rounds) {
    (void)rounds;
    return 0;
}
#endif
