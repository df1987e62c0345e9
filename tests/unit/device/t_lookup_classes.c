/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "base/mem.h"
#include "base/rng.h"
#include "device/lookup_classes.h"

#define MAX_TABLES 70

static uint32_t vec_bytes(enum lookup_vec vec)
{
    return vec == LOOKUP_VEC_FP16_SHORT ? 8 : 16;
}

/* Simulates the lanes of one block and counts them in visits[vector][bag],
 * where vectors are numbered over all tables. Returns false if the block is
 * wrong. */
static int count_block(const struct lookup_classes *classes,
                       const struct lookup_slice *slices,
                       const struct lookup_table *tables,
                       const uint32_t *first_vec, uint32_t batch,
                       uint32_t number, uint8_t *visits)
{
    struct lookup_block block = lookup_block_of(classes, slices, number);
    const struct lookup_class *own = &classes->classes[block.class_idx];
    const struct lookup_slice *slice = &slices[block.slice_idx];
    const struct lookup_table *table = &tables[slice->table_idx];
    size_t byte = (size_t)(slice->d_column - (const char *)table->d_weight);
    uint32_t vec = (uint32_t)(byte / vec_bytes(own->vec));
    uint32_t n_groups = LOOKUP_BLOCK_LANES / own->group_lanes;
    uint64_t end = block.first_bag + (uint64_t)n_groups * own->bags_a_walk;

    for (uint64_t bag = block.first_bag; bag < end && bag < batch; bag++)
        for (uint32_t v = vec; v < vec + slice->n_vecs; v++)
            visits[(first_vec[slice->table_idx] + v) * (size_t)batch + bag]++;
    return own->slice_begin <= block.slice_idx &&
           block.slice_idx < own->slice_begin + own->n_slices &&
           slice->n_vecs <= own->group_lanes &&
           2 * slice->n_vecs > own->group_lanes &&
           byte % vec_bytes(own->vec) == 0 &&
           slice->out_begin ==
               table->out_begin + vec * lookup_vec_columns(own->vec) &&
           slice->row_bytes == table->dim * precision_bytes(table->precision);
}

static void random_tables(struct lookup_table *tables, uint32_t n,
                          struct rng *rng)
{
    static const uint32_t DIMS[] = {4, 8, 12, 16, 36, 64, 128, 132, 2048};
    static char weight[1];
    uint32_t out_begin = 0;

    for (uint32_t t = 0; t < n; t++) {
        tables[t] = (struct lookup_table){
            .d_weight = weight,
            .n_rows = 1,
            .dim = rng_below(rng, 2) ? DIMS[rng_below(rng, 9)]
                                     : 4 + 4 * (uint32_t)rng_below(rng, 200),
            .out_begin = out_begin,
            .precision = rng_below(rng, 3) ? PRECISION_FP32 : PRECISION_FP16,
        };
        out_begin += tables[t].dim;
    }
}

static void test_classes(uint32_t n_tables, uint32_t batch, double pooling,
                         uint64_t min_warps, uint64_t seed)
{
    struct lookup_table tables[MAX_TABLES];
    struct lookup_classes classes;
    struct lookup_slice *slices;
    uint32_t first_vec[MAX_TABLES], n_vecs = 0, n_slices;
    size_t n_wrong = 0, n_blocks_wrong = 0;
    uint8_t *visits;
    struct err err = {0};
    struct rng rng;

    rng_init(&rng, seed, 0);
    random_tables(tables, n_tables, &rng);
    for (uint32_t t = 0; t < n_tables; t++) {
        uint32_t columns =
            tables[t].precision == PRECISION_FP16 && !(tables[t].dim % 8) ? 8
                                                                          : 4;
        first_vec[t] = n_vecs;
        n_vecs += tables[t].dim / columns;
    }
    n_slices = lookup_count_slices(tables, n_tables);
    slices = mem_alloc(n_slices, sizeof *slices);
    visits = mem_alloc(n_vecs, batch);
    lookup_classes_init(&classes, slices, tables, n_tables);
    ok(!lookup_classes_place(&classes, batch, pooling, min_warps, &err),
       "%u tables, batch %u, pooling %g, seed %" PRIu64 ": %u classes, "
       "%u blocks",
       n_tables, batch, pooling, seed, classes.n, classes.n_blocks);
    for (uint32_t i = 0; i < classes.n_blocks; i++)
        n_blocks_wrong +=
            !count_block(&classes, slices, tables, first_vec, batch, i, visits);
    for (size_t i = 0; i < (size_t)n_vecs * batch; i++)
        n_wrong += visits[i] != 1;
    is_i64((int64_t)n_blocks_wrong, 0, "every block fits its class");
    is_i64((int64_t)n_wrong, 0,
           "every vector of every bag belongs to one lane");
    mem_free(visits);
    mem_free(slices);
}

