/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_model.h"

#include "core/sharding_groups.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Stretches a curve along its bytes so that its last line has this bandwidth.
 * The latency and the shape of the curve do not change. */
static void stretch(struct comm_curve *curve, double gbps)
{
    double ratio = gbps / comm_curve_gbps(curve);

    for (uint32_t k = 0; k < curve->n_knots; k++)
        curve->bytes[k] *= ratio;
}

void comm_model_ask(struct comm_model *model, const struct cluster *cluster,
                    struct arena *arena)
{
    const char *group = cluster_group_name(cluster);
    const char *inside = "", *across = "";

    if (cluster->intra_gbps > 0) {
        stretch(&model->intra, cluster->intra_gbps);
        inside = arena_printf(arena, " %g GB/s inside a %s",
                              cluster->intra_gbps, group);
    }
    if (cluster->inter_gbps > 0) {
        stretch(&model->inter, cluster->inter_gbps);
        across =
            arena_printf(arena, "%s %g GB/s across %ss", *inside ? " and" : "",
                         cluster->inter_gbps, group);
    }
    if (!*inside && !*across)
        return;
    model->error = (struct cost_error){0};
    model->source = arena_printf(arena, "%s; but%s%s, as asked for",
                                 model->source, inside, across);
}

uint32_t comm_group_devices(const struct cluster *cluster)
{
    uint32_t n = cluster_group(cluster);

    return n && n < cluster->n_devices ? n : cluster->n_devices;
}

static double transfer_ms(const struct comm_curve *curve, double bytes)
{
    return bytes > 0 ? comm_curve_us(curve, bytes) / 1000 : 0;
}

/* Returns the sum of one lane over the vectors of n devices, which are
 * consecutive in memory. */
static double lane_sum(const struct comm_oracle *oracle, const double *lane,
                       uint32_t n)
{
    double sum = 0;

    for (uint32_t r = 0; r < n; r++)
        sum += lane[r * (size_t)oracle->base.width];
    return sum;
}

/*
 * Returns the time of one all-to-all, given the lane that holds the bytes of
 * each device. The time is 0 if there is only one device.
 *
 * The bytes that the busiest port sends determine the time. Received bytes only
 * matter if the last group of devices is smaller than the other groups. In all
 * other cases a device receives from its own group at most the bytes that the
 * busiest device of the group sends inside the group. It receives from other
 * groups at most the bytes that the busiest of all devices sends to other
 * groups. A port that a whole group shares is as fast as per_group ports of one
 * device.
 */
static double alltoall_ms(const struct comm_oracle *oracle, const double *lane)
{
    const uint32_t n_devices = oracle->base.problem->cluster.n_devices;
    const size_t width = oracle->base.width;
    const double share = 1.0 / n_devices;
    const double all = lane_sum(oracle, lane, n_devices);
    double intra = 0, inter = 0; /* bytes at the busiest port of a level */

    if (n_devices == 1)
        return 0;
    for (uint32_t begin = 0, n; begin < n_devices; begin += n) {
        double host, busiest = 0;

        n = (uint32_t)min_u64(n_devices - begin, oracle->per_group);
        host = lane_sum(oracle, lane + begin * width, n);
        for (uint32_t r = begin; r < begin + n; r++)
            busiest = max_of(busiest, lane[r * width]);
        intra = max_of(intra, oracle->comm.rules.form == COMM_TOTAL
                                  ? host * n * share * oracle->n_sharing
                                  : busiest * ((n - 1) * share));
        if (oracle->comm.rules.shares_port)
            inter =
                max_of(inter, max_of(host * (n_devices - n), (all - host) * n) *
                                  share / oracle->per_group);
        else
            inter = max_of(inter, max_of(busiest * ((n_devices - n) * share),
                                         (all - host) * share));
    }
    return max_of(transfer_ms(&oracle->comm.intra, intra),
                  transfer_ms(&oracle->comm.inter, inter));
}

/*
 * NCCL runs a ring for each network adapter of a host, so each adapter carries
 * its share of the bytes. The slowest level of the cluster sets the pace.
 *
 * Bus bandwidths of published all-reduces: about 150 GB/s for 64 MiB among 16 x
 * 8 H100 (NCCL issue 1469), of which the formula gives 182; 95 GB/s for large
 * messages over 4 adapters of 25 GB/s (nccl-tests issue 252), which is 24 GB/s
 * for each adapter.
 */
