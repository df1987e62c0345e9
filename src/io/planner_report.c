/* SPDX-License-Identifier: MIT */
#include "io/planner_report.h"

#include "base/text.h"
#include "io/cluster_fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TITLE "--- Planner Statistics ---"
#define MAX_CELLS 32
/* Rounding error of a mean of printed times, in ms. The absolute part is the
 * error of the printed mean. The relative part is the error that many ranks
 * accumulate. */
#define MEAN_SLACK_MS 0.002
#define MEAN_SLACK_FRAC 1e-5

static const struct {
    /* names of the column, separated by '|', the newest first */
    const char *names;
    bool is_needed;
} columns[N_PLANNER_COLUMNS] = {
    [PLANNER_FQN] = {"FQN", true},
    [PLANNER_SHARDING] = {"Sharding", true},
    [PLANNER_KERNEL] = {"Compute Kernel", true},
    [PLANNER_DIM] = {"Emb Dim (CW Dim)|Emb Dim", true},
    [PLANNER_ROWS] = {"Hash Size", true},
    [PLANNER_RANKS] = {"Ranks", true},
    [PLANNER_OUTPUT] = {"Output", false},
    [PLANNER_INDICES] = {"Num Indices", false},
    [PLANNER_FACTOR] = {"Sum Pooling Factor|Pooling Factor", false},
    [PLANNER_POOLINGS] = {"Sum Num Poolings|Num Poolings", false},
    [PLANNER_FEATURES] = {"Features", false},
    [PLANNER_LOAD_FACTOR] = {"Cache Load Factor", false},
};
static const char *const kinds[N_PLANNER_KINDS] = {"DP", "TW",   "CW", "TWCW",
                                                   "RW", "TWRW", "GS"};

/* Number of shards of a rank for each kind of sharding. `said` is the number in
 * the rank's row. `listed` is the number that the list of tables gives for the
 * rank. */
struct rank_shards {
    int64_t said[N_PLANNER_KINDS], listed[N_PLANNER_KINDS];
    size_t line;
};

/* State of the parser for one report. */
struct attempt {
    struct planner_report report;
    enum { WITHIN_NONE, WITHIN_RANKS, WITHIN_TABLES, WITHIN_KERNELS } within;
    struct rank_shards *ranks; /* [report.n_ranks], owned */
    size_t ranks_cap, rows_cap;
    /* from the table's heading; perf_at is 0 if there is no such column */
    size_t n_cells, shards_at, perf_at;
    /* index of each column in a row; MAX_CELLS: there is no such column */
    size_t column[N_PLANNER_COLUMNS];
    /* times in ms: sum over the ranks, and the printed mean or NAN */
    double perf_ms, mean_ms;
    uint64_t n_kernels, last_rank; /* numbers as printed; 0: not printed */
    size_t kernels_line, mean_line, last_rank_line;
    /* first error of the report, such as "12: what is wrong"; or NULL */
    const char *fault;
};

struct report_reader {
    /* `best` is the last consistent report; best.report.n_rows is 0 if none was
     * found */
    struct attempt now, best;
    const char *source;
    struct arena *arena;
    size_t line;
    char *cells[MAX_CELLS + 1]; /* cells of the current line */
    size_t n_cells;
};

#define FAULT(reader, pos, ...)                                \
    ((reader)->now.fault =                                     \
         (reader)->now.fault                                   \
             ? (reader)->now.fault                             \
             : arena_printf((reader)->arena, "%zu: %s", (pos), \
                            arena_printf((reader)->arena, __VA_ARGS__)))

/* Returns the newest name of a column of the report. */
const char *planner_column_name(enum planner_column column)
{
    static const char *const first[N_PLANNER_COLUMNS] = {
        [PLANNER_DIM] = "Emb Dim (CW Dim)",
        [PLANNER_FACTOR] = "Sum Pooling Factor",
        [PLANNER_POOLINGS] = "Sum Num Poolings",
    };

    return first[column] ? first[column] : columns[column].names;
}

bool planner_report_is(const char *text)
{
    return strstr(text, TITLE);
}

