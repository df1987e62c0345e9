/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/bench_summary.h"
#include "io/csv.h"
#include "io/store_merge.h"
#include "microbench/ceilings.h"

#include <inttypes.h>
#include <stdio.h>

/* Of mixed cases, where the options do not say. */
#define MIXED_BATCH 65536
#define MIXED_MAX_TABLES 60

static const struct option_spec own_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database that gets the samples; made where missing"},
    {"device", 0, OPTION_CHOICE, "KIND", "cpu", 0, 0, DEVICE_KIND_NAMES,
     "what is measured"},
    {"samples", 'n', OPTION_U64, "N", "1000", 0, 1e9, NULL,
     "cases of the list to have; with only a time limit, all that fit"},
    {"time-limit", 0, OPTION_DOUBLE, "S", "0", 0, 1e9, NULL,
     "seconds to stop after; 0: none"},
    {"mixed", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "batch, precision and optimizer drawn for each case; default on a GPU"},
    {"designed", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "a fixed list of mixed cases that a device's figures are read from"},
    {"batch", 0, OPTION_U64, "B", "4096", 1, 16777216, NULL,
     "samples looked up in a step; with mixed cases the largest, 65536"},
    {"precision", 0, OPTION_CHOICE, "NAME", "fp32", 0, 0, "fp32|fp16",
     "of the weights"},
    {"optimizer", 0, OPTION_CHOICE, "NAME", "rowwise_adagrad", 0, 0,
     "sgd|rowwise_adagrad", "that updates the weights"},
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "CPU threads; without it all"},
    {"max-tables", 0, OPTION_U64, "N", "15", 1, BENCH_MAX_TABLES, NULL,
     "tables that are fused at most; with mixed cases 60"},
    {"memory", 0, OPTION_BYTES, "SIZE", "4GiB", 0, 0, NULL,
     "for the tables of a case and their states; on a GPU what fits"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL, "seed of the cases"},
    {"repeat", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "measure again what is there, to see how well figures repeat"},
    {"ceilings", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "measure what the device can do at best instead of look-ups"},
    {"alltoall", 0, OPTION_U64, "RANKS", NULL, 2, 1024, NULL,
     "measure exchanges between so many ranks instead of look-ups"},
    {"ranks", 0, OPTION_U64, "N", NULL, 2, WORLD_MAX_FORKS, NULL,
     "processes to start for '--alltoall', one for each rank"},
    {"csv", 0, OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "afterwards write all samples of the database as text"},
    {"verbose", 'v', OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print a line for each sample once it is safe"},
    {0},
};

/* What goes with what. */
static int check_options(const struct cli *cli, struct err *err)
{
    static const char *const alone[] = {"repeat", "ceilings", "mixed",
                                        "designed", "csv"};

    for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++)
        if (cli_given(cli, alone[i]) && cli_given(cli, "alltoall"))
            return err_set(err, ERR_USAGE,
                           "options '--%s' and '--alltoall' exclude each other",
                           alone[i]);
    if (cli_given(cli, "ranks") && !cli_given(cli, "alltoall"))
        return err_set(err, ERR_USAGE,
                       "option '--ranks' goes with '--alltoall' only");
    if ((cli_given(cli, "mixed") || cli_given(cli, "designed")) &&
        (cli_given(cli, "precision") || cli_given(cli, "optimizer")))
        return err_set(err, ERR_USAGE,
                       "option '--%s' has precisions and optimizers of its "
                       "own, so that none can be given",
                       cli_given(cli, "mixed") ? "mixed" : "designed");
    if (!cli_u64(cli, "samples") && !cli_given(cli, "csv"))
        return err_set(err, ERR_USAGE,
                       "option '--samples 0' measures nothing, which only "
                       "makes sense with '--csv'");
    return 0;
}

/* The defaults of mixed cases and of GPUs differ from those in the table. */
static void adapt_options(struct bench_options *options, const struct cli *cli)
{
    bool is_gpu =
        device_kind_from_name(cli_string(cli, "device")) != DEVICE_CPU;
    bool has_setting = cli_given(cli, "batch") || cli_given(cli, "precision") ||
                       cli_given(cli, "optimizer");

    if (is_gpu) {
        options->work_bytes = BENCH_CUDA_WORK_BYTES;
        if (!cli_given(cli, "memory"))
            options->memory_bytes = 0; /* what fits */
    }
    options->is_designed = cli_given(cli, "designed");
    if (!cli_given(cli, "samples") &&
        (options->is_designed || options->time_limit_s > 0))
        options->n_cases = 0; /* all of them, or what fits */
    options->is_mixed = cli_given(cli, "mixed") || options->is_designed ||
                        (is_gpu && !has_setting);
    if (options->is_mixed && !cli_given(cli, "batch"))
        options->batch = MIXED_BATCH;
    if (options->is_mixed && !cli_given(cli, "max-tables"))
        options->max_tables = MIXED_MAX_TABLES;
}

static int read_options(struct bench_options *options, const struct cli *cli,
                        struct err *err)
{
    bench_options_init(options);
    options->seed = cli_u64(cli, "seed");
    options->n_cases = cli_u64(cli, "samples");
    options->time_limit_s = cli_double(cli, "time-limit");
    options->batch = (uint32_t)cli_u64(cli, "batch");
    options->precision = (enum precision)text_choice(
        precision_names, cli_string(cli, "precision"));
    options->optimizer = (enum optimizer)text_choice(
        optimizer_names, cli_string(cli, "optimizer"));
    options->max_tables = (uint32_t)cli_u64(cli, "max-tables");
    options->memory_bytes = cli_u64(cli, "memory");
    options->repeat = cli_given(cli, "repeat");
    if (check_options(cli, err))
        return -1;
    if (cli_given(cli, "alltoall"))
        return bench_check_options(options, err);
    adapt_options(options, cli);
    return 0;
}

