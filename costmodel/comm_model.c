/* SPDX-License-Identifier: MIT */
#include "costmodel/comm_model.h"

#include <string.h>

struct comm_curve comm_line(double alpha_us, double gbps)
{
    return (struct comm_curve){.n_knots = 2,
                               .bytes = {0, gbps * 1e9},
                               .us = {alpha_us, alpha_us + 1e6}};
}

uint32_t comm_curve_knot(const struct comm_curve *curve, double bytes,
                         double *share)
{
    uint32_t k = curve->n_knots - 1;

    while (k > 1 && bytes < curve->bytes[k - 1])
        k--;
    *share =
        (bytes - curve->bytes[k - 1]) / (curve->bytes[k] - curve->bytes[k - 1]);
    return k;
}

double comm_curve_us(const struct comm_curve *curve, double bytes)
{
    double share;
    uint32_t k = comm_curve_knot(curve, bytes, &share);

    return curve->us[k - 1] + share * (curve->us[k] - curve->us[k - 1]);
}

double comm_curve_gbps(const struct comm_curve *curve)
{
    uint32_t last = curve->n_knots - 1;

    return 1e-3 * (curve->bytes[last] - curve->bytes[last - 1]) /
           (curve->us[last] - curve->us[last - 1]);
}

/* Drawn out along the bytes, a curve keeps its latency and its bend. */
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
    if (*inside || *across)
        model->source = arena_printf(arena, "%s; but%s%s, as asked for",
                                     model->source, inside, across);
}

/* How unlike two numbers of ranks are: the larger over the smaller. */
static double unlikeness(uint32_t a, uint32_t b)
{
    if (!a || !b)
        return 1;
    return a < b ? (double)b / a : (double)a / b;
}

static bool apply_best(const struct comm_fit *fit, uint32_t n_ranks,
                       bool is_inter, struct comm_curve *out)
{
    const struct comm_curve *best = NULL;

    for (uint32_t i = 0; i < fit->n_curves; i++) {
        const struct comm_curve *curve = &fit->curves[i];

        if ((curve->n_hosts > 1) == is_inter &&
            (!best || unlikeness(curve->n_ranks, n_ranks) <
                          unlikeness(best->n_ranks, n_ranks)))
            best = curve;
    }
    if (best)
        *out = *best;
    return best != NULL;
}

/* Of a host, or of the NVLink domain that stands for one. */
static uint32_t devices_of_group(const struct cluster *cluster)
{
    uint32_t n = cluster_group(cluster);

    return n && n < cluster->n_devices ? n : cluster->n_devices;
}

bool comm_fit_apply(const struct comm_fit *fit, const struct cluster *cluster,
                    struct comm_model *model)
{
    uint32_t n_ranks = cluster->n_devices, per_host = devices_of_group(cluster);
    bool is_one_host = per_host == n_ranks;

    model->form = fit->form;
    model->source = fit->source;
    apply_best(fit, per_host, false, &model->intra);
    return apply_best(fit, n_ranks, true, &model->inter) || is_one_host;
}

void comm_embed(const struct problem *problem, const struct shard *shard,
                double out[COMM_LANES])
{
    const enum precision precision =
        problem->tables[shard->table].comm_precision;
    const double width = (double)(shard->col_end - shard->col_begin);
    const double rows = (double)(shard->row_end - shard->row_begin);

    memset(out, 0, COMM_LANES * sizeof(*out));
    if (shard_is_replica(shard->kind))
        out[COMM_LANE_GRAD] = rows * width * 4;
    else
        out[COMM_LANE_OUTPUT] = shard_output_vectors(problem, shard) * width *
                                precision_bytes(precision);
}

static double transfer_ms(const struct comm_curve *curve, double bytes)
{
    return bytes > 0 ? comm_curve_us(curve, bytes) / 1000 : 0;
}

static double max_of(double a, double b)
{
    return a > b ? a : b;
}

/* The lanes of one assignment: lane of device r is first[r * stride]. */
struct lanes {
    const double *first;
    size_t stride;
    uint32_t n_devices;
};

static double lane_sum(const struct lanes *lanes, uint32_t begin, uint32_t end)
{
    double sum = 0;

    for (uint32_t r = begin; r < end; r++)
        sum += lanes->first[r * lanes->stride];
    return sum;
}

