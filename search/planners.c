/* SPDX-License-Identifier: MIT */
/* The baselines with which the published work compares itself. Four of them are
 * greedy: they sort the tables by one figure, largest first. Each table goes to
 * the device with the least sum of that figure, among the devices that have
 * memory for it. The baselines use no cost model. */
#include "search/planners.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/ranked.h"
#include "base/text.h"
#include "core/memory.h"
#include "core/plan_price.h"
#include "search/checked_oracle.h"
#include "search/planner_hugectr.h"
#include "search/planner_offload.h"
#include "search/planner_torchrec.h"
#include "search/units.h"

#include <math.h>
#include <stdlib.h>

static double figure_dim(const struct table *table)
{
    return table->dim;
}

static double figure_lookup(const struct table *table)
{
    return table->dim * table->pooling_factor;
}

static double figure_size(const struct table *table)
{
    return (double)table->num_embeddings * table->dim *
           precision_bytes(table->precision);
}

static double figure_size_lookup(const struct table *table)
{
    return figure_lookup(table) * log10((double)table->num_embeddings);
}

/* A unit that is placed as a whole, and its sort keys. */
struct baseline_entry {
    const struct unit *unit;
    double figure;
    uint64_t bytes;
};

/* Sorts units by largest figure, then by largest size, then by last position in
 * the input. */
static int compare_entries(const void *left, const void *right)
{
    const struct baseline_entry *a = left, *b = right;
    uint32_t first_a = a->unit->tables[0], first_b = b->unit->tables[0];

    if (a->figure != b->figure)
        return a->figure > b->figure ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (first_a < first_b) - (first_a > first_b);
}

static int list_entries(struct baseline_entry *entries,
                        const struct search_space *space,
                        const struct placing *placing, struct err *err)
{
    const struct contender *by = placing->self;

    for (uint32_t u = 0; u < space->n_units; u++) {
        struct baseline_entry *entry = &entries[u];

        entry->unit = &space->units[u];
        for (uint32_t k = 0; k < entry->unit->n_tables; k++) {
            uint32_t t = entry->unit->tables[k];
            const struct table *table = &placing->problem->tables[t];
            struct shard whole = shard_whole(placing->problem, t, 0);

            if (!(placing_kinds(placing, t) & SHARD_TABLE))
                return err_set(err, ERR_NO_PLAN,
                               "table '%s' may not be placed whole, but the "
                               "baseline planners do not cut tables",
                               table->name);
            entry->bytes = saturating_add(
                entry->bytes, shard_memory(placing->problem, &whole).total);
            entry->figure += by->figure ? by->figure(table) : 0;
        }
    }
    if (by->figure)
        qsort(entries, space->n_units, sizeof(*entries), compare_entries);
    return 0;
}

/* Returns whether device `a` is preferred to the earlier device `b`. Device `a`
 * is preferred if its sum is smaller, or if the sums are equal and `a` has less
 * memory in use. */
static bool goes_before(const struct placing *placing, uint32_t a, uint32_t b)
{
    const struct filling *fillings = placing->devices;
    const uint64_t *room = placing->room_bytes;

    return fillings[a].load < fillings[b].load ||
           (fillings[a].load == fillings[b].load &&
            room[a] - fillings[a].free_bytes <
                room[b] - fillings[b].free_bytes);
}

/* Places each unit on the best device that has room for it. The random baseline
 * draws one of the devices with room, all with equal probability. In contrast,
 * the published random baseline ignores memory. */
