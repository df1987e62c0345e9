/* SPDX-License-Identifier: MIT */
#include "emit/report_parts.h"

#include "base/ranked.h"
#include "base/text.h"
#include "emit/formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *report_kinds(char buf[REPORT_KINDS_MAX],
                         const size_t n_shards[N_SHARD_KINDS])
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_SHARD_KINDS; i++)
        if (n_shards[i])
            used += (size_t)snprintf(buf + used, REPORT_KINDS_MAX - used,
                                     "%s%s %zu", used ? " " : "",
                                     shard_traits[i].initials, n_shards[i]);
    return buf;
}

double report_ready_ms(const struct report_device *device)
{
    return device->cost.compute_ms + device->cost.bwd_comm_ms;
}

/* A device waits from when it is ready (its backward is done) until the last
 * one is; a model of communication need not see it so, hence the limits. */
static void split_waiting(struct report *report)
{
    double last_ms = -INFINITY;

    for (uint32_t r = 0; r < report->n_devices; r++)
        last_ms = fmax(last_ms, report_ready_ms(&report->devices[r]));
    for (uint32_t r = 0; r < report->n_devices; r++) {
        struct report_device *device = &report->devices[r];
        double late_ms = last_ms - report_ready_ms(device);

        device->waiting_ms = fmax(fmin(late_ms, device->cost.fwd_comm_ms), 0);
        device->cost.fwd_comm_ms -= device->waiting_ms;
    }
}

static void average(struct report *report)
{
    struct report_device *mean = &report->mean;

    for (uint32_t r = 0; r < report->n_devices; r++) {
        const struct report_device *device = &report->devices[r];

        mean->cost.compute_ms += device->cost.compute_ms / report->n_devices;
        mean->cost.bwd_comm_ms += device->cost.bwd_comm_ms / report->n_devices;
        mean->waiting_ms += device->waiting_ms / report->n_devices;
        mean->cost.fwd_comm_ms += device->cost.fwd_comm_ms / report->n_devices;
        mean->cost.total_ms += device->cost.total_ms / report->n_devices;
    }
}

/* Of devices that wait for each other all have the same total. */
static void rank_devices(struct report *report)
{
    struct ranked *ranked = mem_alloc(report->n_devices, sizeof(*ranked));
    const bool waits = plan_has_parts(report->plan);

    for (uint32_t r = 0; r < report->n_devices; r++) {
        const struct report_device *device = &report->devices[r];

        ranked[r] = (struct ranked){
            -(waits ? report_ready_ms(device) : device->cost.total_ms), r};
    }
    ranked_sort(ranked, report->n_devices);
    for (uint32_t r = 0; r < report->n_devices; r++)
        report->slowest[r] = ranked[r].idx;
    mem_free(ranked);
}

void report_init(struct report *report, const struct plan *plan)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;

    *report = (struct report){
        .plan = plan,
        .n_devices = n_devices,
        .devices = mem_alloc(n_devices, sizeof(*report->devices)),
        .slowest = mem_alloc(n_devices, sizeof(*report->slowest)),
    };
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        report->devices[shard->device].n_shards[shard_kind_idx(shard->kind)]++;
    }
    for (uint32_t r = 0; r < n_devices; r++)
        report->devices[r].cost = plan->devices[r];
    split_waiting(report);
    average(report);
    rank_devices(report);
}

void report_release(struct report *report)
{
    mem_free(report->devices);
    mem_free(report->slowest);
    *report = (struct report){0};
}

static void print_search(const struct plan *plan, struct buf *out)
{
    if (!plan->search) {
        buf_printf(out, "search  none: the plan was made by hand\n");
        return;
    }
    buf_printf(out, "search  %s, seed %" PRIu64 ", %" PRIu64 " evaluations",
               plan->search, plan->seed, plan->n_evaluations);
    if (plan->stopped && strcmp(plan->stopped, "done") != 0 &&
        strcmp(plan->stopped, "budget") != 0)
        buf_printf(out, ", stopped early (%s)", plan->stopped);
    buf_printf(out, "\n");
}

