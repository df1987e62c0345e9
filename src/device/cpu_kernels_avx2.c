/* SPDX-License-Identifier: MIT */
#include "device/cpu_kernels.h"

#include <immintrin.h>

#define KERNELS CPU_KERNELS_AVX2
#define LANES 8
#define MAX_VECS 8

typedef __m256 vec;

static inline vec vec_load(const char *pos, int half)
{
    return half ? _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)pos))
                : _mm256_loadu_ps((const float *)pos);
}

static inline void vec_store(void *pos, vec value, int half)
{
    if (half)
        _mm_storeu_si128((__m128i *)pos,
                         _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    else
        _mm256_storeu_ps(pos, value);
}

/* Loads the last lanes of a row (a tail). Widths are multiples of 4, so a tail
 * is a whole vec or its lower half. */
static inline vec vec_load_tail(const char *pos, int half, unsigned n_lanes)
{
    __m128 low;

    if (n_lanes == LANES)
        return vec_load(pos, half);
    low = half ? _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)pos))
               : _mm_loadu_ps((const float *)pos);
    return _mm256_insertf128_ps(_mm256_setzero_ps(), low, 0);
}

static inline void vec_store_tail(void *pos, vec value, int half,
                                  unsigned n_lanes)
{
    __m128 low = _mm256_castps256_ps128(value);

    if (n_lanes == LANES)
        vec_store(pos, value, half);
    else if (half)
        _mm_storel_epi64((__m128i *)pos,
                         _mm_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
    else
        _mm_storeu_ps(pos, low);
}

#include "device/lookup_body.h"
