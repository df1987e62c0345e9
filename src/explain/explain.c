/* SPDX-License-Identifier: MIT */
#include "explain/explain.h"

#include "base/figures.h"
#include "base/ranked.h"
#include "base/text.h"
#include "core/memory.h"
#include "core/plan_error.h"
#include "core/plan_fit.h"
#include "emit/caches_table.h"
#include "emit/compare_table.h"
#include "emit/formats.h"
#include "emit/groups_line.h"
#include "emit/placed_tables.h"
#include "emit/report.h"
#include "emit/report_figures.h"
#include "emit/report_parts.h"
#include "emit/wire_line.h"
#include "explain/ways.h"

#include <inttypes.h>
#include <stdlib.h>

#define N_GPUS_SHOWN 32u
#define N_PIECES_SHOWN 10u
#define NAME_WIDTH 22
/* Relative difference below which two step times count as equal. */
#define SAME_FRAC 1e-3
/* Smallest change in ms that is printed; a smaller change would print as 0. */
#define LEAST_SHOWN_MS 5e-5

/* A GPU's part of the step. Its own time ends when the GPU is ready for the
 * forward all-to-all, after its compute and backward. After that the GPU may
 * wait for other GPUs. In a cost model without waiting, a GPU's own time is its
 * whole step. */
struct gpu {
    uint32_t gpu;
    struct report_device step;
    double behind_ms; /* how long before the last GPU it is ready */
    double used_frac;
    uint64_t memory_bytes, free_bytes;
    /* number of pieces of the GPU being explained that would fit here */
    uint64_t n_fitting;
    double has_room_for; /* n_fitting; NAN for the GPU being explained */
};
#define GPU(member) MEMBER_OF(struct gpu, member)
static const struct figure gpu_figures[] = {
    {NULL, "GPU", -4, 0, FIGURE_PLAIN, GPU(gpu)},
    {"own_ms", "ms", 9, 4, FIGURE_PLAIN, GPU(step.own_ms)},
    {"sooner_by_ms", "ms", 9, 4, FIGURE_PLAIN, GPU(behind_ms)},
    {"compute_ms", "ms", 9, 4, FIGURE_PLAIN, GPU(step.cost.compute_ms)},
    {"bwd_comm_ms", "ms", 9, 4, FIGURE_PLAIN, GPU(step.cost.bwd_comm_ms)},
    {"fwd_comm_ms", "ms", 9, 4, FIGURE_PLAIN, GPU(step.cost.fwd_comm_ms)},
    {NULL, "%", 6, 1, FIGURE_PERCENT, GPU(used_frac)},
    {"used_bytes", NULL, 0, 0, FIGURE_PLAIN, GPU(step.cost.memory.total)},
    {"memory_bytes", NULL, 0, 0, FIGURE_PLAIN, GPU(memory_bytes)},
    {NULL, "free", 10, 0, FIGURE_BYTES, GPU(free_bytes)},
    {"has_room_for", NULL, 0, 0, FIGURE_PLAIN, GPU(n_fitting)},
    {NULL, "pieces", 6, 0, FIGURE_PLAIN, GPU(has_room_for)},
    {0},
};

