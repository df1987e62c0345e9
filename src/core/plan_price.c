/* SPDX-License-Identifier: MIT */
#include "core/plan_price.h"

#include "core/cache_use.h"
#include "core/cluster.h"
#include "core/plan_memory.h"
#include "core/sharding_groups.h"

/* Largest share by which two totals differ that count as equal. It covers the
 * rounding of totals in files. */
#define SAME_FRAC 1e-9

static int check_finite(const struct plan *plan, const struct what_if *what_if,
                        struct err *err)
{
    const struct oracle *oracle = what_if->oracle;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        if (!isfinite(plan->devices[r].total_ms))
            return err_input(err,
                             "cost model '%s' gives no finite cost for GPU %u",
                             oracle->cost.name, r);
    for (size_t i = 0; i < plan->n_shards; i++) {
        double sum = plan->shard_ms[i];

        for (uint32_t w = 0; w < oracle->width; w++)
            sum += what_if->vectors[i * oracle->width + w];
        if (!isfinite(sum))
            return err_input(
                err, "cost model '%s' gives no finite cost for table '%s'",
                oracle->cost.name,
                plan->problem.tables[plan->shards[i].table].name);
    }
    return 0;
}

/* Returns true if the piece belongs to a cut of the rows over all devices, or
 * to a cut over one host. In the second case, the piece before it in the same
 * cut must be on the same host. */
static bool is_cut_by_ranks(const struct plan *plan, size_t shard_idx)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const struct shard *shard = &plan->shards[shard_idx];
    const struct shard *before = shard_idx ? shard - 1 : shard;
    uint32_t n_ranks = shard_row_ranks(&plan->problem, shard);

    if (n_ranks == cluster->n_devices)
        return true;
    return n_ranks && (before->table != shard->table ||
                       before->col_begin != shard->col_begin ||
                       before->device / n_ranks == shard->device / n_ranks);
}

/* Checks that the oracle can price each piece. */
static int check_pieces(const struct plan *plan, const struct oracle *oracle,
                        struct err *err)
{
    const struct cluster *cluster = &plan->problem.cluster;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const enum shard_kind kind = plan->shards[i].kind;
        const char *name = plan->problem.tables[plan->shards[i].table].name;

        if (!(kind & oracle->kinds))
            return err_input(
                err, "cost model '%s' cannot price %s shards (table '%s')",
                oracle->cost.name, shard_kind_name(kind), name);
        if (plan->shards[i].tier != TIER_HBM && !oracle->prices_tiers)
            return err_input(
                err,
                "cost model '%s' cannot price tables in host memory "
                "(table '%s', tier '%s')",
                oracle->cost.name, name, tier_names[plan->shards[i].tier]);
        if (oracle->row_cut == ROW_CUT_RANKS && shard_cuts_rows(kind) &&
            !is_cut_by_ranks(plan, i))
            return err_input(
                err,
                "cost model '%s' prices row cuts only in equal blocks over all "
                "%u GPUs or the %u of one %s (table '%s')",
                oracle->cost.name, cluster->n_devices, cluster_group(cluster),
                cluster_group_name(cluster), name);
    }
    return 0;
}

static void add_up(struct plan *plan, const struct what_if *what_if)
{
    const int32_t floor_lane = what_if->oracle->floor_lane;
    const double *sums = what_if->sums;

    plan->n_floored = 0;
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++) {
        struct device_cost *device = &plan->devices[r];

        device->compute_ms = what_if->compute_ms[r];
        device->bwd_comm_ms = what_if->bwd_comm_ms[r];
        device->fwd_comm_ms = what_if->fwd_comm_ms[r];
        device->total_ms =
            device->compute_ms + device->bwd_comm_ms + device->fwd_comm_ms;
        plan->n_floored += floor_lane >= 0 && sums[floor_lane] > 0 &&
                           device->compute_ms <= sums[floor_lane];
        sums += what_if->oracle->width;
    }
}

/* Fills parts_ms and alone_ms of each device, and exposed_ms of the plan. */
static void split_step(struct plan *plan, const struct what_if *what_if)
{
    const struct oracle *oracle = what_if->oracle;
    const uint32_t n_devices = plan->problem.cluster.n_devices;
    const double idle[1][N_PHASES] = {0};
    double idle_ms;
    double(*phases_ms)[N_PHASES];

    for (uint32_t r = 0; r < n_devices; r++)
        plan->devices[r].alone_ms = NAN;
    for (unsigned p = 0; p < N_STEP_PARTS; p++) {
        plan->exposed_ms[p] = NAN;
        for (uint32_t r = 0; r < n_devices; r++)
            plan->devices[r].parts_ms[p] = NAN;
    }
    if (!oracle->step)
        return;
    idle_ms = step_of_ranks(oracle->step, 1, idle);
    phases_ms = mem_alloc(n_devices, sizeof(*phases_ms));
    oracle->ops->phases(oracle, what_if->sums, what_if->compute_ms, phases_ms);
    for (uint32_t r = 0; r < n_devices; r++) {
        const double(*alone)[N_PHASES] =
            (const double(*)[N_PHASES]) & phases_ms[r];

        step_parts(phases_ms[r], plan->devices[r].parts_ms);
        plan->devices[r].alone_ms =
            step_of_ranks(oracle->step, 1, alone) - idle_ms;
    }
    step_exposed(oracle->step, n_devices, (const double(*)[N_PHASES])phases_ms,
                 plan->exposed_ms);
    mem_free(phases_ms);
}

