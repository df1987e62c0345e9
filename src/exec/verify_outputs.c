/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include "base/hash.h"
#include "device/stream_math.h"
#include "exec/rank_work.h"
#include "exec/values.h"

#include <string.h>

/* A chunk: some samples of one receiver, outputs of all groups. Its size
 * follows from the plan alone, as the hash goes chunk by chunk. */
#define CHUNK_BYTES ((size_t)16 << 20)
#define SAMPLES_A_TASK 64

/* One table's look-ups: they are drawn bag by bag, in order. */
struct output_table {
    const struct table *table;
    const struct piece *pieces; /* [n_pieces] */
    size_t n_pieces;
    struct stream_batch stream;
    uint32_t lookup; /* where the chunk begins in the batch */
    struct tally tally;
};

/* Some samples of one table. */
struct task {
    uint32_t end_lookup;
    struct tally tally;
};

struct output_job {
    const struct placement *placement;
    uint32_t receiver;
    struct output_table *tables; /* [n_tables], owned: those with outputs */
    size_t n_tables;
    struct task *tasks; /* [n_tables][n_parts], owned */
    size_t n_parts;
    char **outputs;  /* [n_groups], the chunk's bags; NULL where none */
    char *block;     /* owned */
    uint64_t n_most; /* samples of a chunk */
    uint64_t first, n_samples; /* of this chunk, in the batch */
};

/* Sum over the bag's look-ups, in double. */
static uint32_t want_bag(const struct output_table *table, uint32_t bag,
                         uint32_t lookup, double *want, float *row)
{
    uint32_t dim = table->table->dim;
    uint32_t end = lookup + stream_bag_size(&table->stream, bag);

    memset(want, 0, dim * sizeof(*want));
    for (; lookup < end; lookup++) {
        values_weights(row, table->pieces[0].table_seed,
                       (uint64_t)stream_row(&table->stream, lookup) * dim, dim,
                       table->table->precision);
        for (uint32_t j = 0; j < dim; j++)
            want[j] += row[j];
    }
    return end;
}

/* What the receiver of the chunk's i-th bag has: the parts of all pieces. */
static void got_bag(const struct output_job *job,
                    const struct output_table *table, uint64_t i, float *got,
                    float *part)
{
    memset(got, 0, table->table->dim * sizeof(*got));
    for (size_t k = 0; k < table->n_pieces; k++) {
        const struct piece *piece = &table->pieces[k];
        const struct group *group = piece->group;
        const char *outputs = job->outputs[group - job->placement->groups];
        size_t at = (size_t)i * group->out_dim + piece->out_begin;

        if (!outputs)
            continue;
        values_load(part, outputs + at * precision_bytes(group->precision),
                    piece->width, group->precision);
        for (uint32_t j = 0; j < piece->width; j++)
            got[piece->col_begin + j] += part[j];
    }
}

/* Where the table's bag begin + n begins, where `lookup` is where bag begin
 * does. */
static uint32_t skip_bags(const struct output_table *table, uint32_t begin,
                          uint32_t n, uint32_t lookup)
{
    for (uint32_t bag = begin; bag < begin + n; bag++)
        lookup += stream_bag_size(&table->stream, bag);
    return lookup;
}

static void check_part(void *ctx, size_t number, unsigned thread)
{
    const struct output_job *job = ctx;
    const struct output_table *table = &job->tables[number / job->n_parts];
    struct task *task = &job->tasks[number];
    uint32_t dim = table->table->dim;
    uint32_t n_outputs = (uint32_t)table->table->num_outputs;
    uint32_t first = (uint32_t)job->first * n_outputs;
    uint64_t begin = number % job->n_parts * SAMPLES_A_TASK;
    uint64_t end = begin + SAMPLES_A_TASK;
    uint32_t lookup =
        skip_bags(table, first, (uint32_t)begin * n_outputs, table->lookup);
    double *want = mem_alloc(dim, sizeof(*want));
    float *row = mem_alloc(dim, sizeof(*row));
    float *got = mem_alloc(dim, sizeof(*got));

    (void)thread;
    if (end > job->n_samples)
        end = job->n_samples;
    for (uint64_t i = begin * n_outputs; i < end * n_outputs; i++) {
        lookup = want_bag(table, first + (uint32_t)i, lookup, want, row);
        got_bag(job, table, i, got, row);
        tally_row(&task->tally, want, got, dim, tally_scale(want, dim));
    }
    task->end_lookup = lookup;
    mem_free(want);
    mem_free(row);
    mem_free(got);
}

