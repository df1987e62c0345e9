/* SPDX-License-Identifier: MIT */
#include "exec/exec_samples.h"

#include "base/clock.h"
#include "base/hash.h"
#include "core/canonical.h"
#include "core/cluster.h"

#include <string.h>

/* Record of a rank's sample in the form that is sent between processes. The
 * sample's tables follow the record. */
struct sample_record {
    struct device_facts facts;
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch;
    /* Sample whose pointers `tables` and `started_at` are not set. The data to
     * which they would point follow the record. */
    struct sample sample;
    char started_at[CLOCK_TEXT_MAX];
};

/* Describes a piece as a table of the sample. Its pooling factor and reuse are
 * means over the index sets. */
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
        out->pooling_factor +=
            (double)n / placement_copy_samples(work->placement) / n_sets;
        out->n_unique +=
            stream_histogram(bags.indices, n, piece->n_rows, bins) / n_sets;
        for (unsigned b = 0; b < REUSE_BINS; b++)
            out->bins[b] += bins[b] / n_sets;
        bags_release(&bags);
    }
}

/* Begins the text that describes a rank's work. A hash of the text is the
 * rank's case number. */
static void describe_rank(struct buf *text, uint32_t rank, uint32_t n_ranks,
                          uint64_t batch)
{
    buf_printf(text, "%u of %u, batch %llu\n", rank, n_ranks,
               (unsigned long long)batch);
}

/* Adds a shard of a table to the text that describes a rank's work. n_rows is
 * the scaled number of rows. Properties that were introduced in later versions
 * are left out if they have their default values, so that samples of earlier
 * versions keep their case numbers. */
static void describe_piece(struct buf *text, const struct table *table,
                           uint64_t n_rows, const struct shard *shard)
{
    buf_printf(text, "%s %llu %u %.17g %.17g %d %.17g %d\n", table->name,
               (unsigned long long)n_rows, table->dim, table->pooling_factor,
               table->num_outputs, table->has_bins,
               table->has_bins ? 0 : table->zipf_alpha,
               shard_is_replica(shard->kind));
    buf_printf(text, "%llu %llu %u %u\n", (unsigned long long)shard->row_begin,
               (unsigned long long)shard->row_end, shard->col_begin,
               shard->col_end - shard->col_begin);
    for (unsigned b = 0; table->has_bins && b < REUSE_BINS; b++)
        buf_printf(text, "%.17g\n", table->bins[b]);
    if (table->row_order != ROW_ORDER_HASHED)
        buf_printf(text, "rows %s\n", row_order_names[table->row_order]);
    if (table->row_seed != row_seed_of_name(table->name))
        buf_printf(text, "row seed %s\n", HASH_TEXT(table->row_seed));
    if (table->comm_precision != PRECISION_FP32)
        buf_printf(text, "sent %s\n", precision_names[table->comm_precision]);
}

static uint64_t case_number(struct buf *text)
{
    const uint64_t hash = hash_bytes(text->data, text->len, 0);

    buf_release(text);
    return hash >> 1; /* databases store integers below 2^63 */
}

static uint64_t case_of_rank(const struct placement *placement, uint32_t rank)
{
    struct buf text = {0};

    describe_rank(&text, rank, placement_copy_ranks(placement, 0).end,
                  placement_copy_samples(placement));
    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];
        const struct shard shard = {.kind = piece->replica ? SHARD_REPLICATE
                                                           : SHARD_TABLE,
                                    .row_begin = piece->row_begin,
                                    .row_end = piece->row_end,
                                    .col_begin = piece->col_begin,
                                    .col_end = piece->col_begin + piece->width};

        if (piece->rank == rank)
            describe_piece(&text, piece->table,
                           placement->table_rows[piece->table_idx], &shard);
    }
    return case_number(&text);
}

uint64_t exec_samples_plan_number(const struct placement *placement)
{
    uint64_t sum = 0;

    for (uint32_t r = 0; r < placement_copy_ranks(placement, 0).end; r++)
        sum += case_of_rank(placement, r);
    return sum;
}

static uint64_t planned_case(const struct plan *plan, uint32_t rank)
{
    const struct problem *problem = &plan->problem;
    struct buf text = {0};

    describe_rank(&text, rank, problem->cluster.n_devices, problem->batch);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &problem->tables[shard->table];

        if (shard->device == rank)
            describe_piece(&text, table, table->num_embeddings, shard);
    }
    return case_number(&text);
}

/* Describes a shard as a table of the sample, with the number of lookups that
 * the plan's problem expects. */
static struct sample_table planned_table(const struct problem *problem,
                                         const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    const double lookups = shard_lookups(problem, shard);
    const double batch = (double)problem->batch;
    const struct table_use whole = problem_use(
        problem, shard->table,
        shard_is_replica(shard->kind) ? batch / problem->cluster.n_devices
                                      : batch);
    const struct table_use use = shard_use(problem, shard, batch, &whole);
    struct sample_table out = {
        .n_rows = shard->row_end - shard->row_begin,
        .dim = shard->col_end - shard->col_begin,
        .pooling_factor = lookups / batch,
        .zipf_alpha = table->has_bins ? NAN : table->zipf_alpha,
        .n_unique = use.n_unique,
    };

    memcpy(out.bins, use.bins, sizeof(out.bins));
    return out;
}

