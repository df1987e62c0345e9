/* SPDX-License-Identifier: MIT */
#include "cli/bench_summary.h"

#include "base/cpu.h"
#include "costmodel/comm_report.h"

#include <inttypes.h>

/* Without a wish, the processes of a host share its processors. */
static int open_all(struct bench *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    enum device_kind kind = device_kind_from_name(cli_string(cli, "device"));
    uint64_t n_threads = cpu_count() / bench->world->local_size;

    if (cli_given(cli, "threads"))
        n_threads = cli_u64(cli, "threads");
    if (device_open(&bench->device, kind, bench->world->local_rank,
                    (unsigned)max_u64(n_threads, 1), err) ||
        comm_open(&bench->comm, bench->world, bench->device,
                  (uint32_t)cli_u64(cli, "alltoall"), err))
        return -1;
    if (bench->world->rank)
        return 0;
    return store_open(&bench->store, cli_string(cli, "db"), STORE_WRITE, err);
}

static int measure(struct bench *bench, struct err *err)
{
    struct sample_sink sink = bench_sink(bench);
    bool is_first = !bench->world->rank;
    int rc;

    bench_begin(bench, "exchanges", bench->options.n_cases);
    if (!is_first)
        bench->options.progress = NULL;
    rc = bench_alltoall(&bench->result, bench->comm, &bench->options,
                        is_first ? &sink : NULL, err);
    bench_end(bench);
    return rc;
}

static void print_text(const struct bench *bench,
                       const struct comm_sample *samples, size_t n)
{
    uint32_t n_hosts = bench->world->n_hosts;

    bench_print_device(bench->device);
    cli_printf("exchanges       between %u ranks (%s) on %u host%s, batch %u, "
               "seed %" PRIu64 "\n",
               bench->comm->n_ranks, bench->comm->kind, n_hosts,
               n_hosts == 1 ? "" : "s", bench->options.batch,
               bench->options.seed);
    bench_print_counts(bench, "patterns");
    cli_printf("time            %.1f s\n", bench->seconds);
    cli_printf("database        %s\n", cli_shown(bench->cli, "db"));
    comm_report_print(samples, n, cli_text());
}

static void print_json(const struct bench *bench,
                       const struct comm_sample *samples, size_t n)
{
    const struct bench_result *result = &bench->result;
    json_t *root = json_pack(
        "{s:o, s:i, s:I, s:s, s:i, s:i, s:I, s:I, s:I, s:s, s:f, s:s, s:o}",
        "machine", bench_machine_to_json(bench->device), "batch",
        bench->options.batch, "seed", (json_int_t)bench->options.seed, "kind",
        bench->comm->kind, "ranks", bench->comm->n_ranks, "hosts",
        bench->world->n_hosts, "cases", (json_int_t)result->n_cases, "measured",
        (json_int_t)result->n_measured, "resumed",
        (json_int_t)result->n_resumed, "stopped", bench_stopped_by(result),
        "seconds", bench->seconds, "db", cli_shown(bench->cli, "db"),
        "held_out", comm_report_to_json(samples, n));

    cli_print_json(root);
}

/* The first process says what came out. */
static int report(struct bench *bench, struct err *err)
{
    struct sample_setting setting =
        bench_setting(bench->device, &bench->options);
    struct comm_sample *samples;
    size_t n;

    if (bench->world->rank)
        return 0;
    if (store_comm_samples(bench->store, &setting, STORE_SETTING, &samples, &n,
                           bench->cli->arena, err))
        return -1;
    (cli_given(bench->cli, "json") ? print_json : print_text)(bench, samples,
                                                              n);
    return bench_tell_interrupt(&bench->result, err);
}

int bench_exchanges(struct bench *bench, struct err *err)
{
    int rc;

    if (cli_open_world(&bench->world, bench->cli, err))
        return -1;
    if (!bench->world)
        return 0;
    rc = open_all(bench, err) || measure(bench, err) || report(bench, err);
    /* An interrupt is known to all of them. */
    if (rc && err->code != ERR_INTERRUPTED)
        cli_end_all(bench->world, err);
    return rc ? -1 : 0;
}
