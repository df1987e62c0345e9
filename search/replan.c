/* SPDX-License-Identifier: MIT */
#include "search/replan.h"

#include "base/ranked.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "search/carry_over.h"
#include "search/infeasible.h"
#include "search/local_search.h"
#include "search/marginal.h"
#include "search/moves.h"
#include "search/rename_gpus.h"
#include "search/reshardable.h"
#include "search/space_init.h"
#include "search/temper.h"
#include "search/to_plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Temperature at which a cycle begins, as a fraction of the total. It is low
 * because the current plan was good. It falls by the factor REHEATING from
 * cycle to cycle and starts again at HOT_FRAC after N_REHEATINGS cycles. */
#define HOT_FRAC 0.01
#define REHEATING 0.5
#define N_REHEATINGS 3
/* The first constant is the fraction of the requested effort that all cycles
 * together take. The second is the number of cycles. The third is the number of
 * cycles after which the migration limits repeat. */
#define EFFORT_FRAC 0.8
#define N_CYCLES 12
#define N_OFFSETS 4
/* Smallest relative gain that is worth any migration. */
#define WORTH_FRAC 1e-4
/* Thresholds of the rule that stops the annealing if no effort is given. Two
 * conditions must hold. Even the assignment with the least migration is within
 * WIDE_GAP of the lower bound. The last two cycles gained less than LITTLE_GAIN
 * on the whole front. Both conditions are about the whole front, so the end of
 * the annealing does not depend on the migration limit. The second is enough if
 * pieces keep their cuts, as the lower bound is then far. */
#define WIDE_GAP 0.03
#define LITTLE_GAIN 0.001

/* --- offering assignments to the front --- */

bool replan_offer_assignment(struct replan *replan)
{
    const struct assignment *assignment = &replan->evaluator.assignment;
    const struct snapshot *within =
        front_within(&replan->front, assignment->all_moved_bytes);
    const double within_ms = within ? within->total_ms : INFINITY;
    struct snapshot *room;
    double total_ms;

    if (assignment->excess > 0)
        return false;
    total_ms = assignment_true_total(assignment);
    replan->plan->n_evaluations++;
    if (!isfinite(total_ms))
        return false;
    room = front_add(&replan->front, assignment->all_moved_bytes, total_ms);
    if (!room)
        return false;
    replan->gain = fmax(replan->gain, within_ms / total_ms - 1);
    snapshot_save(room, assignment);
    room->total_ms = total_ms;
    return true;
}

/* --- moving units back to the current plan --- */

/* Sets *price to the cost of moving a unit back to its place in the current
 * plan, in ms per byte of migration saved. Returns false if the move saves no
 * bytes or adds to the excess. */
static bool price_way(struct replan *replan, uint32_t unit, double *price)
{
    struct evaluator *evaluator = &replan->evaluator;
    const struct assignment *assignment = &evaluator->assignment;
    double total_ms;

    candidate_clear(&evaluator->candidate);
    current_propose(&evaluator->candidate, assignment, unit);
    if (!evaluator->candidate.changes.n)
        return false;
    total_ms = evaluator_price(evaluator);
    if (!isfinite(total_ms) ||
        evaluator->candidate.after.excess > assignment->excess ||
        evaluator->candidate.after.all_moved_bytes >=
            assignment->all_moved_bytes)
        return false;
    *price = (total_ms - assignment->total_ms) /
             (double)(assignment->all_moved_bytes -
                      evaluator->candidate.after.all_moved_bytes);
    return true;
}

/* Moves units back to their places in the current plan. Each round moves the
 * cheaper half of the units that can move back, until no unit can. */
void replan_lessen(struct replan *replan)
{
    struct ranked *moved = mem_alloc(replan->space.n_units, sizeof(*moved));
    bool any = true;

    while (any) {
        uint32_t n = 0;
        double price;

        any = false;
        for (uint32_t u = 0; u < replan->space.n_units; u++)
            if (price_way(replan, u, &price))
                moved[n++] = (struct ranked){price, u};
        ranked_sort(moved, n);
        for (uint32_t i = 0; i < (n + 1) / 2; i++) {
            if (!price_way(replan, moved[i].idx, &price))
                continue;
            candidate_commit(&replan->evaluator.assignment,
                             &replan->evaluator.candidate);
            (void)replan_offer_assignment(replan);
            any = true;
        }
    }
    mem_free(moved);
}

/* Offers a snapshot to the front. If the front accepts it, its units are moved
 * back towards the current plan, and each assignment on this way is offered,
 * too. */
