/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/ranked.h"
#include "base/stats.h"
#include "base/text.h"
#include "cli/command.h"
#include "core/problem.h"
#include "io/tables_io.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define N_LARGEST 10

static const struct option_spec own_options[] = {
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "columns of the tables whose dim cell is empty"},
    {"batch", 'b', OPTION_U64, "N", "65536", 1, 1e12, NULL,
     "global batch: samples a step over all GPUs"},
    {0},
};

struct summary {
    const struct table_list *list;
    uint64_t batch;
    uint64_t n_rows; /* of all tables, saturating */
    struct memory_items memory;
    double dim_min, dim_median, dim_max;
    double output_elements; /* a sample */
    double lookups;         /* a sample */
    size_t n_skew_assumed;
    uint64_t *weight_bytes; /* [n_tables], in the arena, like the next */
    struct ranked *by_size; /* [n_tables], largest first */
    size_t n_shown;         /* of them */
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
    struct problem problem = {.tables = list->tables,
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
    summary->dim_min = dims[0]; /* sorted by now */
    summary->dim_max = dims[list->n_tables - 1];
}

/* In front of a name. */
#define FIGURE_COLUMNS 57

static void print_largest(const struct summary *summary, size_t n_columns)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double largest = -summary->by_size[0].key, unit_bytes = 1;
    double total = (double)summary->memory.weights;
    unsigned unit = 0;
    const size_t room = n_columns > FIGURE_COLUMNS + 1
                            ? n_columns - FIGURE_COLUMNS
                            : 1; /* of names */
    char rows[TEXT_BYTES_MAX];

    for (; largest / unit_bytes >= 1024 && unit < 5; unit++)
        unit_bytes *= 1024;
    cli_printf("\nLargest tables\n%10s  %6s  %15s  %7s  %9s  %s\n", "weights",
               "share", "rows", "columns", "look-ups", "name");
    cli_printf("%10s  %6s  %15s  %7s  %9s\n", units[unit], "%", "", "",
               "a sample");
    for (size_t i = 0; i < summary->n_shown; i++) {
        const struct ranked *ranked = &summary->by_size[i];
        const struct table *table = &summary->list->tables[ranked->idx];
        const size_t len = text_length(table->name);

        cli_printf("%10.3f  %6.2f  %15s  %7" PRIu32 "  %9.4g  ",
                   -ranked->key / unit_bytes, 100 * -ranked->key / total,
                   text_from_count(rows, table->num_embeddings), table->dim,
                   table->pooling_factor);
        text_column(cli_text(), table->name,
                    (unsigned)(len < room ? len : room));
        cli_printf("\n");
    }
}

static void print_text(const struct summary *summary, const struct cli *cli)
{
    char a[TEXT_BYTES_MAX], b[TEXT_BYTES_MAX];
    const struct memory_items *memory = &summary->memory;
    double lookups = summary->lookups * (double)summary->batch;

    cli_printf("%s: %s table%s\n\n", summary->list->source,
               text_from_count(a, summary->list->n_tables),
               summary->list->n_tables == 1 ? "" : "s");
    cli_printf("rows             %s\n", text_from_count(a, summary->n_rows));
    cli_printf("weights          %s\n",
               text_from_bytes(a, (double)memory->weights));
    cli_printf("optimizer state  %s\n",
               text_from_bytes(a, (double)memory->optimizer));
    cli_printf("columns          %.0f to %.0f, median %g\n", summary->dim_min,
               summary->dim_max, summary->dim_median);
    cli_printf("output           %.10g elements a sample\n",
               summary->output_elements);
    cli_printf("look-ups         %.10g a sample, %s in a batch of %s\n",
               summary->lookups,
               text_from_count(a, (uint64_t)fmin(lookups, 9e18)),
               text_from_count(b, summary->batch));
    if (summary->n_skew_assumed)
        cli_printf(
            "skew             not given for %s table%s: Zipf %g assumed\n",
            text_from_count(a, summary->n_skew_assumed),
            summary->n_skew_assumed == 1 ? "" : "s", DEFAULT_ZIPF_ALPHA);
    else
        cli_printf("skew             given for every table\n");
    print_largest(summary, cli_columns(cli));
}

