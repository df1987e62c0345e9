/* SPDX-License-Identifier: MIT */
#include "cli/training.h"

#include "base/clock.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int training_open_store(struct store **out, const char *path,
                        enum store_mode mode, struct err *err)
{
    if (!file_exists(path))
        return err_set(err, ERR_IO,
                       "no cost database '%s'; 'neuroshard bench' makes one",
                       path);
    return store_open(out, path, mode, err);
}

const char *training_list_settings(const struct sample_setting *settings,
                                   size_t n, struct cli *cli)
{
    const char *list = "";

    for (size_t i = 0; i < n; i++)
        list = arena_printf(cli_arena(cli), "%s%s%s", list, i ? "; " : "",
                            setting_text(&settings[i], cli_arena(cli)));
    return list;
}

int measurements_load(struct measurements *measurements, struct store *store,
                      const struct sample_setting *setting, struct cli *cli,
                      struct err *err)
{
    struct arena *arena = cli_arena(cli);
    struct sample_setting *settings;
    size_t n_settings;

    measurements->setting = *setting;
    if (store_samples(store, setting, &measurements->samples, &measurements->n,
                      arena, err) ||
        store_comm_samples(store, setting, &measurements->comm_samples,
                           &measurements->n_comm, arena, err))
        return -1;
    if (measurements->n)
        return 0;
    if (store_settings(store, &settings, &n_settings, arena, err))
        return -1;
    return err_set(
        err, ERR_INPUT, "the database holds no samples of %s; it has %s",
        setting_text(setting, arena),
        n_settings ? training_list_settings(settings, n_settings, cli)
                   : "none at all");
}

static int on_epoch(void *ctx, unsigned epoch, unsigned epochs,
                    double train_loss, double validation_loss)
{
    struct progress *progress = ctx;

    (void)train_loss;
    (void)validation_loss;
    progress->total = epochs;
    progress_update(progress, epoch);
    return interrupt_requested();
}

int training_run(struct model *model, struct evaluation *evaluation,
                 const struct measurements *measurements, struct cli *cli,
                 struct err *err)
{
    struct train_options options;
    struct progress progress;
    int rc;

    train_options_init(&options);
    options.epochs = (unsigned)cli_u64(cli, "epochs");
    options.time_limit_s = cli_double(cli, "time-limit");
    options.seed = cli_u64(cli, "seed");
    options.on_epoch = on_epoch;
    options.ctx = &progress;
    progress_start(&progress, "epochs", options.epochs);
    rc = train_fit(model, &measurements->setting, measurements->samples,
                   measurements->n, &options, cli_arena(cli), err);
    progress_finish(&progress);
    if (rc)
        return rc;
    evaluate_model(evaluation, model, measurements->samples, measurements->n);
    evaluation_store(model, evaluation);
    model->has_comm = train_comm(&model->comm, measurements->comm_samples,
                                 measurements->n_comm, cli_arena(cli));
    return 0;
}

void evaluation_print(const struct evaluation *evaluation)
{
    printf("%-28s %8s %12s %8s %9s %8s\n", "held-out fused samples", "n",
           "MSE ms^2", "mean %", "median %", "Kendall");
    for (size_t p = 0; p < N_PREDICTORS; p++) {
        const struct errors *errors = &evaluation->errors[p];

        if (errors->n)
            printf("%-28s %8zu %12.5g %8.2f %9.2f %8.4f\n", errors->name,
                   errors->n, errors->mse, 100 * errors->mape,
                   100 * errors->median_ape, errors->kendall_tau);
        else
            printf("%-28s %8d %12s %8s %9s %8s\n", errors->name, 0, "-", "-",
                   "-", "-");
    }
    if (evaluation->n_repeats)
        printf("repeat error    median %.2f %%, mean %.2f %%, of %zu cases\n",
               100 * evaluation->repeat_median_ape,
               100 * evaluation->repeat_mape, evaluation->n_repeats);
    if (evaluation->n_sentinels > 1)
        printf("sentinels       spread (p10 to p90) %.2f %%, of %zu\n",
               100 * evaluation->sentinel_spread_frac, evaluation->n_sentinels);
    if (evaluation->n_throttled)
        printf("left out        %zu samples of a disturbed machine\n",
               evaluation->n_throttled);
}

static void set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key,
                        isfinite(value) ? json_real(value) : json_null());
}

static void set_count(json_t *object, const char *key, size_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

json_t *evaluation_to_json(const struct evaluation *evaluation)
{
    json_t *root = json_object(), *list = json_array();

    for (size_t p = 0; p < N_PREDICTORS; p++) {
        const struct errors *errors = &evaluation->errors[p];
        json_t *object = json_object();

        json_object_set_new(object, "predictor", json_string(errors->name));
        set_count(object, "samples", errors->n);
        set_real(object, "mse_ms2", errors->mse);
        set_real(object, "mape", errors->mape);
        set_real(object, "median_ape", errors->median_ape);
        set_real(object, "kendall_tau", errors->kendall_tau);
        json_array_append_new(list, object);
    }
    json_object_set_new(root, "held_out", list);
    set_count(root, "repeats", evaluation->n_repeats);
    set_real(root, "repeat_median_ape", evaluation->repeat_median_ape);
    set_real(root, "repeat_mape", evaluation->repeat_mape);
    set_count(root, "sentinels", evaluation->n_sentinels);
    set_real(root, "sentinel_spread_frac", evaluation->sentinel_spread_frac);
    set_count(root, "throttled", evaluation->n_throttled);
    return root;
}

void training_print_json(json_t *root)
{
    char *text = json_to_text(root);

    fputs(text, stdout);
    mem_free(text);
    json_decref(root);
}
