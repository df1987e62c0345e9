/* SPDX-License-Identifier: MIT */
#include "base/figures.h"
#include "base/text.h"
#include "cli/command.h"
#include "io/ids.h"
#include "io/tables_io.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", NULL, 0, 0, NULL,
     "write the table list there"},
    {"tables", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "table list to start from: rows, dim and what is not measured"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "columns of the tables, where no list says them"},
    {"max-rows", 0, OPTION_U64, "N", "1000000000", 1, (double)PROFILE_MAX_ROWS,
     NULL, "ids are below it, where no list says the rows"},
    {"batch", 'b', OPTION_U64, "N", "65536", 1, 1e12, NULL,
     "global batch: samples a step over all GPUs"},
    {"gpus", 0, OPTION_U64, "N", "1", 1, 1e6, NULL,
     "GPUs that share a batch; measures their duplicates"},
    {"batches", 0, OPTION_U64, "N", "1000000000000", 1, 1e12, NULL,
     "read no more batches of a table"},
    {"hottest", 0, OPTION_U64, "N", "0", 0, 1000, NULL,
     "print the hottest rows of each table"},
    {0},
};

#define TABLE(member) MEMBER_OF(struct id_table, member)
static const struct figure table_figures[] = {
    {"name", "table", -16, 16, FIGURE_CUT, TABLE(table.name)},
    {"samples", "samples", 11, 0, FIGURE_COUNT, TABLE(result.n_samples)},
    {"batches", NULL, 0, 0, FIGURE_PLAIN, TABLE(result.n_batches)},
    {"lookups", NULL, 0, 0, FIGURE_PLAIN, TABLE(result.n_ids)},
    {"pooling_factor", "pooling", 7, 3, FIGURE_PLAIN,
     TABLE(table.pooling_factor)},
    {"rows", "rows", 13, 0, FIGURE_COUNT, TABLE(result.n_rows)},
    {"rows_used", NULL, 0, 0, FIGURE_PLAIN, TABLE(result.n_used)},
    {NULL, "used %", 6, 2, FIGURE_PERCENT, TABLE(result.used_frac)},
    {"unique_frac", "unique%", 7, 2, FIGURE_PERCENT, TABLE(result.unique_frac)},
    {"gpu_unique_frac", "GPU's %", 7, 2, FIGURE_PERCENT,
     TABLE(result.local_unique_frac)},
    {"zipf_alpha", "Zipf", 5, 3, FIGURE_PLAIN, TABLE(result.zipf_alpha)},
    {0},
};
#define HOT(member) MEMBER_OF(struct hottest_row, member)
static const struct figure hot_figures[] = {
    {"row", "row", 14, 0, FIGURE_PLAIN, HOT(row)},
    {"uses", "uses", 14, 0, FIGURE_COUNT, HOT(count)},
    {"frac", "of all %", 9, 3, FIGURE_PERCENT, HOT(frac)},
    {0},
};

static void print_text(const struct id_tables *tables)
{
    char memory[TEXT_BYTES_MAX], batch[TEXT_BYTES_MAX];
    struct buf *out = cli_text();
    size_t n_hot = 0, n_short = 0;

    cli_printf("batches of %s samples; memory %s, 4 bytes a row and 8 to "
               "16 an id of a batch\n\n",
               text_from_count(batch, tables->options.batch),
               text_from_bytes(memory, (double)tables->memory_bytes));
    figures_table(table_figures, tables->tables, tables->n_tables,
                  sizeof(*tables->tables), out);
    for (size_t i = 0; i < tables->n_tables; i++) {
        const struct profile_result *result = &tables->tables[i].result;

        n_short += !result->n_batches;
        for (size_t k = 0; k < result->n_hottest; k++) {
            if (!n_hot++) {
                cli_printf("\n%-20s ", "hottest rows of");
                figures_heading(hot_figures, out);
            }
            text_column(out, tables->tables[i].table.name, 20);
            cli_printf(" ");
            figures_row(hot_figures, &result->hottest[k], out);
        }
    }
    if (n_short)
        cli_printf("\nnote: %zu tables have fewer samples than a batch, "
                   "which are taken for one\n",
                   n_short);
}

