/* SPDX-License-Identifier: MIT */
#include "exec/exec_collect.h"

#include "base/hash.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A process of several has one rank, as many as its number. */
struct process_ranks {
    struct exec_rank rank;
    uint32_t n_turns;
};

int exec_collect_ranks(struct exec_result *result,
                       const struct placement *placement, struct err *err)
{
    struct world *world = comm_world(placement->comm);
    struct process_ranks own = {result->ranks[placement->here.begin],
                                placement->n_turns};
    struct process_ranks *all = mem_alloc(world_size(world), sizeof(*all));
    int rc = world_all_gather(world, &own, sizeof(own), all, err);

    result->n_turns = 0;
    for (uint32_t p = 0; !rc && p < world_size(world); p++) {
        result->ranks[p] = all[p].rank; /* alone, it is rank 0 to itself */
        if (all[p].n_turns > result->n_turns)
            result->n_turns = all[p].n_turns;
    }
    for (uint32_t r = 0; !rc && r < placement->n_ranks; r++)
        result->n_disturbed += result->ranks[r].disturbed;
    mem_free(all);
    return rc;
}

/* What a process has compared. */
struct findings {
    double output_error, weight_error;
    uint64_t n_outputs, n_weights;
    char failure[400]; /* empty: none */
};

static void fill_findings(struct findings *findings,
                          const struct verify *verify)
{
    *findings = (struct findings){
        .output_error = verify->output_error,
        .weight_error = verify->weight_error,
        .n_outputs = verify->n_outputs,
        .n_weights = verify->n_weights,
    };
    if (verify->failed)
        snprintf(findings->failure, sizeof(findings->failure),
                 "table '%s': its %s differ from the unsharded reference by "
                 "%.2g, more than %g",
                 verify->failed->name,
                 verify->failed_what == VERIFY_OUTPUTS ? "outputs"
                                                       : "updated weights",
                 verify->failed_error, verify->failed_limit);
}

static uint64_t hash_ranks(const struct exec_result *result, uint32_t n_ranks,
                           bool is_output)
{
    uint64_t *hashes = mem_alloc(n_ranks, sizeof(*hashes)), hash;

    for (uint32_t r = 0; r < n_ranks; r++)
        hashes[r] = is_output ? result->ranks[r].output_hash
                              : result->ranks[r].weight_hash;
    hash = hash_bytes(hashes, n_ranks * sizeof(*hashes), 0);
    mem_free(hashes);
    return hash;
}

int exec_collect_check(struct exec_result *result, const struct verify *verify,
                       const struct placement *placement, struct arena *arena,
                       struct err *err)
{
    struct world *world = comm_world(placement->comm);
    struct findings own;
    struct findings *all = mem_alloc(world_size(world), sizeof(*all));
    int rc;

    fill_findings(&own, verify);
    rc = world_all_gather(world, &own, sizeof(own), all, err);
    for (uint32_t p = 0; !rc && p < world_size(world); p++) {
        result->output_error = fmax(result->output_error, all[p].output_error);
        result->weight_error = fmax(result->weight_error, all[p].weight_error);
        result->n_outputs_checked += all[p].n_outputs;
        result->n_weights_checked += all[p].n_weights;
        if (all[p].failure[0] && !result->failure)
            result->failure = arena_strdup(arena, all[p].failure);
    }
    result->output_hash = hash_ranks(result, placement->n_ranks, true);
    result->weight_hash = hash_ranks(result, placement->n_ranks, false);
    mem_free(all);
    return rc;
}

int exec_collect_share(uint64_t *share_bytes, const struct placement *placement,
                       uint64_t free_bytes, struct err *err)
{
    struct world *world = comm_world(placement->comm);
    uint32_t size = world_size(world);
    double *needs = mem_alloc(size, sizeof(*needs)), own, sum = 0;
    struct placement_need need;
    int rc;

    placement_need(&need, placement);
    own = need.rows_bytes + need.batch_bytes;
    rc = world_all_gather(world, &own, sizeof(own), needs, err);
    for (uint32_t p = 0; p < size; p++)
        if (world_same_host(world, p, world_rank(world)))
            sum += needs[p];
    mem_free(needs);
    *share_bytes = free_bytes;
    if (size > 1 && device_is_host(placement->device))
        *share_bytes = (uint64_t)((double)free_bytes * (own / sum));
    return rc;
}
