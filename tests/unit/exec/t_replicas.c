/* SPDX-License-Identifier: MIT */
/* The all-reduce of replicas: one exchange carries the gradients of all tables,
 * cut only where they are larger than the scratch memory. */
#include "exec/exchange.h"

#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec_fixture.h"
#include "tests/tap.h"

#define N_RANKS 3u

static int (*real_start)(struct comm *comm, const struct comm_block *blocks,
                         size_t n_blocks, struct err *err);
static unsigned n_exchanges;

static int count_start(struct comm *comm, const struct comm_block *blocks,
                       size_t n_blocks, struct err *err)
{
    n_exchanges++;
    return real_start(comm, blocks, n_blocks, err);
}

static uint64_t n_elements(const struct piece *piece)
{
    return piece->n_rows * piece->width;
}

/* Returns a gradient whose sum over the ranks tells table, element and rank
 * apart. */
static float gradient(const struct piece *piece, uint64_t element)
{
    return (float)((1u << (4 * piece->rank)) *
                   (1 + (element + piece->table_idx) % 5));
}

/* Returns the number of replicas' gradients that are not the sum over the
 * ranks. */
static uint64_t n_wrong(const struct placement *placement)
{
    uint64_t n = 0;

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        for (uint64_t e = 0; piece->replica && e < n_elements(piece); e++)
            n += fabsf(piece->d_dense[e] -
                       (float)(0x111 * (1 + (e + piece->table_idx) % 5))) > 0;
    }
    return n;
}

/* Opens the placement and the exchanges of the fixture's plan. */
static void open_exchanges(struct fixture *fixture, struct placement *placement,
                           struct exchange_set *set)
{
    struct err err = {0};

    plan_derive_kinds(&fixture->plan);
    if (placement_init(placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err) ||
        placement_cut_turns(placement, 4ull << 30, &err) ||
        placement_open(placement, &err) ||
        exchange_open(set, placement, &fixture->arena, &err))
        fixture_bail(&err);
}

/* Sums the gradients of some replicated tables. The last table has n_rows
 * rows. */
static void test_sum(uint64_t n_rows, unsigned want_exchanges, const char *what)
{
    struct fixture fixture;
    struct placement placement;
    struct exchange_set set = {0};
    struct err err = {0};

    fixture_init(&fixture, N_RANKS, 30);
    for (unsigned t = 0; t < 6; t++) {
        add_table(&fixture, "replicated", 5 + t, 4 * (1 + t % 3), 2);
        add_replicas(&fixture);
    }
    add_table(&fixture, "whole", 50, 8, 3);
    add_whole(&fixture, 1);
    add_table(&fixture, "unread", 9, 8, 0)->num_outputs = 0;
    add_replicas(&fixture);
    add_table(&fixture, "last", n_rows, 64, 2);
    add_replicas(&fixture);
    open_exchanges(&fixture, &placement, &set);
    for (size_t i = 0; i < placement.n_pieces; i++) {
        const struct piece *piece = &placement.pieces[i];

        for (uint64_t e = 0; piece->replica && e < n_elements(piece); e++)
            piece->d_dense[e] = gradient(piece, e);
    }
    n_exchanges = 0;
    real_start = fixture.comm->start;
    fixture.comm->start = count_start;
    if (exchange_allreduce(&set, &err))
        fixture_bail(&err);
    is_i64(n_exchanges, want_exchanges, what);
    is_i64((int64_t)n_wrong(&placement), 0, "each rank has the sums");
    exchange_close(&set);
    placement_release(&placement);
    fixture_release(&fixture);
}

/* Without replicas there is no exchange. */
static void test_none(void)
{
    struct fixture fixture;
    struct placement placement;
    struct exchange_set set = {0};
    struct err err = {0};

    fixture_init(&fixture, 2, 30);
    add_table(&fixture, "whole", 50, 8, 3);
    add_whole(&fixture, 1);
    open_exchanges(&fixture, &placement, &set);
    n_exchanges = 0;
    real_start = fixture.comm->start;
    fixture.comm->start = count_start;
    ok(!exchange_allreduce(&set, &err), "an all-reduce of nothing");
    is_i64(n_exchanges, 0, "exchanges nothing");
    exchange_close(&set);
    placement_release(&placement);
    fixture_release(&fixture);
}

int main(void)
{
    /* Each all-reduce is two exchanges: one to the rank that adds up a slice,
     * and one back. */
    test_sum(20, 2, "one all-reduce for all tables");
    test_sum(ALLREDUCE_BYTES / 256, 4,
             "two, if they exceed the scratch memory");
    test_none();
    return tap_done();
}
