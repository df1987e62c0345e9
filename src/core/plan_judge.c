/* SPDX-License-Identifier: MIT */
#include "core/plan_judge.h"

#include "base/ranked.h"
#include "core/cluster.h"

#include <inttypes.h>
#include <stdlib.h>

/* Returns the index of piece i in plan->shards, for messages. */
static size_t idx_of(const struct judged *judged, size_t i)
{
    return (size_t)(judged->pieces[i] - judged->plan->shards);
}

/*
 * Exact tiling test by signed corners.
 *
 * A piece is the sum of four quadrants that begin at its four corners, with the
 * signs + - - +. A sum of quadrants is zero everywhere only if, at every point,
 * the signs of the quadrants that begin there cancel. So the pieces tile the
 * table if and only if the corners of all pieces cancel against the negated
 * corners of the table. This needs one sort and no areas, which could overflow.
 * If the corners do not cancel, take the first point with a nonzero sum, by row
 * and then by column. The sum there is the number of pieces that hold the
 * point, minus one.
 */
struct corner {
    uint64_t row;
    uint32_t col;
    int sign;
};

static int compare_corners(const void *left, const void *right)
{
    const struct corner *a = left, *b = right;

    return ranked_compare((const uint64_t[]){a->row, a->col},
                          (const uint64_t[]){b->row, b->col}, 2);
}

static struct corner *add_corners(struct corner *corner, int sign,
                                  uint64_t row_begin, uint64_t row_end,
                                  uint32_t col_begin, uint32_t col_end)
{
    *corner++ = (struct corner){row_begin, col_begin, sign};
    *corner++ = (struct corner){row_begin, col_end, -sign};
    *corner++ = (struct corner){row_end, col_begin, -sign};
    *corner++ = (struct corner){row_end, col_end, sign};
    return corner;
}

/* Reports an error at a point that no piece holds or that several pieces
 * hold. */
static int bad_tiling(const struct judged *judged, const struct corner *point,
                      struct err *err)
{
    const char *name = judged->table->name;
    const struct shard *holder = NULL;

    for (size_t i = 0; i < judged->n; i++) {
        const struct shard *shard = judged->pieces[i];

        if (point->row < shard->row_begin || point->row >= shard->row_end ||
            point->col < shard->col_begin || point->col >= shard->col_end)
            continue;
        if (holder)
            return err_input(
                err,
                "table '%.80s': row %" PRIu64
                ", column %u is in two shards, on GPU %u and on GPU %u",
                name, point->row, point->col, holder->device, shard->device);
        holder = shard;
    }
    return err_input(err,
                     "table '%.80s': row %" PRIu64 ", column %u is in no shard",
                     name, point->row, point->col);
}

static int check_tiling(const struct judged *judged, struct err *err)
{
    const struct table *table = judged->table;
    struct corner *corners = mem_alloc(judged->n + 1, 4 * sizeof(*corners));
    struct corner *corner =
        add_corners(corners, -1, 0, table->num_embeddings, 0, table->dim);
    size_t n_corners = 4 * (judged->n + 1);
    int rc = 0;

    for (size_t i = 0; i < judged->n; i++) {
        const struct shard *shard = judged->pieces[i];

        corner = add_corners(corner, 1, shard->row_begin, shard->row_end,
                             shard->col_begin, shard->col_end);
    }
    qsort(corners, n_corners, sizeof(*corners), compare_corners);
    for (size_t begin = 0, end; begin < n_corners && !rc; begin = end) {
        int64_t sum = 0;

        for (end = begin; end < n_corners &&
                          !compare_corners(&corners[begin], &corners[end]);
             end++)
            sum += corners[end].sign;
        if (sum)
            rc = bad_tiling(judged, &corners[begin], err);
    }
    mem_free(corners);
    return rc;
}

static bool is_full_height(const struct table *table, const struct shard *shard)
{
    return shard->row_begin == 0 && shard->row_end == table->num_embeddings;
}

static bool is_full_width(const struct table *table, const struct shard *shard)
{
    return shard->col_begin == 0 && shard->col_end == table->dim;
}

/* Checks that each device has exactly one copy of the whole table. The pieces
 * of a replicated table are sorted by device. */
static int check_replicas(const struct judged *judged, struct err *err)
{
    const struct table *table = judged->table;
    size_t begin = 0, end = 0;

    for (size_t i = 0; i < judged->n; i++)
        if (!is_full_height(table, judged->pieces[i]) ||
            !is_full_width(table, judged->pieces[i]))
            return err_input(
                err,
                "table '%.80s' is replicated, but shards[%zu] is not whole",
                table->name, idx_of(judged, i));
    for (uint32_t r = 0; r < judged->plan->problem.cluster.n_devices; r++) {
        for (begin = end; end < judged->n && judged->pieces[end]->device == r;)
            end++;
        if (end - begin != 1)
            return err_input(
                err, "table '%.80s' is replicated, but GPU %u has %zu copies",
                table->name, r, end - begin);
    }
    return 0;
}

