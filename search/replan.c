/* SPDX-License-Identifier: MIT */
#include "search/movement.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/ranked.h"
#include "base/text.h"
#include "search/infeasible.h"
#include "search/temper.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The first temperature, as a share of the total: low, as the old plan was
 * good; it falls with each cycle, and is high again after so many. */
#define HOT_FRAC 0.01
#define REHEATING 0.5
#define N_REHEATINGS 3
/* All cycles together take this share of the effort asked for. Limits are back
 * where they were after so many. */
#define EFFORT_FRAC 0.8
#define N_CYCLES 12
#define N_OFFSETS 4
/* What is not better by so much is not worth any movement. */
#define WORTH_FRAC 1e-4
/* A total that is lower by so little is so by rounding: sums are added up in
 * another order, and what stands stays. */
#define ROUNDING_FRAC 1e-9

/* --- the front --- */

const struct front_point *front_within(const struct front *front,
                                       uint64_t limit_bytes)
{
    uint32_t i = 0;

    while (i < front->n && front->points[i].moved_bytes <= limit_bytes)
        i++;
    return i ? &front->points[i - 1] : NULL;
}

bool front_wants(const struct front *front, uint64_t moved_bytes,
                 double total_ms)
{
    const struct front_point *within = front_within(front, moved_bytes);

    return !within || total_ms < within->layout.total_ms * (1 - ROUNDING_FRAC);
}

/* The point's layout goes behind the others: its room is used again. */
static void drop(struct front *front, uint32_t i)
{
    struct front_point point = front->points[i];

    front->n--;
    memmove(&front->points[i], &front->points[i + 1],
            (front->n - i) * sizeof(point));
    front->points[front->n] = point;
}

static void drop_least_gain(struct front *front)
{
    const struct front_point *points = front->points;
    double least = INFINITY;
    uint32_t worst = 1;

    for (uint32_t i = 1; i + 1 < front->n; i++) {
        double gain = points[i - 1].layout.total_ms - points[i].layout.total_ms;

        if (gain < least) {
            least = gain;
            worst = i;
        }
    }
    drop(front, worst);
}

void front_add(struct front *front, uint64_t moved_bytes,
               const struct snapshot *layout)
{
    struct front_point point = front->points[front->n];
    uint32_t at = 0;

    snapshot_copy(&point.layout, layout);
    point.moved_bytes = moved_bytes;
    while (at < front->n && front->points[at].moved_bytes < moved_bytes)
        at++;
    memmove(&front->points[at + 1], &front->points[at],
            (front->n - at) * sizeof(point));
    front->points[at] = point;
    front->n++;
    while (at + 1 < front->n &&
           front->points[at + 1].layout.total_ms >= layout->total_ms)
        drop(front, at + 1);
    if (front->n > FRONT_MAX)
        drop_least_gain(front);
}

void front_thin(struct front *front, double gain_frac)
{
    for (uint32_t i = 1; i < front->n;)
        if (front->points[i].layout.total_ms <
            front->points[i - 1].layout.total_ms * (1 - gain_frac))
            i++;
        else
            drop(front, i);
}

void front_release(struct front *front)
{
    for (uint32_t i = 0; i <= FRONT_MAX; i++)
        snapshot_release(&front->points[i].layout);
    *front = (struct front){0};
}

/* --- what is found --- */

bool replan_offer_layout(struct replan *replan)
{
    const struct layout *layout = &replan->tryout.layout;
    struct snapshot *offered = &replan->offered;
    double total_ms;

    if (layout->excess > 0)
        return false;
    total_ms = layout_true_total(layout);
    replan->n_priced++;
    if (!isfinite(total_ms) ||
        !front_wants(&replan->front, layout->all_moved_bytes, total_ms))
        return false;
    snapshot_save(offered, layout);
    offered->total_ms = total_ms;
    front_add(&replan->front, layout->all_moved_bytes, offered);
    return true;
}

/* --- towards the old plan --- */

/* Prices a unit's way home, in ms a byte saved; false where it saves nothing,
 * or exceeds the memory. */
static bool price_way(struct replan *replan, uint32_t unit, double *price)
{
    struct tryout *tryout = &replan->tryout;
    const struct layout *layout = &tryout->layout;
    double total_ms;

    trial_clear(&tryout->trial);
    homes_propose(&tryout->trial, layout, unit);
    if (!tryout->trial.n_changes)
        return false;
    total_ms = tryout_price(tryout);
    if (!isfinite(total_ms) || tryout->trial.excess > layout->excess ||
        tryout->trial.all_moved_bytes >= layout->all_moved_bytes)
        return false;
    *price = (total_ms - layout->total_ms) /
             (double)(layout->all_moved_bytes - tryout->trial.all_moved_bytes);
    return true;
}

