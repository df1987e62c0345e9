/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/ranked.h"
#include "base/stats.h"
#include "base/text.h"
#include "cli/command.h"
#include "core/memory.h"
#include "core/problem.h"
#include "io/ids.h"
#include "io/tables_dlrm.h"
#include "io/tables_io.h"
#include "io/tables_reader.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define N_LARGEST 10

static const struct option_spec own_options[] = {
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "dim of the tables whose dim cell is empty"},
    {"pooling", 0, OPTION_DOUBLE, "P", NULL, 1e-6, TABLES_MAX_FACTOR, NULL,
     "pooling factor of the tables whose pooling_factor cell is empty"},
    {"batch", 'b', OPTION_U64, "N", "65536", 1, 1e12, NULL,
     "global batch: samples per step over all GPUs"},
    {0},
};

struct summary {
    const struct table_list *list;
    uint64_t batch;
    uint64_t n_rows; /* number of rows of all tables; saturates */
    struct memory_items memory;
    double dim_min, dim_median, dim_max;
    double output_elements; /* per sample */
    double lookups;         /* per sample */
    size_t n_skew_assumed;
    /* [n_tables] bytes of each table's weights, in the arena. */
    uint64_t *weight_bytes;
    /* [n_tables] sorted by size, largest first, in the arena. */
    struct ranked *by_size;
    size_t n_shown; /* number of tables that are listed one by one */
};

static void add_table(struct summary *summary, const struct problem *problem,
                      uint32_t idx)
{
    const struct table *table = &problem->tables[idx];
    struct shard whole = shard_whole(problem, idx, 0);
    struct memory_items memory = shard_memory(problem, &whole);

    memory_add(&summary->memory, memory);
    summary->weight_bytes[idx] = memory.weights;
    summary->by_size[idx] = (struct ranked){-(double)memory.weights, idx};
    if (__builtin_add_overflow(summary->n_rows, table->num_embeddings,
                               &summary->n_rows))
        summary->n_rows = UINT64_MAX;
    summary->lookups += table->pooling_factor;
    summary->output_elements +=
        table->dim * (table->output == OUTPUT_SEQUENCE ? table->pooling_factor
                                                       : table->num_outputs);
    summary->n_skew_assumed += table->skew_assumed;
}

static void summarise(struct summary *summary, const struct table_list *list,
                      uint64_t batch, struct arena *arena)
{
    struct problem problem = {.layout = LAYOUT_FBGEMM,
                              .buffers = BUFFERS_TRACED,
                              .tables = list->tables,
                              .n_tables = list->n_tables,
                              .cluster = {.n_devices = 1},
                              .batch = batch};
    double *dims = ARENA_NEW(arena, double, list->n_tables);

    *summary = (struct summary){.list = list, .batch = batch};
    summary->weight_bytes = ARENA_NEW(arena, uint64_t, list->n_tables);
    summary->by_size = ARENA_NEW(arena, struct ranked, list->n_tables);
    for (size_t i = 0; i < list->n_tables; i++) {
        add_table(summary, &problem, (uint32_t)i);
        dims[i] = list->tables[i].dim;
    }
    ranked_sort(summary->by_size, list->n_tables);
    summary->n_shown = list->n_tables < N_LARGEST ? list->n_tables : N_LARGEST;
    summary->dim_median = stats_median(dims, list->n_tables);
    summary->dim_min = dims[0]; /* stats_median has sorted the dims */
    summary->dim_max = dims[list->n_tables - 1];
}

/* Width of a line in columns, up to the name of the table. */
#define FIGURE_COLUMNS 57

