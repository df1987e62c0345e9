/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/stats.h"
#include "base/text.h"
#include "cli/command.h"
#include "io/store.h"
#include "microbench/bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec bench_options[] = {
    {"db", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "cost database that gets the samples; made where missing"},
    {"device", 0, OPTION_CHOICE, "KIND", "cpu", 0, 0, "cpu|cuda",
     "what is measured"},
    {"samples", 'n', OPTION_U64, "N", "1000", 1, 1e9, NULL,
     "cases of the list to have in the database"},
    {"time-limit", 0, OPTION_DOUBLE, "S", "0", 0, 1e9, NULL,
     "seconds to stop after; 0: none"},
    {"batch", 0, OPTION_U64, "B", "4096", 1, 16777216, NULL,
     "samples looked up in a step"},
    {"precision", 0, OPTION_CHOICE, "NAME", "fp32", 0, 0, "fp32|fp16",
     "of the weights"},
    {"optimizer", 0, OPTION_CHOICE, "NAME", "rowwise_adagrad", 0, 0,
     "sgd|rowwise_adagrad", "that updates the weights"},
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "CPU threads; without it all"},
    {"max-tables", 0, OPTION_U64, "N", "15", 1, BENCH_MAX_TABLES, NULL,
     "tables that are fused at most"},
    {"memory", 0, OPTION_BYTES, "SIZE", "4GiB", 0, 0, NULL,
     "for the tables of a case and their optimizer state"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL, "seed of the cases"},
    {"repeat", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "measure the cases again, to see how well figures repeat"},
    {"alltoall", 0, OPTION_U64, "RANKS", NULL, 2, 1024, NULL,
     "measure exchanges between so many ranks instead of look-ups"},
    {"verbose", 'v', OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print a line for each sample once it is safe"},
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print the summary as JSON"},
    {0},
};

/* The store, and who hears of what it has taken. */
struct recorder {
    struct sample_sink store;
    bool is_verbose;
};

static int record(void *ctx, const struct sample_setting *setting,
                  const struct sample *sample, struct err *err)
{
    const struct recorder *recorder = ctx;

    if (recorder->store.put(recorder->store.ctx, setting, sample, err))
        return -1;
    if (recorder->is_verbose) {
        printf("stored %s %" PRIu64 " %" PRIu32 "\n",
               sample_kind_name(sample->kind), sample->case_idx, sample->part);
        fflush(stdout);
    }
    return 0;
}

static int record_comm(void *ctx, const struct sample_setting *setting,
                       const struct comm_sample *sample, struct err *err)
{
    const struct recorder *recorder = ctx;

    if (recorder->store.put_comm(recorder->store.ctx, setting, sample, err))
        return -1;
    if (recorder->is_verbose) {
        printf("stored %s %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", sample->kind,
               sample->n_ranks, sample->total_bytes, sample->max_bytes);
        fflush(stdout);
    }
    return 0;
}

static int is_recorded(void *ctx, const struct sample_setting *setting,
                       uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                       uint32_t part)
{
    const struct recorder *recorder = ctx;

    return recorder->store.has(recorder->store.ctx, setting, seed, case_idx,
                               kind, part);
}

/* What is known after a run; fractions, NAN where there is nothing to know. */
struct summary {
    const char *db;
    const struct device *device;
    const struct bench_options *options;
    struct bench_result result;
    double seconds;
    double repeat_median_frac, repeat_mean_frac;
    size_t n_repeats;
    double drift_frac, sentinel_spread_frac;
    size_t n_sentinels;
};

/* Cases that were measured twice: |second - first| / first. They stand side
 * by side in the order of the store. */
static void compare_repeats(struct summary *summary,
                            const struct sample *samples, size_t n)
{
    double *errors = mem_alloc(n, sizeof(*errors));
    const struct sample *fused = NULL;
    size_t n_errors = 0;

    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = &samples[i];

        if (sample->kind == SAMPLE_FUSED)
            fused = sample;
        if (sample->kind != SAMPLE_REPEAT || !fused ||
            fused->case_idx != sample->case_idx)
            continue;
        errors[n_errors++] =
            fabs(sample->total.median_ms - fused->total.median_ms) /
            fused->total.median_ms;
    }
    summary->n_repeats = n_errors;
    summary->repeat_mean_frac = stats_mean(errors, n_errors);
    summary->repeat_median_frac = stats_median(errors, n_errors);
    mem_free(errors);
}