/* A piece on the GPU that `explain` was asked about. */
struct marginal_row {
    uint64_t shard, n_rows;
    const char *table, *kind;
    uint32_t n_columns;
    /* step time without the piece; time that the removal of the piece saves */
    double step_ms, saved_ms;
    double own_ms;         /* own time of the piece's GPU without the piece */
    double alone_ms;       /* shard_ms of the piece */
    uint64_t bytes;        /* memory of the piece */
    bool changes_training; /* shard_changes_training */
    bool has_room;         /* true if the piece fits on some other GPU */
    /* other GPU on which the step would be shortest, and the change of the step
     * if the piece moves there; NAN if the piece fits nowhere else */
    double to, change_ms;
};
#define PIECE(member) MEMBER_OF(struct marginal_row, member)
static const struct figure piece_figures[] = {
    {"shard", NULL, 0, 0, FIGURE_PLAIN, PIECE(shard)},
    {"table", "table", NAME_WIDTH, NAME_WIDTH, FIGURE_CUT, PIECE(table)},
    {"kind", "kind", -9, 0, FIGURE_PLAIN, PIECE(kind)},
    {NULL, "columns", 7, 0, FIGURE_PLAIN, PIECE(n_columns)},
    {NULL, "rows", 10, 0, FIGURE_PLAIN, PIECE(n_rows)},
    {"total_ms_without", NULL, 0, 0, FIGURE_PLAIN, PIECE(step_ms)},
    {NULL, "saved ms", 9, 4, FIGURE_PLAIN, PIECE(saved_ms)},
    {"own_ms_without", NULL, 0, 0, FIGURE_PLAIN, PIECE(own_ms)},
    {"alone_ms", NULL, 0, 0, FIGURE_PLAIN, PIECE(alone_ms)},
    {"memory_bytes", NULL, 0, 0, FIGURE_PLAIN, PIECE(bytes)},
    {"changes_training", NULL, 0, 0, FIGURE_PLAIN, PIECE(changes_training)},
    {"has_room_elsewhere", NULL, 0, 0, FIGURE_PLAIN, PIECE(has_room)},
    {NULL, "GPU", 5, 0, FIGURE_PLAIN, PIECE(to)},
    {NULL, "change ms", 10, 4, FIGURE_SIGNED, PIECE(change_ms)},
    {0},
};
#define SHIFT(member) MEMBER_OF(struct shift, member)
static const struct figure shift_figures[] = {
    {NULL, "gain ms", 9, 4, FIGURE_PLAIN, SHIFT(gain_ms)},
    {NULL, "to GPU", 6, 0, FIGURE_PLAIN, SHIFT(gpu)},
    {NULL, "a piece of", -NAME_WIDTH, NAME_WIDTH, FIGURE_CUT, SHIFT(table)},
    {NULL, "swapped with one there of", 0, 0, FIGURE_PLAIN, SHIFT(other_table)},
    {"shard", NULL, 0, 0, FIGURE_PLAIN, SHIFT(shard)},
    {"other", NULL, 0, 0, FIGURE_PLAIN, SHIFT(other)},
    {"gpu", NULL, 0, 0, FIGURE_PLAIN, SHIFT(gpu)},
    {"total_ms", NULL, 0, 0, FIGURE_PLAIN, SHIFT(total_ms)},
    {"gain_ms", NULL, 0, 0, FIGURE_PLAIN, SHIFT(gain_ms)},
    {"why_not", NULL, 0, 0, FIGURE_PLAIN, SHIFT(why_not)},
    {0},
};
struct binding {
    struct report report; /* report on the plan; owned */
    /* `last`: GPU that is ready last; `slow_fwd`: GPU with the largest
     * cost.fwd_comm_ms */
    uint32_t last, slow_fwd;
    uint32_t gpu;     /* GPU that `explain` was asked about */
    struct gpu *gpus; /* [report.n_devices] GPUs of the plan, in the arena */
    /* [n_pieces], in the arena: pieces of `gpu`, the most expensive piece
     * first */
    struct marginal_row *pieces;
    /* n_stuck: number of pieces that fit on no other GPU */
    size_t n_pieces, n_stuck;
    struct shifts shifts;
    double least_ms; /* smallest gain that counts as a gain */
    /* true: least_ms is the error of a predicted gain; false: least_ms is a
     * fraction of the step, because the error is unknown */
    bool is_error;
};

static void find_gpus(struct binding *binding, struct arena *arena)
{
    const struct report *report = &binding->report;
    const struct plan *plan = report->plan;
    const bool waits = report->options.waits;
    const double last_ms = report->devices[binding->last].own_ms;
    struct gpu *gpus = ARENA_NEW(arena, struct gpu, report->n_devices);

    binding->gpus = gpus;
    binding->slow_fwd = waits ? 0 : binding->last;
    for (uint32_t r = 0; r < report->n_devices; r++) {
        uint64_t have = plan->problem.cluster.memory_bytes[r];
        uint64_t used = plan->devices[r].memory.total;

        gpus[r] = (struct gpu){
            .gpu = r,
            .step = report->devices[r],
            .behind_ms = last_ms - report->devices[r].own_ms,
            .used_frac = plan_used_frac(plan, r),
            .memory_bytes = have,
            .free_bytes = used < have ? have - used : 0,
            .has_room_for = r == binding->gpu ? NAN : 0,
        };
        if (waits && gpus[r].step.cost.fwd_comm_ms >
                         gpus[binding->slow_fwd].step.cost.fwd_comm_ms)
            binding->slow_fwd = r;
    }
}

static int compare_marginals(const void *left, const void *right)
{
    const struct marginal_row *a = left, *b = right;
    const double x[] = {a->step_ms, a->own_ms, (double)a->shard};
    const double y[] = {b->step_ms, b->own_ms, (double)b->shard};

    return ranked_compare_reals(x, y, 3);
}

