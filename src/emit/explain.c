/* SPDX-License-Identifier: MIT */
#include "emit/explain.h"

#include "base/figures.h"
#include "base/ranked.h"
#include "base/text.h"
#include "core/ways.h"
#include "emit/formats.h"
#include "emit/report_parts.h"

#include <stdio.h>
#include <stdlib.h>

#define N_GPUS_SHOWN 32u
#define N_PIECES_SHOWN 10u
#define NAME_WIDTH 22
#define WAY_WIDTH 44
#define N_HOLDERS_SHOWN 8u
/* Of the step: a smaller difference is none. */
#define SAME_FRAC 1e-3

/* --- what binds a plan --- */

/* A GPU's step. Its own time is what it takes until the others wait for it:
 * until it is ready for the forward all-to-all, after compute and backward. A
 * cost model without waiting adds up each GPU by itself: there it is all. */
struct gpu {
    uint32_t gpu;
    double own_ms;
    double behind_ms; /* less than the last one */
    double compute_ms, bwd_comm_ms;
    double fwd_ms; /* forward communication without the waiting */
    double used_frac;
    uint64_t used_bytes, memory_bytes, free_bytes;
    uint64_t n_fitting; /* pieces of the last GPU for which this one has room */
    double has_room_for; /* the same; NAN for the last one itself */
};
#define GPU(member) MEMBER_OF(struct gpu, member)
static const struct figure gpu_figures[] = {
    {NULL, "GPU", -5, 0, FIGURE_PLAIN, GPU(gpu)},
    {"own_ms", "ms", 8, 4, FIGURE_PLAIN, GPU(own_ms)},
    {"sooner_by_ms", "ms", 8, 4, FIGURE_PLAIN, GPU(behind_ms)},
    {"compute_ms", "ms", 8, 4, FIGURE_PLAIN, GPU(compute_ms)},
    {"bwd_comm_ms", "ms", 8, 4, FIGURE_PLAIN, GPU(bwd_comm_ms)},
    {"fwd_comm_ms", "ms", 8, 4, FIGURE_PLAIN, GPU(fwd_ms)},
    {NULL, "%", 6, 1, FIGURE_PERCENT, GPU(used_frac)},
    {"used_bytes", NULL, 0, 0, FIGURE_PLAIN, GPU(used_bytes)},
    {"memory_bytes", NULL, 0, 0, FIGURE_PLAIN, GPU(memory_bytes)},
    {NULL, "free", 10, 0, FIGURE_BYTES, GPU(free_bytes)},
    {"has_room_for", NULL, 0, 0, FIGURE_PLAIN, GPU(n_fitting)},
    {NULL, "pieces", 8, 0, FIGURE_PLAIN, GPU(has_room_for)},
    {0},
};

/* A piece on the GPU that is last. */
struct marginal {
    uint64_t shard, n_rows;
    const char *table, *kind;
    uint32_t n_columns;
    double step_ms, saved_ms; /* without it */
    double own_ms;            /* of its GPU, without it */
    bool has_room;            /* on some other GPU */
};
#define PIECE(member) MEMBER_OF(struct marginal, member)
static const struct figure piece_figures[] = {
    {"shard", NULL, 0, 0, FIGURE_PLAIN, PIECE(shard)},
    {"table", "table", NAME_WIDTH + 1, NAME_WIDTH, FIGURE_CUT, PIECE(table)},
    {"kind", "kind", -9, 0, FIGURE_PLAIN, PIECE(kind)},
    {NULL, "columns", 6, 0, FIGURE_PLAIN, PIECE(n_columns)},
    {NULL, "rows", 10, 0, FIGURE_PLAIN, PIECE(n_rows)},
    {"total_ms_without", "step ms", 8, 4, FIGURE_PLAIN, PIECE(step_ms)},
    {NULL, "saved", 7, 4, FIGURE_PLAIN, PIECE(saved_ms)},
    {"own_ms_without", "ms", 8, 4, FIGURE_PLAIN, PIECE(own_ms)},
    {"has_room_elsewhere", NULL, 0, 0, FIGURE_PLAIN, PIECE(has_room)},
    {0},
};

struct binding {
    const struct plan *plan;
    bool waits; /* the cost model has GPUs wait for each other */
    struct bottleneck bottleneck;
    uint32_t n_gpus, last, slow_fwd; /* slow_fwd: with the largest fwd_ms */
    struct gpu *gpus;                /* [n_gpus], in the arena */
    struct marginal *pieces;         /* [n_pieces], in the arena: the last
                                        GPU's, the one that costs most first */
    size_t n_pieces, n_stuck;        /* stuck: fits on no other GPU */
};

