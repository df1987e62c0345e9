/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/recorded_factors.h"
#include "cli/recorded_memory.h"
#include "cli/training.h"
#include "costmodel/formulas/comm_curves.h"
#include "costmodel/learning/comm_fit.h"
#include "costmodel/learning/comm_report.h"
#include "costmodel/learning/dataset.h"
#include "exec/exec_samples.h"
#include "exec/job.h"
#include "io/nccl_tests.h"
#include "io/plan_json.h"
#include "io/store_rows.h"
#include "io/times.h"

#include <string.h>

/* Maximum number of --times files; there is at most one per rank. */
#define MAX_FILES 1024
/* Batch of recorded exchanges. A setting must have a batch, but the batch of an
 * exchange is never used. */
#define ANY_BATCH 65536
/* Largest factor between measured and predicted times of the same device. If
 * the factor is larger, the times were measured on another device or are in
 * another unit. */
#define MAX_OFF 5.0
/* Time in ms per rank that launches and small kernels may take in addition to
 * the predicted time. */
#define MAX_BASE_MS 1.0

static const struct option_spec own_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database to add the measurements to; created if missing"},
    {"times", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "times of each phase by step and rank; more files follow the plan"},
    {"output", 'o', OPTION_RESULT, "FILE", NULL, 0, 0, NULL,
     "file to write the plan's tables to, with measured factors"},
    {"output-cluster", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "file to write its cluster to, with slow GPUs and measured bandwidth"},
    {"warm-up", 0, OPTION_U64, "N", "3", 0, 1e6, NULL,
     "steps at the beginning that are left out"},
    {"memory", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "peak memory by rank, or a log with PyTorch's out-of-memory messages"},
    {"insist", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "store times even if they hardly fit the named device"},
    {"nccl-tests", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "output of alltoall_perf of nccl-tests or rccl-tests"},
    {"hosts", 0, OPTION_U64, "N", NULL, 1, 1e6, NULL,
     "hosts that its ranks ran on; default: as the file lists them"},
    {0},
};

struct record_request {
    /* only the members cli, store and device are used */
    struct training training;
    struct plan plan;
    struct times times;
    struct job_times job;
    struct job_memory memory;        /* n is 0 without --memory */
    struct recorded_factors factors; /* without --output there are none */
    uint64_t hash;                   /* hash of all --times files */
    uint32_t n_samples, n_added, n_exchanges;
};

/* Returns true if the device is named completely, so that it needs no entry in
 * the database. */
static bool is_complete(const struct sample_setting *device)
{
    return device->isa && device->device && strchr(device->device, ':');
}

/*
 * Sets the device that was measured. Its name comes from --device, or else from
 * the argument `name`. If --isa is given, a complete name (with ':') is used
 * unchanged. In all other cases the name must match one device of the database,
 * or else the argument `isa` completes the name, unless it is NULL.
 *
 * Opens the database if it exists. A database is only created when there is
 * something to store (open_store).
 */
static int find_device(struct record_request *record, const char *name,
                       const char *isa, struct err *err)
{
    struct training *training = &record->training;
    const struct cli *cli = training->cli;
    const char *path = cli_string(cli, "db");

    if (cli_given(cli, "device")) {
        name = cli_string(cli, "device");
        isa = NULL;
    }
    training->device = (struct sample_setting){
        .device = name,
        .isa = cli_string(cli, "isa"),
        .n_threads = (uint32_t)cli_u64(cli, "device-threads")};
    if (file_exists(path) &&
        store_open(&training->store, path, STORE_WRITE, err))
        return -1;
    if (is_complete(&training->device))
        return 0;
    if (training->store && name &&
        !training_choose_device(training, name, false, err))
        return 0;
    if (!training->device.isa)
        training->device.isa = isa;
    if (is_complete(&training->device))
        return 0;
    return err_usage(
        err, "the database does not show which device was measured: give its "
             "'--device', as 'cuda:NVIDIA H200', and its '--isa', as 'sm_90'");
}

/* Opens the database to store something. Creates it if it is missing. */
static int open_store(struct record_request *record, struct err *err)
{
    struct training *training = &record->training;

    return training->store
               ? 0
               : store_open(&training->store, cli_string(training->cli, "db"),
                            STORE_WRITE, err);
}

/* Stores an exchange. Precision and optimizer do not matter for an exchange, so
 * they are set to the most common values. */
