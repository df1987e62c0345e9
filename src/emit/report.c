/* SPDX-License-Identifier: MIT */
#include "emit/report.h"

#include "base/text.h"
#include "core/host.h"
#include "core/sharding_groups.h"
#include "emit/formats.h"
#include "emit/report_dense.h"
#include "emit/report_parts.h"
#include "emit/tiers_line.h"
#include "emit/wire_line.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- the bottleneck --- */

/* --- the first lines --- */

static void print_search(const struct plan *plan, struct buf *out)
{
    if (!plan->search) {
        buf_printf(out, "search  none: the plan was made by hand\n");
        return;
    }
    buf_printf(out, "search  %s, seed %" PRIu64 ", %" PRIu64 " evaluations",
               plan->search, plan->seed, plan->n_evaluations);
    if (plan->stopped && text_which("done|budget", plan->stopped) < 0)
        buf_printf(out, ", stopped early (%s)", plan->stopped);
    buf_printf(out, "\n");
}

static void print_error(const char *what, const struct cost_error *error,
                        struct buf *out)
{
    if (!(error->frac > 0))
        return;
    buf_printf(out, "\n        %s within %.0f %%", what, 100 * error->frac);
    if (error->ground)
        buf_printf(out, ": nine in ten of %s", error->ground);
}

static void print_cost(const struct plan *plan, struct buf *out)
{
    const struct cost_source *cost = &plan->cost;

    buf_printf(out, "cost    %s %s, %s", cost->name, cost->hash,
               cost_basis_names[cost->basis]);
    if (cost->device)
        buf_printf(out, " on %s", cost->device);
    if (cost->comm)
        buf_printf(out, "\n        communication: %s", cost->comm);
    print_error("look-ups", &cost->lookup_error, out);
    print_error("exchanges", &cost->exchange_error, out);
    if (emit_has_wire_line(plan)) {
        buf_printf(out, "\n        ");
        emit_wire_line(plan, out);
    }
    buf_printf(out, "\n");
    cost_print_outside(cost, out);
}

/* Prints the rate at which data must be fed to the job at the predicted step
 * time. The data are counted once, before copies of them are sent to several
 * pieces. */
static void print_feed(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct problem *problem = &plan->problem;
    const uint32_t per_host = sharding_groups_cluster(problem).devices_per_host;
    const double share = (double)per_host / report->n_devices;
    /* steps per second, times the fraction of the data that one host gets */
    const double steps = share * 1000 / plan_step(plan).ms;
    struct problem fed = *problem;
    double ids = 0, bags = 0;

    /* feeding comes before the deduplication of ids */
    if (fed.job.dedup == DEDUP_IDS)
        fed.job.dedup = DEDUP_NONE;
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        const struct shard whole = shard_whole(problem, t, 0);

        ids += shard_lookups(&fed, &whole);
        bags += shard_bags(&fed, &whole);
    }
    buf_printf(
        out,
        "feed    %.3g ids, %.3g GB a second to each host, for the tables "
        "alone\n",
        ids * steps,
        1e-9 * steps * (PROBLEM_ID_BYTES * ids + PROBLEM_LENGTH_BYTES * bags));
}

static void print_rivals(const struct report *report, struct buf *out)
{
    for (size_t i = 0; i < report->options.n_rivals; i++) {
        const struct compare_entry *rival = &report->options.rivals[i];
        const double more = rival->ratio - 1;

        buf_printf(out, "%s  %s: ", i ? "      " : "rivals", rival->planner);
        if (!isfinite(more)) {
            buf_printf(out, "%s\n",
                       report->plan->total_ms > 0 ? "no plan"
                                                  : "no step to compare");
            continue;
        }
        buf_printf(out, "%.3f ms, %.1f %%", rival->step.priced.total_ms,
                   100 * fabs(more));
        if (!isnan(rival->gain_error_frac))
            buf_printf(out, " +-%.0f %%", 100 * rival->gain_error_frac);
        buf_printf(out, " %s\n", more < 0 ? "less" : "more");
    }
}

/* Prints "80.0 GiB", or "40.0 GiB to 80.0 GiB" if sizes differ. */
static void print_sizes(const uint64_t *bytes, uint32_t n, struct buf *out)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (uint32_t r = 0; r < n; r++) {
        least = min_u64(least, bytes[r]);
        most = max_u64(most, bytes[r]);
    }
    if (least != most)
        buf_printf(out, "%s to ", TEXT_BYTES(least));
    buf_printf(out, "%s", TEXT_BYTES(most));
}

static void print_memory(const struct report *report, struct buf *out)
{
    const struct cluster *cluster = &report->plan->problem.cluster;
    const uint32_t r = plan_fullest(report->plan);
    const struct memory_items *memory = &report->devices[r].cost.memory;
    const unsigned most = memory_largest(memory);
    bool has_reserve = false;

    for (uint32_t d = 0; d < cluster->n_devices; d++)
        has_reserve |= cluster->reserve_bytes[d] > 0;
    buf_printf(out, "memory  fits: GPU %u is the fullest, %.1f %% of %s", r,
               100 * plan_used_frac(report->plan, r),
               TEXT_BYTES(cluster->memory_bytes[r]));
    buf_printf(out, ", %s of it %s\n", TEXT_BYTES(memory->item[most]),
               memory_item_names[most]);
    if (cluster_is_even(cluster) && !has_reserve)
        return;
    buf_printf(out, "        ");
    print_sizes(cluster->memory_bytes, cluster->n_devices, out);
    buf_printf(out, " a GPU");
    if (has_reserve) {
        buf_printf(out, ", ");
        print_sizes(cluster->reserve_bytes, cluster->n_devices, out);
        buf_printf(out, " of it reserved");
    }
    if (cluster->nccl_bytes)
        buf_printf(out, ", %s of that for NCCL",
                   TEXT_BYTES(cluster->nccl_bytes));
    buf_printf(out, "\n");
}

