/* SPDX-License-Identifier: MIT */
#include "core/plan_check.h"

#include "base/printable.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/memory_check.h"
#include "core/plan_judge.h"
#include "core/sharding_groups.h"
#include "core/target_rules.h"
#include "core/tier_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Largest allowed error of a sum of costs, relative to the plan's total. */
#define COST_TOLERANCE 1e-6

static int check_text(const char *text, const char *what, size_t idx,
                      struct err *err)
{
    if (!text || !*text)
        return err_input(err, "tables[%zu] has an empty %s", idx, what);
    if (text_is_printable(text))
        return 0;
    return err_input(err, "tables[%zu]: its %s '%.80s' is not printable", idx,
                     what, text);
}

static int check_amount(const struct table *table, double amount,
                        const char *what, struct err *err)
{
    if (isfinite(amount) && amount >= 0)
        return 0;
    return err_input(err, "table '%.80s': %s %g is not a finite number >= 0",
                     table->name, what, amount);
}

static int check_skew(const struct table *table, struct err *err)
{
    double sum = 0;

    if (check_amount(table, table->zipf_alpha, "zipf_alpha", err))
        return -1;
    if (table->zipf_alpha > TABLE_MAX_ZIPF)
        return err_input(err, "table '%.80s': zipf_alpha %g is above %g",
                         table->name, table->zipf_alpha, TABLE_MAX_ZIPF);
    if (!(table->dedup >= TABLE_MIN_DEDUP && table->dedup <= 1))
        return err_input(err, "table '%.80s': dedup %g is not in %g to 1",
                         table->name, table->dedup, TABLE_MIN_DEDUP);
    if (!table->has_bins)
        return 0;
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        if (check_amount(table, table->bins[k], "a bin of", err))
            return -1;
        sum += table->bins[k];
    }
    if ((sum > 0 || table->pooling_factor > 0) &&
        !(fabs(sum - 1) <= TABLE_BINS_TOLERANCE))
        return err_input(err, "table '%.80s': its bins add up to %g, not to 1",
                         table->name, sum);
    return 0;
}

static int check_factor(const struct table *table, double x, const char *what,
                        struct err *err)
{
    if (x >= TABLE_MIN_FACTOR && x <= TABLE_MAX_FACTOR)
        return 0;
    return err_input(err, "table '%.80s': %s %g is not in %g to %g",
                     table->name, what, x, TABLE_MIN_FACTOR, TABLE_MAX_FACTOR);
}

static int check_table(const struct problem *problem, size_t idx,
                       struct err *err)
{
    const struct table *table = &problem->tables[idx];

    if (check_text(table->name, "name", idx, err) ||
        (table->group && check_text(table->group, "group", idx, err)))
        return -1;
    if (!table->num_embeddings)
        return err_input(err, "table '%.80s' has no rows", table->name);
    if (!table->dim)
        return err_input(err, "table '%.80s' has no columns", table->name);
    if (table->device >= 0 &&
        (uint64_t)table->device >= problem->cluster.n_devices)
        return err_input(
            err,
            "table '%.80s' is pinned to GPU %" PRId64 ", but there are %u GPUs",
            table->name, table->device, problem->cluster.n_devices);
    if (table->row_overhead_bytes > TABLE_MAX_ROW_OVERHEAD)
        return err_input(
            err, "table '%.80s': row_overhead_bytes %g is above %g",
            table->name, table->row_overhead_bytes, TABLE_MAX_ROW_OVERHEAD);
    if (check_factor(table, table->forward_factor, "forward_factor", err) ||
        check_factor(table, table->backward_factor, "backward_factor", err) ||
        check_amount(table, table->row_overhead_bytes, "row_overhead_bytes",
                     err) ||
        check_amount(table, table->pooling_factor, "pooling_factor", err) ||
        check_amount(table, table->num_outputs, "num_outputs", err))
        return -1;
    return check_skew(table, err);
}

struct named {
    const char *name;
    size_t idx;
};

static int compare_named(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int c = strcmp(a->name, b->name);

    return c ? c : (a->idx > b->idx) - (a->idx < b->idx);
}

static int check_unique_names(const struct problem *problem, struct err *err)
{
    struct named *named = mem_alloc(problem->n_tables, sizeof(*named));
    size_t n = problem->n_tables, i = 1;
    int rc = 0;

    for (size_t t = 0; t < n; t++)
        named[t] = (struct named){problem->tables[t].name, t};
    qsort(named, n, sizeof(*named), compare_named);
    while (i < n && strcmp(named[i - 1].name, named[i].name) != 0)
        i++;
    if (i < n)
        rc =
            err_input(err, "tables[%zu] and tables[%zu] are both named '%.80s'",
                      named[i - 1].idx, named[i].idx, named[i].name);
    mem_free(named);
    return rc;
}