static void find_last(struct binding *binding)
{
    const struct plan *plan = binding->plan;
    struct gpu *gpus = binding->gpus;

    for (uint32_t r = 0; r < binding->n_gpus; r++) {
        const struct device_cost *cost = &plan->devices[r];
        uint64_t have = plan->problem.cluster.memory_bytes[r];
        uint64_t used = cost->memory.total;

        gpus[r] = (struct gpu){
            .gpu = r,
            .own_ms = report_own_ms(cost, binding->waits),
            .compute_ms = cost->compute_ms,
            .bwd_comm_ms = cost->bwd_comm_ms,
            .fwd_ms = cost->fwd_comm_ms,
            .used_frac = have ? (double)used / (double)have : 0,
            .used_bytes = used,
            .memory_bytes = have,
            .free_bytes = used < have ? have - used : 0,
        };
    }
    binding->slow_fwd = binding->waits ? 0 : binding->last;
    for (uint32_t r = 0; r < binding->n_gpus; r++) {
        gpus[r].behind_ms = gpus[binding->last].own_ms - gpus[r].own_ms;
        if (!binding->waits)
            continue;
        gpus[r].fwd_ms = fmax(gpus[r].fwd_ms - gpus[r].behind_ms, 0);
        if (gpus[r].fwd_ms > gpus[binding->slow_fwd].fwd_ms)
            binding->slow_fwd = r;
    }
}

static int compare_marginals(const void *left, const void *right)
{
    const struct marginal *a = left, *b = right;

    if (a->step_ms != b->step_ms)
        return a->step_ms < b->step_ms ? -1 : 1;
    if (a->own_ms != b->own_ms)
        return a->own_ms < b->own_ms ? -1 : 1;
    return (a->shard > b->shard) - (a->shard < b->shard);
}

static struct marginal price_piece(struct binding *binding,
                                   struct what_if *what_if, size_t idx)
{
    struct edit without = {.gone = &idx, .n_gone = 1};
    const struct plan *plan = binding->plan;
    const struct shard *shard = &plan->shards[idx];
    struct marginal piece = {
        .shard = idx,
        .n_rows = shard->row_end - shard->row_begin,
        .table = plan->problem.tables[shard->table].name,
        .kind = shard_kind_name(shard->kind),
        .n_columns = shard->col_end - shard->col_begin,
        .step_ms = what_if_step(what_if, &without),
    };

    piece.saved_ms = plan->total_ms - piece.step_ms;
    piece.own_ms = report_own_ms(
        &(struct device_cost){
            .compute_ms = what_if->compute_ms[binding->last],
            .bwd_comm_ms = what_if->bwd_comm_ms[binding->last],
            .fwd_comm_ms = what_if->fwd_comm_ms[binding->last]},
        binding->waits);
    for (uint32_t r = 0; r < binding->n_gpus; r++) {
        struct shard there = *shard;
        struct edit move = {&idx, 1, &there, 1};

        there.device = r;
        if (r == binding->last || !what_if_fits(what_if, &move))
            continue;
        piece.has_room = true;
        binding->gpus[r].n_fitting++;
    }
    return piece;
}

static void price_pieces(struct binding *binding, struct what_if *what_if,
                         struct arena *arena)
{
    const struct plan *plan = binding->plan;

    binding->pieces = ARENA_NEW(arena, struct marginal, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct marginal piece;

        if (plan->shards[i].device != binding->last)
            continue;
        piece = price_piece(binding, what_if, i);
        binding->n_stuck += !piece.has_room;
        binding->pieces[binding->n_pieces++] = piece;
    }
    qsort(binding->pieces, binding->n_pieces, sizeof(*binding->pieces),
          compare_marginals);
}

static void binding_find(struct binding *binding, struct explained *explained)
{
    const struct plan *plan = explained->what_if.plan;
    double *without_ms =
        ARENA_NEW(explained->arena, double, plan->problem.n_tables);

    *binding =
        (struct binding){.plan = plan,
                         .waits = oracle_waits(explained->what_if.oracle),
                         .n_gpus = plan->problem.cluster.n_devices};
    what_if_without(&explained->what_if, without_ms);
    bottleneck_find(&binding->bottleneck, plan, binding->waits, without_ms);
    binding->last = binding->bottleneck.gpu;
    binding->gpus = ARENA_NEW(explained->arena, struct gpu, binding->n_gpus);
    find_last(binding);
    price_pieces(binding, &explained->what_if, explained->arena);
    for (uint32_t r = 0; r < binding->n_gpus; r++)
        binding->gpus[r].has_room_for =
            r == binding->last ? NAN : (double)binding->gpus[r].n_fitting;
}

