/* SPDX-License-Identifier: MIT */
#include "core/plan_moves.h"

#include "base/ranked.h"

#include <stdlib.h>
#include <string.h>

const char *const table_fate_names[] = {"kept",  "moved",   "changed",
                                        "added", "removed", NULL};

static enum optimizer optimizer_of(const struct table_pieces *pieces,
                                   const struct shard *piece)
{
    return optimizer_of_kind(pieces->table, piece->kind,
                             pieces->dense_optimizer);
}

/* Returns the bytes of weights and optimizer state of some cells of a piece,
 * without the memory of batches. */
static struct memory_items stored(const struct table_pieces *pieces,
                                  const struct shard *piece,
                                  const struct shard *cells)
{
    struct shard own = *cells;

    own.kind = piece->kind;
    return cells_memory(pieces->table, optimizer_of(pieces, piece),
                        pieces->layout, &own);
}

uint64_t piece_stored_bytes(const struct table_pieces *pieces, size_t i)
{
    const struct shard *piece = &pieces->pieces[i];

    return stored(pieces, piece, piece).total;
}

/* Computes the cells that pieces a and b have in common. Returns false if they
 * have no common cell. */
static bool overlap(struct shard *common, const struct shard *a,
                    const struct shard *b)
{
    *common = *b;
    common->row_begin = max_u64(a->row_begin, b->row_begin);
    common->row_end = min_u64(a->row_end, b->row_end);
    common->col_begin = (uint32_t)max_u64(a->col_begin, b->col_begin);
    common->col_end = (uint32_t)min_u64(a->col_end, b->col_end);
    return common->row_begin < common->row_end &&
           common->col_begin < common->col_end;
}

/* Counts the bytes of the common cells of a piece of the old plan and a piece
 * of the new plan. `common` has the kind and the device of the new piece.
 * `moves` may be NULL if only the bytes are needed. */
static void match_overlap(struct moved_bytes *sum,
                          const struct table_pieces *before,
                          const struct table_pieces *after,
                          const struct shard *old, const struct shard *common,
                          struct plan_moves *moves)
{
    struct memory_items items = stored(before, old, common);
    bool keeps_state = optimizer_of(before, old) == optimizer_of(after, common);
    uint64_t bytes = keeps_state ? items.total : items.weights;
    /* GPU that the cells are copied from. It is the GPU of the new piece if
     * this GPU holds the cells already. */
    uint32_t from = shard_is_replica(old->kind)
                        ? common->device % before->n_devices
                        : old->device;
    uint32_t to = common->device;

    if (from == to) {
        sum->kept = saturating_add(sum->kept, bytes);
        return;
    }
    sum->moved = saturating_add(sum->moved, bytes);
    if (!moves)
        return;
    moves->moves = mem_room(moves->moves, moves->n_moves, &moves->capacity,
                            sizeof(*moves->moves));
    moves->moves[moves->n_moves++] = (struct move){
        .table = common->table,
        .row_begin = common->row_begin,
        .row_end = common->row_end,
        .col_begin = common->col_begin,
        .col_end = common->col_end,
        .from = from,
        .to = to,
        .bytes = bytes,
    };
    moves->sent_bytes[from] = saturating_add(moves->sent_bytes[from], bytes);
    moves->received_bytes[to] =
        saturating_add(moves->received_bytes[to], bytes);
}

/* Compares each piece of a table in the new plan with all its pieces in the old
 * plan. Cells that the table does not have in the old plan count as added, with
 * the bytes that they take in the new plan. */
static struct moved_bytes match_table(const struct table_pieces *before,
                                      const struct table_pieces *after,
                                      struct plan_moves *moves)
{
    const struct table *old = before->table;
    const struct shard all = {.row_end = old ? old->num_embeddings : 0,
                              .col_end = old ? old->dim : 0};
    size_t n = old ? before->n : 0;
    struct moved_bytes bytes = {0};
    struct shard common;

    if (n && shard_is_replica(before->pieces[0].kind))
        n = 1;
    for (size_t k = 0; k < after->n; k++) {
        const struct shard *piece = &after->pieces[k];
        uint64_t added = stored(after, piece, piece).total;

        for (size_t i = 0; i < n; i++)
            if (overlap(&common, &before->pieces[i], piece))
                match_overlap(&bytes, before, after, &before->pieces[i],
                              &common, moves);
        if (overlap(&common, &all, piece))
            added -= stored(after, piece, &common).total;
        bytes.added = saturating_add(bytes.added, added);
    }
    return bytes;
}

struct moved_bytes table_moves_count(const struct table_pieces *before,
                                     const struct table_pieces *after)
{
    return match_table(before, after, NULL);
}

/* --- finding the tables of a plan by name --- */

static int compare_names(const void *left, const void *right)
{
    const struct table_pieces *a = left, *b = right;

    return strcmp(a->table->name, b->table->name);
}

