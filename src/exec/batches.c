/* SPDX-License-Identifier: MIT */
#include "exec/batches.h"

#include "base/rng.h"
#include "exec/first_uses.h"

#include <assert.h>
#include <string.h>

/* Returns the stream of lookups of a table for a whole batch. The stream has
 * sample x num_outputs + output as the number of a bag, and pooling_factor /
 * num_outputs lookups per bag. */
static struct stream stream_of(const struct placement *placement,
                               size_t table_idx)
{
    const struct table *table = &placement->plan->problem.tables[table_idx];
    uint32_t n_outputs = (uint32_t)table->num_outputs;
    struct stream stream = {
        .n_rows = placement->table_rows[table_idx],
        .batch = placement->batch * n_outputs,
        .pooling_factor = n_outputs ? table->pooling_factor / n_outputs : 0,
        .use_bins = table->has_bins && table->pooling_factor > 0,
        .zipf_alpha = table->has_bins ? 0 : table->zipf_alpha,
        .row_order = table->row_order,
        .table_seed = table->row_seed,
    };

    memcpy(stream.bins, table->bins, sizeof(stream.bins));
    return stream;
}

struct part_job {
    const struct placement *placement;
    const struct group *group;
    unsigned number;
    struct bags *parts;
};

/* Begins the de-duplication of a rank's ids: empties the hash table, and adds
 * the lookups from `begin` to `end` to it. Does nothing if `uses` is NULL. */
static void begin_owner(struct first_uses *uses, const struct bags *bags,
                        uint64_t begin, uint64_t end)
{
    if (!uses)
        return;
    first_uses_clear(uses);
    for (uint64_t i = begin; i < end; i++)
        first_uses_add(uses, bags->indices[i], (uint32_t)i);
}

/* Keeps only the lookups that the piece serves, which are those of the group's
 * samples, and drops the other lookups. If `uses` is not NULL, keeps only the
 * first lookup of a row in the batch of each rank. Returns the number of bags
 * that remain. Works in place, because the position that is written never
 * passes the first lookup of the rank whose lookups are read. */
static size_t keep_own(struct bags *bags, const struct placement *placement,
                       const struct group *group, const struct piece *piece,
                       struct first_uses *uses)
{
    uint64_t n = 0, *kept = bags->offsets;

    for (uint32_t r = group->owners.begin; r < group->owners.end; r++) {
        uint64_t first =
            (uint64_t)placement_sample(placement, r) * group->n_outputs;
        uint64_t bag =
            placement_part_sample(placement, r, group->part, group->n_parts);
        uint64_t last = placement_part_sample(placement, r, group->part + 1,
                                              group->n_parts);

        bag *= group->n_outputs;
        last *= group->n_outputs;
        begin_owner(uses, bags, bags->offsets[first], bags->offsets[bag]);
        for (; bag < last; bag++) {
            uint64_t i = bags->offsets[bag], end = bags->offsets[bag + 1];

            *kept++ = n;
            for (; i < end; i++) {
                uint32_t row = bags->indices[i];

                if (piece_has_row(piece, row) &&
                    (!uses || first_uses_add(uses, row, (uint32_t)i) == i))
                    bags->indices[n++] = (uint32_t)(row - piece->row_begin);
            }
        }
    }
    *kept = n;
    return (size_t)(kept - bags->offsets);
}

/* Returns the largest number of lookups in the batch of one of the group's
 * owners. */
static uint64_t most_of_owner(const struct bags *bags,
                              const struct placement *placement,
                              const struct group *group)
{
    uint64_t most = 0;

    for (uint32_t r = group->owners.begin; r < group->owners.end; r++) {
        size_t begin = placement_sample(placement, r);
        size_t end = placement_sample(placement, r + 1);

        most = max_u64(most, bags->offsets[end * group->n_outputs] -
                                 bags->offsets[begin * group->n_outputs]);
    }
    return most;
}

/* Draws the lookups of a piece like batches_draw. Drops repeated ids only if
 * drops_repeats is true. */
static void draw(struct bags *bags, const struct placement *placement,
                 const struct group *group, const struct piece *piece,
                 unsigned number, bool drops_repeats)
{
    const struct stream stream = stream_of(placement, piece->table_idx);
    struct first_uses uses = {0};
    size_t n_bags;

    bags->offsets = mem_grow(NULL, (size_t)stream.batch + 1, sizeof(uint64_t));
    bags->indices =
        mem_grow(NULL, (size_t)stream_n_lookups(&stream), sizeof(uint32_t));
    stream_fill(&stream, mix64(placement->seed ^ mix64(number + 1)), 0,
                bags->offsets, bags->indices);
    bags->n_before = bags->offsets[(size_t)placement_part_sample(
                                       placement, group->owners.begin,
                                       group->part, group->n_parts) *
                                   group->n_outputs];
    if (drops_repeats)
        first_uses_init(&uses, most_of_owner(bags, placement, group));
    n_bags =
        keep_own(bags, placement, group, piece, drops_repeats ? &uses : NULL);
    first_uses_release(&uses);
    bags->indices = mem_grow(bags->indices, (size_t)bags->offsets[n_bags],
                             sizeof(uint32_t));
    bags->offsets = mem_grow(bags->offsets, n_bags + 1, sizeof(uint64_t));
}

