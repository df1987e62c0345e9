/* SPDX-License-Identifier: MIT */
#include "tests/unit/device/devices.h"

#include "device/device_ops.h"
#include "device/probe.h"
#include "device/stream_math.h"

static void test_bytes(void)
{
    static const struct {
        const char *name;
        struct probe probe;
        double moved;
        uint64_t memory;
    } CASES[] = {
        {"read", {PROBE_READ, 1000, 0, 0, 0}, 1000, 1000},
        {"copy", {PROBE_COPY, 1000, 0, 0, 0}, 2000, 2000},
        {"gather",
         {PROBE_GATHER, 1 << 20, 100, 512, 0},
         51600,
         (1 << 20) + 400},
        /* 8 bytes per pair; 17 bits need three passes */
        {"sort", {PROBE_SORT, 0, 1000, 0, 17}, 48000, 24000 + 1000 + (1 << 20)},
        {"sort", {PROBE_SORT, 0, 1000, 0, 32}, 64000, 24000 + 1000 + (1 << 20)},
        /* 12 bytes per pair, five passes */
        {"sort",
         {PROBE_SORT, 0, 1000, 0, 33},
         120000,
         36000 + 1000 + (1 << 20)},
        {"launch", {PROBE_LAUNCH, 0, 0, 0, 0}, 0, 1 << 20},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        is_str(probe_kind_names[CASES[i].probe.kind], CASES[i].name, "name");
        is_near(probe_moved_bytes(&CASES[i].probe), CASES[i].moved, 0,
                "bytes moved");
        is_i64((int64_t)probe_memory_bytes(&CASES[i].probe),
               (int64_t)CASES[i].memory, "memory");
    }
}

static void test_timings(struct device *device)
{
    static const struct probe PROBES[] = {
        {PROBE_READ, 1 << 20, 0, 0, 0},
        {PROBE_READ, 4, 0, 0, 0},
        {PROBE_COPY, 3000016, 0, 0, 0},
        {PROBE_GATHER, 1 << 20, 1, 16, 0},
        {PROBE_GATHER, 1 << 20, 5000, 32, 0},
        {PROBE_GATHER, 64, 5001, 64, 0},
        {PROBE_GATHER, 1 << 20, 999, 112, 0},
        {PROBE_GATHER, 1 << 20, 77, 256, 0},
        {PROBE_GATHER, 1 << 20, 512, 512, 0},
        {PROBE_GATHER, 99840, 400, 2080, 0},
        {PROBE_SORT, 0, 1, 0, 1},
        {PROBE_SORT, 0, 20000, 0, 20},
        {PROBE_SORT, 0, 20000, 0, 32},
        {PROBE_SORT, 0, 20001, 0, 40},
        {PROBE_LAUNCH, 0, 0, 0, 0},
    };
    const size_t n = sizeof PROBES / sizeof PROBES[0];
    uint64_t n_free = 0;

    /* runs all twice, because CUDA itself keeps some memory in the first
     * round */
    for (size_t i = 0; i < 2 * n; i++) {
        const struct probe *probe = &PROBES[i % n];
        struct ceiling ceiling = {.n_iterations = 0};
        const struct timing *timing = &ceiling.timing;
        struct err err = {0};

        if (i == n)
            n_free = device_free_bytes(device);
        ok(!probe_run(&ceiling, device, probe, 3, &err) &&
               timing->median_ms > 0 && timing->p10_ms <= timing->median_ms &&
               timing->median_ms <= timing->p90_ms,
           "%s %zu %s", probe_kind_names[probe->kind], i, err.msg);
    }
    if (device->kind == DEVICE_CUDA)
        ok(device_free_bytes(device) + (1 << 20) > n_free,
           "nothing is left behind");
}

/* Tests that the device's sort is stable and sorts by exactly the given
 * bits. */