static struct marginal_row price_piece(struct binding *binding,
                                       struct what_if *what_if, size_t idx)
{
    struct edit without = {.gone = &idx, .n_gone = 1};
    const struct plan *plan = binding->report.plan;
    const struct shard *shard = &plan->shards[idx];
    struct marginal_row piece = {
        .shard = idx,
        .n_rows = shard->row_end - shard->row_begin,
        .table = plan->problem.tables[shard->table].name,
        .kind = shard_kind_name(shard->kind),
        .n_columns = shard->col_end - shard->col_begin,
        .step_ms = what_if_step(what_if, &without),
        .alone_ms = plan->shard_ms[idx],
        .bytes = shard_memory(&plan->problem, shard).total,
        .changes_training = shard_changes_training(&plan->problem, shard),
        .to = NAN,
        .change_ms = NAN,
    };

    piece.saved_ms = plan->total_ms - piece.step_ms;
    piece.own_ms = report_own_ms(
        &(struct device_cost){.compute_ms = what_if->compute_ms[binding->gpu],
                              .bwd_comm_ms = what_if->bwd_comm_ms[binding->gpu],
                              .fwd_comm_ms =
                                  what_if->fwd_comm_ms[binding->gpu]},
        binding->report.options.waits);
    for (uint32_t r = 0; r < binding->report.n_devices; r++) {
        struct shard there = *shard;
        struct edit move = {&idx, 1, &there, 1};

        there.device = r;
        if (r == binding->gpu || !what_if_fits(what_if, &move))
            continue;
        piece.has_room = true;
        binding->gpus[r].n_fitting++;
        binding->gpus[r].has_room_for++;
    }
    for (size_t i = 0; i < binding->shifts.n_places; i++) {
        const struct shift *place = &binding->shifts.places[i];

        if (place->shard != idx || place->why_not)
            continue;
        piece.to = place->gpu;
        piece.change_ms =
            fabs(place->gain_ms) < LEAST_SHOWN_MS ? 0 : -place->gain_ms;
    }
    return piece;
}

static void price_pieces(struct binding *binding, struct what_if *what_if,
                         struct arena *arena)
{
    const struct plan *plan = binding->report.plan;

    binding->pieces = ARENA_NEW(arena, struct marginal_row, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct marginal_row piece;

        if (plan->shards[i].device != binding->gpu)
            continue;
        piece = price_piece(binding, what_if, i);
        binding->n_stuck += !piece.has_room;
        binding->pieces[binding->n_pieces++] = piece;
    }
    qsort(binding->pieces, binding->n_pieces, sizeof(*binding->pieces),
          compare_marginals);
}

/* Sets the smallest gain that counts as a gain. It is the error of the
 * difference between two plans that differ in one piece, computed as for two
 * samples. If this error is unknown, a fraction of the step is used instead. */
static void find_least(struct binding *binding)
{
    const struct priced_parts parts = plan_priced_parts(binding->report.plan);
    const double error_frac = priced_ratio_error(&parts, &parts);

    binding->is_error = error_frac > 0;
    binding->least_ms = (binding->is_error ? error_frac : SAME_FRAC) *
                        binding->report.plan->total_ms;
}

static void binding_find(struct binding *binding, struct explained *explained)
{
    const struct plan *plan = explained->what_if.plan;
    const struct oracle *oracle = explained->what_if.oracle;
    struct arena *arena = explained->arena;

    *binding = (struct binding){0};
    report_init(&binding->report, plan,
                &(struct report_options){
                    .n_columns = explained->n_columns,
                    .waits = oracle_waits(oracle),
                    .without_ms = what_if_without(plan, oracle, arena)});
    binding->last = binding->report.bottleneck.gpu;
    binding->gpu = explained->gpu == ANY_GPU ? binding->last : explained->gpu;
    find_gpus(binding, arena);
    find_least(binding);
    shifts_find(&binding->shifts, &explained->what_if, binding->gpu, arena);
    price_pieces(binding, &explained->what_if, arena);
}

