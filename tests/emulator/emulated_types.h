/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_EMULATED_TYPES_H
#define NEUROSHARD_TESTS_EMULATED_TYPES_H

/* CUDA's vector types with CUDA's alignments, and make_TYPEn for each of
 * them. */

#define EMULATED_VECTORS(type, name, size)                               \
    struct alignas(2 * (size)) name##2                                   \
    {                                                                    \
        type x, y;                                                       \
    };                                                                   \
    struct name##3                                                       \
    {                                                                    \
        type x, y, z;                                                    \
    };                                                                   \
    struct alignas(4 * (size) > 16 ? 16 : 4 * (size)) name##4            \
    {                                                                    \
        type x, y, z, w;                                                 \
    };                                                                   \
    static inline name##2 make_##name##2(type x, type y)                 \
    {                                                                    \
        return {x, y};                                                   \
    }                                                                    \
    static inline name##3 make_##name##3(type x, type y, type z)         \
    {                                                                    \
        return {x, y, z};                                                \
    }                                                                    \
    static inline name##4 make_##name##4(type x, type y, type z, type w) \
    {                                                                    \
        return {x, y, z, w};                                             \
    }

EMULATED_VECTORS(signed char, char, 1)
EMULATED_VECTORS(unsigned char, uchar, 1)
EMULATED_VECTORS(short, short, 2)
EMULATED_VECTORS(unsigned short, ushort, 2)
EMULATED_VECTORS(int, int, 4)
EMULATED_VECTORS(unsigned, uint, 4)
EMULATED_VECTORS(long long, longlong, 8)
EMULATED_VECTORS(unsigned long long, ulonglong, 8)
EMULATED_VECTORS(float, float, 4)
EMULATED_VECTORS(double, double, 8)
#undef EMULATED_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

#endif
