/* SPDX-License-Identifier: MIT */
#include "search/migration.h"

#include "base/ranked.h"

#include <math.h>
#include <string.h>

/* Smallest relative gain for which two GPU names are swapped: 1e-9. Rounding
 * errors alone could otherwise swap two names for ever. */
#define LEAST_GAIN 1e-9

/* Counts the bytes that stay in place. Then gives each table of the old plan
 * the number of rows that the table has today, without moving it, and joins
 * pieces that touch. */
void current_init(struct current_plan *current, const struct problem *problem,
                  const struct plan *from, struct arena *arena)
{
    struct plan grown = {.problem = *problem};

    *current = (struct current_plan){0};
    current->before = ARENA_NEW(arena, struct table_pieces, problem->n_tables);
    current->standing =
        ARENA_NEW(arena, struct table_pieces, problem->n_tables);
    table_pieces_find(current->before, problem->tables, problem->n_tables,
                      from);
    grown.problem.cluster =
        from->problem.cluster; /* the cluster whose GPUs hold the pieces */
    grown.shards = ARENA_NEW(arena, struct shard, from->n_shards);
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *now = &problem->tables[t];
        const struct table_pieces *before = &current->before[t];

        current->held_bytes = saturating_add(
            current->held_bytes, table_moves_count(before, before).kept);
        for (size_t i = 0; i < before->n && before->table->dim == now->dim;
             i++) {
            struct shard shard = before->pieces[i];

            shard.table = (uint32_t)t;
            if (shard.row_end == before->table->num_embeddings ||
                shard.row_end > now->num_embeddings)
                shard.row_end = now->num_embeddings;
            if (shard.row_begin < shard.row_end)
                grown.shards[grown.n_shards++] = shard;
        }
    }
    plan_derive_kinds(&grown);
    plan_join_columns(&grown, false, arena);
    table_pieces_find(current->standing, problem->tables, problem->n_tables,
                      &grown);
    current->shards = grown.shards;
    current->n_shards = grown.n_shards;
}

double migration_excess(const struct assignment *assignment,
                        uint64_t moved_bytes)
{
    return excess_over(assignment->move_limit_bytes, moved_bytes,
                       assignment->space->current->held_bytes);
}

/* --- the place of each unit in the current plan --- */

void current_propose(struct candidate *candidate,
                     const struct assignment *assignment, uint32_t unit)
{
    const struct assignment *nearest = &assignment->space->current->nearest;

    if (assignment->move_limit_bytes == NO_MOVE_LIMIT ||
        !assignment->moved_bytes[unit])
        return;
    candidate_remove_unit(candidate, assignment, unit);
    candidate->is_apart = true;
    for (uint32_t i = nearest->first_of[unit]; i != NO_PIECE;
         i = nearest->links[i].next)
        candidate_add(candidate, nearest->pieces[i]);
}

/* --- columns --- */

/* Returns the number of columns that the piece of the old plan has in the range
 * from `begin` to `end` - 1. */
static uint32_t common_columns(const struct shard *old, uint32_t begin,
                               uint32_t end)
{
    begin = old->col_begin > begin ? old->col_begin : begin;
    end = old->col_end < end ? old->col_end : end;
    return begin < end ? end - begin : 0;
}

/* Returns the index of one of the n remaining pieces: the piece that gets the
 * columns from `col` on. The regret of a piece is a difference. It is the
 * number of columns that its device could keep if the piece came later, less
 * the number that the device keeps if the piece comes now. The piece with the
 * least regret is chosen. Ties go to the piece that keeps the most columns now,
 * then to the widest piece, then to the lowest device. */
static uint32_t choose_next(const struct table_pieces *before,
                            const struct search_space *space,
                            const struct change *pieces, uint32_t n,
                            uint32_t col)
{
    uint64_t least[4];
    uint32_t best = 0;

    for (uint32_t p = 0; p < n; p++) {
        const uint32_t width = space->types[pieces[p].type].width;
        uint32_t here = 0, most = 0;

        for (size_t i = 0; i < before->n; i++) {
            const struct shard *old = &before->pieces[i];

            if (old->device != pieces[p].device)
                continue;
            here += common_columns(old, col, col + width);
            most += common_columns(old, col, UINT32_MAX);
        }
        most = most < width ? most : width;
        const uint64_t keys[] = {most - here, UINT32_MAX - here,
                                 UINT32_MAX - width, pieces[p].device};
        if (p == 0 || ranked_compare(keys, least, 4) < 0) {
            memcpy(least, keys, sizeof(keys));
            best = p;
        }
    }
    return best;
}

