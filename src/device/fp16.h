/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_FP16_H
#define NEUROSHARD_DEVICE_FP16_H

#include "base/host_device.h"

#include <string.h>

/* Conversions between float and IEEE binary16 (fp16). The results have the same
 * bits as those of the F16C instructions. */

HOST_DEVICE float fp16_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff, bits;
    float value;

    if (magnitude >= 0x7c00) { /* infinity or NaN; a NaN becomes a quiet one */
        bits = magnitude << 13 | 0x7f800000u;
        bits |= magnitude > 0x7c00 ? 0x400000u : 0;
    } else if (magnitude >= 0x400) {
        bits = (magnitude << 13) + 0x38000000u;
    } else { /* zero or subnormal: the product is exact */
        value = (float)magnitude * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts a float to fp16. Rounds to nearest, ties to even. */
HOST_DEVICE uint16_t fp16_from_float(float value)
{
    uint32_t bits, sign, magnitude;
    float shifted;

    memcpy(&bits, &value, sizeof bits);
    sign = bits >> 16 & 0x8000;
    magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000u) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) {
        /* A value below 2^-14: adding 0.5 lets the adder round at 2^-24. */
        memcpy(&shifted, &magnitude, sizeof shifted);
        shifted += 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((magnitude - 0x38000000u) >> 13));
}

#endif
