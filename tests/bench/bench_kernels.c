/* SPDX-License-Identifier: MIT */

/*
 * Compares a GPU's lookups with the limits of its memory:
 *
 *     bench_kernels [SECONDS [BATCH [FOOTPRINT_GIB]]]
 *
 * Prints one case per line until the time is over (120 s). Cases differ in
 * width, precision, mean lookups per bag, and skew. The floor of a case is
 * computed from ceilings that the plainest code (device/probe.h) measured just
 * before:
 *
 * - Each row that is used comes from memory once, at the speed of random rows
 *   of that width in tables of that size.
 * - The row of every lookup comes through the cache, at the speed of rows in
 *   the cache.
 * - Sequential reads and writes run at the speed of a plain read.
 * - Sorting takes the time of CUB's sort.
 *
 * A further column gives the rate at which forward reads the rows of all
 * lookups, in per cent of the plain gather of such rows. The first case is also
 * run with 64-bit indices. The last lines are a summary by row width. The
 * status is 0 if every case that was started could be measured.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "device/device.h"
#include "device/lookup.h"
#include "device/probe.h"
#include "device/stream.h"

#define N_TABLES 8
#define N_SETS LOOKUP_MIN_COLD_SETS
#define N_REPETITIONS 12
#define N_WARM_UP 3
#define N_PROBE_RUNS 10
#define RATE 1e-6f
#define MIN_ROW_BYTES 32
/* Limits of a gather probe: most rows that it reads, and a footprint that fits
 * every cache. */
#define MAX_GATHER_ROWS ((uint64_t)4 << 20)
#define CACHED_BYTES ((uint64_t)8 << 20)

static const uint32_t DIMS[] = {128, 64, 256, 32, 16, 512, 48};
#define N_DIMS (sizeof DIMS / sizeof DIMS[0])
static const double POOLINGS[] = {20, 2};
static const double ALPHAS[] = {0, 1.05};
static const enum precision PRECISIONS[] = {PRECISION_FP32, PRECISION_FP16};

static struct err err;

/* Figures of a case for the summary; 0: not measured. */
enum figure {
    GATHER_GBPS,       /* plain gather of such rows */
    FORWARD_OF_GATHER, /* %, of GATHER_GBPS */
    FORWARD_OF_FLOOR,  /* % */
    BACKWARD_OF_FLOOR,
    N_FIGURES
};

/* State that all cases share. */
struct bench {
    struct device *device;
    uint32_t batch;
    uint64_t footprint_bytes;
    double end_ms;
    void *d_weights;
    float *d_state;
    enum precision filled; /* precision of the weights; INT8: not filled yet */
    double launch_ms, read_gbps, copy_gbps;
    uint64_t gather_rows; /* rows that a probe reads */
    /* indexed by precision, skew, pooling, width */
    double figures[2][2][2][N_DIMS][N_FIGURES];
    /* time with 64-bit indices / with 32-bit indices */
    double wide_forward, wide_backward;
    unsigned n_failed;
};

struct bench_case {
    uint32_t dim;
    enum precision precision;
    double pooling, alpha;
    double *figures; /* [N_FIGURES] */
};

/* Memory and measured times of a case. */
struct run {
    struct lookup *lookup;
    struct lookup_table tables[N_TABLES];
    struct stream streams[N_TABLES];
    void *d_out, *d_grad, *d_indices[N_SETS], *d_offsets[N_SETS];
    uint64_t n_lookups, n_rows; /* totals of all tables */
    bool is_wide;               /* indices have 64 bits */
    double n_unique;
    double forward[N_REPETITIONS], linearise[N_REPETITIONS],
        sort[N_REPETITIONS], update[N_REPETITIONS], backward[N_REPETITIONS];
};

struct floors {
    double forward_ms, linearise_ms, sort_ms, update_ms;
    double gather_gbps; /* rows of that width and footprint */
};

static double ceiling_ms(const struct bench *bench, struct probe probe, int *rc)
{
    struct ceiling ceiling = {.n_iterations = 0};

    if (!*rc)
        *rc = probe_run(&ceiling, bench->device, &probe, N_PROBE_RUNS, &err);
    return ceiling.timing.median_ms;
}

