/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/file.h"
#include "base/file_write.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/text.h"
#include "cli/training.h"
#include "costmodel/learning/drift.h"
#include "costmodel/modelfile/model_file.h"
#include "io/store_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXIT_KEPT 4

static const struct option_spec file_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database with the samples; logs the verdict"},
    {"model", 'm', OPTION_UPDATE, "FILE", NULL, 0, 0, NULL,
     "model file in use, replaced only by a better one"},
    {"min-gain", 0, OPTION_STRING, "GAIN", "3se", 0, 0, NULL,
     "least reduction of the mean error: standard errors (3se) or percentage "
     "points (0.5%)"},
    {"exit-code", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "exit with status 4 if the old model was kept"},
    {0},
};

/* The old model and the new model, which are judged by the same held-out
 * samples. */
struct contest {
    struct training training; /* the new model and the samples in use */
    /* number of samples that are left out because they are older than
     * `since` */
    size_t n_older;
    const char *since;
    const char *path, *shown; /* path of the model; and the path in a form that
                                 is safe to print */
    const char *old_data;     /* content of the old model's file */
    size_t old_len;
    struct model old_model;
    char old_hash[HASH_TEXT_MAX], new_hash[HASH_TEXT_MAX];
    struct least_gain min_gain;
    struct paired paired;
    struct model_verdict verdict;
};

static int parse_gain(struct contest *contest, const char *text,
                      struct arena *arena, struct err *err)
{
    size_t len = strlen(text);
    double value;

    contest->min_gain.in_errors = len > 2 && !strcmp(text + len - 2, "se");
    len -= contest->min_gain.in_errors ? 2 : len && text[len - 1] == '%';
    if (!text[len] ||
        !text_to_double(arena_strndup(arena, text, len), &value) || value < 0 ||
        value > 100)
        return err_usage(err,
                         "option '--min-gain' takes standard errors as '3se' "
                         "or percentage points as '0.5%%', 0 to 100, not '%s'",
                         text);
    contest->min_gain.value = contest->min_gain.in_errors ? value : value / 100;
    return 0;
}

static int load_old(struct contest *contest, struct arena *arena,
                    struct err *err)
{
    if (file_read(&contest->old_data, &contest->old_len, contest->path, arena,
                  err))
        return -1;
    return model_parse(&contest->old_model, contest->old_data, contest->old_len,
                       contest->path, arena, err);
}

static void print_text(const struct contest *contest)
{
    const struct model_verdict *verdict = &contest->verdict;

    cli_printf("%s %s: mean error %.2f %% before, %.2f %% after training on "
               "%" PRIu64 " samples, of %" PRIu64 " held-out cases; ",
               verdict->replaced ? "replaced" : "kept", contest->shown,
               100 * verdict->old_mape, 100 * verdict->new_mape,
               verdict->n_samples, verdict->n_held_out);
    if (verdict->reason)
        cli_printf("%s\n", verdict->reason);
    else
        cli_printf("gain %.2f points, but %.2f%s are needed\n",
                   100 * contest->paired.gain, 100 * verdict->min_gain,
                   contest->min_gain.in_errors
                       ? text_say(contest->training.cli->arena,
                                  " (%g standard errors)",
                                  contest->min_gain.value)
                       : "");
    if (contest->n_older)
        cli_printf("drift: %zu samples from before %s were left out\n",
                   contest->n_older, contest->since);
}

static void print_json(const struct contest *contest)
{
    const struct model_verdict *verdict = &contest->verdict;

    cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:s?, "
        "s:s?}",
        "verdict", verdict->replaced ? "replaced" : "kept", "model",
        contest->shown, "old_hash", verdict->old_hash, "new_hash",
        verdict->new_hash, "hash",
        verdict->replaced ? verdict->new_hash : verdict->old_hash, "old_mape",
        json_real_or_null(verdict->old_mape), "new_mape",
        json_real_or_null(verdict->new_mape), "gain",
        json_real_or_null(contest->paired.gain), "gain_se",
        json_real_or_null(verdict->gain_se), "least_gain",
        json_real_or_null(verdict->min_gain), "samples",
        (json_int_t)verdict->n_samples, "held_out",
        (json_int_t)verdict->n_held_out, "reason", verdict->reason, "since",
        contest->n_older ? contest->since : NULL));
}

/* Keeps only the samples that were measured at `since` or later, and so show
 * the device in its present state. */
static void drop_older(struct contest *contest, const char *since)
{
    struct training *training = &contest->training;
    const size_t n = drift_weigh(since, training->samples, training->n);

    contest->since = since;
    contest->n_older += training->n - n;
    training->n = n;
}

/* Decides whether the new model replaces the old one: it must be better by at
 * least the required gain. If the new model is of no use at all, the verdict
 * already has its reason. */