static int put_exchange(struct record_request *record,
                        const struct comm_sample *sample, struct err *err)
{
    struct sample_sink sink = store_sink(record->training.store);
    struct sample_setting setting = record->training.device;

    setting.precision = PRECISION_FP32;
    setting.optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    setting.batch = ANY_BATCH;
    record->n_exchanges++;
    return sample_sink_put_comm(&sink, &setting, sample, err);
}

/* Returns the first members of the JSON report, which are the same for
 * exchanges and jobs: {device, isa, db, ...}. */
static json_t *head_to_json(const struct record_request *record)
{
    const struct sample_setting *device = &record->training.device;
    const struct cli *cli = record->training.cli;

    return json_pack("{s:s?, s:s?, s:s?, s:i}", "device", device->device, "isa",
                     device->isa, "db",
                     cli_given(cli, "db") ? cli_shown(cli, "db") : NULL,
                     "exchanges", record->n_exchanges);
}

static void print_head(const struct record_request *record)
{
    struct cli *cli = record->training.cli;

    if (cli_given(cli, "db"))
        cli_printf("device          %s\ndatabase        %s\n",
                   device_text(&record->training.device, cli->arena),
                   cli_shown(cli, "db"));
}

/* --- exchanges --- */

static int report_exchanges(struct record_request *record,
                            const struct nccl_tests *tests, struct err *err)
{
    struct cli *cli = record->training.cli;
    struct comm_sample *samples;
    struct comm_curves fit;
    json_t *root;
    size_t n;

    if (store_comm_samples(record->training.store, &record->training.device,
                           STORE_DEVICE, &samples, &n, cli->arena, err))
        return -1;
    root = head_to_json(record);
    json_object_set_new(root, "held_out", comm_report_to_json(samples, n));
    cli_print_json(root);
    print_head(record);
    cli_printf("exchanges       %u between %u ranks on %u host%s\n",
               record->n_exchanges, tests->n_ranks, tests->n_hosts,
               tests->n_hosts == 1 ? "" : "s");
    if (comm_fit_samples(&fit, samples, n, cli->arena))
        cli_printf("communication   %s (%s)\n",
                   comm_curves_text(&fit, cli->arena), fit.source);
    comm_report_print(samples, n, cli_text());
    return 0;
}

static int record_exchanges(struct record_request *record, struct err *err)
{
    struct cli *cli = record->training.cli;
    const char *path = cli_string(cli, "nccl-tests"), *text;
    struct nccl_tests tests;
    size_t len;

    if (file_read(&text, &len, path, cli->arena, err) ||
        nccl_tests_parse(&tests, text, len, path, cli->arena, err))
        return -1;
    if (tests.doubt)
        cli_warn(NULL, tests.doubt);
    if (cli_given(cli, "hosts"))
        tests.n_hosts = (uint32_t)cli_u64(cli, "hosts");
    if (tests.n_hosts > tests.n_ranks)
        return err_usage(
            err,
            "option '--hosts' gives %u hosts, but '%s' lists only %u ranks",
            tests.n_hosts, path, tests.n_ranks);
    if (find_device(record, arena_printf(cli->arena, "cuda:%s", tests.device),
                    NULL, err) ||
        open_store(record, err))
        return -1;
    for (size_t i = 0; i < tests.n_rows; i++) {
        const double ms = 1e-3 * tests.rows[i].us;
        const uint64_t total = tests.rows[i].bytes * tests.n_ranks;
        const uint64_t n_hosts = tests.n_hosts;
        const struct comm_sample sample = {
            .kind = "nccl",
            .n_ranks = tests.n_ranks,
            .n_hosts = tests.n_hosts,
            .total_bytes = total,
            .max_bytes = tests.rows[i].bytes,
            .host_bytes = total / n_hosts * (n_hosts - 1) / n_hosts,
            .time = {ms, ms, ms}};

        if (put_exchange(record, &sample, err))
            return -1;
    }
    return report_exchanges(record, &tests, err);
}

/* --- jobs --- */