/* Speed of a gather, in GB/s of rows. */
static double gather_gbps(const struct bench *bench, uint32_t row_bytes,
                          uint64_t footprint_bytes, int *rc)
{
    struct probe probe = {.kind = PROBE_GATHER,
                          .n_bytes = footprint_bytes,
                          .n = bench->gather_rows,
                          .row_bytes = row_bytes};
    double ms = ceiling_ms(bench, probe, rc);

    return (double)bench->gather_rows * row_bytes / ms / 1e6;
}

static uint32_t bits_of(uint64_t n)
{
    uint32_t bits = 1;

    while (n > 1 && (n - 1) >> bits)
        bits++;
    return bits;
}

/* Milliseconds to move n_bytes at gbps. */
static double at_speed(double n_bytes, double gbps)
{
    return n_bytes / gbps / 1e6;
}

/* Rounds up to whole 32-byte sectors, the smallest unit that is read. */
static uint32_t sector_bytes(uint32_t n_bytes)
{
    return (n_bytes + 31) / 32 * 32;
}

static uint32_t row_bytes_of(const struct bench_case *what)
{
    return sector_bytes(what->dim * (uint32_t)precision_bytes(what->precision));
}

static int find_floors(const struct bench *bench, const struct bench_case *what,
                       const struct run *run, struct floors *floors)
{
    uint32_t row_bytes = row_bytes_of(what);
    uint32_t grad_bytes = what->dim * 4;
    uint64_t cached_bytes = bench->footprint_bytes < CACHED_BYTES
                                ? bench->footprint_bytes
                                : CACHED_BYTES;
    double n = (double)run->n_lookups, n_bags = (double)bench->batch * N_TABLES;
    double streamed = n_bags * (grad_bytes + 8.0) + 4 * n;
    int rc = 0;
    double cold = gather_gbps(bench, row_bytes, bench->footprint_bytes, &rc);
    double hot = gather_gbps(bench, row_bytes, cached_bytes, &rc);
    double hot_grads =
        gather_gbps(bench, sector_bytes(grad_bytes), cached_bytes, &rc);
    double from_memory, from_cache;

    floors->sort_ms =
        ceiling_ms(bench,
                   (struct probe){.kind = PROBE_SORT,
                                  .n = run->n_lookups,
                                  .key_bits = bits_of(run->n_rows)},
                   &rc);
    floors->gather_gbps = cold;
    from_memory = at_speed(run->n_unique * row_bytes, cold) +
                  at_speed(streamed, bench->read_gbps);
    from_cache = at_speed(n * row_bytes, hot) +
                 at_speed(n_bags * grad_bytes, bench->read_gbps);
    floors->forward_ms = fmax(from_memory, from_cache) + bench->launch_ms;
    floors->linearise_ms =
        at_speed(n * 12 + n_bags * 8, bench->read_gbps) + bench->launch_ms;
    /* Rows are read and written; each has 32 bytes of optimizer state. */
    from_memory = at_speed(run->n_unique * 2 * (row_bytes + 32.0), cold) +
                  at_speed(n_bags * grad_bytes + 8 * n, bench->read_gbps);
    from_cache = at_speed(n * grad_bytes, hot_grads);
    floors->update_ms = fmax(from_memory, from_cache) + 2 * bench->launch_ms;
    return rc;
}

static int fill_weights(struct bench *bench, enum precision precision)
{
    uint64_t n = bench->footprint_bytes / precision_bytes(precision);

    if (bench->filled == precision)
        return 0;
    bench->filled = precision;
    return device_fill(bench->device, bench->d_weights, n, precision, 1, &err);
}

static int draw_sets(struct bench *bench, struct run *run)
{
    struct sample_table tables[N_TABLES];
    size_t offsets_bytes =
        ((size_t)N_TABLES * bench->batch + 1) * sizeof(uint64_t);

    for (unsigned k = 0; k < N_SETS; k++)
        if (device_alloc(bench->device, &run->d_indices[k],
                         run->n_lookups * sizeof(uint32_t), &err) ||
            device_alloc(bench->device, &run->d_offsets[k], offsets_bytes,
                         &err) ||
            stream_draw(bench->device, run->streams, N_TABLES, 1 + k,
                        run->d_indices[k], run->d_offsets[k], &err))
            return -1;
    if (stream_measure(bench->device, run->streams, N_TABLES, run->d_indices[0],
                       tables, &err))
        return -1;
    for (unsigned t = 0; t < N_TABLES; t++)
        run->n_unique += tables[t].n_unique;
    return 0;
}

