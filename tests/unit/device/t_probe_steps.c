/* SPDX-License-Identifier: MIT */
/* Tests which calls a probe makes on its device: its preparations, the runs
 * that are held and timed, and its cleanup. */
#include "tests/unit/device/recorded_device.h"

#include "tests/tap.h"

static const double times[] = {100, 200, 3, 1, 2};

struct part {
    const char *at;
    size_t n;
};

/* Returns true if all parts lie within the block and do not overlap. */
static bool are_apart(const struct recorded *own, const struct part *parts,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].at < own->block ||
            parts[i].at + parts[i].n > own->block + own->n_bytes)
            return false;
        for (size_t j = 0; j < i; j++)
            if (parts[i].n && parts[j].n &&
                parts[i].at < parts[j].at + parts[j].n &&
                parts[j].at < parts[i].at + parts[i].n)
                return false;
    }
    return true;
}

static void run(struct recorded *own, const struct probe *probe,
                const char *calls)
{
    struct ceiling ceiling = {.flags = 77};
    struct err err = {0};
    const int rc = probe_run(&ceiling, &own->device, probe, 3, &err);

    ok(!rc && asked(own, calls), "%s: %s", probe_kind_names[probe->kind],
       err.msg);
    ok(ceiling.probe.kind == probe->kind && ceiling.n_iterations == 3 &&
           !ceiling.flags && ceiling.timing.median_ms == 2,
       "the median of the timed runs: %g", ceiling.timing.median_ms);
}

static void test_kinds(void)
{
    static const struct probe copy = {PROBE_COPY, 4000, 0, 0, 0},
                              read = {PROBE_READ, 4000, 0, 0, 0},
                              launch = {PROBE_LAUNCH, 0, 0, 0, 0};
    struct recorded own;
    const struct probe_job *job = &own.job;

    recorded_init(&own, DEVICE_CUDA, times, 5);
    run(&own, &read, "saF(~0p1re)2(h~0p1re)3x");
    ok(own.fill.n_rows == 1000 && own.fill.seed == 1 && own.fill.width == 1 &&
           own.fill.precision == PRECISION_FP32 && !own.n_drawn,
       "all that is read is filled");
    ok(!job->d_dst && !job->d_indices && !job->pairs.d_keys[0] &&
           own.n_bytes < 4000 + 1000 + 16 + 4 * 256,
       "a read has nothing else");

    run(&own, &copy, "saF(~0p1re)2(h~0p1re)3x");
    ok(own.fill.n_rows == 1000, "all that is copied is filled");
    ok(are_apart(&own,
                 (const struct part[]){{job->d_scratch, 1000},
                                       {job->d_src, 4000},
                                       {job->d_dst, 4000}},
                 3) &&
           own.n_bytes < 8000 + 1000 + 16 + 4 * 256,
       "from one place to another");

    run(&own, &launch, "sa(~0p1re)2(h~0p1re)3x");
    ok(own.n_bytes < 1000 + 16 + 3 * 256, "a launch needs scratch alone");
    recorded_release(&own);
}

static void test_gather(void)
{
    static const struct probe gather = {PROBE_GATHER, 6400, 500, 64, 0};
    struct recorded own;
    const struct probe_job *job = &own.job;

    recorded_init(&own, DEVICE_CUDA, times, 5);
    run(&own, &gather, "saFD(~0p1re)2(h~0p1re)3x");
    ok(own.streams[0].n_rows == 100 && own.streams[0].batch == 1 &&
           own.streams[0].pooling_factor == 500 && own.batch_seeds[0] == 1 &&
           own.d_drawn[0] == job->d_indices,
       "500 of 100 rows are drawn");
    ok(are_apart(&own,
                 (const struct part[]){{own.d_offsets, 16},
                                       {job->d_scratch, 1000},
                                       {job->d_src, 6400},
                                       {job->d_indices, 2000}},
                 4),
       "each part has its place");
    recorded_release(&own);
}

