/* SPDX-License-Identifier: MIT */
#include "emit/placed_tables.h"

#include "base/ranked.h"
#include "base/text.h"
#include "core/memory.h"
#include "emit/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the tables, or the pieces of a GPU --- */

static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    const double x[] = {-a->alone_ms, -(double)a->bytes, (double)a->begin};
    const double y[] = {-b->alone_ms, -(double)b->bytes, (double)b->begin};

    return ranked_compare_reals(x, y, 3);
}

static struct placed sum_up(const struct plan *plan, size_t begin, size_t end)
{
    struct placed placed = {
        .begin = begin,
        .end = end,
        .changes_training =
            shard_changes_training(&plan->problem, &plan->shards[begin]),
    };

    for (size_t i = begin; i < end; i++) {
        placed.alone_ms += plan->shard_ms[i];
        placed.bytes += shard_memory(&plan->problem, &plan->shards[i]).total;
    }
    return placed;
}

size_t placed_find(struct placed *placed, const struct plan *plan, uint32_t gpu)
{
    size_t n = 0;

    for (size_t i = 0, end; i < plan->n_shards; i = end) {
        end = gpu == ALL_GPUS ? emit_shards_end(plan, i) : i + 1;
        if (gpu == ALL_GPUS || plan->shards[i].device == gpu)
            placed[n++] = sum_up(plan, i, end);
    }
    qsort(placed, n, sizeof(*placed), compare_placed);
    return n;
}

/* --- names and GPUs --- */

static size_t first_shard(const struct plan *plan, size_t idx)
{
    while (idx && plan->shards[idx - 1].table == plan->shards[idx].table)
        idx--;
    return idx;
}

void placed_print_name(const struct plan *plan, size_t idx, size_t most,
                       struct buf *out)
{
    const struct shard *shard = &plan->shards[idx];
    const char *name = plan->problem.tables[shard->table].name;
    const size_t first = first_shard(plan, idx);

    text_column(out, name, (unsigned)min_u64(text_length(name), most));
    if (shard_is_replica(shard->kind))
        buf_printf(out, "*");
    else if (shard->kind != SHARD_TABLE)
        buf_printf(out, "/%zu", emit_shards_end(plan, first) - first);
}

/* Shortens a list, at a comma if it has one, to at most `room` characters with
 * the ".." that it then ends with. */
static void cut_list(struct buf *list, size_t room)
{
    if (list->len <= room)
        return;
    list->len = room > strlen("..") ? room - strlen("..") : 0;
    while (list->len && list->data[list->len] != ',')
        list->len--;
    list->data[list->len] = '\0';
    buf_printf(list, "..");
}