void current_order(const struct search_space *space, uint32_t table,
                   struct change *pieces, uint32_t n)
{
    const struct table_pieces *before = &space->current->before[table];
    uint32_t col = 0;

    if (!before->table)
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = i + choose_next(before, space, pieces + i, n - i, col);
        struct change next = pieces[p];

        pieces[p] = pieces[i];
        pieces[i] = next;
        col += space->types[next.type].width;
    }
}

/* --- bytes --- */

/* Returns the bytes that the unit migrates under the candidate. Derives the
 * shards of the unit's pieces and compares them with the shards of the current
 * plan. */
static uint64_t unit_bytes(const struct assignment *assignment,
                           const struct candidate *candidate, uint32_t unit)
{
    const struct problem *problem = assignment->space->problem;
    struct unit_walk walk = {.unit = unit, .held = assignment->first_of[unit]};
    struct snapshot then = {0};
    struct plan plan;
    struct arena arena = {0};
    uint64_t bytes = 0;

    while (candidate_walk(&walk, candidate, assignment))
        if (!assignment->space->types[walk.piece.type].is_empty)
            *snapshot_next(&then) = walk.piece;
    snapshot_to_plan(&then, assignment->space, &plan, &arena);
    for (size_t i = 0; i < plan.n_shards; i += then.n) {
        uint32_t t = plan.shards[i].table;
        const struct table_pieces *before =
            &assignment->space->current->before[t];
        struct table_pieces after = {
            &problem->tables[t],   &plan.shards[i],          then.n,
            assignment->n_devices, problem->dense_optimizer, problem->layout};

        bytes = saturating_add(bytes, table_moves_count(before, &after).moved);
    }
    snapshot_release(&then);
    arena_release(&arena);
    return bytes;
}

void migration_count(struct assignment *assignment)
{
    const struct candidate nothing = {0};

    assignment->all_moved_bytes = 0;
    for (uint32_t u = 0; u < assignment->space->n_units; u++) {
        assignment->moved_bytes[u] = unit_bytes(assignment, &nothing, u);
        assignment->all_moved_bytes = saturating_add(
            assignment->all_moved_bytes, assignment->moved_bytes[u]);
    }
}

void migration_count_candidate(struct candidate *candidate,
                               const struct assignment *assignment)
{
    const struct search_space *space = assignment->space;

    for (uint32_t c = 0; c < candidate->changes.n; c++) {
        const struct change *change = &candidate->changes.pieces[c];
        uint32_t type = change->piece == NO_PIECE
                            ? change->type
                            : assignment->pieces[change->piece].type;
        uint32_t unit = space->types[type].unit;
        uint32_t pos = 0;
        uint64_t bytes;

        while (pos < candidate->n_moved && candidate->moved[pos].unit != unit)
            pos++;
        if (pos < candidate->n_moved)
            continue; /* this unit was already counted */
        bytes = unit_bytes(assignment, candidate, unit);
        candidate->moved[candidate->n_moved++] =
            (struct unit_moved){unit, bytes};
        candidate->all_moved_bytes = saturating_add(
            candidate->all_moved_bytes - assignment->moved_bytes[unit], bytes);
    }
    candidate->excess +=
        migration_excess(assignment, candidate->all_moved_bytes) -
        migration_excess(assignment, assignment->all_moved_bytes);
}

/* --- renaming of GPUs that are alike --- */

double assign_by_swaps(uint32_t *column_of, const double *value, size_t stride,
                       uint32_t n)
{
    double sum = 0;
    bool any = true;

    for (uint32_t row = 0; row < n; row++)
        column_of[row] = row;
    while (any) {
        any = false;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = a + 1; b < n; b++) {
                const double *of_a = value + a * stride;
                const double *of_b = value + b * stride;
                const uint32_t pos = column_of[a], to = column_of[b];

                if (of_a[to] + of_b[pos] <=
                    (of_a[pos] + of_b[to]) * (1 + LEAST_GAIN))
                    continue;
                column_of[a] = to;
                column_of[b] = pos;
                any = true;
            }
    }
    for (uint32_t row = 0; row < n; row++)
        sum += value[row * stride + column_of[row]];
    return sum;
}