static int read_times(struct record_request *record, struct err *err)
{
    struct cli *cli = record->training.cli;

    record->times.n_ranks = record->plan.problem.cluster.n_devices;
    for (size_t i = 0; i < cli->n_args; i++) {
        const char *path = i ? cli->args[i] : cli_string(cli, "times"), *text;
        size_t len;

        if (file_read(&text, &len, path, cli->arena, err) ||
            times_add(&record->times, text, len, path, cli->arena, err))
            return -1;
        if (record->times.is_cut)
            cli_warn(NULL, text_say(cli->arena,
                                    "%s: the last line does not end in a "
                                    "newline, so the file may be truncated",
                                    path));
        record->times.is_cut = false;
        record->hash = hash_bytes(text, len, record->hash);
    }
    if (job_times_init(&record->job, &record->plan, record->times.times,
                       record->times.n, cli_u64(cli, "warm-up"), cli->arena,
                       err))
        return err_prefix(err, "%s", cli_string(cli, "times"));
    if (record->job.doubt)
        cli_warn(NULL, text_say(cli->arena, "%s: %s", cli_string(cli, "times"),
                                record->job.doubt));
    return 0;
}

static bool is_cpu(const struct record_request *record)
{
    const char *device = record->training.device.device;
    const char *gpu = record->plan.problem.cluster.gpu;

    return device ? !strncmp(device, "cpu:", 4) : gpu && !strcmp(gpu, "cpu");
}

/* Refuses lookup times that are far from the predicted times, because they were
 * probably not measured on the GPU for which they would be stored. */
static int check_device(const struct record_request *record, struct err *err)
{
    const struct job_times *job = &record->job;
    const char *device = record->training.device.device;
    const char *gpu = record->plan.problem.cluster.gpu;
    double measured_ms = 0, predicted_ms = 0, base_ms = 0;

    for (uint32_t r = 0; r < job->n_ranks; r++) {
        const struct job_phase *own = &job->phases[2 * (size_t)r];
        const double ms = own[0].predicted_ms + own[1].predicted_ms;

        if (!(job->totals[r].median_ms > 0) || !(ms > 0))
            continue;
        measured_ms += job->totals[r].median_ms;
        predicted_ms += ms;
        base_ms += MAX_BASE_MS;
    }
    if (is_cpu(record) || !(predicted_ms > 0) ||
        cli_given(record->training.cli, "insist") ||
        (measured_ms <= MAX_OFF * predicted_ms + base_ms &&
         measured_ms * MAX_OFF >= predicted_ms))
        return 0;
    return err_input(err,
                     "%s: forward and backward take %.3g times as long as '%s' "
                     "predicts, %.3g ms instead of %.3g ms, so they were "
                     "hardly measured on '%s'; name another device with "
                     "'--device', or store them anyway with '--insist'",
                     cli_string(record->training.cli, "times"),
                     measured_ms / predicted_ms, record->plan.cost.name,
                     measured_ms, predicted_ms,
                     device ? device
                     : gpu  ? gpu
                            : "its GPU");
}

/* Stores a sample for each rank whose lookup times are known. Samples of a
 * straggler are marked as disturbed, so that training leaves them out. */
static int put_samples(struct record_request *record, struct err *err)
{
    struct sample_sink sink = store_sink(record->training.store);
    char started_at[CLOCK_TEXT_MAX];

    clock_utc(started_at);
    for (uint32_t r = 0; r < record->job.n_ranks; r++) {
        const struct job_phase *own = &record->job.phases[2 * (size_t)r];
        struct sample_setting setting = record->training.device;
        struct sample sample = {
            .seed = record->hash,
            .forward = own[0].time,
            .backward = own[1].time,
            .total = record->job.totals[r],
            .n_iterations = (uint32_t)record->job.n_steps,
            .flags = own->straggles > 1 ? SAMPLE_THROTTLED : 0,
            .version = NEUROSHARD_VERSION,
            .started_at = started_at,
        };

        if (!exec_samples_planned(&sample, &setting, &record->plan, r,
                                  record->training.cli->arena) ||
            !(sample.total.median_ms > 0))
            continue;
        record->n_samples++;
        if (sample_leave_out_checks(&sample, &setting,
                                    record->training.cli->arena, err) ||
            sample_sink_add(&sink, &setting, &sample, &record->n_added, err))
            return -1;
    }
    return 0;
}

/* Stores the time of the all-to-all of the outputs. If it is not known, stores
 * the time of the all-to-all of their gradients. */