static void offer(struct replan *replan, const struct snapshot *snapshot)
{
    snapshot_load(snapshot, &replan->evaluator.assignment);
    if (replan_offer_assignment(replan))
        replan_lessen(replan);
}

/* --- stop rule --- */

/* Returns whether no plan can cost less than the plan that the migration limit
 * selects, because the total of the plan has reached the lower bound. */
static bool is_at_bound(const struct replan *replan)
{
    const struct snapshot *picked =
        front_within(&replan->front, replan->limit_bytes);

    return picked && picked->total_ms <= replan->bound.ms * (1 + ROUNDING_FRAC);
}

/* Returns whether another cycle is not worth its time. gains[] holds the gains
 * of the last two cycles, the latest last. If the total is at the lower bound,
 * only less migration remains to be found. If there is a migration limit,
 * nobody asks for less migration than that. If there is no limit, the search
 * ends with the first cycle that gains nothing. */
static bool is_enough(const struct replan *replan, const double gains[2])
{
    const struct front *front = &replan->front;

    if (is_at_bound(replan) &&
        (replan->limit_bytes != NO_MOVE_LIMIT || !(gains[1] > 0)))
        return true;
    return replan->options->effort == SEARCH_EFFORT_AUTO && front->n &&
           (replan->options->reshardable ||
            front->points[0].total_ms <= replan->bound.ms * (1 + WIDE_GAP)) &&
           fmax(gains[0], gains[1]) < LITTLE_GAIN;
}

/* Returns whether a replicated unit costs less in another sharding. Each GPU
 * holds the whole unit, so no sharding of the unit causes migration. Changes
 * are tried on the loaded assignment. */
static bool gains_in_sharding(struct replan *replan, uint32_t unit)
{
    struct evaluator *evaluator = &replan->evaluator;
    const struct unit *entry = &replan->space.units[unit];
    bool gains = false;

    for (uint32_t f = 0; f < entry->n_shardings && !gains; f++) {
        const struct sharding *sharding = &entry->shardings[f];
        struct rng rng;

        candidate_clear(&evaluator->candidate);
        rng_init(&rng, f, 0);
        rebuild(&evaluator->candidate, &evaluator->assignment, &sharding, 1,
                &rng);
        gains = evaluator->candidate.changes.n &&
                evaluator_price(evaluator) <
                    evaluator->assignment.total_ms * (1 - ROUNDING_FRAC) &&
                !(evaluator->candidate.after.excess > 0);
        replan->plan->n_evaluations++;
    }
    return gains;
}

/* Returns whether the current plan is the only plan without migration. This
 * holds under three conditions. All tables have a place and a sharding that is
 * still allowed. No table has new rows. No replica would cost less in another
 * sharding. */
static bool only_stands(struct replan *replan)
{
    const struct search_space *space = &replan->space;

    for (uint32_t u = 0; u < space->n_units; u++)
        for (uint32_t k = 0; k < space->units[u].n_tables; k++) {
            const uint32_t t = space->units[u].tables[k];
            const struct table_pieces *before = &replan->current.before[t];

            if (!before->table ||
                before->table->num_embeddings !=
                    space->problem->tables[t].num_embeddings ||
                !replan->current.standing[t].n)
                return false;
        }
    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct shard *stands =
            replan->current.standing[space->units[u].tables[0]].pieces;
        const bool is_replica =
            shard_is_replica(stands->kind) && !space->units[u].stays;

        if (is_replica && gains_in_sharding(replan, u))
            return false;
        if (is_replica)
            /* Several replicas at once may cost less in other shardings. */
            replan->plan->stopped = "budget";
    }
    return true;
}

/* Returns whether the current plan, which is loaded, is the answer before any
 * search. This holds if no plan costs less, or if no other plan migrates as
 * little. */
static bool stands_as_answer(struct replan *replan)
{
    const uint64_t moved_bytes = replan->report->standing.moved_bytes;

    if (!replan->report->standing_fits || moved_bytes > replan->limit_bytes)
        return false;
    if (is_at_bound(replan))
        return !moved_bytes || replan->limit_bytes != NO_MOVE_LIMIT;
    return !replan->limit_bytes && only_stands(replan);
}

/* --- annealing --- */

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct replan *replan = ctx;
    const char *why =
        stop_reason(&replan->checked, replan->options->time_limit_ms);

    (void)n_done;
    if (why)
        replan->plan->stopped = why;
    return !why;
}

