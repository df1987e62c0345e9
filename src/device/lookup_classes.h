/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_CLASSES_H
#define NEUROSHARD_DEVICE_LOOKUP_CLASSES_H

#include "device/lookup.h"

EXTERN_C_BEGIN

/*
 * Division of one forward launch among lanes, groups and thread blocks. The
 * tables may have any mix of widths and precisions.
 *
 * A lane is one thread. It reads one vector of a row: 16 bytes, or 8 bytes if
 * the size of an fp16 row is not a multiple of 16. A table is cut by columns
 * into slices of at most 32 vectors. A lane therefore holds one vector and few
 * registers, however wide the table is.
 *
 * A group of lanes sums a slice. The group has one lane per vector, rounded up
 * to a power of two. It processes some consecutive bags of its slice (a
 * "walk"): one bag if bags are long, up to LOOKUP_LONGEST_WALK bags if they are
 * short, so that rows of several bags are being loaded at once.
 *
 * Slices with the same vector type, group size and walk length form a class.
 * Each thread block works for one class only.
 *
 * This file is plain C, so that the division can be tested without a GPU.
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
    const char *d_column; /* first column of the slice in row 0 */
    uint32_t row_bytes;   /* bytes from one row to the next */
    uint32_t n_vecs;      /* 1 .. LOOKUP_SLICE_VECS */
    uint32_t table_idx;
    uint32_t out_begin; /* first column of the slice in the output */
    /* The slices of one table that are in the same class are siblings. Index of
     * the first sibling; number of siblings. */
    uint32_t first, n_siblings;
};

struct lookup_class {
    uint32_t slice_begin, n_slices;
    uint32_t first_block, blocks_a_slice; /* set by lookup_classes_place */
    uint16_t group_lanes;                 /* a power of two, 1 .. 32 */
    uint16_t bags_a_walk;                 /* set by lookup_classes_place */
    uint32_t vec;                         /* enum lookup_vec */
};

#define LOOKUP_MAX_CLASSES (LOOKUP_N_VECS * 6) /* 6 group sizes */
struct lookup_classes {
    uint32_t n, n_blocks;
    struct lookup_class classes[LOOKUP_MAX_CLASSES];
};

/* Returns the number of slices into which the tables are cut. The dims of all
 * tables must be multiples of 4. */
uint32_t lookup_count_slices(const struct lookup_table *tables,
                             uint32_t n_tables);
/* Fills `classes`, and `slices`, which must have lookup_count_slices elements.
 * Slices are ordered by class, then by table and column. */
void lookup_classes_init(struct lookup_classes *classes,
                         struct lookup_slice *slices,
                         const struct lookup_table *tables, uint32_t n_tables);
/* Computes the number of thread blocks of each class for a launch with `batch`
 * bags per table. `pooling` is the mean pooling factor of all tables. Walks are
 * shortened as long as the launch would have fewer than `min_warps` warps.
 * Fails with ERR_INPUT if there are more blocks than one launch can have. */
int lookup_classes_place(struct lookup_classes *classes, uint32_t batch,
                         double pooling, uint64_t min_warps,
                         struct err *err) MUST_CHECK;
/* Returns the number of consecutive bags that one group of lanes should
 * process. It is a power of two up to LOOKUP_LONGEST_WALK. pooling: mean number
 * of lookups per bag. */
uint32_t lookup_walk_bags(double pooling);

/* Work of one thread block: bags of one slice, from first_bag on. The block has
 * LOOKUP_BLOCK_LANES / group_lanes groups. Each group processes bags_a_walk
 * bags. Bag numbers >= `batch` do not exist and are skipped. */
struct lookup_block {
    uint32_t class_idx, slice_idx;
    uint64_t first_bag;
};

/* Returns the work of thread block `number`. Consecutive blocks alternate
 * between the slices of one table, so that all columns of a row are read at
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
 * A span is a stretch of at most `size` consecutive lookups of a batch, all in
 * the same table. Lookups are sorted by row and counted from the first lookup
 * of the batch. The spans of a table are found by arithmetic alone. If the
 * table t has the lookups [begin, end), its spans have the numbers
 *
 *   floor(begin / size) + t  to  floor(end / size) + t.
 *
 * These spans always cover the lookups of the table. The last span of a table
 * may be empty, and a table without lookups has one empty span. There are at
 * most LOOKUP_SPAN_MAX lookups, so that no sum in these functions overflows.
 */
#define LOOKUP_SPAN_MAX (UINT32_MAX - (1u << 16))

struct lookup_span {
    uint32_t table_idx;
    /* lookups of the table in which the span lies */
    uint32_t table_begin, table_end;
    uint32_t begin, end; /* lookups of the span; none if begin >= end */
};

/* Returns an upper bound of the number of spans that n_lookups lookups in
 * n_tables tables have. */
HOST_DEVICE uint32_t lookup_n_spans(uint32_t n_lookups, uint32_t n_tables,
                                    uint32_t size)
{
    return n_lookups / size + n_tables;
}

/* Returns the number of the first span of a table. `begin`: first lookup of the
 * table. */
HOST_DEVICE uint32_t lookup_first_span(uint32_t begin, uint32_t table_idx,
                                       uint32_t size)
{
    return begin / size + table_idx;
}

/* Returns the span with this number, which must be < lookup_n_spans. `offsets`:
 * where each bag begins, as in struct lookup_batch. */
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
