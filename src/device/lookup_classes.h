/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_CLASSES_H
#define NEUROSHARD_DEVICE_LOOKUP_CLASSES_H

#include "device/lookup.h"

EXTERN_C_BEGIN

/*
 * How one launch looks up tables of any mix of widths and precisions. Rows are
 * read in vectors of 16 bytes (8 where rows of fp16 are no multiple of that),
 * one a lane. A table is cut into slices of at most 32 vectors, so that a lane
 * holds one vector and few registers, whatever the width; a slice is summed by
 * groups of as many lanes as it has vectors, rounded up to a power of two. A
 * group walks some consecutive bags of its slice: one where bags are long, up
 * to LOOKUP_LONGEST_WALK where they are short, so that rows of several bags
 * are in flight at once. Slices that agree in all of that are a class, and
 * each block of threads works for one class only.
 *
 * Plain C, so that who does what is tested without a GPU.
 */
#define LOOKUP_BLOCK_LANES 256u
#define LOOKUP_SLICE_VECS 32u
#define LOOKUP_LONGEST_WALK 16u

enum lookup_vec {
    LOOKUP_VEC_FP32,      /* 4 columns in 16 bytes */
    LOOKUP_VEC_FP16,      /* 8 columns in 16 bytes */
    LOOKUP_VEC_FP16_SHORT /* 4 columns in 8 bytes */
};
#define LOOKUP_N_VECS 3
uint32_t lookup_vec_columns(enum lookup_vec vec);

struct lookup_slice {
    const char *d_column; /* its first column in row 0 */
    uint32_t row_bytes;   /* from one row to the next */
    uint32_t n_vecs;      /* 1 .. LOOKUP_SLICE_VECS */
    uint32_t table_idx;
    uint32_t out_begin;         /* first column in the output */
    uint32_t first, n_siblings; /* slices of its table in its class */
};

struct lookup_class {
    uint32_t slice_begin, n_slices;
    uint32_t first_block, blocks_a_slice; /* set by lookup_classes_place */
    uint16_t group_lanes;                 /* a power of two, 1 .. 32 */
    uint16_t bags_a_walk;                 /* set by lookup_classes_place */
    uint32_t vec;                         /* enum lookup_vec */
};

#define LOOKUP_MAX_CLASSES (LOOKUP_N_VECS * 6) /* widths of groups */
struct lookup_classes {
    uint32_t n, n_blocks;
    struct lookup_class classes[LOOKUP_MAX_CLASSES];
};

/* Slices of these tables; all of their dims are multiples of 4. */
uint32_t lookup_count_slices(const struct lookup_table *tables,
                             uint32_t n_tables);
/* slices[lookup_count_slices], by class, then by table and column. */
void lookup_classes_init(struct lookup_classes *classes,
                         struct lookup_slice *slices,
                         const struct lookup_table *tables, uint32_t n_tables);
/* Blocks for a batch of so many bags a table. `pooling` is the mean of all
 * tables. Walks are shortened as long as they leave less than `min_warps` of
 * work. ERR_INPUT where there are more blocks than a launch takes. */
int lookup_classes_place(struct lookup_classes *classes, uint32_t batch,
                         double pooling, uint64_t min_warps,
                         struct err *err) MUST_CHECK;
/* Bags in a row that one group walks, by their mean look-ups: a power of two
 * up to LOOKUP_LONGEST_WALK. */
uint32_t lookup_walk_bags(double pooling);

/* What a block does: bags first_bag .. of one slice, each of its
 * LOOKUP_BLOCK_LANES / group_lanes groups bags_a_walk of them; those from
 * `batch` on do not exist. */
struct lookup_block {
    uint32_t class_idx, slice_idx;
    uint64_t first_bag;
};

/* Slices of one table take turns, so that the parts of a row are read at
 * about the same time. */
HOST_DEVICE struct lookup_block
lookup_block_of(const struct lookup_classes *classes,
                const struct lookup_slice *slices, uint32_t number)
{
    struct lookup_block block = {0, 0, 0};
    const struct lookup_class *own;
    const struct lookup_slice *slice;
    uint32_t bags_a_block, local;

    while (block.class_idx + 1 < classes->n &&
           number >= classes->classes[block.class_idx + 1].first_block)
        block.class_idx++;
    own = &classes->classes[block.class_idx];
    number -= own->first_block;
    block.slice_idx = own->slice_begin + number / own->blocks_a_slice;
    slice = &slices[block.slice_idx];
    local = (block.slice_idx - slice->first) * own->blocks_a_slice +
            number % own->blocks_a_slice;
    bags_a_block = LOOKUP_BLOCK_LANES / own->group_lanes * own->bags_a_walk;
    block.slice_idx = slice->first + local % slice->n_siblings;
    block.first_bag = (uint64_t)(local / slice->n_siblings) * bags_a_block;
    return block;
}

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

EXTERN_C_END

#endif