static int put_outputs(struct record_request *record, struct err *err)
{
    const struct job_times *job = &record->job;
    const struct job_phase *all = &job->phases[2 * (size_t)job->n_ranks];
    struct comm_sample sample = {
        .kind = is_cpu(record) ? "mpi" : "nccl",
        .time = all[isnan(all[1].time.median_ms) ? 2 : 1].time,
        .n_iterations = (uint32_t)job->n_steps};

    if (!exec_samples_exchange(&sample, &record->plan,
                               record->training.cli->arena) ||
        !(sample.time.median_ms > 0))
        return 0;
    return put_exchange(record, &sample, err);
}

#define PHASE(member) MEMBER_OF(struct job_phase, member)
static const struct figure columns[] = {
    {"rank", "rank", -5, 0, FIGURE_PLAIN, PHASE(rank)},
    {"phase", "phase", -8, 0, FIGURE_PLAIN, PHASE(name)},
    {"measured_ms", "measured", 8, 3, FIGURE_PLAIN, PHASE(time.median_ms)},
    {"p10_ms", "p10", 8, 3, FIGURE_PLAIN, PHASE(time.p10_ms)},
    {"p90_ms", "p90", 8, 3, FIGURE_PLAIN, PHASE(time.p90_ms)},
    {"predicted_ms", "predicted", 9, 3, FIGURE_PLAIN, PHASE(predicted_ms)},
    {"differs_frac", "differs %", 9, 1, FIGURE_PERCENT, PHASE(differs_frac)},
    {"note", "", 0, 0, FIGURE_NOTE, PHASE(note)},
    {0},
};
#define CAUSE(member) MEMBER_OF(struct job_cause, member)
static const struct figure cause_columns[] = {
    {"cause", "cause, each taken alone", -32, 0, FIGURE_PLAIN, CAUSE(what)},
    {"explained_frac", "of the difference %", 19, 1, FIGURE_PERCENT,
     CAUSE(explained_frac)},
    {0},
};

static void report_job(const struct record_request *record)
{
    const struct job_times *job = &record->job;
    struct cli *cli = record->training.cli;
    struct job_phase *known =
        ARENA_NEW(cli->arena, struct job_phase, job->n_phases);
    struct job_cause causes[JOB_CAUSES];
    const size_t n_causes = job_causes(causes, job, cli->arena);
    const char *verdict = job_verdict(job, causes, n_causes, cli->arena);
    json_t *root = head_to_json(record);
    struct buf *out = cli_text();
    size_t n = 0;

    for (size_t i = 0; i < job->n_phases; i++)
        if (!isnan(job->phases[i].time.median_ms))
            known[n++] = job->phases[i];
    json_object_update_new(
        root, json_pack("{s:I, s:i, s:i, s:o, s:o, s:s?}", "steps",
                        (json_int_t)job->n_steps, "samples", record->n_samples,
                        "stored", record->n_added, "phases",
                        FIGURES_LIST(columns, known, n), "causes",
                        FIGURES_LIST(cause_columns, causes, n_causes),
                        "verdict", verdict));
    recorded_factors_to_json(&record->factors, root);
    if (record->memory.n)
        json_object_set_new(
            root, "memory",
            recorded_memory_to_json(&record->memory, cli->arena));
    cli_print_json(root);
    print_head(record);
    cli_printf("job             %u ranks, %zu steps after warm-up\n",
               job->n_ranks, job->n_steps);
    if (cli_given(cli, "db"))
        cli_printf("samples         %u, %u of them new, and %u exchange%s\n",
                   record->n_samples, record->n_added, record->n_exchanges,
                   record->n_exchanges == 1 ? "" : "s");
    FIGURES_TABLE(columns, known, n, out);
    if (verdict)
        buf_printf(out, "%s\n", verdict);
    FIGURES_TABLE(cause_columns, causes, n_causes, out);
    recorded_factors_print(&record->factors, out);
    if (record->memory.n)
        recorded_memory_print(&record->memory, cli->arena, out);
}

/* Returns item n of a text such as "fbgemm:NVIDIA H200, sm_90, fp32", from 0;
 * NULL if it has none. */
static const char *nth_item(const char *text, unsigned n, struct arena *arena)
{
    for (; text && n; n--) {
        text = strchr(text, ',');
        text = text ? text + 1 + strspn(text + 1, " ") : NULL;
    }
    return text ? arena_strndup(arena, text, strcspn(text, ",")) : NULL;
}

/* Names the device of a job: as the plan's cost model does, or this machine's
 * CPU if the plan is for one and --device-threads gives its threads. */
