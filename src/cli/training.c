/* SPDX-License-Identifier: MIT */
#include "cli/training.h"

#include "base/cpu.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/progress.h"
#include "base/text.h"
#include "costmodel/learning/comm_fit.h"
#include "costmodel/learning/product_fit.h"
#include "costmodel/modelfile/model_file.h"
#include "device/gemm.h"
#include "io/store_rows.h"

#include <math.h>
#include <string.h>
#include <time.h>

const struct option_spec training_options[] = {
    {"epochs", 'e', OPTION_U64, "N", "0", 0, 1e6, NULL,
     "passes over the samples; 0: as many as 20,000 steps need"},
    {"time-limit", 0, OPTION_DOUBLE, "S", "0", 0, 1e9, NULL,
     "stop after this many seconds with the best model so far; 0: no limit"},
    {"kind", 0, OPTION_CHOICE, "KIND", "best", 0, 0,
     "best|roofline|net|roofline-net|monotone",
     "a fitted roofline, a net, a net on a fitted roofline, the best of them "
     "by cross-validation, or a monotone net on a fitted roofline"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL,
     "seed of the initial weights and of the shuffling"},
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "threads of the training; the model is the same for any number"},
    {"force", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "write a net even if it is worse than the sum of single tables or, for "
     "retrain, few samples judge it"},
    {0},
};

const struct option_spec setting_options[] = {
    {"precision", 0, OPTION_CHOICE, "NAME", NULL, 0, 0, "fp32|fp16|bf16|int8",
     "only samples of this precision of the weights; default: all"},
    {"optimizer", 0, OPTION_CHOICE, "NAME", NULL, 0, 0,
     "sgd|rowwise_adagrad|adagrad|adam",
     "only samples of this optimizer; default: all"},
    {"batch", 0, OPTION_U64, "B", NULL, 1, 16777216, NULL,
     "only samples of this batch; default: all"},
    {"since", 0, OPTION_STRING, "DATE", NULL, 0, 0, NULL,
     "only samples measured since this date (UTC), 2026-11-21 or "
     "2026-11-21T04:05:06Z; default: all"},
    {"disturbed", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "also use samples of a disturbed machine, if it is never idle"},
    {0},
};

const struct option_spec device_options[] = {
    {"device", 0, OPTION_STRING, "NAME", NULL, 0, 0, NULL,
     "part of the device's name, if the database holds several devices"},
    {"isa", 0, OPTION_STRING, "NAME", NULL, 0, 0, NULL,
     "instruction set of the device, e.g. avx512"},
    {"device-threads", 0, OPTION_U64, "N", NULL, 0, 1e6, NULL,
     "CPU threads of the device"},
    {0},
};

/* Returns the settings as a text: "A; B; C". */
static const char *list_settings(const struct sample_setting *settings,
                                 size_t n, struct cli *cli)
{
    const char *list = "", *last = "";

    for (size_t i = 0; i < n; i++) {
        const char *text = setting_text(&settings[i], cli->arena);

        /* settings that differ only in the host or the driver have the same
         * text */
        if (strcmp(text, last))
            list = arena_printf(cli->arena, "%s%s%s", list, *list ? "; " : "",
                                text);
        last = text;
    }
    return list;
}

/* Returns true if the options in setting_options select this setting. */
static bool is_wanted(const struct sample_setting *setting,
                      const struct cli *cli)
{
    return (!cli_given(cli, "precision") ||
            (int)setting->precision == cli_choice(cli, "precision")) &&
           (!cli_given(cli, "optimizer") ||
            (int)setting->optimizer == cli_choice(cli, "optimizer")) &&
           (!cli_given(cli, "batch") ||
            setting->batch == cli_u64(cli, "batch"));
}

bool is_same_device(const struct sample_setting *x,
                    const struct sample_setting *y)
{
    return !strcmp(x->device, y->device) && x->n_threads == y->n_threads &&
           !strcmp(x->isa, y->isa);
}