static int baseline(struct placing *placing, struct err *err)
{
    struct plan *plan = placing->plan;
    struct arena *scratch = &placing->scratch;
    struct baseline_entry *entries =
        ARENA_NEW(scratch, struct baseline_entry, placing->n_tables);
    char need[TEXT_BYTES_MAX], most[TEXT_BYTES_MAX];
    uint32_t *roomy = ARENA_NEW(scratch, uint32_t, placing->n_devices);
    struct search_space space;
    struct rng rng;

    if (space_collect(&space, placing->problem, placing->inputs->oracle,
                      scratch, err) ||
        list_entries(entries, &space, placing, err))
        return -1;
    rng_init(&rng, placing->inputs->seed, 0);
    plan->seed = placing->inputs->seed;
    plan->shards = ARENA_NEW(placing->arena, struct shard, placing->n_tables);
    for (uint32_t u = 0; u < space.n_units; u++) {
        const struct unit *unit = entries[u].unit;
        uint64_t left = 0;
        uint32_t n = 0, best = 0;

        for (uint32_t r = 0; r < placing->n_devices; r++) {
            left = max_u64(left, placing->devices[r].free_bytes);
            if ((unit->pin < 0 || unit->pin == r) &&
                entries[u].bytes <= placing->devices[r].free_bytes) {
                if (n && goes_before(placing, r, roomy[best]))
                    best = n;
                roomy[n++] = r;
            }
        }
        if (!n)
            return err_set(
                err, ERR_NO_PLAN,
                "no plan was found: table '%s' needs %s, but no GPU that it "
                "may be on has that left (the emptiest has %s)",
                unit->first->name,
                text_from_bytes(need, (double)entries[u].bytes),
                text_from_bytes(most, (double)left));
        best = roomy[placing->self->figure ? best : rng_below(&rng, n)];
        placing->devices[best].load += entries[u].figure;
        placing->devices[best].free_bytes -= entries[u].bytes;
        for (uint32_t k = 0; k < unit->n_tables; k++)
            plan->shards[plan->n_shards++] =
                shard_whole(placing->problem, unit->tables[k], best);
    }
    return 0;
}

/* --- all planners --- */

/* Returns ERR_NO_PLAN if a table is pinned or in a group. */
static int check_constraints(const struct problem *problem, const char *author,
                             struct err *err)
{
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        if (table->device >= 0 || table->group)
            return err_set(err, ERR_NO_PLAN,
                           "no plan was found: table '%s' is %s, which %s does "
                           "not support",
                           table->name,
                           table->group ? "in a group" : "pinned to a GPU",
                           author);
    }
    return 0;
}

/* Returns ERR_NO_PLAN if a table may not be in the memory of GPUs, where the
 * other planners put all tables. */
static int check_tiers(const struct problem *problem, struct err *err)
{
    for (size_t t = 0; t < problem->n_tables; t++)
        if (!(problem->tables[t].tiers & 1u << TIER_HBM))
            return err_set(err, ERR_NO_PLAN,
                           "no plan was found: table '%s' may not be in the "
                           "memory of GPUs, where this planner puts all tables",
                           problem->tables[t].name);
    return 0;
}

bool contender_is_for(const struct contender *self,
                      const struct problem *problem)
{
    return !self->needs_tiers || problem->cluster.host_bytes;
}

int contender_place(struct plan *plan, const struct contender *self,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct err *err)
{
    const struct problem *problem = &plan->problem;
    const uint32_t n_devices = problem->cluster.n_devices;
    struct placing placing = {.self = self,
                              .inputs = inputs,
                              .problem = problem,
                              .plan = plan,
                              .arena = arena,
                              .n_tables = (uint32_t)problem->n_tables,
                              .n_devices = n_devices,
                              .least_load = INFINITY};
    struct arena *scratch = &placing.scratch;
    struct checked_oracle checked;
    int rc = -1;

    if (self->search != search_full && !self->needs_tiers &&
        check_tiers(problem, err))
        return -1;
    if (self->search == search_reference && inputs->reference)
        return search_reference(plan, inputs->reference, inputs->search, arena,
                                err) ||
                       plan_price(plan, inputs->oracle, arena, err)
                   ? -1
                   : 0;
    if (self->search)
        return self->search(plan, inputs->oracle, inputs->search, arena, err);
    checked_oracle_init(&checked, inputs->oracle);
    plan->search = arena_printf(
        arena, "%s:%s", self->author ? "rival" : "baseline", self->name);
    plan->stopped = "done";
    plan->seed = plan->n_evaluations = plan->n_shards = 0;
    placing.room_bytes = ARENA_NEW(scratch, uint64_t, n_devices);
    placing.devices = ARENA_NEW(scratch, struct filling, n_devices);
    placing.order = ARENA_NEW(scratch, struct ranked, placing.n_tables);
    problem_room_bytes(problem, placing.room_bytes);
    placing_begin(&placing);
    if (!(self->author && check_constraints(problem, self->author, err)) &&
        !(self->rule ? self->rule(&placing, err) : baseline(&placing, err)))
        rc = checked_oracle_finish(&checked, plan, arena, err);
    arena_release(scratch);
    return rc;
}