static double ring_ms(const struct comm_model *model,
                      const struct reduction_ring *ring, double bytes)
{
    const uint32_t in_last = ring->n_ranks % ring->per_group;
    const uint32_t n_adapters = in_last ? in_last : ring->per_group;
    const double sent = bytes * ring->sent;
    const double intra = transfer_ms(&model->intra, sent);
    double inter;

    if (ring->n_ranks <= ring->per_group || !(bytes > 0))
        return intra;
    inter = transfer_ms(&model->inter, sent / n_adapters);
    if (model->reduce_us > 0)
        inter += 1e-3 * (model->reduce_us - model->inter.us[0]);
    return max_of(intra, inter);
}

double comm_allreduce_ms(const struct comm_oracle *oracle, double bytes)
{
    return ring_ms(&oracle->all, &oracle->reduction, bytes);
}

/* Returns the bytes of a device that determine the time of a sync. If the
 * devices of a host share a port to other hosts, they are the mean of the host
 * with most bytes. */
static double synced_bytes(const struct comm_oracle *oracle, const double *lane)
{
    const uint32_t n_devices = oracle->base.problem->cluster.n_devices;
    const size_t width = oracle->base.width;
    const bool is_mean = oracle->comm.rules.shares_port &&
                         oracle->sync.n_ranks > oracle->sync.per_group;
    const uint32_t n_each = is_mean ? oracle->per_group : 1;
    double most = 0;

    for (uint32_t r = 0; r < n_devices; r += n_each) {
        const uint32_t n = (uint32_t)min_u64(n_devices - r, n_each);

        most = max_of(most, lane_sum(oracle, lane + r * width, n) / n_each);
    }
    return most;
}

static double sync_ms(const struct oracle *base, const double *sums)
{
    const struct comm_oracle *oracle = (const void *)base;

    return ring_ms(&oracle->all, &oracle->sync,
                   synced_bytes(oracle, sums + oracle->sync_at));
}

static double id_work_ms(const struct id_rate *rate, double ns)
{
    return ns > 0 ? 1e-3 * rate->base_us + 1e-6 * ns : 0;
}

static double update_ms(const double lanes[COMM_LANES])
{
    return lanes[COMM_LANE_GRAD] > 0 ? lanes[COMM_LANE_UPDATE] : 0;
}

double comm_forward_ms(const struct comm_oracle *oracle, const double *sums,
                       double compute_ms)
{
    const double *lanes = sums + oracle->comm_at;
    const double forward =
        lanes[COMM_LANE_FORWARD] + oracle->comm.forward_base_ms;
    const double backward =
        max_of(lanes[COMM_LANE_BACKWARD] + oracle->comm.backward_base_ms, 0);
    double ms = 0;

    if (oracle->device_ms)
        (void)oracle->device_ms(oracle, sums, &ms);
    else if (forward > 0)
        ms = max_of(compute_ms - update_ms(lanes), 0) * forward /
             (forward + backward);
    return ms;
}

/* Returns the busy lanes of a device. */
static const double *busy_lanes(const struct comm_oracle *oracle,
                                const double *sums)
{
    static const double none[N_BUSY_LANES];

    return oracle->busy_at ? sums + oracle->busy_at : none;
}

static struct comm_added added_of(const struct comm_oracle *oracle,
                                  const double *sums)
{
    const double *busy = busy_lanes(oracle, sums);
    struct comm_added added = {busy[LANE_BUSY_CACHE], busy[LANE_BUSY_FORWARD],
                               busy[LANE_BUSY_BACKWARD], busy[LANE_SLOWDOWN]};

    if (oracle->tiers)
        oracle->add_tiers_ms(oracle, sums, &added);
    return added;
}

static double sum_added(const struct comm_added *added)
{
    return added->cache_ms + added->forward_ms + added->backward_ms;
}

static double with_added(const struct comm_added *added, double compute_ms)
{
    return max_of(compute_ms + sum_added(added), 0) * (1 + added->slowdown);
}

double comm_compute_ms(const struct comm_oracle *oracle, const double *sums,
                       double compute_ms)
{
    const struct comm_added added = added_of(oracle, sums);

    return with_added(&added, compute_ms);
}

/* Fills the phases in which a device does not wait for other devices: work on
 * ids in its own memory, and compute. compute_ms and forward_ms do not include
 * `added`. */
