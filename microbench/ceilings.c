/* SPDX-License-Identifier: MIT */
#include "microbench/ceilings.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "microbench/sampler.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
/* One more than the largest row number, which has 32 bits. */
#define ROWS_END (UINT64_C(1) << 32)
/* One part in SPARE_PARTS of the free memory stays unused. */
#define SPARE_PARTS 16

/* Sizes of the probes for one kind of device (GPU or CPU). */
struct scale {
    uint64_t max_stream_bytes;
    /* Bytes that a gather probe reads. It reads fewer bytes if max_rows or the
     * memory of the probe does not allow as many. */
    uint64_t gathered_bytes;
    uint64_t max_rows;
    uint64_t max_pairs;
};

static const struct scale of_host = {256 * MIB, 16 * MIB, 1 << 18, 1 << 20};
static const struct scale of_gpu = {16 * GIB, GIB, 1 << 24, 1 << 25};

struct probe_list {
    struct probe *probes; /* [CEILINGS_MAX] probes to measure */
    size_t n;
    uint64_t max_bytes;
};

static void add(struct probe_list *list, struct probe probe)
{
    if (probe_memory_bytes(&probe) <= list->max_bytes && list->n < CEILINGS_MAX)
        list->probes[list->n++] = probe;
}

static void add_streams(struct probe_list *list, const struct scale *scale)
{
    for (uint64_t n_bytes = MIB; n_bytes <= scale->max_stream_bytes;
         n_bytes *= 4) {
        add(list, (struct probe){.kind = PROBE_READ, .n_bytes = n_bytes});
        add(list, (struct probe){.kind = PROBE_COPY, .n_bytes = n_bytes});
    }
}

static void add_gathers(struct probe_list *list, const struct scale *scale)
{
    static const uint64_t footprints[] = {MIB,       8 * MIB,  32 * MIB,
                                          256 * MIB, GIB,      8 * GIB,
                                          32 * GIB,  64 * GIB, 120 * GIB};
    uint64_t gathered_bytes = min_u64(scale->gathered_bytes, list->max_bytes);

    for (size_t i = 0; i < COUNT(footprints); i++)
        for (uint32_t row_bytes = 16; row_bytes <= 2 * KIB; row_bytes *= 2) {
            uint64_t n = min_u64(gathered_bytes / row_bytes, scale->max_rows);

            if (footprints[i] / row_bytes >= ROWS_END)
                continue;
            add(list, (struct probe){.kind = PROBE_GATHER,
                                     .n_bytes = footprints[i],
                                     .n = n,
                                     .row_bytes = row_bytes});
        }
}

static void add_sorts(struct probe_list *list, const struct scale *scale)
{
    static const uint64_t counts[] = {1 << 16, 1 << 18, 1 << 20,
                                      1 << 22, 1 << 24, 1 << 25};

    for (size_t i = 0; i < COUNT(counts) && counts[i] <= scale->max_pairs; i++)
        for (uint32_t key_bits = 16; key_bits <= 40; key_bits += 8)
            add(list, (struct probe){.kind = PROBE_SORT,
                                     .n = counts[i],
                                     .key_bits = key_bits});
}

size_t ceilings_list(struct probe probes[CEILINGS_MAX], bool is_host,
                     uint64_t max_bytes)
{
    const struct scale *scale = is_host ? &of_host : &of_gpu;
    struct probe_list list = {.probes = probes, .max_bytes = max_bytes};

    add(&list, (struct probe){.kind = PROBE_LAUNCH});
    add_streams(&list, scale);
    add_gathers(&list, scale);
    add_sorts(&list, scale);
    return list.n;
}

int bench_ceilings(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   struct ceiling_sink *sink, struct err *err)
{
    struct sample_setting setting = bench_setting(device, options);
    uint64_t free_bytes = device_free_bytes(device);
    struct probe probes[CEILINGS_MAX];
    double begin_ms = clock_ms();
    size_t n;

    free_bytes -= free_bytes / SPARE_PARTS;
    if (options->memory_bytes && options->memory_bytes < free_bytes)
        free_bytes = options->memory_bytes;
    *result = (struct bench_result){0};
    n = ceilings_list(probes, device_is_host(device), free_bytes);
    for (; result->n_cases < n; result->n_cases++) {
        const struct probe *probe = &probes[result->n_cases];
        struct ceiling ceiling;

        result->interrupted = interrupt_requested();
        result->out_of_time = bench_is_late(options, begin_ms);
        if (result->interrupted || result->out_of_time)
            return 0;
        if (!options->repeat && sink->has(sink->ctx, &setting, probe)) {
            result->n_resumed++;
            continue;
        }
        if (probe_run(&ceiling, device, probe, BENCH_MIN_ITERATIONS, err))
            return err_prefix(err, "probe '%s'", probe_kind_names[probe->kind]);
        if (sink->put(sink->ctx, &setting, &ceiling, err))
            return -1;
        result->n_measured++;
        result->n_flagged += ceiling.flags != 0;
        progress_update(options->progress, result->n_cases + 1);
    }
    return 0;
}
