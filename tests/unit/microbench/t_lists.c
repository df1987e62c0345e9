/* SPDX-License-Identifier: MIT */
/*
 * Hashes of the lists of cases, number by number. A database names a case by
 * its list and number, so a changed list needs another name (case_list_id). If
 * you change how cases are drawn, write the new hashes here.
 */
#include "base/hash.h"
#include "microbench/alltoall_case.h"
#include "microbench/bench_case.h"
#include "microbench/bench_options.h"
#include "microbench/ceilings.h"
#include "microbench/draws.h"
#include "microbench/sampler.h"
#include "microbench/sampler_designed.h"
#include "microbench/tasks.h"
#include "tests/tap.h"

#define GIB ((uint64_t)1 << 30)

static uint64_t add_number(uint64_t hash, double number)
{
    return hash_bytes(&number, sizeof(number), hash);
}

static uint64_t add_case(uint64_t hash, const struct bench_case *drawn)
{
    hash = add_number(hash, drawn->batch);
    hash = add_number(hash, drawn->precision);
    hash = add_number(hash, drawn->optimizer);
    hash = add_number(hash, drawn->n_tables);
    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct case_table *table = &drawn->tables[t];

        hash = add_number(hash, table->dim);
        hash = add_number(hash, (double)table->stream.n_rows);
        hash = add_number(hash, table->stream.pooling_factor);
        hash = add_number(hash, table->stream.use_bins);
        hash = add_number(hash, table->stream.zipf_alpha);
        for (unsigned k = 0; k < REUSE_BINS; k++)
            hash = add_number(hash, table->stream.bins[k]);
    }
    return hash;
}

static void is_sum(uint64_t hash, const char *want, const char *name)
{
    char text[HASH_TEXT_MAX];

    is_str(hash_text(text, hash), want, name);
}

static void test_cases(void)
{
    static const struct {
        bool is_mixed, is_designed;
        uint32_t batch, max_tables;
        uint64_t memory_bytes;
        double work_bytes;
        const char *want, *name;
    } cases[] = {
        {false, false, 4096, 15, 4 * GIB, 0, "957ba8328f52e444",
         "a plain list"},
        {false, false, 65536, 60, GIB / 16, 0, "75fa9ede4ea01ab3",
         "in little memory"},
        {true, false, 65536, 60, 40 * GIB, BENCH_CUDA_WORK_BYTES,
         "f69b7a9f43434af0", "a mixed list"},
        {true, false, 65536, 60, GIB, BENCH_CPU_WORK_BYTES, "be39336c02175a4a",
         "of a small device"},
        {true, false, 2048, 4, GIB / 16, BENCH_CPU_WORK_BYTES,
         "399c4644dd331205", "of few tables"},
        {true, true, 65536, 60, 40 * GIB, BENCH_CUDA_WORK_BYTES,
         "eacadb70136a7936", "a designed list"},
        {true, true, 65536, 60, GIB, BENCH_CPU_WORK_BYTES, "b1b63f9b35ab797a",
         "cut short"},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct bench_options options;
        struct case_bounds bounds;
        struct bench_case drawn;
        uint64_t hash, n = 400;

        bench_options_init(&options);
        options.seed = 7;
        options.is_mixed = cases[c].is_mixed;
        options.is_designed = cases[c].is_designed;
        options.batch = cases[c].batch;
        options.max_tables = cases[c].max_tables;
        options.memory_bytes = cases[c].memory_bytes;
        options.work_bytes = cases[c].work_bytes;
        if (options.is_designed)
            n = designed_n_cases();
        hash = case_list_id(&options);
        bounds = case_list_bounds(&options);
        hash = add_number(hash, (double)bounds.n_lookups);
        hash = add_number(hash, (double)bounds.n_bags);
        hash = add_number(hash, (double)bounds.n_outputs);
        hash = add_number(hash, bounds.dim);
        hash = add_number(hash, (double)case_weight_bytes(&options));
        hash = add_number(hash, (double)case_state_bytes(&options));
        for (uint64_t i = 0; i < n; i++) {
            case_draw(&drawn, &options, i);
            hash = add_case(hash, &drawn);
            hash = add_number(hash, case_work(&drawn));
        }
        case_sentinel(&drawn, &options);
        is_sum(add_case(hash, &drawn), cases[c].want, cases[c].name);
    }
}