static void print_largest(const struct summary *summary, size_t n_columns)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double largest = -summary->by_size[0].key, unit_bytes = 1;
    double total = (double)summary->memory.weights;
    unsigned unit = 0;
    const size_t room =
        n_columns > FIGURE_COLUMNS + 1
            ? n_columns - FIGURE_COLUMNS
            : 1; /* number of columns for the names of the tables */

    for (; largest / unit_bytes >= 1024 && unit < 5; unit++)
        unit_bytes *= 1024;
    cli_printf("\nLargest tables\n%10s  %6s  %15s  %7s  %9s  %s\n", "weights",
               "share", "rows", "columns", "lookups", "name");
    cli_printf("%10s  %6s  %15s  %7s  %9s\n", units[unit], "%", "", "",
               "a sample");
    for (size_t i = 0; i < summary->n_shown; i++) {
        const struct ranked *ranked = &summary->by_size[i];
        const struct table *table = &summary->list->tables[ranked->idx];
        const size_t len = text_length(table->name);

        cli_printf("%10.3f  %6.2f  %15s  %7" PRIu32 "  %9.4g  ",
                   -ranked->key / unit_bytes, 100 * -ranked->key / total,
                   TEXT_COUNT(table->num_embeddings), table->dim,
                   table->pooling_factor);
        text_column(cli_text(), table->name,
                    (unsigned)(len < room ? len : room));
        cli_printf("\n");
    }
}

static void print_text(const struct summary *summary, const struct cli *cli)
{
    const struct memory_items *memory = &summary->memory;
    double lookups = summary->lookups * (double)summary->batch;

    cli_printf("%s: %s table%s\n\n", summary->list->source,
               TEXT_COUNT(summary->list->n_tables),
               summary->list->n_tables == 1 ? "" : "s");
    cli_printf("rows             %s\n", TEXT_COUNT(summary->n_rows));
    cli_printf("weights          %s\n", TEXT_BYTES(memory->weights));
    cli_printf("optimizer state  %s\n", TEXT_BYTES(memory->optimizer));
    cli_printf("columns          %.0f to %.0f, median %g\n", summary->dim_min,
               summary->dim_max, summary->dim_median);
    cli_printf("output           %.10g elements a sample\n",
               summary->output_elements);
    cli_printf("lookups          %.10g a sample, %s in a batch of %s\n",
               summary->lookups, TEXT_COUNT((uint64_t)fmin(lookups, 9e18)),
               TEXT_COUNT(summary->batch));
    if (summary->n_skew_assumed)
        cli_printf(
            "skew             not given for %s table%s: Zipf %g assumed\n",
            TEXT_COUNT(summary->n_skew_assumed),
            summary->n_skew_assumed == 1 ? "" : "s", DEFAULT_ZIPF_ALPHA);
    else
        cli_printf("skew             given for every table\n");
    print_largest(summary, cli_columns(cli));
}

static void print_json(const struct summary *summary)
{
    json_t *largest = json_array();

    for (size_t i = 0; i < summary->n_shown; i++) {
        const uint32_t idx = summary->by_size[i].idx;
        const struct table *table = &summary->list->tables[idx];

        json_array_append_new(
            largest,
            json_pack("{s:s, s:I, s:i, s:f, s:f, s:s, s:s, s:I}", "name",
                      table->name, "num_embeddings",
                      json_count(table->num_embeddings), "dim", table->dim,
                      "pooling_factor", table->pooling_factor, "num_outputs",
                      table->num_outputs, "precision",
                      precision_names[table->precision], "optimizer",
                      optimizer_names[table->optimizer], "weight_bytes",
                      json_count(summary->weight_bytes[idx])));
    }
    cli_print_json(json_pack(
        "{s:I, s:I, s:I, s:I, s:{s:f, s:f, s:f}, s:f, s:f, s:I, s:f, s:I, s:o}",
        "n_tables", (json_int_t)summary->list->n_tables, "num_embeddings",
        json_count(summary->n_rows), "weight_bytes",
        json_count(summary->memory.weights), "optimizer_bytes",
        json_count(summary->memory.optimizer), "dim", "min", summary->dim_min,
        "median", summary->dim_median, "max", summary->dim_max,
        "output_elements_per_sample", summary->output_elements,
        "lookups_per_sample", summary->lookups, "batch",
        (json_int_t)summary->batch, "lookups_per_batch",
        summary->lookups * (double)summary->batch, "n_skew_assumed",
        (json_int_t)summary->n_skew_assumed, "largest", largest));
}

static int run_tables(struct cli *cli, struct err *err)
{
    struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                     .pooling = cli_double(cli, "pooling"),
                                     .warn = cli_warn};
    struct table_list list;
    struct summary summary;

    if (tables_load(&list, cli->args[0], &options, cli->arena, err))
        return -1;
    summarise(&summary, &list, cli_u64(cli, "batch"), cli->arena);
    print_json(&summary);
    print_text(&summary, cli);
    return 0;
}

