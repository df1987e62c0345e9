/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file_write.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/bench_answers.h"
#include "cli/command.h"
#include "cli/product_bench.h"
#include "costmodel/learning/comm_report.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/modelfile/model_report.h"
#include "device/world_fork.h"
#include "io/csv.h"
#include "io/store_csv.h"
#include "io/store_rows.h"
#include "microbench/alltoall_case.h"
#include "microbench/bench.h"
#include "microbench/ceilings.h"
#include "microbench/sampler.h"

#include <inttypes.h>
#include <stdio.h>

/* Defaults of mixed cases: batch in samples, and maximum number of tables in a
 * case. */
#define MIXED_BATCH 65536
#define MIXED_MAX_TABLES 60

static const struct option_spec own_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database to add the samples to; created if missing"},
    {"device", 0, OPTION_CHOICE, "KIND", "cpu", 0, 0, DEVICE_KIND_NAMES,
     "device to measure on"},
    {"samples", 'n', OPTION_U64, "N", "1000", 0, 1e9, NULL,
     "cases of the list to have measured; with only a time limit, as many as "
     "it allows"},
    {"time-limit", 0, OPTION_DOUBLE, "S", "0", 0, 1e9, NULL,
     "stop after this many seconds; 0: no limit"},
    {"mixed", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "draw batch, precision and optimizer for each case; default on a GPU"},
    {"designed", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "measure a fixed list of mixed cases that show a device's figures"},
    {"batch", 0, OPTION_U64, "B", "4096", 1, 16777216, NULL,
     "samples per step; with mixed cases the largest batch, default 65536"},
    {"precision", 0, OPTION_CHOICE, "NAME", "fp32", 0, 0, "fp32|fp16",
     "precision of the weights"},
    {"optimizer", 0, OPTION_CHOICE, "NAME", "rowwise_adagrad", 0, 0,
     "sgd|rowwise_adagrad", "optimizer that updates the weights"},
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "CPU threads; default: all"},
    {"max-tables", 0, OPTION_U64, "N", "15", 1, BENCH_MAX_TABLES, NULL,
     "most tables in a fused case; default with mixed cases: 60"},
    {"memory", 0, OPTION_BYTES, "SIZE", "4GiB", 0, 0, NULL,
     "memory for the tables of a case and their optimizer states; default on a "
     "GPU: all that is free"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL, "seed of the cases"},
    {"repeat", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "measure stored cases again, to see how well times repeat"},
    {"ceilings", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "measure the highest rates of the device instead of lookups"},
    {"alltoall", 0, OPTION_U64, "RANKS", NULL, 2, 1024, NULL,
     "measure the all-to-all between this many ranks instead of lookups"},
    {"ranks", 0, OPTION_U64, "N", NULL, 2, WORLD_MAX_FORKS, NULL,
     "processes to start for '--alltoall', one per rank"},
    {"dense", 0, OPTION_STRING, "SPEC", NULL, 0, 0, NULL,
     "measure the matrix products of this dense part instead of lookups, or "
     "those of a 'grid' from which others are predicted"},
    {"tables", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "table list whose vectors the dense part joins; default: none"},
    {"min-bytes", 0, OPTION_BYTES, "SIZE", NULL, 1, 0, NULL,
     "least size of an exchange of '--alltoall', in bytes of all ranks; "
     "default: 4"},
    {"max-bytes", 0, OPTION_BYTES, "SIZE", NULL, 4, 0, NULL,
     "largest size of an exchange; default: half of the memory, 1GiB at most"},
    {"csv", 0, OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "at the end write all samples of the database as CSV"},
    {"verbose", 'v', OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print a line for each sample as soon as it is stored"},
    {0},
};

/* Checks that the given options do not exclude each other, and that each has
 * the options that it needs. */