static void print_step(const struct binding *binding, struct buf *out)
{
    const struct plan *plan = binding->plan;
    const struct device_cost *last = &plan->devices[binding->last];

    buf_printf(out, "step    %.4f ms", plan->total_ms);
    report_error(plan, out);
    buf_printf(out, " by %s (%s)\n", plan->cost.name,
               cost_basis_names[plan->cost.basis]);
    report_outside(&plan->cost, out);
    report_job(plan, out);
    bottleneck_print(&binding->bottleneck, plan, binding->waits, out);
    buf_printf(out,
               "        GPU %u takes %.4f ms: compute %.4f, backward "
               "communication %.4f",
               binding->last, binding->gpus[binding->last].own_ms,
               last->compute_ms, last->bwd_comm_ms);
    if (binding->waits)
        buf_printf(out,
                   "\n        the forward communication then takes %.4f ms, "
                   "longest on GPU %u\n",
                   binding->gpus[binding->slow_fwd].fwd_ms, binding->slow_fwd);
    else
        buf_printf(out, ", forward communication %.4f\n", last->fwd_comm_ms);
}

static void print_bound(const struct explained *explained, struct buf *out)
{
    double total_ms = explained->what_if.plan->total_ms;

    if (isnan(explained->bound_ms)) {
        buf_printf(out, "bound   none is proven for this cost model\n");
        return;
    }
    buf_printf(out, "bound   no plan takes less than %.4f ms, by the %s",
               explained->bound_ms, explained->bound_term);
    if (explained->bound_table)
        buf_printf(out, " (table '%.40s')", explained->bound_table);
    buf_printf(out, ": this one is within %.2f %%\n",
               100 * (total_ms / explained->bound_ms - 1));
}

static void print_memory_note(const struct binding *binding, struct buf *out)
{
    if (binding->n_gpus < 2)
        return;
    if (!binding->n_pieces)
        buf_printf(out, "memory  GPU %u holds nothing\n", binding->last);
    else if (!binding->n_stuck)
        buf_printf(out,
                   "memory  does not bind: each piece of GPU %u has room on "
                   "another GPU\n",
                   binding->last);
    else
        buf_printf(out,
                   "memory  binds: %zu of %zu pieces of GPU %u have room on no "
                   "other GPU\n",
                   binding->n_stuck, binding->n_pieces, binding->last);
}

static void print_gpus(const struct binding *binding, struct buf *out)
{
    struct ranked *ranked = mem_alloc(binding->n_gpus, sizeof(*ranked));

    buf_printf(out,
               "\n      %8s   sooner  compute bwd comm fwd comm memory"
               "             room for\n"
               "GPU         ms    by ms       ms       ms       ms      %%"
               "       free  %u's pieces\n",
               binding->waits ? "ready" : "total", binding->last);
    for (uint32_t r = 0; r < binding->n_gpus; r++)
        ranked[r] = (struct ranked){-binding->gpus[r].own_ms, r};
    ranked_sort(ranked, binding->n_gpus);
    for (uint32_t i = 0; i < binding->n_gpus && i < N_GPUS_SHOWN; i++)
        figures_row(gpu_figures, &binding->gpus[ranked[i].idx], out);
    if (binding->n_gpus > N_GPUS_SHOWN)
        buf_printf(out, "... and %u that are sooner\n",
                   binding->n_gpus - N_GPUS_SHOWN);
    mem_free(ranked);
}

static void print_pieces(const struct binding *binding, struct buf *out)
{
    char gpu[24];

    if (!binding->n_pieces)
        return;
    snprintf(gpu, sizeof(gpu), "piece on GPU %u", binding->last);
    buf_printf(out, "\n%-*s %37s %7s %5s ms\n%-*s  kind %11s %10s\n",
               NAME_WIDTH, "without it:", "step ms", "saved",
               binding->waits ? "ready" : "total", NAME_WIDTH, gpu, "columns",
               "rows");
    for (size_t i = 0; i < binding->n_pieces && i < N_PIECES_SHOWN; i++)
        figures_row(piece_figures, &binding->pieces[i], out);
    if (binding->n_pieces > N_PIECES_SHOWN)
        buf_printf(out, "... and %zu more\n",
                   binding->n_pieces - N_PIECES_SHOWN);
}

void explain_plan(struct explained *explained, struct buf *out)
{
    const struct report_options options = {
        .waits = oracle_waits(explained->what_if.oracle)};
    struct binding binding;
    struct report report;

    binding_find(&binding, explained);
    report_init(&report, explained->what_if.plan, &options);
    print_step(&binding, out);
    print_bound(explained, out);
    print_memory_note(&binding, out);
    print_gpus(&binding, out);
    if (plan_has_parts(explained->what_if.plan))
        report_phases(&report, out);
    report_release(&report);
    print_pieces(&binding, out);
}

