/* SPDX-License-Identifier: MIT */
#include "exec/placement_need.h"

#include "base/text.h"
#include "device/interference_probe.h"
#include "exec/placement_load.h"
#include "exec/rank_work.h"
#include "exec/sync.h"

#include <inttypes.h>

/* Bytes per lookup that the reference needs to sort lookups by row: two copies
 * of a pair of row and bag, and the stream from which the pairs are made. */
#define REFERENCE_BYTES 28.0

/* Bytes per lookup of a cached piece while its rows are moved into the cache:
 * the list of rows with as much room again, its sorted copy, the missing rows
 * and the moves, and the place of the row. */
#define FILL_BYTES 60.0

/* Fraction of the free memory that is left unused, because the estimate is not
 * exact: it does not round allocations up to huge pages, and it assumes that
 * lookups are uniform over the rows. */
#define HEADROOM_FRAC 0.05

/* Bytes of a group's index sets and scratch memory while its rank is timed. */
static double group_work_bytes(const struct placement *placement,
                               const struct group *group)
{
    unsigned n_sets = rank_work_n_cold_sets(placement, group->rank);
    double bytes = 0, n_lookups = 0;
    uint32_t max_dim = 0;

    for (uint32_t i = 0; i < group->n_pieces; i++) {
        const struct piece *piece = group->pieces[i];

        n_lookups += placement_lookups(placement, piece);
        bytes += n_sets * 8.0 * group->n_bags;
        if (piece->cache)
            bytes += FILL_BYTES * placement_lookups(placement, piece);
        max_dim = (uint32_t)max_u64(max_dim, piece->width);
    }
    /* the update of a replica also covers the rows of the whole batch */
    if (group->replica)
        n_lookups *= 1 + placement->n_ranks;
    return bytes + n_sets * 4 * n_lookups +
           lookup_scratch_bytes(placement->device, n_lookups, max_dim);
}

/* Four copies of them exist: the ids
 * that were drawn and that are sent, for the ranks of this process, and the ids
 * that were received and that are looked up, for the pieces of these ranks. */
double placement_input_bytes(const struct placement *placement)
{
    const struct rank_range here = placement->here;
    double share = (double)(here.end - here.begin) / placement->n_ranks;
    double bytes = 0;

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (piece->group && !piece->replica)
            bytes += 2 * (share + comm_is_here(placement->comm, piece->rank)) *
                     (PROBLEM_ID_BYTES * placement_lookups(placement, piece) +
                      8.0 * (double)group_input_bags(piece->group));
    }
    return bytes;
}

/* Bytes of the outputs that a rank computes, plus bytes of the outputs that it
 * receives from all ranks. */
static double output_bytes(const struct placement *placement, uint32_t rank)
{
    double bytes = 0;

    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];
        double bag_bytes = (double)group_bag_bytes(group);

        if (group->rank == rank)
            bytes += bag_bytes * group->n_bags;
        if (!group->replica && group_serves(group, rank))
            bytes +=
                bag_bytes * (double)placement_outputs(placement, group, rank);
    }
    return bytes;
}

static double dense_bytes(const struct placement *placement, uint32_t rank)
{
    double bytes = 0;

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (piece->replica && piece->rank == rank)
            bytes +=
                (double)sizeof(float) * piece->width * (double)piece->n_rows;
    }
    return bytes;
}

/* Bytes of the reference's lookups, and of a copy of a sequence's vectors,
 * while it compares the largest table. They are in host memory, which is the
 * memory of the device only if the device is a CPU. */
static double reference_bytes(const struct placement *placement)
{
    const struct problem *problem = &placement->plan->problem;
    double largest = 0;

    if (!device_is_host(placement->device))
        return 0;
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];
        double copy = table->output == OUTPUT_SEQUENCE
                          ? table->pooling_factor / placement->n_ranks *
                                table->dim * sizeof(float)
                          : 0;

        largest = fmax(largest, (double)placement->batch *
                                    (REFERENCE_BYTES * table->pooling_factor +
                                     8 * table->num_outputs + copy));
    }
    return largest;
}

void placement_need(struct placement_need *need,
                    const struct placement *placement)
{
    double largest_work = 0;

    *need = (struct placement_need){0};
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        const double dense = dense_bytes(placement, r);
        double work = 0;

        need->weight_bytes = fmax(need->weight_bytes,
                                  (double)placement_weight_bytes(placement, r));
        for (const struct group *group = placement->rank_groups[r];
             group < placement->rank_groups[r + 1]; group++)
            work += group_work_bytes(placement, group);
        largest_work = fmax(largest_work, work);
        need->rows_bytes += dense;
        /* bytes of outputs, plus scratch memory of the all-reduce and the
         * sync */
        need->batch_bytes +=
            output_bytes(placement, r) + fmin(dense, (double)ALLREDUCE_BYTES) +
            (placement->n_copies > 1 ? (double)sync_scratch_bytes(placement, r)
                                     : 0);
    }
    if (placement->n_chunks > 1 && placement->comm->world->size > 1)
        /* the batch is timed twice for comparison: in one part and in chunks */
        largest_work *= 2;
    need->rows_bytes += need->weight_bytes;
    need->batch_bytes += fmax(largest_work, placement_input_bytes(placement)) +
                         INTERFERENCE_PROBE_BYTES + reference_bytes(placement);
}

