/* SPDX-License-Identifier: MIT */
#include "device/cpu_kernels.h"

#include <immintrin.h>

#define KERNELS CPU_KERNELS_AVX512
#define LANES 16
#define MAX_VECS 16

typedef __m512 vec;

static inline vec vec_load(const char *at, int half)
{
    if (half)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)at));
    return _mm512_loadu_ps(at);
}

/* gcc's plain form of it does not pass -Wsign-conversion at -O0. */
static inline __m256i vec_halves(vec value)
{
    return _mm512_maskz_cvtps_ph((__mmask16)0xffffu, value,
                                 _MM_FROUND_TO_NEAREST_INT);
}

static inline void vec_store(void *at, vec value, int half)
{
    if (half)
        _mm256_storeu_si256((__m256i *)at, vec_halves(value));
    else
        _mm512_storeu_ps(at, value);
}

static inline __m128 load_4(const char *at, int half)
{
    if (half)
        return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)at));
    return _mm_loadu_ps((const float *)at);
}

static inline __m256 load_8(const char *at, int half)
{
    if (half)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)at));
    return _mm256_loadu_ps((const float *)at);
}

/* No masked load: that would wait for the next line as well, which nobody has
 * prefetched. */
static inline vec vec_load_tail(const char *at, int half, unsigned n_lanes)
{
    size_t octet_bytes = half ? 16 : 32;

    switch (n_lanes) {
    case 4:
        return _mm512_zextps128_ps512(load_4(at, half));
    case 8:
        return _mm512_zextps256_ps512(load_8(at, half));
    case 12:
        return _mm512_insertf32x4(_mm512_zextps256_ps512(load_8(at, half)),
                                  load_4(at + octet_bytes, half), 2);
    default:
        return vec_load(at, half);
    }
}

static inline void vec_store_tail(void *at, vec value, int half,
                                  unsigned n_lanes)
{
    __mmask16 mask = (__mmask16)((1u << n_lanes) - 1);

    if (n_lanes == LANES)
        vec_store(at, value, half);
    else if (half)
        _mm256_mask_storeu_epi16(at, mask, vec_halves(value));
    else
        _mm512_mask_storeu_ps(at, mask, value);
}

#include "device/lookup_body.h"