/* Returns the migration limit of a chain in a cycle. The first chain has no
 * limit. The limit of the second chain is the migration of the cheapest
 * assignment. From chain to chain the limit then falls half of the way to the
 * least necessary migration. All limits are a little lower in each cycle. The
 * last chain searches for the least migration. */
static uint64_t limit_of(const struct replan *replan, unsigned chain,
                         unsigned cycle)
{
    const struct front *front = &replan->front;
    double halvings = chain - 1 + (double)(cycle % N_OFFSETS) / N_OFFSETS;
    uint64_t least = replan->report->standing.moved_bytes, first = least;
    uint64_t last = saturating_add(least, replan->current.held_bytes);

    if (!chain)
        return NO_MOVE_LIMIT;
    if (front->n) {
        first = front->points[0].moved_bytes;
        last = front->points[front->n - 1].moved_bytes;
        least = min_u64(first, least);
    }
    if (chain + 1 == TEMPER_CHAINS)
        return least + (first - least) / 2;
    return least + (uint64_t)(exp2(-halvings) * (double)(last - least));
}

/* Returns the start of a chain: the cheapest assignment within the migration
 * limit. If no assignment is within the limit, the current plan and the
 * assignment with the least migration are used in turn. */
static const struct snapshot *start_of(const struct replan *replan,
                                       uint64_t limit_bytes, unsigned cycle)
{
    const struct front *front = &replan->front;
    const struct snapshot *within = front_within(front, limit_bytes);

    if (within)
        return within;
    return front->n && cycle % 2 ? &front->points[0] : &replan->nearest;
}

/* Anneals all chains in cycles. Each chain has its own migration limit. It
 * starts from the best assignment within this limit that any chain has found so
 * far. */
static void anneal(struct replan *replan)
{
    uint64_t effort = temper_effort(replan->options->effort);
    double n_steps = EFFORT_FRAC * (double)effort / TEMPER_CHAINS / N_CYCLES;
    double gains[2] = {INFINITY, INFINITY};
    bool is_on = true;
    struct temper temper;

    if (replan->space.n_devices < 2 || !effort || is_enough(replan, gains))
        return;
    temper_open(&temper, &replan->space, replan->options->pool,
                replan->options->seed, goes_on, replan);
    replan->plan->stopped = "budget";
    for (unsigned cycle = 0; cycle < N_CYCLES && is_on; cycle++) {
        for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
            uint64_t limit_bytes = limit_of(replan, c, cycle);

            temper_start_chain(&temper, c, start_of(replan, limit_bytes, cycle),
                               limit_bytes);
        }
        is_on = temper_anneal(&temper, (uint64_t)n_steps + 1,
                              HOT_FRAC * pow(REHEATING, cycle % N_REHEATINGS));
        gains[0] = gains[1];
        replan->gain = 0;
        for (unsigned c = 0; c < TEMPER_CHAINS; c++)
            offer(replan, &temper.chains[c]->best);
        gains[1] = replan->gain;
        is_on = is_on && !is_enough(replan, gains);
    }
    replan->plan->n_evaluations += temper_priced(&temper);
    temper_close(&temper);
}

/* --- refusal: no plan within the migration limit --- */

/* Reports that the migration limit is too small. The report contains the limit,
 * the least migration found, and the causes of that migration. There are two
 * causes: rows that are cut into other blocks or over other ranks, and GPUs
 * that no longer exist. */
static int refuse(struct replan *replan, struct err *err)
{
    const struct problem *problem = replan->space.problem;
    char limit[TEXT_BYTES_MAX], least[TEXT_BYTES_MAX], bytes[TEXT_BYTES_MAX];
    struct plan nearest = {.problem = *problem};
    uint64_t of_gone = 0, of_blocks = 0;
    struct plan_moves moves;
    struct buf why = {0};

    snapshot_to_plan(&replan->front.points[0], &replan->space, &nearest,
                     &replan->scratch);
    plan_moves_find(&moves, replan->from, &nearest, &replan->scratch);
    for (size_t i = 0; i < moves.n_moves; i++) {
        const struct move *move = &moves.moves[i];
        const struct table_pieces *before =
            &replan->current.before[move->table];

        if (shard_cuts_rows(before->pieces[0].kind) &&
            (before->n_devices != problem->cluster.n_devices ||
             before->table->num_embeddings !=
                 problem->tables[move->table].num_embeddings))
            of_blocks += move->bytes;
        else if (move->from >= problem->cluster.n_devices)
            of_gone += move->bytes;
    }
    text_from_bytes(limit, (double)replan->limit_bytes);
    text_from_bytes(least, (double)moves.bytes.moved);
    if (of_gone)
        buf_printf(&why, "; %s of it are on GPUs that are gone",
                   text_from_bytes(bytes, (double)of_gone));
    if (of_blocks)
        buf_printf(&why,
                   "; %s of it are of tables cut by rows, whose blocks change "
                   "with the number of rows and of GPUs",
                   text_from_bytes(bytes, (double)of_blocks));
    err_set(err, ERR_NO_PLAN,
            "no plan was found that moves at most %s; the least movement found "
            "that suffices is %s, %" PRIu64 " B%s",
            limit, least, moves.bytes.moved, why.len ? why.data : "");
    err->shortage = (struct shortage){.subject = "movement",
                                      .need_bytes = moves.bytes.moved,
                                      .have_bytes = replan->limit_bytes,
                                      .fits_move_bytes = moves.bytes.moved};
    buf_release(&why);
    return -1;
}

