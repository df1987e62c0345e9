/* SPDX-License-Identifier: MIT */
#include "core/sample.h"

#include <stddef.h>

const char *sample_kind_name(enum sample_kind kind)
{
    switch (kind) {
    case SAMPLE_FUSED:
        return "fused";
    case SAMPLE_SINGLE:
        return "single";
    case SAMPLE_EXECUTED:
        return "executed";
    case SAMPLE_REPEAT:
        return "repeat";
    case SAMPLE_SENTINEL:
        return "sentinel";
    }
    return NULL;
}
