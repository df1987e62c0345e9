/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec.h"

#include "base/json.h"
#include "base/text.h"
#include "io/plan_printed.h"
#include "io/plan_torchrec_json.h"
#include "io/plan_torchrec_tiers.h"
#include "io/planner_report.h"
#include "io/tables_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void place_name(struct torchrec_reader *reader, const char *name,
                       size_t table)
{
    json_object_set_new(reader->places, name, json_integer((json_int_t)table));
}

/* --- the planner's report --- */

/* Columns that a planner's report and a table list have in common. */
static const struct {
    enum planner_column printed;
    size_t column;
} list_columns[] = {
    {PLANNER_FQN, COLUMN_NAME},      {PLANNER_INDICES, COLUMN_POOLING},
    {PLANNER_OUTPUT, COLUMN_OUTPUT}, {PLANNER_POOLINGS, COLUMN_OUTPUTS},
    {PLANNER_DIM, COLUMN_DIM},       {PLANNER_ROWS, COLUMN_ROWS},
};
#define N_LIST_COLUMNS (sizeof(list_columns) / sizeof(*list_columns))

/* Returns a cell as a number: NAN if it is not a number or is negative, 1 if
 * the cell is missing. */
static double cell_number(const char *cell)
{
    double number = 1;

    if (cell && (!text_to_double(cell, &number) || number < 0))
        return NAN;
    return number;
}

/* Returns the lookups per sample of a table in a planner's report. TorchRec
 * before 1.1 does not print them. It prints two sums over the F features of a
 * table: the sum of the pooling factors and the sum of the poolings. The number
 * of lookups is then the product of the two sums, divided by F. */
static const char *look_ups(const struct planner_row *row, struct arena *arena)
{
    const double n_features =
        fmax(cell_number(row->cells[PLANNER_FEATURES]), 1);
    const double n =
        cell_number(row->cells[PLANNER_FACTOR]) *
        (row->cells[PLANNER_POOLINGS]
             ? cell_number(row->cells[PLANNER_POOLINGS]) / n_features
             : 1);

    if (row->cells[PLANNER_INDICES])
        return row->cells[PLANNER_INDICES];
    return isnan(n) ? row->cells[PLANNER_FACTOR]
                    : arena_printf(arena, "%.15g", n);
}

/* Returns the number of columns of a table's piece; 0 if unknown. The report
 * may give the piece's width in brackets, as in "128 (64)". If it does not, the
 * columns of a column-wise table are divided by the number of ranks, and a
 * piece of any other table has the table's full width. */
static uint64_t piece_width(const struct torchrec_entry *entry,
                            const char *width, const char *sharding)
{
    if (width)
        return strtoull(width, NULL, 10);
    if (!strcmp(sharding, "CW") || !strcmp(sharding, "TWCW"))
        return entry->dim % entry->n_ranks ? 0 : entry->dim / entry->n_ranks;
    return entry->dim;
}

/* True if the number of ranks of an entry fits the number of pieces that its
 * kind of sharding needs. */
static bool has_its_pieces(const struct torchrec_entry *entry,
                           const char *sharding)
{
    const uint64_t n_blocks = (entry->dim - 1) / entry->width + 1;

    if (text_which("TW|CW|TWCW", sharding) >= 0)
        return entry->n_ranks == n_blocks;
    return entry->n_ranks % n_blocks == 0;
}