static void print_error(const char *what, const struct cost_error *error,
                        struct buf *out)
{
    if (!(error->frac > 0))
        return;
    buf_printf(out, "\n        %s within %.0f %%", what, 100 * error->frac);
    if (error->of)
        buf_printf(out, ": nine in ten of %s", error->of);
}

static void print_cost(const struct cost_source *cost, struct buf *out)
{
    buf_printf(out, "cost    %s %s, %s", cost->name, cost->hash,
               cost_basis_names[cost->basis]);
    if (cost->device)
        buf_printf(out, " on %s", cost->device);
    if (cost->comm)
        buf_printf(out, "\n        communication: %s", cost->comm);
    print_error("look-ups", &cost->lookup_error, out);
    print_error("exchanges", &cost->exchange_error, out);
    buf_printf(out, "\n");
    report_outside(cost, out);
}

/* What a step of this time takes in, before pieces get copies of it. */
static void print_feed(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct problem *problem = &plan->problem;
    const uint32_t per_host = problem->cluster.devices_per_host;
    const double share = fmin(1, (double)per_host / report->n_devices);
    const double steps = share * 1000 / plan->total_ms; /* a second */
    struct problem fed = *problem;
    double ids = 0, bags = 0;

    if (fed.job.dedup == DEDUP_IDS) /* of what has been fed */
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

static void print_step(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct report_device *mean = &report->mean;
    const bool waits = plan_has_parts(plan); /* so all totals are the same */
    double compute_ms = 0;                   /* the most */

    for (uint32_t r = 0; r < report->n_devices; r++)
        compute_ms = fmax(compute_ms, report->devices[r].cost.compute_ms);
    buf_printf(out, "step    %.3f ms", plan->total_ms);
    report_error(plan, out);
    buf_printf(out, " (GPU %u)", report->slowest[0]);
    if (report->n_devices > 1 && mean->cost.total_ms > 0 &&
        mean->cost.compute_ms > 0) {
        buf_printf(out, ", max over mean");
        if (!waits)
            buf_printf(out, " %.3f,", plan->total_ms / mean->cost.total_ms);
        buf_printf(out, " of compute %.3f", compute_ms / mean->cost.compute_ms);
    }
    if (plan->bound_ms > 0)
        buf_printf(out, "; lower bound %.3f ms, gap %.1f %%", plan->bound_ms,
                   100 * (plan->total_ms / plan->bound_ms - 1));
    buf_printf(out, "\n");
    report_job(plan, out);
    if (plan->total_ms > 0)
        print_feed(report, out);
}

/* "80.0 GiB", or "40.0 GiB to 80.0 GiB" where they differ. */
static void print_sizes(const uint64_t *bytes, uint32_t n, struct buf *out)
{
    uint64_t least = UINT64_MAX, most = 0;
    char text[TEXT_BYTES_MAX];

    for (uint32_t r = 0; r < n; r++) {
        least = min_u64(least, bytes[r]);
        most = max_u64(most, bytes[r]);
    }
    if (least != most)
        buf_printf(out, "%s to ", text_from_bytes(text, (double)least));
    buf_printf(out, "%s", text_from_bytes(text, (double)most));
}

static void print_memory(const struct cluster *cluster, struct buf *out)
{
    char text[TEXT_BYTES_MAX];
    bool has_reserve = false;

    for (uint32_t r = 0; r < cluster->n_devices; r++)
        has_reserve |= cluster->reserve_bytes[r] > 0;
    if (cluster_is_even(cluster) && !has_reserve)
        return; /* the share of any GPU tells it */
    buf_printf(out, "memory  ");
    print_sizes(cluster->memory_bytes, cluster->n_devices, out);
    buf_printf(out, " a GPU");
    if (has_reserve) {
        buf_printf(out, ", ");
        print_sizes(cluster->reserve_bytes, cluster->n_devices, out);
        buf_printf(out, " of it reserved");
    }
    if (cluster->nccl_bytes)
        buf_printf(out, ", %s of that for NCCL",
                   text_from_bytes(text, (double)cluster->nccl_bytes));
    buf_printf(out, "\n");
}

static void print_head(const struct report *report, struct buf *out)
{
    const struct problem *problem = &report->plan->problem;

    buf_printf(out, "plan    %zu table%s in %zu shard%s on ", problem->n_tables,
               problem->n_tables == 1 ? "" : "s", report->plan->n_shards,
               report->plan->n_shards == 1 ? "" : "s");
    cluster_describe(&problem->cluster, out);
    buf_printf(out, ", global batch %" PRIu64 "\n", problem->batch);
    print_memory(&problem->cluster, out);
    print_search(report->plan, out);
    print_cost(&report->plan->cost, out);
    print_step(report, out);
}

/* What the reader must know to trust the figures. */
static void note_figures(const struct report *report, struct buf *notes)
{
    const struct plan *plan = report->plan;
    size_t n_assumed = 0;

    for (size_t i = 0; i < plan->problem.n_tables; i++)
        n_assumed += plan->problem.tables[i].skew_assumed;
    if (n_assumed)
        buf_printf(notes,
                   "note: the access skew of %zu of %zu tables is not given; "
                   "Zipf %g is assumed\n",
                   n_assumed, plan->problem.n_tables, DEFAULT_ZIPF_ALPHA);
    if (plan->n_floored)
        buf_printf(notes,
                   "note: %u of %u predictions were raised to the physical "
                   "floor\n",
                   plan->n_floored, report->n_devices);
    if (plan->problem.memory_model == MEMORY_WEIGHTS)
        buf_printf(notes, "note: memory counts weights alone\n");
}

/* The row block with most look-ups above those of even rows, on the GPU that is
 * ready last. TorchRec's formulas know no hot rows. */
static void note_hot_block(const struct report *report, struct buf *notes)
{
    const struct plan *plan = report->plan;
    struct problem even = plan->problem;
    double most = 0, ratio = 1;
    const char *name = NULL;
    uint32_t last = 0;

    even.hot = NULL;
    for (uint32_t r = 1; r < report->n_devices; r++)
        if (report_ready_ms(&report->devices[r]) >
            report_ready_ms(&report->devices[last]))
            last = r;
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const double lookups = shard_lookups(&plan->problem, shard);
        const double mean = shard_lookups(&even, shard);

        if (shard->device != last || lookups - mean <= most)
            continue;
        most = lookups - mean;
        ratio = lookups / mean;
        name = even.tables[shard->table].name;
    }
    if (ratio >= 1.01 && strncmp(plan->cost.name, "torchrec", 8) != 0)
        buf_printf(notes,
                   "note: GPU %u, ready last, has a hot row block of table "
                   "'%.40s', with %.2f times the mean look-ups\n",
                   last, name, ratio);
}

/* What frameworks train otherwise than the tables in one piece. */
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
                   "note: row-wise Adagrad keeps a mean for each column piece "
                   "of a row: %zu table%s so cut\n",
                   n_cut, n_cut == 1 ? " is" : "s are");
    if (n_replicated)
        buf_printf(notes,
                   "note: the job's dense optimizer%s%s%s updates the %zu "
                   "replicated table%s\n",
                   is_counted ? ", counted as " : "",
                   is_counted ? dense_optimizer_names[dense] : "",
                   is_counted ? "," : "", n_replicated,
                   n_replicated == 1 ? "" : "s");
}

void emit_report(const struct plan *plan, struct buf *out)
{
    struct report report;
    struct buf notes = {0};

    report_init(&report, plan);
    print_head(&report, out);
    report_devices(&report, out);
    report_phases(&report, out);
    report_slowest(&report, out);
    report_tables(&report, out);
    note_figures(&report, &notes);
    note_hot_block(&report, &notes);
    note_training(plan, &notes);
    if (notes.len)
        buf_printf(out, "\n%s", notes.data);
    buf_release(&notes);
    report_release(&report);
}