/* Drift: the later half of the sentinels against the earlier one. */
static void compare_sentinels(struct summary *summary,
                              const struct sample *samples, size_t n)
{
    double *ms = mem_alloc(n, sizeof(*ms)), early, late, low;
    size_t n_ms = 0;

    for (size_t i = 0; i < n; i++)
        if (samples[i].kind == SAMPLE_SENTINEL)
            ms[n_ms++] = samples[i].total.median_ms;
    summary->n_sentinels = n_ms;
    early = stats_median(ms, n_ms / 2);
    late = stats_median(ms + n_ms / 2, n_ms - n_ms / 2);
    summary->drift_frac = late / early - 1;
    low = stats_quantile(ms, n_ms, 0.1);
    summary->sentinel_spread_frac =
        (stats_quantile(ms, n_ms, 0.9) - low) / stats_median(ms, n_ms);
    mem_free(ms);
}

static int examine(struct summary *summary, struct store *store,
                   struct arena *arena, struct err *err)
{
    struct sample_setting setting =
        bench_setting(summary->device, summary->options);
    struct sample *samples;
    size_t n, begin = 0, end;

    if (store_samples(store, &setting, &samples, &n, arena, err))
        return -1;
    while (begin < n && samples[begin].seed != summary->result.seed)
        begin++;
    end = begin;
    while (end < n && samples[end].seed == summary->result.seed)
        end++;
    compare_repeats(summary, samples + begin, end - begin);
    compare_sentinels(summary, samples + begin, end - begin);
    return 0;
}

static const char *stopped_by(const struct bench_result *result)
{
    if (result->interrupted)
        return "interrupt";
    return result->out_of_time ? "time" : "done";
}

static void print_setting(const struct summary *summary, uint32_t n_ranks)
{
    const struct bench_options *options = summary->options;
    const struct device *device = summary->device;
    char memory[TEXT_BYTES_MAX], hash[HASH_TEXT_MAX];

    printf("device          %s, %s", device_name(device), device_isa(device));
    if (device_n_threads(device))
        printf(", %u thread%s", device_n_threads(device),
               device_n_threads(device) == 1 ? "" : "s");
    printf("\nsetting         batch %" PRIu32 ", %s, %s\n", options->batch,
           precision_name(options->precision),
           optimizer_name(options->optimizer));
    if (n_ranks)
        printf("exchanges       between %" PRIu32 " ranks, seed %" PRIu64 "\n",
               n_ranks, options->seed);
    else
        printf("case list       %s: seed %" PRIu64 ", up to %" PRIu32
               " tables, %s\n",
               hash_text(hash, summary->result.seed), options->seed,
               options->max_tables,
               text_from_bytes(memory, (double)options->memory_bytes));
}

static void print_summary(const struct summary *summary, uint32_t n_ranks)
{
    const struct bench_result *result = &summary->result;

    print_setting(summary, n_ranks);
    printf("cases           %" PRIu64 " of %" PRIu64 " (stopped: %s)\n",
           result->n_cases, summary->options->n_cases, stopped_by(result));
    printf("samples         %" PRIu64 " measured, %" PRIu64
           " were there already\n",
           result->n_measured, result->n_resumed);
    printf("time            %.1f s, %.2f samples a second\n", summary->seconds,
           (double)result->n_measured / summary->seconds);
    if (summary->n_repeats)
        printf("repeat error    median %.2f %%, mean %.2f %%, of %zu cases\n",
               100 * summary->repeat_median_frac,
               100 * summary->repeat_mean_frac, summary->n_repeats);
    if (summary->n_sentinels > 1)
        printf("sentinels       drift %+.2f %%, spread (p10 to p90) %.2f %%, "
               "of %zu\n",
               100 * summary->drift_frac, 100 * summary->sentinel_spread_frac,
               summary->n_sentinels);
    printf("database        %s\n", summary->db);
}

static void print_json(const struct summary *summary, uint32_t n_ranks)
{
    const struct bench_options *options = summary->options;
    const struct bench_result *result = &summary->result;
    char hash[HASH_TEXT_MAX];
    json_t *root = json_pack(
        "{s:{s:s, s:s, s:i}, s:I, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, "
        "s:s, s:f, s:s}",
        "machine", "name", device_name(summary->device), "isa",
        device_isa(summary->device), "threads",
        (int)device_n_threads(summary->device), "batch",
        (json_int_t)options->batch, "precision",
        precision_name(options->precision), "optimizer",
        optimizer_name(options->optimizer), "seed", (json_int_t)options->seed,
        "list", hash_text(hash, result->seed), "ranks", (json_int_t)n_ranks,
        "cases", (json_int_t)result->n_cases, "measured",
        (json_int_t)result->n_measured, "resumed",
        (json_int_t)result->n_resumed, "stopped", stopped_by(result), "seconds",
        summary->seconds, "db", summary->db);
    char *text;

    if (summary->n_repeats)
        json_object_set_new(
            root, "repeat",
            json_pack("{s:I, s:f, s:f}", "cases",
                      (json_int_t)summary->n_repeats, "median_error_frac",
                      summary->repeat_median_frac, "mean_error_frac",
                      summary->repeat_mean_frac));
    if (summary->n_sentinels > 1)
        json_object_set_new(
            root, "sentinels",
            json_pack("{s:I, s:f, s:f}", "n", (json_int_t)summary->n_sentinels,
                      "drift_frac", summary->drift_frac, "spread_frac",
                      summary->sentinel_spread_frac));
    text = json_to_text(root);
    fputs(text, stdout);
    free(text);
    json_decref(root);
}

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(ctx, done);
}

