/* SPDX-License-Identifier: MIT */
#include "emit/explain.h"

#include "base/figures.h"
#include "base/text.h"
#include "core/ways.h"
#include "emit/formats.h"
#include "emit/report_parts.h"

#define WAY_WIDTH 44
#define N_HOLDERS_SHOWN 8u
/* Of the step: a smaller difference is none. */
#define SAME_FRAC 1e-3

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

/* Where the way has the table, and its group: with the plan's other shards a
 * plan that `cost` prices alike. */
static json_t *json_shards(const struct way *way, const struct plan *now,
                           uint32_t table)
{
    json_t *list = json_array();

    for (size_t i = 0; i < way->plan.n_shards; i++) {
        const struct shard *shard = &way->plan.shards[i];

        if (ways_share(&now->problem, table, shard->table))
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
    buf_printf(out, "step    %.4f ms", plan->total_ms);
    report_error(plan, out);
    buf_printf(out, " by %s (%s), %.4f ms without it\n", plan->cost.name,
               cost_basis_names[plan->cost.basis], ways.without_ms);
    report_outside(&plan->cost, out);
    print_verdict(&ways, plan->total_ms, out);
    buf_printf(out, "\n");
    figures_heading(way_figures, out);
    buf_printf(out, "%-*s %10.4f\n", WAY_WIDTH, "now", plan->total_ms);
    for (size_t i = 0; i < ways.n + ways.n_untried; i++) {
        const struct way *way =
            i < ways.n ? &ways.ways[i] : &ways.untried[i - ways.n];
        json_t *object = figures_object(way_figures, way);

        figures_row(way_figures, way, out);
        json_object_set_new(object, "shards", json_shards(way, plan, table));
        json_array_append_new(list, object);
    }
    return json_pack(
        "{s:s, s:s, s:o, s:f, s:f, s:o}", "table",
        plan->problem.tables[table].name, "cost_model", plan->cost.name,
        "outside", report_outside_json(&plan->cost), "total_ms", plan->total_ms,
        "total_ms_without", ways.without_ms, "ways", list);
}
