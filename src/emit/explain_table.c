/* SPDX-License-Identifier: MIT */
#include "emit/explain.h"

#include "base/figures.h"
#include "base/text.h"
#include "core/ways.h"

#define NAME_WIDTH 44
#define N_HOLDERS_SHOWN 8u
/* Of the step: a smaller difference is none. */
#define SAME_FRAC 1e-3

#define WAY(member) MEMBER_OF(struct way, member)
static const struct figure way_figures[] = {
    {"way", "all else as it is", -NAME_WIDTH, NAME_WIDTH, FIGURE_CUT,
     WAY(name)},
    {"total_ms", "step ms", 10, 4, FIGURE_PLAIN, WAY(total_ms)},
    {NULL, "change", 10, 4, FIGURE_SIGNED, WAY(change_ms)},
    {"allowed", NULL, 0, 0, FIGURE_PLAIN, WAY(is_allowed)},
    {"why_not", "no: ", 0, 0, FIGURE_NOTE, WAY(why_not)},
    {0},
};

static void print_head(const struct plan *plan, uint32_t t, struct buf *out)
{
    const struct table *table = &plan->problem.tables[t];
    char rows[TEXT_BYTES_MAX];
    enum shard_kind kind = SHARD_TABLE;
    size_t n = 0;

    buf_printf(out, "table   '%s': %s rows x %u, pooling %g", table->name,
               text_from_count(rows, table->num_embeddings), table->dim,
               table->pooling_factor);
    if (table->group)
        buf_printf(out, ", of group '%s'", table->group);
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].table == t) {
            kind = plan->shards[i].kind;
            n++;
        }
    if (kind == SHARD_TABLE)
        buf_printf(out, "\nnow     whole on GPU");
    else
        buf_printf(out, "\nnow     %zu %s shards on GPUs", n,
                   shard_kind_name(kind));
    for (size_t i = 0, n_shown = 0; i < plan->n_shards; i++) {
        if (plan->shards[i].table != t)
            continue;
        if (n_shown++ == N_HOLDERS_SHOWN) {
            buf_printf(out, " ...");
            break;
        }
        buf_printf(out, " %u", plan->shards[i].device);
    }
    buf_printf(out, "\n");
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
    print_head(plan, table, out);
    buf_printf(out, "step    %.4f ms by %s (%s), %.4f ms without it\n",
               plan->total_ms, plan->cost.name,
               cost_basis_names[plan->cost.basis], ways.without_ms);
    print_verdict(&ways, plan->total_ms, out);
    buf_printf(out, "\n");
    figures_heading(way_figures, out);
    buf_printf(out, "%-*s %10.4f\n", NAME_WIDTH, "now", plan->total_ms);
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
    return json_pack("{s:s, s:s, s:f, s:f, s:o}", "table",
                     plan->problem.tables[table].name, "cost_model",
                     plan->cost.name, "total_ms", plan->total_ms,
                     "total_ms_without", ways.without_ms, "ways", list);
}
