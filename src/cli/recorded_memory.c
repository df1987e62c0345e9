/* SPDX-License-Identifier: MIT */
#include "cli/recorded_memory.h"

#include "base/cli_answer.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "core/plan_memory.h"
#include "io/peaks.h"

#define RANK(member) MEMBER_OF(struct job_memory_rank, member)
static const struct figure columns[] = {
    {"rank", "rank", -5, 0, FIGURE_PLAIN, RANK(rank)},
    {"counted_bytes", "counted", 10, 0, FIGURE_BYTES, RANK(counted)},
    {"needed_bytes", "measured", 10, 0, FIGURE_BYTES, RANK(needed)},
    {"rest_bytes", "rest", 10, 0, FIGURE_BYTES, RANK(rest)},
    {"reserve_bytes", "reserve", 10, 0, FIGURE_BYTES, RANK(reserve)},
    {"memory_bytes", "GPU", 10, 0, FIGURE_BYTES, RANK(capacity)},
    {"allocated_bytes", NULL, 0, 0, FIGURE_PLAIN, RANK(peak.allocated)},
    {"reserved_bytes", NULL, 0, 0, FIGURE_PLAIN, RANK(peak.reserved)},
    {"used_bytes", NULL, 0, 0, FIGURE_PLAIN, RANK(peak.used)},
    {"failed_bytes", NULL, 0, 0, FIGURE_PLAIN, RANK(peak.failed)},
    {"note", "", 0, 0, FIGURE_NOTE, RANK(note)},
    {0},
};

int recorded_memory_read(struct job_memory *job, struct plan *plan,
                         const struct cli *cli, struct err *err)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const char *path = cli_string(cli, "memory"), *text;
    struct peaks peaks = {.n_ranks = cluster->n_devices,
                          .is_one_host =
                              cluster->n_devices <= cluster->devices_per_host};
    size_t len;

    if (file_read(&text, &len, path, cli->arena, err) ||
        peaks_read(&peaks, text, len, path, cli->arena, err))
        return -1;
    if (!plan->devices) {
        plan->devices =
            ARENA_NEW(cli->arena, struct device_cost, cluster->n_devices);
        plan_count_memory(plan);
    }
    job_memory_init(job, plan, &peaks, cli->arena);
    return 0;
}

/* Returns the reserve as a value of --reserve: GiB, rounded up to a tenth. */
static const char *reserve_text(uint64_t bytes, struct arena *arena)
{
    const uint64_t tenth = ((uint64_t)1 << 30) / 10;
    const uint64_t n_tenths = (bytes + tenth - 1) / tenth;

    return arena_printf(arena, "--reserve %.1fGiB", (double)n_tenths / 10);
}

static const char *verdict(const struct job_memory *job, struct arena *arena)
{
    const struct job_memory_rank *worst = &job->ranks[job->worst];
    const bool ran_out = job->out < job->n;
    const struct job_memory_rank *rank =
        ran_out ? &job->ranks[job->out] : worst;
    const char *reserve = reserve_text(worst->rest, arena);
    const char *needed;

    if (!ran_out)
        return arena_printf(
            arena,
            "the memory that the plan does not count takes up to %s (rank %s), "
            "and the plan keeps %s free for it; '%s' is enough",
            TEXT_BYTES(rank->rest), rank->rank, TEXT_BYTES(rank->reserve),
            reserve);
    needed = arena_printf(arena, "rank %s needed%s %s of %s", rank->rank,
                          rank->peak.failed ? " at least" : "",
                          TEXT_BYTES(rank->needed), TEXT_BYTES(rank->capacity));
    if (worst->rest >= rank->capacity)
        return arena_printf(arena,
                            "%s, and no reserve helps: the plan counts only %s "
                            "of this",
                            needed, TEXT_BYTES(rank->counted));
    return arena_printf(arena,
                        "%s: the plan counts %s, and the rest takes %s, but "
                        "the plan keeps only %s free for it; plan again with "
                        "'%s'",
                        needed, TEXT_BYTES(rank->counted),
                        TEXT_BYTES(rank->rest), TEXT_BYTES(rank->reserve),
                        reserve);
}

json_t *recorded_memory_to_json(const struct job_memory *job,
                                struct arena *arena)
{
    return json_pack("{s:o, s:I, s:s}", "ranks",
                     FIGURES_LIST(columns, job->ranks, job->n), "reserve_bytes",
                     (json_int_t)job->ranks[job->worst].rest, "verdict",
                     verdict(job, arena));
}

void recorded_memory_print(const struct job_memory *job, struct arena *arena,
                           struct buf *out)
{
    FIGURES_TABLE(columns, job->ranks, job->n, out);
    if (job->is_completed)
        buf_printf(out,
                   "without used_bytes, measured includes %s for the CUDA "
                   "context and the plan's buffers of NCCL, both assumed\n",
                   TEXT_BYTES(JOB_CONTEXT_BYTES));
    buf_printf(out, "%s\n", verdict(job, arena));
}