int training_choose_device(struct training *training, const char *name,
                           bool is_to_train, struct err *err)
{
    struct cli *cli = training->cli;
    const char *isa = cli_string(cli, "isa"), *path = cli_string(cli, "db");
    struct sample_setting *settings;
    size_t n, n_wanted = 0, n_others = 0;

    if (store_settings(training->store, &settings, &n, cli->arena, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if ((!is_to_train || is_wanted(&settings[i], cli)) &&
            (!name || strstr(settings[i].device, name)) &&
            (!isa || !strcmp(settings[i].isa, isa)) &&
            (!cli_given(cli, "device-threads") ||
             settings[i].n_threads == cli_u64(cli, "device-threads")))
            settings[n_wanted++] = settings[i];
    if (!n)
        return err_input(err, "'%s' holds no samples", path);
    if (!n_wanted)
        return err_input(err, "'%s' holds no samples of that kind; it has %s",
                         path, list_settings(settings, n, cli));
    for (size_t i = 0; i < n_wanted; i++)
        n_others += !is_same_device(&settings[i], &settings[0]);
    if (n_others)
        return err_usage(
            err,
            "a model is of one device, but '%s' holds several; "
            "choose one with --device, --isa or --device-threads: %s",
            path, list_settings(settings, n_wanted, cli));
    training->device = settings[0];
    return 0;
}

/* Returns true if the text is a date: "2026-11-21" or "2026-11-21T04:05:06Z",
 * with all digits. */
static bool is_date(const char *text)
{
    const size_t len = strlen(text);
    struct tm tm;
    const char *end =
        strptime(text, len == 10 ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ", &tm);

    return end && !*end && (len == 10 || len == 20) && !strchr(text, ' ');
}

int training_load(struct training *training, enum store_mode mode,
                  struct err *err)
{
    struct cli *cli = training->cli;
    struct arena *arena = cli->arena;
    struct store **store = &training->store;
    const struct sample_setting *device = &training->device;
    const char *path = cli_string(cli, "db"), *since = cli_string(cli, "since");
    struct sample_setting *settings;
    size_t n_settings, n = 0;

    if (!file_exists(path))
        return err_set(err, ERR_IO,
                       "no cost database '%s'; 'neuroshard bench' makes one",
                       path);
    if (store_open(store, path, mode, err) ||
        (!device->device &&
         training_choose_device(training, cli_string(cli, "device"), true,
                                err)))
        return -1;
    if (since && !is_date(since))
        return err_usage(err,
                         "option '--since' takes a date as '2026-11-21' or "
                         "'2026-11-21T04:05:06Z', not '%s'",
                         since);
    if (gemm_init(err) ||
        store_settings(*store, &settings, &n_settings, arena, err) ||
        store_samples(*store, device, STORE_DEVICE, &training->samples,
                      &training->n, arena, err) ||
        store_comm_samples(*store, device, STORE_DEVICE,
                           &training->comm_samples, &training->n_comm, arena,
                           err) ||
        store_products(*store, device, &training->products,
                       &training->n_products, arena, err))
        return -1;
    /* Texts of dates sort in the order of the dates. */
    for (size_t i = 0; i < training->n; i++) {
        if (cli_given(cli, "disturbed") &&
            training->samples[i].flags & SAMPLE_THROTTLED)
            training->samples[i].flags ^= SAMPLE_THROTTLED | SAMPLE_ACCEPTED;
        if (is_wanted(training->samples[i].setting, cli) &&
            (!since || strcmp(training->samples[i].started_at, since) >= 0))
            training->samples[n++] = training->samples[i];
    }
    training->n = n;
    if (n)
        return 0;
    return err_input(
        err,
        "the database holds no samples of %s that match the options; it has %s",
        device_text(device, arena),
        n_settings ? list_settings(settings, n_settings, cli) : "none at all");
}

/* A training whose progress is shown, with all its nets. */
struct watched {
    struct progress progress;
    unsigned n_nets, n_begun; /* nets in all, and nets that were begun */
    uint64_t n_planned;       /* epochs of the nets that were begun */
    /* least loss of a single net; INFINITY before the first epoch */
    double best_loss;
    unsigned best_epoch;
};

static void tell_best(const void *ctx, struct buf *out)
{
    const struct watched *watched = ctx;

    if (watched->n_nets > 1)
        buf_printf(out, ", network %u of %u", watched->n_begun,
                   watched->n_nets);
    else if (isfinite(watched->best_loss))
        buf_printf(out, ", best loss %.4g (epoch %u)", watched->best_loss,
                   watched->best_epoch);
}

static int on_epoch(void *ctx, const struct train_epoch *epoch)
{
    struct watched *watched = ctx;

    if (epoch->epoch == 1) {
        watched->n_nets = epoch->n_nets;
        watched->n_begun++;
        watched->n_planned += epoch->epochs;
    }
    if (epoch->validation_loss < watched->best_loss) {
        watched->best_loss = epoch->validation_loss;
        watched->best_epoch = epoch->epoch;
    }
    watched->progress.total =
        watched->n_planned * watched->n_nets / watched->n_begun;
    progress_update(&watched->progress, watched->progress.done + 1);
    return interrupt_requested();
}

int training_fit(struct training *training, int kind,
                 struct train_options *options, const char *label,
                 struct err *err)
{
    struct watched watched = {.best_loss = INFINITY};
    int rc;

    options->on_epoch = on_epoch;
    options->ctx = &watched;
    progress_start(&watched.progress, label, options->epochs,
                   cli_given(training->cli, "verbose"));
    watched.progress.limit_s = options->time_limit_s;
    watched.progress.tell = tell_best;
    watched.progress.ctx = &watched;
    if (kind >= 0)
        options->kind = (enum model_kind)kind;
    rc = (kind < 0 ? train_choose : train_fit)(
        &training->model, training->samples, training->n, options,
        training->cli->arena, err);
    progress_finish(&watched.progress);
    return rc;
}

int training_run(struct training *training, struct err *err)
{
    struct cli *cli = training->cli;
    struct model *model = &training->model;
    const int kind =
        cli_choice(cli, "kind") - 1; /* kind of model; -1: the best kind */
    struct train_options options;

    train_options_init(&options);
    options.epochs = (unsigned)cli_u64(cli, "epochs");
    options.time_limit_s = cli_double(cli, "time-limit");
    options.seed = cli_u64(cli, "seed");
    options.n_threads = cli_given(cli, "threads")
                            ? (unsigned)cli_u64(cli, "threads")
                            : cpu_count();
    if (training_fit(training, kind, &options, "epochs", err))
        return -1;
    evaluate_model(&training->evaluation, model, training->samples,
                   training->n);
    evaluation_store(model, &training->evaluation);
    model->has_comm = comm_fit_samples(&model->comm, training->comm_samples,
                                       training->n_comm, cli->arena);
    training->n_products_left_out =
        product_fit(&model->products, training->products, training->n_products,
                    cli_given(cli, "disturbed"), cli->arena);
    return 0;
}

int training_save(struct model *model, const char *path, struct err *err)
{
    struct lock lock;
    int rc;

    if (lock_take(&lock, path, MODEL_WAIT_S, err))
        return -1;
    rc = model_save(model, path, err);
    lock_release(&lock);
    return rc;
}
