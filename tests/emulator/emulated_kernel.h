/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_EMULATED_KERNEL_H
#define NEUROSHARD_TESTS_EMULATED_KERNEL_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "emulated_types.h"

/*
 * Functions and keywords that kernels use. Each thread of a block is a fiber.
 * Blocks run one after another, in an order that EMULATOR_SEED shuffles. So do
 * the threads of a block, between two synchronization points. Threads are not
 * preempted. The emulator therefore finds races between threads that lack a
 * barrier, lanes that are assumed to run in step, and barriers that some
 * threads do not reach.
 */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
/* One block runs at a time, so one static copy is enough. It keeps the contents
 * that the previous block left. */
#define __shared__ static

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

/* Runs all blocks of a grid. */
void emulate_grid(dim3 grid, dim3 block, size_t shared_bytes,
                  const std::function<void()> &thread);
/* Returns the `extern __shared__` memory of the running block. */
void *emulated_dynamic_shared();
/* Ends the program with one sentence that names the block and the thread. */
[[noreturn]] void emulator_abort(const char *sentence, ...)
    __attribute__((format(printf, 1, 2)));

/*
 * The device's clock is counted, not measured. It advances with each piece of
 * work taken from a queue, each thread, each load that a kernel marks (__ldg
 * ...) and each synchronization. The time of some work therefore does not
 * depend on the load of the machine.
 */
#define EMULATED_TICKS_A_NS 64
#define EMULATED_WORK_NS 1000
extern uint64_t emulated_ticks;
uint64_t emulated_globaltimer_ns();

/* Waits for all threads of the block that have not returned. */
void emulated_barrier();

/* Synchronizes the lanes of a mask. Returns 0 (SYNCWARP), the value of the lane
 * that each lane names (SHUFFLE), or the mask of lanes whose value is not 0
 * (VOTE). */
enum emulated_collective { EMULATED_SYNCWARP, EMULATED_SHUFFLE, EMULATED_VOTE };
uint64_t emulated_meet(emulated_collective what, uint32_t mask, uint64_t value,
                       unsigned from);
unsigned emulated_lane();

static inline void __syncthreads()
{
    emulated_barrier();
}

static inline void __syncwarp(unsigned mask = 0xffffffff)
{
    emulated_meet(EMULATED_SYNCWARP, mask, 0, 0);
}

/* Returns only the calling lane. This is a legal answer, and it exposes code
 * that relies on more. */
static inline unsigned __activemask()
{
    return 1u << emulated_lane();
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return (unsigned)emulated_meet(EMULATED_VOTE, mask, predicate != 0, 0);
}

static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) == mask;
}

template <typename T> static inline uint64_t emulated_bits(T value)
{
    uint64_t bits = 0;

    static_assert(sizeof value <= sizeof bits, "up to 8 bytes");
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/* Returns the value of lane `from`, which is in the mask or is this lane
 * itself. */
template <typename T>
static inline T emulated_shuffle(unsigned mask, T value, unsigned from)
{
    unsigned own = emulated_lane();
    uint64_t bits;

    if (from != own && !(mask >> from & 1))
        emulator_abort("a shuffle reads lane %u, which is not in mask %08x",
                       from, mask);
    bits = emulated_meet(EMULATED_SHUFFLE, mask, emulated_bits(value), from);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    unsigned lane = emulated_lane(), first = lane & ~(unsigned)(width - 1);

    return emulated_shuffle(mask, value,
                            first + ((unsigned)from & (unsigned)(width - 1)));
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by,
                               int width = 32)
{
    unsigned lane = emulated_lane(), first = lane & ~(unsigned)(width - 1);

    return emulated_shuffle(mask, value, lane >= first + by ? lane - by : lane);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by,
                                 int width = 32)
{
    unsigned lane = emulated_lane(), first = lane & ~(unsigned)(width - 1);

    return emulated_shuffle(
        mask, value, lane + by < first + (unsigned)width ? lane + by : lane);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int with,
                                int width = 32)
{
    unsigned lane = emulated_lane(), from = lane ^ (unsigned)with;
    unsigned end = (lane & ~(unsigned)(width - 1)) + (unsigned)width;

    return emulated_shuffle(mask, value, from < end ? from : lane);
}

/* Fences do nothing: threads are not preempted, so memory is always in
 * order. */
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}
static inline void __nanosleep(unsigned ns)
{
    emulated_ticks += (uint64_t)ns * EMULATED_TICKS_A_NS;
}

#define EMULATED_LOAD(name)                                  \
    template <typename T> static inline T name(const T *ptr) \
    {                                                        \
        emulated_ticks++;                                    \
        return *ptr;                                         \
    }
