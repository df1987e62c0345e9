/* SPDX-License-Identifier: MIT */
#include "exec/placement.h"

#include "base/text.h"
#include "device/canary.h"
#include "exec/rank_work.h"

#include <inttypes.h>
#include <math.h>

/* Bytes a look-up that lookup_backward needs to sort by row, and that the
 * reference does: a pair of row and bag, twice, and the stream it is from. */
#define SORT_BYTES 32.0
#define REFERENCE_BYTES 28.0

/* Of free memory, this much is left alone: the estimate rounds no allocation
 * up to huge pages and takes rows to be used evenly. */
#define HEADROOM_FRAC 0.05

static double max_double(double a, double b)
{
    return a > b ? a : b;
}

double placement_lookups(const struct placement *placement,
                         const struct piece *piece)
{
    const struct group *group = &placement->groups[piece->group];

    return piece->table->pooling_factor * group->n_samples *
           (double)(piece->row_end - piece->row_begin) /
           (double)placement->table_rows[piece->table_idx];
}

/* Index sets, gradients and scratch of a rank while it is timed. */
static double group_work_bytes(const struct placement *placement,
                               const struct group *group)
{
    unsigned n_sets = rank_work_n_cold_sets(placement, group->rank);
    double bytes = 4.0 * group->n_bags * group->out_dim;

    for (uint32_t i = 0; i < group->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[group->pieces[i]];
        double n = placement_lookups(placement, piece);

        bytes += n_sets * (4 * n + 8.0 * group->n_bags) + SORT_BYTES * n;
        if (group->replica) /* the whole batch's rows, and their update */
            bytes += n_sets * 4.0 * n * placement->n_ranks +
                     (13.0 + SORT_BYTES) * (double)piece->n_rows;
    }
    return bytes;
}

static double stream_bytes(const struct placement *placement)
{
    const struct problem *problem = &placement->plan->problem;
    double largest = 0;

    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        largest =
            max_double(largest, (double)placement->batch *
                                    (REFERENCE_BYTES * table->pooling_factor +
                                     8 * table->num_outputs));
    }
    return largest;
}

void placement_need(struct placement_need *need,
                    const struct placement *placement)
{
    double work = 0;

    *need = (struct placement_need){0};
    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];
        double row_bytes =
            (double)piece->width * precision_bytes(piece->table->precision);

        if (piece->table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
            row_bytes += sizeof(float);
        if (piece->replica)
            row_bytes += (double)piece->width * sizeof(float);
        need->rows_bytes += row_bytes * (double)piece->n_rows;
    }
    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        double rank_work = 0;

        for (size_t g = placement->rank_groups[r];
             g < placement->rank_groups[r + 1]; g++) {
            const struct group *group = &placement->groups[g];

            /* sent and, but for replicas, received */
            need->batch_bytes +=
                (group->replica ? 4.0 : 8.0) * group->n_bags * group->out_dim;
            rank_work += group_work_bytes(placement, group);
        }
        work = max_double(work, rank_work);
    }
    need->batch_bytes += work + CANARY_BYTES + stream_bytes(placement);
}

/* Rounded down to three digits, so that it still fits. */
static double round_down(double x)
{
    double unit = pow(10, floor(log10(x)) - 2);

    return floor(x / unit) * unit;
}

/* Row numbers have 32 bits on the device. */
static int check_rows(const struct placement *placement, struct err *err)
{
    for (size_t t = 0; t < placement->plan->problem.n_tables; t++) {
        const struct table *table = &placement->plan->problem.tables[t];

        if (placement->table_rows[t] >= UINT32_MAX)
            return err_set(err, ERR_DEVICE,
                           "table '%s': %" PRIu64 " rows are more than the "
                           "executor takes, 2^32 - 2; --scale-rows %g or less "
                           "fits",
                           table->name, placement->table_rows[t],
                           round_down((double)(UINT32_MAX - 1) /
                                      (double)table->num_embeddings));
    }
    return 0;
}

int placement_check_memory(const struct placement *placement,
                           uint64_t free_bytes, struct err *err)
{
    double usable = (double)free_bytes * (1 - HEADROOM_FRAC);
    char needed[TEXT_BYTES_MAX], available[TEXT_BYTES_MAX];
    struct placement_need need;
    double scale;

    placement_need(&need, placement);
    if (need.rows_bytes + need.batch_bytes <= usable)
        return check_rows(placement, err);
    text_from_bytes(needed, need.rows_bytes + need.batch_bytes);
    text_from_bytes(available, usable);
    scale =
        placement->scale_rows * (usable - need.batch_bytes) / need.rows_bytes;
    if (!(scale > 0))
        return err_set(err, ERR_DEVICE,
                       "running the plan takes %s of memory and %s can be "
                       "used; its batch alone does not fit, whatever "
                       "--scale-rows is",
                       needed, available);
    return err_set(err, ERR_DEVICE,
                   "running the plan takes %s of memory and %s can be used; "
                   "--scale-rows %g or less fits",
                   needed, available, round_down(scale));
}