/* Reads a table's row of the planner's report. */
static int read_cells(struct torchrec_entry *entry, struct table *table,
                      const struct torchrec_reader *reader,
                      const struct planner_row *row, struct err *err)
{
    static const struct tables_options options = {0};
    struct table_cells told = {.options = &options, .arena = reader->arena};
    const char *sharding = row->cells[PLANNER_SHARDING];
    const char *dim = row->cells[PLANNER_DIM], *width = strstr(dim, " (");
    enum planner_column wrong = N_PLANNER_COLUMNS;

    for (size_t i = 0; i < N_LIST_COLUMNS; i++) {
        told.names[list_columns[i].column] =
            planner_column_name(list_columns[i].printed);
        told.texts[list_columns[i].column] =
            row->cells[list_columns[i].printed];
    }
    if (width)
        told.texts[COLUMN_DIM] =
            arena_strndup(reader->arena, dim, (size_t)(width - dim));
    told.texts[COLUMN_POOLING] = look_ups(row, reader->arena);
    if (!told.texts[COLUMN_OUTPUTS])
        told.texts[COLUMN_OUTPUTS] = row->cells[PLANNER_FEATURES];
    entry->fqn = row->cells[PLANNER_FQN];
    entry->kernel = row->cells[PLANNER_KERNEL];
    if (table_from_cells(table, &told, err))
        return err_prefix(err, "table '%s'", entry->fqn);
    entry->n_rows = table->num_embeddings;
    entry->dim = table->dim;
    entry->ranks =
        planner_ranks(&entry->n_ranks, row->cells[PLANNER_RANKS],
                      reader->plan->problem.cluster.n_devices, reader->arena);
    entry->width = entry->ranks
                       ? piece_width(entry, width ? width + 2 : NULL, sharding)
                       : 0;
    if (text_which(PLANNER_KINDS, sharding) < 0)
        wrong = PLANNER_SHARDING;
    else if (entry->ranks && (!entry->width || entry->width > entry->dim))
        wrong = PLANNER_DIM;
    else if (!entry->ranks || !has_its_pieces(entry, sharding))
        wrong = PLANNER_RANKS;
    if (wrong == N_PLANNER_COLUMNS)
        return 0;
    return err_input(err, "table '%s' cannot have the %s '%s'", entry->fqn,
                     planner_column_name(wrong), row->cells[wrong]);
}

/* Reads a table's row of the planner's report and adds its shards. If no table
 * list was given, also adds the table. */
static int read_row(struct torchrec_reader *reader,
                    const struct planner_row *row, struct err *err)
{
    struct problem *problem = &reader->plan->problem;
    struct torchrec_entry entry = {0};
    struct table table;

    if (read_cells(&entry, &table, reader, row, err))
        return -1;
    if (json_object_get(reader->places, entry.fqn))
        table.name = arena_printf(reader->arena, "%s#2", entry.fqn);
    if (reader->lists_tables && !json_object_get(reader->places, table.name)) {
        place_name(reader, table.name, problem->n_tables);
        problem->tables[problem->n_tables++] = table;
    }
    if (torchrec_check_entry(&entry, reader, err) ||
        torchrec_read_load_factor(&entry, row->cells[PLANNER_LOAD_FACTOR], err))
        return -1;
    torchrec_add_load_factor(reader, &entry);
    (strcmp(row->cells[PLANNER_SHARDING], "DP")
         ? torchrec_add_pieces
         : torchrec_add_replicas)(reader, &entry);
    return 0;
}

static int read_stats(struct torchrec_reader *reader, const char *text,
                      size_t len, struct err *err)
{
    struct problem *problem = &reader->plan->problem;
    struct planner_report report;

    if (planner_report_find(&report, text, len, reader->source, reader->arena,
                            err))
        return -1;
    if (report.doubt && reader->options->warn)
        reader->options->warn(reader->options->warn_ctx, report.doubt);
    problem->cluster.n_devices = report.n_ranks;
    problem->batch =
        report.n_ranks * min_u64(report.batch_per_rank,
                                 (uint64_t)PROBLEM_MAX_BATCH / report.n_ranks);
    if (reader->lists_tables) {
        problem->tables = ARENA_NEW(reader->arena, struct table, report.n_rows);
        reader->is_placed = ARENA_NEW(reader->arena, bool, report.n_rows);
        reader->n_room = report.n_rows;
    }
    for (size_t i = 0; i < report.n_rows; i++)
        if (read_row(reader, &report.rows[i], err))
            return err_prefix(err, "%s:%zu", reader->source,
                              report.rows[i].line);
    return 0;
}

bool tables_is_stats(const char *text)
{
    return planner_report_is(text);
}