static int check_options(const struct cli *cli, struct err *err)
{
    static const char *const alone[] = {"repeat",   "ceilings", "mixed",
                                        "designed", "csv",      "dense"};
    static const char *const others[] = {"ceilings", "mixed",     "designed",
                                         "csv",      "optimizer", "precision"};
    static const char *const needing[] = {"ranks", "min-bytes", "max-bytes"};

    for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++)
        if (cli_given(cli, alone[i]) && cli_given(cli, "alltoall"))
            return err_usage(
                err, "options '--%s' and '--alltoall' exclude each other",
                alone[i]);
    for (size_t i = 0; i < sizeof(needing) / sizeof(*needing); i++)
        if (cli_given(cli, needing[i]) && !cli_given(cli, "alltoall"))
            return err_usage(err, "option '--%s' needs '--alltoall'",
                             needing[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (cli_given(cli, others[i]) && cli_given(cli, "dense"))
            return err_usage(err,
                             "options '--%s' and '--dense' exclude each other",
                             others[i]);
    if (cli_given(cli, "tables") && !cli_given(cli, "dense"))
        return err_usage(err, "option '--tables' needs '--dense'");
    if ((cli_given(cli, "mixed") || cli_given(cli, "designed")) &&
        (cli_given(cli, "precision") || cli_given(cli, "optimizer")))
        return err_usage(err,
                         "option '--%s' sets precisions and optimizers itself: "
                         "give neither '--precision' nor '--optimizer'",
                         cli_given(cli, "mixed") ? "mixed" : "designed");
    if (!cli_u64(cli, "samples") && !cli_given(cli, "csv"))
        return err_usage(
            err, "option '--samples 0' measures nothing and needs '--csv'");
    return 0;
}

/* Sets the defaults of mixed cases and of GPUs. They differ from the defaults
 * in the table of options. */
static void adapt_options(struct bench_options *options, const struct cli *cli)
{
    bool is_gpu = cli_choice(cli, "device") != DEVICE_CPU;
    bool has_setting = cli_given(cli, "batch") || cli_given(cli, "precision") ||
                       cli_given(cli, "optimizer");

    if (is_gpu) {
        options->work_bytes = BENCH_CUDA_WORK_BYTES;
        if (!cli_given(cli, "memory"))
            options->memory_bytes = 0; /* 0: as much memory as the device has */
    }
    options->is_designed = cli_given(cli, "designed");
    if (!cli_given(cli, "samples") &&
        (options->is_designed || options->time_limit_s > 0))
        options->n_cases = 0; /* 0: no limit other than the list or the time */
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
    options->precision = (enum precision)cli_choice(cli, "precision");
    options->optimizer = (enum optimizer)cli_choice(cli, "optimizer");
    options->max_tables = (uint32_t)cli_u64(cli, "max-tables");
    options->memory_bytes = cli_u64(cli, "memory");
    options->min_bytes = cli_u64(cli, "min-bytes");
    options->max_bytes = cli_u64(cli, "max-bytes");
    options->repeat = cli_given(cli, "repeat");
    if (check_options(cli, err))
        return -1;
    if (cli_given(cli, "alltoall"))
        return bench_check_options(options, err);
    adapt_options(options, cli);
    if (cli_given(cli, "dense") && !cli_given(cli, "samples"))
        options->n_cases = 0; /* the whole list */
    return 0;
}

struct bench_request {
    struct cli *cli;
    struct bench_options options;
    /* Processes that measure exchanges; NULL if no exchanges are measured.
     * Owned, like the opened members below. */
    struct world *world;
    struct device *device; /* device to measure; NULL if nothing is measured */
    struct comm *comm;     /* communicator; only if exchanges are measured */
    /* cost database; NULL in all processes except the first */
    struct store *store;
    struct bench_result result;
    double seconds;
};

/* Writes all samples of the database, whatever their device, to a CSV file. If
 * nothing was measured, this file is also the command's answer. */
static int write_csv(const struct bench_request *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    struct buf text = {0};
    int rc = store_samples_to_csv(&text, bench->store, err);
    size_t n_lines = 0; /* number of lines, the header included */

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

/* Runs the measurement that the options choose. If there are several processes,
 * only the first shows the progress. */
static int measure(struct bench_request *bench, struct err *err)
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

/* --- the answer at the end --- */

/* Prints how many of the requested cases were measured, and how many samples
 * these cases have. `what` is the word for the cases. */
static void print_counts(const struct bench_request *bench, const char *what)
{
    const struct bench_result *result = &bench->result;

    cli_printf("%-15s %" PRIu64, what, result->n_cases);
    if (bench->options.n_cases)
        cli_printf(" of %" PRIu64, bench->options.n_cases);
    cli_printf(" (stopped: %s)\n", bench_stopped_by(result));
    cli_printf("samples         %" PRIu64 " measured, %" PRIu64
               " already stored\n",
               result->n_measured, result->n_resumed);
    if (result->n_left)
        cli_printf("left            %" PRIu64
                   " cases that other processes are measuring\n",
                   result->n_left);
}

/* --- lookups --- */

static void print_lookups_text(const struct bench_request *bench,
                               const struct errors *repeats,
                               const struct sentinels *sentinels)
{
    const struct bench_options *options = &bench->options;
    const struct bench_result *result = &bench->result;

    bench_print_device(bench->device);
    if (options->is_mixed)
        cli_printf("setting         mixed: batch %u to %u, fp32 and fp16, sgd "
                   "and rowwise_adagrad\n",
                   (options->batch + 63) / 64, options->batch);
    else
        cli_printf("setting         batch %u, %s, %s\n", options->batch,
                   precision_names[options->precision],
                   optimizer_names[options->optimizer]);
    cli_printf("case list       %s: seed %" PRIu64 ", up to %u tables, %s\n",
               HASH_TEXT(result->seed), options->seed, options->max_tables,
               TEXT_BYTES(options->memory_bytes));
    print_counts(bench, "cases");
    if (result->n_flagged)
        cli_printf("flagged         %" PRIu64
                   " of them, disturbed: measure more with --seed %" PRIu64
                   " while the machine is idle, or train with --disturbed if "
                   "it never is\n",
                   result->n_flagged, options->seed + 1);
    cli_printf("time            %.1f s, %.2f samples a second\n",
               bench->seconds, (double)result->n_measured / bench->seconds);
    if (repeats->n)
        cli_printf(
            "repeat error    median %.2f %%, mean %.2f %%, of %zu cases\n",
            100 * repeats->median_ape, 100 * repeats->mape, repeats->n);
    if (sentinels->n > 1)
        cli_printf("reference cases drift %+.2f %%, spread (p10 to p90) %.2f "
                   "%%, of %zu\n",
                   100 * sentinels->drift_frac, 100 * sentinels->spread_frac,
                   sentinels->n);
    cli_printf("database        %s\n", cli_shown(bench->cli, "db"));
}

static void print_lookups_json(const struct bench_request *bench,
                               const struct errors *repeats,
                               const struct sentinels *sentinels)
{
    const struct bench_options *options = &bench->options;
    const struct bench_result *result = &bench->result;
    json_t *repeat = NULL, *drift = NULL;

    if (repeats->n)
        repeat = json_pack("{s:I, s:f, s:f}", "cases", (json_int_t)repeats->n,
                           "median_error_frac", repeats->median_ape,
                           "mean_error_frac", repeats->mape);
    if (sentinels->n > 1)
        drift = json_pack("{s:I, s:f, s:f}", "n", (json_int_t)sentinels->n,
                          "drift_frac", sentinels->drift_frac, "spread_frac",
                          sentinels->spread_frac);
    cli_print_json(json_pack(
        "{s:o, s:b, s:i, s:s, s:s, s:I, s:s, s:i, s:I, s:I, s:I, s:I, s:I, "
        "s:s, s:f, s:s, s:o*, s:o*}",
        "machine", device_to_json(bench->device), "mixed", options->is_mixed,
        "batch", options->batch, "precision",
        precision_names[options->precision], "optimizer",
        optimizer_names[options->optimizer], "seed", (json_int_t)options->seed,
        "list", HASH_TEXT(result->seed), "ranks", 0, "cases",
        (json_int_t)result->n_cases, "measured", (json_int_t)result->n_measured,
        "resumed", (json_int_t)result->n_resumed, "left",
        (json_int_t)result->n_left, "flagged", (json_int_t)result->n_flagged,
        "stopped", bench_stopped_by(result), "seconds", bench->seconds, "db",
        cli_shown(bench->cli, "db"), "repeat", repeat, "sentinels", drift));
}

/* Prints the answer. It covers only the samples of the case list that was
 * requested. A plain list has one setting. A mixed list has many settings; the
 * database stores them under the seed of the list. */
static int print_lookups(const struct bench_request *bench, struct err *err)
{
    struct sample_setting setting =
        bench_setting(bench->device, &bench->options);
    struct arena *arena = bench->cli->arena;
    struct sentinels sentinels;
    struct errors repeats;
    struct sample *samples;
    size_t n, n_kept = 0;

    if (store_samples(bench->store, &setting,
                      bench->options.is_mixed ? STORE_DEVICE : STORE_SETTING,
                      &samples, &n, arena, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (samples[i].seed == bench->result.seed)
            samples[n_kept++] = samples[i];
    repeats = evaluate_cases(samples, n_kept, ARENA_NEW(arena, double, n_kept));
    sentinels = sample_sentinels(samples, n_kept);
    print_lookups_json(bench, &repeats, &sentinels);
    print_lookups_text(bench, &repeats, &sentinels);
    return 0;
}

/* --- exchanges --- */

static int print_exchanges(const struct bench_request *bench, struct err *err)
{
    const struct bench_options *options = &bench->options;
    const struct bench_result *result = &bench->result;
    const struct comm *comm = bench->comm;
    struct sample_setting setting = bench_setting(bench->device, options);
    const uint32_t n_hosts = bench->world->n_hosts;
    struct comm_sample *samples;
    size_t n;

    if (store_comm_samples(bench->store, &setting, STORE_SETTING, &samples, &n,
                           bench->cli->arena, err))
        return -1;
    bench_print_device(bench->device);
    cli_printf("exchanges       between %u ranks (%s) on %u host%s, batch %u, "
               "seed %" PRIu64 "\n",
               comm->n_ranks, comm->kind, n_hosts, n_hosts == 1 ? "" : "s",
               options->batch, options->seed);
    print_counts(bench, "patterns");
    cli_printf("time            %.1f s\n", bench->seconds);
    cli_printf("database        %s\n", cli_shown(bench->cli, "db"));
    comm_report_print(samples, n, cli_text());
    cli_print_json(json_pack(
        "{s:o, s:i, s:I, s:s, s:i, s:i, s:I, s:I, s:I, s:s, s:f, s:s, s:o}",
        "machine", device_to_json(bench->device), "batch", options->batch,
        "seed", (json_int_t)options->seed, "kind", comm->kind, "ranks",
        comm->n_ranks, "hosts", n_hosts, "cases", (json_int_t)result->n_cases,
        "measured", (json_int_t)result->n_measured, "resumed",
        (json_int_t)result->n_resumed, "stopped", bench_stopped_by(result),
        "seconds", bench->seconds, "db", cli_shown(bench->cli, "db"),
        "held_out", comm_report_to_json(samples, n)));
    return 0;
}

/* --- ceilings --- */

static double gbps(const struct ceiling *ceiling)
{
    return probe_moved_bytes(&ceiling->probe) / ceiling->timing.median_ms / 1e6;
}

static void print_ceiling(const struct ceiling *ceiling)
{
    const struct probe *probe = &ceiling->probe;
    char each[16] = "-", speed[32] = "-";

    if (probe->row_bytes)
        snprintf(each, sizeof(each), "%u B", probe->row_bytes);
    if (probe->key_bits)
        snprintf(each, sizeof(each), "%u bits", probe->key_bits);
    if (probe->kind != PROBE_LAUNCH)
        snprintf(speed, sizeof(speed), "%.4g", gbps(ceiling));
    cli_printf("%-6s %8s %9s %7s %9.4g %9.4g %9.4g %6s%s\n",
               probe_kind_names[probe->kind],
               probe->n_bytes ? TEXT_BYTES(probe->n_bytes) : "-",
               probe->n ? TEXT_COUNT(probe->n) : "-", each,
               ceiling->timing.median_ms, ceiling->timing.p10_ms,
               ceiling->timing.p90_ms, speed,
               ceiling->flags & SAMPLE_THROTTLED ? "  throttled" : "");
}

static json_t *ceiling_to_json(const struct ceiling *ceiling)
{
    const struct probe *probe = &ceiling->probe;

    return json_pack(
        "{s:s, s:I, s:I, s:i, s:i, s:f, s:f, s:f, s:b, s:o*}", "kind",
        probe_kind_names[probe->kind], "bytes", (json_int_t)probe->n_bytes, "n",
        (json_int_t)probe->n, "row_bytes", probe->row_bytes, "key_bits",
        probe->key_bits, "median_ms", ceiling->timing.median_ms, "p10_ms",
        ceiling->timing.p10_ms, "p90_ms", ceiling->timing.p90_ms, "throttled",
        (ceiling->flags & SAMPLE_THROTTLED) != 0, "gbps",
        probe->kind == PROBE_LAUNCH ? NULL : json_real(gbps(ceiling)));
}

static int print_ceilings(const struct bench_request *bench, struct err *err)
{
    struct sample_setting setting =
        bench_setting(bench->device, &bench->options);
    json_t *root;
    struct ceiling *ceilings;
    size_t n;

    if (store_ceilings(bench->store, &setting, &ceilings, &n, bench->cli->arena,
                       err))
        return -1;
    root = json_pack("{s:s, s:[]}", "device", bench->device->facts.name,
                     "ceilings");
    cli_printf("%-6s %8s %9s %7s %9s %9s %9s %6s\n", "probe", "bytes", "n",
               "row,key", "median ms", "p10 ms", "p90 ms", "GB/s");
    for (size_t i = 0; i < n; i++) {
        print_ceiling(&ceilings[i]);
        json_array_append_new(json_object_get(root, "ceilings"),
                              ceiling_to_json(&ceilings[i]));
    }
    cli_print_json(root);
    return 0;
}

/* --- the command --- */

/* Opens the device and the communicator of this process. Without --threads the
 * processes of a host share its processors evenly. */
static int open_ranks(struct bench_request *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    enum device_kind kind = (enum device_kind)cli_choice(cli, "device");
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

/* Measures exchanges. If there is only one process, it plays all ranks. If a
 * launcher started several processes, each process is one rank, and the first
 * process stores and prints the results. */
static int run_exchanges(struct bench_request *bench, struct err *err)
{
    int rc;

    if (command_open_world(&bench->world, bench->cli, err))
        return -1;
    if (!bench->world)
        return 0;
    rc = open_ranks(bench, err) || measure(bench, err) ||
         (!bench->world->rank && (print_exchanges(bench, err) ||
                                  bench_tell_interrupt(&bench->result, err)));
    /* Every process learns of an interrupt by itself, so no process has to end
     * the others. */
    if (rc && err->code != ERR_INTERRUPTED)
        command_end_all(bench->world, err);
    return rc ? -1 : 0;
}

/* Opens the device, and sets the options that depend on the memory of the
 * device. */
static int open_device(struct bench_request *bench, struct err *err)
{
    const struct cli *cli = bench->cli;

    if (device_open(&bench->device, (enum device_kind)cli_choice(cli, "device"),
                    0, (unsigned)cli_u64(cli, "threads"), err))
        return -1;
    if (cli_given(cli, "ceilings"))
        return 0;
    if (bench_fit_memory(&bench->options, bench->device, err))
        return -1;
    return bench_check_options(&bench->options, err);
}

static int run_lookups(struct bench_request *bench, struct err *err)
{
    const struct cli *cli = bench->cli;
    bool measures = cli_u64(cli, "samples") > 0;

    if ((measures && open_device(bench, err)) ||
        store_open(&bench->store, cli_string(cli, "db"),
                   measures ? STORE_WRITE : STORE_READ, err) ||
        (measures &&
         (measure(bench, err) ||
          (cli_given(cli, "ceilings") ? print_ceilings : print_lookups)(bench,
                                                                        err) ||
          bench_tell_interrupt(&bench->result, err))))
        return -1;
    return cli_given(cli, "csv") ? write_csv(bench, err) : 0;
}

static int run_bench(struct cli *cli, struct err *err)
{
    struct bench_request bench = {.cli = cli};
    int rc = read_options(&bench.options, cli, err);

    if (!rc)
        rc = cli_given(cli, "alltoall") ? run_exchanges(&bench, err)
             : cli_given(cli, "dense") ? product_bench(cli, &bench.options, err)
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
    .summary = "measure lookup times of random table sets on this machine",
    .options = {own_options},
    .needs = {"db"},
    .run = run_bench,
};
