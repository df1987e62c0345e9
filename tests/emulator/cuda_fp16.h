/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_CUDA_FP16_H
#define NEUROSHARD_TESTS_CUDA_FP16_H

#include "device/fp16.h"
#include "emulated_kernel.h"

/* CUDA's half-precision type, with the same bits; only the parts that we
 * use. */

struct __half {
    uint16_t bits;

    __half() = default;
    explicit __half(float value) : bits(fp16_from_float(value))
    {
    }
};
struct alignas(4) __half2 {
    __half x, y;
};

static inline float __half2float(__half value)
{
    return fp16_to_float(value.bits);
}

static inline __half __float2half_rn(float value)
{
    return __half(value);
}

static inline __half __float2half(float value)
{
    return __float2half_rn(value);
}

static inline unsigned short __half_as_ushort(__half value)
{
    return value.bits;
}

static inline __half __ushort_as_half(unsigned short bits)
{
    __half value;

    value.bits = bits;
    return value;
}

static inline float2 __half22float2(__half2 value)
{
    return {__half2float(value.x), __half2float(value.y)};
}

static inline __half2 __float22half2_rn(float2 value)
{
    return {__float2half_rn(value.x), __float2half_rn(value.y)};
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}

static inline __half2 __halves2half2(__half x, __half y)
{
    return {x, y};
}

static inline float __low2float(__half2 value)
{
    return __half2float(value.x);
}

static inline float __high2float(__half2 value)
{
    return __half2float(value.y);
}

#endif
