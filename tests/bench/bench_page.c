/* SPDX-License-Identifier: MIT */
#include "tests/anchors.h"

#include "device/probe.h"
#include "io/store_rows.h"

#include <inttypes.h>

/*
 * Compares a GPU's measured lookups with all available references:
 *
 *     bench_page [DATABASE [GPU]]
 *
 * For each phase of a sample there are three references: the roofline of GPU (a
 * shipped one); the floor from the database's own ceilings, computed as in
 * bench_kernels; and the floor from GPU's data sheet, for all bytes that must
 * come from memory. First come medians over the cases with equal tables, by row
 * width. Then come published measurements whose tables match such a case. They
 * are compared per lookup, because batches differ.
 */

#define SHIPPED_DB "data/measurements/cuda-nvidia-h100.db"
#define SHIPPED_GPU "h100"
#define CACHED_BYTES ((uint64_t)8 << 20)

enum { FORWARD, BACKWARD, N_HALVES };
static const char *const halves[] = {"forward", "backward"};
static const char *const anchor_halves[] = {"fwd", "bwd"};

/* One phase of a sample. */
struct line {
    const struct sample *sample;
    unsigned half;
    double ms, model_ms, probe_ms, sheet_ms; /* NAN: unknown */
};

struct page {
    const struct gpu_spec *spec;
    struct ceiling *ceilings;
    size_t n_ceilings;
    struct line *lines; /* [n] */
    size_t n;
    double *column; /* [n], scratch for a median */
};

static double distance(double a, double b)
{
    return fabs(log(fmax(a, 1) / fmax(b, 1)));
}

/* Returns the ceiling of a kind with the nearest size, for rows or keys at
 * least `width` wide; NULL without such a ceiling. */
static const struct ceiling *nearest(const struct page *page,
                                     enum probe_kind kind, double size,
                                     uint32_t width)
{
    const struct ceiling *best = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < page->n_ceilings; i++) {
        const struct ceiling *ceiling = &page->ceilings[i];
        const struct probe *probe = &ceiling->probe;
        const uint32_t own = probe->row_bytes + probe->key_bits;
        const double apart =
            distance((double)(kind == PROBE_SORT ? probe->n : probe->n_bytes),
                     size) +
            100 * distance(own, width);

        if (probe->kind == kind && own >= width && apart < least) {
            least = apart;
            best = ceiling;
        }
    }
    return best;
}

/* Milliseconds to move n_bytes at the speed of a ceiling. */
static double at_speed(double n_bytes, const struct ceiling *ceiling)
{
    const struct probe *probe;

    if (!ceiling)
        return NAN;
    probe = &ceiling->probe;
    return n_bytes * ceiling->timing.median_ms /
           (double)(probe->kind == PROBE_GATHER ? probe->n * probe->row_bytes
                                                : probe->n_bytes);
}

/* Traffic of a sample with equal tables. */
struct traffic {
    double n_lookups, n_unique, n_bags, n_rows;
    double row_bytes, out_bytes; /* bytes of a row; bytes of an output */
    double in_order, updated;    /* bytes that go through memory once */
};

static struct traffic traffic_of(const struct sample *sample)
{
    const struct sample_table *table = &sample->tables[0];
    struct traffic of = {.out_bytes = 4.0 * table->dim};

    of.row_bytes =
        ceil(table->dim * precision_bytes(sample->setting->precision) / 32.0) *
        32;
    for (uint32_t t = 0; t < sample->n_tables; t++) {
        of.n_bags += sample->setting->batch;
        of.n_lookups +=
            sample->setting->batch * sample->tables[t].pooling_factor;
        of.n_unique += sample->tables[t].n_unique;
        of.n_rows += (double)sample->tables[t].n_rows;
    }
    of.in_order = of.n_bags * (of.out_bytes + 8) + 4 * of.n_lookups;
    of.updated =
        of.n_unique * 2 *
        (of.row_bytes + (sample->setting->optimizer == OPTIMIZER_SGD ? 0 : 32));
    return of;
}

static double forward_floor(const struct page *page, const struct traffic *of)
{
    const uint32_t width = (uint32_t)of->row_bytes;
    const struct ceiling *cold =
        nearest(page, PROBE_GATHER, of->n_rows * of->row_bytes, width);
    const struct ceiling *hot =
        nearest(page, PROBE_GATHER, (double)CACHED_BYTES, width);
    const struct ceiling *read = nearest(page, PROBE_READ, 1e12, 0);

    return fmax(at_speed(of->n_unique * of->row_bytes, cold) +
                    at_speed(of->in_order, read),
                at_speed(of->n_lookups * of->row_bytes, hot) +
                    at_speed(of->n_bags * of->out_bytes, read));
}

