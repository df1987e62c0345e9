/* SPDX-License-Identifier: MIT */
#include "costmodel/learn.h"

#include "costmodel/comm_fit.h"

int learn(struct model *model, struct evaluation *evaluation,
          const struct measurements *measurements,
          const struct train_options *options, bool is_forced,
          struct arena *arena, struct err *err)
{
    const struct sample *samples = measurements->samples;
    const size_t n = measurements->n;
    const size_t n_held_out = evaluate_n_held_out(samples, n);

    if (n_held_out < EVALUATE_MIN_HELD_OUT && !is_forced)
        return err_set(err, ERR_INPUT,
                       "too few samples to judge a model by: %zu held-out "
                       "cases (the last of each ten), where %d are needed; "
                       "'--force' trains all the same",
                       n_held_out, EVALUATE_MIN_HELD_OUT);
    if (train_fit(model, samples, n, options, arena, err))
        return -1;
    evaluate_model(evaluation, model, samples, n);
    evaluation_store(model, evaluation);
    model->has_comm = comm_fit_samples(&model->comm, measurements->comm_samples,
                                       measurements->n_comm, arena);
    return 0;
}

const char *learn_lost_text(const struct evaluation *evaluation,
                            struct arena *arena)
{
    if (!evaluation_loses_to_singles(evaluation))
        return NULL;
    return arena_printf(
        arena,
        "its mean error of %.2f %% on %zu held-out cases of several tables is "
        "above the %.2f %% of adding up their single tables as %s",
        100 * evaluation->singles.net_mape, evaluation->singles.n,
        100 * evaluation->singles.sum_mape,
        evaluation->singles.is_measured ? "measured" : "it predicts them");
}

bool learn_is_better(struct paired *paired, double *needed,
                     const struct model *old_model,
                     const struct model *new_model,
                     const struct measurements *measurements,
                     const struct least_gain *least)
{
    evaluate_pair(paired, old_model, new_model, measurements->samples,
                  measurements->n);
    *needed = least->in_errors ? least->value * paired->gain_se : least->value;
    return paired->gain > 0 && paired->gain >= *needed;
}