#define EMULATED_STORE(name)                                       \
    template <typename T> static inline void name(T *ptr, T value) \
    {                                                              \
        *ptr = value;                                              \
    }
EMULATED_LOAD(__ldg)
EMULATED_LOAD(__ldca)
EMULATED_LOAD(__ldcg)
EMULATED_LOAD(__ldcs)
EMULATED_LOAD(__ldlu)
EMULATED_LOAD(__ldcv)
EMULATED_STORE(__stwb)
EMULATED_STORE(__stcg)
EMULATED_STORE(__stcs)
EMULATED_STORE(__stwt)
#undef EMULATED_LOAD
#undef EMULATED_STORE

#define EMULATED_ATOMIC(name, expression)                       \
    template <typename T>                                       \
    static inline T name(T *ptr, std::common_type_t<T> operand) \
    {                                                           \
        T old = *ptr;                                           \
                                                                \
        *ptr = (expression);                                    \
        return old;                                             \
    }
EMULATED_ATOMIC(atomicAdd, old + operand)
EMULATED_ATOMIC(atomicSub, old - operand)
EMULATED_ATOMIC(atomicMin, old < operand ? old : operand)
EMULATED_ATOMIC(atomicMax, old > operand ? old : operand)
EMULATED_ATOMIC(atomicAnd, old &operand)
EMULATED_ATOMIC(atomicOr, old | operand)
EMULATED_ATOMIC(atomicXor, old ^ operand)
EMULATED_ATOMIC(atomicExch, operand)
#undef EMULATED_ATOMIC

template <typename T>
static inline T atomicCAS(T *ptr, std::common_type_t<T> expected,
                          std::common_type_t<T> desired)
{
    T old = *ptr;

    if (old == expected)
        *ptr = desired;
    return old;
}

#define EMULATED_FUNCTION(type, name, parameters, expression) \
    static inline type name parameters                        \
    {                                                         \
        return expression;                                    \
    }
EMULATED_FUNCTION(int, __popc, (unsigned x), __builtin_popcount(x))
EMULATED_FUNCTION(int, __popcll, (unsigned long long x),
                  __builtin_popcountll(x))
EMULATED_FUNCTION(int, __ffs, (int x), __builtin_ffs(x))
EMULATED_FUNCTION(int, __ffsll, (long long x), __builtin_ffsll(x))
EMULATED_FUNCTION(int, __clz, (int x), x ? __builtin_clz((unsigned)x) : 32)
EMULATED_FUNCTION(int, __clzll, (long long x),
                  x ? __builtin_clzll((unsigned long long)x) : 64)
EMULATED_FUNCTION(unsigned, __umulhi, (unsigned a, unsigned b),
                  (unsigned)((uint64_t)a *b >> 32))
EMULATED_FUNCTION(unsigned long long, __umul64hi,
                  (unsigned long long a, unsigned long long b),
                  (unsigned long long)((unsigned __int128)a *b >> 64))
EMULATED_FUNCTION(float, __fmul_rn, (float a, float b), a *b)
EMULATED_FUNCTION(float, __fadd_rn, (float a, float b), a + b)
EMULATED_FUNCTION(float, __fsub_rn, (float a, float b), a - b)
EMULATED_FUNCTION(float, __fdiv_rn, (float a, float b), a / b)
EMULATED_FUNCTION(float, __fsqrt_rn, (float a), sqrtf(a))
EMULATED_FUNCTION(float, __fmaf_rn, (float a, float b, float c), fmaf(a, b, c))
EMULATED_FUNCTION(double, __dmul_rn, (double a, double b), a *b)
EMULATED_FUNCTION(double, __dadd_rn, (double a, double b), a + b)
EMULATED_FUNCTION(double, __dsub_rn, (double a, double b), a - b)
EMULATED_FUNCTION(double, __ddiv_rn, (double a, double b), a / b)
#undef EMULATED_FUNCTION

template <typename To, typename From>
static inline To emulated_reinterpret(From from)
{
    To to;

    static_assert(sizeof to == sizeof from, "the same bits");
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __float_as_uint(x) emulated_reinterpret<unsigned, float>(x)
#define __float_as_int(x) emulated_reinterpret<int, float>(x)
#define __uint_as_float(x) emulated_reinterpret<float, unsigned>(x)
#define __int_as_float(x) emulated_reinterpret<float, int>(x)

template <typename A, typename B>
static inline std::common_type_t<A, B> min(A a, B b)
{
    using common = std::common_type_t<A, B>;

    return (common)a < (common)b ? (common)a : (common)b;
}

template <typename A, typename B>
static inline std::common_type_t<A, B> max(A a, B b)
{
    using common = std::common_type_t<A, B>;

    return (common)a < (common)b ? (common)b : (common)a;
}

#endif