static void own_phases(const struct comm_oracle *oracle, const double *sums,
                       const struct comm_added *added, double compute_ms,
                       double forward_ms, double phases_ms[N_PHASES])
{
    const struct comm_model *model = &oracle->comm;
    const double *lanes = sums + oracle->comm_at;
    const double update = update_ms(lanes), slow = 1 + added->slowdown;
    const bool fills_cache = oracle->step.pipeline == PIPELINE_PREFETCH;

    phases_ms[PHASE_PERMUTE] =
        id_work_ms(&model->ids.permute, lanes[COMM_LANE_PERMUTE]) +
        id_work_ms(&model->ids.bucketize, lanes[COMM_LANE_BUCKETIZE]) +
        oracle->find_ms;
    phases_ms[PHASE_CACHE] = fills_cache ? slow * added->cache_ms : 0;
    phases_ms[PHASE_FORWARD] =
        slow * (max_of(forward_ms + added->forward_ms, 0) +
                (fills_cache ? 0 : added->cache_ms));
    phases_ms[PHASE_BACKWARD] =
        slow * max_of(max_of(max_of(compute_ms - update, 0) - forward_ms, 0) +
                          added->backward_ms,
                      0);
    phases_ms[PHASE_UPDATE] = slow * update;
}

/* Adds the exchanges of other tables, which follow the plan's own. */
static void add_busy_exchanges(const struct comm_oracle *oracle,
                               const double *sums, double phases_ms[N_PHASES])
{
    const double *busy = busy_lanes(oracle, sums);

    phases_ms[PHASE_INPUT] += busy[LANE_BUSY_INPUT];
    phases_ms[PHASE_OUTPUT] += busy[LANE_BUSY_OUTPUT];
    phases_ms[PHASE_GRADIENT] +=
        busy[LANE_BUSY_OUTPUT] + oracle->step.gradient_more_ms;
}

/* Fills the phases of one assignment that are exchanges. The times of an
 * exchange are the same for all devices. */
static void exchange_phases(const struct comm_oracle *oracle,
                            const double *sums, double phases_ms[N_PHASES])
{
    const size_t width = oracle->base.width;
    const double *lanes = sums + oracle->comm_at;
    const struct sharding_groups *groups = &oracle->base.problem->groups;
    double grad = 0;

    for (uint32_t r = 0; r < oracle->base.problem->cluster.n_devices; r++)
        grad = max_of(grad, lanes[r * width + COMM_LANE_GRAD]);
    phases_ms[PHASE_INPUT] = alltoall_ms(oracle, lanes + COMM_LANE_INPUT);
    phases_ms[PHASE_OUTPUT] = phases_ms[PHASE_GRADIENT] =
        alltoall_ms(oracle, lanes + COMM_LANE_OUTPUT);
    phases_ms[PHASE_REDUCE] = comm_allreduce_ms(oracle, grad);
    phases_ms[PHASE_SYNC] = 0;
    if (oracle->step.syncs)
        phases_ms[PHASE_SYNC] =
            sync_ms(&oracle->base, sums) / (double)groups->sync_every;
    add_busy_exchanges(oracle, sums, phases_ms);
}

static void phases(const struct oracle *base, const double *sums,
                   const double *compute_ms, double (*phases_ms)[N_PHASES])
{
    const struct comm_oracle *oracle = (const void *)base;

    exchange_phases(oracle, sums, phases_ms[0]);
    for (uint32_t r = 0; r < base->problem->cluster.n_devices; r++) {
        const double *own = sums + r * (size_t)base->width;
        const struct comm_added added = added_of(oracle, own);
        const double own_ms =
            compute_ms[r] / (1 + added.slowdown) - sum_added(&added);

        if (r)
            memcpy(phases_ms[r], phases_ms[0], sizeof(*phases_ms));
        own_phases(oracle, own, &added, own_ms,
                   comm_forward_ms(oracle, own, own_ms), phases_ms[r]);
    }
}

static void price(const struct oracle *base, size_t n, const double *sums,
                  const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    const struct comm_oracle *oracle = (const void *)base;
    const uint32_t n_devices = base->problem->cluster.n_devices;
    double(*phases_ms)[N_PHASES] = mem_alloc(n_devices, sizeof(*phases_ms));

    for (size_t i = 0; i < n; i++, sums += (size_t)n_devices * base->width) {
        double ms, bwd;

        phases(base, sums, compute_ms, phases_ms);
        ms = step_of_ranks(&oracle->step, n_devices,
                           (const double(*)[N_PHASES])phases_ms);
        bwd = phases_ms[0][PHASE_GRADIENT] + phases_ms[0][PHASE_REDUCE];
        for (uint32_t r = 0; r < n_devices; r++) {
            *bwd_ms++ = bwd;
            *fwd_ms++ = ms - (*compute_ms++ + bwd);
        }
    }
    mem_free(phases_ms);
}

/* Returns the time in which a device sends its share of an all-to-all. */
static double sent_ms(const struct comm_oracle *oracle, double bytes)
{
    return max_of(transfer_ms(&oracle->comm.intra, bytes * oracle->near),
                  transfer_ms(&oracle->comm.inter, bytes * oracle->far));
}