static int compare_gpus(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

void placed_print_gpus(uint32_t *gpus, size_t n, size_t room, struct buf *out)
{
    struct buf list = {0};

    qsort(gpus, n, sizeof(*gpus), compare_gpus);
    for (size_t i = 0, end; i < n && list.len <= room; i = end) {
        for (end = i + 1; end < n && gpus[end] <= gpus[end - 1] + 1;)
            end++;
        buf_printf(&list, gpus[end - 1] > gpus[i] ? "%s%u-%u" : "%s%u",
                   i ? "," : "", gpus[i], gpus[end - 1]);
    }
    cut_list(&list, room);
    buf_add(out, list.data, list.len);
    buf_release(&list);
}

void placed_print_holders(const struct plan *plan, size_t begin, size_t end,
                          size_t room, struct buf *out)
{
    uint32_t *gpus = mem_alloc(end - begin, sizeof(*gpus));

    for (size_t i = begin; i < end; i++)
        gpus[i - begin] = plan->shards[i].device;
    placed_print_gpus(gpus, end - begin, room, out);
    mem_free(gpus);
}

void placed_print_where(const struct plan *plan, uint32_t table,
                        struct buf *out)
{
    struct buf list = {0};
    size_t begin = 0;

    if (plan->problem.cluster.n_devices == 1)
        return;
    while (plan->shards[begin].table != table)
        begin++;
    placed_print_holders(plan, begin, emit_shards_end(plan, begin), SIZE_MAX,
                         &list);
    buf_printf(out, " on GPU%s %s", strpbrk(list.data, ",-") ? "s" : "",
               list.data);
    buf_release(&list);
}

/* --- the printed table --- */

enum {
    CELL_NAME,
    CELL_ROWS,
    CELL_DIM,
    CELL_CUT,
    CELL_GPUS,
    CELL_GIB,
    CELL_MS,
    N_CELLS
};
/* Widths in characters: the longest list of GPUs and the shortest name, unless
 * lines are unlimited. */
#define MOST_GPUS 14u
#define LEAST_NAME 12u
/* Width from which lines are unlimited. */
#define ALL_COLUMNS 1000u

/* Widths of the gap before a column in characters. */
#define GAP 1u
#define WIDE_GAP 2u

static const struct {
    const char *heading;
    unsigned gap;
    bool is_left; /* aligned to the left */
} columns[N_CELLS] = {
    {"table", 0, true},       {"rows", GAP, false},     {"dim", GAP, false},
    {"cut", WIDE_GAP, true},  {"GPUs", WIDE_GAP, true}, {"GiB", GAP, false},
    {"alone ms", GAP, false},
};

/* A printed line. */
struct placed_line {
    struct buf cells[N_CELLS]; /* owned; the name is cut when it is printed */
    size_t idx;                /* shard that the name is of */
    bool is_marked;
};

/* Prints where a piece is if it is in host memory: ", cached" or ", host". */
static void print_tier(const struct shard *shard, struct buf *out)
{
    if (shard->tier != TIER_HBM)
        buf_printf(out, ", %s", tier_names[shard->tier]);
}

/* Prints the cut of a table, or of one of its pieces, and its tier: "by rows",
 * or "rows 3 of 8, cached". */
static void print_cut(const struct plan *plan, const struct placed *placed,
                      bool is_piece, struct buf *out)
{
    const struct shard *shard = &plan->shards[placed->begin];
    const struct shard_traits *traits =
        &shard_traits[shard_kind_idx(shard->kind)];
    const size_t first = first_shard(plan, placed->begin);
    const size_t end = emit_shards_end(plan, first);
    size_t n = 0, before = 0;

    if (!is_piece || !(traits->cuts_rows || traits->cuts_columns)) {
        buf_printf(out, "%s", traits->cut);
        print_tier(shard, out);
        return;
    }
    for (size_t i = first; i < end; i++)
        if (plan->shards[i].col_begin == shard->col_begin) {
            n++;
            before += plan->shards[i].row_begin < shard->row_begin;
        }
    if (traits->cuts_rows)
        buf_printf(out, "rows %zu of %zu%s", before + 1, n,
                   traits->cuts_columns ? ", " : "");
    if (traits->cuts_columns)
        buf_printf(out, "columns %u-%u", shard->col_begin, shard->col_end);
    print_tier(shard, out);
}

static void fill_heading(struct placed_line *line, uint32_t gpu)
{
    for (unsigned c = 0; c < N_CELLS; c++)
        buf_printf(&line->cells[c], "%s", columns[c].heading);
    if (gpu != ALL_GPUS)
        buf_printf(&line->cells[CELL_NAME], " on GPU %u", gpu);
}

static void fill_line(struct placed_line *line, const struct plan *plan,
                      const struct placed *placed, bool is_piece, size_t most)
{
    const struct shard *shard = &plan->shards[placed->begin];
    const struct table *table = &plan->problem.tables[shard->table];
    const size_t first = first_shard(plan, placed->begin);
    struct buf *cells = line->cells;

    line->idx = placed->begin;
    line->is_marked = placed->changes_training;
    placed_print_name(plan, line->idx, SIZE_MAX, &cells[CELL_NAME]);
    buf_printf(&cells[CELL_ROWS], "%s", TEXT_COUNT(table->num_embeddings));
    buf_printf(&cells[CELL_DIM], "%u", table->dim);
    print_cut(plan, placed, is_piece, &cells[CELL_CUT]);
    placed_print_holders(plan, first, emit_shards_end(plan, first), most,
                         &cells[CELL_GPUS]);
    buf_printf(&cells[CELL_GIB], "%.3f", (double)placed->bytes / 0x1p30);
    buf_printf(&cells[CELL_MS], "%.3f", placed->alone_ms);
}

/* Sets the widths of the columns in characters. If the lines are too long,
 * names get shorter, and then cuts. */
static void set_widths(size_t widths[N_CELLS], const struct placed_line *lines,
                       size_t n, size_t n_columns)
{
    static const unsigned shrinking[] = {CELL_NAME, CELL_CUT};
    size_t all = strlen(" !");

    for (unsigned c = 0; c < N_CELLS; c++) {
        for (size_t i = 0; i < n; i++)
            widths[c] = max_u64(widths[c], text_length(lines[i].cells[c].data));
        all += columns[c].gap + widths[c];
    }
    for (unsigned s = 0; s < 2; s++) {
        size_t *width = &widths[shrinking[s]];
        const size_t least = min_u64(*width, LEAST_NAME);
        const size_t less = all > n_columns ? all - n_columns : 0;
        const size_t now = *width - least > less ? *width - less : least;

        all -= *width - now;
        *width = now;
    }
}

static void print_cell(const char *text, unsigned column, size_t width,
                       struct buf *out)
{
    buf_printf(out, "%*s", (int)columns[column].gap, "");
    if (columns[column].is_left)
        text_column(out, text, (unsigned)width);
    else
        buf_printf(out, "%*s", (int)width, text);
}

/* Cuts the name of a line to the width of its column. The number of pieces
 * behind it stays. */
static void cut_name(struct placed_line *line, const struct plan *plan,
                     size_t width)
{
    struct buf *name = &line->cells[CELL_NAME];
    const size_t n = text_length(name->data);
    const char *own = plan->problem.tables[plan->shards[line->idx].table].name;

    if (n <= width)
        return;
    buf_release(name);
    placed_print_name(plan, line->idx, max_u64(1, text_length(own) + width - n),
                      name);
}

/* Prints the meaning of the time and of the mark. */
static void print_legend(const struct plan *plan, const struct placed *placed,
                         size_t n, struct buf *out)
{
    bool columns_change = false, replicas_change = false, has_tiers = false;

    buf_printf(out,
               "alone ms: look-ups and update of a piece alone on its GPU, by "
               "%s (%s)\n",
               plan->cost.name, cost_basis_names[plan->cost.basis]);
    for (size_t i = 0; i < n; i++) {
        const bool is_replica =
            shard_is_replica(plan->shards[placed[i].begin].kind);

        columns_change |= placed[i].changes_training && !is_replica;
        replicas_change |= placed[i].changes_training && is_replica;
        has_tiers |= plan->shards[placed[i].begin].tier != TIER_HBM;
    }
    if (has_tiers)
        buf_printf(out, "cached: in host memory behind a cache of rows on the "
                        "GPU; host: in host memory\n");
    if (!columns_change && !replicas_change)
        return;
    buf_printf(out, "! training changes: ");
    if (columns_change)
        buf_printf(out, "each column piece has optimizer values of its own%s",
                   replicas_change ? "; " : "");
    if (replicas_change)
        buf_printf(out, "the dense optimizer, %s, updates replicas",
                   dense_optimizer_names[plan->problem.dense_optimizer]);
    buf_printf(out, "\n");
}

/* Prints the heading lines[0] and the lines of the tables. */
static void print_lines(struct placed_line *lines, size_t n,
                        const struct plan *plan, size_t n_columns,
                        struct buf *out)
{
    size_t widths[N_CELLS] = {0};

    set_widths(widths, lines, n, n_columns);
    for (size_t i = 0; i < n; i++) {
        if (i)
            cut_name(&lines[i], plan, widths[CELL_NAME]);
        for (unsigned c = 0; c < N_CELLS; c++)
            print_cell(lines[i].cells[c].data, c, widths[c], out);
        buf_printf(out, "%s\n", lines[i].is_marked ? " !" : "");
    }
}

void placed_print(const struct plan *plan, uint32_t gpu, size_t n_columns,
                  struct buf *out)
{
    const size_t most = n_columns > ALL_COLUMNS ? SIZE_MAX : MOST_GPUS;
    struct placed *placed = mem_alloc(plan->n_shards, sizeof(*placed));
    const size_t n = placed_find(placed, plan, gpu);
    struct placed_line *lines = mem_alloc(n + 1, sizeof(*lines));

    fill_heading(&lines[0], gpu);
    for (size_t i = 0; i < n; i++)
        fill_line(&lines[i + 1], plan, &placed[i], gpu != ALL_GPUS, most);
    if (n) {
        buf_printf(out, "\n");
        print_lines(lines, n + 1, plan, n_columns, out);
        print_legend(plan, placed, n, out);
    }
    for (size_t i = 0; i <= n; i++)
        for (unsigned c = 0; c < N_CELLS; c++)
            buf_release(&lines[i].cells[c]);
    mem_free(lines);
    mem_free(placed);
}

void placed_add_json(json_t *shards, const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        json_t *object = json_array_get(shards, i);

        json_object_set_new(
            object, "memory_bytes",
            json_whole(shard_memory(&plan->problem, shard).total));
        json_object_set_new(
            object, "changes_training",
            json_boolean(shard_changes_training(&plan->problem, shard)));
    }
}