static void print_step(const struct binding *binding, struct buf *out)
{
    const struct plan *plan = binding->report.plan;
    const struct device_cost *last = &plan->devices[binding->last];
    const char *cut_short = scenario_cut_short(plan);

    report_step(plan, 4, out);
    buf_printf(out, "\n        by %s (%s)\n", plan->cost.name,
               cost_basis_names[plan->cost.basis]);
    if (emit_has_wire_line(plan)) {
        buf_printf(out, "        ");
        emit_wire_line(plan, out);
        buf_printf(out, "\n");
    }
    cost_print_outside(&plan->cost, out);
    report_job(plan, out);
    if (cut_short)
        buf_printf(out, "        its search %s; --anew plans afresh\n",
                   cut_short);
    report_bottleneck(&binding->report, out);
    buf_printf(out,
               "        GPU %u takes %.4f ms: compute %.4f, backward "
               "communication %.4f",
               binding->last, binding->gpus[binding->last].step.own_ms,
               last->compute_ms, last->bwd_comm_ms);
    if (binding->report.options.waits)
        buf_printf(out,
                   "\n        the forward communication then takes %.4f ms, "
                   "longest on GPU %u\n",
                   binding->gpus[binding->slow_fwd].step.cost.fwd_comm_ms,
                   binding->slow_fwd);
    else
        buf_printf(out, ",\n        forward communication %.4f\n",
                   last->fwd_comm_ms);
}

static void print_memory_note(const struct binding *binding,
                              const char *command, struct buf *out)
{
    buf_printf(out, "memory  ");
    plan_print_fit(binding->report.plan, out);
    buf_printf(out, "\n");
    if (command)
        scenario_print_command(command, 8, out);
    if (binding->report.n_devices < 2)
        return;
    if (!binding->n_pieces)
        buf_printf(out, "        GPU %u holds nothing\n", binding->gpu);
    else if (!binding->n_stuck)
        buf_printf(out,
                   "        does not bind: each piece of GPU %u has room on "
                   "another GPU\n",
                   binding->gpu);
    else
        buf_printf(out,
                   "        binds: %zu of %zu pieces of GPU %u have room on no "
                   "other GPU\n",
                   binding->n_stuck, binding->n_pieces, binding->gpu);
}

static void print_gpus(const struct binding *binding, struct buf *out)
{
    struct ranked *ranked =
        mem_alloc(binding->report.n_devices, sizeof(*ranked));

    buf_printf(out,
               "\n%4s %9s %9s %9s %9s %9s %6s %17s\n"
               "%-4s %9s %9s %9s %9s %9s %6s %10s  of %u\n",
               "", binding->report.options.waits ? "ready" : "total", "sooner",
               "compute", "bwd comm", "fwd comm", "memory", "fits", "GPU", "ms",
               "by ms", "ms", "ms", "ms", "%", "free", binding->gpu);
    for (uint32_t r = 0; r < binding->report.n_devices; r++)
        ranked[r] = (struct ranked){-binding->gpus[r].step.own_ms, r};
    ranked_sort(ranked, binding->report.n_devices);
    for (uint32_t i = 0; i < binding->report.n_devices; i++)
        if (i < N_GPUS_SHOWN || ranked[i].idx == binding->gpu)
            figures_row(gpu_figures, &binding->gpus[ranked[i].idx], out);
    if (binding->report.n_devices > N_GPUS_SHOWN)
        buf_printf(out, "... and %u that are sooner\n",
                   binding->report.n_devices - N_GPUS_SHOWN);
    mem_free(ranked);
}

static void print_least(const struct binding *binding, struct buf *out)
{
    buf_printf(out, "%s %.4f ms",
               binding->is_error ? "the error of such a gain,"
                                 : "a thousandth of the step,",
               binding->least_ms);
}

static void print_pieces(const struct binding *binding, struct buf *out)
{
    size_t n = 0;

    if (!binding->n_pieces)
        return;
    while (n < binding->n_pieces && n < N_PIECES_SHOWN &&
           binding->pieces[n].saved_ms >= binding->least_ms)
        n++;
    if (n)
        buf_printf(out,
                   "\n%-*s %-9s %7s %10s %9s %16s\npiece on GPU %-*u "
                   "%-9s %7s %10s %9s %5s %10s\n",
                   NAME_WIDTH, "", "", "", "", "without", "best elsewhere",
                   NAME_WIDTH - 13, binding->gpu, "kind", "columns", "rows",
                   "saves ms", "GPU", "change ms");
    for (size_t i = 0; i < n; i++)
        figures_row(piece_figures, &binding->pieces[i], out);
    if (n == binding->n_pieces)
        return;
    if (n == N_PIECES_SHOWN) {
        buf_printf(out, "... and %zu more\n", binding->n_pieces - n);
        return;
    }
    buf_printf(out, "%snone of the %zu%s pieces on GPU %u costs more than\n",
               n ? "... " : "\n", binding->n_pieces - n, n ? " other" : "",
               binding->gpu);
    print_least(binding, out);
    buf_printf(out, "\n");
}