/* Parses a rank such as "3", or a range of ranks such as "0-95". The text ends
 * at a comma or a NUL. Returns the end of the text, or NULL if it is neither a
 * rank nor a range, or if the range has more than n_world ranks. */
static const char *parse_range(uint64_t *first, uint64_t *last,
                               const char *text, uint32_t n_world)
{
    char *end;

    if (*text < '0' || *text > '9')
        return NULL;
    *first = *last = strtoull(text, &end, 10);
    if (*end == '-') {
        if (end[1] < '0' || end[1] > '9')
            return NULL;
        *last = strtoull(end + 1, &end, 10);
    }
    if (*last < *first || *last > UINT32_MAX || *last - *first >= n_world ||
        (*end && *end != ','))
        return NULL;
    return end;
}

uint32_t *planner_ranks(size_t *n, const char *text, uint32_t n_world,
                        struct arena *arena)
{
    uint64_t first, last;
    uint32_t *ranks;
    const char *end = NULL;

    *n = 0;
    for (const char *pos = text; !end || *end; pos = end + 1) {
        end = parse_range(&first, &last, pos, n_world);
        if (!end)
            return NULL;
        *n += last - first + 1;
    }
    ranks = ARENA_NEW(arena, uint32_t, *n);
    *n = 0;
    end = NULL;
    for (const char *pos = text; !end || *end; pos = end + 1) {
        end = parse_range(&first, &last, pos, n_world);
        while (end && first <= last)
            ranks[(*n)++] = (uint32_t)first++;
    }
    return ranks;
}

/* Cuts the text between the two '#' of a line into cells. Returns false if the
 * line does not belong to a planner's report. */
static bool split_line(struct report_reader *reader, char *line)
{
    char *end = line + strlen(line);

    reader->n_cells = 0;
    line = strchr(line, '#');
    while (line && end > line && strchr(" \t\r", end[-1]))
        end--;
    if (!line || end - line < 2 || end[-1] != '#')
        return false;
    for (end--, line++; end > line && strchr(" \t", end[-1]);)
        end--;
    *end = '\0';
    line += strspn(line, " \t");
    while (line && *line && reader->n_cells < MAX_CELLS) {
        reader->cells[reader->n_cells++] = line;
        line = strstr(line, "  ");
        if (line) {
            *line++ = '\0';
            line += strspn(line, " ");
        }
    }
    reader->cells[reader->n_cells] = NULL;
    return true;
}

/* True if the current row has at least `least` cells, and no more cells than
 * the table's heading. */
static bool is_whole(struct report_reader *reader, size_t least)
{
    if (reader->n_cells > reader->now.n_cells)
        FAULT(reader, reader->line,
              "a row has %zu cells or more, but the heading has %zu: rows have "
              "run into each other",
              reader->n_cells, reader->now.n_cells);
    return reader->n_cells >= least && reader->n_cells <= reader->now.n_cells;
}

/* Parses a text with the numbers of a rank's shards, such as "CW: 3 RW: 2". */
static bool parse_shards(struct rank_shards *rank, const char *text)
{
    while (*text) {
        const size_t len = strcspn(text, ":");
        size_t kind = 0;
        char *end;

        while (kind < N_PLANNER_KINDS && (strlen(kinds[kind]) != len ||
                                          strncmp(kinds[kind], text, len) != 0))
            kind++;
        if (kind == N_PLANNER_KINDS || strncmp(text + len, ": ", 2) != 0 ||
            text[len + 2] < '0' || text[len + 2] > '9')
            return false;
        rank->said[kind] +=
            (int64_t)min_u64(strtoull(text + len + 2, &end, 10), UINT32_MAX);
        if (*end && *end != ' ')
            return false;
        text = end + strspn(end, " ");
    }
    return true;
}

