/* SPDX-License-Identifier: MIT */
#include "emit/plan_diff.h"

#include "base/ranked.h"
#include "base/text.h"
#include "emit/report_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define N_GPUS_SHOWN 32u
#define N_TABLES_SHOWN 16u
#define N_MOVES_SHOWN 16u
#define NAME_WIDTH 28u

void plan_diff_find(struct plan_diff *diff, struct arena *arena)
{
    plan_moves_find(&diff->moves, &diff->plans[0], &diff->plans[1], arena);
    diff_gain_find(&diff->gain, diff->plans, diff->moves.bytes.moved, arena);
    diff_tiers_find(&diff->tiers, diff->plans, arena);
}

/* --- text --- */

static void print_plan(const char *word, const struct plan *plan,
                       const char *path, struct buf *out)
{
    buf_printf(out, "%-7s %s: %zu tables in %zu shards on %u GPU%s, ", word,
               path, plan->problem.n_tables, plan->n_shards,
               plan->problem.cluster.n_devices,
               plan->problem.cluster.n_devices == 1 ? "" : "s");
    if (isnan(plan->total_ms) || !plan->cost.name)
        buf_printf(out, "not priced\n");
    else
        buf_printf(out, "%.4f ms by %s\n", plan->total_ms, plan->cost.name);
}

static void print_movement(const struct plan_moves *moves, struct buf *out)
{
    size_t n_shown = 0;

    buf_printf(out, "moves   %s in %zu piece%s; %s stay",
               TEXT_BYTES(moves->bytes.moved), moves->n_moves,
               moves->n_moves == 1 ? "" : "s", TEXT_BYTES(moves->bytes.kept));
    if (moves->bytes.added)
        buf_printf(out, ", %s are new", TEXT_BYTES(moves->bytes.added));
    if (moves->bytes.removed)
        buf_printf(out, ", %s go", TEXT_BYTES(moves->bytes.removed));
    buf_printf(out, "\ntables  ");
    for (size_t f = 0; f < N_FATES; f++)
        if (moves->n_fates[f])
            buf_printf(out, "%s%zu %s", n_shown++ ? ", " : "",
                       moves->n_fates[f], table_fate_names[f]);
    buf_printf(out, "\n");
}

static const struct byte_unit *choose_unit(const struct plan_moves *moves)
{
    const struct byte_unit *unit = byte_units;
    double most = (double)max_u64(moves->bytes.moved, moves->bytes.added);

    while (unit[1].name && most >= 8 * unit[1].n_bytes)
        unit++;
    return unit;
}

static void print_more(size_t n, size_t n_shown, struct buf *out)
{
    if (n > n_shown)
        buf_printf(out, "... and %zu more\n", n - n_shown);
}

static void print_gpus(const struct plan_moves *moves,
                       const struct byte_unit *unit, struct buf *out)
{
    struct ranked *ranked = mem_alloc(moves->n_devices, sizeof(*ranked));
    size_t n = 0;

    for (uint32_t r = 0; r < moves->n_devices; r++)
        if (moves->received_bytes[r] || moves->sent_bytes[r])
            ranked[n++] = (struct ranked){-(double)moves->received_bytes[r] -
                                              (double)moves->sent_bytes[r],
                                          r};
    ranked_sort(ranked, n);
    if (n)
        buf_printf(out, "\nGPU   received %s   sent %s\n", unit->name,
                   unit->name);
    for (size_t i = 0; i < n && i < N_GPUS_SHOWN; i++)
        buf_printf(out, "%-4u %13.3f %10.3f\n", ranked[i].idx,
                   (double)moves->received_bytes[ranked[i].idx] / unit->n_bytes,
                   (double)moves->sent_bytes[ranked[i].idx] / unit->n_bytes);
    print_more(n, N_GPUS_SHOWN, out);
    mem_free(ranked);
}

static void print_tables(const struct plan_moves *moves,
                         const struct byte_unit *unit, struct buf *out)
{
    struct ranked *ranked = mem_alloc(moves->n_tables, sizeof(*ranked));
    size_t n = 0;

    for (size_t t = 0; t < moves->n_tables; t++)
        if (moves->tables[t].fate != FATE_KEPT)
            ranked[n++] = (struct ranked){-(double)moves->tables[t].bytes.moved,
                                          (uint32_t)t};
    ranked_sort(ranked, n);
    if (n)
        buf_printf(out,
                   "\n%-*s  fate     pieces: before after  moved %s  new %s\n",
                   (int)NAME_WIDTH, "table", unit->name, unit->name);
    for (size_t i = 0; i < n && i < N_TABLES_SHOWN; i++) {
        const struct table_moves *table = &moves->tables[ranked[i].idx];

        text_column(out, table->name, NAME_WIDTH);
        buf_printf(out, "  %-8s %14u %5u %10.3f %8.3f\n",
                   table_fate_names[table->fate], table->n_before,
                   table->n_after, (double)table->bytes.moved / unit->n_bytes,
                   (double)table->bytes.added / unit->n_bytes);
    }
    print_more(n, N_TABLES_SHOWN, out);
    mem_free(ranked);
}