static void test_sort(void)
{
    static const struct {
        uint32_t key_bits;
        size_t key_bytes;
    } CASES[] = {{1, 4}, {32, 4}, {33, 8}, {64, 8}};
    struct recorded own;
    const struct probe_job *job = &own.job;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const size_t key_bytes = CASES[i].key_bytes;
        const struct probe sort = {PROBE_SORT, 0, 700, 0, CASES[i].key_bits};

        recorded_init(&own, DEVICE_CUDA, times, 5);
        run(&own, &sort, "saDD(c~0p1re)2(ch~0p1re)3x");
        ok(own.streams[0].n_rows == 0xffffffff &&
               own.streams[1].n_rows == 0xffffffff &&
               own.streams[0].pooling_factor == (double)(175 * key_bytes) &&
               own.streams[1].pooling_factor == 700,
           "keys of %zu bytes and values are drawn", key_bytes);
        ok(own.copied[0] == 700 * key_bytes && own.copied[1] == 2800,
           "and come back before each run");
        ok(job->pairs.key_bytes == key_bytes &&
               are_apart(&own,
                         (const struct part[]){
                             {own.d_offsets, 16},
                             {job->d_scratch, 1000},
                             {own.d_drawn[0], 700 * key_bytes},
                             {own.d_drawn[1], 2800},
                             {job->pairs.d_keys[0], 700 * key_bytes},
                             {job->pairs.d_keys[1], 700 * key_bytes},
                             {(char *)job->pairs.d_values[0], 2800},
                             {(char *)job->pairs.d_values[1], 2800},
                             {job->pairs.d_temp, 3000}},
                         9),
           "each part has its place");
        recorded_release(&own);
    }
}

/* If a call fails, the probe ends and its memory is freed. */
static void test_failures(void)
{
    static const struct probe gather = {PROBE_GATHER, 6400, 500, 64, 0},
                              sort = {PROBE_SORT, 0, 700, 0, 40};
    static const struct {
        const struct probe *probe;
        char failing;
        const char *calls;
    } CASES[] = {
        {&gather, 's', "s"},
        {&gather, 'a', "sa"},
        {&gather, 'F', "saFx"},
        {&gather, 'D', "saFDx"},
        {&gather, '~', "saFD~x"},
        {&gather, '0', "saFD~0x"},
        {&gather, 'p', "saFD~0px"},
        {&gather, '1', "saFD~0p1x"},
        {&gather, 'r', "saFD~0p1rx"},
        {&gather, 'e', "saFD~0p1rex"},
        {&gather, 'h', "saFD(~0p1re)2hx"},
        {&sort, 'D', "saDx"},
        {&sort, 'c', "saDDcx"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct recorded own;
        struct ceiling ceiling;
        struct err err = {0};

        recorded_init(&own, DEVICE_CUDA, times, 5);
        own.failing = CASES[i].failing;
        ok(probe_run(&ceiling, &own.device, CASES[i].probe, 3, &err) == -1 &&
               err.code == ERR_DEVICE && asked(&own, CASES[i].calls),
           "%c fails: %s", CASES[i].failing, err.msg);
        recorded_release(&own);
    }
}

/* Lowered clocks are recorded as a flag. */
static void test_flags(void)
{
    static const struct probe launch = {PROBE_LAUNCH, 0, 0, 0, 0};
    struct recorded own;
    struct ceiling ceiling;
    struct err err = {0};

    recorded_init(&own, DEVICE_CUDA, times, 5);
    own.health.sm_mhz = 1000;
    own.device.top_sm_mhz = 2000;
    ok(!probe_run(&ceiling, &own.device, &launch, 3, &err) &&
           ceiling.flags == SAMPLE_THROTTLED,
       "a slow clock is flagged");
    recorded_release(&own);
}

/* A region is allocated again if it has fewer bytes than needed; otherwise it
 * is reused. */
static void test_region(void)
{
    static const struct {
        size_t n_bytes, n_there;
        const char *calls;
    } CASES[] = {{100, 100, "a"},  {100, 100, ""}, {50, 100, ""},
                 {101, 101, "xa"}, {101, 101, ""}, {4000, 4000, "xa"}};
    struct device_region region = {0};
    struct recorded own;
    struct err err = {0};

    recorded_init(&own, DEVICE_CUDA, times, 5);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        ok(!device_reserve(&own.device, &region, CASES[i].n_bytes, &err) &&
               region.n_bytes == CASES[i].n_there && region.d_ptr &&
               asked(&own, CASES[i].calls),
           "%zu bytes", CASES[i].n_bytes);
    own.failing = 'a';
    ok(device_reserve(&own.device, &region, 5000, &err) == -1 &&
           !region.d_ptr && !region.n_bytes && asked(&own, "xa"),
       "a region that does not fit is not allocated");
    device_free(&own.device, &own);
    ok(asked(&own, ""), "a missing region is not freed");
    recorded_release(&own);
}

int main(void)
{
    test_region();
    test_kinds();
    test_gather();
    test_sort();
    test_failures();
    test_flags();
    return tap_done();
}