/* Fills the phases that are exchanges with the times of one device. */
static void sent_phases(const struct comm_oracle *oracle, const double *sums,
                        double phases_ms[N_PHASES])
{
    const double *lanes = sums + oracle->comm_at;

    phases_ms[PHASE_INPUT] = sent_ms(oracle, lanes[COMM_LANE_INPUT]);
    phases_ms[PHASE_OUTPUT] = phases_ms[PHASE_GRADIENT] =
        sent_ms(oracle, lanes[COMM_LANE_OUTPUT]);
    phases_ms[PHASE_REDUCE] = comm_allreduce_ms(oracle, lanes[COMM_LANE_GRAD]);
    phases_ms[PHASE_SYNC] = 0;
    if (oracle->step.syncs)
        phases_ms[PHASE_SYNC] =
            ring_ms(&oracle->all, &oracle->sync, sums[oracle->sync_at]) /
            (double)oracle->base.problem->groups.sync_every;
    add_busy_exchanges(oracle, sums, phases_ms);
}

static void exchanges(const struct oracle *base, const double *sums, size_t n,
                      double *exchanges_ms)
{
    const struct comm_oracle *oracle = (const void *)base;

    const unsigned n_exchanges = step_n_exchanges(&oracle->step);

    for (size_t i = 0; i < n; i++, exchanges_ms += n_exchanges) {
        double phases_ms[N_PHASES] = {0}, terms_ms[STEP_MAX_TERMS];

        sent_phases(oracle, sums + i * base->width, phases_ms);
        step_terms(&oracle->step, phases_ms, terms_ms);
        for (unsigned e = 0; e < n_exchanges; e++)
            exchanges_ms[e] = terms_ms[step_exchange_term(&oracle->step, e)];
    }
}

static void terms(const struct oracle *base, const double *sums, size_t n,
                  double *compute_ms, double *terms_ms)
{
    const struct comm_oracle *oracle = (const void *)base;

    if (!oracle->device_ms)
        oracle->unbusy.compute(base, sums, n, compute_ms);
    for (size_t i = 0; i < n; i++, terms_ms += base->n_terms) {
        const double *own = sums + i * base->width;
        const struct comm_added added = added_of(oracle, own);
        double phases_ms[N_PHASES], forward;

        if (oracle->device_ms)
            compute_ms[i] = oracle->device_ms(oracle, own, &forward);
        else
            forward = comm_forward_ms(oracle, own, compute_ms[i]);
        own_phases(oracle, own, &added, compute_ms[i], forward, phases_ms);
        compute_ms[i] = with_added(&added, compute_ms[i]);
        sent_phases(oracle, own, phases_ms);
        step_terms(&oracle->step, phases_ms, terms_ms);
    }
}

/* Returns the part of an exchange across hosts in which it keeps a CPU from
 * other work: the CPU copies the bytes, and the network carries them. */
static double copied_frac(const struct comm_model *model)
{
    return fmin(1, comm_curve_gbps(&model->inter) /
                       comm_curve_gbps(&model->intra));
}

struct step comm_model_step(const struct comm_model *model,
                            const struct problem *problem)
{
    const struct job *job = &problem->job;
    const bool is_one_host =
        comm_group_devices(&problem->cluster) == problem->cluster.n_devices;
    struct step step = {
        .pipeline = job->pipeline,
        .n_chunks = job_n_chunks(job),
        .knows_dense = job_knows_dense(job),
        .dense_ms = job_dense_ms(job),
        .chunk_ms = (is_one_host ? model->intra : model->inter).us[0] / 1000,
        .look_up_ms = model->forward_base_ms,
        .syncs = problem_n_groups(problem) > 1 && problem->groups.sync_every,
    };

    memcpy(step.overlap_cost, model->overlap_cost, sizeof(step.overlap_cost));
    if (job->dense && !is_one_host && model->rules.form == COMM_TOTAL)
        step.overlap_cost[PHASE_INPUT] = copied_frac(model);
    return step;
}

/* Adds the work of deduplication to the oracle. All devices deduplicate the
 * same number of ids, whatever pieces of tables they hold. */