static void test_sort(struct device *device, uint32_t n, unsigned key_bits)
{
    const struct probe probe = {
        .kind = PROBE_SORT, .n = n, .key_bits = key_bits};
    const uint64_t mask = key_bits < 64 ? (UINT64_C(1) << key_bits) - 1 : ~0ull;
    struct probe_job job = {.probe = &probe,
                            .pairs.key_bytes = key_bits > 32 ? 8 : 4};
    struct device_pairs *pairs = &job.pairs;
    const size_t key_bytes = pairs->key_bytes;
    struct err err = {0};
    uint64_t before = 0, sum = 0, n_given = 0;
    char *keys = mem_alloc(n, key_bytes);
    uint32_t *values = mem_alloc(n, sizeof *values);
    int in_order = 0;

    for (uint32_t i = 0; i < n; i++) {
        /* clears some bits, so that some keys are equal */
        uint64_t key = stream_random(1, i) & ~0x38ull;

        memcpy(keys + i * key_bytes, &key, key_bytes);
        values[i] = i;
    }
    for (unsigned i = 0; i < 2; i++) {
        pairs->d_keys[i] = test_device_alloc(device, n * key_bytes);
        pairs->d_values[i] = test_device_alloc(device, n * sizeof *values);
    }
    ok(!device->ops->probe_scratch(device, &job, &err) &&
           !device_upload(device, pairs->d_keys[0], keys, n * key_bytes,
                          &err) &&
           !device_upload(device, pairs->d_values[0], values,
                          n * sizeof *values, &err),
       "prepared %s", err.msg);
    job.d_scratch = test_device_alloc(device, job.scratch_bytes);
    pairs->d_temp = test_device_alloc(device, pairs->temp_bytes);
    ok(!device->ops->probe(device, &job, &err), "sorted %s", err.msg);
    /* the result is in one of two buffers; the sorted one shows which */
    for (unsigned i = 0; i < 2 && !in_order; i++) {
        uint32_t *got =
            test_device_copy(device, pairs->d_values[i], n * sizeof *got);

        in_order = 1;
        before = sum = n_given = 0;
        for (uint32_t j = 0; j < n && in_order; j++) {
            uint64_t key = 0;

            in_order &= got[j] < n;
            if (!in_order)
                break;
            memcpy(&key, keys + got[j] * key_bytes, key_bytes);
            key &= mask;
            in_order &=
                !j || before < key || (before == key && got[j] > got[j - 1]);
            before = key;
            sum += got[j];
            n_given++;
        }
        mem_free(got);
    }
    ok(in_order && n_given == n && sum == (uint64_t)n * (n - 1) / 2,
       "%u pairs by %u bits, stably", n, key_bits);
    for (unsigned i = 0; i < 2; i++) {
        device_free(device, pairs->d_keys[i]);
        device_free(device, pairs->d_values[i]);
    }
    device_free(device, job.d_scratch);
    device_free(device, pairs->d_temp);
    mem_free(keys);
    mem_free(values);
}

static void test_short_of_memory(struct device *device)
{
    const struct probe probe = {.kind = PROBE_COPY,
                                .n_bytes = UINT64_C(1) << 50};
    struct ceiling ceiling;
    struct err err = {0};

    is_i64(probe_run(&ceiling, device, &probe, 3, &err), -1,
           "1 PiB is refused");
    is_i64(err.code, ERR_DEVICE, "a device error");
    ok(strstr(err.msg, "cannot allocate 2.00 PiB on ") == err.msg ||
           strstr(err.msg, "cannot allocate 2048 TiB on ") == err.msg,
       "says so: %s", err.msg);
}

int main(void)
{
    test_bytes();
    for (size_t i = 0; i < N_TEST_DEVICES; i++) {
        struct device *device = test_device_open(&TEST_DEVICES[i]);

        if (!device)
            continue;
        test_timings(device);
        test_sort(device, 30000, 7);
        test_sort(device, 30000, 24);
        test_sort(device, 30001, 32);
        test_sort(device, 30001, 45);
        test_short_of_memory(device);
        device_close(device);
    }
    return tap_done();
}