static int open_lookup(struct bench *bench, struct run *run)
{
    struct lookup_spec spec = {.tables = run->tables,
                               .n_tables = N_TABLES,
                               .batch = bench->batch,
                               .max_lookups = run->n_lookups,
                               .optimizer = OPTIMIZER_ROWWISE_ADAGRAD};

    lookup_close(run->lookup);
    run->lookup = NULL;
    return lookup_open(&run->lookup, bench->device, &spec, &err);
}

static int open_run(struct bench *bench, const struct bench_case *what,
                    struct run *run)
{
    uint64_t row_bytes = what->dim * precision_bytes(what->precision);
    uint64_t n_rows = bench->footprint_bytes / N_TABLES / row_bytes / 64 * 64;
    uint64_t n_out = (uint64_t)bench->batch * N_TABLES * what->dim;

    for (uint32_t t = 0; t < N_TABLES; t++) {
        run->streams[t] = (struct stream){.n_rows = n_rows,
                                          .batch = bench->batch,
                                          .pooling_factor = what->pooling,
                                          .zipf_alpha = what->alpha,
                                          .table_seed = t};
        run->tables[t] = (struct lookup_table){
            .d_weight = (char *)bench->d_weights + t * n_rows * row_bytes,
            .d_state = bench->d_state + t * n_rows,
            .n_rows = n_rows,
            .dim = what->dim,
            .out_begin = t * what->dim,
            .precision = what->precision,
        };
        run->n_lookups += stream_n_lookups(&run->streams[t]);
        run->n_rows += n_rows;
    }
    if (device_alloc(bench->device, &run->d_out, n_out * 4, &err) ||
        device_alloc(bench->device, &run->d_grad, n_out * 4, &err) ||
        device_fill(bench->device, run->d_grad, n_out, PRECISION_FP32, 2,
                    &err) ||
        fill_weights(bench, what->precision) || draw_sets(bench, run))
        return -1;
    return open_lookup(bench, run);
}

static void close_run(const struct bench *bench, struct run *run)
{
    lookup_close(run->lookup);
    device_free(bench->device, run->d_out);
    device_free(bench->device, run->d_grad);
    for (unsigned k = 0; k < N_SETS; k++) {
        device_free(bench->device, run->d_indices[k]);
        device_free(bench->device, run->d_offsets[k]);
    }
}

/* Queues one repetition. Marks 0 and 1 enclose forward; marks 2 to 5
 * separate the phases of backward. Each part starts with a cold cache, as in
 * training. */
static int queue_repetition(const struct bench *bench, struct run *run,
                            unsigned repetition)
{
    struct device *device = bench->device;
    struct lookup_batch batch = {
        .d_indices = run->d_indices[repetition % N_SETS],
        .d_offsets = run->d_offsets[repetition % N_SETS],
        .n_lookups = run->n_lookups,
        .wide = run->is_wide};
    unsigned mark = 2;

    if (device_flush(device, &err) || device_mark(device, 0, &err) ||
        lookup_forward(run->lookup, &batch, run->d_out, &err) ||
        device_mark(device, 1, &err) || device_flush(device, &err) ||
        device_mark(device, mark++, &err))
        return -1;
    for (unsigned phase = 1; phase < LOOKUP_BACKWARD; phase *= 2)
        if (lookup_backward(run->lookup, phase, &batch, run->d_grad, RATE,
                            &err) ||
            device_mark(device, mark++, &err))
            return -1;
    return 0;
}

/* Runs one repetition. The first one is not held back: it loads kernels that
 * are used for the first time, which may wait for the device. */
