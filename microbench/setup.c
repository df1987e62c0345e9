/* SPDX-License-Identifier: MIT */
#include "microbench/setup.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/ranked.h"
#include "base/rng.h"
#include "device/lookup.h"
#include "device/repetitions.h"
#include "microbench/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The learning rate is so small that weights stay bounded over any number of
 * updates. */
#define LEARNING_RATE 1e-6f
#define FILL_SEED 1
#define STATE_START 0.01f
/* Memory needed in addition to the memory of lookup_open: bytes per lookup for
 * drawing, and bytes in all for measuring. */
#define DRAW_BYTES 24
#define SLACK_BYTES ((uint64_t)512 << 20)

#define N_WARM_UP 3
#define N_PHASE_REPETITIONS 5

struct bench_setup {
    struct device *device; /* device that is measured; not owned */
    float learning_rate;
    void *d_weights;
    size_t weight_bytes;
    void *d_states; /* NULL for a plain list with SGD, which has no states */
    size_t state_bytes;
    /* regions that grow with the cases */
    struct device_region indices, offsets, out, grad;
    struct lookup_batch sets[LOOKUP_MAX_COLD_SETS];
    unsigned n_sets;
    struct lookup *lookup; /* lookup of the case that is being measured */
    char started_at[CLOCK_TEXT_MAX];
};

uint64_t setup_reserve_bytes(const struct bench_options *options,
                             const struct device *device)
{
    const struct case_bounds bounds = case_list_bounds(options);
    const uint64_t n_sets = lookup_n_cold_sets(device, 0);
    const uint64_t index_bytes = bounds.n_lookups * sizeof(uint32_t);
    const uint64_t offset_bytes = (bounds.n_bags + 1) * sizeof(uint64_t);

    return n_sets * (index_bytes + offset_bytes) +
           /* outputs and gradients of the outputs */
           2 * bounds.n_outputs * sizeof(float) +
           (uint64_t)lookup_scratch_bytes(device, (double)bounds.n_lookups,
                                          bounds.dim) +
           bounds.n_lookups * DRAW_BYTES + INTERFERENCE_PROBE_BYTES +
           SLACK_BYTES;
}

static int alloc_tables(struct bench_setup *setup,
                        const struct bench_options *options, struct err *err)
{
    enum precision precision =
        options->is_mixed ? PRECISION_FP16 : options->precision;

    if (device_alloc(setup->device, &setup->d_weights, setup->weight_bytes,
                     err) ||
        device_fill(setup->device, setup->d_weights,
                    setup->weight_bytes / precision_bytes(precision), precision,
                    FILL_SEED, err))
        return -1;
    if (!options->is_mixed && options->optimizer == OPTIMIZER_SGD)
        return 0;
    if (device_alloc(setup->device, &setup->d_states, setup->state_bytes, err))
        return -1;
    /* Sets all states to a constant, because states must not be negative and
     * device_fill would write negative numbers, too. */
    return device_set(setup->device, setup->d_states,
                      setup->state_bytes / sizeof(float), STATE_START, err);
}

int setup_open(struct bench_setup **out, struct device *device,
               const struct bench_options *options, struct err *err)
{
    struct bench_setup *setup = mem_alloc(1, sizeof(*setup));

    setup->device = device;
    setup->learning_rate = options->is_mixed ? 0 : LEARNING_RATE;
    setup->weight_bytes = case_weight_bytes(options);
    setup->state_bytes =
        case_state_bytes(options) + (size_t)BENCH_MAX_TABLES * CASE_ALIGN;
    if (alloc_tables(setup, options, err)) {
        setup_close(setup);
        return -1;
    }
    *out = setup;
    return 0;
}

void setup_close(struct bench_setup *setup)
{
    if (!setup)
        return;
    device_free(setup->device, setup->d_weights);
    device_free(setup->device, setup->d_states);
    device_free(setup->device, setup->indices.d_ptr);
    device_free(setup->device, setup->offsets.d_ptr);
    device_free(setup->device, setup->out.d_ptr);
    device_free(setup->device, setup->grad.d_ptr);
    mem_free(setup);
}

/*
 * Draws places for the tables of a case in the weight block. The gaps between
 * the tables are the order statistics of uniform draws, so all arrangements
 * without overlap are equally likely.
 */
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
    qsort(gaps, n, sizeof(*gaps), ranked_compare_u64);
    rng_shuffle(rng, order, n);
    for (uint32_t i = 0; i < n; i++) {
        offsets[order[i]] = begin + gaps[i];
        begin += sizes[order[i]];
    }
}

/* Places the tables of a case in the weight block. Returns the number of
 * columns of all outputs. */