/* The cheaper half of the units goes home. Returns whether any did. */
static bool send_home(struct replan *replan, struct ranked *moved, uint32_t n)
{
    bool any = false;
    double price;

    ranked_sort(moved, n);
    for (uint32_t i = 0; i < (n + 1) / 2; i++) {
        if (!price_way(replan, moved[i].idx, &price))
            continue;
        layout_commit(&replan->tryout.layout, &replan->tryout.trial);
        (void)replan_offer_layout(replan);
        any = true;
    }
    return any;
}

void replan_lessen(struct replan *replan)
{
    struct ranked *moved = mem_alloc(replan->parts.n_units, sizeof(*moved));
    uint32_t n;

    do {
        n = 0;
        for (uint32_t u = 0; u < replan->parts.n_units; u++)
            if (price_way(replan, u, &moved[n].key))
                moved[n++].idx = u;
    } while (send_home(replan, moved, n));
    mem_free(moved);
}

/* The same of this, and where it was wanted of its way home. */
static void offer(struct replan *replan, const struct snapshot *snapshot)
{
    snapshot_load(snapshot, &replan->tryout.layout);
    if (replan_offer_layout(replan))
        replan_lessen(replan);
}

/* --- annealing --- */

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct replan *replan = ctx;
    double limit_ms = replan->options->time_limit_ms;

    (void)n_done;
    if (watch_is_bad(&replan->watch))
        return false;
    if (interrupt_requested())
        replan->stopped = "interrupt";
    else if (limit_ms > 0 && clock_ms() - replan->start_ms >= limit_ms)
        replan->stopped = "time";
    else
        return true;
    return false;
}

/* The first chain has no limit; those of the others fall by halves, from what
 * the cheapest layout moves to what has to move, and are a little lower in each
 * cycle. The last one looks for the least movement. */
static uint64_t limit_of(const struct replan *replan, unsigned chain,
                         unsigned cycle)
{
    const struct front *front = &replan->front;
    double halvings = chain - 1 + (double)(cycle % N_OFFSETS) / N_OFFSETS;
    uint64_t least = replan->least_bytes, first = least;
    uint64_t last = saturating_add(least, replan->homes.held_bytes);

    if (!chain)
        return NO_MOVE_LIMIT;
    if (front->n) {
        first = front->points[0].moved_bytes;
        last = front->points[front->n - 1].moved_bytes;
        least = first < least ? first : least;
    }
    if (chain + 1 == TEMPER_CHAINS)
        return least + (first - least) / 2;
    return least + (uint64_t)(exp2(-halvings) * (double)(last - least));
}

/* The cheapest that keeps the limit; or else, in turn, what stands and what
 * moves least. */
static const struct snapshot *start_of(const struct replan *replan,
                                       uint64_t limit_bytes, unsigned cycle)
{
    const struct front *front = &replan->front;
    const struct front_point *within = front_within(front, limit_bytes);

    if (within)
        return &within->layout;
    return front->n && cycle % 2 ? &front->points[0].layout : &replan->nearest;
}

/* Each chain under a limit of its own, from the best that keeps it; in each
 * cycle from what all have found. */
static void anneal(struct replan *replan)
{
    uint64_t effort = temper_effort(&replan->parts, replan->options->effort);
    double n_steps = EFFORT_FRAC * (double)effort / TEMPER_CHAINS / N_CYCLES;
    bool is_on = true;
    struct temper temper;

    if (replan->parts.n_devices < 2 || !effort)
        return;
    temper_open(&temper, &replan->parts, replan->options->pool,
                replan->options->seed);
    temper.goes_on = goes_on;
    temper.ctx = replan;
    replan->stopped = "budget";
    for (unsigned cycle = 0; cycle < N_CYCLES && is_on; cycle++) {
        for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
            uint64_t limit_bytes = limit_of(replan, c, cycle);

            temper_start_chain(&temper, c, start_of(replan, limit_bytes, cycle),
                               limit_bytes);
        }
        is_on = temper_anneal(&temper, (uint64_t)n_steps + 1,
                              HOT_FRAC * pow(REHEATING, cycle % N_REHEATINGS));
        for (unsigned c = 0; c < TEMPER_CHAINS; c++)
            offer(replan, &temper.chains[c]->best);
    }
    replan->n_priced += temper_priced(&temper);
    temper_close(&temper);
}

/* --- why nothing moves so little --- */

/* What a table moves because it stood on GPUs that are gone (0), or was cut by
 * rows over all GPUs (1). */