static void print_json(const struct id_tables *measured)
{
    json_t *tables =
        figures_list(table_figures, measured->tables, measured->n_tables,
                     sizeof(*measured->tables));

    for (size_t i = 0; i < measured->n_tables; i++) {
        const struct profile_result *result = &measured->tables[i].result;
        json_t *object = json_array_get(tables, i), *bins = json_array();

        for (unsigned k = 0; k < REUSE_BINS; k++)
            json_array_append_new(bins, json_real(result->bins[k]));
        json_object_set_new(object, "bins", bins);
        json_object_set_new(object, "hottest",
                            figures_list(hot_figures, result->hottest,
                                         result->n_hottest,
                                         sizeof(*result->hottest)));
    }
    cli_print_json(json_pack(
        "{s:I, s:I, s:o}", "batch", (json_int_t)measured->options.batch,
        "memory_bytes", (json_int_t)measured->memory_bytes, "tables", tables));
}

/* The list that was given, with what was measured, or a new one. */
static int save(struct id_tables *measured, const char *path, bool has_gpus,
                struct err *err)
{
    struct table_list *list = &measured->list;

    if (!list->tables) {
        list->n_tables = measured->n_tables;
        list->tables = ARENA_NEW(measured->arena, struct table, list->n_tables);
    }
    for (size_t i = 0; i < measured->n_tables; i++) {
        const struct id_table *from = &measured->tables[i];
        struct table *table = &list->tables[from->list_idx];

        *table = from->table;
        if (has_gpus && table->has_bins)
            table->dedup =
                fmax(from->result.local_unique_frac, TABLE_MIN_DEDUP);
    }
    return tables_save(list, "", path, err);
}

static int run_profile(struct cli *cli, struct err *err)
{
    const struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                           .warn = cli_warn};
    const char *tables = cli_string(cli, "tables");
    const char *output = cli_string(cli, "output");
    struct id_tables measured = {
        .dim = options.dim,
        .arena = cli->arena,
        .options = {.batch = cli_u64(cli, "batch"),
                    .local_batch = cli_u64(cli, "batch") / cli_u64(cli, "gpus"),
                    .max_rows = cli_u64(cli, "max-rows"),
                    .max_batches = cli_u64(cli, "batches"),
                    .n_hottest = cli_u64(cli, "hottest")},
        .is_logged = cli_given(cli, "verbose")};
    int rc;

    if (cli_u64(cli, "batch") % cli_u64(cli, "gpus"))
        return err_set(err, ERR_USAGE,
                       "option '--gpus': a batch of %" PRIu64
                       " samples cannot be shared by %" PRIu64,
                       cli_u64(cli, "batch"), cli_u64(cli, "gpus"));
    if (output && !tables && !options.dim)
        return err_set(err, ERR_USAGE,
                       "ids do not say how wide tables are; '--dim D' or "
                       "'--tables FILE' does");
    if (tables &&
        tables_load(&measured.list, tables, &options, cli->arena, err))
        return -1;
    rc = ids_measure(&measured, cli->args, cli->n_args, err) ||
         (output && save(&measured, output, cli_given(cli, "gpus"), err));
    if (!rc && (!output || strcmp(output, "-") != 0)) {
        print_json(&measured);
        print_text(&measured);
    }
    ids_release(&measured);
    return rc ? -1 : 0;
}

const struct command command_tables_profile = {
    .name = "tables profile",
    .synopsis = "SOURCE... [options]",
    .summary = "measure how tables are used in the ids of a job",
    .options = {progress_options, own_options},
    .n_args = {1, UINT_MAX},
    .run = run_profile,
};
