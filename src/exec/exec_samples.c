/* SPDX-License-Identifier: MIT */
#include "exec/exec_samples.h"

#include "base/clock.h"
#include "base/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a process says of a rank, followed by its tables. */
struct record {
    struct device_facts facts;
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch;
    struct sample sample; /* without tables and started_at: */
    char started_at[CLOCK_TEXT_MAX];
};

/* Means over the index sets. */
static void fill_table(struct sample_table *out, const struct rank_work *work,
                       const struct group_work *own, uint32_t member)
{
    const struct group *group = &own->group;
    const struct piece *piece = group->pieces[member];
    double n_sets = work->n_sets;

    *out = (struct sample_table){
        .n_rows = piece->n_rows,
        .dim = piece->width,
        .zipf_alpha = piece->table->has_bins ? NAN : piece->table->zipf_alpha,
    };
    for (unsigned k = 0; own->lookup && k < work->n_sets; k++) {
        double bins[REUSE_BINS];
        struct bags bags;
        uint64_t n;

        batches_draw(&bags, work->placement, group, piece,
                     work->first_number + k);
        n = bags.offsets[group->n_bags];
        out->pooling_factor += (double)n / work->placement->batch / n_sets;
        out->n_unique +=
            stream_histogram(bags.indices, n, piece->n_rows, bins) / n_sets;
        for (unsigned b = 0; b < REUSE_BINS; b++)
            out->bins[b] += bins[b] / n_sets;
        bags_release(&bags);
    }
}

/* Pieces that are looked up; *precision is theirs, *mixed where they differ. */
static uint32_t count_pieces(const struct rank_work *work,
                             enum precision *precision, bool *mixed)
{
    uint32_t n = 0;

    *mixed = false;
    for (size_t g = 0; g < work->n_groups; g++) {
        const struct group *group = &work->groups[g].group;

        for (uint32_t i = 0; i < group->n_pieces; i++, n++) {
            enum precision own = group->pieces[i]->table->precision;

            if (!n)
                *precision = own;
            *mixed |= own != *precision;
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

static void fill_record(struct record *record, const struct rank_work *work,
                        const struct exec_rank *timing)
{
    record->facts = work->placement->device->facts;
    record->optimizer = work->placement->optimizers[work->rank];
    record->batch = work->placement->batch;
    clock_utc(record->started_at);
    record->sample.kind = SAMPLE_EXECUTED;
    record->sample.case_idx = case_number(work);
    record->sample.forward = timing->forward;
    record->sample.backward = timing->backward;
    record->sample.total = timing->compute;
    record->sample.health = timing->health;
    record->sample.flags = timing->disturbed ? SAMPLE_THROTTLED : 0;
}

void exec_samples_add(struct buf *records, const struct rank_work *work,
                      const struct exec_rank *timing)
{
    struct record record = {0};
    struct sample_table table;
    bool mixed;

    record.sample.n_tables = count_pieces(work, &record.precision, &mixed);
    if (!record.sample.n_tables || mixed)
        return;
    fill_record(&record, work, timing);
    buf_add(records, (const char *)&record, sizeof(record));
    for (size_t g = 0; g < work->n_groups; g++)
        for (uint32_t i = 0; i < work->groups[g].group.n_pieces; i++) {
            fill_table(&table, work, &work->groups[g], i);
            buf_add(records, (const char *)&table, sizeof(table));
        }
}

/* A record as a sample into the sink, unless that has it. */
static int put_record(const struct exec_options *options, struct record *record,
                      uint32_t *n_stored, struct err *err)
{
    struct sample_sink *sink = options->sink;
    struct sample_setting setting = device_setting(
        &record->facts, record->precision, record->optimizer, record->batch);
    struct sample *sample = &record->sample;

    sample->seed = options->seed;
    sample->n_iterations = options->n_iterations;
    sample->version = NEUROSHARD_VERSION;
    sample->started_at = record->started_at;
    if (sink->has && sink->has(sink->ctx, &setting, sample->seed,
                               sample->case_idx, sample->kind, sample->part))
        return 0;
    if (sink->put(sink->ctx, &setting, sample, err))
        return -1;
    ++*n_stored;
    return 0;
}

int exec_samples_put(const struct exec_options *options, struct buf *records,
                     uint32_t *n_stored, struct err *err)
{
    size_t at = 0;

    while (at < records->len) {
        struct record *record = (void *)(records->data + at);

        at += sizeof(*record);
        record->sample.tables = (void *)(records->data + at);
        at += record->sample.n_tables * sizeof(*record->sample.tables);
        if (put_record(options, record, n_stored, err))
            return -1;
    }
    return 0;
}