/* Rounds x down to three significant digits. Because x is not rounded up, what
 * fits with x still fits. */
static double round_down(double x)
{
    double unit = pow(10, floor(log10(x)) - 2);

    return floor(x / unit) * unit;
}

/* Fails if the weights and caches of a rank take more bytes than places can
 * count (struct lookup_table). */
static int check_places(const struct placement *placement, struct err *err)
{
    const size_t most = (size_t)UINT32_MAX * LOOKUP_PLACE_COLUMNS * 2;

    for (size_t k = 0; k < placement->n_caches; k++) {
        const uint32_t rank = placement->caches[k].rank;
        const size_t n_bytes = placement_weight_bytes(placement, rank);
        char text[TEXT_BYTES_MAX];

        text_from_bytes(text, (double)n_bytes);
        if (n_bytes > most)
            return err_set(
                err, ERR_DEVICE,
                "GPU %u holds %s of cached and other tables, more than the 32 "
                "GiB that a rank with caches can run; --scale-rows %g or less "
                "fits",
                rank, text,
                round_down(placement->scale_rows * (double)most /
                           (double)n_bytes));
    }
    return 0;
}

/* Fails if a table has too many rows, because devices store row numbers in 32
 * bits. */
static int check_rows(const struct placement *placement, struct err *err)
{
    for (size_t t = 0; t < placement->plan->problem.n_tables; t++) {
        const struct table *table = &placement->plan->problem.tables[t];

        if (placement->table_rows[t] >= UINT32_MAX)
            return err_set(err, ERR_DEVICE,
                           "table '%s': %" PRIu64
                           " rows are more than the 2^32 - 2 that can be run; "
                           "--scale-rows %g or less fits",
                           table->name, placement->table_rows[t],
                           round_down((double)(UINT32_MAX - 1) /
                                      (double)table->num_embeddings));
    }
    return 0;
}

/* Divides the ranks into turns. Each turn gets as many ranks as fit into
 * `usable` bytes, minus the memory that stays allocated over all turns. */
static void cut_turns(struct placement *placement, double usable,
                      const struct placement_need *need)
{
    struct rank_range *turn = NULL;
    double left = 0;

    placement->n_turns = 0;
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        double bytes = (double)placement_weight_bytes(placement, r);

        if (!turn || bytes > left) {
            turn = &placement->turns[placement->n_turns++];
            turn->begin = r;
            left = usable -
                   (need->rows_bytes - need->weight_bytes + need->batch_bytes);
        }
        turn->end = r + 1;
        left -= bytes;
    }
}

int placement_cut_turns(struct placement *placement, uint64_t free_bytes,
                        struct err *err)
{
    double usable = (double)free_bytes * (1 - HEADROOM_FRAC);
    char needed[TEXT_BYTES_MAX], available[TEXT_BYTES_MAX];
    struct placement_need need;
    double scale;

    placement_need(&need, placement);
    if (need.rows_bytes + need.batch_bytes <= usable) {
        cut_turns(placement, usable, &need);
        return check_rows(placement, err) || check_places(placement, err) ? -1
                                                                          : 0;
    }
    text_from_bytes(needed, need.rows_bytes + need.batch_bytes);
    text_from_bytes(available, usable);
    scale =
        placement->scale_rows * (usable - need.batch_bytes) / need.rows_bytes;
    if (!(scale > 0))
        return err_set(
            err, ERR_DEVICE,
            "running the plan takes %s of memory, but only %s can be used; its "
            "batch alone does not fit, so --scale-rows cannot help",
            needed, available);
    return err_set(err, ERR_DEVICE,
                   "running the plan takes %s of memory, but only %s can be "
                   "used; --scale-rows %g or less fits",
                   needed, available, round_down(scale));
}

int placement_share_memory(struct placement *placement, uint64_t memory_bytes,
                           double extra_bytes, struct err *err)
{
    struct world *world = placement->comm->world;
    const uint32_t size = world->size;
    uint64_t free_bytes = device_free_bytes(placement->device);
    double *needs = mem_alloc(size, sizeof(*needs)), own, sum = 0, usable;
    struct placement_need need;
    int rc;

    if (memory_bytes)
        free_bytes = min_u64(free_bytes, memory_bytes);
    placement_need(&need, placement);
    own = need.rows_bytes + need.batch_bytes + extra_bytes;
    rc = world_all_gather(world, &own, sizeof(own), needs, err);
    for (uint32_t p = 0; p < size; p++)
        if (world->host_of[p] == world->host_of[world->rank])
            sum += needs[p];
    mem_free(needs);
    usable = (double)free_bytes;
    if (size > 1 && device_is_host(placement->device))
        usable *= own / sum;
    return rc ? -1
              : placement_cut_turns(
                    placement, (uint64_t)fmax(usable - extra_bytes, 0), err);
}