static void test_ceilings(void)
{
    static const struct {
        bool is_host;
        uint64_t max_bytes;
        const char *want;
    } cases[] = {{true, 16 * GIB, "4fa78a62e4d936dc"},
                 {true, GIB / 64, "d219a5f06eecdb09"},
                 {false, 130 * GIB, "c999199e32482652"},
                 {false, 3 * GIB, "8cdf5651d645d0f1"}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct probe probes[CEILINGS_MAX];
        const size_t n =
            ceilings_list(probes, cases[c].is_host, cases[c].max_bytes);
        uint64_t hash = n;

        for (size_t i = 0; i < n; i++) {
            hash = add_number(hash, probes[i].kind);
            hash = add_number(hash, (double)probes[i].n_bytes);
            hash = add_number(hash, (double)probes[i].n);
            hash = add_number(hash, probes[i].row_bytes);
            hash = add_number(hash, probes[i].key_bits);
        }
        is_sum(hash, cases[c].want, "probes");
    }
}

/* Hashes the exchange and returns 1, "already stored", so that it is not
 * measured. */
static int note_exchange(void *ctx, const struct sample_setting *setting,
                         const struct comm_sample *sample)
{
    uint64_t *hash = ctx;

    (void)setting;
    *hash = add_number(*hash, sample->n_ranks);
    *hash = add_number(*hash, (double)sample->total_bytes);
    *hash = add_number(*hash, (double)sample->max_bytes);
    return 1;
}

static void test_exchanges(void)
{
    static const struct {
        uint32_t n_ranks, batch;
        uint64_t memory_bytes;
        const char *want;
    } cases[] = {{2, 65536, GIB / 16, "62ef56575a14dfa5"},
                 {8, 65536, GIB / 8, "4223681a23f86ae6"},
                 {64, 16, GIB / 64, "ca449e66fc4a1d41"}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct world *world = NULL;
        struct device *device = NULL;
        struct comm *comm = NULL;
        struct bench_options options;
        struct bench_result result = {0};
        uint64_t hash = 0;
        struct sample_sink sink = {.ctx = &hash, .has_comm = note_exchange};
        struct err err = {0};

        bench_options_init(&options);
        options.seed = 3;
        options.batch = cases[c].batch;
        options.memory_bytes = cases[c].memory_bytes;
        options.n_cases = 200;
        if (!ok(!world_open(&world, &err) &&
                    !device_open(&device, DEVICE_CPU, 0, 1, &err) &&
                    !comm_open(&comm, world, device, cases[c].n_ranks, &err) &&
                    !bench_alltoall(&result, comm, &options, &sink, &err),
                "%u ranks%s", cases[c].n_ranks, err.msg))
            exit(1);
        is_i64((int64_t)result.n_resumed, 200, "none is measured");
        is_sum(hash, cases[c].want, "exchanges");
        comm_close(comm);
        device_close(device);
        world_close(world);
    }
}

/* The tasks of the published benchmark, with a made-up table pool. */
static void test_tasks(void)
{
    struct arena arena = {0};
    uint64_t memory[4] = {4 * GIB, 4 * GIB, 4 * GIB, 4 * GIB};
    uint64_t reserve[4] = {0};
    struct problem pool = {.n_tables = 200,
                           .batch = 65536,
                           .cluster = {.n_devices = 4,
                                       .devices_per_host = 4,
                                       .memory_bytes = memory,
                                       .reserve_bytes = reserve}};
    uint64_t hash = 0;
    struct err err = {0};

    pool.tables = ARENA_NEW(&arena, struct table, pool.n_tables);
    for (size_t t = 0; t < pool.n_tables; t++) {
        table_init(&pool.tables[t]);
        pool.tables[t].name = arena_printf(&arena, "t%zu", t);
        pool.tables[t].num_embeddings = 1000 + t * t * t * 4;
    }
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct problem task;
        struct rng rng;

        rng_init(&rng, seed, 0);
        if (!ok(!task_draw(&task, &pool, &rng, &arena, &err), "a task%s",
                err.msg))
            continue;
        hash = add_number(hash, (double)task.n_tables);
        for (size_t t = 0; t < task.n_tables; t++) {
            hash = add_number(hash, (double)task.tables[t].num_embeddings);
            hash = add_number(hash, task.tables[t].dim);
        }
    }
    is_sum(hash, "51bb2a0a9e664c30", "30 tasks");
    arena_release(&arena);
}

int main(void)
{
    test_cases();
    test_ceilings();
    test_exchanges();
    test_tasks();
    return tap_done();
}