static void test_walks(void)
{
    struct lookup_table tables[2] = {{.dim = 128}, {.dim = 128}};
    struct lookup_slice slices[2];
    struct lookup_classes classes;
    struct err err = {0};

    is_i64(lookup_walk_bags(0.5), 16, "bags of a row or two");
    is_i64(lookup_walk_bags(8), 8, "short bags");
    is_i64(lookup_walk_bags(20), 2, "longer bags");
    is_i64(lookup_walk_bags(40), 1, "long bags");
    lookup_classes_init(&classes, slices, tables, 2);
    is_i64(classes.n, 1, "tables alike are a class");
    ok(!lookup_classes_place(&classes, 65536, 1, 4096, &err), "placed");
    is_i64(classes.classes[0].bags_a_walk, 16, "as the batch's pooling says");
    is_i64(classes.n_blocks, 2 * 65536 / 16 / 8, "blocks of 8 groups");
    ok(!lookup_classes_place(&classes, 256, 1, 4096, &err), "a small batch");
    is_i64(classes.classes[0].bags_a_walk, 1,
           "work for all, whatever the bags");
    ok(!lookup_classes_place(&classes, 0, 0, 4096, &err), "no bags");
    is_i64(classes.n_blocks, 0, "no blocks");
    is_i64(lookup_classes_place(&classes, UINT32_MAX, 30, 1, &err), 0,
           "4 billion bags");
    for (uint32_t i = 0; i < 2; i++)
        tables[i] = (struct lookup_table){.dim = 2048};
    {
        struct lookup_slice wide[32];

        lookup_classes_init(&classes, wide, tables, 2);
        is_i64(lookup_classes_place(&classes, UINT32_MAX, 30, 1, &err), -1,
               "too many");
    }
    is_str(err.msg,
           "a batch of 4294967295 bags per table needs more thread blocks than "
           "a GPU can launch at once",
           "the sentence");
}

/* Each lookup is in exactly one span, and the span belongs to the lookup's
 * table; each piece has a number. */
static void test_spans(uint32_t n_tables, uint32_t batch, uint32_t size,
                       uint64_t seed)
{
    uint64_t *offsets =
        mem_alloc((size_t)n_tables * batch + 1, sizeof *offsets);
    uint32_t n_spans, n, end = 0, last_table = 0;
    int in_order = 1;
    struct rng rng;

    rng_init(&rng, seed, 0);
    offsets[0] = rng_below(&rng, 1000);
    for (uint32_t t = 0; t < n_tables; t++) {
        uint64_t most = rng_below(&rng, 3) ? rng_below(&rng, 60) : 0;

        for (uint32_t b = 0; b < batch; b++) {
            uint64_t *bag = &offsets[(size_t)t * batch + b];

            bag[1] = bag[0] + (most ? rng_below(&rng, most) : 0);
        }
    }
    n = (uint32_t)(offsets[(size_t)n_tables * batch] - offsets[0]);
    n_spans = lookup_n_spans(n, n_tables, size);
    for (uint32_t i = 0; i < n_spans; i++) {
        struct lookup_span span =
            lookup_span_of(offsets, n_tables, batch, size, i);
        const uint64_t *table = offsets + (size_t)span.table_idx * batch;

        in_order &= span.table_idx >= last_table &&
                    span.table_begin == table[0] - offsets[0] &&
                    span.table_end == table[batch] - offsets[0];
        last_table = span.table_idx;
        if (span.begin >= span.end)
            continue;
        in_order &= span.begin == end && span.end <= span.table_end &&
                    span.end - span.begin <= size &&
                    (span.begin - span.table_begin) % size == 0;
        end = span.end;
    }
    ok(in_order && end == n,
       "%u tables, %u look-ups in %u spans of %u: each once, in order",
       n_tables, n, n_spans, size);
    mem_free(offsets);
}

int main(void)
{
    test_classes(1, 1, 3, 0, 1);
    test_classes(5, 0, 0, 0, 2);
    test_classes(MAX_TABLES, 33, 1, 64, 3);
    for (uint64_t seed = 10; seed < 40; seed++) {
        struct rng rng;

        rng_init(&rng, seed, 1);
        test_classes(1 + (uint32_t)rng_below(&rng, 12),
                     1 + (uint32_t)rng_below(&rng, 900), 20 * rng_uniform(&rng),
                     rng_below(&rng, 500), seed);
    }
    test_walks();
    for (uint64_t seed = 100; seed < 140; seed++) {
        struct rng rng;

        rng_init(&rng, seed, 1);
        test_spans(1 + (uint32_t)rng_below(&rng, MAX_TABLES),
                   1 + (uint32_t)rng_below(&rng, 300),
                   1u << rng_below(&rng, 14), seed);
    }
    return tap_done();
}