static void add_reasons(uint64_t reasons[2], const struct homes *homes,
                        const struct problem *problem, uint32_t table,
                        uint64_t moved_bytes)
{
    const struct table_pieces *before = &homes->before[table];
    struct table_pieces one = *before;
    uint64_t gone = 0;

    if (!before->table || !before->n)
        return;
    if (shard_cuts_rows(before->pieces[0].kind) &&
        (before->n_devices != problem->cluster.n_devices ||
         before->table->num_embeddings !=
             problem->tables[table].num_embeddings)) {
        reasons[1] += moved_bytes;
        return;
    }
    one.n = 1;
    for (size_t i = 0; i < before->n; i++) {
        struct moved_bytes bytes;

        one.pieces = &before->pieces[i];
        table_moves_count(&bytes, &one, &one);
        if (one.pieces->device >= problem->cluster.n_devices)
            gone += bytes.kept;
    }
    reasons[0] += gone < moved_bytes ? gone : moved_bytes;
}

int replan_refuse(struct replan *replan, uint64_t limit_bytes, struct err *err)
{
    struct layout *layout = &replan->tryout.layout;
    const struct parts *parts = &replan->parts;
    char limit[TEXT_BYTES_MAX], least[TEXT_BYTES_MAX], bytes[TEXT_BYTES_MAX];
    uint64_t reasons[2] = {0};
    struct buf why = {0};

    snapshot_load(&replan->front.points[0].layout, layout);
    for (uint32_t u = 0; u < parts->n_units; u++)
        if (layout->moved_bytes[u])
            add_reasons(reasons, &replan->homes, parts->problem,
                        parts->of[u].unit->tables[0], layout->moved_bytes[u]);
    text_from_bytes(limit, (double)limit_bytes);
    text_from_bytes(least, (double)layout->all_moved_bytes);
    if (reasons[0])
        buf_printf(&why, "; %s of it stand on GPUs that are gone",
                   text_from_bytes(bytes, (double)reasons[0]));
    if (reasons[1])
        buf_printf(&why,
                   "; %s of it are of tables cut by rows, whose blocks change "
                   "with the number of rows and of GPUs",
                   text_from_bytes(bytes, (double)reasons[1]));
    err_set(err, ERR_NO_PLAN,
            "no plan was found that moves at most %s; the least movement "
            "found that will do is %s, %" PRIu64 " B%s",
            limit, least, layout->all_moved_bytes, why.len ? why.data : "");
    buf_release(&why);
    return -1;
}

/* --- the whole --- */

/* What search_full finds, with its GPUs named such that little moves. Nothing
 * where it finds no plan; no_plan says why. */
static int find_free(struct replan *replan, const struct problem *problem,
                     struct err *no_plan, struct err *err)
{
    struct plan other = {.problem = *problem};
    struct search_options options = *replan->options;
    struct parts there_parts = replan->parts;
    struct snapshot free_plan = {0};
    struct homes there;

    options.time_limit_ms /= 2;
    if (search_full(&other, replan->oracle, &options, replan->scratch,
                    no_plan)) {
        if (no_plan->code != ERR_NO_PLAN)
            *err = *no_plan;
        return no_plan->code == ERR_NO_PLAN ? 0 : -1;
    }
    replan->n_priced += other.n_evaluations;
    homes_init(&there, problem, &other, replan->scratch);
    there_parts.homes = &there;
    carry_over(&free_plan, &there_parts);
    offer(replan, &free_plan);
    rename_gpus(&free_plan, &replan->parts);
    offer(replan, &free_plan);
    snapshot_release(&free_plan);
    return 0;
}

static int find(struct replan *replan, const struct problem *problem,
                struct replan_report *report, struct err *err)
{
    const struct layout *layout = &replan->tryout.layout;
    struct err no_plan = {0};

    carry_over(&replan->nearest, &replan->parts);
    homes_settle(&replan->homes, &replan->parts, &replan->nearest,
                 replan->scratch);
    snapshot_load(&replan->nearest, &replan->tryout.layout);
    (void)replan_offer_layout(replan);
    replan->least_bytes = layout->all_moved_bytes;
    report->standing = (struct replan_point){layout->all_moved_bytes,
                                             layout_true_total(layout)};
    report->standing_fits = !(layout->excess > 0);
    if (watch_check(&replan->watch, err))
        return -1;
    if (find_free(replan, problem, &no_plan, err))
        return -1;
    anneal(replan);
    if (replan->front.n)
        return 0;
    if (no_plan.code == ERR_NONE)
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found that fits the memory");
    *err = no_plan;
    return -1;
}

/* The plan of the front that the limit picks. */
static int write_plan(struct replan *replan, uint64_t limit_bytes,
                      struct plan *plan, struct replan_report *report,
                      struct arena *arena, struct err *err)
{
    struct front *front = &replan->front;
    const struct front_point *picked;
    struct proven bound;