/* JSON has no unsigned 64-bit numbers; what saturated stays large. */
static json_t *json_from_u64(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static void print_json(const struct summary *summary)
{
    json_t *largest = json_array();

    for (size_t i = 0; i < summary->n_shown; i++) {
        const uint32_t idx = summary->by_size[i].idx;
        const struct table *table = &summary->list->tables[idx];

        json_array_append_new(
            largest,
            json_pack("{s:s, s:o, s:i, s:f, s:f, s:s, s:s, s:o}", "name",
                      table->name, "num_embeddings",
                      json_from_u64(table->num_embeddings), "dim", table->dim,
                      "pooling_factor", table->pooling_factor, "num_outputs",
                      table->num_outputs, "precision",
                      precision_names[table->precision], "optimizer",
                      optimizer_names[table->optimizer], "weight_bytes",
                      json_from_u64(summary->weight_bytes[idx])));
    }
    cli_print_json(json_pack(
        "{s:I, s:o, s:o, s:o, s:{s:f, s:f, s:f}, s:f, s:f, s:I, s:f, s:I, s:o}",
        "n_tables", (json_int_t)summary->list->n_tables, "num_embeddings",
        json_from_u64(summary->n_rows), "weight_bytes",
        json_from_u64(summary->memory.weights), "optimizer_bytes",
        json_from_u64(summary->memory.optimizer), "dim", "min",
        summary->dim_min, "median", summary->dim_median, "max",
        summary->dim_max, "output_elements_per_sample",
        summary->output_elements, "lookups_per_sample", summary->lookups,
        "batch", (json_int_t)summary->batch, "lookups_per_batch",
        summary->lookups * (double)summary->batch, "n_skew_assumed",
        (json_int_t)summary->n_skew_assumed, "largest", largest));
}

static int run_tables(struct cli *cli, struct err *err)
{
    struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
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
    .summary = "print what a table list holds",
    .options = {own_options},
    .has_wide = true,
    .n_args = {1, 1},
    .run = run_tables,
};

/* --- tables import --- */

static const struct option_spec import_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", "-", 0, 0, NULL,
     "write the table list there instead of to standard output"},
    {"columns", 0, OPTION_STRING, "COLUMN=NAME,...", NULL, 0, 0, NULL,
     "columns that a CSV file has under other names"},
    {"names", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "names of the tables, one a line, or with commas: a,b,c"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "columns of the tables whose width the source does not say"},
    {0},
};

/* "a,b,c", or the lines of a file. */
static int read_names(const char **out, struct cli *cli, struct err *err)
{
    size_t len;

    *out = cli_string(cli, "names");
    return *out && !strchr(*out, ',')
               ? file_read(out, &len, *out, cli->arena, err)
               : 0;
}

/* A file, or the words of a command line. */
static int read_source(struct table_list *list,
                       const struct tables_options *options, struct cli *cli,
                       struct err *err)
{
    const char *text = "";

    if (cli->n_args == 1)
        return tables_load(list, cli->args[0], options, cli->arena, err);
    for (size_t i = 0; i < cli->n_args; i++)
        text = arena_printf(cli->arena, "%s%s ", text, cli->args[i]);
    return tables_from_dlrm(list, text, strlen(text), "command line", options,
                            cli->arena, err);
}

static int run_import(struct cli *cli, struct err *err)
{
    const char *columns = cli_string(cli, "columns");
    struct buf notes = {0};
    struct tables_options options = {
        .dim = (uint32_t)cli_u64(cli, "dim"),
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
    .summary = "write a table list from what other programs have",
    .options = {import_options},
    .n_args = {1, UINT_MAX},
    .run = run_import,
};
