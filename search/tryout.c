/* SPDX-License-Identifier: MIT */
#include "search/tryout.h"

#include "search/join.h"

#include <math.h>
#include <string.h>

void tryout_init(struct tryout *tryout, const struct parts *parts)
{
    *tryout = (struct tryout){0};
    layout_init(&tryout->layout, parts);
    trial_init(&tryout->trial, &tryout->layout);
}

void tryout_release(struct tryout *tryout)
{
    layout_release(&tryout->layout);
    trial_release(&tryout->trial);
    *tryout = (struct tryout){0};
}

void tryout_load(struct tryout *tryout, const struct snapshot *snapshot)
{
    snapshot_load(snapshot, &tryout->layout);
}

static double comm_total(const struct layout *layout, const struct trial *trial)
{
    const struct oracle *oracle = layout->parts->oracle;
    size_t n = layout->n_devices, width = oracle->width;
    double *sums = mem_alloc(n, (width + 1) * sizeof(double));
    double *compute_ms = sums + n * width, total_ms;

    memcpy(sums, layout->sums, n * width * sizeof(double));
    memcpy(compute_ms, layout->compute_ms, n * sizeof(double));
    for (uint32_t i = 0; i < trial->n_devices; i++) {
        memcpy(sums + trial->devices[i] * width, trial->sums + i * width,
               width * sizeof(double));
        compute_ms[trial->devices[i]] = trial->compute_ms[i];
    }
    total_ms = oracle_comm_total_ms(oracle, sums, compute_ms);
    mem_free(sums);
    return total_ms;
}

double tryout_price(struct tryout *tryout)
{
    struct trial *trial = &tryout->trial;
    const struct layout *layout = &tryout->layout;
    const struct oracle *oracle = layout->parts->oracle;
    bool is_fine = trial_join(trial, layout);

    trial_sum(trial, layout);
    oracle->ops->compute(oracle, trial->sums, trial->n_devices,
                         trial->compute_ms);
    if (oracle->ops->terms)
        trial_price_terms(trial, layout);
    else
        trial->total_ms = comm_total(layout, trial);
    tryout->n_priced++;
    return is_fine && isfinite(trial->total_ms) ? trial->total_ms : INFINITY;
}

double tryout_local_ms(const struct tryout *tryout, uint32_t device)
{
    const struct trial *trial = &tryout->trial;
    const struct layout *layout = &tryout->layout;
    size_t n_terms = layout->parts->oracle->n_terms;
    uint32_t i = trial->place[device];
    double ms = 0;

    if (i == NO_PIECE)
        return layout->local_ms[device];
    if (!layout->terms_ms)
        return trial->compute_ms[i];
    for (size_t k = 0; k < n_terms; k++)
        ms += trial->terms_ms[i * n_terms + k];
    return ms;
}
