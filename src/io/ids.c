/* SPDX-License-Identifier: MIT */
#include "io/ids.h"

#include "base/printable.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 8192
#define NAME_MAX_BYTES 1024

/* --- adding ids to a profile --- */

static int add_ids(struct profile *profile, struct id_array *array, uint64_t n,
                   struct progress *progress, struct err *err)
{
    int64_t ids[BLOCK];

    for (size_t n_block; n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (ids_read_numbers(array, ids, n_block, err))
            return -1;
        if (profile_add(profile, ids, n_block, err))
            return err_prefix(err, "%s", array->source);
        progress_update(progress, progress->done += n_block);
    }
    return 0;
}

/* Counts the ids of the next n samples of a part. */
static int count_ids(struct id_part *part, uint64_t n, uint64_t *n_ids,
                     struct err *err)
{
    const struct npy *ids = &part->ids.npy;
    const int64_t before = part->end;
    int64_t numbers[BLOCK];

    *n_ids = n * ids->n_columns;
    for (size_t n_block; part->bags.path && n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (ids_read_numbers(&part->bags, numbers, n_block, err))
            return -1;
        for (size_t i = 0; i < n_block; i++) {
            int64_t end = numbers[i];

            if ((!part->is_offsets &&
                 __builtin_add_overflow(end, part->end, &end)) ||
                end < part->end || end > (int64_t)ids->n_rows)
                return err_input(
                    err,
                    "%s: %" PRId64
                    " does not fit after samples that have %" PRId64
                    " of the %" PRIu64 " ids",
                    part->bags.source, numbers[i], part->end, ids->n_rows);
            part->end = end;
        }
        *n_ids = (uint64_t)(part->end - before);
    }
    return 0;
}

static int read_part(struct profile *profile, struct id_part *part,
                     struct progress *progress, struct err *err)
{
    const bool has_bags = part->bags.path;
    uint64_t n_left = (has_bags ? &part->bags : &part->ids)->npy.n_rows;
    uint64_t n, n_ids = 0;
    int rc = (has_bags && ids_open(&part->bags, err)) ||
             ids_open(&part->ids, err) ||
             (part->is_offsets && n_left && count_ids(part, 1, &n_ids, err));

    if (!rc && part->is_offsets && (!n_left-- || n_ids))
        rc = err_input(err, "%s: the first offset is not 0", part->bags.source);
    while (!rc && n_left && !profile_is_full(profile)) {
        n = min_u64(profile_room(profile), n_left);
        rc = count_ids(part, n, &n_ids, err) ||
             add_ids(profile, &part->ids, n_ids, progress, err);
        if (!rc)
            profile_end(profile, n);
        n_left -= n;
    }
    if (!rc && !n_left && has_bags &&
        (uint64_t)part->end < part->ids.npy.n_rows)
        rc = err_input(err,
                       "%s: the samples have %" PRId64
                       " ids in all, but the array of ids has %" PRIu64,
                       part->bags.source, part->end, part->ids.npy.n_rows);
    ids_close(&part->ids);
    ids_close(&part->bags);
    return rc ? -1 : 0;
}

/* --- tables --- */

/* Returns the profile for the ids of table `name`. If the table is new, it is
 * appended to the tables; if there is a table list, the list gives its
 * properties. Returns NULL and sets err if the table is not in the list, has
 * too many rows or is already measured. */
static struct profile *find_profile(struct id_tables *tables, const char *name,
                                    struct err *err)
{
    const struct table_list *list = &tables->list;
    struct profile_options options = tables->options;
    struct id_table new = {.list_idx = tables->n_tables};

    for (size_t i = 0; i < tables->n_tables; i++)
        if (!strcmp(tables->tables[i].table.name, name)) {
            if (!tables->tables[i].profile)
                err_input(err, "table '%s' has ids in arrays of two kinds",
                          name);
            return tables->tables[i].profile;
        }
    table_init(&new.table);
    new.table.name = arena_strdup(tables->arena, name);
    new.table.dim = tables->dim;
    for (size_t i = 0; i < list->n_tables; i++)
        if (!strcmp(list->tables[i].name, name)) {
            new.table = list->tables[i];
            new.list_idx = i;
        }
    options.n_rows = new.table.num_embeddings;
    if (list->tables && !options.n_rows)
        err_input(err, "%s: no table is called '%s'", list->source, name);
    else if (options.n_rows > PROFILE_MAX_ROWS)
        err_input(err, "%s: table '%s' has more than %" PRIu64 " rows",
                  list->source, name, PROFILE_MAX_ROWS);
    else {
        new.profile = profile_open(&options);
        tables->tables = mem_room(tables->tables, tables->n_tables,
                                  &tables->cap, sizeof(new));
        tables->tables[tables->n_tables++] = new;
    }
    return new.profile;
}

