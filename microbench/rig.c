/* SPDX-License-Identifier: MIT */
#include "microbench/rig.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/stats.h"
#include "device/canary.h"
#include "device/lookup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_WARM_UP 3
/* A case that is still unsteady after its iterations gets more, up to
 * BENCH_MAX_ITERATIONS or so long. */
#define EXTRA_MS 30.0
#define STEADY_SPREAD 0.01
/* Weights stay bounded over any number of updates. */
#define LEARNING_RATE 1e-6f
#define FILL_SEED 1
#define STATE_START 0.01f

/* Device memory that grows. */
struct region {
    void *d_ptr;
    size_t n_bytes;
};

/* Host memory that grows. */
struct scratch {
    void *ptr;
    size_t n_bytes;
};

struct rig {
    struct device *device; /* not owned */
    struct pool *pool;
    struct canary *canary;
    enum optimizer optimizer;
    enum precision precision;
    uint32_t batch;
    unsigned n_iterations;
    char *d_weights;
    size_t weight_bytes;
    char *d_states; /* NULL for SGD */
    size_t state_bytes;
    struct region indices, offsets, out, grad;
    struct scratch host_indices, host_offsets;
    struct lookup_batch sets[LOOKUP_MAX_COLD_SETS];
    unsigned n_sets;
    char started_at[CLOCK_TEXT_MAX];
};

uint64_t rig_weight_bytes(const struct bench_options *options)
{
    /* The narrowest row has 4 elements, so that its 4 bytes of state are at
     * most one part in 1 + element size. */
    uint64_t parts = precision_bytes(options->precision);

    return options->memory_bytes / (parts + 1) * parts;
}

/* State must not be negative, which device_fill would make it. */
static int fill_states(struct rig *rig, struct err *err)
{
    size_t chunk_bytes = (size_t)1 << 20;
    float *chunk = mem_alloc(chunk_bytes, 1);
    int rc = -1;

    for (size_t i = 0; i < chunk_bytes / sizeof(float); i++)
        chunk[i] = STATE_START;
    for (size_t at = 0; at < rig->state_bytes; at += chunk_bytes) {
        size_t left = rig->state_bytes - at;

        if (device_upload(rig->device, rig->d_states + at, chunk,
                          left < chunk_bytes ? left : chunk_bytes, err))
            goto out;
    }
    rc = 0;
out:
    mem_free(chunk);
    return rc;
}

static int alloc_tables(struct rig *rig, struct err *err)
{
    void *d_ptr;

    if (device_alloc(rig->device, &d_ptr, rig->weight_bytes, err))
        return -1;
    rig->d_weights = d_ptr;
    if (device_fill(rig->device, rig->d_weights,
                    rig->weight_bytes / precision_bytes(rig->precision),
                    rig->precision, FILL_SEED, err))
        return -1;
    if (rig->optimizer == OPTIMIZER_SGD)
        return 0;
    if (device_alloc(rig->device, &d_ptr, rig->state_bytes, err))
        return -1;
    rig->d_states = d_ptr;
    return fill_states(rig, err);
}

int rig_open(struct rig **out, struct device *device,
             const struct bench_options *options, struct err *err)
{
    struct rig *rig = mem_alloc(1, sizeof(*rig));

    rig->device = device;
    rig->pool = pool_open(device_n_threads(device));
    rig->optimizer = options->optimizer;
    rig->precision = options->precision;
    rig->batch = options->batch;
    rig->n_iterations = options->n_iterations;
    rig->weight_bytes = rig_weight_bytes(options);
    rig->state_bytes = (size_t)(options->memory_bytes - rig->weight_bytes +
                                (uint64_t)BENCH_MAX_TABLES * CASE_ALIGN);
    if (alloc_tables(rig, err) || canary_open(&rig->canary, device, err)) {
        rig_close(rig);
        return -1;
    }
    *out = rig;
    return 0;
}

void rig_close(struct rig *rig)
{
    if (!rig)
        return;
    device_free(rig->device, rig->d_weights);
    device_free(rig->device, rig->d_states);
    device_free(rig->device, rig->indices.d_ptr);
    canary_close(rig->canary);
    device_free(rig->device, rig->offsets.d_ptr);
    device_free(rig->device, rig->out.d_ptr);
    device_free(rig->device, rig->grad.d_ptr);
    mem_free(rig->host_indices.ptr);
    mem_free(rig->host_offsets.ptr);
    pool_close(rig->pool);
    mem_free(rig);
}

