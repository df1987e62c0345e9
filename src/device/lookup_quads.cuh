/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_QUADS_CUH
#define NEUROSHARD_DEVICE_LOOKUP_QUADS_CUH

#include "device/lookup_cuda.cuh"

#include <cuda_fp16.h>

/* A quad is four neighbouring columns of a row. In memory they are fp32 or
 * fp16, in registers floats. Every product and every sum is rounded separately
 * (no fused multiply-add). */

#define ALL_LANES 0xffffffffu

static __device__ inline float4 quad_zero(void)
{
    return make_float4(0, 0, 0, 0);
}

static __device__ inline float2 unpack_half2(uint32_t bits)
{
    return make_float2(__half2float(__ushort_as_half((uint16_t)bits)),
                       __half2float(__ushort_as_half((uint16_t)(bits >> 16))));
}

static __device__ inline uint32_t pack_half2(float low, float high)
{
    return (uint32_t)__half_as_ushort(__float2half_rn(low)) |
           (uint32_t)__half_as_ushort(__float2half_rn(high)) << 16;
}

static __device__ inline float4 quad_of_halves(uint2 bits)
{
    float2 low = unpack_half2(bits.x), high = unpack_half2(bits.y);

    return make_float4(low.x, low.y, high.x, high.y);
}

static __device__ inline uint2 quad_to_halves(float4 quad)
{
    return make_uint2(pack_half2(quad.x, quad.y), pack_half2(quad.z, quad.w));
}

static __device__ inline void quad_add(float4 &sum, float4 quad)
{
    sum.x = __fadd_rn(sum.x, quad.x);
    sum.y = __fadd_rn(sum.y, quad.y);
    sum.z = __fadd_rn(sum.z, quad.z);
    sum.w = __fadd_rn(sum.w, quad.w);
}

/* Returns the offset, in bytes, of column 4 * quad_idx in a row. */
static __device__ inline size_t quad_offset(uint32_t quad_idx, bool is_half)
{
    return (size_t)quad_idx * (is_half ? 8 : 16);
}

/* Loads a quad, bypassing the L1 cache. It is for memory that the kernel also
 * writes and that is read only once. The intrinsics tell the compiler that the
 * pointer is a global one, which it cannot know if the pointer itself was
 * loaded from memory. */
static __device__ inline float4 quad_load(const void *pos, bool is_half)
{
    if (is_half)
        return quad_of_halves(__ldcg((const uint2 *)pos));
    return __ldcg((const float4 *)pos);
}

static __device__ inline void quad_store(void *pos, float4 quad, bool is_half)
{
    if (is_half)
        __stcg((uint2 *)pos, quad_to_halves(quad));
    else
        __stcg((float4 *)pos, quad);
}

/* Stores a quad of an output. Outputs are not read soon, so the store is of a
 * kind that does not evict hot rows from the cache. */
static __device__ inline void quad_store_streaming(void *pos, float4 quad,
                                                   bool is_half)
{
    if (is_half)
        __stcs((uint2 *)pos, quad_to_halves(quad));
    else
        __stcs((float4 *)pos, quad);
}

/* Returns w - scale * g, for each of the four columns. */
static __device__ inline float4 quad_step(float4 w, float scale, float4 g)
{
    return make_float4(__fsub_rn(w.x, __fmul_rn(scale, g.x)),
                       __fsub_rn(w.y, __fmul_rn(scale, g.y)),
                       __fsub_rn(w.z, __fmul_rn(scale, g.z)),
                       __fsub_rn(w.w, __fmul_rn(scale, g.w)));
}

/*
 * Adds the squares of a row's gradient for row-wise Adagrad, in the order given
 * in lookup.h. There are 16 sums; column c belongs to sum c mod 16. Each lane
 * of a group holds one quad of columns of each slice of the row. For one slice
 * after the other, the lane collects the sums of the columns
 *
 *   4 (lane mod 4) .. 4 (lane mod 4) + 3, modulo 16.
 *
 * All lanes of the warp must call these functions together.
 */
static __device__ inline void squares_add(float4 &sums, float4 quad,
                                          uint32_t group_lanes)
{
    uint32_t from =
        group_lanes < 4 ? threadIdx.x & (group_lanes - 1) : threadIdx.x & 3;
    int width = (int)group_lanes;
    float4 squares =
        make_float4(__fmul_rn(quad.x, quad.x), __fmul_rn(quad.y, quad.y),
                    __fmul_rn(quad.z, quad.z), __fmul_rn(quad.w, quad.w));

    for (; from < group_lanes; from += 4)
        quad_add(
            sums,
            make_float4(__shfl_sync(ALL_LANES, squares.x, (int)from, width),
                        __shfl_sync(ALL_LANES, squares.y, (int)from, width),
                        __shfl_sync(ALL_LANES, squares.z, (int)from, width),
                        __shfl_sync(ALL_LANES, squares.w, (int)from, width)));
}

static __device__ inline void squares_fold(float4 &sums, int with)
{
    quad_add(sums, make_float4(__shfl_xor_sync(ALL_LANES, sums.x, with),
                               __shfl_xor_sync(ALL_LANES, sums.y, with),
                               __shfl_xor_sync(ALL_LANES, sums.z, with),
                               __shfl_xor_sync(ALL_LANES, sums.w, with)));
}

/* Returns the mean of the squares of a row's gradient. Groups of fewer than
 * four lanes skip sums that would be zero. */
static __device__ inline float squares_mean(float4 sums, uint32_t group_lanes,
                                            uint32_t dim)
{
    if (group_lanes >= 4)
        squares_fold(sums, 2);
    if (group_lanes >= 2)
        squares_fold(sums, 1);
    return __fdiv_rn(
        __fadd_rn(__fadd_rn(sums.x, sums.z), __fadd_rn(sums.y, sums.w)),
        (float)dim);
}

/* Returns the learning rate of the optimizer step for one row. Only the first
 * lane of the group has loaded the row's state, and only this lane stores the
 * new state. A group without a row passes NULL as d_state. */
static __device__ inline float adagrad_rate(float *d_state, float state,
                                            float mean, float learning_rate,
                                            uint32_t group_lanes)
{
    float sum = __fadd_rn(state, mean);

    if (d_state && !(threadIdx.x & (group_lanes - 1)))
        __stcg(d_state, sum);
    sum = __shfl_sync(ALL_LANES, sum, 0, (int)group_lanes);
    return __fdiv_rn(learning_rate,
                     __fadd_rn(__fsqrt_rn(sum), LOOKUP_ADAGRAD_EPS));
}

#endif