/* Computes the statistics of a table after its last id was read, and closes the
 * table's profile. */
static void finish_table(struct id_table *measured, struct arena *arena)
{
    struct profile_result *result = &measured->result;
    struct table *table = &measured->table;

    profile_finish(measured->profile, result, arena);
    profile_close(measured->profile);
    measured->profile = NULL;
    table->num_embeddings = max_u64(result->n_rows, 1);
    table->pooling_factor =
        (double)result->n_ids / (double)max_u64(result->n_samples, 1);
    table->has_bins = result->unique_frac > 0;
    memcpy(table->bins, result->bins, sizeof(table->bins));
    table->n_reach = result->n_reach;
    memcpy(table->reach, result->reach, sizeof(table->reach));
    memcpy(table->misses, result->misses, sizeof(table->misses));
    if (!isnan(result->zipf_alpha))
        table->zipf_alpha = result->zipf_alpha;
    table->skew_assumed = isnan(result->zipf_alpha) && !table->has_bins;
}

/* Computes the statistics of the tables from index `first` on. None of these
 * tables may be measured yet. */
static void finish_tables(struct id_tables *tables, size_t first)
{
    uint64_t bytes = 0;

    for (size_t i = first; i < tables->n_tables; i++) {
        bytes += profile_bytes(tables->tables[i].profile);
        finish_table(&tables->tables[i], tables->arena);
    }
    tables->memory_bytes = max_u64(tables->memory_bytes, bytes);
}

/* Adds the ids of n rows of a matrix to the profiles. Column c of the matrix
 * belongs to profile c. */
static int add_rows(struct profile **profiles, struct id_part *part, uint64_t n,
                    struct progress *progress, struct err *err)
{
    const size_t n_columns = (size_t)part->ids.npy.n_columns;
    int64_t ids[BLOCK], column[BLOCK];

    for (size_t n_block; n; n -= n_block) {
        n_block = (size_t)min_u64(n, BLOCK / n_columns);
        if (ids_read_numbers(&part->ids, ids, n_block * n_columns, err))
            return -1;
        for (size_t c = 0; c < n_columns; c++) {
            for (size_t i = 0; i < n_block; i++)
                column[i] = ids[i * n_columns + c];
            if (profile_add(profiles[c], column, n_block, err))
                return err_prefix(err, "%s: column %zu", part->ids.source, c);
        }
        progress_update(progress, progress->done += n_block * n_columns);
    }
    return 0;
}

/* Reads a matrix with one table per column. All of these tables are measured at
 * the same time. */
static int read_matrix(struct id_tables *tables, struct id_part *part,
                       struct err *err)
{
    const size_t n_columns = (size_t)part->ids.npy.n_columns;
    struct profile **profiles =
        ARENA_NEW(tables->arena, struct profile *, n_columns);
    uint64_t n_left = part->ids.npy.n_rows, n;
    int rc;

    for (size_t c = 0; c < n_columns; c++) {
        profiles[c] = find_profile(
            tables, arena_printf(tables->arena, "%s_%zu", part->table, c), err);
        if (!profiles[c])
            return err_prefix(err, "%s", part->ids.source);
    }
    rc = ids_open(&part->ids, err);
    while (!rc && n_left && !profile_is_full(profiles[0])) {
        n = min_u64(profile_room(profiles[0]), n_left);
        rc = add_rows(profiles, part, n, &tables->progress, err);
        for (size_t c = 0; !rc && c < n_columns; c++)
            profile_end(profiles[c], n);
        n_left -= n;
    }
    ids_close(&part->ids);
    return rc ? -1 : 0;
}

static int read_table(struct id_tables *tables, struct id_part *part,
                      struct err *err)
{
    struct profile *profile = find_profile(tables, part->table, err);

    return !profile || read_part(profile, part, &tables->progress, err) ? -1
                                                                        : 0;
}