/* Sets *grew (where not NULL) if the contents are new. */
static int region_reserve(struct region *region, struct device *device,
                          size_t n_bytes, bool *grew, struct err *err)
{
    if (grew)
        *grew = region->n_bytes < n_bytes;
    if (region->n_bytes >= n_bytes)
        return 0;
    device_free(device, region->d_ptr);
    *region = (struct region){0};
    n_bytes += n_bytes / 2;
    if (device_alloc(device, &region->d_ptr, n_bytes, err))
        return -1;
    region->n_bytes = n_bytes;
    return 0;
}

static void scratch_reserve(struct scratch *scratch, size_t n_bytes)
{
    if (scratch->n_bytes >= n_bytes)
        return;
    scratch->n_bytes = n_bytes + n_bytes / 2;
    mem_free(scratch->ptr);
    scratch->ptr = mem_alloc(scratch->n_bytes, 1);
}

/*
 * Places for the tables of a case in the block: the gaps between them are the
 * order statistics of uniform draws, so that every arrangement without
 * overlap is as likely as any other.
 */
static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void place(uint64_t *offsets, const uint64_t *sizes, uint32_t n,
                  uint64_t n_bytes, struct rng *rng)
{
    uint64_t gaps[BENCH_MAX_TABLES], free_bytes = n_bytes, begin = 0;
    uint32_t order[BENCH_MAX_TABLES];

    for (uint32_t i = 0; i < n; i++) {
        free_bytes -= sizes[i];
        order[i] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        gaps[i] = rng_below(rng, free_bytes / CASE_ALIGN + 1) * CASE_ALIGN;
    qsort(gaps, n, sizeof(*gaps), compare_u64);
    rng_shuffle(rng, order, n);
    for (uint32_t i = 0; i < n; i++) {
        offsets[order[i]] = begin + gaps[i];
        begin += sizes[order[i]];
    }
}

static void place_tables(const struct rig *rig, struct lookup_table *tables,
                         const struct bench_case *what, uint64_t seed)
{
    uint64_t sizes[BENCH_MAX_TABLES] = {0}, offsets[BENCH_MAX_TABLES];
    uint32_t n = what->n_tables, out_begin = 0;
    struct rng rng;

    rng_init(&rng, seed, 0);
    for (uint32_t t = 0; t < n; t++)
        sizes[t] = case_table_bytes(&what->tables[t], rig->precision);
    place(offsets, sizes, n, rig->weight_bytes, &rng);
    for (uint32_t t = 0; t < n; t++) {
        tables[t] =
            (struct lookup_table){.d_weight = rig->d_weights + offsets[t],
                                  .n_rows = what->tables[t].stream.n_rows,
                                  .dim = what->tables[t].dim,
                                  .out_begin = out_begin,
                                  .precision = rig->precision};
        out_begin += what->tables[t].dim;
        sizes[t] = (tables[t].n_rows * sizeof(float) + CASE_ALIGN - 1) /
                   CASE_ALIGN * CASE_ALIGN;
    }
    if (!rig->d_states)
        return;
    place(offsets, sizes, n, rig->state_bytes, &rng);
    for (uint32_t t = 0; t < n; t++)
        tables[t].d_state = (float *)(void *)(rig->d_states + offsets[t]);
}

/* The look-ups of all sets, made on the host: set by set, table by table. */
struct generation {
    const struct bench_case *what;
    uint64_t seed;
    uint32_t batch;
    uint64_t n_lookups;                /* a set */
    uint64_t begins[BENCH_MAX_TABLES]; /* of each table in a set */
    uint32_t *indices;                 /* [n_sets][n_lookups] */
    uint64_t *offsets;                 /* [n_sets][n_tables][batch + 1] */
    struct sample_table *tables;
};

static void generate(void *ctx, size_t task, unsigned thread)
{
    struct generation *made = ctx;
    uint32_t n_tables = made->what->n_tables;
    uint32_t t = (uint32_t)(task % n_tables);
    uint64_t set = task / n_tables;
    const struct stream *stream = &made->what->tables[t].stream;
    uint32_t *indices = made->indices + set * made->n_lookups + made->begins[t];

    (void)thread;
    stream_fill(stream, made->seed + set, made->begins[t],
                made->offsets + task * (made->batch + 1), indices);
    if (set == 0)
        made->tables[t].n_unique =
            stream_histogram(indices, stream_n_lookups(stream), stream->n_rows,
                             made->tables[t].bins);
}

/* Each table's offsets are uploaded with their end, which is the next one's
 * beginning. */
static int upload_set(struct rig *rig, const struct generation *made,
                      unsigned set, struct err *err)
{
    uint32_t n_tables = made->what->n_tables, batch = made->batch;
    uint32_t *d_indices =
        (uint32_t *)rig->indices.d_ptr + set * made->n_lookups;
    uint64_t *d_offsets =
        (uint64_t *)rig->offsets.d_ptr + set * ((size_t)n_tables * batch + 1);

    if (made->n_lookups &&
        device_upload(rig->device, d_indices,
                      made->indices + set * made->n_lookups,
                      made->n_lookups * sizeof(*d_indices), err))
        return -1;
    for (uint32_t t = 0; t < n_tables; t++) {
        size_t task = (size_t)set * n_tables + t;

        if (device_upload(rig->device, d_offsets + (size_t)t * batch,
                          made->offsets + task * (batch + 1),
                          (batch + 1) * sizeof(*d_offsets), err))
            return -1;
    }
    rig->sets[set] = (struct lookup_batch){.d_indices = d_indices,
                                           .d_offsets = d_offsets,
                                           .n_lookups = made->n_lookups};
    return 0;
}

static unsigned count_sets(const struct rig *rig, const struct bench_case *what)
{
    uint64_t touched_bytes = 0;

    for (uint32_t t = 0; t < what->n_tables; t++) {
        const struct case_table *table = &what->tables[t];

        touched_bytes += lookup_touched_bytes(stream_n_lookups(&table->stream),
                                              table->stream.n_rows, table->dim,
                                              rig->precision);
    }
    return lookup_n_cold_sets(touched_bytes);
}

/* Fills rig->sets, and what the streams turned out to be into tables. */
static int make_sets(struct rig *rig, const struct bench_case *what,
                     uint64_t seed, struct sample_table *tables,
                     struct err *err)
{
    struct generation made = {
        .what = what, .seed = seed, .batch = rig->batch, .tables = tables};
    size_t index_bytes, n_offsets;

    for (uint32_t t = 0; t < what->n_tables; t++) {
        made.begins[t] = made.n_lookups;
        made.n_lookups += stream_n_lookups(&what->tables[t].stream);
    }
    rig->n_sets = count_sets(rig, what);
    index_bytes = rig->n_sets * made.n_lookups * sizeof(uint32_t);
    n_offsets = (size_t)rig->n_sets * what->n_tables * (rig->batch + (size_t)1);
    scratch_reserve(&rig->host_indices, index_bytes);
    scratch_reserve(&rig->host_offsets, n_offsets * sizeof(uint64_t));
    if (region_reserve(&rig->indices, rig->device, index_bytes + CASE_ALIGN,
                       NULL, err) ||
        region_reserve(&rig->offsets, rig->device, n_offsets * sizeof(uint64_t),
                       NULL, err))
        return -1;
    made.indices = rig->host_indices.ptr;
    made.offsets = rig->host_offsets.ptr;
    pool_run(rig->pool, (size_t)rig->n_sets * what->n_tables, generate, &made);
    for (unsigned set = 0; set < rig->n_sets; set++)
        if (upload_set(rig, &made, set, err))
            return -1;
    return 0;
}

static int reserve_outputs(struct rig *rig, uint32_t out_dim, struct err *err)
{
    size_t n_bytes = (size_t)rig->batch * out_dim * sizeof(float);
    bool grew;

    if (region_reserve(&rig->out, rig->device, n_bytes, NULL, err) ||
        region_reserve(&rig->grad, rig->device, n_bytes, &grew, err))
        return -1;
    if (!grew)
        return 0;
    return device_fill(rig->device, rig->grad.d_ptr,
                       rig->grad.n_bytes / sizeof(float), PRECISION_FP32,
                       FILL_SEED + 1, err);
}

struct laps {
    double forward[BENCH_MAX_ITERATIONS], backward[BENCH_MAX_ITERATIONS],
        total[BENCH_MAX_ITERATIONS];
    unsigned n;
};

/* One step on the next index set; timed where laps is given. */
static int step(struct rig *rig, struct lookup *lookup, unsigned number,
                struct laps *laps, struct err *err)
{
    const struct lookup_batch *set = &rig->sets[number % rig->n_sets];
    double forward, backward, total;

    if (device_mark(rig->device, 0, err) ||
        lookup_forward(lookup, set, rig->out.d_ptr, err) ||
        device_mark(rig->device, 1, err) ||
        lookup_backward(lookup, set, rig->grad.d_ptr, LEARNING_RATE, err) ||
        device_mark(rig->device, 2, err))
        return -1;
    if (device_elapsed(rig->device, 0, 1, &forward, err) ||
        device_elapsed(rig->device, 1, 2, &backward, err) ||
        device_elapsed(rig->device, 0, 2, &total, err))
        return -1;
    if (!laps)
        return 0;
    laps->forward[laps->n] = forward;
    laps->backward[laps->n] = backward;
    laps->total[laps->n] = total;
    laps->n++;
    return 0;
}

struct timing timing_of(double *ms, size_t n)
{
    return (struct timing){.median_ms = stats_median(ms, n),
                           .p10_ms = stats_quantile(ms, n, 0.1),
                           .p90_ms = stats_quantile(ms, n, 0.9)};
}

double timing_spread(const double *ms, size_t n)
{
    double sorted[BENCH_MAX_ITERATIONS], median;

    memcpy(sorted, ms, n * sizeof(*ms));
    median = stats_median(sorted, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(ms[i] - median);
    return median > 0 ? stats_median(sorted, n) / median : 0;
}

static bool is_enough(const struct rig *rig, const struct laps *laps,
                      double begin_ms)
{
    if (laps->n < rig->n_iterations)
        return false;
    return laps->n == BENCH_MAX_ITERATIONS ||
           clock_ms() - begin_ms > EXTRA_MS ||
           timing_spread(laps->total, laps->n) < STEADY_SPREAD;
}

static int run_laps(struct rig *rig, struct lookup *lookup, struct laps *laps,
                    struct err *err)
{
    double begin_ms;
    unsigned number = 0;

    while (number < N_WARM_UP)
        if (step(rig, lookup, number++, NULL, err))
            return -1;
    begin_ms = clock_ms();
    while (!is_enough(rig, laps, begin_ms))
        if (step(rig, lookup, number++, laps, err))
            return -1;
    return 0;
}

/* Laps on a machine that the canary finds quiet; where it stays disturbed the
 * last ones are kept and *flags says so. */
static int run_quiet_laps(struct rig *rig, struct lookup *lookup,
                          struct laps *laps, unsigned *flags, struct err *err)
{
    enum canary_verdict verdict;

    do {
        double begin_ms = clock_ms();

        laps->n = 0;
        if (run_laps(rig, lookup, laps, err) ||
            canary_judge(rig->canary, begin_ms, &verdict, err))
            return -1;
    } while (verdict == CANARY_AGAIN);
    if (verdict == CANARY_DISTURBED)
        *flags |= SAMPLE_THROTTLED;
    return 0;
}

/* Tables as the sample keeps them: with the look-ups that were really done. */
static void describe(struct sample_table *table, const struct case_table *from)
{
    table->n_rows = from->stream.n_rows;
    table->dim = from->dim;
    table->pooling_factor =
        (double)stream_n_lookups(&from->stream) / from->stream.batch;
    table->zipf_alpha = from->stream.use_bins ? NAN : from->stream.zipf_alpha;
}

int rig_measure(struct rig *rig, struct sample *sample,
                const struct bench_case *what, uint64_t stream_seed,
                struct err *err)
{
    struct lookup_table tables[BENCH_MAX_TABLES];
    struct lookup *lookup = NULL;
    struct laps laps = {.n = 0};
    int rc = -1;

    sample->started_at = clock_utc(rig->started_at);
    sample->n_tables = what->n_tables;
    for (uint32_t t = 0; t < what->n_tables; t++)
        describe(&sample->tables[t], &what->tables[t]);
    if (make_sets(rig, what, stream_seed, sample->tables, err))
        goto out;
    place_tables(rig, tables, what, stream_seed);
    if (lookup_open(&lookup, rig->device, tables, what->n_tables, rig->batch,
                    rig->sets[0].n_lookups, rig->optimizer, err))
        goto out;
    if (reserve_outputs(rig, lookup_out_dim(lookup), err))
        goto out;
    if (run_quiet_laps(rig, lookup, &laps, &sample->flags, err))
        goto out;
    sample->n_iterations = laps.n;
    sample->forward = timing_of(laps.forward, laps.n);
    sample->backward = timing_of(laps.backward, laps.n);
    sample->total = timing_of(laps.total, laps.n);
    rc = 0;
out:
    lookup_close(lookup);
    return rc;
}