static void print_gains(const struct binding *binding, struct buf *out)
{
    const struct shifts *shifts = &binding->shifts;
    size_t n = 0;

    if (!(shifts->n_moves + shifts->n_swaps))
        return;
    while (n < shifts->n_gains && shifts->gains[n].gain_ms >= binding->least_ms)
        n++;
    buf_printf(out,
               "\n%" PRIu64 " moves and %" PRIu64 " swaps of pieces of GPU %u "
               "tried; %s gain more than\n",
               shifts->n_moves, shifts->n_swaps, binding->gpu,
               n ? "these" : "none");
    print_least(binding, out);
    buf_printf(out, n ? ":\n" : "\n");
    FIGURES_TABLE(shift_figures, shifts->gains, n, out);
}

/* Prints the plan under other settings, and the fresh plans. */
static void print_scenarios(const struct explained *explained, struct buf *out)
{
    if (explained->n_what_ifs) {
        buf_printf(out, "\n");
        scenarios_print(explained->what_ifs, explained->n_what_ifs, out);
    }
    if (explained->n_anew) {
        buf_printf(out, "\n");
        fresh_plans_print(explained->anew, explained->n_anew,
                          explained->what_if.plan, out);
    }
}

/* Converts shifts (moves and swaps of pieces) to JSON. Only swaps have a second
 * piece. */
static json_t *shifts_to_json(const struct shift *shifts, size_t n)
{
    json_t *list = FIGURES_LIST(shift_figures, shifts, n);

    for (size_t i = 0; i < n; i++)
        if (shifts[i].other == NO_SHARD)
            json_object_set_new(json_array_get(list, i), "other", json_null());
    return list;
}

static json_t *to_json(const struct explained *explained,
                       const struct binding *binding)
{
    const struct bottleneck *bottleneck = &binding->report.bottleneck;
    const struct plan *plan = binding->report.plan;

    return json_pack(
        "{s:s, s:o, s:f, s:I, s:I, s:s, s:f, s:o, s:I, s:o, s:o, "
        "s:o, s:f, s:b, s:o, s:o, s:o, s:o, s:s?, s:s?, s:s?}",
        "cost_model", plan->cost.name, "outside",
        cost_outside_to_json(&plan->cost), "total_ms", plan->total_ms,
        "last_gpu", (json_int_t)binding->last, "longest_fwd_comm_gpu",
        (json_int_t)binding->slow_fwd, "largest_part", bottleneck->phase,
        "largest_part_ms", bottleneck->phase_ms, "gpus",
        FIGURES_LIST(gpu_figures, binding->gpus, binding->report.n_devices),
        "gpu", (json_int_t)binding->gpu, "pieces",
        FIGURES_LIST(piece_figures, binding->pieces, binding->n_pieces),
        "places",
        shifts_to_json(binding->shifts.places, binding->shifts.n_places),
        "gains", shifts_to_json(binding->shifts.gains, binding->shifts.n_gains),
        "least_gain_ms", binding->least_ms, "least_is_error",
        (int)binding->is_error, "what_if",
        scenarios_to_json(explained->what_ifs, explained->n_what_ifs), "anew",
        fresh_plans_to_json(explained->anew, explained->n_anew, plan), "caches",
        caches_to_json(plan), "bound_ms", json_real_or_null(plan->bound_ms),
        "bound_term", plan->bound_term, "stopped", plan->stopped, "next",
        explained->command);
}

json_t *explain_plan(struct explained *explained, struct buf *out)
{
    struct binding binding;
    json_t *root;

    binding_find(&binding, explained);
    print_step(&binding, out);
    report_bound(binding.report.plan, 4, out);
    print_memory_note(&binding, explained->command, out);
    emit_groups_equal(binding.report.plan, out);
    print_gpus(&binding, out);
    caches_print(binding.report.plan, out);
    if (plan_has_parts(binding.report.plan))
        report_phases(&binding.report, out);
    if (explained->gpu != ANY_GPU)
        placed_print(binding.report.plan, binding.gpu,
                     binding.report.options.n_columns, out);
    print_pieces(&binding, out);
    print_gains(&binding, out);
    print_scenarios(explained, out);
    root = to_json(explained, &binding);
    report_release(&binding.report);
    return root;
}