static double backward_floor(const struct page *page, const struct traffic *of)
{
    const uint32_t width = (uint32_t)of->row_bytes;
    const struct ceiling *cold =
        nearest(page, PROBE_GATHER, of->n_rows * of->row_bytes, width);
    const struct ceiling *hot = nearest(
        page, PROBE_GATHER, (double)CACHED_BYTES, (uint32_t)of->out_bytes);
    const struct ceiling *read = nearest(page, PROBE_READ, 1e12, 0);
    const struct ceiling *sort =
        nearest(page, PROBE_SORT, of->n_lookups,
                (uint32_t)fmax(ceil(log2(of->n_rows)), 1));
    double sort_ms =
        sort ? sort->timing.median_ms * of->n_lookups / (double)sort->probe.n
             : NAN;

    return sort_ms + at_speed(of->n_lookups * 12 + of->n_bags * 8, read) +
           fmax(at_speed(of->updated, cold) +
                    at_speed(of->n_bags * of->out_bytes + 8 * of->n_lookups,
                             read),
                at_speed(of->n_lookups * of->out_bytes, hot));
}

/* Floor by the data sheet: used rows pass through memory once (forward: in;
 * backward: in and out), plus the sequential reads and writes. */
static double sheet_floor(const struct page *page, const struct traffic *of,
                          unsigned half)
{
    const double bytes = half == FORWARD
                             ? of->n_unique * of->row_bytes + of->in_order
                             : of->updated + of->in_order + 4 * of->n_lookups;

    return page->spec->sheet_gbps > 0 ? bytes / page->spec->sheet_gbps / 1e6
                                      : NAN;
}

static bool has_equal_tables(const struct sample *sample)
{
    for (uint32_t t = 1; t < sample->n_tables; t++)
        if (sample->tables[t].dim != sample->tables[0].dim ||
            sample->tables[t].n_rows != sample->tables[0].n_rows)
            return false;
    return sample->kind == SAMPLE_FUSED && !isnan(sample->tables[0].zipf_alpha);
}

static void add_sample(struct page *page, const struct sample *sample,
                       struct arena *arena)
{
    static const enum phase phases[] = {PHASE_FORWARD, PHASE_BACKWARD};
    const struct traffic of = traffic_of(sample);
    double phases_ms[N_PHASES];
    struct problem problem;

    if (!has_equal_tables(sample) || sample->flags & SAMPLE_THROTTLED)
        return;
    fill_problem(&problem, sample, arena);
    anchor_phases(phases_ms, &problem, page->spec, arena);
    for (unsigned half = 0; half < N_HALVES; half++)
        page->lines[page->n++] = (struct line){
            .sample = sample,
            .half = half,
            .ms = half == FORWARD ? sample->forward.median_ms
                                  : sample->backward.median_ms,
            .model_ms = phases_ms[phases[half]],
            .probe_ms = half == FORWARD ? forward_floor(page, &of)
                                        : backward_floor(page, &of),
            .sheet_ms = sheet_floor(page, &of, half)};
}

/* Prints a figure, or "-" if it is unknown. */
static void print_figure(double figure, int n_digits)
{
    if (isnan(figure))
        printf(" %8s", "-");
    else
        printf(" %8.*f", n_digits, figure);
}

/* Figure of a line that a column shows. */
typedef double figure_of(const struct line *line);

static double ms_of(const struct line *line)
{
    return line->ms;
}

static double model_of(const struct line *line)
{
    return line->model_ms / line->ms;
}

static double probe_of(const struct line *line)
{
    return 100 * line->probe_ms / line->ms;
}

static double sheet_of(const struct line *line)
{
    return 100 * line->sheet_ms / line->ms;
}

/* Sets *median of a phase over the lines of one row width; returns their
 * number. */
static size_t median_of(double *median, const struct page *page, unsigned half,
                        uint32_t dim, figure_of *figure)
{
    size_t n = 0;

    for (size_t i = 0; i < page->n; i++)
        if (page->lines[i].half == half &&
            page->lines[i].sample->tables[0].dim == dim)
            page->column[n++] = figure(&page->lines[i]);
    *median = n ? stats_median(page->column, n) : NAN;
    return n;
}

static void print_width(const struct page *page, unsigned half, uint32_t dim)
{
    static const struct {
        figure_of *figure;
        int n_digits;
    } columns[] = {{ms_of, 4}, {model_of, 2}, {probe_of, 0}, {sheet_of, 0}};
    double median;
    size_t n = median_of(&median, page, half, dim, ms_of);

    if (!n)
        return;
    printf("%-8s %5" PRIu32 " %6zu ", halves[half], dim, n);
    for (size_t c = 0; c < 4; c++) {
        median_of(&median, page, half, dim, columns[c].figure);
        print_figure(median, columns[c].n_digits);
    }
    printf("\n");
}