static void print_moves(const struct plan_moves *moves,
                        const struct byte_unit *unit, struct buf *out)
{
    struct ranked *ranked = mem_alloc(moves->n_moves, sizeof(*ranked));

    for (size_t i = 0; i < moves->n_moves; i++)
        ranked[i] =
            (struct ranked){-(double)moves->moves[i].bytes, (uint32_t)i};
    ranked_sort(ranked, moves->n_moves);
    if (moves->n_moves)
        buf_printf(out, "\n%-*s  from   to        %s  columns      rows\n",
                   (int)NAME_WIDTH, "piece that moves", unit->name);
    for (size_t i = 0; i < moves->n_moves && i < N_MOVES_SHOWN; i++) {
        const struct move *move = &moves->moves[ranked[i].idx];
        char columns[32];

        text_column(out, moves->tables[move->table].name, NAME_WIDTH);
        snprintf(columns, sizeof(columns), "%u-%u", move->col_begin,
                 move->col_end);
        buf_printf(out, " %5u %4u %10.3f  %-11s  %" PRIu64 "-%" PRIu64 "\n",
                   move->from, move->to, (double)move->bytes / unit->n_bytes,
                   columns, move->row_begin, move->row_end);
    }
    print_more(moves->n_moves, N_MOVES_SHOWN, out);
    mem_free(ranked);
}

void plan_diff_print(const struct plan_diff *diff, struct buf *out)
{
    const struct byte_unit *unit = choose_unit(&diff->moves);

    print_plan("before", &diff->plans[0], diff->paths[0], out);
    print_plan("after", &diff->plans[1], diff->paths[1], out);
    diff_gain_print(&diff->gain, out);
    print_movement(&diff->moves, out);
    diff_tiers_print(&diff->tiers, out);
    if (diff->gain.verdict)
        buf_printf(out, "%s\n", diff->gain.verdict);
    print_gpus(&diff->moves, unit, out);
    print_tables(&diff->moves, unit, out);
    print_moves(&diff->moves, unit, out);
}

/* --- JSON --- */

/* One of the two plans, by its index. */
static json_t *json_plan(const struct plan_diff *diff, int i)
{
    const struct plan *plan = &diff->plans[i];
    bool is_priced = !isnan(plan->total_ms) && plan->cost.name;

    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:s?}", "plan", diff->paths[i],
                     "gpus", (json_int_t)plan->problem.cluster.n_devices,
                     "total_ms",
                     is_priced ? json_real(plan->total_ms) : json_null(),
                     "step_ms", json_real_or_null(diff->gain.steps[i].ms),
                     "host_ms", json_real_or_null(diff->gain.host_ms[i]),
                     "cost_model", is_priced ? plan->cost.name : NULL);
}

static json_t *json_bytes(const struct moved_bytes *bytes)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "moved", json_count(bytes->moved),
                     "kept", json_count(bytes->kept), "added",
                     json_count(bytes->added), "removed",
                     json_count(bytes->removed));
}

static json_t *json_gpus(const struct plan_moves *moves)
{
    json_t *list = json_array();

    for (uint32_t r = 0; r < moves->n_devices; r++)
        json_array_append_new(
            list, json_pack("{s:I, s:I}", "received",
                            json_count(moves->received_bytes[r]), "sent",
                            json_count(moves->sent_bytes[r])));
    return list;
}

static json_t *json_tables(const struct plan_moves *moves)
{
    json_t *list = json_array();

    for (size_t t = 0; t < moves->n_tables; t++) {
        const struct table_moves *table = &moves->tables[t];

        if (table->fate != FATE_KEPT)
            json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:I, s:I, s:o}", "name", table->name,
                          "fate", table_fate_names[table->fate],
                          "pieces_before", (json_int_t)table->n_before,
                          "pieces_after", (json_int_t)table->n_after, "bytes",
                          json_bytes(&table->bytes)));
    }
    return list;
}

static json_t *json_moves(const struct plan_moves *moves)
{
    json_t *list = json_array();

    for (size_t i = 0; i < moves->n_moves; i++) {
        const struct move *move = &moves->moves[i];

        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "table",
                            moves->tables[move->table].name, "row_begin",
                            json_count(move->row_begin), "row_end",
                            json_count(move->row_end), "col_begin",
                            (json_int_t)move->col_begin, "col_end",
                            (json_int_t)move->col_end, "from",
                            (json_int_t)move->from, "to", (json_int_t)move->to,
                            "bytes", json_count(move->bytes)));
    }
    return list;
}

json_t *plan_moves_to_json(const struct plan_moves *moves)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "bytes", json_bytes(&moves->bytes),
                     "gpus", json_gpus(moves), "tables", json_tables(moves),
                     "moves", json_moves(moves));
}

json_t *plan_diff_to_json(const struct plan_diff *diff)
{
    const struct diff_gain *gain = &diff->gain;
    json_t *root = json_pack(
        "{s:o, s:o, s:b, s:o}", "before", json_plan(diff, 0), "after",
        json_plan(diff, 1), "priced_alike", gain->is_priced, "gain_error_frac",
        json_real_or_null(gain->work_error_frac * gain->work_ratio));

    json_object_update_new(root, diff_gain_to_json(gain));
    json_object_update_new(root, plan_moves_to_json(&diff->moves));
    json_object_set_new(root, "tiers", diff_tiers_to_json(&diff->tiers));
    return root;
}