static void add_dedup(struct comm_oracle *oracle)
{
    const struct dedup_rates *rates = &oracle->comm.dedup;
    struct problem drawn = *oracle->base.problem;
    double ids = 0, bytes = 0;

    if (drawn.job.dedup != DEDUP_IDS)
        return;
    drawn.job.dedup = DEDUP_NONE;
    for (uint32_t t = 0; t < drawn.n_tables; t++) {
        const struct shard whole = shard_whole(&drawn, t, 0);
        const double n =
            shard_lookups(&drawn, &whole) / drawn.cluster.n_devices;

        if (drawn.tables[t].output != OUTPUT_SEQUENCE)
            continue;
        ids += n;
        bytes += n * drawn.tables[t].dim * sizeof(float);
    }
    oracle->find_ms =
        id_work_ms(&rates->find, comm_id_work_ns(&rates->find, 0, ids));
    oracle->step.dense_ms +=
        id_work_ms(&rates->copy, comm_id_work_ns(&rates->copy, bytes, ids));
}

/* Returns the bandwidths of a step. If only the sync of sharding groups crosses
 * hosts, the one across hosts is that of the whole job. */
static struct wire wire_of(const struct comm_oracle *oracle)
{
    const struct cluster *cluster = &oracle->base.problem->cluster;
    const uint32_t group = comm_group_devices(cluster);
    const bool has_hosts = group < cluster->n_devices;
    const bool syncs_hosts =
        oracle->step.syncs && oracle->sync.n_ranks > oracle->sync.per_group;
    const struct comm_model *near = &oracle->comm;
    const struct comm_model *far = has_hosts ? near : &oracle->all;
    const bool crosses = has_hosts || syncs_hosts;

    return (struct wire){
        .intra_gbps = group > 1 ? comm_curve_gbps(&near->intra) : 0,
        .inter_gbps = crosses ? comm_curve_gbps(&far->inter) : 0,
        .assumes_intra =
            group > 1 && !near->measured_intra && !(cluster->intra_gbps > 0),
        .assumes_inter =
            crosses && !far->measured_inter && !(cluster->inter_gbps > 0)};
}

static struct reduction_ring ring_of(uint32_t n_ranks, uint32_t per_group)
{
    const double n = n_ranks;

    return (struct reduction_ring){
        .n_ranks = n_ranks, .per_group = per_group, .sent = 2 * (n - 1) / n};
}

/* Sets the rings over all devices of the job and over a replica group, and the
 * number of groups that share the memory of a host. */
static void set_rings(struct comm_oracle *oracle)
{
    const struct problem *problem = oracle->base.problem;
    const struct cluster whole = sharding_groups_cluster(problem);

    oracle->reduction = ring_of(whole.n_devices, comm_group_devices(&whole));
    oracle->sync = ring_of(problem_n_groups(problem),
                           sharding_groups_replicas_near(problem));
    oracle->n_sharing = sharding_groups_per_host(problem);
    if (problem_n_groups(problem) == 1)
        oracle->all = oracle->comm;
}

void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops)
{
    const struct cluster *cluster = &oracle->base.problem->cluster;
    const double n_devices = cluster->n_devices;

    oracle->per_group = comm_group_devices(cluster);
    oracle->near = (oracle->per_group - 1) / n_devices;
    oracle->far = (n_devices - oracle->per_group) / n_devices;
    set_rings(oracle);
    oracle->step = comm_model_step(&oracle->comm, oracle->base.problem);
    add_dedup(oracle);
    oracle->comm_at = oracle->base.width - COMM_LANES;
    oracle->unbusy = oracle->ops = *ops;
    oracle->ops.comm = price;
    oracle->ops.phases = phases;
    if (oracle->comm.rules.form == COMM_PORT &&
        !oracle->comm.rules.shares_port) {
        oracle->ops.terms = terms;
        oracle->ops.exchanges = exchanges;
    }
    oracle->base.ops = &oracle->ops;
    oracle->base.step = &oracle->step;
    oracle->base.n_terms = step_n_terms(&oracle->step);
    oracle->base.cost.comm = oracle->comm.source;
    oracle->base.cost.exchange_error = oracle->comm.error;
    oracle->base.cost.host = oracle->comm.host;
    oracle->base.cost.wire = wire_of(oracle);
}

static void sync_embed(const struct oracle *base, const struct shard *shards,
                       size_t n, double *out)
{
    const struct comm_oracle *oracle = (const void *)base;

    oracle->unsynced.embed(base, shards, n, out);
    for (size_t i = 0; i < n; i++)
        out[i * base->width + oracle->sync_at] =
            shard_sync_bytes(base->problem, &shards[i]);
}

void comm_oracle_add_sync(struct comm_oracle *oracle)
{
    if (problem_n_groups(oracle->base.problem) == 1)
        return;
    assert(!oracle->base.busy_sums);
    oracle->unsynced = oracle->ops;
    oracle->sync_at = oracle->base.width++;
    oracle->ops.embed = sync_embed;
    oracle->ops.sync_ms = sync_ms;
}