static uint32_t place_tables(const struct bench_setup *setup,
                             struct lookup_table *tables,
                             const struct bench_case *what, uint64_t seed)
{
    uint64_t sizes[BENCH_MAX_TABLES] = {0}, offsets[BENCH_MAX_TABLES];
    uint32_t n = what->n_tables, out_begin = 0;
    struct rng rng;

    rng_init(&rng, seed, 0);
    for (uint32_t t = 0; t < n; t++)
        sizes[t] = case_table_bytes(&what->tables[t], what->precision);
    place(offsets, sizes, n, setup->weight_bytes, &rng);
    for (uint32_t t = 0; t < n; t++) {
        tables[t] = (struct lookup_table){
            .d_weight = (char *)setup->d_weights + offsets[t],
            .n_rows = what->tables[t].stream.n_rows,
            .dim = what->tables[t].dim,
            .out_begin = out_begin,
            .precision = what->precision};
        out_begin += what->tables[t].dim;
        sizes[t] = (tables[t].n_rows * sizeof(float) + CASE_ALIGN - 1) /
                   CASE_ALIGN * CASE_ALIGN;
    }
    if (what->optimizer == OPTIMIZER_SGD)
        return out_begin;
    place(offsets, sizes, n, setup->state_bytes, &rng);
    for (uint32_t t = 0; t < n; t++)
        tables[t].d_state =
            (float *)setup->d_states + offsets[t] / sizeof(float);
    return out_begin;
}

static unsigned count_sets(const struct bench_setup *setup,
                           const struct bench_case *what)
{
    uint64_t touched_bytes = 0;

    for (uint32_t t = 0; t < what->n_tables; t++) {
        const struct case_table *table = &what->tables[t];

        touched_bytes += lookup_touched_bytes(stream_n_lookups(&table->stream),
                                              table->stream.n_rows, table->dim,
                                              what->precision);
    }
    return lookup_n_cold_sets(setup->device, touched_bytes);
}

/* Describes the case's tables in the sample, with the pooling factors and the
 * reuse of the lookups that were drawn. */
static int describe_tables(struct bench_setup *setup,
                           struct sample_table *tables,
                           const struct bench_case *what,
                           const struct stream *streams, struct err *err)
{
    for (uint32_t t = 0; t < what->n_tables; t++) {
        struct sample_table *table = &tables[t];

        table->n_rows = streams[t].n_rows;
        table->dim = what->tables[t].dim;
        table->pooling_factor =
            (double)stream_n_lookups(&streams[t]) / streams[t].batch;
        table->zipf_alpha = streams[t].use_bins ? NAN : streams[t].zipf_alpha;
    }
    return stream_measure(setup->device, streams, what->n_tables,
                          setup->sets[0].d_indices, tables, err);
}

/* Draws the index sets of a case (setup->sets), and describes the case's tables
 * in the sample. */
static int make_sets(struct bench_setup *setup, const struct bench_case *what,
                     uint64_t seed, struct sample_table *tables,
                     struct err *err)
{
    struct stream streams[BENCH_MAX_TABLES];
    size_t n_offsets = (size_t)what->n_tables * what->batch + 1;
    uint64_t n_lookups = 0;

    for (uint32_t t = 0; t < what->n_tables; t++) {
        streams[t] = what->tables[t].stream;
        n_lookups += stream_n_lookups(&streams[t]);
    }
    setup->n_sets = count_sets(setup, what);
    if (device_reserve(setup->device, &setup->indices,
                       setup->n_sets * n_lookups * sizeof(uint32_t), err) ||
        device_reserve(setup->device, &setup->offsets,
                       setup->n_sets * n_offsets * sizeof(uint64_t), err))
        return -1;
    for (unsigned set = 0; set < setup->n_sets; set++) {
        uint32_t *d_indices =
            (uint32_t *)setup->indices.d_ptr + set * n_lookups;
        uint64_t *d_offsets =
            (uint64_t *)setup->offsets.d_ptr + set * n_offsets;

        if (stream_draw(setup->device, streams, what->n_tables, seed + set,
                        d_indices, d_offsets, err))
            return -1;
        setup->sets[set] = (struct lookup_batch){.d_indices = d_indices,
                                                 .d_offsets = d_offsets,
                                                 .n_lookups = n_lookups};
    }
    return describe_tables(setup, tables, what, streams, err);
}

static int reserve_outputs(struct bench_setup *setup, size_t n_bytes,
                           struct err *err)
{
    const struct device_region *grad = &setup->grad;
    size_t filled_bytes = grad->n_bytes;

    if (device_reserve(setup->device, &setup->out, n_bytes, err) ||
        device_reserve(setup->device, &setup->grad, n_bytes, err))
        return -1;
    if (grad->n_bytes == filled_bytes)
        return 0;
    return device_fill(setup->device, grad->d_ptr,
                       grad->n_bytes / sizeof(float), PRECISION_FP32,
                       FILL_SEED + 1, err);
}

/* Combines two states of a device: returns the lower clocks, the higher
 * temperature and power, and the throttle reasons of both. */
static struct sample_health worse_health(const struct sample_health *a,
                                         const struct sample_health *b)
{
    return (struct sample_health){
        .sm_mhz = fmin(a->sm_mhz, b->sm_mhz),
        .memory_mhz = fmin(a->memory_mhz, b->memory_mhz),
        .temperature_c = fmax(a->temperature_c, b->temperature_c),
        .power_w = fmax(a->power_w, b->power_w),
        .throttle_reasons = a->throttle_reasons | b->throttle_reasons};
}

