/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "cli/training.h"
#include "costmodel/learning/evaluation_report.h"
#include "costmodel/modelfile/model_report.h"

#include <inttypes.h>

static const struct option_spec file_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database with the samples"},
    {"output", 'o', OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "model file to write"},
    {0},
};
static void print_text(const struct training *trained, double seconds)
{
    const struct model *model = &trained->model;
    const struct model_training *training = &model->training;
    struct cli *cli = trained->cli;
    struct buf *out = cli_text();

    model_print_setting(model, cli->arena, out);
    model_print_kind(model, cli->arena, out);
    model_print_samples(training, out);
    if (model->mlp.n_params)
        cli_printf(
            "training        %" PRIu64
            " epochs in %.1f s, the best was %" PRIu64 ", seed %" PRIu64 "\n",
            training->epochs, seconds, training->best_epoch, training->seed);
    model_print_comm(model, " ('neuroshard bench --alltoall')", cli->arena,
                     out);
    model_print_products(model, out);
    if (trained->n_products_left_out)
        cli_printf(
            "                %zu products of a disturbed device are left "
            "out ('--disturbed')\n",
            trained->n_products_left_out);
    evaluation_print(&trained->evaluation, out);
    model_print_file(model, cli_shown(cli, "output"), out);
    cli_printf("\n");
}

/* Saves the model unless it is of no use for predictions. */
static int save(struct training *training, struct err *err)
{
    const char *path = cli_string(training->cli, "output");
    const char *lost =
        evaluation_lost_text(&training->evaluation, training->cli->arena);

    if (lost && !cli_given(training->cli, "force"))
        return err_input(err,
                         "'%s' was not written: %s; '--force' writes it anyway",
                         path, lost);
    return training_save(&training->model, path, err);
}

static int run_train(struct cli *cli, struct err *err)
{
    struct training training = {.cli = cli};
    double begin_ms = clock_ms();
    int rc = training_load(&training, STORE_READ, err) ||
             training_run(&training, err) || save(&training, err);

    store_close(training.store);
    if (rc)
        return -1;
    cli_print_json(evaluation_to_json(&training.evaluation));
    print_text(&training, (clock_ms() - begin_ms) / 1000);
    if (!interrupt_requested())
        return 0;
    if (!training.model.mlp.n_params)
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted; '%s' holds the fitted roofline",
                       cli_string(cli, "output"));
    return err_set(err, ERR_INTERRUPTED,
                   "interrupted after epoch %" PRIu64
                   "; '%s' holds the best model so far, of epoch %" PRIu64,
                   training.model.training.epochs, cli_string(cli, "output"),
                   training.model.training.best_epoch);
}

const struct command command_train = {
    .name = "train",
    .synopsis = "--db FILE -o MODEL [options]",
    .summary = "learn a cost model from measured samples",
    .options = {file_options, training_options, device_options, setting_options,
                progress_options},
    .needs = {"db", "output"},
    .run = run_train,
};
