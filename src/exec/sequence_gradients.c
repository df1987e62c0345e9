/* SPDX-License-Identifier: MIT */
#include "exec/sequence_gradients.h"

#include "exec/placement_load.h"
#include "exec/sequences.h"
#include "exec/values.h"

#include <string.h>

/* Vectors of a piece at a receiver, and the lookups that share each vector. */
struct piece_vectors {
    const struct piece *piece;
    uint64_t n_before; /* number of the receiver's first lookup */
    /* lookups[first[s]] .. lookups[first[s + 1] - 1] are the lookups that have
     * vector s */
    uint64_t *first;   /* [n_vectors + 1], owned */
    uint32_t *lookups; /* owned */
};

/* Sorts the lookups in the piece's rows by vector: a counting sort, which keeps
 * the order of lookups with the same vector. */
static void find_lookups(struct piece_vectors *vectors,
                         const struct places *places,
                         const struct place_list *list)
{
    const struct piece *piece = vectors->piece;
    const uint32_t *rows = places->bags.indices;
    uint64_t *next = mem_alloc((size_t)list->n_vectors + 2, sizeof(*next));

    vectors->first = next;
    vectors->lookups =
        mem_grow(NULL, (size_t)places->n, sizeof(*vectors->lookups));
    /* next[s + 1] is the place of the next lookup with vector s */
    for (uint64_t i = 0; i < places->n; i++)
        if (piece_has_row(piece, rows[i]))
            next[list->slots[i] + (size_t)2]++;
    for (uint64_t s = 2; s < list->n_vectors + 2; s++)
        next[s] += next[s - 1];
    for (uint64_t i = 0; i < places->n; i++)
        if (piece_has_row(piece, rows[i]))
            vectors->lookups[next[list->slots[i] + (size_t)1]++] = (uint32_t)i;
}

static void make_vectors(void *ctx, uint64_t begin, uint64_t end,
                         unsigned thread)
{
    const struct made *made = ctx;
    const struct piece_vectors *vectors = made->ctx;
    const struct piece *piece = vectors->piece;
    const enum precision precision = piece->group->precision;
    float *sum = mem_alloc(piece->width, sizeof(*sum));
    float *gradient = mem_alloc(piece->width, sizeof(*gradient));

    (void)thread;
    for (uint64_t i = begin; i < end; i++) {
        const uint64_t *first = vectors->first + made->first + i;

        memset(sum, 0, piece->width * sizeof(*sum));
        for (uint64_t k = first[0]; k < first[1]; k++) {
            values_gradient(gradient, piece->table_seed,
                            vectors->n_before + vectors->lookups[k],
                            piece->col_begin, piece->width, precision);
            for (uint32_t j = 0; j < piece->width; j++)
                sum[j] += gradient[j];
        }
        values_store(made->out + i * made->item_bytes, sum, piece->width,
                     precision);
    }
    mem_free(sum);
    mem_free(gradient);
}

static int fill_piece(const struct exchange_set *set, const struct piece *piece,
                      const struct places *places,
                      const struct place_list *list, uint32_t receiver,
                      struct err *err)
{
    const struct output_block block =
        exchange_block(set, piece->group, receiver);
    struct piece_vectors vectors = {piece, places->bags.n_before, NULL, NULL};
    struct made made = {make_vectors, &vectors, group_bag_bytes(piece->group),
                        0, NULL};
    int rc;

    if (!block.n_bags)
        return 0;
    find_lookups(&vectors, places, list);
    rc = placement_upload(set->placement, block.d_at, block.n_bags, &made, err);
    mem_free(vectors.first);
    mem_free(vectors.lookups);
    return rc;
}

static int fill_table(const struct exchange_set *set, size_t table_idx,
                      uint32_t receiver, struct err *err)
{
    const struct placement *placement = set->placement;
    struct places places;
    int rc = 0;

    places_init(&places, placement, table_idx, receiver, STEP_BATCH);
    for (size_t k = 0; !rc && k < places.n_pieces; k++)
        rc = fill_piece(set, &places.pieces[k], &places, &places.lists[k],
                        receiver, err);
    places_release(&places);
    return rc;
}

int sequence_gradients_fill(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;
    const struct problem *problem = &placement->plan->problem;

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        for (size_t t = 0; t < problem->n_tables; t++)
            if (problem->tables[t].output == OUTPUT_SEQUENCE &&
                problem->tables[t].num_outputs > 0 &&
                fill_table(set, t, r, err))
                return -1;
    return 0;
}