/* Returns true if a bandwidth is legal. 0 means that the user set no
 * bandwidth. */
static bool is_bandwidth(double gbps)
{
    return gbps == 0 || (gbps >= CLUSTER_MIN_GBPS && gbps <= CLUSTER_MAX_GBPS);
}

static int check_problem(const struct problem *problem, struct err *err)
{
    if (!problem->cluster.n_devices)
        return err_input(err, "the cluster has no GPUs");
    if (!problem->cluster.devices_per_host)
        return err_input(err, "the cluster has no GPUs per host");
    if (cluster_check_hosts(&problem->cluster, err))
        return -1;
    if (!is_bandwidth(problem->cluster.intra_gbps) ||
        !is_bandwidth(problem->cluster.inter_gbps))
        return err_input(
            err, "a bandwidth of the cluster is outside %g to %.17g GB/s",
            CLUSTER_MIN_GBPS, CLUSTER_MAX_GBPS);
    if (!problem->batch)
        return err_input(err, "the batch is empty");
    if (!problem->n_tables)
        return err_input(err, "the plan has no tables");
    for (size_t i = 0; i < problem->n_tables; i++)
        if (check_table(problem, i, err))
            return -1;
    if (problem_n_groups(problem) > 1 && sharding_groups_judge(problem, err))
        return -1;
    if (tier_check_problem(problem, err))
        return -1;
    return check_unique_names(problem, err);
}

/* Checks each shard alone: its table and its device exist, and the shard is not
 * empty. */
static int check_shards(const struct plan *plan, struct err *err)
{
    const struct problem *problem = &plan->problem;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table;

        if (shard->table >= problem->n_tables)
            return err_input(
                err, "shards[%zu].table is %u, but there are %zu tables", i,
                shard->table, problem->n_tables);
        table = &problem->tables[shard->table];
        if (shard->device >= problem->cluster.n_devices)
            return err_input(err,
                             "shards[%zu].device is %u, but there are %u GPUs",
                             i, shard->device, problem->cluster.n_devices);
        if (shard->row_begin >= shard->row_end ||
            shard->row_end > table->num_embeddings)
            return err_input(err,
                             "shards[%zu] holds rows %" PRIu64 " to %" PRIu64
                             " of table '%.80s', which has %" PRIu64,
                             i, shard->row_begin, shard->row_end, table->name,
                             table->num_embeddings);
        if (shard->col_begin >= shard->col_end || shard->col_end > table->dim)
            return err_input(err,
                             "shards[%zu] holds columns %u to %u of table "
                             "'%.80s', which has %u",
                             i, shard->col_begin, shard->col_end, table->name,
                             table->dim);
    }
    return 0;
}

static int compare_pieces(const void *left, const void *right)
{
    const struct shard *a = *(const struct shard *const *)left;
    const struct shard *b = *(const struct shard *const *)right;
    const int c = shard_compare(a, b);

    return c ? c : (a > b) - (a < b);
}

/* Checks the shards of each table. pieces[n_shards] are all shards of the plan,
 * sorted. */
static int check_tables(const struct plan *plan,
                        const struct shard *const *pieces, struct err *err)
{
    size_t n_left = plan->n_shards;

    for (size_t t = 0; t < plan->problem.n_tables; t++) {
        struct judged judged = {plan, &plan->problem.tables[t], pieces, 0};

        while (judged.n < n_left && pieces[judged.n]->table == t)
            judged.n++;
        if (!judged.n)
            return err_input(err, "table '%.80s' has no shards",
                             judged.table->name);
        if (judge_pieces(&judged, err) || tier_check_pieces(&judged, err))
            return -1;
        pieces += judged.n;
        n_left -= judged.n;
    }
    return 0;
}

/* Checks that all tables of a group are on one device. The caller has checked
 * that each of these tables is on a single device. */
static int check_groups(const struct plan *plan,
                        const struct shard *const *pieces, struct err *err)
{
    const struct table *tables = plan->problem.tables;
    struct named *members = mem_alloc(plan->n_shards, sizeof(*members));
    size_t n_members = 0;
    int rc = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        if (tables[pieces[i]->table].group)
            members[n_members++] =
                (struct named){tables[pieces[i]->table].group, i};
    qsort(members, n_members, sizeof(*members), compare_named);
    for (size_t i = 1; i < n_members && !rc; i++) {
        const struct shard *a = pieces[members[i - 1].idx];
        const struct shard *b = pieces[members[i].idx];

        if (!strcmp(members[i - 1].name, members[i].name) &&
            a->device != b->device)
            rc = err_input(err,
                           "tables '%.80s' and '%.80s' of group '%.80s' are on "
                           "GPUs %u and %u",
                           tables[a->table].name, tables[b->table].name,
                           members[i].name, a->device, b->device);
    }
    mem_free(members);
    return rc;
}