/* All samples of the database, whatever device they are of; where nothing was
 * measured, that is the answer. */
static int write_csv(const struct bench *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    struct buf text = {0};
    int rc = store_samples_to_csv(&text, bench->store, err);
    size_t n_lines = 0; /* with the header's */

    for (size_t i = 0; i < text.len; i++)
        n_lines += text.data[i] == '\n';
    if (!rc)
        rc = file_write_checked(cli_string(cli, "csv"), text.data, text.len,
                                csv_check, err);
    if (!rc && !cli_u64(cli, "samples"))
        cli_print_json(json_pack("{s:s, s:s, s:I}", "db", cli_shown(cli, "db"),
                                 "csv", cli_shown(cli, "csv"), "samples",
                                 (json_int_t)n_lines - 1));
    buf_release(&text);
    return rc;
}

static void tell_flagged(const void *ctx, struct buf *out)
{
    const struct bench_result *result = ctx;

    if (result->n_flagged)
        buf_printf(out, ", %" PRIu64 " disturbed", result->n_flagged);
}

static void tell_stored(const char *line)
{
    puts(line);
    fflush(stdout);
}

/* What is measured, by the options; of several processes the first shows how
 * far it is. */
static int measure(struct bench *bench, struct err *err)
{
    const bool is_of_ceilings = cli_given(bench->cli, "ceilings");
    const bool is_first = !bench->world || !bench->world->rank;
    const double begin_ms = clock_ms();
    struct bench_options options = bench->options;
    struct sample_sink sink = store_sink(bench->store);
    struct ceiling_sink ceilings = {bench->store, store_put_ceiling,
                                    store_has_ceiling};
    struct progress progress;
    int rc;

    progress_start(&progress,
                   bench->comm      ? "exchanges"
                   : is_of_ceilings ? "probes"
                                    : "cases",
                   is_of_ceilings ? 0 : options.n_cases,
                   cli_given(bench->cli, "verbose"));
    progress.limit_s = options.time_limit_s;
    progress.tell = tell_flagged;
    progress.ctx = &bench->result;
    options.progress = is_first ? &progress : NULL;
    sink.tell = progress.is_logged ? tell_stored : NULL;
    if (bench->comm)
        rc = bench_alltoall(&bench->result, bench->comm, &options,
                            is_first ? &sink : NULL, err);
    else if (is_of_ceilings)
        rc = bench_ceilings(&bench->result, bench->device, &options, &ceilings,
                            err);
    else
        rc = bench_lookup(&bench->result, bench->device, &options, &sink, err);
    progress_finish(&progress);
    bench->seconds = (clock_ms() - begin_ms) / 1e3;
    return rc;
}

/* ERR_INTERRUPTED, and how to go on, where it was. */
static int tell_interrupt(const struct bench_result *result, struct err *err)
{
    if (!result->interrupted)
        return 0;
    return err_set(err, ERR_INTERRUPTED,
                   "interrupted; what was measured is stored, and the same "
                   "command continues from there");
}

/* Without a wish, the processes of a host share its processors. */
static int open_ranks(struct bench *bench, struct err *err)
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

/* One process is all ranks; started by a launcher, each process is one, and the
 * first of them stores and prints. */
static int run_exchanges(struct bench *bench, struct err *err)
{
    int rc;

    if (cli_open_world(&bench->world, bench->cli, err))
        return -1;
    if (!bench->world)
        return 0;
    rc = open_ranks(bench, err) || measure(bench, err) ||
         (!bench->world->rank && (bench_print_exchanges(bench, err) ||
                                  tell_interrupt(&bench->result, err)));
    /* An interrupt is known to all of them. */
    if (rc && err->code != ERR_INTERRUPTED)
        cli_end_all(bench->world, err);
    return rc ? -1 : 0;
}

/* And what the options leave open until its memory is known. */
static int open_device(struct bench *bench, struct err *err)
{
    const struct cli *cli = bench->cli;

    if (device_open(&bench->device,
                    device_kind_from_name(cli_string(cli, "device")), 0,
                    (unsigned)cli_u64(cli, "threads"), err))
        return -1;
    if (cli_given(cli, "ceilings"))
        return 0;
    if (bench_fit_memory(&bench->options, bench->device, err))
        return -1;
    return bench_check_options(&bench->options, err);
}

static int run_lookups(struct bench *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    bool measures = cli_u64(cli, "samples") > 0;

    if ((measures && open_device(bench, err)) ||
        store_open(&bench->store, cli_string(cli, "db"),
                   measures ? STORE_WRITE : STORE_READ, err) ||
        (measures &&
         (measure(bench, err) ||
          (cli_given(cli, "ceilings") ? bench_print_ceilings
                                      : bench_print_lookups)(bench, err) ||
          tell_interrupt(&bench->result, err))))
        return -1;
    return cli_given(cli, "csv") ? write_csv(bench, err) : 0;
}

static int run_bench(struct cli *cli, struct err *err)
{
    struct bench bench = {.cli = cli};
    int rc = read_options(&bench.options, cli, err);

    if (!rc)
        rc = cli_given(cli, "alltoall") ? run_exchanges(&bench, err)
                                        : run_lookups(&bench, err);
    store_close(bench.store);
    comm_close(bench.comm);
    device_close(bench.device);
    world_close(bench.world);
    return rc;
}

const struct command command_bench = {
    .name = "bench",
    .synopsis = "--db FILE [options]",
    .summary = "measure look-up costs of random table sets on this machine",
    .options = {own_options},
    .needs = {"db"},
    .run = run_bench,
};