/* Time of one all-to-all of the bytes in a lane. */
static double alltoall_ms(const struct comm_model *model,
                          const struct lanes *lanes, uint32_t per_host)
{
    uint32_t n_devices = lanes->n_devices;
    double share = 1.0 / n_devices;
    double all = lane_sum(lanes, 0, n_devices);
    double intra = 0, inter = 0; /* bytes at the busiest place of a level */

    for (uint32_t begin = 0, end; begin < n_devices; begin = end) {
        double host, near, far;

        end = n_devices - begin < per_host ? n_devices : begin + per_host;
        host = lane_sum(lanes, begin, end);
        near = (end - begin - 1) * share;
        far = (n_devices - (end - begin)) * share;
        if (model->form == COMM_TOTAL)
            intra = max_of(intra, host * (end - begin) * share);
        for (uint32_t r = begin; r < end; r++) {
            double mine = lanes->first[r * lanes->stride];
            double port = max_of(mine * near, (host - mine) * share);

            if (model->form == COMM_PORT)
                intra = max_of(intra, port);
            inter = max_of(inter, max_of(mine * far, (all - host) * share));
        }
    }
    return max_of(transfer_ms(&model->intra, intra),
                  transfer_ms(&model->inter, inter));
}

/* Ring all-reduce of what a device sends; each hop of the ring runs at the
 * slowest level's pace. */
static double ring_ms(const struct comm_model *model, double bytes,
                      uint32_t n_devices, uint32_t per_host)
{
    const double intra = transfer_ms(&model->intra, bytes);

    return n_devices <= per_host
               ? intra
               : max_of(intra, transfer_ms(&model->inter, bytes));
}

static double allreduce_ms(const struct comm_model *model,
                           const struct lanes *lanes, uint32_t per_host)
{
    const uint32_t n_devices = lanes->n_devices;
    double bytes = 0;

    for (uint32_t r = 0; r < n_devices; r++)
        bytes = max_of(bytes, lanes->first[r * lanes->stride]);
    return ring_ms(model, bytes * (2.0 * (n_devices - 1) / n_devices),
                   n_devices, per_host);
}

static const struct comm_model *model_of(const struct oracle *oracle)
{
    return &((const struct comm_oracle *)(const void *)oracle)->comm;
}

static void price(const struct oracle *oracle, size_t n, const double *sums,
                  const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    const struct comm_model *model = model_of(oracle);
    const struct cluster *cluster = &oracle->problem->cluster;
    const uint32_t n_devices = cluster->n_devices, width = oracle->width;
    const uint32_t per_host = devices_of_group(cluster);

    for (size_t i = 0; i < n; i++) {
        const double *first = sums + i * n_devices * width + width - COMM_LANES;
        const struct lanes output = {first + COMM_LANE_OUTPUT, width,
                                     n_devices};
        const struct lanes grad = {first + COMM_LANE_GRAD, width, n_devices};
        const double exchange =
            n_devices > 1 ? alltoall_ms(model, &output, per_host) : 0;
        const double bwd = exchange + allreduce_ms(model, &grad, per_host);
        double ready = 0;

        for (uint32_t r = 0; r < n_devices; r++)
            ready = max_of(ready, compute_ms[r] + bwd);
        for (uint32_t r = 0; r < n_devices; r++) {
            *bwd_ms++ = bwd;
            *fwd_ms++ = ready - (*compute_ms++ + bwd) + exchange;
        }
    }
}

static void terms(const struct oracle *oracle, const double *sums,
                  const double *compute_ms, size_t n, double *terms_ms)
{
    const struct comm_model *model = model_of(oracle);
    const struct cluster *cluster = &oracle->problem->cluster;
    const uint32_t n_devices = cluster->n_devices;
    const uint32_t per_host = devices_of_group(cluster);
    const double near = (per_host - 1.0) / n_devices;
    const double far = (double)(n_devices - per_host) / n_devices;
    const double ring = 2.0 * (n_devices - 1) / n_devices;

    for (size_t i = 0; i < n; i++, terms_ms += COMM_TERMS) {
        const double *lanes = sums + (i + 1) * oracle->width - COMM_LANES;
        const double output = lanes[COMM_LANE_OUTPUT];

        terms_ms[0] = compute_ms[i];
        terms_ms[1] = terms_ms[2] =
            max_of(transfer_ms(&model->intra, output * near),
                   transfer_ms(&model->inter, output * far));
        terms_ms[3] =
            ring_ms(model, ring * lanes[COMM_LANE_GRAD], n_devices, per_host);
    }
}

void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops)
{
    oracle->ops = *ops;
    oracle->ops.comm = price;
    oracle->ops.terms = oracle->comm.form == COMM_PORT ? terms : NULL;
    oracle->base.ops = &oracle->ops;
    oracle->base.n_terms = COMM_TERMS;
    oracle->base.comm = oracle->comm.source;
}