/* Work that is timed in a repetition: a forward, or phases of a backward. The
 * pieces of the work run one after the other. */
#define FORWARD 0u
struct repetition {
    struct bench_setup *setup;
    const unsigned *pieces;
    unsigned n, n_warm_up;
};

/* Runs one repetition. `ms` gets the times of its pieces, followed by their
 * total. Piece i lies between the time marks 2 i and 2 i + 1. Warm-up
 * repetitions are not held back until their work is queued, because loading a
 * kernel for the first time may have to wait for the device. */
static int repeat_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    const struct repetition *repetition = ctx;
    struct bench_setup *setup = repetition->setup;
    const struct lookup_batch *set = &setup->sets[number % setup->n_sets];
    struct device *device = setup->device;
    double *all_ms = &ms[repetition->n];

    if (number >= repetition->n_warm_up && device_hold(device, err))
        return -1;
    for (unsigned i = 0; i < repetition->n; i++)
        if (device_flush(device, err) || device_mark(device, 2 * i, err) ||
            (repetition->pieces[i] == FORWARD
                 ? lookup_forward(setup->lookup, set, setup->out.d_ptr, err)
                 : lookup_backward(setup->lookup, repetition->pieces[i], set,
                                   setup->grad.d_ptr, setup->learning_rate,
                                   err)) ||
            device_mark(device, 2 * i + 1, err))
            return -1;
    if (device_release(device, err))
        return -1;
    *all_ms = 0;
    for (unsigned i = 0; i < repetition->n; i++) {
        if (device_elapsed(device, 2 * i, 2 * i + 1, &ms[i], err))
            return -1;
        *all_ms += ms[i];
    }
    return device_is_host(device)
               ? device_elapsed(device, 0, 2 * repetition->n - 1, all_ms, err)
               : 0;
}

/* Times repetitions of a step, until the interference probe finds the machine
 * quiet. If the machine never becomes quiet, flags the sample. On a GPU,
 * additional repetitions time the phases of backward. */
static int time_case(struct bench_setup *setup,
                     struct interference_probe *interference,
                     struct sample *sample, struct err *err)
{
    static const unsigned step[] = {FORWARD, LOOKUP_BACKWARD},
                          phases[] = {LOOKUP_LINEARISE, LOOKUP_SORT,
                                      LOOKUP_UPDATE};
    struct repetition of_step = {setup, step, 2, N_WARM_UP},
                      of_phases = {setup, phases, 3, 0};
    struct repetitions repetitions = {.once = repeat_once,
                                      .ctx = &of_step,
                                      .n_parts = 3,
                                      .n_warm_up = N_WARM_UP,
                                      .n = BENCH_MIN_ITERATIONS,
                                      .n_most = BENCH_MAX_ITERATIONS};
    struct repetition_conditions conditions;
    struct timing parts[REPETITION_MAX_PARTS];

    if (repetitions_time_quietly(parts, &repetitions, setup->device,
                                 interference, &conditions, err))
        return -1;
    sample->forward = parts[0];
    sample->backward = parts[1];
    sample->total = parts[2];
    sample->n_iterations = repetitions.n;
    sample->health = worse_health(&conditions.before, &conditions.after);
    if (conditions.is_disturbed)
        sample->flags |= SAMPLE_THROTTLED;
    if (device_is_host(setup->device))
        return 0;
    repetitions = (struct repetitions){repeat_once,         &of_phases, 4,   0,
                                       N_PHASE_REPETITIONS, 0,          NULL};
    if (repetitions_time(parts, &repetitions, err))
        return -1;
    sample->linearise = parts[0];
    sample->sort = parts[1];
    sample->update = parts[2];
    return 0;
}

int setup_measure(struct bench_setup *setup,
                  struct interference_probe *interference,
                  struct sample *sample, const struct bench_case *what,
                  uint64_t stream_seed, struct err *err)
{
    struct lookup_table tables[BENCH_MAX_TABLES];
    struct lookup_spec spec = {.tables = tables,
                               .n_tables = what->n_tables,
                               .batch = what->batch,
                               .optimizer = what->optimizer};
    uint32_t out_dim;
    int rc;

    sample->started_at = clock_utc(setup->started_at);
    sample->n_tables = what->n_tables;
    if (make_sets(setup, what, stream_seed, sample->tables, err))
        return -1;
    out_dim = place_tables(setup, tables, what, stream_seed);
    spec.max_lookups = setup->sets[0].n_lookups;
    if (lookup_open(&setup->lookup, setup->device, &spec, err))
        return -1;
    rc = reserve_outputs(setup, (size_t)what->batch * out_dim * sizeof(float),
                         err) ||
         time_case(setup, interference, sample, err);
    lookup_close(setup->lookup);
    setup->lookup = NULL;
    return rc ? -1 : 0;
}