static bool is_json_plan(const char *text)
{
    const bool has_plan = strstr(text, "\"plan\"");

    return text[strspn(text, " \t\r\n")] == '{' &&
           !strstr(text, "\"neuroshard_plan\"") &&
           (has_plan ? strstr(text, "\"world_size\"") ||
                           strstr(text, "\"sharding_type\"")
                     : strstr(text, "\"sharding_type\"") &&
                           strstr(text, "\"compute_kernel\""));
}

/* True if the text has a planner's report that lists its tables. A log may hold
 * a report without tables, and a printed plan, too. */
static bool lists_tables(const char *text)
{
    return planner_report_is(text) &&
           (strstr(text, "FQN") || !plan_printed_is(text));
}

bool plan_is_torchrec(const char *text)
{
    return is_json_plan(text) || planner_report_is(text) ||
           plan_printed_is(text);
}

bool plan_says_ranks(const char *text)
{
    return lists_tables(text) || strstr(text, "\"world_size\"");
}

/* Removes the tables that the plan does not place. */
static int finish(struct torchrec_reader *reader, struct err *err)
{
    struct plan *plan = reader->plan;
    struct problem *problem = &plan->problem;
    const size_t n = problem->n_tables;
    uint32_t *now = ARENA_NEW(reader->arena, uint32_t, n);

    if (!plan->n_shards)
        return err_input(err,
                         "%s:1: no tables with their ranks, which TorchRec's "
                         "planner prints with debug=True",
                         reader->source);
    problem->n_tables = 0;
    for (size_t t = 0; t < n; t++)
        if (reader->is_placed[t]) {
            now[t] = (uint32_t)problem->n_tables;
            if (plan->load_factors)
                plan->load_factors[problem->n_tables] = plan->load_factors[t];
            problem->tables[problem->n_tables++] = problem->tables[t];
        }
    for (size_t i = 0; i < plan->n_shards; i++)
        plan->shards[i].table = now[plan->shards[i].table];
    return 0;
}

/* Reads a TorchRec plan in any of its forms. If needs_kernels is true, a kernel
 * that no plan of ours can have is an error. */
static int read_text(struct plan *plan, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     bool needs_kernels, struct arena *arena, struct err *err)
{
    const size_t n_tables = plan->problem.n_tables;
    struct torchrec_reader reader = {.plan = plan,
                                     .source = source,
                                     .options = options,
                                     .needs_kernels = needs_kernels,
                                     .arena = arena,
                                     .lists_tables = !n_tables,
                                     .n_room = n_tables,
                                     .places = json_object(),
                                     .is_placed =
                                         ARENA_NEW(arena, bool, n_tables)};
    int rc;

    for (size_t t = 0; t < n_tables; t++)
        place_name(&reader, plan->problem.tables[t].name, t);
    if (lists_tables(text))
        rc = read_stats(&reader, text, len, err);
    else if (n_tables)
        rc = (is_json_plan(text) || !plan_printed_is(text)
                  ? torchrec_read_json
                  : torchrec_read_printed)(&reader, text, len, err);
    else
        rc = err_input(err,
                       "%s:1: the plan has no pooling factors; give a table "
                       "list with '--tables'",
                       source);
    plan->shards =
        arena_keep(arena, plan->shards, plan->n_shards, sizeof(*plan->shards));
    rc = rc || finish(&reader, err);
    json_decref(reader.places);
    return rc ? -1 : 0;
}

int plan_from_torchrec(struct plan *plan, const char *text, size_t len,
                       const char *source, const struct tables_options *options,
                       struct arena *arena, struct err *err)
{
    return read_text(plan, text, len, source, options, true, arena, err);
}

int tables_from_stats(struct table_list *list, const char *text, size_t len,
                      const char *source, const struct tables_options *options,
                      struct arena *arena, struct err *err)
{
    struct plan plan = {0};

    if (read_text(&plan, text, len, source, options, false, arena, err))
        return -1;
    *list = (struct table_list){.tables = plan.problem.tables,
                                .n_tables = plan.problem.n_tables,
                                .source = arena_strdup(arena, source)};
    return 0;
}