static int run_repetition(const struct bench *bench, struct run *run,
                          unsigned number)
{
    struct device *device = bench->device;
    unsigned i = number < N_WARM_UP ? 0 : number - N_WARM_UP;
    int rc;

    if (number && device_hold(device, &err))
        return -1;
    rc = queue_repetition(bench, run, number);
    if ((number && device_release(device, &err)) || rc)
        return -1;
    return device_elapsed(device, 0, 1, &run->forward[i], &err) ||
                   device_elapsed(device, 2, 3, &run->linearise[i], &err) ||
                   device_elapsed(device, 3, 4, &run->sort[i], &err) ||
                   device_elapsed(device, 4, 5, &run->update[i], &err) ||
                   device_elapsed(device, 2, 5, &run->backward[i], &err)
               ? -1
               : 0;
}

/* Prints a case and keeps its figures. */
static void report_case(const struct bench_case *what, struct run *run,
                        const struct floors *floors)
{
    double forward = stats_median(run->forward, N_REPETITIONS);
    double linearise = stats_median(run->linearise, N_REPETITIONS);
    double sort = stats_median(run->sort, N_REPETITIONS);
    double update = stats_median(run->update, N_REPETITIONS);
    double backward = stats_median(run->backward, N_REPETITIONS);
    double backward_floor =
        floors->linearise_ms + floors->sort_ms + floors->update_ms;
    double gbps = (double)run->n_lookups * row_bytes_of(what) / forward / 1e6;

    printf("%4u %4s %3.0f %4.2f %5.1f  %8.4f %8.4f %4.0f %5.0f %4.0f  %8.4f "
           "%8.4f %4.0f  %7.4f %4.0f  %7.4f %4.0f  %7.4f %4.0f\n",
           what->dim, precision_names[what->precision], what->pooling,
           what->alpha, (double)run->n_lookups / run->n_unique, forward,
           floors->forward_ms, 100 * floors->forward_ms / forward, gbps,
           100 * gbps / floors->gather_gbps, backward, backward_floor,
           100 * backward_floor / backward, linearise,
           100 * floors->linearise_ms / linearise, sort,
           100 * floors->sort_ms / sort, update,
           100 * floors->update_ms / update);
    fflush(stdout);
    what->figures[FORWARD_OF_GATHER] = 100 * gbps / floors->gather_gbps;
    what->figures[FORWARD_OF_FLOOR] = 100 * floors->forward_ms / forward;
    what->figures[BACKWARD_OF_FLOOR] = 100 * backward_floor / backward;
    what->figures[GATHER_GBPS] = floors->gather_gbps;
}

static int run_repetitions(const struct bench *bench, struct run *run)
{
    for (unsigned i = 0; i < N_WARM_UP + N_REPETITIONS; i++)
        if (run_repetition(bench, run, i))
            return -1;
    return 0;
}

static int widen(const struct bench *bench, void **d_indices, uint64_t n)
{
    uint32_t *narrow = mem_alloc(n, sizeof *narrow);
    uint64_t *wide = mem_alloc(n, sizeof *wide);
    int rc = device_download(bench->device, narrow, *d_indices,
                             n * sizeof *narrow, &err);

    for (uint64_t i = 0; i < n; i++)
        wide[i] = narrow[i];
    device_free(bench->device, *d_indices);
    *d_indices = NULL;
    rc = rc || device_alloc(bench->device, d_indices, n * sizeof *wide, &err) ||
         device_upload(bench->device, *d_indices, wide, n * sizeof *wide, &err);
    mem_free(narrow);
    mem_free(wide);
    return rc;
}

/* Repeats the lookups with 64-bit indices. */
static int run_wide(struct bench *bench, struct run *run)
{
    double forward = stats_median(run->forward, N_REPETITIONS);
    double backward = stats_median(run->backward, N_REPETITIONS);

    for (unsigned k = 0; k < N_SETS; k++)
        if (widen(bench, &run->d_indices[k], run->n_lookups))
            return -1;
    run->is_wide = true;
    if (run_repetitions(bench, run))
        return -1;
    bench->wide_forward = stats_median(run->forward, N_REPETITIONS) / forward;
    bench->wide_backward =
        stats_median(run->backward, N_REPETITIONS) / backward;
    return 0;
}