/* Reads the tables of the files one after the other, so that only one profile
 * is in memory at a time. Only the tables of a matrix are read together. */
static int read_files(struct id_tables *tables, char *const *paths,
                      size_t n_paths, struct err *err)
{
    struct ids_listing listing = {.arena = tables->arena,
                                  .list = &tables->list,
                                  .columns_are = tables->columns_are};
    size_t first = 0;
    int rc = ids_list_files(&listing, paths, n_paths, err);

    tables->left_out = listing.left_out;
    tables->progress.total = listing.n_ids;
    for (size_t i = 0; !rc && i < listing.n_parts; i++) {
        struct id_part *part = &listing.parts[i];

        rc = part->is_matrix ? read_matrix(tables, part, err)
                             : read_table(tables, part, err);
        if (!rc && (i + 1 == listing.n_parts ||
                    strcmp(part->table, part[1].table) != 0)) {
            finish_tables(tables, first);
            first = tables->n_tables;
        }
    }
    mem_free(listing.parts);
    mem_free(listing.members);
    return rc ? -1 : 0;
}

/* Header of a frame in the pipe. The table's name and the ids follow the
 * header. */
struct frame {
    int64_t n_samples, n_ids, name_bytes;
};

static int read_frame(struct id_tables *tables, const struct id_array *array,
                      const struct frame *frame, struct err *err)
{
    const uint64_t n_samples = (uint64_t)frame->n_samples;
    struct id_array ids = *array;
    struct profile *profile;
    char name[NAME_MAX_BYTES + 1] = "";
    ssize_t len;

    if (frame->n_samples < 0 || frame->n_ids < 0 || frame->name_bytes < 1 ||
        frame->name_bytes > NAME_MAX_BYTES)
        return err_input(err,
                         "its header has impossible sizes: %" PRId64
                         " samples, %" PRId64 " ids, a name of %" PRId64
                         " bytes",
                         frame->n_samples, frame->n_ids, frame->name_bytes);
    len = ids_read_bytes(array, name, (size_t)frame->name_bytes, err);
    if (len < 0)
        return -1;
    if (len < frame->name_bytes || strlen(name) < (size_t)len ||
        !text_is_printable(name))
        return err_input(err, "the name is truncated or not printable");
    profile = find_profile(tables, name, err);
    if (!profile)
        return -1;
    if (n_samples > profile_room(profile))
        return err_input(err,
                         "%" PRIu64 " samples of table '%s', but the GPU's "
                         "batch has room for only %" PRIu64,
                         n_samples, name, profile_room(profile));
    ids.source = "its ids";
    if (add_ids(profile, &ids, (uint64_t)frame->n_ids, &tables->progress, err))
        return -1;
    profile_end(profile, n_samples);
    return 0;
}

static int read_stream(struct id_tables *tables, struct err *err)
{
    const struct id_array array = {
        .source = "standard input", .npy.width = 8, .fd = STDIN_FILENO};

    for (uint64_t n = 1;; n++) {
        struct frame frame = {0};
        ssize_t len = ids_read_bytes(&array, &frame, sizeof(frame), err);

        if (!len)
            break;
        if (len < 0)
            return -1;
        if (len < (ssize_t)sizeof(frame)
                ? err_input(err, "truncated")
                : read_frame(tables, &array, &frame, err))
            return err_prefix(err, "standard input: frame %" PRIu64, n);
    }
    finish_tables(tables, 0);
    return 0;
}

int ids_measure(struct id_tables *tables, char *const *paths, size_t n_paths,
                struct err *err)
{
    const bool is_stream = n_paths == 1 && !strcmp(paths[0], "-");
    int rc;

    progress_start(&tables->progress, "ids", 0, tables->is_logged);
    rc = is_stream ? read_stream(tables, err)
                   : read_files(tables, paths, n_paths, err);
    progress_finish(&tables->progress);
    if (rc || tables->n_tables)
        return rc;
    return err_input(err, "%s has no ids%s%s",
                     is_stream ? "standard input" : paths[0],
                     tables->left_out ? "; labels and dense columns are left "
                                        "out: "
                                      : "",
                     tables->left_out ? tables->left_out : "");
}

void ids_release(struct id_tables *tables)
{
    for (size_t i = 0; i < tables->n_tables; i++)
        profile_close(tables->tables[i].profile);
    mem_free(tables->tables);
}
