/* SPDX-License-Identifier: MIT */
#include "exec/verify_outputs.h"

#include "base/hash.h"
#include "exec/rank_work.h"
#include "exec/values.h"

#include <string.h>

/* Bytes of a chunk. A chunk holds the outputs of all groups for some samples of
 * one receiver. Its size depends only on the plan and not on the machine,
 * because outputs are hashed chunk by chunk. */
#define CHUNK_BYTES ((size_t)16 << 20)
#define SAMPLES_A_TASK 64

struct output_table {
    const struct table *table;
    size_t table_idx;
    /* pieces of the table in the sharding group of the receiver */
    struct piece_range pieces;
    struct bags bags;      /* lookups of the samples of the receiver */
    struct tally *tallies; /* [n_threads] comparison results of each thread */
};

struct output_job {
    const struct placement *placement;
    uint32_t receiver;
    struct output_table
        *tables; /* [n_tables]: only tables with pooled outputs */
    size_t n_tables;
    size_t n_parts; /* number of tasks into which a table is divided */
    /* [n_groups]: the group's bags in the chunk; NULL if the receiver has no
     * outputs of the group */
    char **outputs;
    char *block;     /* host memory of the chunk */
    uint64_t n_most; /* largest number of samples in a chunk */
    /* Range of samples in the current chunk. Sample 0 is the receiver's first
     * sample. */
    uint64_t first, n_samples;
};

/* Computes the reference's output of one bag: the sum over the lookups of the
 * bag, in double precision. */
static void want_bag(const struct output_table *table, uint64_t bag,
                     double *want, float *row)
{
    const uint64_t *offsets = table->bags.offsets;
    uint32_t dim = table->table->dim;

    memset(want, 0, dim * sizeof(*want));
    for (uint64_t i = offsets[bag]; i < offsets[bag + 1]; i++) {
        values_weights(row, table->pieces.begin->table_seed,
                       (uint64_t)table->bags.indices[i] * dim, dim,
                       table->table->precision);
        for (uint32_t j = 0; j < dim; j++)
            want[j] += row[j];
    }
}

/* Computes the output that the receiver has for bag i of the chunk, from the
 * outputs of all pieces of the table. */
static void got_bag(const struct output_job *job,
                    const struct output_table *table, uint64_t i, float *got,
                    float *part)
{
    memset(got, 0, table->table->dim * sizeof(*got));
    for (const struct piece *piece = table->pieces.begin;
         piece < table->pieces.end; piece++) {
        const struct group *group = piece->group;
        const char *outputs = job->outputs[group - job->placement->groups];
        size_t pos = (size_t)i * group->out_dim + piece->out_begin;

        if (!outputs)
            continue;
        values_load(part, outputs + pos * precision_bytes(group->precision),
                    piece->width, group->precision);
        for (uint32_t j = 0; j < piece->width; j++)
            got[piece->col_begin + j] += part[j];
    }
}

static void check_part(void *ctx, size_t number, unsigned thread)
{
    const struct output_job *job = ctx;
    const struct output_table *table = &job->tables[number / job->n_parts];
    uint32_t dim = table->table->dim;
    uint32_t n_outputs = (uint32_t)table->table->num_outputs;
    uint64_t begin = number % job->n_parts * SAMPLES_A_TASK;
    uint64_t end = min_u64(begin + SAMPLES_A_TASK, job->n_samples);
    double *want = mem_alloc(dim, sizeof(*want));
    float *row = mem_alloc(dim, sizeof(*row));
    float *got = mem_alloc(dim, sizeof(*got));

    for (uint64_t i = begin * n_outputs; i < end * n_outputs; i++) {
        want_bag(table, job->first * n_outputs + i, want, row);
        got_bag(job, table, i, got, row);
        tally_row(&table->tallies[thread], want, got, dim,
                  tally_scale(want, dim));
    }
    mem_free(want);
    mem_free(row);
    mem_free(got);
}