bool exec_samples_planned(struct sample *sample, struct sample_setting *setting,
                          const struct plan *plan, uint32_t rank,
                          struct arena *arena)
{
    const struct problem *problem = &plan->problem;
    bool is_mixed = false;

    sample->kind = SAMPLE_EXECUTED;
    sample->n_tables = 0;
    sample->tables = ARENA_NEW(arena, struct sample_table, plan->n_shards);
    setting->batch = (uint32_t)problem->batch;
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &problem->tables[shard->table];

        if (shard->device != rank)
            continue;
        if (!(shard_lookups(problem, shard) > 0))
            continue;
        is_mixed |=
            sample->n_tables && (setting->precision != table->precision ||
                                 setting->optimizer != table->optimizer);
        setting->precision = table->precision;
        setting->optimizer = table->optimizer;
        sample->tables[sample->n_tables++] = planned_table(problem, shard);
    }
    sample->case_idx = planned_case(plan, rank);
    return sample->n_tables && !is_mixed && problem->batch <= UINT32_MAX &&
           setting->optimizer < N_MEASURED_OPTIMIZERS;
}

bool exec_samples_exchange(struct comm_sample *sample, const struct plan *plan,
                           struct arena *arena)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const uint32_t n_ranks = cluster->n_devices;
    const uint32_t per_host = cluster_group(cluster);
    double *sent = ARENA_NEW(arena, double, n_ranks), most = 0, sum = 0;
    double crossing = 0; /* bytes that the busiest host sends or receives */

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        if (!shard_is_replica(shard->kind))
            sent[shard->device] += shard_output_bytes(&plan->problem, shard);
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        sum += sent[r];
        most = fmax(most, sent[r]);
    }
    for (uint32_t begin = 0; begin < n_ranks; begin += per_host) {
        const uint32_t end = (uint32_t)min_u64(begin + per_host, n_ranks);
        const double inside = (double)(end - begin) / n_ranks;
        double own = 0;

        for (uint32_t r = begin; r < end; r++)
            own += sent[r];
        crossing =
            fmax(crossing, fmax(own * (1 - inside), (sum - own) * inside));
    }
    sample->n_ranks = n_ranks;
    sample->n_hosts = (n_ranks - 1) / per_host + 1;
    sample->host_bytes = (uint64_t)crossing;
    sample->total_bytes = (uint64_t)sum;
    sample->max_bytes = (uint64_t)fmax(most, sum / n_ranks);
    return n_ranks > 1 && sample->max_bytes > 0;
}

void exec_samples_add(struct buf *records, const struct rank_work *work,
                      const struct exec_rank *timing)
{
    const struct placement *placement = work->placement;
    struct sample_record record = {
        .facts = placement->device->facts,
        .batch = placement_copy_samples(placement),
        .sample = {.kind = SAMPLE_EXECUTED,
                   .forward = timing->forward,
                   .backward = timing->backward,
                   .total = timing->compute,
                   .health = timing->health,
                   .flags = timing->disturbed ? SAMPLE_THROTTLED : 0},
    };
    struct sample_table table;
    bool is_mixed = false, has_sequence = false, has_tiers = false;

    for (size_t g = 0; g < work->n_groups; g++)
        for (uint32_t i = 0; i < work->groups[g].group.n_pieces; i++) {
            const struct piece *piece = work->groups[g].group.pieces[i];

            has_sequence |= piece->table->output == OUTPUT_SEQUENCE;
            has_tiers |= piece->tier != TIER_HBM;
            is_mixed |= record.sample.n_tables++ &&
                        piece->table->precision != record.precision;
            record.precision = piece->table->precision;
            record.optimizer = piece->table->optimizer;
        }
    if (!record.sample.n_tables || is_mixed || has_sequence || has_tiers)
        return;
    record.sample.case_idx = case_of_rank(placement, work->rank);
    clock_utc(record.started_at);
    buf_add(records, (const char *)&record, sizeof(record));
    for (size_t g = 0; g < work->n_groups; g++)
        for (uint32_t i = 0; i < work->groups[g].group.n_pieces; i++) {
            fill_table(&table, work, &work->groups[g], i);
            buf_add(records, (const char *)&table, sizeof(table));
        }
}

int exec_samples_put(const struct exec_options *options, uint64_t plan_number,
                     struct buf *records, uint32_t *n_stored, struct err *err)
{
    size_t pos = 0;

    while (pos < records->len) {
        struct sample_record *record = (void *)(records->data + pos);
        struct sample_setting setting =
            device_setting(&record->facts, record->precision, record->optimizer,
                           record->batch);
        struct sample *sample = &record->sample;

        pos += sizeof(*record);
        sample->tables = (void *)(records->data + pos);
        pos += sample->n_tables * sizeof(*sample->tables);
        sample->seed = options->seed + plan_number;
        sample->n_iterations = options->n_iterations;
        sample->version = NEUROSHARD_VERSION;
        sample->started_at = record->started_at;
        if (sample_sink_add(options->sink, &setting, sample, n_stored, err))
            return -1;
    }
    return 0;
}