json_t *explain_plan_json(struct explained *explained)
{
    const struct plan *plan = explained->what_if.plan;
    struct binding binding;

    binding_find(&binding, explained);
    return json_pack("{s:s, s:o, s:f, s:I, s:I, s:s, s:f, s:o, s:o, s:o, s:s?}",
                     "cost_model", plan->cost.name, "outside",
                     report_outside_json(&plan->cost), "total_ms",
                     plan->total_ms, "last_gpu", (json_int_t)binding.last,
                     "longest_fwd_comm_gpu", (json_int_t)binding.slow_fwd,
                     "largest_part", binding.bottleneck.phase,
                     "largest_part_ms", binding.bottleneck.phase_ms, "gpus",
                     figures_list(gpu_figures, binding.gpus, binding.n_gpus,
                                  sizeof(*binding.gpus)),
                     "pieces",
                     figures_list(piece_figures, binding.pieces,
                                  binding.n_pieces, sizeof(*binding.pieces)),
                     "bound_ms", json_real_or_null(explained->bound_ms),
                     "bound_term", explained->bound_term);
}

/* --- why a table is where it is --- */

#define WAY(member) MEMBER_OF(struct way, member)
static const struct figure way_figures[] = {
    {"way", "all else as it is", -WAY_WIDTH, WAY_WIDTH, FIGURE_CUT, WAY(name)},
    {"total_ms", "step ms", 10, 4, FIGURE_PLAIN, WAY(total_ms)},
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
    char rows[TEXT_BYTES_MAX];
    size_t n, begin = 0;

    buf_printf(out, "table   '%s': %s rows x %u, pooling %g", table->name,
               text_from_count(rows, table->num_embeddings), table->dim,
               table->pooling_factor);
    if (table->group)
        buf_printf(out, ", of group '%s'", table->group);
    while (shards[begin].table != t)
        begin++;
    n = emit_shards_end(plan, begin) - begin;
    if (shards[begin].kind == SHARD_TABLE)
        buf_printf(out, "\nnow     whole on GPU");
    else
        buf_printf(out, "\nnow     %zu %s shards on GPUs", n,
                   shard_kind_name(shards[begin].kind));
    for (size_t i = 0; i < n && i < N_HOLDERS_SHOWN; i++)
        buf_printf(out, " %u", shards[begin + i].device);
    buf_printf(out, "%s\n", n > N_HOLDERS_SHOWN ? " ..." : "");
}

/* One sentence on the best that could be done with this table alone. */
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

void explain_table(struct explained *explained, uint32_t table, struct buf *out)
{
    const struct plan *plan = explained->what_if.plan;
    struct ways ways;

    ways_find(&ways, &explained->what_if, table, explained->arena);
    print_placement(plan, table, out);
    buf_printf(out, "step    %.4f ms", plan->total_ms);
    report_error(plan, out);
    buf_printf(out, " by %s (%s), %.4f ms without it\n", plan->cost.name,
               cost_basis_names[plan->cost.basis], ways.without_ms);
    report_outside(&plan->cost, out);
    print_verdict(&ways, plan->total_ms, out);
    buf_printf(out, "\n");
    figures_heading(way_figures, out);
    buf_printf(out, "%-*s %10.4f\n", WAY_WIDTH, "now", plan->total_ms);
    for (size_t i = 0; i < ways.n; i++)
        figures_row(way_figures, &ways.ways[i], out);
}

/* Where the way has the table, and its group: with the plan's other shards a
 * plan that `cost` prices alike. */
static json_t *json_shards(const struct way *way, const struct plan *now,
                           uint32_t table)
{
    json_t *list = json_array();

    for (size_t i = 0; i < way->plan.n_shards; i++) {
        const struct shard *shard = &way->plan.shards[i];

        if (ways_share(&now->problem, table, shard->table))
            json_array_append_new(
                list, json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "table",
                                (json_int_t)shard->table, "kind",
                                shard_kind_name(shard->kind), "row_begin",
                                (json_int_t)shard->row_begin, "row_end",
                                (json_int_t)shard->row_end, "col_begin",
                                (json_int_t)shard->col_begin, "col_end",
                                (json_int_t)shard->col_end, "device",
                                (json_int_t)shard->device));
    }
    return list;
}

json_t *explain_table_json(struct explained *explained, uint32_t table)
{
    const struct plan *plan = explained->what_if.plan;
    json_t *list = json_array();
    struct ways ways;

    ways_find(&ways, &explained->what_if, table, explained->arena);
    for (size_t i = 0; i < ways.n; i++) {
        json_t *object = figures_object(way_figures, &ways.ways[i]);

        json_object_set_new(object, "shards",
                            json_shards(&ways.ways[i], plan, table));
        json_array_append_new(list, object);
    }
    return json_pack(
        "{s:s, s:s, s:o, s:f, s:f, s:o}", "table",
        plan->problem.tables[table].name, "cost_model", plan->cost.name,
        "outside", report_outside_json(&plan->cost), "total_ms", plan->total_ms,
        "total_ms_without", ways.without_ms, "ways", list);
}