/* --- the complete search --- */

/* Offers the plan of search_full twice: first as it is, and then with its GPUs
 * renamed so that little migrates. */
static void offer_free(struct replan *replan, const struct plan *found)
{
    struct search_space space = replan->space;
    struct snapshot assignment = {0};
    struct current_plan there;

    replan->plan->n_evaluations += found->n_evaluations;
    current_init(&there, space.problem, found, &replan->scratch);
    space.current = &there;
    carry_over(&assignment, &space);
    offer(replan, &assignment);
    rename_gpus(&assignment, &replan->space);
    offer(replan, &assignment);
    snapshot_release(&assignment);
}

/* Offers a plan that a fresh search finds, without the current plan. Does
 * nothing if TorchRec's reshard must be able to make all moves. If the search
 * finds no plan, *err is its error. */
static int search_free(struct replan *replan, struct err *err)
{
    struct plan found = {.problem = *replan->space.problem};
    struct search_options options = *replan->options;

    err_set(err, ERR_NO_PLAN, "no plan was found that fits the memory%s",
            options.reshardable ? " and that reshard can make" : "");
    if (options.reshardable)
        return 0;
    options.simplest_frac = 0; /* used for the final plan only */
    options.time_limit_ms /= 2;
    if (!search_full(&found, replan->checked.oracle, &options, &replan->scratch,
                     err))
        offer_free(replan, &found);
    else if (err->code != ERR_NO_PLAN)
        return -1;
    return 0;
}

/* Searches for plans. If neither search_full nor re-planning finds a plan, the
 * error of search_full is returned. */
static int find(struct replan *replan, struct err *err)
{
    const struct assignment *assignment = &replan->evaluator.assignment;

    carry_over(&replan->nearest, &replan->space);
    current_keep_nearest(&replan->current, &replan->nearest, &replan->space,
                         &replan->scratch);
    snapshot_load(&replan->nearest, &replan->evaluator.assignment);
    (void)replan_offer_assignment(replan);
    replan->report->standing = (struct replan_point){
        assignment->all_moved_bytes, assignment_true_total(assignment)};
    replan->report->standing_fits = !(assignment->excess > 0);
    if (checked_oracle_check(&replan->checked, err) ||
        (replan->options->reshardable &&
         reshardable_check_nearest(&replan->nearest, &replan->space, err)))
        return -1;
    bound_find(&replan->bound, &replan->space);
    if (stands_as_answer(replan))
        return 0;
    if (search_free(replan, err))
        return -1;
    anneal(replan);
    if (!replan->front.n)
        return -1;
    *err = (struct err){0};
    return 0;
}

/* Simplifies the assignment picked from the front, which moves moved_bytes. */
static void simplify_picked(struct replan *replan, struct snapshot *found,
                            uint64_t moved_bytes)
{
    replan->plan->n_evaluations += simplify(
        found, &replan->space,
        &(struct simplify_limits){
            .most_ms = found->total_ms * (1 + replan->options->simplest_frac),
            .move_limit_bytes = replan->limit_bytes == NO_MOVE_LIMIT
                                    ? moved_bytes
                                    : replan->limit_bytes,
            .most_priced = UINT64_MAX,
            .end_ms =
                search_end_ms(&replan->checked, replan->options->time_limit_ms),
            .most_copied =
                simplify_most_copied(replan->plan->problem.n_tables)});
}

/* Writes the plan that the migration limit selects from the front. */
static int write_plan(struct replan *replan, struct arena *arena,
                      struct err *err)
{
    struct replan_report *report = replan->report;
    struct front *front = &replan->front;
    struct plan *plan = replan->plan;
    const struct snapshot *picked;
    struct snapshot found = {0};

