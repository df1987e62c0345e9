/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_SPAN_H
#define NEUROSHARD_DEVICE_LOOKUP_SPAN_H

#include "device/device.h"

/*
 * The sorted look-ups of a batch, cut into spans of `size` that lie within one
 * table each, by arithmetic alone: table t, whose look-ups are [begin, end) of
 * all, has the spans floor(begin / size) + t to floor(end / size) + t. Those
 * are never too few; the last of them may be empty, and a table without
 * look-ups has one empty span. Look-ups are counted from the batch's first on,
 * and are at most LOOKUP_SPAN_MAX, so that no sum here overflows.
 */
#define LOOKUP_SPAN_MAX (UINT32_MAX - (1u << 16))

struct lookup_span {
    uint32_t table_idx;
    uint32_t table_begin, table_end; /* look-ups of its table */
    uint32_t begin, end;             /* its own; begin >= end: none */
};

/* Spans of so many look-ups in so many tables, at most. */
HOST_DEVICE uint32_t lookup_n_spans(uint32_t n_lookups, uint32_t n_tables,
                                    uint32_t size)
{
    return n_lookups / size + n_tables;
}

/* Number of the first span of a table whose look-ups begin there. */
HOST_DEVICE uint32_t lookup_first_span(uint32_t begin, uint32_t table_idx,
                                       uint32_t size)
{
    return begin / size + table_idx;
}

/* Span `number` < lookup_n_spans. `offsets` as in struct lookup_batch. */
HOST_DEVICE struct lookup_span lookup_span_of(const uint64_t *offsets,
                                              uint32_t n_tables, uint32_t batch,
                                              uint32_t size, uint32_t number)
{
    const uint64_t first = offsets[0];
    struct lookup_span span = {0, 0, 0, 0, 0};
    uint32_t end = n_tables;

    while (end - span.table_idx > 1) {
        uint32_t middle = span.table_idx + (end - span.table_idx) / 2;
        uint32_t begin = (uint32_t)(offsets[(uint64_t)middle * batch] - first);

        if (lookup_first_span(begin, middle, size) <= number)
            span.table_idx = middle;
        else
            end = middle;
    }
    offsets += (uint64_t)span.table_idx * batch;
    span.table_begin = (uint32_t)(offsets[0] - first);
    span.table_end = (uint32_t)(offsets[batch] - first);
    span.begin =
        span.table_begin +
        (number - lookup_first_span(span.table_begin, span.table_idx, size)) *
            size;
    span.end =
        span.begin + size < span.table_end ? span.begin + size : span.table_end;
    return span;
}

#endif