struct naming {
    const struct search_space *space;
    struct arena arena;
    uint32_t n_gpus, per_host, n_hosts;
    /* [n_gpus][n_gpus]: bytes that would not migrate. kept[row][column] counts
     * the bytes of GPU `row` of the assignment that GPU `column` of the current
     * plan already holds. */
    double *kept;
    uint32_t *name; /* [n_gpus]: new name of each GPU */
};

/* Adds the bytes of a piece that each GPU already holds. The result is an upper
 * bound: columns are assigned later, so the piece may get any columns of its
 * unit. */
static void add_kept(struct naming *naming, const struct change *piece)
{
    const struct piece_type *type = &naming->space->types[piece->type];
    const struct unit *unit = &naming->space->units[type->unit];

    for (uint32_t k = 0; k < unit->n_tables; k++) {
        const struct table_pieces *before =
            &naming->space->current->before[unit->tables[k]];

        for (size_t i = 0; i < before->n; i++) {
            const struct shard *old = &before->pieces[i];
            double columns =
                fmin(type->width, (double)(old->col_end - old->col_begin));

            if (old->device < naming->n_gpus && !shard_is_replica(old->kind))
                naming->kept[(size_t)piece->device * naming->n_gpus +
                             old->device] +=
                    (double)type->bytes * columns / type->width *
                    fmin(1, (double)(old->row_end - old->row_begin) /
                                (double)type->n_rows);
        }
    }
}

/* Returns the bytes that host `a` keeps if its GPUs take the names of the GPUs
 * of host `b`. Sets column_of: GPU i of `a` gets the name of GPU column_of[i]
 * of `b`. */
static double match_hosts(const struct naming *naming, uint32_t a, uint32_t b,
                          uint32_t *column_of)
{
    const size_t n = naming->per_host, stride = naming->n_gpus;

    return assign_by_swaps(column_of, naming->kept + a * n * stride + b * n,
                           stride, naming->per_host);
}

static void choose_names(struct naming *naming)
{
    uint32_t n = naming->n_hosts, per_host = naming->per_host;
    double *value = ARENA_NEW(&naming->arena, double, (size_t)n *n);
    uint32_t *host_of = ARENA_NEW(&naming->arena, uint32_t, n);

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            value[(size_t)a * n + b] = match_hosts(naming, a, b, naming->name);
    (void)assign_by_swaps(host_of, value, n, n);
    for (uint32_t a = 0; a < n; a++) {
        uint32_t *name = naming->name + (size_t)a * per_host;

        (void)match_hosts(naming, a, host_of[a], name);
        for (uint32_t i = 0; i < per_host; i++)
            name[i] += host_of[a] * per_host;
    }
}

void rename_gpus(struct snapshot *snapshot, const struct search_space *space)
{
    const struct cluster *cluster = &space->problem->cluster;
    struct naming naming = {.space = space,
                            .n_gpus = cluster->n_devices,
                            .per_host = cluster_group(cluster)};
    size_t n = naming.n_gpus;

    if (n % naming.per_host || naming.per_host == 1)
        naming.per_host = naming.n_gpus;
    naming.n_hosts = naming.n_gpus / naming.per_host;
    if (naming.per_host > RENAME_MAX_GPUS || naming.n_hosts > RENAME_MAX_GPUS ||
        n > RENAME_MOST_GPUS)
        return;
    naming.kept = ARENA_NEW(&naming.arena, double, n *n);
    naming.name = ARENA_NEW(&naming.arena, uint32_t, n);
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (space_can_move(space, snapshot->pieces[i].type))
            add_kept(&naming, &snapshot->pieces[i]);
    choose_names(&naming);
    for (uint32_t i = 0; i < snapshot->n; i++) {
        struct change *piece = &snapshot->pieces[i];
        const uint32_t name = naming.name[piece->device], m = naming.per_host;

        if (space_can_move(space, piece->type))
            piece->device = name;
        else if (space_sharding_of(space, piece->type)->fills_host)
            piece->device =
                /* keeps its index within the host */
                name / m * m + piece->device % m;
    }
    arena_release(&naming.arena);
}