    front_thin(front, WORTH_FRAC);
    picked = front_within(front, replan->limit_bytes);
    if (!picked)
        return refuse(replan, err);
    report->n_front = front->n;
    report->front = ARENA_NEW(arena, struct replan_point, front->n);
    for (uint32_t i = 0; i < front->n; i++)
        report->front[i] = (struct replan_point){front->points[i].moved_bytes,
                                                 front->points[i].total_ms};
    snapshot_copy(&found, picked);
    if (!replan->options->reshardable)
        simplify_picked(replan, &found, picked->moved_bytes);
    snapshot_to_plan(&found, &replan->space, plan, arena);
    snapshot_release(&found);
    if (!replan->options->reshardable) /* pieces that touch may remain */
        plan_join_columns(plan, false, arena);
    if (!strcmp(plan->stopped, "budget") && is_at_bound(replan))
        plan->stopped = "done";
    plan->search = "replan";
    plan->seed = replan->options->seed;
    plan->bound_ms = replan->bound.ms;
    plan->bound_term = replan->bound.term;
    return 0;
}

/* Searches with the memory reserves that the problem has when this function is
 * called. */
static int search(struct replan *replan, struct arena *arena, struct err *err)
{
    const struct problem *problem = &replan->plan->problem;
    const struct oracle *oracle = &replan->checked.base;
    int rc = -1;

    replan->plan->stopped = "done";
    replan->plan->n_evaluations = 0;
    if (infeasible_check(
            problem, oracle, SHARD_ALL_KINDS, NULL,
            search_end_ms(&replan->checked, replan->options->time_limit_ms),
            err) ||
        space_init(&replan->space, problem, oracle, &replan->current,
                   replan->options, &replan->scratch, err))
        goto out;
    if (replan->options->reshardable)
        reshardable_restrict(&replan->space, &replan->tuning);
    space_load_marginal(&replan->space, replan->options->pool);
    evaluator_init(&replan->evaluator, &replan->space);
    replan->evaluator.assignment.move_limit_bytes = COUNT_MOVES;
    if (!find(replan, err))
        rc = write_plan(replan, arena, err);
    evaluator_release(&replan->evaluator);
out:
    snapshot_release(&replan->nearest);
    front_release(&replan->front);
    arena_release(&replan->scratch);
    return rc;
}

/* Lowers the reserve of each GPU to the memory that the given shards leave
 * free. Returns whether any reserve has become smaller. */
static bool relax(struct problem *problem, const struct shard *shards, size_t n,
                  struct arena *arena)
{
    struct cluster *cluster = &problem->cluster;
    uint64_t *reserve = ARENA_NEW(arena, uint64_t, cluster->n_devices);
    struct problem bare = *problem; /* without a reserve */
    bool any = false;

    bare.cluster.reserve_bytes = ARENA_NEW(arena, uint64_t, cluster->n_devices);
    problem_room_bytes(&bare, reserve);
    for (size_t i = 0; i < n; i++)
        if (shards[i].device < cluster->n_devices)
            reserve[shards[i].device] -=
                min_u64(reserve[shards[i].device],
                        shard_memory(problem, &shards[i]).total);
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        any |= reserve[r] < cluster->reserve_bytes[r];
        reserve[r] = min_u64(reserve[r], cluster->reserve_bytes[r]);
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
    struct problem *problem = &plan->problem;
    uint64_t *asked = problem->cluster.reserve_bytes;
    struct replan_report unread;
    struct replan replan = {.options = options,
                            .from = from,
                            .plan = plan,
                            .limit_bytes = limit_bytes,
                            .report = report ? report : &unread};
    struct current_plan *current = &replan.current;
    int rc;

    checked_oracle_init(&replan.checked, oracle);
    current_init(current, problem, from, arena);
    if (options->reshardable &&
        reshardable_begin(current, from, problem, arena, err))
        return -1;
    if (limit_bytes != NO_MOVE_LIMIT)
        relax(problem, current->shards, current->n_shards, arena);
    rc = search(&replan, arena, err);
    if (rc && err->code == ERR_NO_PLAN && limit_bytes == NO_MOVE_LIMIT &&
        relax(problem, current->shards, current->n_shards, arena))
        rc = search(&replan, arena, err);
    /* Keep a smaller reserve only if the final plan needs it. */
    problem->cluster.reserve_bytes = asked;
    if (rc)
        return -1;
    relax(problem, plan->shards, plan->n_shards, arena);
    return checked_oracle_finish(&replan.checked, plan, arena, err);
}