/* Downloads the outputs of a chunk to the host and hashes them. */
static int download_chunk(struct output_job *job,
                          const struct exchange_set *set, uint64_t *hash,
                          struct err *err)
{
    const struct placement *placement = job->placement;
    char *next = job->block;

    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];
        struct output_block block = exchange_block(set, group, job->receiver);
        size_t sample_bytes = group->n_outputs * group_bag_bytes(group);
        size_t n_bytes = (size_t)job->n_samples * sample_bytes;

        job->outputs[g] = NULL;
        if (group->vectors || !block.n_bags)
            continue;
        if (device_download(placement->device, next,
                            (const char *)block.d_at +
                                job->first * sample_bytes,
                            n_bytes, err))
            return -1;
        *hash = hash_bytes(next, n_bytes, *hash);
        job->outputs[g] = next;
        next += n_bytes;
    }
    return 0;
}

static void draw_table(void *ctx, size_t i, unsigned thread)
{
    const struct output_job *job = ctx;
    struct output_table *table = &job->tables[i];

    (void)thread;
    table->pieces =
        placement_copy_pieces(job->placement, table->table_idx,
                              placement_copy_of(job->placement, job->receiver));
    batches_draw_table(&table->bags, job->placement, table->table_idx,
                       (struct rank_range){job->receiver, job->receiver + 1},
                       STEP_BATCH, false);
}

static int check_receiver(struct output_job *job,
                          const struct exchange_set *set, uint64_t *hash,
                          struct err *err)
{
    const struct placement *placement = job->placement;
    uint64_t n = placement_sample(placement, job->receiver + 1) -
                 placement_sample(placement, job->receiver);
    int rc = 0;

    pool_run(placement->pool, job->n_tables, draw_table, job);
    for (job->first = 0; !rc && job->first < n; job->first += job->n_samples) {
        job->n_samples = min_u64(n - job->first, job->n_most);
        job->n_parts = (job->n_samples + SAMPLES_A_TASK - 1) / SAMPLES_A_TASK;
        rc = download_chunk(job, set, hash, err);
        if (!rc)
            pool_run(placement->pool, job->n_tables * job->n_parts, check_part,
                     job);
    }
    for (size_t t = 0; t < job->n_tables; t++)
        bags_release(&job->tables[t].bags);
    return rc;
}

/* Prepares the list of tables, and allocates memory for a chunk. */
static void open_job(struct output_job *job, struct arena *arena)
{
    const struct placement *placement = job->placement;
    const struct problem *problem = &placement->plan->problem;
    size_t sample_bytes = 1;

    job->tables = ARENA_NEW(arena, struct output_table, problem->n_tables);
    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].num_outputs > 0 &&
            problem->tables[t].output == OUTPUT_POOLED)
            job->tables[job->n_tables++] = (struct output_table){
                .table = &problem->tables[t],
                .table_idx = t,
                .tallies =
                    ARENA_NEW(arena, struct tally, pool_size(placement->pool)),
            };
    for (size_t g = 0; g < placement->n_groups; g++)
        if (!placement->groups[g].vectors)
            sample_bytes += placement->groups[g].n_outputs *
                            group_bag_bytes(&placement->groups[g]);
    job->n_most = CHUNK_BYTES / sample_bytes + 1;
    job->block = arena_alloc(arena, (size_t)job->n_most, sample_bytes);
    job->outputs = ARENA_NEW(arena, char *, placement->n_groups);
}

int verify_outputs(struct verify *verify, const struct exchange_set *set,
                   struct err *err)
{
    const struct placement *placement = set->placement;
    struct output_job job = {.placement = placement};
    struct arena arena = {0};
    int rc = 0;

    open_job(&job, &arena);
    for (uint32_t r = placement->here.begin; !rc && r < placement->here.end;
         r++) {
        job.receiver = r;
        rc = check_receiver(&job, set, &verify->ranks[r].hashes[VERIFY_OUTPUTS],
                            err);
    }
    for (size_t t = 0; !rc && t < job.n_tables; t++)
        verify_add(verify, job.tables[t].table, VERIFY_OUTPUTS,
                   job.tables[t].tallies, pool_size(placement->pool));
    arena_release(&arena);
    return rc;
}
