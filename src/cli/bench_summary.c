/* SPDX-License-Identifier: MIT */
#include "cli/bench_summary.h"

#include "base/hash.h"
#include "base/text.h"
#include "costmodel/comm_report.h"
#include "costmodel/evaluate.h"

#include <inttypes.h>
#include <stdio.h>

/* "interrupt", "time" or "done". */
static const char *stopped_by(const struct bench_result *result)
{
    if (result->interrupted)
        return "interrupt";
    return result->out_of_time ? "time" : "done";
}

static void print_device(const struct device *device)
{
    cli_printf("device          %s, %s", device->facts.name, device->facts.isa);
    if (device->facts.n_threads)
        cli_printf(", %u thread%s", device->facts.n_threads,
                   device->facts.n_threads == 1 ? "" : "s");
    cli_printf("\n");
}

/* How many of those asked for, which are called `what`, there are, and samples
 * of them. */
static void print_counts(const struct bench *bench, const char *what)
{
    const struct bench_result *result = &bench->result;

    cli_printf("%-15s %" PRIu64, what, result->n_cases);
    if (bench->options.n_cases)
        cli_printf(" of %" PRIu64, bench->options.n_cases);
    cli_printf(" (stopped: %s)\n", stopped_by(result));
    cli_printf("samples         %" PRIu64 " measured, %" PRIu64
               " were there already\n",
               result->n_measured, result->n_resumed);
    if (result->n_left)
        cli_printf("left            %" PRIu64 " cases to processes that are at "
                   "them\n",
                   result->n_left);
}

json_t *bench_machine_to_json(const struct device *device)
{
    return json_pack("{s:s, s:s, s:i}", "name", device->facts.name, "isa",
                     device->facts.isa, "threads", device->facts.n_threads);
}

/* --- look-ups --- */

static void print_setting(const struct bench *bench)
{
    const struct bench_options *options = &bench->options;
    char memory[TEXT_BYTES_MAX], hash[HASH_TEXT_MAX];

    print_device(bench->device);
    if (options->is_mixed)
        cli_printf("setting         mixed: batch %u to %u, fp32 and fp16, sgd "
                   "and rowwise_adagrad\n",
                   (options->batch + 63) / 64, options->batch);
    else
        cli_printf("setting         batch %u, %s, %s\n", options->batch,
                   precision_name(options->precision),
                   optimizer_name(options->optimizer));
    cli_printf("case list       %s: seed %" PRIu64 ", up to %u tables, %s\n",
               hash_text(hash, bench->result.seed), options->seed,
               options->max_tables,
               text_from_bytes(memory, (double)options->memory_bytes));
}

static void print_text(const struct bench *bench, const struct errors *repeats,
                       const struct sentinels *sentinels)
{
    const struct bench_result *result = &bench->result;

    print_setting(bench);
    print_counts(bench, "cases");
    if (result->n_flagged)
        cli_printf(
            "flagged         %" PRIu64
            " of them, disturbed: measure more when idle, by --seed %" PRIu64
            "\n",
            result->n_flagged, bench->options.seed + 1);
    cli_printf("time            %.1f s, %.2f samples a second\n",
               bench->seconds, (double)result->n_measured / bench->seconds);
    if (repeats->n)
        cli_printf(
            "repeat error    median %.2f %%, mean %.2f %%, of %zu cases\n",
            100 * repeats->median_ape, 100 * repeats->mape, repeats->n);
    if (sentinels->n > 1)
        cli_printf(
            "sentinels       drift %+.2f %%, spread (p10 to p90) %.2f %%, "
            "of %zu\n",
            100 * sentinels->drift_frac, 100 * sentinels->spread_frac,
            sentinels->n);
    cli_printf("database        %s\n", cli_shown(bench->cli, "db"));
}

static void print_json(const struct bench *bench, const struct errors *repeats,
                       const struct sentinels *sentinels)
{
    const struct bench_options *options = &bench->options;
    const struct bench_result *result = &bench->result;
    char hash[HASH_TEXT_MAX];
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
        "machine", bench_machine_to_json(bench->device), "mixed",
        options->is_mixed, "batch", options->batch, "precision",
        precision_name(options->precision), "optimizer",
        optimizer_name(options->optimizer), "seed", (json_int_t)options->seed,
        "list", hash_text(hash, result->seed), "ranks", 0, "cases",
        (json_int_t)result->n_cases, "measured", (json_int_t)result->n_measured,
        "resumed", (json_int_t)result->n_resumed, "left",
        (json_int_t)result->n_left, "flagged", (json_int_t)result->n_flagged,
        "stopped", stopped_by(result), "seconds", bench->seconds, "db",
        cli_shown(bench->cli, "db"), "repeat", repeat, "sentinels", drift));
}

/* Of the samples of the list alone: a plain list has one setting, a mixed one
 * many, under a name of its own. */
int bench_print_lookups(const struct bench *bench, struct err *err)
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
    print_json(bench, &repeats, &sentinels);
    print_text(bench, &repeats, &sentinels);
    return 0;
}

/* --- exchanges --- */

int bench_print_exchanges(const struct bench *bench, struct err *err)
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
    print_device(bench->device);
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
        "machine", bench_machine_to_json(bench->device), "batch",
        options->batch, "seed", (json_int_t)options->seed, "kind", comm->kind,
        "ranks", comm->n_ranks, "hosts", n_hosts, "cases",
        (json_int_t)result->n_cases, "measured", (json_int_t)result->n_measured,
        "resumed", (json_int_t)result->n_resumed, "stopped", stopped_by(result),
        "seconds", bench->seconds, "db", cli_shown(bench->cli, "db"),
        "held_out", comm_report_to_json(samples, n)));
    return 0;
}

/* --- ceilings --- */

static double gbps(const struct ceiling *ceiling)
{
    return probe_moved_bytes(&ceiling->probe) / ceiling->timing.median_ms / 1e6;
}

static void print_row(const struct ceiling *ceiling)
{
    const struct probe *probe = &ceiling->probe;
    char bytes[TEXT_BYTES_MAX] = "-", n[TEXT_BYTES_MAX] = "-", each[16] = "-",
         speed[32] = "-";

    if (probe->n_bytes)
        text_from_bytes(bytes, (double)probe->n_bytes);
    if (probe->n)
        text_from_count(n, probe->n);
    if (probe->row_bytes)
        snprintf(each, sizeof(each), "%u B", probe->row_bytes);
    if (probe->key_bits)
        snprintf(each, sizeof(each), "%u bits", probe->key_bits);
    if (probe->kind != PROBE_LAUNCH)
        snprintf(speed, sizeof(speed), "%.4g", gbps(ceiling));
    cli_printf("%-6s %8s %9s %7s %9.4g %9.4g %9.4g %6s%s\n",
               probe_kind_names[probe->kind], bytes, n, each,
               ceiling->timing.median_ms, ceiling->timing.p10_ms,
               ceiling->timing.p90_ms, speed,
               ceiling->flags & SAMPLE_THROTTLED ? "  throttled" : "");
}

static json_t *to_json(const struct ceiling *ceiling)
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

int bench_print_ceilings(const struct bench *bench, struct err *err)
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
        print_row(&ceilings[i]);
        json_array_append_new(json_object_get(root, "ceilings"),
                              to_json(&ceilings[i]));
    }
    cli_print_json(root);
    return 0;
}