static int find_device_of_job(struct record_request *record, struct err *err)
{
    const struct cli *cli = record->training.cli;
    const char *device = nth_item(record->plan.cost.device, 0, cli->arena);
    const char *isa = nth_item(record->plan.cost.device, 1, cli->arena);
    char name[128];

    if (is_cpu(record)) {
        isa = NULL;
        if (cli_given(cli, "device-threads")) {
            device = arena_printf(cli->arena, "cpu:%s",
                                  cpu_model_name(name, sizeof(name)));
            isa = cpu_isa_name(cpu_isa_best());
        }
    }
    return find_device(record, device, isa, err);
}

static int record_job(struct record_request *record, struct err *err)
{
    const struct cli *cli = record->training.cli;
    const bool is_stored = cli_given(cli, "db");

    if (read_times(record, err) ||
        (is_stored && find_device_of_job(record, err)) ||
        check_device(record, err))
        return -1;
    if (is_stored && (open_store(record, err) || put_samples(record, err) ||
                      put_outputs(record, err)))
        return -1;
    if (recorded_factors_save(&record->factors, &record->plan, &record->job,
                              !record->times.has_starts, cli, err))
        return -1;
    report_job(record);
    return 0;
}

/* Compares the memory of a job with its plan. Stores nothing. */
static int record_memory(struct record_request *record)
{
    struct cli *cli = record->training.cli;

    cli_print_json(
        json_pack("{s:o}", "memory",
                  recorded_memory_to_json(&record->memory, cli->arena)));
    recorded_memory_print(&record->memory, cli->arena, cli_text());
    return 0;
}

/* Reads the plan and --memory, and records --times if they are given. */
static int record_plan(struct record_request *record, struct err *err)
{
    struct cli *cli = record->training.cli;

    if (plan_load(&record->plan, cli->args[0], cli->arena, err) ||
        (cli_given(cli, "memory") &&
         recorded_memory_read(&record->memory, &record->plan, cli, err)))
        return -1;
    return cli_given(cli, "times") ? record_job(record, err)
                                   : record_memory(record);
}

/* Refuses options that have no effect, and requires a database if something is
 * stored. */
static int check_options(const struct cli *cli, struct err *err)
{
    const bool is_job = cli_given(cli, "times");
    const bool is_stored = is_job || cli_given(cli, "nccl-tests");
    const struct {
        const char *option, *needs;
        bool has_effect;
    } uses[] = {
        {"hosts", "nccl-tests", is_stored && !is_job},
        {"warm-up", "times", is_job},
        {"insist", "times", is_job},
        {"output", "times", is_job},
        {"output-cluster", "output", cli_given(cli, "output")},
        {"db", "times", is_stored},
        {"device", "times", is_stored},
    };

    for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++)
        if (cli_given(cli, uses[i].option) && !uses[i].has_effect)
            return err_usage(err, "option '--%s' needs '--%s'", uses[i].option,
                             uses[i].needs);
    if (!is_stored || cli_given(cli, "db") || cli_given(cli, "output"))
        return 0;
    return err_usage(err, "option '--db' is needed: cost database to add the "
                          "measurements to; created if missing");
}

static int run_record(struct cli *cli, struct err *err)
{
    struct record_request record = {.training = {.cli = cli}};
    const bool is_times = cli_given(cli, "times");
    const bool is_of_plan = is_times || cli_given(cli, "memory");
    int rc;

    if (is_of_plan == cli_given(cli, "nccl-tests") ||
        (cli->n_args > 0) != is_of_plan)
        return err_usage(err, "give a PLAN and '--times' or '--memory', or "
                              "'--nccl-tests' alone");
    if (!is_times && cli->n_args > 1)
        return err_usage(err, "more files follow the plan only with '--times'");
    if (check_options(cli, err))
        return -1;
    rc =
        is_of_plan ? record_plan(&record, err) : record_exchanges(&record, err);
    store_close(record.training.store);
    times_release(&record.times);
    return rc;
}

const struct command command_record = {
    .name = "record",
    .synopsis = "PLAN [TIMES...] --times FILE --db FILE | PLAN [TIMES...] "
                "--times FILE -o FILE | PLAN --memory FILE | --nccl-tests FILE "
                "--db FILE",
    .summary = "add measurements from elsewhere to a cost database",
    .options = {own_options, device_options},
    .n_args = {0, 1 + MAX_FILES},
    .run = run_record,
};