static int read_options(struct bench_options *options, const struct cli *cli,
                        struct err *err)
{
    bench_options_init(options);
    options->seed = cli_u64(cli, "seed");
    options->n_cases = cli_u64(cli, "samples");
    options->time_limit_s = cli_double(cli, "time-limit");
    options->batch = (uint32_t)cli_u64(cli, "batch");
    options->precision =
        (enum precision)precision_from_name(cli_string(cli, "precision"));
    options->optimizer =
        (enum optimizer)optimizer_from_name(cli_string(cli, "optimizer"));
    options->max_tables = (uint32_t)cli_u64(cli, "max-tables");
    options->memory_bytes = cli_bytes(cli, "memory");
    options->repeat = cli_flag(cli, "repeat");
    options->progress = show_progress;
    if (!cli_given(cli, "db"))
        return err_set(err, ERR_USAGE,
                       "option '--db' is needed: the file that gets the "
                       "samples");
    if (options->repeat && cli_given(cli, "alltoall"))
        return err_set(
            err, ERR_USAGE,
            "options '--repeat' and '--alltoall' exclude each other");
    return bench_check_options(options, err);
}

static int measure(struct summary *summary, struct device *device,
                   struct bench_options *options, uint32_t n_ranks,
                   struct recorder *recorder, struct err *err)
{
    struct sample_sink sink = {recorder, record, record_comm, is_recorded};
    struct progress progress;
    double begin_ms = clock_ms();
    int rc;

    progress_start(&progress, n_ranks ? "exchanges" : "cases",
                   options->n_cases);
    options->progress_ctx = &progress;
    if (n_ranks)
        rc = bench_alltoall(&summary->result, device, n_ranks, options, &sink,
                            err);
    else
        rc = bench_lookup(&summary->result, device, options, &sink, err);
    progress_finish(&progress);
    summary->seconds = (clock_ms() - begin_ms) / 1e3;
    return rc;
}

static int run_bench(struct cli *cli, struct err *err)
{
    enum device_kind kind =
        strcmp(cli_string(cli, "device"), "cuda") ? DEVICE_CPU : DEVICE_CUDA;
    unsigned n_threads =
        cli_given(cli, "threads") ? (unsigned)cli_u64(cli, "threads") : 0;
    uint32_t n_ranks =
        cli_given(cli, "alltoall") ? (uint32_t)cli_u64(cli, "alltoall") : 0;
    struct bench_options options;
    struct summary summary = {.options = &options};
    struct recorder recorder = {.is_verbose = cli_flag(cli, "verbose")};
    struct device *device = NULL;
    struct store *store = NULL;
    int rc = -1;

    if (read_options(&options, cli, err))
        goto out;
    summary.db = cli_string(cli, "db");
    if (device_open(&device, kind, 0, n_threads, err))
        goto out;
    summary.device = device;
    if (store_open(&store, summary.db, STORE_WRITE, err))
        goto out;
    recorder.store = store_sink(store);
    if (measure(&summary, device, &options, n_ranks, &recorder, err))
        goto out;
    if (!n_ranks && examine(&summary, store, cli_arena(cli), err))
        goto out;
    if (cli_flag(cli, "json"))
        print_json(&summary, n_ranks);
    else
        print_summary(&summary, n_ranks);
    if (summary.result.interrupted) {
        err_set(err, ERR_INTERRUPTED,
                "interrupted; what was measured is stored, and the same "
                "command continues from there");
        goto out;
    }
    rc = 0;
out:
    device_close(device);
    store_close(store);
    return rc;
}

const struct command command_bench = {
    .name = "bench",
    .synopsis = "--db FILE [options]",
    .summary = "measure look-up costs of random table sets on this machine",
    .options = bench_options,
    .min_args = 0,
    .max_args = 0,
    .run = run_bench,
};
