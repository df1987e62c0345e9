/* SPDX-License-Identifier: MIT */
#include "device/device_cpu.h"
#include "device/elementwise_body.h"

/* Number of elements that one task computes. */
#define TASK_ELEMENTS ((uint64_t)1 << 14)

/* Computes the elements [begin, end), counted row by row. */
#define RUN_KIND(name)                                          \
    case ELEMENTWISE_##name:                                    \
        for (; begin < end; begin += n) {                       \
            const uint64_t r = begin / job->n_cols;             \
            const uint64_t first = begin % job->n_cols;         \
                                                                \
            n = min_u64(end - begin, job->n_cols - first);      \
            for (uint64_t c = first; c < first + n; c++)        \
                elementwise_one(job, ELEMENTWISE_##name, r, c); \
        }                                                       \
        return;

static void run_range(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct elementwise own = *(const struct elementwise *)ctx;
    const struct elementwise *job = &own;
    uint64_t n;

    (void)thread;
    switch (job->kind) {
        ELEMENTWISE_KINDS(RUN_KIND)
    case N_ELEMENTWISE:
    default:
        return;
    }
}

int elementwise_cpu_run(struct device *device, const struct elementwise *job,
                        struct err *err)
{
    struct elementwise own = *job;

    (void)err;
    pool_run_range(device_cpu(device)->pool, job->n_rows * job->n_cols,
                   TASK_ELEMENTS, run_range, &own);
    return 0;
}