const struct contender search_contenders[] = {
    {"random", .figure = NULL},
    {"dim", .figure = figure_dim},
    {"lookup", .figure = figure_lookup},
    {"size", .figure = figure_size},
    {"size-lookup", .figure = figure_size_lookup},
    {"torchrec", .author = "TorchRec's planner", .rule = rival_torchrec},
    {"hugectr", .author = "HugeCTR's planner", .rule = rival_hugectr},
    {"host-large", .author = "moving the largest tables to the host",
     .rule = rival_host_large, .needs_tiers = true},
    {"cache-large", .author = "caching the largest tables",
     .rule = rival_cache_large, .needs_tiers = true},
    {"cache-all", .author = "caching all tables whole", .rule = rival_cache_all,
     .needs_tiers = true},
    {"cache-rows", .author = "caching all tables by rows",
     .rule = rival_cache_rows, .needs_tiers = true},
    {"scale-up", .author = "TorchRec's scale-up rule", .rule = rival_scale_up,
     .needs_tiers = true},
    {"reference", .search = search_reference},
    {"neuroshard", .search = search_full},
    {0},
};

int rival_ask(struct rival *rival, const struct contender *by,
              const struct problem *problem,
              const struct contender_inputs *inputs, struct arena *arena,
              struct err *err)
{
    const double start_ms = clock_ms();

    *rival = (struct rival){.by = by, .plan.problem = *problem};
    if (by->search != search_full) /* the others know no targets */
        rival->plan.problem.target = TARGET_ANY;
    if (!contender_place(&rival->plan, by, inputs, arena, err))
        return 0;
    if (err->code != ERR_NO_PLAN && err->code != ERR_USAGE)
        return -1;
    rival->plan.total_ms = INFINITY;
    rival->plan.search_ms = clock_ms() - start_ms;
    rival->why_not = arena_strdup(arena, err->msg);
    *err = (struct err){0};
    return 0;
}

/* Returns why a planner is not run, or NULL if it is. */
static const char *why_left_out(const struct contender *by,
                                const struct problem *problem, double end_ms)
{
    if (by->rule == rival_torchrec && problem->n_tables > RIVAL_MOST_TABLES)
        return "the list is too long for it";
    if (end_ms > 0 && clock_ms() >= end_ms)
        return "the time limit was reached";
    if (end_ms > 0 && interrupt_requested())
        return "an interrupt came first";
    return NULL;
}

int rivals_ask(struct rivals *rivals, const struct problem *problem,
               struct contender_inputs inputs, struct err *err)
{
    inputs.limit_proposals = 1 + RIVAL_EFFORT / problem->n_tables;
    for (size_t i = 0; i < N_RIVALS; i++) {
        struct rival *rival = &rivals->list[i];
        const struct contender *by = &search_contenders[i];
        const char *why_not = why_left_out(by, problem, inputs.end_ms);

        if (!contender_is_for(by, problem))
            *rival = (struct rival){.plan.total_ms = INFINITY};
        else if (why_not)
            *rival = (struct rival){
                .by = by,
                .plan = {.problem = *problem, .total_ms = INFINITY},
                .why_not = why_not};
        else if (rival_ask(rival, by, problem, &inputs, rivals->arena, err))
            return -1;
    }
    return 0;
}
