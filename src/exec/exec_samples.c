/* SPDX-License-Identifier: MIT */
#include "exec/exec_samples.h"

#include "base/clock.h"
#include "base/hash.h"

#include <math.h>

/* Means over the index sets. */
static void fill_table(struct sample_table *out, const struct rank_work *work,
                       const struct group_work *own, uint32_t member)
{
    const struct group *group = own->group;
    const struct piece *piece = &work->placement->pieces[group->pieces[member]];
    size_t first = (size_t)member * group->n_bags;
    double n_sets = work->n_sets;

    *out = (struct sample_table){
        .n_rows = piece->n_rows,
        .dim = piece->width,
        .zipf_alpha = piece->table->has_bins ? NAN : piece->table->zipf_alpha,
    };
    for (unsigned k = 0; k < work->n_sets; k++) {
        const struct index_batch *batch = &own->sets[k];
        uint64_t begin = batch->offsets[first];
        uint64_t n = batch->offsets[first + group->n_bags] - begin;
        double bins[REUSE_BINS];

        out->pooling_factor += (double)n / work->placement->batch / n_sets;
        out->n_unique +=
            stream_histogram(batch->indices + begin, n, piece->n_rows, bins) /
            n_sets;
        for (unsigned b = 0; b < REUSE_BINS; b++)
            out->bins[b] += bins[b] / n_sets;
    }
}

/* Pieces that are looked up; *precision is theirs, *mixed where they differ. */
static uint32_t count_pieces(const struct rank_work *work,
                             enum precision *precision, bool *mixed)
{
    uint32_t n = 0;

    *mixed = false;
    for (size_t g = 0; g < work->n_groups; g++) {
        const struct group *group = work->groups[g].group;

        for (uint32_t i = 0; i < group->n_pieces; i++, n++) {
            const struct table *table =
                work->placement->pieces[group->pieces[i]].table;

            if (!n)
                *precision = table->precision;
            *mixed |= table->precision != *precision;
        }
    }
    return n;
}

/* Everything that makes this rank's work what it is. */
static uint64_t case_number(const struct rank_work *work)
{
    const struct placement *placement = work->placement;
    struct buf text = {0};
    uint64_t hash;

    buf_printf(&text, "%u of %u, batch %u\n", work->rank, placement->n_ranks,
               placement->batch);
    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];
        const struct table *table = piece->table;

        if (piece->rank != work->rank)
            continue;
        buf_printf(&text, "%s %llu %u %.17g %.17g %d %.17g %d\n", table->name,
                   (unsigned long long)placement->table_rows[piece->table_idx],
                   table->dim, table->pooling_factor, table->num_outputs,
                   table->has_bins, table->has_bins ? 0 : table->zipf_alpha,
                   piece->replica);
        buf_printf(
            &text, "%llu %llu %u %u\n", (unsigned long long)piece->row_begin,
            (unsigned long long)piece->row_end, piece->col_begin, piece->width);
        for (unsigned b = 0; table->has_bins && b < REUSE_BINS; b++)
            buf_printf(&text, "%.17g\n", table->bins[b]);
    }
    hash = hash_bytes(text.data, text.len, 0);
    buf_release(&text);
    return hash >> 1; /* databases count to 2^63 */
}

static int put_sample(const struct exec_options *options,
                      const struct rank_work *work,
                      const struct sample_setting *setting,
                      struct sample *sample, uint32_t *n_stored,
                      struct err *err)
{
    struct sample_sink *sink = options->sink;
    uint32_t n = 0;

    if (sink->has && sink->has(sink->ctx, setting, sample->seed,
                               sample->case_idx, sample->kind, sample->part))
        return 0;
    for (size_t g = 0; g < work->n_groups; g++)
        for (uint32_t i = 0; i < work->groups[g].group->n_pieces; i++)
            fill_table(&sample->tables[n++], work, &work->groups[g], i);
    if (sink->put(sink->ctx, setting, sample, err))
        return -1;
    ++*n_stored;
    return 0;
}

int exec_samples_put(const struct exec_options *options,
                     const struct rank_work *work,
                     const struct exec_rank *timing, uint32_t *n_stored,
                     struct err *err)
{
    struct device *device = work->placement->device;
    char started_at[CLOCK_TEXT_MAX];
    struct sample_setting setting = {
        .device = device_name(device),
        .n_threads = device_n_threads(device),
        .optimizer = work->placement->optimizers[work->rank],
        .batch = work->placement->batch,
        .isa = device_isa(device),
    };
    struct sample sample = {
        .kind = SAMPLE_EXECUTED,
        .seed = options->seed,
        .forward = timing->forward,
        .backward = timing->backward,
        .total = timing->compute,
        .n_iterations = options->n_iterations,
        .flags = timing->disturbed ? SAMPLE_THROTTLED : 0,
        .version = NEUROSHARD_VERSION,
        .started_at = clock_utc(started_at),
    };
    bool mixed;
    int rc;

    sample.n_tables = count_pieces(work, &setting.precision, &mixed);
    if (!options->sink || !sample.n_tables || mixed)
        return 0;
    sample.case_idx = case_number(work);
    sample.tables = mem_alloc(sample.n_tables, sizeof(*sample.tables));
    rc = put_sample(options, work, &setting, &sample, n_stored, err);
    mem_free(sample.tables);
    return rc;
}
