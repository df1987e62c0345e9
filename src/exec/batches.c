/* SPDX-License-Identifier: MIT */
#include "exec/batches.h"

#include "base/rng.h"
#include "core/row_order.h"

#include <string.h>

void batches_stream(struct stream *stream, const struct placement *placement,
                    size_t table_idx)
{
    const struct table *table = &placement->plan->problem.tables[table_idx];
    uint32_t n_outputs = (uint32_t)table->num_outputs;

    *stream = (struct stream){
        .n_rows = placement->table_rows[table_idx],
        .batch = placement->batch * n_outputs,
        .pooling_factor = n_outputs ? table->pooling_factor / n_outputs : 0,
        .use_bins = table->has_bins && table->pooling_factor > 0,
        .zipf_alpha = table->has_bins ? 0 : table->zipf_alpha,
        .row_order = table->row_order,
        .table_seed = row_order_seed(table->name),
    };
    memcpy(stream->bins, table->bins, sizeof(stream->bins));
}

uint64_t batches_seed(const struct placement *placement, unsigned number)
{
    return mix64(placement->seed ^ mix64(number + 1));
}

struct part_job {
    const struct placement *placement;
    const struct group *group;
    unsigned number;
    bool is_whole;
    struct bags *parts;
};

/* Keeps, in place, what the piece serves of the group's samples: reading is
 * never behind writing. Returns how many bags that are. */
static size_t keep_own(struct bags *bags, const struct placement *placement,
                       const struct group *group, const struct piece *piece)
{
    uint64_t n = 0, *kept = bags->offsets;

    for (uint32_t r = group->owners.begin; r < group->owners.end; r++) {
        uint64_t bag =
            placement_part_sample(placement, r, group->part, group->n_parts);
        uint64_t last = placement_part_sample(placement, r, group->part + 1,
                                              group->n_parts);

        last *= group->n_outputs;
        for (bag *= group->n_outputs; bag < last; bag++) {
            uint64_t i = bags->offsets[bag], end = bags->offsets[bag + 1];

            *kept++ = n;
            for (; i < end; i++) {
                uint32_t row = bags->indices[i];

                if (row >= piece->row_begin && row < piece->row_end)
                    bags->indices[n++] = (uint32_t)(row - piece->row_begin);
            }
        }
    }
    *kept = n;
    return (size_t)(kept - bags->offsets);
}

void batches_draw(struct bags *bags, const struct placement *placement,
                  const struct group *group, const struct piece *piece,
                  unsigned number)
{
    struct stream stream;
    size_t n_bags;

    batches_stream(&stream, placement, piece->table_idx);
    bags->offsets = mem_grow(NULL, (size_t)stream.batch + 1, sizeof(uint64_t));
    bags->indices =
        mem_grow(NULL, (size_t)stream_n_lookups(&stream), sizeof(uint32_t));
    stream_fill(&stream, batches_seed(placement, number), 0, bags->offsets,
                bags->indices);
    n_bags = keep_own(bags, placement, group, piece);
    bags->indices = mem_grow(bags->indices, (size_t)bags->offsets[n_bags],
                             sizeof(uint32_t));
    bags->offsets = mem_grow(bags->offsets, n_bags + 1, sizeof(uint64_t));
}

void bags_release(struct bags *bags)
{
    mem_free(bags->offsets);
    mem_free(bags->indices);
}

static void draw_part(void *ctx, size_t task, unsigned thread)
{
    const struct part_job *job = ctx;
    const struct group *group = job->group;
    struct bags *part = &job->parts[task];

    (void)thread;
    batches_draw(part, job->placement, group, group->pieces[task], job->number);
    if (job->is_whole)
        part->offsets[1] =
            part->offsets[(size_t)job->placement->batch * group->n_outputs];
}

/* Puts the parts one behind the other; offsets become those of the group. A
 * part's last offset is the next one's first. */
static int place_parts(struct index_batch *batch, struct bags *parts,
                       uint32_t n_pieces, struct err *err)
{
    size_t n_bags = batch->n_bags, n_offsets = n_pieces * n_bags + 1;
    uint64_t *d_offsets;
    uint32_t *d_indices;

    for (uint32_t i = 0; i < n_pieces; i++)
        batch->begins[i + 1] = batch->begins[i] + parts[i].offsets[n_bags];
    if (device_alloc(batch->device, &batch->d_block,
                     n_offsets * sizeof(uint64_t) +
                         (size_t)batch->begins[n_pieces] * sizeof(uint32_t),
                     err))
        return -1;
    d_offsets = batch->d_block;
    d_indices = (uint32_t *)(d_offsets + n_offsets);
    batch->lookups = (struct lookup_batch){
        .d_indices = d_indices,
        .d_offsets = d_offsets,
        .n_lookups = batch->begins[n_pieces],
    };
    for (uint32_t i = 0; i < n_pieces; i++) {
        struct bags *part = &parts[i];
        uint64_t n = part->offsets[n_bags];

        for (size_t bag = 0; bag <= n_bags; bag++)
            part->offsets[bag] += batch->begins[i];
        if ((n &&
             device_upload(batch->device, d_indices + batch->begins[i],
                           part->indices, (size_t)n * sizeof(uint32_t), err)) ||
            device_upload(batch->device, d_offsets + i * n_bags, part->offsets,
                          (n_bags + 1) * sizeof(uint64_t), err))
            return -1;
    }
    return 0;
}

int index_batch_init(struct index_batch *batch,
                     const struct placement *placement,
                     const struct group *group, unsigned number, bool is_whole,
                     struct err *err)
{
    struct group all = *group;
    struct part_job job = {
        .placement = placement,
        .group = &all,
        .number = number,
        .is_whole = is_whole,
        .parts = mem_alloc(group->n_pieces, sizeof(struct bags)),
    };
    int rc;

    if (is_whole)
        all.owners = (struct rank_range){0, placement->n_ranks};
    *batch = (struct index_batch){
        .device = placement->device,
        .n_bags = is_whole ? 1 : group->n_bags,
        .begins = mem_alloc(group->n_pieces + (size_t)1, sizeof(uint64_t)),
    };
    pool_run(placement->pool, group->n_pieces, draw_part, &job);
    rc = place_parts(batch, job.parts, group->n_pieces, err);
    for (uint32_t i = 0; i < group->n_pieces; i++)
        bags_release(&job.parts[i]);
    mem_free(job.parts);
    if (rc)
        index_batch_release(batch);
    return rc;
}

void index_batch_release(struct index_batch *batch)
{
    if (batch->device)
        device_free(batch->device, batch->d_block);
    mem_free(batch->begins);
    *batch = (struct index_batch){0};
}

int index_batch_download(const struct index_batch *batch, uint32_t i,
                         uint32_t **indices, uint64_t *n, struct err *err)
{
    *n = batch->begins[i + 1] - batch->begins[i];
    *indices = mem_alloc((size_t)*n, sizeof(uint32_t));
    if (*n && device_download(batch->device, *indices,
                              (const uint32_t *)batch->lookups.d_indices +
                                  batch->begins[i],
                              (size_t)*n * sizeof(uint32_t), err)) {
        mem_free(*indices);
        return -1;
    }
    return 0;
}
