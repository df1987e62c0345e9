/* SPDX-License-Identifier: MIT */
#include "core/oracle.h"

#include <float.h>
#include <math.h>
#include <string.h>

const char *const cost_basis_names[] = {"analytic", "modelled", "measured",
                                        NULL};

const char *const host_basis_names[] = {"none", "assumed", "measured", NULL};

const double wire_shares[N_WIRES] = {1, 1.0 / 2, 1.0 / 4};
const double wires_between[N_WIRES_BETWEEN] = {0.857244, 0.734867, 0.629961,
                                               0.540030, 0.462937, 0.396850,
                                               0.340198, 0.291632};

#define OUTSIDE(member) MEMBER_OF(struct cost_outside, member)
const struct place_field cost_outside_fields[N_OUTSIDE_FIELDS] = {
    {"table", OUTSIDE(table), false, 0, 0, NULL},
    {"feature", OUTSIDE(feature), true, 0, 0, NULL},
    {"value", OUTSIDE(value), true, 0, DBL_MAX, NULL},
    {"least", OUTSIDE(least), true, 0, DBL_MAX, NULL},
    {"most", OUTSIDE(most), true, 0, DBL_MAX, NULL},
};

#define MOST_OUTSIDE 3

void cost_print_outside(const struct cost_source *cost, struct buf *out)
{
    const size_t n = min_u64(cost->n_outside, MOST_OUTSIDE);

    for (size_t i = 0; i < n; i++) {
        const struct cost_outside *pos = &cost->outside[i];

        buf_printf(out, "        outside of what was measured: %s%s%s%s %.6g",
                   pos->feature, pos->table ? " of table '" : "",
                   pos->table ? pos->table : "", pos->table ? "'" : "",
                   pos->value);
        buf_printf(out, " (%.6g to %.6g)%s\n", pos->least, pos->most,
                   i + 1 == n && n < cost->n_outside ? " and more" : "");
    }
}

json_t *cost_outside_to_json(const struct cost_source *cost)
{
    return PLACE_LIST_ROWS(cost->outside, cost->n_outside, cost_outside_fields);
}

bool oracle_waits(const struct oracle *oracle)
{
    return !oracle->ops->terms || oracle->n_terms > 1;
}

void oracle_keep_to(struct oracle *oracle, const struct problem *problem)
{
    const bool bars_grids =
        !problem->asks_for_grids && problem->cluster.hosts_per_domain > 1;

    if (problem->row_cut != ROW_CUT_RANKS)
        return;
    oracle->row_cut = ROW_CUT_RANKS;
    for (size_t i = 0; i < problem->n_tables && bars_grids; i++)
        if (problem->tables[i].optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
            oracle->kinds &= ~(unsigned)SHARD_GRID;
}

void oracle_empty_sum(const struct oracle *oracle, uint32_t device, double *sum)
{
    const size_t width = oracle->width;

    if (oracle->busy_sums)
        memcpy(sum, oracle->busy_sums + device * width, width * sizeof(*sum));
    else
        memset(sum, 0, width * sizeof(*sum));
}

void oracle_empty_sums(const struct oracle *oracle, double *sums)
{
    for (uint32_t r = 0; r < oracle->problem->cluster.n_devices; r++)
        oracle_empty_sum(oracle, r, sums + r * (size_t)oracle->width);
}

static void add_vector(const struct oracle *oracle, double *sums,
                       uint32_t device, const double *vector, double sign)
{
    for (size_t w = 0; w < oracle->width; w++)
        sums[device * (size_t)oracle->width + w] += sign * vector[w];
}

/* Adds empty row blocks if the rows are cut over more ranks than there are row
 * blocks (n). Each rank without a row block gets a block with no rows, in the
 * order of the ranks. */
static void add_empty_blocks(const struct oracle *oracle,
                             const struct shard *blocks, size_t n,
                             const double *vector, double sign, double *sums)
{
    uint32_t n_ranks = shard_row_ranks(oracle->problem, blocks);
    uint32_t first = n_ranks ? blocks->device / n_ranks * n_ranks : 0;
    size_t n_left = n < n_ranks ? n_ranks - n : 0;

    for (uint32_t r = first; n_left && r < first + n_ranks; r++) {
        size_t i = 0;

        while (i < n && blocks[i].device != r)
            i++;
        if (i < n)
            continue;
        add_vector(oracle, sums, r, vector, sign);
        n_left--;
    }
}

void oracle_add_shards(const struct oracle *oracle, const struct shard *shards,
                       const double *vectors, size_t n, double sign,
                       double *sums)
{
    const size_t width = oracle->width;

    for (size_t i = 0; i < n; i++)
        add_vector(oracle, sums, shards[i].device, vectors + i * width, sign);
    for (size_t begin = 0, end; begin < n && oracle->prices_empty_blocks;
         begin = end) {
        for (end = begin + 1;
             end < n && shards[end].table == shards[begin].table &&
             shards[end].kind == shards[begin].kind &&
             shards[end].col_begin == shards[begin].col_begin &&
             shards[end].row_begin == shards[end - 1].row_end;)
            end++;
        if (shard_cuts_rows(shards[begin].kind))
            add_empty_blocks(oracle, shards + begin, end - begin,
                             vectors + begin * width, sign, sums);
    }
}

double oracle_terms_total_ms(const struct oracle *oracle, const double *max_ms)
{
    double total_ms = 0;

    if (oracle->ops->total)
        return oracle->ops->total(oracle, max_ms);
    if (oracle->step)
        return step_ms(oracle->step, max_ms);
    for (uint32_t k = 0; k < oracle->n_terms; k++)
        total_ms += max_ms[k];
    return total_ms;
}

double oracle_total_ms(size_t n_devices, const double *compute_ms,
                       const double *bwd_ms, const double *fwd_ms)
{
    double total = 0;

    for (size_t r = 0; r < n_devices; r++) {
        double ms = compute_ms[r] + bwd_ms[r] + fwd_ms[r];

        if (!isfinite(ms))
            return ms;
        total = fmax(total, ms);
    }
    return total;
}

double oracle_comm_total_ms(const struct oracle *oracle, const double *sums,
                            const double *compute_ms)
{
    size_t n = oracle->problem->cluster.n_devices;
    double *fwd_ms = mem_alloc(n, 2 * sizeof(*fwd_ms)), *bwd_ms = fwd_ms + n;
    double total_ms;

    oracle->ops->comm(oracle, 1, sums, compute_ms, fwd_ms, bwd_ms);
    total_ms = oracle_total_ms(n, compute_ms, bwd_ms, fwd_ms);
    mem_free(fwd_ms);
    return total_ms;
}
