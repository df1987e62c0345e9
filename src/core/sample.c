/* SPDX-License-Identifier: MIT */
#include "core/sample.h"

#include "base/mem.h"
#include "base/ranked.h"
#include "base/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *const sample_kind_names[] = {"fused",  "single",   "executed",
                                         "repeat", "sentinel", NULL};

struct timing timing_of(double *ms, size_t n)
{
    return (struct timing){.median_ms = stats_median(ms, n),
                           .p10_ms = stats_quantile(ms, n, 0.1),
                           .p90_ms = stats_quantile(ms, n, 0.9)};
}

int sample_compare(const struct sample *a, const struct sample *b)
{
    const uint64_t x[] = {a->seed, a->case_idx, a->kind, a->part};
    const uint64_t y[] = {b->seed, b->case_idx, b->kind, b->part};

    return ranked_compare(x, y, 4);
}

int sample_sink_put(const struct sample_sink *sink,
                    const struct sample_setting *setting,
                    const struct sample *sample, struct err *err)
{
    char line[80];

    if (sink->put(sink->ctx, setting, sample, err))
        return -1;
    snprintf(line, sizeof(line), "stored %s %" PRIu64 " %" PRIu32,
             sample_kind_names[sample->kind], sample->case_idx, sample->part);
    if (sink->tell)
        sink->tell(line);
    return 0;
}

int sample_sink_add(const struct sample_sink *sink,
                    const struct sample_setting *setting,
                    const struct sample *sample, uint32_t *n_added,
                    struct err *err)
{
    if (sink->has && sink->has(sink->ctx, setting, sample->seed,
                               sample->case_idx, sample->kind, sample->part))
        return 0;
    if (sample_sink_put(sink, setting, sample, err))
        return -1;
    ++*n_added;
    return 0;
}

int sample_sink_put_comm(const struct sample_sink *sink,
                         const struct sample_setting *setting,
                         const struct comm_sample *sample, struct err *err)
{
    char line[80];

    if (sink->put_comm(sink->ctx, setting, sample, err))
        return -1;
    snprintf(line, sizeof(line), "stored %s %" PRIu32 " %" PRIu64 " %" PRIu64,
             sample->kind, sample->n_ranks, sample->total_bytes,
             sample->max_bytes);
    if (sink->tell)
        sink->tell(line);
    return 0;
}

struct sentinels sample_sentinels(const struct sample *samples, size_t n)
{
    struct sentinels sentinels = {.drift_frac = NAN, .spread_frac = NAN};
    double *ms = mem_alloc(n, sizeof(*ms)), early, late;
    struct timing time;
    size_t n_ms = 0;

    for (size_t i = 0; i < n; i++)
        if (samples[i].kind == SAMPLE_SENTINEL &&
            samples[i].total.median_ms > 0)
            ms[n_ms++] = samples[i].total.median_ms;
    sentinels.n = n_ms;
    if (n_ms > 1) {
        early = stats_median(ms, n_ms / 2);
        late = stats_median(ms + n_ms / 2, n_ms - n_ms / 2);
        sentinels.drift_frac = late / early - 1;
        time = timing_of(ms, n_ms);
        sentinels.spread_frac = (time.p90_ms - time.p10_ms) / time.median_ms;
    }
    mem_free(ms);
    return sentinels;
}

/* Returns the median spread of the samples with one of these bits or, if
 * `flags` is 0, of the samples without any. */
static double median_spread(const struct sample *samples, size_t n,
                            unsigned flags)
{
    double *spreads = mem_alloc(n, sizeof(*spreads)), median = NAN;
    size_t n_spreads = 0;

    for (size_t i = 0; i < n; i++) {
        const struct timing *time = &samples[i].total;
        const unsigned own =
            samples[i].flags & (SAMPLE_THROTTLED | SAMPLE_ACCEPTED);

        if (time->median_ms > 0 && (flags ? own & flags : !own))
            spreads[n_spreads++] =
                (time->p90_ms - time->p10_ms) / time->median_ms;
    }
    if (n_spreads)
        median = stats_median(spreads, n_spreads);
    mem_free(spreads);
    return median;
}

struct disturbed_samples sample_disturbed(const struct sample *samples,
                                          size_t n)
{
    struct disturbed_samples disturbed = {
        .spread_frac =
            median_spread(samples, n, SAMPLE_THROTTLED | SAMPLE_ACCEPTED),
        .others_spread_frac = median_spread(samples, n, 0)};

    for (size_t i = 0; i < n; i++) {
        disturbed.n_left_out += (samples[i].flags & SAMPLE_THROTTLED) != 0;
        disturbed.n_used += (samples[i].flags & SAMPLE_ACCEPTED) != 0;
    }
    return disturbed;
}