const struct command command_tables = {
    .name = "tables",
    .synopsis = "TABLES [options]",
    .summary = "print a summary of a table list",
    .options = {own_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, 1},
    .run = run_tables,
};

/* --- tables import --- */

static const struct option_spec import_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", "-", 0, 0, NULL,
     "file to write the table list to; '-' is standard output"},
    {"columns", 0, OPTION_STRING, "COLUMN=NAME,...", NULL, 0, 0, NULL,
     "names of a CSV file's columns if they differ from ours"},
    {"names", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "names of the tables: a file with one per line, or a,b,c"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "dim of the tables for which the source gives none"},
    {"pooling", 0, OPTION_DOUBLE, "P", NULL, 1e-6, TABLES_MAX_FACTOR, NULL,
     "pooling factor of the tables for which the source gives none"},
    {0},
};

/* Reads the value of --names: a list "a,b,c", or a file with one name per
 * line. */
static int read_names(const char **out, struct cli *cli, struct err *err)
{
    size_t len;

    *out = cli_string(cli, "names");
    return *out && !strchr(*out, ',')
               ? file_read(out, &len, *out, cli->arena, err)
               : 0;
}

/* Reads the tables from a file, or from the words of a DLRM command line. */
static int read_source(struct table_list *list,
                       const struct tables_options *options, struct cli *cli,
                       struct err *err)
{
    const char *text = "";

    if (cli->n_args == 1)
        return tables_load(list, cli->args[0], options, cli->arena, err);
    for (size_t i = 0; i < cli->n_args; i++)
        text = arena_printf(cli->arena, "%s%s ", text,
                            text_shell_word(cli->args[i], cli->arena));
    return tables_from_dlrm(list, text, strlen(text), "command line", options,
                            cli->arena, err);
}

static int run_import(struct cli *cli, struct err *err)
{
    const char *columns = cli_string(cli, "columns");
    struct buf notes = {0};
    struct tables_options options = {
        .dim = (uint32_t)cli_u64(cli, "dim"),
        .pooling = cli_double(cli, "pooling"),
        .keeps_unknown = true,
        .warn = cli_warn,
        .columns = columns ? columns : "",
        .notes = &notes,
    };
    struct table_list list = {0};
    int rc = read_names(&options.names, cli, err) ||
             read_source(&list, &options, cli, err) ||
             tables_save(&list, notes.data ? notes.data : "",
                         cli_string(cli, "output"), err);

    if (!rc)
        cli_print_json(json_pack("{s:s, s:I}", "output",
                                 cli_shown(cli, "output"), "tables",
                                 (json_int_t)list.n_tables));
    buf_release(&notes);
    return rc ? -1 : 0;
}

const struct command command_tables_import = {
    .name = "tables import",
    .synopsis = "SOURCE [options], or [options] -- COMMAND WORD...",
    .summary = "make a table list from files of other programs",
    .options = {import_options},
    .n_args = {1, UINT_MAX},
    .run = run_import,
};

/* --- tables profile --- */

static const struct option_spec profile_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", NULL, 0, 0, NULL,
     "file to write the table list to"},
    {"tables", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "table list to start from: gives rows, dim and all that is not measured"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "dim of the tables, if no list gives it"},
    {"columns-are", 0, OPTION_CHOICE, "WHAT", NULL, 0, 0, "tables|samples",
     "meaning of a matrix's columns: one table each, or the ids of a sample"},
    {"max-rows", 0, OPTION_U64, "N", "1000000000", 1, (double)PROFILE_MAX_ROWS,
     NULL, "rows of the tables, if no list gives them: all ids must be below"},
    {"batch", 'b', OPTION_U64, "N", "65536", 1, 1e12, NULL,
     "global batch: samples per step over all GPUs"},
    {"gpus", 0, OPTION_U64, "N", "1", 1, 1e6, NULL,
     "GPUs that share a batch; measures the duplicate ids of each GPU's share"},
    {"batches", 0, OPTION_U64, "N", "1000000000000", 1, 1e12, NULL,
     "most batches to read of a table"},
    {"hottest", 0, OPTION_U64, "N", "0", 0, 1000, NULL,
     "print this many of the hottest rows of each table"},
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

