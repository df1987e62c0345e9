/* SPDX-License-Identifier: MIT */
#include "costmodel/models/extrapolation.h"

#include "base/ranked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double exp2m1(double x)
{
    return exp2(x) - 1;
}

/* Quantities that have a training range. Four describe each piece, two
 * describe each device, and the last is the batch. */
enum { OF_PIECE, OF_GPU = 4, BATCH = 6, N_KNOWN };
static const struct {
    const char *feature, *name;
    double (*value)(double x); /* converts the stored feature to the quantity */
} known[N_KNOWN] = {{"log2_dim", "columns", exp2},
                    {"log1p_rows", "rows", expm1},
                    {"log1p_lookups", "look-ups", expm1},
                    {"log1p_pooling", "look-ups a bag", expm1},
                    {"tables", "tables of a GPU", exp2m1},
                    {"lookups", "look-ups of a GPU", exp2m1},
                    {"", "batch", NULL}};

struct extrapolation {
    struct cost_outside ranges[N_KNOWN];
    /* [n] values outside their ranges; the values of one table are adjacent. */
    struct cost_outside *outside;
    /* [n], the order of `outside` by -octaves, so that the farthest value comes
     * first. */
    struct ranked *order;
    size_t n;
};

/* Fills the training range of each quantity; NAN if the range is unknown. */
static void find_ranges(struct extrapolation *extrapolation,
                        const struct model *model)
{
    struct cost_outside *batch = &extrapolation->ranges[BATCH];

    for (unsigned k = 0; k < N_KNOWN; k++) {
        const struct feature_set *set =
            k < OF_GPU ? &model->features : &model->estimate.totals;
        struct cost_outside *range = &extrapolation->ranges[k];

        *range = (struct cost_outside){NULL, known[k].name, 0, NAN, NAN};
        for (unsigned f = 0; f < set->n; f++)
            if (!strcmp(set->items[f].name, known[k].feature)) {
                range->least = known[k].value(set->items[f].min);
                range->most = known[k].value(set->items[f].max);
            }
    }
    for (size_t r = 0; r < model->ranges.n; r++) {
        batch->least = fmin(batch->least, model->ranges.items[r].batch_min);
        batch->most = fmax(batch->most, model->ranges.items[r].batch_max);
    }
}

/* Returns the number of octaves by which a value is outside its range, and adds
 * the value to the list `outside`. For each table only the farthest value is
 * listed. */
static double check(struct extrapolation *extrapolation, unsigned what,
                    const char *table, double value)
{
    struct cost_outside pos = extrapolation->ranges[what];
    const double octaves =
        log2(fmax((1 + pos.least) / (1 + value), (1 + value) / (1 + pos.most)));
    size_t i = extrapolation->n;

    if (!(octaves > (what == BATCH ? 0 : EXTRAPOLATION_MARGIN)))
        return 0;
    pos.table = table;
    pos.value = value;
    while (i > 0 && extrapolation->outside[i - 1].table == table &&
           extrapolation->outside[i - 1].feature != pos.feature)
        i--;
    if (!i || extrapolation->outside[i - 1].table != table)
        i = ++extrapolation->n;
    else if (octaves <= -extrapolation->order[i - 1].key)
        return octaves;
    extrapolation->outside[i - 1] = pos;
    extrapolation->order[i - 1] = (struct ranked){-octaves, (uint32_t)(i - 1)};
    return octaves;
}

struct cost_error interval_cost_error(const struct interval_list *intervals,
                                      const char *class, struct arena *arena)
{
    const struct interval *interval = interval_find(intervals, class);

    if (!interval)
        return (struct cost_error){0};
    return (struct cost_error){interval->error_frac,
                               arena_printf(arena, "%" PRIu64 " %s (%s)",
                                            interval->n, interval->ground,
                                            interval->class)};
}

size_t extrapolation_judge(const struct model *model,
                           const struct problem *problem,
                           const struct shard *shards,
                           const struct feature_input *inputs, size_t n,
                           const double *compute_ms, struct cost_error *error,
                           struct cost_outside **outside, struct arena *arena)
{
    const uint32_t n_devices = problem->cluster.n_devices;
    struct device_load *loads = ARENA_NEW(arena, struct device_load, n_devices);
    double *octaves = ARENA_NEW(arena, double, n_devices), wider;
    const size_t most = OF_GPU * n + N_KNOWN;
    struct extrapolation extrapolation = {
        .outside = mem_alloc(most, sizeof(struct cost_outside)),
        .order = mem_alloc(most, sizeof(struct ranked))};
    uint32_t slowest = 0;

    find_ranges(&extrapolation, model);
    for (size_t i = 0; i < n; i++) {
        const char *table = problem->tables[shards[i].table].name;
        const double values[] = {inputs[i].dim, inputs[i].n_rows,
                                 inputs[i].n_lookups, inputs[i].pooling_factor};
        const uint32_t r = shards[i].device;

        if (shard_is_replica(shards[i].kind))
            continue;
        device_load_add(&loads[r], &inputs[i]);
        for (unsigned k = OF_PIECE; k < OF_GPU; k++)
            octaves[r] =
                fmax(octaves[r], check(&extrapolation, k, table, values[k]));
    }
    for (uint32_t r = 0; r < n_devices; r++) {
        const double values[] = {loads[r].n_tables, loads[r].n_lookups};

        for (unsigned k = OF_GPU; k < BATCH && loads[r].n_tables > 0; k++)
            octaves[r] = fmax(
                octaves[r], check(&extrapolation, k, NULL, values[k - OF_GPU]));
        if (compute_ms[r] > compute_ms[slowest])
            slowest = r;
    }
    check(&extrapolation, BATCH, NULL, (double)problem->batch);
    wider = 1 + octaves[slowest];
    if (error->frac > 0)
        *error = interval_cost_error(&model->intervals,
                                     interval_class(&loads[slowest]), arena);
    if (wider > 1 && error->frac > 0)
        error->ground = arena_printf(arena, "%s, widened", error->ground);
    error->frac = expm1(wider * log1p(error->frac));
    *outside = ARENA_NEW(arena, struct cost_outside, extrapolation.n);
    ranked_sort(extrapolation.order, extrapolation.n);
    for (size_t i = 0; i < extrapolation.n; i++)
        (*outside)[i] = extrapolation.outside[extrapolation.order[i].idx];
    mem_free(extrapolation.outside);
    mem_free(extrapolation.order);
    return extrapolation.n;
}