/* Relative errors of the time of tables in host memory. TIER_ERROR is the error
 * of the link and of the work on ids, which no model measured. fill_errors[]
 * are the errors of the fills of caches, by the basis of their misses. Plans by
 * laws that are off by an exponent of 0.1, or by reuse bins, were 11 to 49 %
 * off. */
#define TIER_ERROR 0.3
static const double fill_errors[N_CACHE_BASES] = {0.05, 0.15, 0.45};

/* Sets the error of the tiers of the device that takes longest. */
static void set_tier_error(struct plan *plan, const struct what_if *what_if)
{
    const struct oracle *oracle = what_if->oracle;
    struct cache_pools pools;
    struct pool_use *uses;
    enum cache_basis basis = CACHE_MEASURED;
    uint32_t slowest = 0;
    const double *lanes;
    double fill_ms, tier_ms;

    if (!oracle->prices_tiers || !(plan->total_ms > 0))
        return;
    for (uint32_t r = 1; r < plan->problem.cluster.n_devices; r++)
        if (plan->devices[r].compute_ms > plan->devices[slowest].compute_ms)
            slowest = r;
    cache_pools_init(&pools, plan);
    uses = mem_alloc(pools.n, sizeof(*uses));
    pools_use(plan, &pools, oracle->curves, uses);
    for (size_t p = 0; p < pools.n; p++)
        if (pools.pools[p].device == slowest && uses[p].basis > basis)
            basis = uses[p].basis;
    mem_free(uses);
    cache_pools_release(&pools);
    lanes = what_if->sums + slowest * (size_t)oracle->width + oracle->tier_lane;
    fill_ms = 2 * lanes[ORACLE_TIER_MISSED] / (oracle->link_gbps * 1e6);
    tier_ms = fill_ms + lanes[ORACLE_TIER_IDS] + lanes[ORACLE_TIER_FORWARD] +
              lanes[ORACLE_TIER_BACKWARD];
    if (!(tier_ms > 0))
        return;
    plan->cost.tier_error = (struct cost_error){
        hypot(TIER_ERROR * tier_ms, fill_errors[basis] * fill_ms) /
            plan->total_ms,
        fill_ms > 0 ? cache_basis_names[basis] : "assumed"};
}

int plan_price(struct plan *plan, const struct oracle *oracle,
               struct arena *arena, struct err *err)
{
    const double before_ms = plan->total_ms;
    struct what_if what_if;
    int rc;

    if (check_pieces(plan, oracle, err))
        return -1;
    plan->devices =
        ARENA_NEW(arena, struct device_cost, plan->problem.cluster.n_devices);
    plan->shard_ms = ARENA_NEW(arena, double, plan->n_shards);
    /* initialised to price the plan without an edit */
    what_if_init(&what_if, plan, oracle);
    plan->total_ms = what_if_step(&what_if, &(struct edit){0});
    plan->bound_ms = NAN;
    if (!(fabs(plan->total_ms - before_ms) <= SAME_FRAC * before_ms))
        plan->wire = (struct wire_regret){0};
    oracle->ops->compute(oracle, what_if.vectors, plan->n_shards,
                         plan->shard_ms);
    plan_count_memory(plan);
    plan_fill_caches(plan, arena);
    if (oracle->prices_tiers)
        plan_use_caches(plan, oracle->curves);
    add_up(plan, &what_if);
    split_step(plan, &what_if);
    /* A neural net may predict a negative time for a small shard. */
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shard_ms[i] < 0 && isfinite(plan->shard_ms[i]))
            plan->shard_ms[i] = 0;
    plan->cost = oracle->cost;
    set_tier_error(plan, &what_if);
    plan->sync = (struct sync_cost){0};
    if (oracle->ops->sync_ms)
        plan->sync = (struct sync_cost){
            plan_sync_bytes(plan), oracle->ops->sync_ms(oracle, what_if.sums)};
    plan->dense = oracle->dense ? *oracle->dense : (struct dense_cost){0};
    if (oracle->ops->judge)
        plan->cost.n_outside = oracle->ops->judge(
            oracle, plan->shards, plan->n_shards, what_if.compute_ms,
            &plan->cost.lookup_error, &plan->cost.outside, arena);
    rc = check_finite(plan, &what_if, err);
    what_if_release(&what_if);
    return rc;
}

int plan_price_edit(struct plan *out, const struct what_if *what_if,
                    const struct edit *edit, struct arena *arena,
                    struct err *err)
{
    const struct plan *plan = what_if->plan;
    bool *is_gone = mem_alloc(plan->n_shards, sizeof(*is_gone));

    for (size_t i = 0; i < edit->n_gone; i++)
        is_gone[edit->gone[i]] = true;
    *out = *plan;
    out->shard_ms = NULL;
    out->n_shards = 0;
    out->shards = ARENA_NEW(arena, struct shard, plan->n_shards + edit->n_come);
    for (size_t i = 0; i < plan->n_shards; i++)
        if (!is_gone[i])
            out->shards[out->n_shards++] = plan->shards[i];
    for (size_t i = 0; i < edit->n_come; i++)
        out->shards[out->n_shards++] = edit->come[i];
    mem_free(is_gone);
    plan_derive_kinds(out);
    return plan_price(out, what_if->oracle, arena, err);
}