static void read_rank(struct report_reader *reader)
{
    struct attempt *now = &reader->now;
    struct rank_shards rank = {.line = reader->line};
    uint64_t number;

    if (!text_to_u64(reader->cells[0], &number) ||
        !is_whole(reader, now->n_cells - 1) ||
        now->report.n_ranks == CLUSTER_MAX_GPUS)
        return;
    if (number != now->report.n_ranks)
        FAULT(reader, reader->line,
              "rank %" PRIu64 " is listed instead of rank %u", number,
              now->report.n_ranks);
    if (reader->n_cells > now->shards_at &&
        !parse_shards(&rank, reader->cells[now->shards_at]))
        FAULT(reader, reader->line,
              "rank %" PRIu64 " cannot have the shards "
              "'%s'",
              number, reader->cells[now->shards_at]);
    if (now->perf_at)
        now->perf_ms += strtod(reader->cells[now->perf_at], NULL);
    now->ranks = mem_room(now->ranks, now->report.n_ranks, &now->ranks_cap,
                          sizeof(*now->ranks));
    now->ranks[now->report.n_ranks++] = rank;
}

static void read_table(struct report_reader *reader)
{
    struct attempt *now = &reader->now;
    struct planner_report *report = &now->report;
    struct planner_row row = {.line = reader->line};

    /* A line with too few cells belongs to another program, or has lost its
     * end. If it has lost its end, the comparison of shards fails later. */
    if (!is_whole(reader, now->column[PLANNER_RANKS] + 1))
        return;
    for (size_t c = 0; c < N_PLANNER_COLUMNS; c++)
        if (now->column[c] < reader->n_cells)
            row.cells[c] = reader->cells[now->column[c]];
    report->rows =
        mem_room(report->rows, report->n_rows, &now->rows_cap, sizeof(row));
    report->rows[report->n_rows++] = row;
}

/* Reads a line with the number of tables of a kernel, such as "fused: 1935". */
static void read_kernel(struct report_reader *reader)
{
    const char *count = strstr(reader->cells[0], ": ");
    uint64_t n;

    if (reader->n_cells > 1 || !count || !text_to_u64(count + 2, &n))
        return;
    reader->now.n_kernels += min_u64(n, UINT32_MAX);
    reader->now.kernels_line = reader->line;
}

/* Returns the index of the cell in the current heading that holds one of the
 * names, which '|' separates in `names`. Returns MAX_CELLS if no cell does. */
static size_t find_column(const struct report_reader *reader, const char *names)
{
    for (size_t i = 0; i < reader->n_cells; i++)
        if (text_which(names, reader->cells[i]) >= 0)
            return i;
    return MAX_CELLS;
}

static void read_tables_heading(struct report_reader *reader)
{
    struct attempt *now = &reader->now;

    now->within = WITHIN_TABLES;
    now->n_cells = reader->n_cells;
    for (size_t c = 0; c < N_PLANNER_COLUMNS; c++) {
        now->column[c] = find_column(reader, columns[c].names);
        if (columns[c].is_needed && now->column[c] == MAX_CELLS)
            FAULT(reader, reader->line, "there is no column '%s'",
                  planner_column_name((enum planner_column)c));
    }
    if (now->column[PLANNER_INDICES] == MAX_CELLS &&
        now->column[PLANNER_FACTOR] == MAX_CELLS)
        FAULT(reader, reader->line, "there is no column '%s' or '%s'",
              planner_column_name(PLANNER_INDICES), "Pooling Factor");
    if (now->fault)
        now->within = WITHIN_NONE;
}

static void read_ranks_heading(struct report_reader *reader)
{
    struct attempt *now = &reader->now;

    now->within = WITHIN_RANKS;
    now->n_cells = reader->n_cells;
    now->shards_at = find_column(reader, "Shards");
    now->perf_at = find_column(reader, "Perf (ms)");
    if (now->shards_at != now->n_cells - 1)
        FAULT(reader, reader->line, "the last column of ranks is not 'Shards'");
    if (now->perf_at == MAX_CELLS)
        now->perf_at = 0;
}

/* Reads a line with a maximum or a mean, such as "Maximum of Total Perf:
 * 1300.325 ms on rank 28" or "... on ranks 0-95". */