void batches_draw(struct bags *bags, const struct placement *placement,
                  const struct group *group, const struct piece *piece,
                  unsigned number)
{
    draw(bags, placement, group, piece, number,
         placement_drops_repeats(placement, piece->table_idx));
}

void batches_draw_table(struct bags *bags, const struct placement *placement,
                        size_t table_idx, struct rank_range owners,
                        unsigned number, bool is_sent)
{
    const struct table *table = &placement->plan->problem.tables[table_idx];
    const struct group group = {.n_outputs = (uint32_t)table->num_outputs,
                                .owners = owners,
                                .n_parts = 1};
    const struct piece piece = {.table_idx = (uint32_t)table_idx,
                                .row_end = placement->table_rows[table_idx]};

    draw(bags, placement, &group, &piece, number,
         is_sent && placement_drops_repeats(placement, table_idx));
}

void bags_release(struct bags *bags)
{
    mem_free(bags->offsets);
    mem_free(bags->indices);
}

/* Makes each lookup of a sequence a bag. */
static void give_vectors(struct bags *part, const struct group *group)
{
    uint64_t n = part->offsets[group_input_bags(group)];

    part->offsets = mem_grow(part->offsets, (size_t)group->n_bags + 1,
                             sizeof(*part->offsets));
    for (size_t i = 0; i <= group->n_bags; i++)
        part->offsets[i] = min_u64(i, n);
}

static void draw_part(void *ctx, size_t task, unsigned thread)
{
    const struct part_job *job = ctx;
    const struct group *group = job->group;
    struct bags *part = &job->parts[task];

    (void)thread;
    batches_draw(part, job->placement, group, group->pieces[task], job->number);
    if (group->vectors)
        give_vectors(part, group);
    else
        part->offsets[group->n_bags] = part->offsets[group_input_bags(group)];
}

int index_batch_open(struct index_batch *batch, struct device *device,
                     const struct group *group, uint64_t max_lookups,
                     struct err *err)
{
    size_t n_offsets = (size_t)group->n_pieces * group->n_bags + 1;
    uint64_t *d_offsets;

    *batch = (struct index_batch){.device = device, .max_lookups = max_lookups};
    if (device_alloc(device, &batch->d_block,
                     n_offsets * sizeof(*d_offsets) +
                         (size_t)max_lookups * sizeof(uint32_t),
                     err))
        return -1;
    d_offsets = batch->d_block;
    batch->lookups = (struct lookup_batch){.d_indices = d_offsets + n_offsets,
                                           .d_offsets = d_offsets};
    return 0;
}

/* The offsets of all pieces become one array: they count from the first lookup
 * of the first piece, and the last offset of a piece is also the first offset
 * of the next piece. */
int index_batch_place(struct index_batch *batch, struct device *through,
                      const struct group *group, const struct bags *parts,
                      struct err *err)
{
    uint32_t *d_indices = (uint32_t *)(uintptr_t)batch->lookups.d_indices;
    size_t n_bags = group->n_bags, n_offsets = group->n_pieces * n_bags + 1;
    uint64_t *offsets = mem_alloc(n_offsets, sizeof(*offsets)), n_all = 0;
    int rc = 0;

    for (uint32_t i = 0; !rc && i < group->n_pieces; i++) {
        uint64_t n = parts[i].offsets[n_bags];

        assert(n_all + n <= batch->max_lookups);
        for (size_t bag = 0; bag < n_bags; bag++)
            offsets[i * n_bags + bag] = n_all + parts[i].offsets[bag];
        if (n)
            rc = device_upload(through, d_indices + n_all, parts[i].indices,
                               (size_t)n * sizeof(*d_indices), err);
        n_all += n;
    }
    offsets[n_offsets - 1] = n_all;
    if (!rc)
        rc = device_upload(through, batch->d_block, offsets,
                           n_offsets * sizeof(*offsets), err);
    batch->lookups.n_lookups = n_all;
    mem_free(offsets);
    return rc;
}

int index_batch_init(struct index_batch *batch,
                     const struct placement *placement,
                     const struct group *group, unsigned number,
                     struct err *err)
{
    struct part_job job = {
        .placement = placement,
        .group = group,
        .number = number,
        .parts = mem_alloc(group->n_pieces, sizeof(struct bags)),
    };
    uint64_t n = 0;
    int rc;

    pool_run(placement->pool, group->n_pieces, draw_part, &job);
    for (uint32_t i = 0; i < group->n_pieces; i++)
        n += job.parts[i].offsets[group->n_bags];
    rc = index_batch_open(batch, placement->device, group, n, err) ||
         index_batch_place(batch, placement->device, group, job.parts, err);
    for (uint32_t i = 0; i < group->n_pieces; i++)
        bags_release(&job.parts[i]);
    mem_free(job.parts);
    if (rc)
        index_batch_release(batch);
    return rc ? -1 : 0;
}

void index_batch_release(struct index_batch *batch)
{
    if (batch->device)
        device_free(batch->device, batch->d_block);
    *batch = (struct index_batch){0};
}