/* Checks the rules of the plan's target. pieces[n_shards] are all shards of the
 * plan, sorted. */
static int check_target(const struct plan *plan,
                        const struct shard *const *pieces, struct err *err)
{
    struct plan sorted = *plan;
    int rc;

    if (plan->problem.target == TARGET_ANY)
        return 0;
    sorted.shards = mem_alloc(plan->n_shards, sizeof(*sorted.shards));
    for (size_t i = 0; i < plan->n_shards; i++)
        sorted.shards[i] = *pieces[i];
    rc = target_check(&sorted, err);
    mem_free(sorted.shards);
    return rc;
}

/* --- costs --- */

/* Checks the costs of a device. A plan has costs either for all devices or for
 * no device. A part of a cost may be negative, because a neural net may predict
 * negative times, but not below minus the plan's total. */
static int check_device_cost(const struct plan *plan, uint32_t r,
                             struct err *err)
{
    const struct device_cost *device = &plan->devices[r];
    double parts[] = {device->compute_ms, device->bwd_comm_ms,
                      device->fwd_comm_ms};
    double sum = parts[0] + parts[1] + parts[2];

    if (isnan(plan->total_ms)) {
        /* fmin is NAN only if both of its arguments are NAN */
        if (isnan(fmin(fmin(parts[0], parts[1]),
                       fmin(parts[2], device->total_ms))))
            return 0;
        return err_input(err, "GPU %u has a cost, but the plan has no total",
                         r);
    }
    if (isnan(sum) || isnan(device->total_ms))
        return err_input(err, "GPU %u has no cost, but the plan has a total",
                         r);
    for (size_t i = 0; i < 3; i++)
        if (!isfinite(parts[i]) || parts[i] < -plan->total_ms)
            return err_input(err, "GPU %u: a cost of %g ms is not a valid time",
                             r, parts[i]);
    if (!(fabs(sum - device->total_ms) <= COST_TOLERANCE * fabs(sum)))
        return err_input(
            err,
            "GPU %u: its total is %.9g ms, but its parts add up to %.9g ms", r,
            device->total_ms, sum);
    return 0;
}

static int check_costs(const struct plan *plan, struct err *err)
{
    double slowest = -INFINITY;

    /* If the plan has shard_ms or bound_ms, they must be finite, too. */
    for (size_t i = 0; plan->shard_ms && i < plan->n_shards; i++)
        if (plan->shard_ms[i] < 0 || isinf(plan->shard_ms[i]))
            return err_input(err,
                             "shards[%zu]: a cost of %g ms is not a valid time",
                             i, plan->shard_ms[i]);
    if (plan->bound_ms < 0 || isinf(plan->bound_ms))
        return err_input(err, "the lower bound of %g ms is not a valid time",
                         plan->bound_ms);
    if (!plan->devices)
        return 0;
    if (isinf(plan->total_ms) || plan->total_ms < 0)
        return err_input(err, "the plan's total of %g ms is not a valid time",
                         plan->total_ms);
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++) {
        if (check_device_cost(plan, r, err))
            return -1;
        slowest = fmax(slowest, plan->devices[r].total_ms);
    }
    if (isnan(plan->total_ms))
        return 0;
    if (fabs(slowest - plan->total_ms) > COST_TOLERANCE * fabs(slowest))
        return err_input(err,
                         "the plan's total is %.9g ms, but its slowest GPU "
                         "takes %.9g ms",
                         plan->total_ms, slowest);
    if (plan->bound_ms > plan->total_ms * (1 + COST_TOLERANCE))
        return err_input(
            err,
            "the lower bound of %.9g ms is above the plan's total of %.9g ms",
            plan->bound_ms, plan->total_ms);
    return 0;
}

int plan_check(const struct plan *plan, struct err *err)
{
    const struct shard **pieces;
    int rc;

    if (check_problem(&plan->problem, err) || check_shards(plan, err))
        return -1;
    pieces = mem_alloc(plan->n_shards, sizeof(struct shard *));
    for (size_t i = 0; i < plan->n_shards; i++)
        pieces[i] = &plan->shards[i];
    qsort(pieces, plan->n_shards, sizeof(struct shard *), compare_pieces);
    rc = check_tables(plan, pieces, err) || check_groups(plan, pieces, err) ||
         check_target(plan, pieces, err) || memory_check(plan, pieces, err) ||
         check_costs(plan, err);
    mem_free(pieces);
    return rc ? -1 : 0;
}
