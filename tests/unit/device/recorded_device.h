/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_DEVICE_RECORDED_DEVICE_H
#define NEUROSHARD_TESTS_DEVICE_RECORDED_DEVICE_H

#include "base/mem.h"
#include "device/device_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A device that only records its calls, one letter per call, and that reports
 * the times the test prepared:
 *
 *     a alloc   x free     F fill     D draw    c copy    h hold   r release
 *     ~ flush   0 1 marks  e elapsed  p probe   s scratch l open   L close
 *     f forward b backward t transfer m measure
 *     g step of a dense gradient   + add
 */
struct recorded {
    struct device device;
    char calls[4096];
    size_t n_calls;
    size_t n_taken, n_blocks; /* bytes and blocks taken from recorded_memory */
    char failing;             /* letter of the call that fails; 0: none */
    char *block;              /* block allocated last */
    size_t n_bytes;
    struct fill_window fill;
    struct stream streams[8];
    uint64_t batch_seeds[8];
    void *d_drawn[8], *d_offsets;
    unsigned n_drawn;
    size_t copied[2];
    struct probe_job job; /* job of the last probe */
    struct lookup shape;
    struct lookup_table tables[8]; /* tables of `shape` */
    /* addresses passed to the lookups, in call order */
    const void *d_sets[4096], *d_out, *d_grad;
    unsigned n_forward, phases;
    float rate, dense_rate;
    /* Time of repetition i: ms[i % n_ms]. */
    const double *ms;
    unsigned n_ms, n_elapsed;
    /* Time between two marks; if 0, the next time of ms is used. */
    double marked_ms[8][8];
    unsigned all_phases[64], n_phases; /* phases of each backward */
    uint64_t free_bytes;
    /* `later` replaces `health` from the second measurement on, unless its
     * clock is 0 */
    struct sample_health health, later;
    unsigned n_looks;
};

/* Untouched memory from which blocks are taken one after another. It starts
 * again when all blocks are free. */
static char recorded_memory[96 << 20] __attribute__((aligned(4096)));

static inline int note(struct device *device, char call, struct err *err)
{
    struct recorded *own = (struct recorded *)device;

    if (own->n_calls + 1 < sizeof own->calls)
        own->calls[own->n_calls++] = call;
    own->calls[own->n_calls] = '\0';
    return call == own->failing ? err_set(err, ERR_DEVICE, "%c fails", call)
                                : 0;
}

static int rec_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                     struct err *err)
{
    struct recorded *own = (struct recorded *)device;

    if (note(device, 'a', err))
        return -1;
    if (n_bytes > sizeof recorded_memory - own->n_taken)
        return device_is_full(device, n_bytes, err);
    *d_ptr = own->block = recorded_memory + own->n_taken;
    own->n_taken += (n_bytes + 4095) / 4096 * 4096;
    own->n_blocks++;
    own->n_bytes = n_bytes;
    return 0;
}

static void rec_free(struct device *device, void *d_ptr, size_t n_bytes)
{
    struct recorded *own = (struct recorded *)device;

    (void)n_bytes, (void)d_ptr;
    if (!--own->n_blocks)
        own->n_taken = 0;
    (void)note(device, 'x', NULL);
}

static int rec_fill(struct device *device, void *d_dst,
                    const struct fill_window *window, struct err *err)
{
    (void)d_dst;
    ((struct recorded *)device)->fill = *window;
    return note(device, 'F', err);
}

static int rec_draw(struct device *device, const struct stream *streams,
                    uint32_t n_streams, uint64_t batch_seed,
                    uint32_t *d_indices, uint64_t *d_offsets, struct err *err)
{
    struct recorded *own = (struct recorded *)device;
    const unsigned i = own->n_drawn++ % 8;

    (void)n_streams;
    own->streams[i] = *streams;
    own->batch_seeds[i] = batch_seed;
    own->d_drawn[i] = d_indices;
    own->d_offsets = d_offsets;
    return note(device, 'D', err);
}

static int rec_copy(struct device *device, const struct device_copy *copies,
                    size_t n_copies, struct err *err)
{
    for (size_t i = 0; i < n_copies && i < 2; i++)
        ((struct recorded *)device)->copied[i] = copies[i].n_bytes;
    return note(device, 'c', err);
}

static int rec_hold(struct device *device, struct err *err)
{
    return note(device, 'h', err);
}

static int rec_release(struct device *device, struct err *err)
{
    return note(device, 'r', err);
}

static int rec_flush(struct device *device, struct err *err)
{
    return note(device, '~', err);
}

static int rec_mark(struct device *device, unsigned slot, struct err *err)
{
    return note(device, (char)('0' + slot), err);
}

static int rec_elapsed(struct device *device, unsigned from, unsigned to,
                       double *ms, struct err *err)
{
    struct recorded *own = (struct recorded *)device;

    *ms = own->marked_ms[from][to];
    if (*ms == 0)
        *ms = from == 0 && to == 1 ? own->ms[own->n_elapsed++ % own->n_ms] : -1;
    return note(device, 'e', err);
}

static void rec_health(const struct device *device,
                       struct sample_health *health)
{
    struct recorded *own = (struct recorded *)(uintptr_t)device;

