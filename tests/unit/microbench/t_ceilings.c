/* SPDX-License-Identifier: MIT */
#include "microbench/ceilings.h"
#include "tests/tap.h"

#include "base/mem.h"
#include "microbench/bench_options.h"

#define MIB ((uint64_t)1 << 20)

struct kept {
    struct ceiling ceilings[CEILINGS_MAX];
    size_t n;
};

static int keep(void *ctx, const struct sample_setting *setting,
                const struct ceiling *ceiling, struct err *err)
{
    struct kept *kept = ctx;

    if (kept->n == CEILINGS_MAX || !setting->device)
        return err_set(err, ERR_IO, "unexpected");
    kept->ceilings[kept->n++] = *ceiling;
    return 0;
}

static bool same_probe(const struct probe *a, const struct probe *b)
{
    return a->kind == b->kind && a->n_bytes == b->n_bytes && a->n == b->n &&
           a->row_bytes == b->row_bytes && a->key_bits == b->key_bits;
}

static bool is_kept(void *ctx, const struct sample_setting *setting,
                    const struct probe *probe)
{
    const struct kept *kept = ctx;

    (void)setting;
    for (size_t i = 0; i < kept->n; i++)
        if (same_probe(&kept->ceilings[i].probe, probe))
            return true;
    return false;
}

/* Tests that the list has each probe once, that each fits the memory, and that
 * all kinds occur. */
static void test_list(bool is_host, uint64_t max_bytes, size_t n_at_least)
{
    struct probe probes[CEILINGS_MAX];
    size_t n = ceilings_list(probes, is_host, max_bytes);
    unsigned kinds = 0;
    int n_bad = 0;

    for (size_t i = 0; i < n; i++) {
        kinds |= 1u << probes[i].kind;
        n_bad += probe_memory_bytes(&probes[i]) > max_bytes;
        for (size_t j = 0; j < i; j++)
            n_bad += same_probe(&probes[i], &probes[j]);
    }
    is_i64(n_bad, 0, "no probe twice, and none too large");
    is_i64(kinds, 31, "all kinds");
    ok(n >= n_at_least && n < CEILINGS_MAX, "%zu probes", n);
}

static void test_gathers(void)
{
    struct probe probes[CEILINGS_MAX];
    size_t n = ceilings_list(probes, false, (uint64_t)130 << 30);
    uint64_t least = UINT64_MAX, most = 0;
    unsigned widths = 0;
    int n_bad = 0;

    for (size_t i = 0; i < n; i++) {
        if (probes[i].kind != PROBE_GATHER)
            continue;
        n_bad += probes[i].n_bytes / probes[i].row_bytes >> 32 != 0;
        widths |= probes[i].row_bytes;
        least = probes[i].n_bytes < least ? probes[i].n_bytes : least;
        most = probes[i].n_bytes > most ? probes[i].n_bytes : most;
    }
    is_i64(widths, 16 | 32 | 64 | 128 | 256 | 512 | 1024 | 2048, "widths");
    ok(least == MIB && most >= (uint64_t)100 << 30,
       "from the size of a cache to nearly all memory");
    is_i64(n_bad, 0, "rows are counted in 32 bits");
}

static void run_ok(struct bench_result *result, struct device *device,
                   const struct bench_options *options, struct kept *kept)
{
    struct ceiling_sink sink = {kept, keep, is_kept};
    struct err err = {0};

    if (bench_ceilings(result, device, options, &sink, &err)) {
        ok(0, "ceilings: %s", err.msg);
        exit(1);
    }
}

static void test_run(struct device *device, uint64_t memory_bytes)
{
    struct kept *kept = mem_alloc(1, sizeof(*kept));
    struct bench_options options;
    struct bench_result result;
    int n_bad = 0;
    size_t n;

    bench_options_init(&options);
    options.memory_bytes = memory_bytes;
    run_ok(&result, device, &options, kept);
    n = kept->n;
    ok(n > 10 && result.n_measured == n && result.n_cases == n, "measured");
    for (size_t i = 0; i < n; i++) {
        const struct timing *timing = &kept->ceilings[i].timing;

        n_bad += !(timing->median_ms > 0 && timing->p10_ms > 0 &&
                   timing->p10_ms <= timing->median_ms &&
                   timing->median_ms <= timing->p90_ms);
    }
    is_i64(n_bad, 0, "all have a time");
    kept->ceilings[3].probe.n_bytes = 1;
    run_ok(&result, device, &options, kept);
    ok(result.n_measured == 1 && result.n_resumed == n - 1,
       "only missing probes are measured");
    kept->n = 0;
    options.repeat = true;
    options.time_limit_s = 1e-9;
    run_ok(&result, device, &options, kept);
    ok(result.out_of_time && kept->n == 0, "the time limit ends it");
    mem_free(kept);
}

int main(void)
{
    struct device *device;
    struct err err = {0};

    test_list(true, (uint64_t)4 << 30, 40);
    test_list(true, 16 * MIB, 20);
    test_list(false, (uint64_t)130 << 30, 100);
    test_list(false, (uint64_t)16 << 30, 60);
    test_gathers();
    if (device_open(&device, DEVICE_CPU, 0, 2, &err)) {
        ok(0, "device: %s", err.msg);
        return tap_done();
    }
    test_run(device, 24 * MIB);
    device_close(device);
    return tap_done();
}
