/* SPDX-License-Identifier: MIT */
#include "search/rename_gpus.h"

#include <math.h>
#include <string.h>

/* One row after the other finds its column along a path of least reduced cost;
 * potentials keep all reduced costs at 0 or more. Column n is where the path
 * of a new row begins. */
struct assigning {
    const double *value;
    uint32_t n;
    double *of_row, *of_column, *least; /* [n + 1] */
    uint32_t *row_at, *way;             /* [n + 1]: of columns */
    bool *is_seen;                      /* [n + 1] */
};

#define NO_ROW UINT32_MAX

/* Grows the tree by the nearest column; returns it. */
static uint32_t nearest_column(struct assigning *a, uint32_t column)
{
    uint32_t row = a->row_at[column], next = a->n;
    double delta = INFINITY;

    a->is_seen[column] = true;
    for (uint32_t c = 0; c < a->n; c++) {
        double cost;

        if (a->is_seen[c])
            continue;
        cost = -a->value[(size_t)row * a->n + c] - a->of_row[row] -
               a->of_column[c];
        if (cost < a->least[c]) {
            a->least[c] = cost;
            a->way[c] = column;
        }
        if (a->least[c] < delta) {
            delta = a->least[c];
            next = c;
        }
    }
    for (uint32_t c = 0; c <= a->n; c++)
        if (a->is_seen[c]) {
            a->of_row[a->row_at[c]] += delta;
            a->of_column[c] -= delta;
        } else {
            a->least[c] -= delta;
        }
    return next;
}

static void assign_row(struct assigning *a, uint32_t row)
{
    uint32_t column = a->n;

    for (uint32_t c = 0; c <= a->n; c++) {
        a->least[c] = INFINITY;
        a->is_seen[c] = false;
    }
    a->row_at[a->n] = row;
    while (a->row_at[column] != NO_ROW)
        column = nearest_column(a, column);
    while (column != a->n) {
        a->row_at[column] = a->row_at[a->way[column]];
        column = a->way[column];
    }
}

void assign_best(uint32_t *column_of, const double *value, uint32_t n)
{
    struct assigning a = {.value = value, .n = n};
    struct arena arena;

    arena_init(&arena);
    a.of_row = ARENA_NEW(&arena, double, n + 1);
    a.of_column = ARENA_NEW(&arena, double, n + 1);
    a.least = ARENA_NEW(&arena, double, n + 1);
    a.row_at = ARENA_NEW(&arena, uint32_t, n + 1);
    a.way = ARENA_NEW(&arena, uint32_t, n + 1);
    a.is_seen = ARENA_NEW(&arena, bool, n + 1);
    for (uint32_t c = 0; c <= n; c++)
        a.row_at[c] = NO_ROW;
    for (uint32_t row = 0; row < n; row++)
        assign_row(&a, row);
    for (uint32_t c = 0; c < n; c++)
        column_of[a.row_at[c]] = c;
    arena_release(&arena);
}

/* --- GPUs --- */

struct naming {
    const struct parts *parts;
    const struct homes *homes;
    uint32_t n_gpus, per_host, n_hosts;
    double *kept; /* [n_gpus][n_gpus]: bytes that GPU `row` of the layout finds
                     on GPU `column` */
    uint32_t *name; /* [n_gpus] */
};

/* What a piece finds on each GPU, at most: columns are given out later, so it
 * may be any of its unit's. */
static void add_kept(struct naming *naming, const struct change *piece)
{
    const struct part *part = &naming->parts->parts[piece->part];
    const struct unit *unit = naming->parts->of[part->unit].unit;

    for (uint32_t k = 0; k < unit->n_tables; k++) {
        const struct table_pieces *before =
            &naming->homes->before[unit->tables[k]];

        for (size_t i = 0; i < before->n && before->table; i++) {
            const struct shard *old = &before->pieces[i];
            double columns =
                fmin(part->width, (double)(old->col_end - old->col_begin));

            if (old->device < naming->n_gpus && old->kind != SHARD_REPLICATE)
                naming->kept[(size_t)piece->device * naming->n_gpus +
                             old->device] +=
                    (double)part->bytes * columns / part->width *
                    fmin(1, (double)(old->row_end - old->row_begin) /
                                (double)part->n_rows);
        }
    }
}

/* What host `a` keeps under the names of host `b`; GPU i of `a` is to be
 * column_of[i] of `b`. */
static double match_hosts(const struct naming *naming, uint32_t a, uint32_t b,
                          uint32_t *column_of)
{
    uint32_t n = naming->per_host;
    double *value = mem_alloc((size_t)n * n, sizeof(double)), sum = 0;

    for (uint32_t i = 0; i < n; i++)
        memcpy(value + (size_t)i * n,
               naming->kept + (size_t)(a * n + i) * naming->n_gpus + b * n,
               n * sizeof(double));
    assign_best(column_of, value, n);
    for (uint32_t i = 0; i < n; i++)
        sum += value[(size_t)i * n + column_of[i]];
    mem_free(value);
    return sum;
}

static void choose_names(struct naming *naming)
{
    uint32_t n = naming->n_hosts, per_host = naming->per_host;
    double *value = mem_alloc((size_t)n * n, sizeof(double));
    uint32_t *host_of = mem_alloc(n, sizeof(*host_of));
    uint32_t *column_of = mem_alloc(per_host, sizeof(*column_of));

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            value[(size_t)a * n + b] = match_hosts(naming, a, b, column_of);
    assign_best(host_of, value, n);
    for (uint32_t a = 0; a < n; a++) {
        (void)match_hosts(naming, a, host_of[a], column_of);
        for (uint32_t i = 0; i < per_host; i++)
            naming->name[a * per_host + i] =
                host_of[a] * per_host + column_of[i];
    }
    mem_free(value);
    mem_free(host_of);
    mem_free(column_of);
}

/* Blocks that fill a host go with the host. */
static bool fills_host(const struct parts *parts, uint32_t part)
{
    const struct cut *cut = parts_cut_of(parts, part);

    return cut && cut->fills_host &&
           parts->of[parts->parts[part].unit].unit->device < 0;
}

static void rename_piece(const struct naming *naming, struct change *piece)
{
    uint32_t per_host = naming->per_host, name = naming->name[piece->device];

    if (parts_can_move(naming->parts, piece->part))
        piece->device = name;
    else if (fills_host(naming->parts, piece->part))
        piece->device = name / per_host * per_host + piece->device % per_host;
}

void rename_gpus(struct snapshot *snapshot, const struct parts *parts,
                 const struct homes *homes)
{
    const struct cluster *cluster = &parts->problem->cluster;
    struct naming naming = {.parts = parts,
                            .homes = homes,
                            .n_gpus = cluster->n_devices,
                            .per_host = cluster_group(cluster)};
    size_t n = naming.n_gpus;

    if (n % naming.per_host || naming.per_host == 1)
        naming.per_host = naming.n_gpus;
    naming.n_hosts = naming.n_gpus / naming.per_host;
    if (naming.per_host > RENAME_MAX_GPUS || naming.n_hosts > RENAME_MAX_GPUS)
        return;
    naming.kept = mem_alloc(n * n, sizeof(double));
    naming.name = mem_alloc(n, sizeof(uint32_t));
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (parts_can_move(parts, snapshot->pieces[i].part))
            add_kept(&naming, &snapshot->pieces[i]);
    choose_names(&naming);
    for (uint32_t i = 0; i < snapshot->n; i++)
        rename_piece(&naming, &snapshot->pieces[i]);
    mem_free(naming.kept);
    mem_free(naming.name);
}