void table_pieces_find(struct table_pieces *out, const struct table *tables,
                       size_t n, const struct plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct table_pieces none = {.n_devices = problem->cluster.n_devices,
                                      .dense_optimizer =
                                          problem->dense_optimizer,
                                      .layout = problem->layout};
    struct table_pieces *all = mem_alloc(problem->n_tables, sizeof(*all));

    for (size_t t = 0; t < problem->n_tables; t++) {
        all[t] = none;
        all[t].table = &problem->tables[t];
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct table_pieces *pieces = &all[plan->shards[i].table];

        if (!pieces->n++)
            pieces->pieces = &plan->shards[i];
    }
    qsort(all, problem->n_tables, sizeof(*all), compare_names);
    for (size_t t = 0; t < n; t++) {
        const struct table_pieces key = {.table = &tables[t]};
        const struct table_pieces *found =
            bsearch(&key, all, problem->n_tables, sizeof(*all), compare_names);

        out[t] = found ? *found : none;
    }
    mem_free(all);
}

static uint64_t cells_of(const struct shard *piece)
{
    uint64_t n;

    return __builtin_mul_overflow(piece->row_end - piece->row_begin,
                                  piece->col_end - piece->col_begin, &n)
               ? UINT64_MAX
               : n;
}

/* Returns the fate of a table that both plans have. If both plans hold the same
 * number of cells and no cell has moved, no cell was dropped. */
static enum table_fate fate_of(const struct table_pieces *before,
                               const struct table_pieces *after,
                               const struct moved_bytes *bytes)
{
    const struct table *a = before->table, *b = after->table;
    uint64_t held = 0;

    if (a->num_embeddings != b->num_embeddings || a->dim != b->dim ||
        a->precision != b->precision || a->optimizer != b->optimizer)
        return FATE_CHANGED;
    for (size_t i = 0; i < before->n; i++)
        held = saturating_add(held, cells_of(&before->pieces[i]));
    for (size_t i = 0; i < after->n; i++)
        held -= min_u64(held, cells_of(&after->pieces[i]));
    return bytes->moved || held ? FATE_MOVED : FATE_KEPT;
}

static int compare_moves(const void *left, const void *right)
{
    const struct move *a = left, *b = right;
    const uint64_t x[] = {a->table, a->to, a->from, a->col_begin, a->row_begin};
    const uint64_t y[] = {b->table, b->to, b->from, b->col_begin, b->row_begin};

    return ranked_compare(x, y, 5);
}

/* Collects the moves of the tables of the new plan, in the order of the new
 * plan. If are_removed is true, collects instead the tables that only the old
 * plan has. */
static void note_tables(struct plan_moves *moves, const struct plan *before,
                        const struct plan *after, bool are_removed)
{
    const struct problem *problem =
        are_removed ? &before->problem : &after->problem;
    size_t n = problem->n_tables;
    struct table_pieces *was = mem_alloc(n, 2 * sizeof(*was)), *now = was + n;
    struct moved_bytes *sum = &moves->bytes;

    table_pieces_find(was, problem->tables, n, before);
    table_pieces_find(now, problem->tables, n, after);
    for (size_t t = 0; t < n; t++) {
        struct table_moves table = {.name = problem->tables[t].name,
                                    .n_before = (uint32_t)was[t].n,
                                    .n_after = (uint32_t)now[t].n,
                                    .fate = are_removed ? FATE_REMOVED
                                                        : FATE_ADDED};

        if (are_removed && now[t].table)
            continue;
        table.bytes = match_table(&was[t], &now[t], moves);
        for (size_t i = 0; are_removed && i < was[t].n; i++)
            table.bytes.removed = saturating_add(
                table.bytes.removed,
                stored(&was[t], &was[t].pieces[i], &was[t].pieces[i]).total);
        if (was[t].table && now[t].table)
            table.fate = fate_of(&was[t], &now[t], &table.bytes);
        moves->tables[moves->n_tables++] = table;
        moves->n_fates[table.fate]++;
        sum->moved = saturating_add(sum->moved, table.bytes.moved);
        sum->kept = saturating_add(sum->kept, table.bytes.kept);
        sum->added = saturating_add(sum->added, table.bytes.added);
        sum->removed = saturating_add(sum->removed, table.bytes.removed);
    }
    mem_free(was);
}

void plan_moves_find(struct plan_moves *moves, const struct plan *before,
                     const struct plan *after, struct arena *arena)
{
    *moves = (struct plan_moves){0};
    moves->n_devices = (uint32_t)max_u64(before->problem.cluster.n_devices,
                                         after->problem.cluster.n_devices);
    moves->sent_bytes = ARENA_NEW(arena, uint64_t, moves->n_devices);
    moves->received_bytes = ARENA_NEW(arena, uint64_t, moves->n_devices);
    moves->tables =
        ARENA_NEW(arena, struct table_moves,
                  before->problem.n_tables + after->problem.n_tables);
    note_tables(moves, before, after, false);
    note_tables(moves, before, after, true);
    moves->moves =
        arena_keep(arena, moves->moves, moves->n_moves, sizeof(*moves->moves));
    qsort(moves->moves, moves->n_moves, sizeof(*moves->moves), compare_moves);
}
