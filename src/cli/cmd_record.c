/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "cli/comm_report.h"
#include "cli/recording.h"
#include "cli/training.h"
#include "costmodel/comm_fit.h"
#include "io/nccl_tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The setting of exchanges needs some; nothing asks for it. */
#define ANY_BATCH 65536

static const struct option_spec own_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database that gets what was measured; made where missing"},
    {"nccl-tests", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "what alltoall_perf of nccl-tests or rccl-tests printed"},
    {"device", 0, OPTION_STRING, "NAME", NULL, 0, 0, NULL,
     "what was measured, as in the database: cuda:NVIDIA H200, or a part"},
    {"isa", 0, OPTION_STRING, "NAME", NULL, 0, 0, NULL,
     "its architecture, e.g. sm_90, where the database does not know it"},
    {"threads", 0, OPTION_U64, "N", NULL, 0, 1e6, NULL,
     "the same for the threads of a CPU"},
    {"hosts", 0, OPTION_U64, "N", NULL, 1, 1e6, NULL,
     "that the ranks were on; default: as the file lists them"},
    {0},
};

/* Whether it may be that one; *is_exact where it has that very name. */
static bool is_named(const struct sample_setting *setting, const char *name,
                     const struct cli *cli, bool *is_exact)
{
    *is_exact = !strcmp(setting->device, name);
    return strstr(setting->device, name) &&
           (!cli_given(cli, "isa") ||
            !strcmp(setting->isa, cli_string(cli, "isa"))) &&
           (!cli_given(cli, "threads") ||
            setting->n_threads == cli_u64(cli, "threads"));
}

int recording_find_device(struct recording *recording, const char *name,
                          struct err *err)
{
    const struct cli *cli = recording->cli;
    struct sample_setting *settings, *device = &recording->device;
    bool was_exact = false, is_exact;
    size_t n;

    if (store_settings(recording->store, &settings, &n, cli->arena, err))
        return -1;
    name = cli_given(cli, "device") ? cli_string(cli, "device") : name;
    *device =
        (struct sample_setting){.device = name,
                                .isa = cli_string(cli, "isa"),
                                .n_threads = (uint32_t)cli_u64(cli, "threads")};
    for (size_t i = 0; i < n; i++) {
        if (!is_named(&settings[i], name, cli, &is_exact) ||
            (was_exact && !is_exact))
            continue;
        if (device->id && is_exact == was_exact &&
            !is_same_device(device, &settings[i]))
            return err_set(err, ERR_USAGE,
                           "'%s' is several devices of the database; choose by "
                           "--device, --isa or --threads: %s; %s",
                           name, device_text(device, cli->arena),
                           device_text(&settings[i], cli->arena));
        *device = settings[i];
        was_exact = is_exact;
    }
    if (device->id || (device->isa && (!strncmp(name, "cuda:", 5) ||
                                       !strncmp(name, "cpu:", 4))))
        return 0;
    return err_set(
        err, ERR_USAGE,
        "the database knows no device '%s'; one that is new to it is "
        "named in full by --device, 'cuda:NVIDIA H200', and --isa, "
        "'sm_90'",
        name);
}

static int check_options(const struct cli *cli, struct err *err)
{
    if (!cli_given(cli, "db"))
        return err_set(err, ERR_USAGE,
                       "option '--db' is needed: the file that gets what was "
                       "measured");
    if (!cli_given(cli, "nccl-tests"))
        return err_set(err, ERR_USAGE,
                       "nothing to record: option '--nccl-tests' is needed");
    return 0;
}

/* The times of a row's size; none where an earlier row had it. */
static size_t times_of(const struct nccl_tests *tests, size_t row, double *ms)
{
    const uint64_t bytes = tests->rows[row].bytes;
    size_t n = 0;

    for (size_t i = 0; i < tests->n_rows; i++) {
        if (tests->rows[i].bytes != bytes)
            continue;
        if (i < row)
            return 0;
        ms[n++] = 1e-3 * tests->rows[i].us;
    }
    return n;
}

static int put_exchanges(struct recording *recording,
                         const struct nccl_tests *tests, size_t *n_sizes,
                         struct err *err)
{
    struct sample_sink sink = store_sink(recording->store);
    struct sample_setting setting = recording->device;
    double *ms = ARENA_NEW(recording->cli->arena, double, tests->n_rows);