    *health =
        own->n_looks++ && own->later.sm_mhz > 0 ? own->later : own->health;
}

static uint64_t rec_free_bytes(const struct device *device)
{
    return ((const struct recorded *)device)->free_bytes;
}

static int rec_transfer(struct device *device, void *dst, const void *src,
                        size_t n_bytes, struct err *err)
{
    memcpy(dst, src, n_bytes);
    return note(device, 't', err);
}

static int rec_measure(struct device *device, const struct stream *streams,
                       uint32_t n_streams, const uint32_t *d_indices,
                       struct sample_table *tables, struct err *err)
{
    (void)streams, (void)d_indices;
    for (uint32_t i = 0; i < n_streams; i++)
        tables[i].n_unique = 10 + i;
    return note(device, 'm', err);
}

static int rec_scratch(struct device *device, struct probe_job *job,
                       struct err *err)
{
    job->scratch_bytes = 1000;
    job->pairs.temp_bytes = 3000;
    return note(device, 's', err);
}

static int rec_probe(struct device *device, const struct probe_job *job,
                     struct err *err)
{
    ((struct recorded *)device)->job = *job;
    return note(device, 'p', err);
}

static int rec_lookup_open(struct lookup **out, const struct lookup *shape,
                           struct err *err)
{
    *out = mem_alloc(1, sizeof **out);
    **out = *shape;
    ((struct recorded *)shape->device)->shape = *shape;
    for (uint32_t t = 0; t < shape->n_tables && t < 8; t++)
        ((struct recorded *)shape->device)->tables[t] = shape->tables[t];
    return note(shape->device, 'l', err);
}

static void rec_lookup_close(struct lookup *lookup)
{
    (void)note(lookup->device, 'L', NULL);
    mem_free(lookup);
}

static int rec_forward(struct lookup *lookup, const struct lookup_batch *batch,
                       void *d_out, struct err *err)
{
    struct recorded *own = (struct recorded *)lookup->device;

    own->d_sets[own->n_forward++ % 4096] = batch->d_indices;
    own->d_out = d_out;
    return note(lookup->device, 'f', err);
}

static int rec_backward(struct lookup *lookup, unsigned phases,
                        const struct lookup_batch *batch, const void *d_grad,
                        float learning_rate, struct err *err)
{
    struct recorded *own = (struct recorded *)lookup->device;

    (void)batch;
    own->phases = phases;
    own->all_phases[own->n_phases++ % 64] = phases;
    own->d_grad = d_grad;
    own->rate = learning_rate;
    return note(lookup->device, 'b', err);
}

static int rec_apply_dense(struct device *device,
                           const struct lookup_table *table, float *d_dense,
                           float learning_rate, enum optimizer optimizer,
                           struct err *err)
{
    (void)table, (void)d_dense, (void)optimizer;
    ((struct recorded *)device)->dense_rate = learning_rate;
    return note(device, 'g', err);
}

static int rec_add(struct device *device, float *d_sum, const float *d_part,
                   uint64_t n, struct err *err)
{
    (void)d_sum, (void)d_part, (void)n;
    return note(device, '+', err);
}

static const struct device_ops recorded_ops = {
    .lookup_apply_dense = rec_apply_dense,
    .add = rec_add,
    .alloc = rec_alloc,
    .free = rec_free,
    .free_bytes = rec_free_bytes,
    .transfer = rec_transfer,
    .measure = rec_measure,
    .fill = rec_fill,
    .draw = rec_draw,
    .copy = rec_copy,
    .hold = rec_hold,
    .release = rec_release,
    .flush = rec_flush,
    .mark = rec_mark,
    .elapsed = rec_elapsed,
    .health = rec_health,
    .probe_scratch = rec_scratch,
    .probe = rec_probe,
    .lookup_open = rec_lookup_open,
    .lookup_close = rec_lookup_close,
    .lookup_forward = rec_forward,
    .lookup_backward = rec_backward,
};

static inline void recorded_init(struct recorded *own, enum device_kind kind,
                                 const double *ms, unsigned n_ms)
{
    memset(own, 0, sizeof *own);
    own->device.ops = &recorded_ops;
    own->device.kind = kind;
    own->ms = ms;
    own->n_ms = n_ms;
}

static inline void recorded_release(struct recorded *own)
{
    mem_free(own->device.blocks);
}

/* Returns true if the calls since the last check equal `want`, in which
 * "(...)N" repeats its content N times. */
static inline bool asked(struct recorded *own, const char *want)
{
    char all[4096] = "";
    size_t n = 0;
    bool is_right;

    while (*want) {
        const char *begin = want + 1, *end = strchr(want, ')');

        if (*want != '(') {
            all[n++] = *want++;
            continue;
        }
        for (long left = strtol(end + 1, (char **)(uintptr_t)&want, 10); left;
             left--) {
            memcpy(all + n, begin, (size_t)(end - begin));
            n += (size_t)(end - begin);
        }
    }
    all[n] = '\0';
    is_right = !strcmp(all, own->calls);
    if (!is_right)
        printf("# want %s\n# got  %s\n", all, own->calls);
    own->n_calls = 0;
    own->calls[0] = '\0';
    return is_right;
}

#endif
