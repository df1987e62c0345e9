/* SPDX-License-Identifier: MIT */
#include "cli/bench_alltoall.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/json.h"
#include "base/progress.h"
#include "cli/bench_summary.h"
#include "cli/comm_report.h"
#include "device/world.h"
#include "io/store.h"

#include <inttypes.h>
#include <stdio.h>

struct exchange_bench {
    struct cli *cli;
    struct bench_options *options;
    struct world *world;   /* owned */
    struct device *device; /* owned */
    struct comm *comm;     /* owned */
    struct store *store;   /* owned; NULL in all processes but the first */
    struct progress progress;
    struct bench_result result;
    double seconds;
};

/* Without a wish, the processes of a host share its processors. */
static unsigned threads_of(const struct cli *cli, const struct world *world)
{
    unsigned share = cpu_count() / world->local_size;

    if (cli_given(cli, "threads"))
        return (unsigned)cli_u64(cli, "threads");
    return share ? share : 1;
}

static int open_all(struct exchange_bench *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    enum device_kind kind = device_kind_from_name(cli_string(cli, "device"));

    if (device_open(&bench->device, kind, bench->world->local_rank,
                    threads_of(cli, bench->world), err) ||
        comm_open(&bench->comm, bench->world, bench->device,
                  (uint32_t)cli_u64(cli, "alltoall"), err))
        return -1;
    if (bench->world->rank)
        return 0;
    return store_open(&bench->store, cli_string(cli, "db"), STORE_WRITE, err);
}

static int measure(struct exchange_bench *bench, struct err *err)
{
    struct sample_sink sink = bench_sink(bench->store, bench->cli);
    bool is_first = !bench->world->rank;
    double begin_ms = clock_ms();
    int rc;

    progress_start(&bench->progress, "exchanges", bench->options->n_cases);
    bench->options->progress = is_first ? cli_progress : NULL;
    bench->options->progress_ctx = &bench->progress;
    rc = bench_alltoall(&bench->result, bench->comm, bench->options,
                        is_first ? &sink : NULL, err);
    progress_finish(&bench->progress);
    bench->seconds = (clock_ms() - begin_ms) / 1e3;
    return rc;
}

static void print_summary(const struct exchange_bench *bench,
                          const struct comm_sample *samples, size_t n)
{
    uint32_t n_hosts = bench->world->n_hosts;
    struct buf out = {0};

    bench_print_device(bench->device);
    printf("exchanges       between %" PRIu32 " ranks (%s) on %" PRIu32
           " host%s, batch %" PRIu32 ", seed %" PRIu64 "\n",
           bench->comm->n_ranks, bench->comm->kind, n_hosts,
           n_hosts == 1 ? "" : "s", bench->options->batch,
           bench->options->seed);
    bench_print_counts(&bench->result, "patterns", bench->options);
    printf("time            %.1f s\n", bench->seconds);
    printf("database        %s\n", cli_shown(bench->cli, "db"));
    comm_report_print(samples, n, &out);
    cli_print_report(&out);
}

static void print_json(const struct exchange_bench *bench,
                       const struct comm_sample *samples, size_t n)
{
    const struct bench_result *result = &bench->result;
    json_t *root = json_pack(
        "{s:o, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:s, "
        "s:f, s:s, s:o}",
        "machine", bench_machine_to_json(bench->device), "batch",
        (json_int_t)bench->options->batch, "seed",
        (json_int_t)bench->options->seed, "kind", bench->comm->kind, "ranks",
        (json_int_t)bench->comm->n_ranks, "hosts",
        (json_int_t)bench->world->n_hosts, "cases", (json_int_t)result->n_cases,
        "measured", (json_int_t)result->n_measured, "resumed",
        (json_int_t)result->n_resumed, "stopped", bench_stopped_by(result),
        "seconds", bench->seconds, "db", cli_shown(bench->cli, "db"),
        "held_out", comm_report_to_json(samples, n));

    cli_print_json(root);
}

/* The first process says what came out. */
static int report(struct exchange_bench *bench, struct err *err)
{
    struct sample_setting setting =
        bench_setting(bench->device, bench->options);
    struct comm_sample *samples;
    size_t n;

    if (bench->world->rank)
        return 0;
    if (store_comm_samples(bench->store, &setting, STORE_SETTING, &samples, &n,
                           cli_arena(bench->cli), err))
        return -1;
    if (cli_given(bench->cli, "json"))
        print_json(bench, samples, n);
    else
        print_summary(bench, samples, n);
    return bench_tell_interrupt(&bench->result, err);
}

int bench_exchanges(struct cli *cli, struct bench_options *options,
                    struct err *err)
{
    struct exchange_bench bench = {.cli = cli, .options = options};
    int rc;

    if (world_open(&bench.world, err))
        return -1;
    rc = open_all(&bench, err);
    if (!rc)
        rc = measure(&bench, err);
    if (!rc)
        rc = report(&bench, err);
    /* An interrupt is known to all of them. */
    if (rc && err->code != ERR_INTERRUPTED)
        cli_end_all(bench.world, err);
    store_close(bench.store);
    comm_close(bench.comm);
    device_close(bench.device);
    world_close(bench.world);
    return rc;
}