static int check_kinds(const struct judged *judged, enum shard_kind kind,
                       struct err *err)
{
    const struct table *table = judged->table;

    for (size_t i = 0; i < judged->n; i++)
        if (judged->pieces[i]->kind != kind)
            return err_input(err,
                             "shards[%zu].kind is '%s', but the shards of "
                             "table '%.80s' are of kind '%s'",
                             idx_of(judged, i),
                             shard_kind_name(judged->pieces[i]->kind),
                             table->name, shard_kind_name(kind));
    if (!(table->kinds & kind))
        return err_input(err, "table '%.80s' may not have shards of kind '%s'",
                         table->name, shard_kind_name(kind));
    if (!(judged->plan->problem.kinds & kind))
        return err_input(err,
                         "table '%.80s' has shards of kind '%s', which the "
                         "plan's problem does not allow",
                         table->name, shard_kind_name(kind));
    return 0;
}

/* Checks that the row blocks follow rows_over of the table. If the rows are cut
 * over all devices, block i must be on device i. If they are cut over one host,
 * block i must be on device i of this host. */
static int check_rows_over(const struct judged *judged, enum shard_kind kind,
                           struct err *err)
{
    const struct table *table = judged->table;
    const bool over_all = table->rows_over == ROWS_OVER_ALL;
    const uint32_t host = cluster_group(&judged->plan->problem.cluster);
    const uint32_t pos = judged->pieces[0]->device;

    for (size_t i = 0; i < judged->n && kind == SHARD_ROW && table->rows_over;
         i++) {
        const struct shard *block = judged->pieces[i];

        if (!shard_row_ranks(&judged->plan->problem, block) ||
            (over_all ? pos : pos % host) || block->device != pos + i)
            return err_input(
                err,
                "table '%.80s' may be cut by rows only over %s, in their order",
                table->name, over_all ? "all GPUs" : "the GPUs of one host");
    }
    return 0;
}

/* Checks the widths of column pieces. Checks that a pinned table is on its
 * device, and that a table of a group is on a single device. */
static int check_constraints(const struct judged *judged, struct err *err)
{
    const struct table *table = judged->table;
    const uint32_t first = judged->pieces[0]->device;

    for (size_t i = 0; i < judged->n; i++) {
        const struct shard *shard = judged->pieces[i];
        uint32_t width = shard->col_end - shard->col_begin;

        if (width < table->dim && width % TABLE_COLUMN_STEP)
            return err_input(err,
                             "shards[%zu] holds %u columns of table '%.80s', "
                             "not a multiple of %u",
                             idx_of(judged, i), width, table->name,
                             TABLE_COLUMN_STEP);
        if (width < table->dim && width < table->min_width)
            return err_input(err,
                             "shards[%zu] holds %u columns of table '%.80s', "
                             "whose min_width is %u",
                             idx_of(judged, i), width, table->name,
                             table->min_width);
        if (table->device >= 0 && shard->device != (uint64_t)table->device)
            return err_input(err,
                             "table '%.80s' is pinned to GPU %" PRId64
                             ", but shards[%zu] is on GPU %u",
                             table->name, table->device, idx_of(judged, i),
                             shard->device);
        if (table->group && shard->device != first)
            return err_input(err,
                             "table '%.80s' of group '%.80s' is on GPUs %u and "
                             "%u, but a group stays on one GPU",
                             table->name, table->group, first, shard->device);
    }
    return 0;
}

int judge_pieces(const struct judged *judged, struct err *err)
{
    bool is_replicated = false, cuts_rows = false, cuts_columns = false;
    enum shard_kind kind;

    for (size_t i = 0; i < judged->n; i++) {
        is_replicated |= judged->pieces[i]->kind == SHARD_REPLICATE;
        cuts_rows |= !is_full_height(judged->table, judged->pieces[i]);
        cuts_columns |= !is_full_width(judged->table, judged->pieces[i]);
    }
    if (is_replicated ? check_replicas(judged, err) : check_tiling(judged, err))
        return -1;
    kind = shard_kind_of_cuts(cuts_rows, cuts_columns, is_replicated);
    if (check_kinds(judged, kind, err) || check_rows_over(judged, kind, err))
        return -1;
    return check_constraints(judged, err);
}
