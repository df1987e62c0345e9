/* SPDX-License-Identifier: MIT */
#include "search/rename_gpus.h"

#include "core/cluster.h"

#include <math.h>

/* Smallest relative gain for which two GPU names are swapped: 1e-9. Rounding
 * errors alone could otherwise swap two names for ever. */
#define LEAST_GAIN 1e-9

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