    setting.precision = PRECISION_FP32;
    setting.optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    setting.batch = ANY_BATCH;
    for (size_t i = 0; i < tests->n_rows; i++) {
        const uint64_t bytes = tests->rows[i].bytes;
        const size_t n = times_of(tests, i, ms);
        struct comm_sample sample = {.kind = "nccl",
                                     .n_ranks = tests->n_ranks,
                                     .n_hosts = tests->n_hosts,
                                     .total_bytes = bytes * tests->n_ranks,
                                     .max_bytes = bytes,
                                     .n_iterations = tests->n_iterations};

        if (!n)
            continue;
        sample.time = timing_of(ms, n);
        if (sample_sink_put_comm(&sink, &setting, &sample, err))
            return -1;
        ++*n_sizes;
    }
    return 0;
}

static int report_exchanges(struct recording *recording,
                            const struct nccl_tests *tests, size_t n_sizes,
                            struct err *err)
{
    const struct cli *cli = recording->cli;
    struct comm_sample *samples;
    struct comm_fit fit;
    struct buf out = {0};
    size_t n;

    if (store_comm_samples(recording->store, &recording->device, STORE_DEVICE,
                           &samples, &n, cli->arena, err))
        return -1;
    if (cli_given(cli, "json")) {
        cli_print_json(json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:s, s:o}", "device",
            recording->device.device, "isa", recording->device.isa, "ranks",
            (json_int_t)tests->n_ranks, "hosts", (json_int_t)tests->n_hosts,
            "sizes", (json_int_t)n_sizes, "db", cli_shown(cli, "db"),
            "held_out", comm_report_to_json(samples, n)));
        return 0;
    }
    buf_printf(&out,
               "device          %s, %s\n"
               "exchanges       of %zu sizes between %" PRIu32
               " ranks (nccl) on %" PRIu32 " host%s\n"
               "database        %s\n",
               recording->device.device, recording->device.isa, n_sizes,
               tests->n_ranks, tests->n_hosts, tests->n_hosts == 1 ? "" : "s",
               cli_shown(cli, "db"));
    if (comm_fit_samples(&fit, samples, n, cli->arena))
        buf_printf(&out, "communication   %s (%s)\n",
                   comm_fit_text(&fit, cli->arena), fit.source);
    comm_report_print(samples, n, &out);
    cli_print_report(&out);
    return 0;
}

static int record_exchanges(struct recording *recording, struct err *err)
{
    struct cli *cli = recording->cli;
    const char *path = cli_string(cli, "nccl-tests"), *text;
    struct nccl_tests tests;
    size_t len, n_sizes = 0;

    if (file_read(&text, &len, path, cli->arena, err) ||
        nccl_tests_parse(&tests, text, len, path, cli->arena, err))
        return -1;
    if (cli_given(cli, "hosts"))
        tests.n_hosts = (uint32_t)cli_u64(cli, "hosts");
    if (tests.n_hosts > tests.n_ranks)
        return err_set(err, ERR_USAGE,
                       "option '--hosts' says %" PRIu32 " hosts, where '%s' "
                       "lists %" PRIu32 " ranks",
                       tests.n_hosts, path, tests.n_ranks);
    if (store_open(&recording->store, cli_string(cli, "db"), STORE_WRITE,
                   err) ||
        recording_find_device(recording,
                              arena_printf(cli->arena, "cuda:%s", tests.device),
                              err) ||
        put_exchanges(recording, &tests, &n_sizes, err))
        return -1;
    return report_exchanges(recording, &tests, n_sizes, err);
}

static int run_record(struct cli *cli, struct err *err)
{
    struct recording recording = {.cli = cli};
    int rc = check_options(cli, err) || record_exchanges(&recording, err);

    store_close(recording.store);
    return rc ? -1 : 0;
}

const struct command command_record = {
    .name = "record",
    .synopsis = "--nccl-tests FILE --db FILE [options]",
    .summary = "put into the cost database what real jobs took",
    .options = {own_options},
    .json = "print JSON",
    .run = run_record,
};