/* Compares the samples of the chunk, whose outputs are on the host. */
static void check_chunk(struct output_job *job)
{
    struct task *task;

    job->n_parts = (job->n_samples + SAMPLES_A_TASK - 1) / SAMPLES_A_TASK;
    job->tasks = mem_alloc(job->n_tables * job->n_parts, sizeof(*job->tasks));
    pool_run(job->placement->pool, job->n_tables * job->n_parts, check_part,
             job);
    task = job->tasks;
    for (size_t t = 0; t < job->n_tables; t++) {
        for (size_t part = 0; part < job->n_parts; part++)
            tally_add(&job->tables[t].tally, &task++->tally);
        job->tables[t].lookup = task[-1].end_lookup;
    }
    mem_free(job->tasks);
}

/* Brings the chunk to the host, whose first sample is the receiver's sample
 * `begin`. */
static int download_chunk(struct output_job *job,
                          const struct exchange_set *set, uint64_t begin,
                          uint64_t *hash, struct err *err)
{
    const struct placement *placement = job->placement;
    char *next = job->block;

    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];
        struct output_block block = exchange_block(set, group, job->receiver);
        size_t sample_bytes = group->n_outputs * block.bag_bytes;
        size_t n_bytes = (size_t)job->n_samples * sample_bytes;

        job->outputs[g] = NULL;
        if (!block.n_bags)
            continue;
        if (device_download(placement->device, next,
                            (const char *)block.d_at + begin * sample_bytes,
                            n_bytes, err))
            return -1;
        *hash = hash_bytes(next, n_bytes, *hash);
        job->outputs[g] = next;
        next += n_bytes;
    }
    return 0;
}

static int check_receiver(struct output_job *job,
                          const struct exchange_set *set, uint64_t *hash,
                          struct err *err)
{
    uint64_t begin = placement_sample(job->placement, job->receiver);
    uint64_t end = placement_sample(job->placement, job->receiver + 1);

    for (job->first = begin; job->first < end; job->first += job->n_samples) {
        job->n_samples =
            end - job->first < job->n_most ? end - job->first : job->n_most;
        if (download_chunk(job, set, job->first - begin, hash, err))
            return -1;
        check_chunk(job);
    }
    return 0;
}

/* Tables stand at the first sample that is looked at here. */
static void open_tables(struct output_job *job)
{
    const struct placement *placement = job->placement;
    const struct problem *problem = &placement->plan->problem;
    uint32_t first = placement_sample(placement, placement->here.begin);

    job->tables = mem_alloc(problem->n_tables, sizeof(*job->tables));
    for (size_t t = 0; t < problem->n_tables; t++) {
        struct output_table *table = &job->tables[job->n_tables];
        struct piece **pieces = placement->table_pieces + t;
        struct stream stream;

        if (!(problem->tables[t].num_outputs > 0))
            continue;
        job->n_tables++;
        table->table = &problem->tables[t];
        table->pieces = pieces[0];
        table->n_pieces = (size_t)(pieces[1] - pieces[0]);
        batches_stream(&stream, placement, t);
        stream_batch_init(&table->stream, &stream,
                          batches_seed(placement, STEP_BATCH));
        table->lookup =
            skip_bags(table, 0, first * (uint32_t)table->table->num_outputs, 0);
    }
}

static void open_chunk(struct output_job *job)
{
    const struct placement *placement = job->placement;
    size_t sample_bytes = 1;

    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];

        sample_bytes += (size_t)group->n_outputs * group->out_dim *
                        precision_bytes(group->precision);
    }
    job->n_most = CHUNK_BYTES / sample_bytes + 1;
    job->block = mem_alloc((size_t)job->n_most, sample_bytes);
    job->outputs = mem_alloc(placement->n_groups, sizeof(*job->outputs));
}

int verify_outputs(struct verify *verify, const struct exchange_set *set,
                   struct err *err)
{
    const struct placement *placement = set->placement;
    struct output_job job = {.placement = placement};
    int rc = 0;

    open_tables(&job);
    open_chunk(&job);
    for (uint32_t r = placement->here.begin; !rc && r < placement->here.end;
         r++) {
        job.receiver = r;
        rc = check_receiver(&job, set, &verify->hashes[VERIFY_OUTPUTS][r], err);
    }
    for (size_t t = 0; !rc && t < job.n_tables; t++)
        verify_add(verify, job.tables[t].table, VERIFY_OUTPUTS,
                   &job.tables[t].tally);
    mem_free(job.tables);
    mem_free(job.block);
    mem_free(job.outputs);
    return rc;
}
