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
    {"output", 'o', OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
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

/* One of the hottest rows of a table. */
struct hot_line {
    const char *table;
    uint64_t row, uses;
    double frac; /* of the look-ups */
};

/* A table whose ids are given. */
struct entry {
    struct table table;
    size_t table_idx;        /* in the list, where one is given */
    struct profile *profile; /* owned; NULL when it is done */
    struct profile_result result;
    double used_frac;
    struct hot_line *hot;
};

struct job {
    const struct cli *cli;
    struct table_list list;
    struct entry *entries; /* owned */
    size_t n_entries, cap;
    struct progress progress; /* ids */
    uint64_t memory_bytes;    /* at most, at once */
};

#define ENTRY(member) MEMBER_OF(struct entry, member)
static const struct figure entry_figures[] = {
    {"name", "table", -16, 16, FIGURE_CUT, ENTRY(table.name)},
    {"samples", "samples", 11, 0, FIGURE_COUNT, ENTRY(result.n_samples)},
    {"batches", NULL, 0, 0, FIGURE_PLAIN, ENTRY(result.n_batches)},
    {"lookups", NULL, 0, 0, FIGURE_PLAIN, ENTRY(result.n_ids)},
    {"pooling_factor", "pooling", 7, 3, FIGURE_PLAIN,
     ENTRY(table.pooling_factor)},
    {"rows", "rows", 13, 0, FIGURE_COUNT, ENTRY(result.n_rows)},
    {"rows_used", NULL, 0, 0, FIGURE_PLAIN, ENTRY(result.n_used)},
    {NULL, "used %", 6, 2, FIGURE_PERCENT, ENTRY(used_frac)},
    {"unique_frac", "unique%", 7, 2, FIGURE_PERCENT, ENTRY(result.unique_frac)},
    {"gpu_unique_frac", "GPU's %", 7, 2, FIGURE_PERCENT,
     ENTRY(result.local_unique_frac)},
    {"zipf_alpha", "Zipf", 5, 3, FIGURE_PLAIN, ENTRY(result.zipf_alpha)},
    {0},
};
#define HOT(member) MEMBER_OF(struct hot_line, member)
static const struct figure hot_figures[] = {
    {NULL, "hottest rows of", -20, 20, FIGURE_CUT, HOT(table)},
    {"row", "row", 14, 0, FIGURE_PLAIN, HOT(row)},
    {"uses", "uses", 14, 0, FIGURE_COUNT, HOT(uses)},
    {"frac", "of all %", 9, 3, FIGURE_PERCENT, HOT(frac)},
    {0},
};

/* The table's line of the list, or a new one where no list is given. */
static int init_table(struct entry *entry, const struct job *job,
                      const char *name, struct err *err)
{
    const struct table_list *list = &job->list;

    entry->table_idx = job->n_entries;
    table_init(&entry->table);
    entry->table.name = arena_strdup(job->cli->arena, name);
    entry->table.dim = (uint32_t)cli_u64(job->cli, "dim");
    if (!list->tables)
        return 0;
    for (size_t i = 0; i < list->n_tables; i++)
        if (!strcmp(list->tables[i].name, name)) {
            entry->table = list->tables[i];
            entry->table_idx = i;
        }
    if (!entry->table.num_embeddings)
        return err_set(err, ERR_INPUT, "%s: no table is called '%s'",
                       list->source, name);
    if (entry->table.num_embeddings > PROFILE_MAX_ROWS)
        return err_set(err, ERR_INPUT,
                       "%s: table '%s' has more than %" PRIu64 " rows",
                       list->source, name, PROFILE_MAX_ROWS);
    return 0;
}

/* Where the ids of that table go: to the entry that has its name, or to a new
 * one, the last. */
static struct profile *find_profile(void *ctx, const char *name,
                                    struct err *err)
{
    struct job *job = ctx;
    const struct cli *cli = job->cli;
    struct entry entry = {0};

    for (size_t i = 0; i < job->n_entries; i++)
        if (!strcmp(job->entries[i].table.name, name))
            return job->entries[i].profile;
    if (init_table(&entry, job, name, err))
        return NULL;
    entry.profile = profile_open(&(struct profile_options){
        .batch = cli_u64(cli, "batch"),
        .local_batch = cli_u64(cli, "batch") / cli_u64(cli, "gpus"),
        .n_rows = entry.table.num_embeddings,
        .max_rows = cli_u64(cli, "max-rows"),
        .max_batches = cli_u64(cli, "batches"),
        .n_hottest = cli_u64(cli, "hottest")});
    job->entries = mem_room(job->entries, job->n_entries, &job->cap,
                            sizeof(*job->entries));
    job->entries[job->n_entries++] = entry;
    return entry.profile;
}

/* Measures the table, which has no more ids. */
static void finish_entry(const struct job *job, struct entry *entry)
{
    struct profile_result *result = &entry->result;
    struct table *table = &entry->table;

    profile_finish(entry->profile, result, job->cli->arena);
    profile_close(entry->profile);
    entry->profile = NULL;
    table->num_embeddings = max_u64(result->n_rows, 1);
    table->pooling_factor =
        (double)result->n_ids / fmax((double)result->n_samples, 1);
    table->has_bins = result->unique_frac > 0;
    memcpy(table->bins, result->bins, sizeof(table->bins));
    if (!isnan(result->zipf_alpha))
        table->zipf_alpha = result->zipf_alpha;
    table->skew_assumed = isnan(result->zipf_alpha) && !table->has_bins;
    if (cli_given(job->cli, "gpus") && table->has_bins)
        table->dedup = fmax(result->local_unique_frac, TABLE_MIN_DEDUP);
    entry->used_frac = (double)result->n_used / (double)table->num_embeddings;
    entry->hot = ARENA_NEW(job->cli->arena, struct hot_line, result->n_hottest);
    for (size_t i = 0; i < result->n_hottest; i++)
        entry->hot[i] = (struct hot_line){
            table->name, result->hottest[i].row, result->hottest[i].count,
            (double)result->hottest[i].count / (double)result->n_ids};
}

/* Measures the entries from the first on that are not measured yet. */
static void finish_entries(struct job *job, size_t first)
{
    uint64_t bytes = 0;

    for (size_t i = first; i < job->n_entries; i++) {
        bytes += profile_bytes(job->entries[i].profile);
        finish_entry(job, &job->entries[i]);
    }
    job->memory_bytes = max_u64(job->memory_bytes, bytes);
}

/* One table after the other, so that one at a time is in memory. */
static int read_parts(struct job *job, const struct id_parts *parts,
                      struct err *err)
{
    for (size_t i = 0; i < parts->n_parts; i++) {
        const struct id_part *part = &parts->parts[i];
        struct profile *profile = find_profile(job, part->table, err);

        if (!profile || ids_read(profile, part, &job->progress, err))
            return -1;
        if (i + 1 == parts->n_parts || strcmp(part->table, part[1].table) != 0)
            finish_entries(job, job->n_entries - 1);
    }
    return 0;
}

static int read_ids(struct job *job, struct err *err)
{
    const struct cli *cli = job->cli;
    struct id_parts parts = {0};
    int rc = -1;

    if (cli->n_args == 1 && !strcmp(cli->args[0], "-")) {
        progress_start(&job->progress, "ids", 0);
        rc = ids_stream(find_profile, job, &job->progress, err);
        if (!rc)
            finish_entries(job, 0);
    } else if (!ids_list(&parts, cli->args, cli->n_args, cli->arena, err)) {
        progress_start(&job->progress, "ids", parts.n_ids);
        rc = read_parts(job, &parts, err);
    }
    progress_finish(&job->progress);
    mem_free(parts.parts);
    if (!rc && !job->n_entries)
        return err_set(err, ERR_INPUT, "standard input has no ids");
    return rc;
}

static void print_text(const struct job *job)
{
    char memory[TEXT_BYTES_MAX], batch[TEXT_BYTES_MAX];
    struct buf out = {0};
    size_t n_hot = 0, n_short = 0;

    buf_printf(&out,
               "batches of %s samples; memory %s, 4 bytes a row and 8 to "
               "16 an id of a batch\n\n",
               text_from_count(batch, cli_u64(job->cli, "batch")),
               text_from_bytes(memory, (double)job->memory_bytes));
    figures_table(entry_figures, job->entries, job->n_entries,
                  sizeof(*job->entries), &out);
    for (size_t i = 0; i < job->n_entries; i++) {
        const struct entry *entry = &job->entries[i];

        n_short += !entry->result.n_batches;
        for (size_t k = 0; k < entry->result.n_hottest; k++) {
            if (!n_hot++) {
                buf_printf(&out, "\n");
                figures_heading(hot_figures, &out);
            }
            figures_row(hot_figures, &entry->hot[k], &out);
        }
    }
    if (n_short)
        buf_printf(&out,
                   "\nnote: %zu tables have fewer samples than a batch, "
                   "which are taken for one\n",
                   n_short);
    cli_print_report(job->cli, &out);
}

static void print_json(const struct job *job)
{
    const size_t bytes = sizeof(*job->entries);
    json_t *tables =
        figures_list(entry_figures, job->entries, job->n_entries, bytes);

    for (size_t i = 0; i < job->n_entries; i++) {
        const struct entry *entry = &job->entries[i];
        json_t *object = json_array_get(tables, i), *bins = json_array();

        for (unsigned k = 0; k < REUSE_BINS; k++)
            json_array_append_new(bins, json_real(entry->result.bins[k]));
        json_object_set_new(object, "bins", bins);
        json_object_set_new(object, "hottest",
                            figures_list(hot_figures, entry->hot,
                                         entry->result.n_hottest,
                                         sizeof(*entry->hot)));
    }
    cli_print_json(json_pack(
        "{s:I, s:I, s:o}", "batch", (json_int_t)cli_u64(job->cli, "batch"),
        "memory_bytes", (json_int_t)job->memory_bytes, "tables", tables));
}

/* The list that was given, with what was measured, or a new one. */
static int save(struct job *job, const char *path, struct err *err)
{
    struct table_list *list = &job->list;

    if (!list->tables) {
        list->n_tables = job->n_entries;
        list->tables = ARENA_NEW(job->cli->arena, struct table, job->n_entries);
    }
    for (size_t i = 0; i < job->n_entries; i++)
        list->tables[job->entries[i].table_idx] = job->entries[i].table;
    return tables_save(list, "", path, err);
}

static int run_profile(struct cli *cli, struct err *err)
{
    const struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                           .warn = cli_warn};
    const char *tables = cli_string(cli, "tables");
    const char *output = cli_string(cli, "output");
    struct job job = {.cli = cli};
    int rc = -1;

    if (cli_u64(cli, "batch") % cli_u64(cli, "gpus"))
        return err_set(err, ERR_USAGE,
                       "option '--gpus': a batch of %" PRIu64
                       " samples cannot be shared by %" PRIu64,
                       cli_u64(cli, "batch"), cli_u64(cli, "gpus"));
    if (output && !tables && !options.dim)
        return err_set(err, ERR_USAGE,
                       "ids do not say how wide tables are; '--dim D' or "
                       "'--tables FILE' does");
    if (output && cli_check_output(cli, err))
        return -1;
    if (tables && tables_load(&job.list, tables, &options, cli->arena, err))
        return -1;
    if (read_ids(&job, err) || (output && save(&job, output, err)))
        goto out;
    if (!output || strcmp(output, "-") != 0)
        (cli_given(cli, "json") ? print_json : print_text)(&job);
    rc = 0;
out:
    for (size_t i = 0; i < job.n_entries; i++)
        profile_close(job.entries[i].profile);
    mem_free(job.entries);
    return rc;
}

const struct command command_tables_profile = {
    .name = "tables profile",
    .synopsis = "SOURCE... [options]",
    .summary = "measure how tables are used in the ids of a job",
    .options = {own_options},
    .json = "print JSON instead of text",
    .n_args = {1, UINT_MAX},
    .run = run_profile,
};
