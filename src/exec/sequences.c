/* SPDX-License-Identifier: MIT */
#include "exec/sequences.h"

#include "exec/first_uses.h"

/* --- numbers of vectors --- */

struct count_job {
    const struct placement *placement;
    uint64_t **vectors; /* [n_pieces] of the placement; NULL if pooled */
};

/* Counts the vectors that each piece of a table gives each sample. They give
 * vectors only to the samples that their groups serve. */
static void count_table(void *ctx, size_t table_idx, unsigned thread)
{
    const struct count_job *job = ctx;
    const struct placement *placement = job->placement;
    struct piece **pieces = placement->table_pieces + table_idx;
    const uint32_t n_outputs = (uint32_t)pieces[0]->table->num_outputs;
    const size_t first = (size_t)(pieces[0] - placement->pieces);
    struct bags bags;

    (void)thread;
    if (pieces[0] == pieces[1] || !job->vectors[first])
        return;
    batches_draw_table(&bags, placement, table_idx,
                       (struct rank_range){0, placement->n_ranks}, STEP_BATCH,
                       true);
    for (uint32_t sample = 0; sample < placement->batch; sample++) {
        const uint64_t *offsets = bags.offsets + (size_t)sample * n_outputs;

        for (const struct piece *piece = pieces[0]; piece < pieces[1];
             piece++) {
            uint64_t *vectors = job->vectors[piece - placement->pieces];
            uint64_t n = 0;

            for (uint64_t i = offsets[0]; i < offsets[n_outputs]; i++)
                n += piece_has_row(piece, bags.indices[i]);
            if (sample <
                    placement_sample(placement, piece->group->owners.begin) ||
                sample >= placement_sample(placement, piece->group->owners.end))
                n = 0;
            vectors[sample + 1] = vectors[sample] + n;
        }
    }
    bags_release(&bags);
}

void sequences_count(struct placement *placement, struct arena *arena)
{
    struct count_job job = {placement,
                            mem_alloc(placement->n_pieces, sizeof(uint64_t *))};

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (piece->group && piece->table->output == OUTPUT_SEQUENCE)
            job.vectors[i] =
                ARENA_NEW(arena, uint64_t, placement->batch + (size_t)1);
    }
    pool_run(placement->pool, placement->plan->problem.n_tables, count_table,
             &job);
    for (size_t g = 0; g < placement->n_groups; g++) {
        struct group *group = &placement->groups[g];

        group->vectors = job.vectors[group->pieces[0] - placement->pieces];
        *group = placement_part(placement, group, 0, 1);
    }
    mem_free(job.vectors);
}

/* --- places of vectors --- */

/* Makes the lists of the pieces, empty. */
static void make_lists(struct places *places)
{
    const struct piece *pieces = places->pieces;

    places->lists = mem_alloc(places->n_pieces, sizeof(*places->lists));
    for (size_t k = 0; k < places->n_pieces; k++) {
        struct place_list *list = &places->lists[k];

        for (size_t j = 0; j < k && !list->is_shared; j++)
            if (pieces[j].col_begin == pieces[k].col_begin) {
                list->slots = places->lists[j].slots;
                list->is_shared = true;
            }
        if (!list->is_shared)
            list->slots =
                mem_grow(NULL, (size_t)places->n, sizeof(*list->slots));
    }
}

/* Gives lookup i its place in each piece that holds its row: the place of the
 * lookup `first` if this is an earlier lookup of the same row, otherwise the
 * next place of the piece. */
static void place_lookup(struct places *places, uint64_t i, uint64_t first)
{
    for (size_t k = 0; k < places->n_pieces; k++) {
        struct place_list *list = &places->lists[k];

        if (piece_has_row(&places->pieces[k], places->bags.indices[i]))
            list->slots[i] =
                first < i ? list->slots[first] : (uint32_t)list->n_vectors++;
    }
}

void places_init(struct places *places, const struct placement *placement,
                 size_t table_idx, uint32_t receiver, unsigned number)
{
    const struct piece_range pieces = placement_copy_pieces(
        placement, table_idx, placement_copy_of(placement, receiver));
    const uint64_t n_samples = placement_sample(placement, receiver + 1) -
                               placement_sample(placement, receiver);
    const bool drops_repeats = placement_drops_repeats(placement, table_idx);
    struct first_uses uses = {0};

    *places = (struct places){.pieces = pieces.begin,
                              .n_pieces = (size_t)(pieces.end - pieces.begin)};
    batches_draw_table(&places->bags, placement, table_idx,
                       (struct rank_range){receiver, receiver + 1}, number,
                       false);
    places->n =
        places->bags
            .offsets[n_samples * (uint64_t)pieces.begin->table->num_outputs];
    make_lists(places);
    if (drops_repeats)
        first_uses_init(&uses, places->n);
    for (uint64_t i = 0; i < places->n; i++)
        place_lookup(
            places, i,
            drops_repeats
                ? first_uses_add(&uses, places->bags.indices[i], (uint32_t)i)
                : i);
    first_uses_release(&uses);
}

void places_release(struct places *places)
{
    for (size_t k = 0; k < places->n_pieces; k++)
        if (!places->lists[k].is_shared)
            mem_free(places->lists[k].slots);
    mem_free(places->lists);
    bags_release(&places->bags);
    *places = (struct places){0};
}