/* Whether a case has the same tables as a published measurement. */
static bool is_same(const struct sample *sample, const struct problem *problem)
{
    const struct table *table = &problem->tables[0];
    const struct sample_table *own = &sample->tables[0];

    return own->dim == table->dim && own->n_rows == table->num_embeddings &&
           fabs(own->zipf_alpha - table->zipf_alpha) < 1e-6 &&
           sample->setting->precision == table->precision &&
           sample->setting->optimizer == table->optimizer;
}

static double n_lookups(const struct problem *problem)
{
    double n = 0;

    for (size_t t = 0; t < problem->n_tables; t++)
        n += (double)problem->batch * problem->tables[t].pooling_factor;
    return n;
}

/* Prints a published measurement and the case with the nearest number of
 * lookups, both per lookup. */
static bool print_anchor(const struct page *page, const struct anchor *anchor)
{
    const double n = n_lookups(&anchor->problem);
    const struct line *best = NULL;
    double least = INFINITY, own_n, own_ns;

    for (size_t i = 0; i < page->n; i++) {
        const struct line *line = &page->lines[i];
        const double apart = distance(traffic_of(line->sample).n_lookups, n);

        if (!strcmp(anchor->phase, anchor_halves[line->half]) &&
            is_same(line->sample, &anchor->problem) && apart < least) {
            least = apart;
            best = line;
        }
    }
    if (!best || anchor->is_bound)
        return false;
    own_n = traffic_of(best->sample).n_lookups;
    own_ns = 1e6 * best->ms / own_n;
    printf("%-8s %2" PRIu32 " x %3" PRIu32 " %9.0f %8.4f", halves[best->half],
           best->sample->n_tables, best->sample->tables[0].dim, own_n, own_ns);
    print_figure(1e6 * best->model_ms / own_n, 4);
    print_figure(1e6 * best->probe_ms / own_n, 4);
    print_figure(1e6 * best->sheet_ms / own_n, 4);
    printf(" %8.4f %6.2f  %s%s, %.0f look-ups: %.40s\n", 1e6 * anchor->ms / n,
           own_ns / (1e6 * anchor->ms / n), anchor->gpu,
           anchor->is_named ? "" : "?", n, anchor->source);
    return true;
}

static void print_page(const struct page *page, struct arena *arena)
{
    const struct anchors anchors = anchor_lookups(arena);
    size_t n = 0;

    printf("%s: memory %.0f GB/s by its data sheet\n", page->spec->full_name,
           page->spec->sheet_gbps);
    printf("%-8s %5s %6s %9s %8s %8s %8s\n", "", "dim", "cases", "ms",
           "roofline", "probe", "sheet");
    printf("%-8s %5s %6s %9s %8s %8s %8s   %s\n", "", "", "", "measured",
           "/ ms", "floor %", "floor %", "medians");
    for (unsigned half = 0; half < N_HALVES; half++)
        for (uint32_t dim = 4; dim <= 1024; dim *= 2)
            print_width(page, half, dim);
    printf("\n%-8s %8s %9s %8s %8s %8s %8s %8s %6s\n", "published", "tables",
           "look-ups", "measured", "roofline", "probe", "sheet", "there",
           "times");
    for (size_t i = 0; i < anchors.n; i++)
        n += print_anchor(page, &anchors.list[i]);
    if (n)
        printf("ns a look-up; 'times' is measured here over published\n");
    else
        printf("no case here has the tables of a published one\n");
}

static int read_all(struct page *page, const char *db, const char *gpu,
                    struct arena *arena, struct err *err)
{
    struct sample *samples = NULL;
    struct store *store = NULL;
    size_t n = 0;
    int rc;

    if (gpu_spec_get(&page->spec, gpu, arena, err) ||
        read_samples(&samples, &n, db, arena, err))
        return -1;
    if (!n)
        return err_set(err, ERR_INPUT, "'%s' has no samples", db);
    rc = store_open(&store, db, STORE_READ, err) ||
         store_ceilings(store, samples[0].setting, &page->ceilings,
                        &page->n_ceilings, arena, err);
    store_close(store);
    if (rc)
        return -1;
    page->lines = ARENA_NEW(arena, struct line, N_HALVES * n);
    page->column = ARENA_NEW(arena, double, N_HALVES *n);
    for (size_t i = 0; i < n; i++)
        add_sample(page, &samples[i], arena);
    return 0;
}

int main(int argc, char **argv)
{
    static struct page page;
    struct arena arena = {0};
    struct err err = {0};

    if (read_all(&page, argc > 1 ? argv[1] : SHIPPED_DB,
                 argc > 2 ? argv[2] : SHIPPED_GPU, &arena, &err)) {
        fprintf(stderr, "bench_page: %s\n", err.msg);
        arena_release(&arena);
        return 1;
    }
    print_page(&page, &arena);
    arena_release(&arena);
    return 0;
}
