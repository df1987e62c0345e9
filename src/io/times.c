/* SPDX-License-Identifier: MIT */
#include "io/times.h"

#include "base/json.h"
#include "base/text.h"
#include "io/csv.h"

#include <inttypes.h>
#include <string.h>

/* upper limit of a time in ms, the same as in the cost database */
#define MAX_MS 1e9

enum { COLUMN_STEP, COLUMN_RANK, COLUMN_PHASE, COLUMN_MS };
#define N_COLUMNS 4
static const char *const column_names[] = {"step", "rank", "phase", "ms", NULL};

struct times_reader {
    struct times *times;
    size_t line;
    int field_of[N_COLUMNS]; /* index of the CSV field for each column */
    struct arena *arena;
};

void times_release(struct times *times)
{
    mem_free(times->times);
    *times = (struct times){0};
}

static int wrong(unsigned column, const char *cell, const char *want,
                 struct err *err)
{
    return err_input(err, "%s is %s, not '%s'", column_names[column], want,
                     cell);
}

/* Adds one measured time. The texts of its columns are given. */
static int read_cells(const struct times_reader *reader,
                      const char *const cells[N_COLUMNS], struct err *err)
{
    struct times *times = reader->times;
    const int part = text_choice(step_part_names, cells[COLUMN_PHASE]);
    struct part_time time;
    uint64_t rank;

    if (!text_to_u64(cells[COLUMN_STEP], &time.step))
        return wrong(COLUMN_STEP, cells[COLUMN_STEP], "a whole number", err);
    if (!text_to_u64(cells[COLUMN_RANK], &rank) || rank >= times->n_ranks)
        return wrong(COLUMN_RANK, cells[COLUMN_RANK],
                     arena_printf(reader->arena,
                                  "0 to %" PRIu32 ", as the plan has %" PRIu32
                                  " ranks",
                                  times->n_ranks - 1, times->n_ranks),
                     err);
    if (part < 0)
        return wrong(COLUMN_PHASE, cells[COLUMN_PHASE],
                     text_list(step_part_names, " or ", reader->arena), err);
    if (!text_to_double(cells[COLUMN_MS], &time.ms) || time.ms < 0 ||
        time.ms > MAX_MS)
        return wrong(COLUMN_MS, cells[COLUMN_MS], "a time from 0 to 1e9 ms",
                     err);
    time.rank = (uint32_t)rank;
    time.part = (enum step_part)part;
    times->times =
        mem_room(times->times, times->n, &times->cap, sizeof(*times->times));
    times->times[times->n++] = time;
    return 0;
}

static int read_record(void *ctx, const struct csv *csv, struct err *err)
{
    struct times_reader *reader = ctx;
    const char *cells[N_COLUMNS];

    reader->line = csv->record_line;
    for (unsigned c = 0; c < N_COLUMNS && !csv->n_records; c++) {
        reader->field_of[c] = text_choice(csv->fields, column_names[c]);
        if (reader->field_of[c] < 0)
            return err_input(
                err, "the heading lacks '%s', one of step,rank,phase,ms",
                column_names[c]);
    }
    if (!csv->n_records || !csv->n_fields)
        return 0;
    for (unsigned c = 0; c < N_COLUMNS; c++)
        cells[c] = csv->fields[reader->field_of[c]];
    return read_cells(reader, cells, err);
}

static int read_json(struct times_reader *reader, const char *text, size_t len,
                     const char *source, struct err *err)
{
    json_t *root = NULL;
    const size_t *lines;
    int rc = 0;

    if (json_parse(&root, text, len, source, err))
        return -1;
    lines = place_child_lines(text, len, 1, reader->arena);
    for (size_t i = 0; !rc && i < json_array_size(root); i++) {
        const json_t *object = json_array_get(root, i);
        const struct arena_mark mark = arena_mark(reader->arena);
        const char *cells[N_COLUMNS];

        reader->line = lines[i];
        for (unsigned c = 0; c < N_COLUMNS; c++)
            cells[c] = json_cell(json_object_get(object, column_names[c]),
                                 reader->arena);
        if (read_cells(reader, cells, err))
            rc = err_prefix(err, "%s:%zu", source, reader->line);
        arena_rewind(reader->arena, mark);
    }
    json_decref(root);
    return rc;
}

int times_add(struct times *times, const char *text, size_t len,
              const char *source, struct arena *arena, struct err *err)
{
    struct times_reader reader = {.times = times, .line = 1, .arena = arena};
    const char *copy = arena_strndup(arena, text, len);
    const char first = copy[strspn(copy, " \t\r\n")];
    const size_t n = times->n;

    if (first == '[' || first == '{'
            ? read_json(&reader, text, len, source, err)
            : csv_read(text, len, source, read_record, &reader, arena, err))
        return -1;
    times->is_cut |= first != '[' && first != '{' && text[len - 1] != '\n';
    if (times->n > n)
        return 0;
    return err_input(err, "%s:%zu: no times", source, reader.line);
}
