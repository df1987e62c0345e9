/* SPDX-License-Identifier: MIT */
#include "device/cpu_kernels.h"

#include <immintrin.h>

#define KERNELS CPU_KERNELS_AVX512
#define LANES 16
#define MAX_VECS 16

typedef __m512 vec;

static inline vec vec_load(const char *pos, int half)
{
    return half ? _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)pos))
                : _mm512_loadu_ps(pos);
}

/* Converts 16 floats to fp16. This is the masked form of the intrinsic: gcc's
 * unmasked form gives a -Wsign-conversion warning at -O0. */
static inline __m256i vec_halves(vec value)
{
    return _mm512_maskz_cvtps_ph((__mmask16)0xffffu, value,
                                 _MM_FROUND_TO_NEAREST_INT);
}

static inline __m128 load_4(const char *pos, int half)
{
    return half ? _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)pos))
                : _mm_loadu_ps((const float *)pos);
}

static inline __m256 load_8(const char *pos, int half)
{
    return half ? _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)pos))
                : _mm256_loadu_ps((const float *)pos);
}

/* Loads the last lanes of a row (a tail), without a masked load. A masked load
 * would also wait for the next cache line, which has not been prefetched. */
static inline vec vec_load_tail(const char *pos, int half, unsigned n_lanes)
{
    switch (n_lanes) {
    case 4:
        return _mm512_zextps128_ps512(load_4(pos, half));
    case 8:
        return _mm512_zextps256_ps512(load_8(pos, half));
    case 12:
        return _mm512_insertf32x4(_mm512_zextps256_ps512(load_8(pos, half)),
                                  load_4(pos + (half ? 16 : 32), half), 2);
    default:
        return vec_load(pos, half);
    }
}

/* Stores the last lanes of a row (a tail), without a masked store. Loads that
 * follow a masked store of the same data would wait until the data are in the
 * cache. This doubled the time for rows of 4 or 8 columns. */
static inline void vec_store_tail(void *pos, vec value, int half,
                                  unsigned n_lanes)
{
    size_t n_bytes = n_lanes * (half ? 2u : 4u);
    __m512i bits = half ? _mm512_castsi256_si512(vec_halves(value))
                        : _mm512_castps_si512(value);
    __m128i rest = _mm512_castsi512_si128(bits);
    char *to = pos;

    if (n_bytes & 64)
        _mm512_storeu_si512(to, bits);
    if (n_bytes & 32) {
        _mm256_storeu_si256((__m256i *)to, _mm512_castsi512_si256(bits));
        rest = _mm512_extracti32x4_epi32(bits, 2);
        to += 32;
    }
    if (n_bytes & 16) {
        _mm_storeu_si128((__m128i *)to, rest);
        rest = _mm512_extracti32x4_epi32(bits, 1);
        to += 16;
    }
    if (n_bytes & 8)
        _mm_storel_epi64((__m128i *)to, rest);
}

static inline void vec_store(void *pos, vec value, int half)
{
    vec_store_tail(pos, value, half, LANES);
}

#include "device/lookup_body.h"
