/* SPDX-License-Identifier: MIT */
#include "emit/torchrec_job.h"

#include "core/cluster.h"
#include "core/sharding_groups.h"

#include <inttypes.h>

int torchrec_check_groups(const struct problem *problem, struct err *err)
{
    if (problem_n_groups(problem) == 1 || problem->groups.sync_every)
        return 0;
    return err_input(err,
                     "the plan has %u groups, but does not say how often "
                     "they sync; plan with --sync-every",
                     problem_n_groups(problem));
}

void torchrec_print_job(const struct problem *problem, struct buf *out)
{
    const struct sharding_groups *groups = &problem->groups;
    const struct cluster whole = sharding_groups_cluster(problem);

    buf_printf(out, "\"world_size\": %u, \"local_world_size\": %u, ",
               whole.n_devices, whole.devices_per_host);
    if (whole.hosts_per_domain > 1)
        buf_printf(out, "\"pod_size\": %u, ", whole.hosts_per_domain);
    if (problem_n_groups(problem) == 1)
        return;
    buf_printf(out,
               "\"groups\": {\"sharding_group_size\": %u, "
               "\"node_group_size\": %u, \"use_inter_host_allreduce\": %s, "
               "\"dmp_collection_sync_interval_batches\": %" PRIu64 "}, ",
               problem->cluster.n_devices, cluster_group(&problem->cluster),
               groups->layout == GROUPS_CONTIGUOUS ? "true" : "false",
               groups->sync_every);
}