static void read_figure(struct report_reader *reader)
{
    static const char mean[] = "Mean Total Perf: ", batch[] = "Batch Size: ";
    struct attempt *now = &reader->now;
    const char *cell = reader->cells[0], *ranks = strstr(cell, " on rank");

    if (!strncmp(cell, mean, strlen(mean))) {
        now->mean_ms = strtod(cell + strlen(mean), NULL);
        now->mean_line = reader->line;
    } else if (!strncmp(cell, batch, strlen(batch))) {
        uint64_t n = 0;

        if (!text_to_u64(cell + strlen(batch), &n) || !n)
            FAULT(reader, reader->line, "'%s' is not a number of samples",
                  cell);
        else if (now->report.batch_per_rank && now->report.batch_per_rank != n)
            FAULT(reader, reader->line,
                  "two batch sizes are given: %" PRIu64 " and %" PRIu64,
                  now->report.batch_per_rank, n);
        now->report.batch_per_rank = n;
    } else if (!strncmp(cell, "Compute Kernels:", 16) ||
               !strncmp(cell, "Compute Kernels Count:", 22)) {
        now->within = WITHIN_KERNELS;
        now->n_kernels = 0;
    }
    while (ranks && *(ranks += strcspn(ranks, "0123456789"))) {
        char *end;
        uint64_t rank = strtoull(ranks, &end, 10);

        if (rank > now->last_rank)
            now->last_rank_line = reader->line;
        now->last_rank = max_u64(now->last_rank, rank);
        ranks = end;
    }
}

/* Counts the shards that the list of tables gives for each rank. Returns false
 * if a row of the list is malformed. The error is reported by the code that
 * reads the row later. */
static bool count_listed(struct report_reader *reader)
{
    struct attempt *now = &reader->now;
    const uint32_t n_ranks = now->report.n_ranks;
    bool are_sound = true;

    for (size_t i = 0; are_sound && i < now->report.n_rows; i++) {
        const struct arena_mark mark = arena_mark(reader->arena);
        const char *const *cells = now->report.rows[i].cells;
        const int kind = text_which(PLANNER_KINDS, cells[PLANNER_SHARDING]);
        size_t n;
        const uint32_t *ranks =
            planner_ranks(&n, cells[PLANNER_RANKS], n_ranks, reader->arena);

        are_sound = kind >= 0 && ranks;
        for (size_t r = 0; are_sound && r < n; r++) {
            are_sound = ranks[r] < n_ranks;
            if (are_sound)
                now->ranks[ranks[r]].listed[kind]++;
        }
        arena_rewind(reader->arena, mark);
    }
    return are_sound;
}

static void compare_shards(struct report_reader *reader)
{
    const struct attempt *now = &reader->now;

    for (uint32_t r = 0; r < now->report.n_ranks; r++)
        for (size_t k = 0; k < N_PLANNER_KINDS; k++)
            if (now->ranks[r].said[k] != now->ranks[r].listed[k]) {
                FAULT(reader, now->ranks[r].line,
                      "rank %u has %lld %s shards in its row, but the tables "
                      "list %lld on it",
                      r, (long long)now->ranks[r].said[k], kinds[k],
                      (long long)now->ranks[r].listed[k]);
                return;
            }
}

/* Compares the rows of a report with the totals that the report prints. */
static void check_report(struct report_reader *reader)
{
    const struct attempt *now = &reader->now;
    const double mean = now->perf_ms / now->report.n_ranks;

    if (now->fault)
        return;
    if (!now->report.n_rows || !now->report.n_ranks)
        FAULT(reader, now->report.line,
              now->report.n_rows
                  ? "no ranks with their shards are listed before the tables"
                  : "no tables with their ranks, which TorchRec's planner "
                    "prints with debug=True");
    else if (now->last_rank >= now->report.n_ranks)
        FAULT(reader, now->last_rank_line,
              "rank %" PRIu64 " is named, but only %u ranks are listed",
              now->last_rank, now->report.n_ranks);
    else if (!count_listed(reader))
        return;
    else if (now->n_kernels && now->n_kernels != now->report.n_rows)
        FAULT(reader, now->kernels_line,
              "%" PRIu64 " tables have a compute kernel, but %zu are listed",
              now->n_kernels, now->report.n_rows);
    else if (now->perf_at && !isnan(now->mean_ms) &&
             fabs(mean - now->mean_ms) >
                 MEAN_SLACK_MS + MEAN_SLACK_FRAC * fabs(mean))
        FAULT(reader, now->mean_line,
              "the mean of the ranks is %.3f ms, but 'Mean Total Perf' is "
              "%.3f ms",
              mean, now->mean_ms);
    else
        compare_shards(reader);
}