    front_thin(front, WORTH_FRAC);
    picked = front_within(front, limit_bytes);
    if (!picked)
        return replan_refuse(replan, limit_bytes, err);
    report->n_front = front->n;
    report->front = ARENA_NEW(arena, struct replan_point, front->n);
    for (uint32_t i = 0; i < front->n; i++)
        report->front[i] = (struct replan_point){
            front->points[i].moved_bytes, front->points[i].layout.total_ms};
    snapshot_to_plan(&picked->layout, &replan->parts, plan, arena);
    plan_join_columns(plan, false, arena); /* where it keeps some that touch */
    bound_find(&bound, &replan->parts);
    plan->search = "replan";
    plan->stopped = replan->stopped;
    plan->seed = replan->options->seed;
    plan->bound_ms = bound.ms;
    plan->bound_term = bound.term;
    plan->n_evaluations = replan->n_priced;
    return 0;
}

/* With the reserves that the problem has. */
static int search(struct plan *plan, const struct homes *homes,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err)
{
    struct replan replan = {.options = options,
                            .homes = *homes,
                            .start_ms = clock_ms(),
                            .stopped = "done"};
    struct arena scratch;
    int rc = -1;

    arena_init(&scratch);
    watch_init(&replan.watch, oracle);
    replan.oracle = &replan.watch.base;
    replan.scratch = &scratch;
    if (infeasible_check(&plan->problem, replan.oracle, SHARD_ALL_KINDS, NULL,
                         err))
        goto out;
    if (parts_init(&replan.parts, &plan->problem, replan.oracle, &replan.homes,
                   options->pool, &scratch, err))
        goto out;
    tryout_init(&replan.tryout, &replan.parts);
    replan.tryout.layout.move_limit_bytes = COUNT_MOVES;
    if (find(&replan, &plan->problem, report, err))
        goto out;
    if (write_plan(&replan, limit_bytes, plan, report, arena, err))
        goto out;
    rc = watch_check(&replan.watch, err);
out:
    if (replan.tryout.layout.parts)
        tryout_release(&replan.tryout);
    snapshot_release(&replan.nearest);
    snapshot_release(&replan.offered);
    front_release(&replan.front);
    arena_release(&scratch);
    return rc;
}

/* --- what exceeds the reserve --- */

static void add_bytes(struct memory_items *held, const struct problem *problem,
                      const struct shard *shards, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (shards[i].device < problem->cluster.n_devices)
            memory_add(&held[shards[i].device],
                       shard_memory(problem, &shards[i]));
}

/* As much less reserve as they take of it. Returns whether any does. */
static bool relax(struct cluster *cluster, const struct memory_items *held,
                  struct arena *arena)
{
    const uint64_t *asked = cluster->reserve_bytes;
    uint64_t *reserve = ARENA_NEW(arena, uint64_t, cluster->n_devices);
    bool any = false;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        uint64_t memory = cluster->memory_bytes[r];
        uint64_t left = held[r].total < memory ? memory - held[r].total : 0;

        reserve[r] = left < asked[r] ? left : asked[r];
        any |= reserve[r] < asked[r];
    }
    if (any)
        cluster->reserve_bytes = reserve;
    return any;
}

int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err)
{
    struct cluster *cluster = &plan->problem.cluster;
    uint64_t *asked = cluster->reserve_bytes;
    struct memory_items *held =
        ARENA_NEW(arena, struct memory_items, cluster->n_devices);
    double start_ms = clock_ms();
    struct replan_report unread;
    struct homes homes;
    int rc;

    if (!report)
        report = &unread;
    homes_init(&homes, &plan->problem, from, arena);
    for (size_t t = 0; t < plan->problem.n_tables; t++)
        add_bytes(held, &plan->problem, homes.standing[t].pieces,
                  homes.standing[t].n);
    if (limit_bytes != NO_MOVE_LIMIT)
        relax(cluster, held, arena);
    rc = search(plan, &homes, limit_bytes, oracle, options, report, arena, err);
    if (rc && err->code == ERR_NO_PLAN && cluster->reserve_bytes == asked &&
        relax(cluster, held, arena)) {
        *err = (struct err){0};
        rc = search(plan, &homes, limit_bytes, oracle, options, report, arena,
                    err);
    }
    /* Only where it is taken in the end. */
    cluster->reserve_bytes = asked;
    if (rc)
        return -1;
    memset(held, 0, cluster->n_devices * sizeof(*held));
    add_bytes(held, &plan->problem, plan->shards, plan->n_shards);
    relax(cluster, held, arena);
    return search_finish(plan, oracle, start_ms, arena, err);
}
