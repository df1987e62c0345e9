/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "cli/training.h"

#include <inttypes.h>
#include <stdio.h>

static const struct option_spec retrain_options[] = {
    {"db", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "cost database with the samples; gets the verdict"},
    {"model", 'm', OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "model file in use, replaced only by a better one"},
    TRAINING_OPTIONS,
    SETTING_OPTIONS,
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print the verdict as JSON"},
    {0},
};

/* The old model and the new one, judged by the same held-out samples. */
struct contest {
    struct model old_model, new_model;
    double old_mape, new_mape;
    size_t n_held_out, n_samples;
    bool replaced;
};

static void print_text(const struct contest *contest, const char *path)
{
    printf("%s %s: mean error %.2f %% before, %.2f %% after training on %zu "
           "samples, of %zu held-out cases\n",
           contest->replaced ? "replaced" : "kept", path,
           100 * contest->old_mape, 100 * contest->new_mape, contest->n_samples,
           contest->n_held_out);
}

static void print_json(const struct contest *contest, const char *path)
{
    char old_hash[HASH_TEXT_MAX], new_hash[HASH_TEXT_MAX];

    hash_text(old_hash, contest->old_model.hash);
    hash_text(new_hash, contest->replaced ? contest->new_model.hash
                                          : contest->old_model.hash);
    training_print_json(json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:f, s:I, s:I}", "verdict",
        contest->replaced ? "replaced" : "kept", "model", path, "old_hash",
        old_hash, "hash", new_hash, "old_mape", contest->old_mape, "new_mape",
        contest->new_mape, "samples", (json_int_t)contest->n_samples,
        "held_out", (json_int_t)contest->n_held_out));
}

/* Trains a rival, and puts it in the old model's place if it is better. */
static int hold_contest(struct contest *contest, const char *path,
                        const struct measurements *measurements,
                        struct cli *cli, struct err *err)
{
    struct evaluation old_one, new_one;

    evaluate_model(&old_one, &contest->old_model, measurements->samples,
                   measurements->n);
    contest->n_held_out = old_one.errors[PREDICTOR_NET].n;
    if (!contest->n_held_out)
        return err_set(err, ERR_INPUT,
                       "too few samples to retrain '%s': no held-out case "
                       "(the last of each ten) to judge by",
                       path);
    if (training_run(&contest->new_model, &new_one, measurements, cli, err))
        return -1;
    contest->old_mape = old_one.errors[PREDICTOR_NET].mape;
    contest->new_mape = new_one.errors[PREDICTOR_NET].mape;
    contest->n_samples = (size_t)(contest->new_model.training.n_train +
                                  contest->new_model.training.n_validation);
    contest->replaced = contest->new_mape < contest->old_mape;
    if (contest->replaced)
        return model_save(&contest->new_model, path, err);
    return 0;
}

static int run_retrain(struct cli *cli, struct err *err)
{
    struct measurements measurements;
    struct sample_setting device;
    struct contest contest = {.replaced = false};
    const char *path = cli_string(cli, "model");
    struct store *store = NULL;
    char hash[HASH_TEXT_MAX];
    int rc = -1;

    if (!cli_given(cli, "db") || !path) {
        err_set(err, ERR_USAGE,
                "options '--db' and '--model' are needed: where the samples "
                "are and what is to be improved");
        goto out;
    }
    if (model_load(&contest.old_model, path, cli_arena(cli), err))
        goto out;
    if (training_open_store(&store, cli_string(cli, "db"), STORE_WRITE, err))
        goto out;
    device = model_device(&contest.old_model);
    if (measurements_load(&measurements, store, &device, cli, err))
        goto out;
    if (hold_contest(&contest, path, &measurements, cli, err))
        goto out;
    hash_text(hash, contest.replaced ? contest.new_model.hash
                                     : contest.old_model.hash);
    if (store_log_training(
            store, path, hash, contest.replaced ? "replaced" : "kept",
            contest.old_mape, contest.new_mape, contest.n_samples, err))
        goto out;
    if (cli_flag(cli, "json"))
        print_json(&contest, path);
    else
        print_text(&contest, path);
    rc = 0;
out:
    store_close(store);
    return rc;
}

const struct command command_retrain = {
    .name = "retrain",
    .synopsis = "--db FILE --model FILE [options]",
    .summary = "train again on all samples, keep the better model",
    .options = retrain_options,
    .min_args = 0,
    .max_args = 0,
    .run = run_retrain,
};