static void release(struct attempt *attempt)
{
    mem_free(attempt->ranks);
    mem_free(attempt->report.rows);
    *attempt = (struct attempt){.mean_ms = NAN};
}

/* Ends the current report. If it is consistent, it becomes the best report. */
static void end_report(struct report_reader *reader)
{
    struct attempt *now = &reader->now;

    check_report(reader);
    if (!now->fault) {
        release(&reader->best);
        reader->best = *now;
    }
}

/* Ends the current report and begins the next one. */
static void begin_report(struct report_reader *reader)
{
    struct attempt *now = &reader->now;

    if (now->report.line) {
        end_report(reader);
        if (now->fault)
            release(now);
    } else {
        release(now); /* ranks without a title */
    }
    *now = (struct attempt){.mean_ms = NAN, .report.line = reader->line};
}

static void read_line(struct report_reader *reader, char *line)
{
    struct attempt *now = &reader->now;
    const char *first;

    if (strstr(line, TITLE)) {
        begin_report(reader);
        return;
    }
    if (!split_line(reader, line))
        return;
    first = reader->n_cells ? reader->cells[0] : "";
    if (!strcmp(first, "Rank") && reader->n_cells > 1) {
        if (now->report.n_ranks) /* the log lost the title line */
            begin_report(reader);
        read_ranks_heading(reader);
    } else if (!strcmp(first, "FQN") && reader->n_cells > 1) {
        if (now->report.n_rows)
            begin_report(reader);
        read_tables_heading(reader);
    } else if (!*first) {
        now->within = WITHIN_NONE;
    } else if (now->within == WITHIN_RANKS && *first != '-') {
        read_rank(reader);
    } else if (now->within == WITHIN_TABLES && *first != '-') {
        read_table(reader);
    } else if (now->within == WITHIN_KERNELS) {
        read_kernel(reader);
    } else {
        read_figure(reader);
    }
}

/* Returns the last consistent report. If an inconsistent report comes later in
 * the log, report->doubt is that report's error. */
static int take_best(struct planner_report *out, struct report_reader *reader,
                     struct err *err)
{
    const char *fault = reader->now.fault;

    if (!reader->best.report.line)
        return err_input(err, "%s:%s", reader->source, fault);
    *out = reader->best.report;
    out->rows =
        arena_keep(reader->arena, out->rows, out->n_rows, sizeof(*out->rows));
    reader->best.report.rows = NULL;
    if (fault)
        out->doubt = arena_printf(reader->arena,
                                  "%s:%s; the report of line %zu is "
                                  "incomplete, so the one of line %zu is read",
                                  reader->source, fault,
                                  reader->now.report.line, out->line);
    return 0;
}

int planner_report_find(struct planner_report *out, const char *text,
                        size_t len, const char *source, struct arena *arena,
                        struct err *err)
{
    struct report_reader reader = {.source = source, .arena = arena, .line = 1};
    char *copy = arena_strndup(arena, text, len);
    bool is_kept;
    int rc;

    reader.now.mean_ms = NAN;
    for (char *line; (line = strsep(&copy, "\n")); reader.line++)
        read_line(&reader, line);
    if (!reader.now.report.line)
        reader.now.report.line = 1;
    end_report(&reader);
    is_kept = !reader.now.fault;
    rc = take_best(out, &reader, err);
    if (!is_kept)
        release(&reader.now);
    release(&reader.best);
    return rc;
}