/* --- the place of a table --- */

#define WAY_WIDTH 44

#define WAY(member) MEMBER_OF(struct way, member)
static const struct figure way_figures[] = {
    {"way", "all else as it is", -WAY_WIDTH, WAY_WIDTH, FIGURE_CUT, WAY(name)},
    {"total_ms", "GPU ms", 10, 4, FIGURE_PLAIN, WAY(total_ms)},
    {NULL, "change", 10, 4, FIGURE_SIGNED, WAY(change_ms)},
    {"allowed", NULL, 0, 0, FIGURE_PLAIN, WAY(is_allowed)},
    {"why_not", "no: ", 0, 0, FIGURE_NOTE, WAY(why_not)},
    {0},
};

static void print_placement(const struct plan *plan, uint32_t t,
                            struct buf *out)
{
    const struct table *table = &plan->problem.tables[t];
    const struct shard *shards = plan->shards;
    size_t n, begin = 0;

    buf_printf(out, "table   '%s': %s rows x %u, pooling %g", table->name,
               TEXT_COUNT(table->num_embeddings), table->dim,
               table->pooling_factor);
    if (table->group)
        buf_printf(out, ", of group '%s'", table->group);
    while (shards[begin].table != t)
        begin++;
    n = emit_shards_end(plan, begin) - begin;
    if (shards[begin].kind == SHARD_TABLE)
        buf_printf(out, "\nnow     whole");
    else
        buf_printf(out, "\nnow     %zu %s shards", n,
                   shard_kind_name(shards[begin].kind));
    placed_print_where(plan, t, out);
    buf_printf(out, "\n");
}

/* Prints one sentence about the best alternative if only this table changes. */
static void print_verdict(const struct ways *ways, double now_ms,
                          struct buf *out)
{
    const struct way *best = ways_best(ways);
    double change_ms = best ? best->change_ms : 0;

    if (!best)
        buf_printf(out, "why     no other way is allowed\n");
    else if (change_ms < -SAME_FRAC * now_ms)
        buf_printf(out, "why     not the best: %s saves %.4f ms\n", best->name,
                   -change_ms);
    else if (change_ms <= SAME_FRAC * now_ms)
        buf_printf(out, "why     it does not set the step: %s costs the same\n",
                   best->name);
    else
        buf_printf(out,
                   "why     each other way costs more, at least %.4f ms: %s\n",
                   change_ms, best->name);
}

/* Returns the shards of a table and of its group for one way of placing them.
 * Together with the plan's other shards they form a plan to which `cost` gives
 * the same price. */
static json_t *json_shards(const struct way *way, const struct plan *now,
                           uint32_t table)
{
    json_t *list = json_array();

    for (size_t i = 0; i < way->plan.n_shards; i++) {
        const struct shard *shard = &way->plan.shards[i];

        if (tables_share_group(&now->problem, table, shard->table))
            json_array_append_new(list, shard_to_json(shard));
    }
    return list;
}

json_t *explain_table(struct explained *explained, uint32_t table,
                      struct buf *out)
{
    const struct plan *plan = explained->what_if.plan;
    json_t *list = json_array();
    struct ways ways;

    ways_find(&ways, &explained->what_if, table, explained->arena);
    print_placement(plan, table, out);
    buf_printf(out, "work    %.4f ms", plan->total_ms);
    plan_print_error(plan, out);
    buf_printf(out, " by %s (%s), %.4f ms without it\n", plan->cost.name,
               cost_basis_names[plan->cost.basis], ways.without_ms);
    cost_print_outside(&plan->cost, out);
    print_verdict(&ways, plan->total_ms, out);
    buf_printf(out, "\n");
    figures_heading(way_figures, out);
    buf_printf(out, "%-*s %10.4f\n", WAY_WIDTH, "now", plan->total_ms);
    for (size_t i = 0; i < ways.n + ways.n_untried; i++) {
        const struct way *way = &ways.ways[i];
        json_t *object = figures_object(way_figures, way);

        figures_row(way_figures, way, out);
        json_object_set_new(object, "shards", json_shards(way, plan, table));
        json_array_append_new(list, object);
    }
    return json_pack(
        "{s:s, s:s, s:o, s:f, s:f, s:o}", "table",
        plan->problem.tables[table].name, "cost_model", plan->cost.name,
        "outside", cost_outside_to_json(&plan->cost), "total_ms",
        plan->total_ms, "total_ms_without", ways.without_ms, "ways", list);
}