static void print_profile_text(const struct id_tables *tables)
{
    struct buf *out = cli_text();
    size_t n_hot = 0, n_short = 0;

    cli_printf("batches of %s samples; memory %s\n\n",
               TEXT_COUNT(tables->options.batch),
               TEXT_BYTES(tables->memory_bytes));
    FIGURES_TABLE(table_figures, tables->tables, tables->n_tables, out);
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
    if (tables->left_out)
        cli_printf("\n"
                   "note: ignored, as they are not ids: %s\n",
                   tables->left_out);
    if (n_short)
        cli_printf("\n"
                   "note: %zu tables have fewer samples than a batch; these "
                   "are counted as one batch\n",
                   n_short);
}

static json_t *reals(const double *numbers, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(numbers[i]));
    return list;
}

static void print_profile_json(const struct id_tables *measured)
{
    json_t *tables =
        FIGURES_LIST(table_figures, measured->tables, measured->n_tables);

    for (size_t i = 0; i < measured->n_tables; i++) {
        const struct profile_result *result = &measured->tables[i].result;
        json_t *object = json_array_get(tables, i);

        json_object_set_new(object, "bins", reals(result->bins, REUSE_BINS));
        json_object_set_new(object, "reach",
                            reals(result->reach, result->n_reach));
        json_object_set_new(object, "misses",
                            reals(result->misses, result->n_reach));
        json_object_set_new(
            object, "hottest",
            FIGURES_LIST(hot_figures, result->hottest, result->n_hottest));
    }
    cli_print_json(json_pack(
        "{s:I, s:I, s:o}", "batch", (json_int_t)measured->options.batch,
        "memory_bytes", (json_int_t)measured->memory_bytes, "tables", tables));
}

/* Saves the given table list with the measured values. If no table list was
 * given, saves a new one. */
static int save_profile(struct id_tables *measured, const char *path,
                        bool has_gpus, struct err *err)
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
    return tables_save(
        list,
        measured->left_out
            ? arena_printf(measured->arena,
                           "# ignored, as they are not ids: %s\n",
                           measured->left_out)
            : "",
        path, err);
}

static int run_profile(struct cli *cli, struct err *err)
{
    const struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                           .keeps_unknown = true,
                                           .warn = cli_warn};
    const char *tables = cli_string(cli, "tables");
    const char *output = cli_string(cli, "output");
    struct id_tables measured = {
        .dim = options.dim,
        .columns_are =
            cli_given(cli, "columns-are")
                ? COLUMNS_TABLES + (unsigned)cli_choice(cli, "columns-are")
                : COLUMNS_ASK,
        .arena = cli->arena,
        .options = {.batch = cli_u64(cli, "batch"),
                    .local_batch = cli_u64(cli, "batch") / cli_u64(cli, "gpus"),
                    .max_rows = cli_u64(cli, "max-rows"),
                    .max_batches = cli_u64(cli, "batches"),
                    .n_hottest = cli_u64(cli, "hottest")},
        .is_logged = cli_given(cli, "verbose")};
    int rc;

    if (cli_u64(cli, "batch") % cli_u64(cli, "gpus"))
        return err_usage(err,
                         "option '--gpus': a batch of %" PRIu64
                         " samples cannot be shared evenly by %" PRIu64 " GPUs",
                         cli_u64(cli, "batch"), cli_u64(cli, "gpus"));
    if (output && !tables && !options.dim)
        return err_usage(err, "the ids do not give the dim of the tables: use "
                              "'--dim D' or '--tables FILE'");
    if (tables &&
        tables_load(&measured.list, tables, &options, cli->arena, err))
        return -1;
    rc = ids_measure(&measured, cli->args, cli->n_args, err) ||
         (output &&
          save_profile(&measured, output, cli_given(cli, "gpus"), err));
    if (!rc && (!output || strcmp(output, "-") != 0)) {
        print_profile_json(&measured);
        print_profile_text(&measured);
    }
    ids_release(&measured);
    return rc ? -1 : 0;
}

const struct command command_tables_profile = {
    .name = "tables profile",
    .synopsis = "SOURCE... [options]",
    .summary = "measure the use of each table from the ids of a job",
    .options = {progress_options, profile_options},
    .n_args = {1, UINT_MAX},
    .run = run_profile,
};
