/* SPDX-License-Identifier: MIT */
#include "io/times.h"

#include "base/text.h"
#include "io/named_rows.h"
#include "io/times_trace.h"

#include <inttypes.h>
#include <string.h>

/* upper limit of a time in ms, the same as in the cost database */
#define MAX_MS 1e9

enum { COLUMN_STEP, COLUMN_RANK, COLUMN_PHASE, COLUMN_MS, N_COLUMNS };
static const char *const column_names[] = {"step", "rank", "phase", "ms", NULL};

struct times_reader {
    struct times *times;
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
static int read_cells(void *ctx, const char *const *cells, struct err *err)
{
    const struct times_reader *reader = ctx;
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

int times_add(struct times *times, const char *text, size_t len,
              const char *source, struct arena *arena, struct err *err)
{
    struct times_reader reader = {times, arena};
    struct named_rows rows = {.names = column_names,
                              .n_required = N_COLUMNS,
                              .read = read_cells,
                              .ctx = &reader};
    const char *copy = arena_strndup(arena, text, len);

    if (times_is_trace(copy))
        return times_add_trace(times, copy, source, arena, err);
    if (named_rows_read(&rows, text, len, source, arena, err))
        return -1;
    times->is_cut |= rows.is_cut;
    if (rows.n)
        return 0;
    return err_input(err, "%s:%zu: no times", source, rows.line);
}
