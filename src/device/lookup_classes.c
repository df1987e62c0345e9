/* SPDX-License-Identifier: MIT */
#include "device/lookup_classes.h"

/* Number of rows that a walk (a group's series of bags) should roughly have.
 * With this many rows, the waits before its first row and after its last row
 * matter little. */
#define WALK_ROWS 40.0

uint32_t lookup_vec_columns(enum lookup_vec vec)
{
    return vec == LOOKUP_VEC_FP16 ? 8 : 4;
}

uint32_t lookup_walk_bags(double pooling)
{
    uint32_t n_bags = 1;

    while (n_bags < LOOKUP_LONGEST_WALK && n_bags * pooling < WALK_ROWS)
        n_bags *= 2;
    return n_bags;
}

static enum lookup_vec vec_of(const struct lookup_table *table)
{
    if (table->precision != PRECISION_FP16)
        return LOOKUP_VEC_FP32;
    return table->dim % 8 ? LOOKUP_VEC_FP16_SHORT : LOOKUP_VEC_FP16;
}

static uint32_t count_vecs(const struct lookup_table *table)
{
    return table->dim / lookup_vec_columns(vec_of(table));
}

uint32_t lookup_count_slices(const struct lookup_table *tables,
                             uint32_t n_tables)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < n_tables; t++)
        n += (count_vecs(&tables[t]) + LOOKUP_SLICE_VECS - 1) /
             LOOKUP_SLICE_VECS;
    return n;
}

static uint32_t lanes_for(uint32_t n_vecs)
{
    uint32_t lanes = 1;

    while (lanes < n_vecs)
        lanes *= 2;
    return lanes;
}

/* Appends the slices of a table that belong to the class `own`. */
static void add_slices(struct lookup_class *own, struct lookup_slice *slices,
                       const struct lookup_table *table, uint32_t table_idx)
{
    uint32_t column_bytes = precision_bytes(table->precision);
    uint32_t columns = lookup_vec_columns(vec_of(table));
    uint32_t n_vecs = count_vecs(table), part;
    uint32_t first = own->slice_begin + own->n_slices;
    uint32_t end = first;

    if (vec_of(table) != (enum lookup_vec)own->vec)
        return;
    for (uint32_t begin = 0; begin < n_vecs; begin += part) {
        part = (uint32_t)min_u64(n_vecs - begin, LOOKUP_SLICE_VECS);
        if (lanes_for(part) != own->group_lanes)
            continue;
        slices[end++] = (struct lookup_slice){
            .d_column = (const char *)table->d_weight +
                        (size_t)begin * columns * column_bytes,
            .row_bytes = table->dim * column_bytes,
            .n_vecs = part,
            .table_idx = table_idx,
            .out_begin = table->out_begin + begin * columns,
            .first = first,
        };
    }
    for (uint32_t i = first; i < end; i++)
        slices[i].n_siblings = end - first;
    own->n_slices += end - first;
}

/* Orders classes by group size, the widest first, because blocks of wide
 * classes take longest. */
void lookup_classes_init(struct lookup_classes *classes,
                         struct lookup_slice *slices,
                         const struct lookup_table *tables, uint32_t n_tables)
{
    uint32_t n_slices = 0;

    *classes = (struct lookup_classes){0};
    for (uint16_t lanes = LOOKUP_SLICE_VECS; lanes; lanes /= 2)
        for (uint32_t vec = 0; vec < LOOKUP_N_VECS; vec++) {
            struct lookup_class *own = &classes->classes[classes->n];

            *own = (struct lookup_class){
                .slice_begin = n_slices, .group_lanes = lanes, .vec = vec};
            for (uint32_t t = 0; t < n_tables; t++)
                add_slices(own, slices, &tables[t], t);
            n_slices += own->n_slices;
            classes->n += own->n_slices > 0;
        }
}

/* Sets the walk length of a class. Returns the number of thread blocks of the
 * class. */
static uint64_t place_class(struct lookup_class *own, uint32_t batch,
                            uint32_t bags_a_walk)
{
    uint32_t bags_a_block = LOOKUP_BLOCK_LANES / own->group_lanes * bags_a_walk;

    own->bags_a_walk = (uint16_t)bags_a_walk;
    own->blocks_a_slice =
        (uint32_t)(((uint64_t)batch + bags_a_block - 1) / bags_a_block);
    return (uint64_t)own->blocks_a_slice * own->n_slices;
}

int lookup_classes_place(struct lookup_classes *classes, uint32_t batch,
                         double pooling, uint64_t min_warps, struct err *err)
{
    uint64_t min_blocks = min_warps * 32 / LOOKUP_BLOCK_LANES, n_blocks;
    uint32_t longest = LOOKUP_LONGEST_WALK, walk = lookup_walk_bags(pooling);

    do {
        n_blocks = 0;
        for (uint32_t i = 0; i < classes->n; i++) {
            struct lookup_class *own = &classes->classes[i];

            own->first_block = (uint32_t)n_blocks;
            n_blocks +=
                place_class(own, batch, walk < longest ? walk : longest);
        }
        longest /= 2;
    } while (n_blocks < min_blocks && longest);
    if (n_blocks > INT32_MAX)
        return err_input(err,
                         "a batch of %u bags per table needs more thread "
                         "blocks than a GPU can launch at once",
                         batch);
    classes->n_blocks = (uint32_t)n_blocks;
    return 0;
}