/* Prints the groups of the plan, or the gain of groups for a plan of one
 * group. */
static void print_groups(const struct report *report, struct buf *out)
{
    const uint32_t n = problem_n_groups(&report->plan->problem);

    if (n > 1) {
        buf_printf(out, "groups  ");
        emit_groups_line(report->plan, out);
        buf_printf(out, "\n        ");
        emit_groups_training(n, out);
        buf_printf(out, "\n        ");
        emit_groups_ranks(report->plan, out);
        buf_printf(out, "\n");
    } else if (report->options.groups) {
        buf_printf(out, "groups  ");
        emit_groups_estimate(report->options.groups, out);
        buf_printf(out, "\n");
    }
}

static void print_head(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct problem *problem = &plan->problem;
    const struct cluster whole = sharding_groups_cluster(problem);

    report_step(plan, 3, out);
    buf_printf(out, "\n");
    report_job(plan, out);
    print_rivals(report, out);
    report_bound(plan, 3, out);
    emit_tiers_line(plan, "host    ", out);
    report_other_tables(plan, "busy    ", out);
    report_slow_gpus(plan, "slow    ", out);
    print_memory(report, out);
    report_bottleneck(report, out);
    buf_printf(out, "plan    %zu table%s in %zu shard%s on ", problem->n_tables,
               problem->n_tables == 1 ? "" : "s", plan->n_shards,
               plan->n_shards == 1 ? "" : "s");
    cluster_describe(&whole, out);
    buf_printf(out, ", global batch %" PRIu64 "\n",
               problem_all_samples(problem));
    print_groups(report, out);
    print_search(plan, out);
    print_cost(plan, out);
    if (plan->total_ms > 0)
        print_feed(report, out);
}

/* Prints notes about assumptions and limits that make the predicted figures
 * less certain. */
static void note_figures(const struct report *report, struct buf *notes)
{
    const struct plan *plan = report->plan;
    size_t n_assumed = 0;

    for (size_t i = 0; i < plan->problem.n_tables; i++)
        n_assumed += plan->problem.tables[i].skew_assumed;
    if (n_assumed)
        buf_printf(notes,
                   "assumed access skew: Zipf %g, as that of %zu of %zu tables "
                   "is not given\n",
                   DEFAULT_ZIPF_ALPHA, n_assumed, plan->problem.n_tables);
    if (plan->n_floored)
        buf_printf(notes,
                   "note    %u of %u predictions were raised to the physical "
                   "floor\n",
                   plan->n_floored, report->n_devices);
    if (plan->problem.memory_model == MEMORY_WEIGHTS)
        buf_printf(notes, "note    memory counts weights alone\n");
    if (report->options.plain_ms > 0 &&
        report->options.plain_ms < plan->total_ms)
        buf_printf(notes,
                   "note    de-duplication costs more than it saves here: "
                   "without it the step takes %.3f ms\n",
                   report->options.plain_ms);
}

/* Prints a note about a hot row block on the GPU that is ready last: the block
 * whose lookups exceed the mean of uniform rows most. TorchRec's formulas do
 * not model hot rows. */
static void note_hot_block(const struct report *report, struct buf *notes)
{
    const struct plan *plan = report->plan;
    struct problem even = plan->problem;
    double most = 0, ratio = 1;
    const char *name = NULL;

    even.hot = NULL;
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const double lookups = shard_lookups(&plan->problem, shard);
        const double mean = shard_lookups(&even, shard);

        if (shard->device != report->bottleneck.gpu || lookups - mean <= most)
            continue;
        most = lookups - mean;
        ratio = lookups / mean;
        name = even.tables[shard->table].name;
    }
    if (ratio >= 1.01 && strncmp(plan->cost.name, "torchrec", 8) != 0)
        buf_printf(notes,
                   "note    GPU %u, ready last, has a hot row block of table "
                   "'%.40s', with %.2f times the mean look-ups\n",
                   report->bottleneck.gpu, name, ratio);
}

/* Prints notes about differences between training a sharded table and training
 * an unsharded table in the frameworks. */
static void note_training(const struct plan *plan, struct buf *notes)
{
    enum dense_optimizer dense = plan->problem.dense_optimizer;
    bool is_counted =
        dense != DENSE_AS_TABLE && plan->problem.memory_model == MEMORY_FULL;
    size_t n_cut = 0, n_replicated = 0;

    for (size_t i = 0; i < plan->n_shards; i = emit_shards_end(plan, i)) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &plan->problem.tables[shard->table];

        n_replicated += shard_is_replica(shard->kind);
        n_cut += shard_cuts_columns(shard->kind) &&
                 table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
    }
    if (n_cut)
        buf_printf(notes,
                   "note    row-wise Adagrad keeps a mean for each column "
                   "piece of a row: %zu table%s so cut\n",
                   n_cut, n_cut == 1 ? " is" : "s are");
    if (n_replicated)
        buf_printf(notes,
                   "note    the job's dense optimizer%s%s%s updates the %zu "
                   "replicated table%s\n",
                   is_counted ? ", counted as " : "",
                   is_counted ? dense_optimizer_names[dense] : "",
                   is_counted ? "," : "", n_replicated,
                   n_replicated == 1 ? "" : "s");
}

void emit_report(const struct plan *plan, const struct report_options *options,
                 struct buf *out)
{
    struct report report;

    report_init(&report, plan, options);
    print_head(&report, out);
    note_figures(&report, out);
    note_hot_block(&report, out);
    note_training(plan, out);
    report_phases(&report, out);
    report_memory(&report, out);
    report_dense(plan, out);
    report_tables(&report, out);
    report_release(&report);
}