static int run_case(struct bench *bench, const struct bench_case *what)
{
    struct run *run = mem_alloc(1, sizeof *run);
    struct floors floors;
    int rc = open_run(bench, what, run) || run_repetitions(bench, run);

    if (!rc)
        rc = find_floors(bench, what, run, &floors);
    if (!rc)
        report_case(what, run, &floors);
    if (!rc && !(bench->wide_forward > 0))
        rc = run_wide(bench, run);
    close_run(bench, run);
    mem_free(run);
    return rc;
}

/* Case of width d, with the given precision, skew and pooling. */
static struct bench_case case_at(struct bench *bench, int precision, int alpha,
                                 int pooling, size_t d)
{
    return (struct bench_case){DIMS[d], PRECISIONS[precision],
                               POOLINGS[pooling], ALPHAS[alpha],
                               bench->figures[precision][alpha][pooling][d]};
}

/* Runs all cases of a precision. A case that fails, for example for lack of
 * memory, is reported and left out. */
static void run_cases(struct bench *bench, int precision)
{
    unsigned n_left_out = 0;

    for (int a = 0; a < 2; a++)
        for (int p = 0; p < 2; p++)
            for (size_t d = 0; d < N_DIMS; d++) {
                struct bench_case what = case_at(bench, precision, a, p, d);

                if (clock_ms() > bench->end_ms) {
                    n_left_out++;
                } else if (run_case(bench, &what)) {
                    printf("%4u %4s %3.0f %4.2f: %s\n", what.dim,
                           precision_names[what.precision], what.pooling,
                           what.alpha, err.msg);
                    bench->n_failed++;
                }
            }
    if (n_left_out)
        printf("the time is over: %u cases of %s left out\n", n_left_out,
               precision_names[PRECISIONS[precision]]);
}

static int open_bench(struct bench *bench)
{
    struct device *device = bench->device;
    uint64_t gib = (uint64_t)1 << 30, n = bench->footprint_bytes;
    uint64_t n_states;
    void *d_state = NULL;
    int rc = 0;

    while (n > gib / 64 && n > device_free_bytes(device) / 3)
        n /= 2;
    bench->footprint_bytes = n;
    n_states = n / MIN_ROW_BYTES;
    bench->gather_rows = n / 64 < MAX_GATHER_ROWS ? n / 64 : MAX_GATHER_ROWS;
    bench->launch_ms =
        ceiling_ms(bench, (struct probe){.kind = PROBE_LAUNCH}, &rc);
    bench->read_gbps =
        (double)n /
        ceiling_ms(bench, (struct probe){.kind = PROBE_READ, .n_bytes = n},
                   &rc) /
        1e6;
    bench->copy_gbps =
        (double)n /
        ceiling_ms(bench, (struct probe){.kind = PROBE_COPY, .n_bytes = n / 2},
                   &rc) /
        1e6;
    if (rc)
        return -1;
    printf("%s, %s, batch %u, %u tables in %.3g GiB; row-wise Adagrad\n"
           "read %.0f GB/s, copy %.0f GB/s, launch %.4f ms; medians of %d\n\n",
           device->facts.name, device->facts.isa, bench->batch, N_TABLES,
           (double)n / (double)gib, bench->read_gbps, bench->copy_gbps,
           bench->launch_ms, N_REPETITIONS);
    printf("                         forward                 rows, of     "
           "backward                linearise     sort          update\n"
           "                                                 gather's\n"
           " dim type   L zipf  uses        ms    floor    %%  GB/s    %%  "
           "      ms    floor    %%       ms    %%       ms    %%       ms    "
           "%%\n");
    if (device_alloc(device, &bench->d_weights, n, &err) ||
        device_alloc(device, &d_state, n_states * sizeof(float), &err))
        return -1;
    bench->d_state = d_state;
    bench->filled = PRECISION_INT8;
    return device_set(device, bench->d_state, n_states, 1, &err);
}

static void print_widths(const char *title)
{
    printf("%-37s", title);
    for (size_t d = 0; d < N_DIMS; d++)
        printf(" %5u", DIMS[d]);
    printf("\n");
}

/* Prints one line per measured precision, skew and pooling. Figures up to
 * FORWARD_OF_GATHER are only printed for uniform lookups. */
