/* SPDX-License-Identifier: MIT */
#include "device/probe.h"

#include "base/mem.h"
#include "device/device_ops.h"
#include "device/repetitions.h"

#include <assert.h>

#define N_WARM_UP 2
#define SEED 1
#define SCRATCH_BYTES ((uint64_t)1 << 20)
#define UINT32_SPAN (UINT64_C(1) << 32)

const char *const probe_kind_names[] = {"read", "copy",   "gather",
                                        "sort", "launch", NULL};

static unsigned key_bytes(const struct probe *probe)
{
    return probe->key_bits > 32 ? 8 : 4;
}

static uint64_t pair_bytes(const struct probe *probe)
{
    return probe->n * (key_bytes(probe) + sizeof(uint32_t));
}

/* Returns the bytes of data that the probe reads from or writes to. READ: the
 * source; COPY: source and destination; GATHER: the footprint. */
static uint64_t streamed_bytes(const struct probe *probe)
{
    return probe->kind == PROBE_COPY ? 2 * probe->n_bytes : probe->n_bytes;
}

double probe_moved_bytes(const struct probe *probe)
{
    uint64_t n_passes = (probe->key_bits + 7) / 8;

    if (probe->kind == PROBE_GATHER)
        return (double)probe->n * (probe->row_bytes + sizeof(uint32_t));
    if (probe->kind == PROBE_SORT)
        return 2 * (double)(pair_bytes(probe) * n_passes);
    return (double)streamed_bytes(probe);
}

uint64_t probe_memory_bytes(const struct probe *probe)
{
    /* SORT needs memory for the pairs as they were drawn, two sort buffers and
     * scratch. */
    if (probe->kind == PROBE_SORT)
        return 3 * pair_bytes(probe) + probe->n + SCRATCH_BYTES;
    if (probe->kind == PROBE_LAUNCH)
        return SCRATCH_BYTES;
    return streamed_bytes(probe) + probe->n * sizeof(uint32_t);
}

/* Memory and other resources of one probe. */
struct preparation {
    struct device *device; /* not owned */
    struct probe_job job;
    void *d_block; /* owned; device memory of the job and of the arrays below */
    void *d_offsets;
    /* SORT: the unsorted pairs, copied back before each run */
    void *d_first_keys, *d_first_values;
};

/* Assigns places in the device memory block to all arrays of a probe. Returns
 * the size that the block must have. */
static size_t lay_out(struct preparation *own)
{
    struct probe_job *job = &own->job;
    const struct probe *probe = job->probe;
    struct device_parts parts = {own->d_block, 0};

    own->d_offsets = device_part(&parts, 2 * sizeof(uint64_t));
    job->d_scratch = device_part(&parts, job->scratch_bytes);
    job->d_src = device_part(&parts, probe->n_bytes);
    if (probe->kind == PROBE_COPY)
        job->d_dst = device_part(&parts, probe->n_bytes);
    if (probe->kind == PROBE_GATHER)
        job->d_indices = device_part(&parts, probe->n * sizeof(uint32_t));
    if (probe->kind != PROBE_SORT)
        return parts.n_bytes;
    own->d_first_keys = device_part(&parts, probe->n * key_bytes(probe));
    own->d_first_values = device_part(&parts, probe->n * sizeof(uint32_t));
    device_part_pairs(&job->pairs, &parts, probe->n);
    return parts.n_bytes;
}

/* Draws n random numbers, uniform over 0 .. n_values - 1. */
static int draw(struct preparation *own, uint64_t n, uint64_t n_values,
                void *d_out, struct err *err)
{
    const struct stream stream = {
        .n_rows = n_values, .batch = 1, .pooling_factor = (double)n};

    return stream_draw(own->device, &stream, 1, SEED, d_out, own->d_offsets,
                       err);
}

static int prepare(struct preparation *own, const struct probe *probe,
                   struct err *err)
{
    struct device *device = own->device;
    struct probe_job *job = &own->job;

    job->probe = probe;
    job->pairs.key_bytes = key_bytes(probe);
    if (device->ops->probe_scratch(device, job, err) ||
        device_alloc(device, &own->d_block, lay_out(own), err))
        return -1;
    lay_out(own);
    if (probe->n_bytes &&
        device_fill(device, job->d_src, probe->n_bytes / sizeof(float),
                    PRECISION_FP32, SEED, err))
        return -1;
    if (probe->kind == PROBE_GATHER)
        return draw(own, probe->n, probe->n_bytes / probe->row_bytes,
                    job->d_indices, err);
    if (probe->kind == PROBE_SORT)
        return draw(own, probe->n * key_bytes(probe) / sizeof(uint32_t),
                    UINT32_SPAN - 1, own->d_first_keys, err) ||
                       draw(own, probe->n, UINT32_SPAN - 1, own->d_first_values,
                            err)
                   ? -1
                   : 0;
    return 0;
}

/* Runs the probe once and times it. Warm-up runs are not held (device_hold),
 * because their kernels may have to be loaded, and loading waits for the
 * GPU. */
static int run_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    const struct preparation *own = ctx;
    const struct probe_job *job = &own->job;
    const struct probe *probe = job->probe;
    struct device *device = own->device;

    if (probe->kind == PROBE_SORT) {
        const struct device_copy copies[] = {
            {job->pairs.d_keys[0], own->d_first_keys,
             probe->n * key_bytes(probe)},
            {job->pairs.d_values[0], own->d_first_values,
             probe->n * sizeof(uint32_t)},
        };

        if (device->ops->copy(device, copies, 2, err))
            return -1;
    }
    if ((number >= N_WARM_UP && device_hold(device, err)) ||
        device_flush(device, err) || device_mark(device, 0, err) ||
        device->ops->probe(device, job, err) || device_mark(device, 1, err) ||
        device_release(device, err))
        return -1;
    return device_elapsed(device, 0, 1, ms, err);
}

/* Returns true if the probe can be run: its rows and draws can be counted in 32
 * bits. */
static bool is_possible(const struct probe *probe)
{
    if (probe->kind == PROBE_GATHER)
        return probe->row_bytes && probe->row_bytes % 16 == 0 &&
               probe->n_bytes >= probe->row_bytes &&
               probe->n_bytes / probe->row_bytes < UINT32_SPAN &&
               probe->n < UINT32_SPAN;
    if (probe->kind == PROBE_SORT)
        return probe->key_bits - 1 < 64 &&
               pair_bytes(probe) < UINT32_SPAN * sizeof(uint32_t);
    return probe->n_bytes > 0 || probe->kind == PROBE_LAUNCH;
}

int probe_run(struct ceiling *ceiling, struct device *device,
              const struct probe *probe, unsigned n_iterations, struct err *err)
{
    struct preparation own = {.device = device};
    struct repetitions repetitions = {run_once,     &own, 1,   N_WARM_UP,
                                      n_iterations, 0,    NULL};
    struct repetition_conditions conditions;
    int rc;

    assert(n_iterations && is_possible(probe));
    *ceiling = (struct ceiling){.probe = *probe, .n_iterations = n_iterations};
    rc = prepare(&own, probe, err) ||
         repetitions_time_quietly(&ceiling->timing, &repetitions, device, NULL,
                                  &conditions, err);
    if (!rc && conditions.is_disturbed)
        ceiling->flags = SAMPLE_THROTTLED;
    device_free(device, own.d_block);
    return rc ? -1 : 0;
}