static void judge(struct contest *contest)
{
    const struct model *model = &contest->training.model;
    const struct paired *paired = &contest->paired;
    struct model_verdict *verdict = &contest->verdict;

    verdict->model_path = contest->path;
    verdict->old_hash = hash_text(contest->old_hash, contest->old_model.hash);
    verdict->new_hash = hash_text(contest->new_hash, model->hash);
    verdict->replaced =
        paired_suffices(paired, &contest->min_gain, &verdict->min_gain) &&
        !verdict->reason;
    verdict->old_mape = paired->old_mape;
    verdict->new_mape = paired->new_mape;
    verdict->gain_se = paired->gain_se;
    verdict->n_samples = model->training.n_train + model->training.n_validation;
    verdict->n_held_out = paired->n;
    verdict->setting = model_setting_text(model, contest->training.cli->arena);
}

/* Compares the new model with the model that is in use now. It is read again,
 * because another process may have replaced the old model during the
 * training. */
static int hold_contest(struct contest *contest, struct err *err)
{
    struct training *training = &contest->training;
    struct arena *arena = training->cli->arena;
    const char *kept = arena_printf(arena, "%s.1", contest->path);
    const struct sample_setting *old = &contest->old_model.setting;
    struct lock lock = {0};
    int rc = -1;

    if (lock_take(&lock, contest->path, MODEL_WAIT_S, err) ||
        load_old(contest, arena, err))
        goto out;
    if (!is_same_device(old, &training->device)) {
        err_input(
            err, "'%s' was replaced meanwhile by a model of another device: %s",
            contest->path, device_text(old, arena));
        goto out;
    }
    if (strcmp(contest->old_model.training.measured_from, contest->since) > 0)
        drop_older(contest, contest->old_model.training.measured_from);
    evaluate_pair(&contest->paired, &contest->old_model, &training->model,
                  training->samples, training->n);
    judge(contest);
    if ((contest->verdict.replaced &&
         (file_write(kept, contest->old_data, contest->old_len, err) ||
          model_save(&training->model, contest->path, err))) ||
        store_log_verdict(training->store, &contest->verdict, err))
        goto out;
    rc = 0;
out:
    lock_release(&lock);
    return rc;
}

/* Trains the new model, but does not write it to its file. */
static int train_new(struct contest *contest, struct err *err)
{
    struct training *training = &contest->training;
    struct arena *arena = training->cli->arena;
    const char *data, *since = "";
    size_t len, n_held_out;
    struct drift drift;

    drift_find(&drift, &contest->old_model, training->samples, training->n);
    drop_older(contest, drift.since);
    if (contest->n_older)
        since = arena_printf(arena, " since %s, when the device changed",
                             drift.since);
    n_held_out = evaluate_n_held_out(training->samples, training->n);
    if (!n_held_out)
        return err_input(err,
                         "too few samples to retrain '%s': no held-out cases "
                         "(one in ten) to evaluate it on%s",
                         contest->path, since);
    if (n_held_out < EVALUATE_MIN_HELD_OUT &&
        !cli_given(training->cli, "force"))
        return err_input(
            err,
            "too few samples to evaluate a model on: %zu held-out cases (one "
            "in ten)%s, but %d are needed; '--force' trains anyway",
            n_held_out, since, EVALUATE_MIN_HELD_OUT);
    if (training_run(training, err))
        return -1;
    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted after epoch %" PRIu64 "; '%s' is untouched",
                       training->model.training.epochs, contest->path);
    /* The verdict names the model by its hash, even if the model is never
     * written. */
    model_to_bytes(&training->model, &data, &len, arena);
    if (!cli_given(training->cli, "force"))
        contest->verdict.reason =
            evaluation_lost_text(&training->evaluation, arena);
    return 0;
}

static int run_retrain(struct cli *cli, struct err *err)
{
    struct contest contest = {.path = cli_string(cli, "model"),
                              .training = {.cli = cli}};
    struct training *training = &contest.training;
    int rc;

    if (parse_gain(&contest, cli_string(cli, "min-gain"), cli->arena, err) ||
        load_old(&contest, cli->arena, err))
        return -1;
    contest.shown = cli_shown(cli, "model");
    training->device = contest.old_model.setting;
    rc = training_load(training, STORE_WRITE, err) ||
         train_new(&contest, err) || hold_contest(&contest, err);
    store_close(training->store);
    if (rc)
        return -1;
    (cli_given(cli, "json") ? print_json : print_text)(&contest);
    return contest.verdict.replaced || !cli_given(cli, "exit-code") ? 0
                                                                    : EXIT_KEPT;
}

const struct command command_retrain = {
    .name = "retrain",
    .synopsis = "--db FILE --model FILE [options]",
    .summary = "train again on all samples, keep the better model",
    .options = {file_options, training_options, setting_options,
                progress_options},
    .needs = {"db", "model"},
    .run = run_retrain,
};