static void print_figure(const struct bench *bench, enum figure figure,
                         const char *name)
{
    int n_alphas = figure <= FORWARD_OF_GATHER ? 1 : 2;

    for (int i = 0; i < 2; i++)
        for (int a = 0; a < n_alphas; a++)
            for (int p = 0; p < 2; p++) {
                if (!(bench->figures[i][a][p][0][figure] > 0))
                    continue;
                printf("%-18s %4s L %2.0f zipf %4.2f", name,
                       precision_names[PRECISIONS[i]], POOLINGS[p], ALPHAS[a]);
                for (size_t d = 0; d < N_DIMS; d++)
                    printf(" %5.0f", bench->figures[i][a][p][d][figure]);
                printf("\n");
            }
}

/* Prints minimum and median of a figure over the cases that count for it. */
static void print_least(const struct bench *bench, enum figure figure,
                        const char *name)
{
    double values[8 * N_DIMS];
    size_t n = 0;

    for (size_t i = 0; i < 8 * N_DIMS; i++) {
        size_t d = i % N_DIMS, p = i / N_DIMS % 2, a = i / N_DIMS / 2 % 2;
        double value = bench->figures[i / N_DIMS / 4][a][p][d][figure];
        bool is_wide_uniform = !a && DIMS[d] >= 128;

        if (value > 0 && (figure == BACKWARD_OF_FLOOR ||
                          is_wide_uniform == (figure == FORWARD_OF_GATHER)))
            values[n++] = value;
    }
    if (n)
        printf("%-49s least %3.0f, median %3.0f of %2zu cases\n", name,
               stats_quantile(values, n, 0), stats_median(values, n), n);
}

/* Prints the summary. tests/gpu/check reads everything from "summary" on. */
static void print_summary(const struct bench *bench)
{
    printf("\n");
    print_widths("%, by dim; 0: not measured");
    print_figure(bench, FORWARD_OF_FLOOR, "forward / floor");
    print_figure(bench, BACKWARD_OF_FLOOR, "backward / floor");
    printf("\nsummary: %d tables in %.3g GiB, batch %u; copy %.0f GB/s, read "
           "%.0f GB/s\n",
           N_TABLES, (double)bench->footprint_bytes / (1 << 30), bench->batch,
           bench->copy_gbps, bench->read_gbps);
    print_widths("GB/s and %, by dim; 0: not measured");
    print_figure(bench, GATHER_GBPS, "gather GB/s");
    print_figure(bench, FORWARD_OF_GATHER, "forward / gather");
    print_least(bench, FORWARD_OF_GATHER,
                "forward / gather %, uniform, dim >= 128 (aim 85)");
    print_least(bench, FORWARD_OF_FLOOR,
                "forward / floor %, all others (aim 60)");
    print_least(bench, BACKWARD_OF_FLOOR, "backward / floor % (aim 50)");
    if (bench->wide_forward > 0)
        printf("64-bit indices, %u columns: forward takes %.3f, backward %.3f "
               "times as long\n",
               DIMS[0], bench->wide_forward, bench->wide_backward);
}

static int run_bench(struct bench *bench)
{
    if (open_bench(bench)) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        return -1;
    }
    run_cases(bench, 0);
    run_cases(bench, 1);
    print_summary(bench);
    device_free(bench->device, bench->d_weights);
    device_free(bench->device, bench->d_state);
    return bench->n_failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 120;
    double gib = argc > 3 ? strtod(argv[3], NULL) : 16;
    struct bench bench = {
        .batch = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 65536,
        .footprint_bytes = (uint64_t)(gib * (1 << 30)) / 4096 * 4096,
        .end_ms = clock_ms() + 1000 * seconds,
    };
    int rc = 0;

    if (!device_count(DEVICE_CUDA)) {
        printf("no CUDA device\n");
        return 0;
    }
    if (device_open(&bench.device, DEVICE_CUDA, 0, 0, &err)) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        return 1;
    }
    if (argc < 3 && strstr(bench.device->facts.name, "Emulated"))
        printf("%s: its times mean nothing\n", bench.device->facts.name);
    else
        rc = run_bench(&bench);
    device_close(bench.device);
    return rc ? 1 : 0;
}
