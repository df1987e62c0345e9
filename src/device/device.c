/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include "base/text.h"
#include "device/device_ops.h"
#include "device/nvml.h"

#include <assert.h>
#include <stdio.h>
#include <sys/utsname.h>

/* A measurement is flagged as throttled if the clock is below this share of the
 * highest clock seen on the device. The clock that the manufacturer promises
 * cannot be the reference, because a data centre may have permanently set a
 * lower limit. */
#define FULL_CLOCK_FRAC 0.75

/* Number of floats that device_set uploads from the host; it copies the rest on
 * the device. */
#define SET_FLOATS ((uint64_t)1 << 16)

#define DEVICE_ENTRY(id, name) {device_open_##name, device_count_##name},
static const struct {
    int (*open)(struct device **out, unsigned ordinal, unsigned n_threads,
                struct err *err);
    unsigned (*count)(void);
} kinds[N_DEVICE_KINDS] = {DEVICE_KINDS(DEVICE_ENTRY)};

unsigned device_count(enum device_kind kind)
{
    return kinds[kind].count();
}

int device_open(struct device **out, enum device_kind kind, unsigned ordinal,
                unsigned n_threads, struct err *err)
{
    struct device_facts *facts;
    struct utsname system;

    if (kinds[kind].open(out, ordinal, n_threads, err))
        return -1;
    facts = &(*out)->facts;
    if (uname(&system))
        return 0;
    snprintf(facts->host, sizeof facts->host, "%.79s", system.nodename);
    if (device_is_host(*out)) /* the driver of a CPU is the operating system */
        snprintf(facts->driver, sizeof facts->driver, "%.20s %.50s",
                 system.sysname, system.release);
    return 0;
}

void device_close(struct device *device)
{
    if (!device)
        return;
    while (device->n_blocks)
        device_free(device, device->blocks[0].d_ptr);
    mem_free(device->blocks);
    device->ops->close(device);
}

bool device_is_host(const struct device *device)
{
    return device->kind == DEVICE_CPU;
}

json_t *device_to_json(const struct device *device)
{
    return json_pack("{s:s, s:s, s:i}", "name", device->facts.name, "isa",
                     device->facts.isa, "threads", device->facts.n_threads);
}

struct sample_setting device_setting(const struct device_facts *facts,
                                     enum precision precision,
                                     enum optimizer optimizer, uint32_t batch)
{
    return (struct sample_setting){.device = facts->name,
                                   .n_threads = facts->n_threads,
                                   .isa = facts->isa,
                                   .driver = facts->driver,
                                   .cuda = facts->cuda,
                                   .host = facts->host,
                                   .precision = precision,
                                   .optimizer = optimizer,
                                   .batch = batch};
}

uint64_t device_free_bytes(const struct device *device)
{
    return device->ops->free_bytes(device);
}

int device_is_full(const struct device *device, size_t n_bytes, struct err *err)
{
    return err_set(err, ERR_DEVICE,
                   "cannot allocate %s on '%s': only %s are free",
                   TEXT_BYTES(n_bytes), device->facts.name,
                   TEXT_BYTES(device_free_bytes(device)));
}

int device_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err)
{
    if (device->ops->alloc(device, d_ptr, n_bytes, err))
        return -1;
    device->blocks =
        mem_grow(device->blocks, device->n_blocks + 1, sizeof *device->blocks);
    device->blocks[device->n_blocks++] = (struct device_block){*d_ptr, n_bytes};
    return 0;
}

void device_free(struct device *device, void *d_ptr)
{
    size_t i = 0;

    while (i < device->n_blocks && device->blocks[i].d_ptr != d_ptr)
        i++;
    if (i == device->n_blocks)
        return;
    device->ops->free(device, d_ptr, device->blocks[i].n_bytes);
    device->blocks[i] = device->blocks[--device->n_blocks];
}

int device_reserve(struct device *device, struct device_region *region,
                   size_t n_bytes, struct err *err)
{
    if (region->n_bytes >= n_bytes)
        return 0;
    device_free(device, region->d_ptr);
    *region = (struct device_region){0};
    if (device_alloc(device, &region->d_ptr, n_bytes, err))
        return -1;
    region->n_bytes = n_bytes;
    return 0;
}

int device_upload(struct device *device, void *d_dst, const void *src,
                  size_t n_bytes, struct err *err)
{
    return device->ops->transfer(device, d_dst, src, n_bytes, err);
}

int device_download(struct device *device, void *dst, const void *d_src,
                    size_t n_bytes, struct err *err)
{
    return device->ops->transfer(device, dst, d_src, n_bytes, err);
}

int device_fill(struct device *device, void *d_dst, uint64_t n,
                enum precision precision, uint64_t seed, struct err *err)
{
    return device_fill_window(device, d_dst,
                              &(struct fill_window){.seed = seed,
                                                    .n_rows = n,
                                                    .width = 1,
                                                    .stride = 1,
                                                    .precision = precision},
                              err);
}

int device_fill_window(struct device *device, void *d_dst,
                       const struct fill_window *window, struct err *err)
{
    assert(window->precision == PRECISION_FP32 ||
           window->precision == PRECISION_FP16);
    return device->ops->fill(device, d_dst, window, err);
}

/* Uploads the first floats from the host. The other floats are filled with
 * copies of the floats before them. */
int device_set(struct device *device, float *d_dst, uint64_t n, float value,
               struct err *err)
{
    const uint64_t n_first = n < SET_FLOATS ? n : SET_FLOATS;
    float *first = mem_alloc(n_first, sizeof *first);
    int rc;

    for (uint64_t i = 0; i < n_first; i++)
        first[i] = value;
    rc = device_upload(device, d_dst, first, n_first * sizeof *first, err);
    mem_free(first);
    for (uint64_t done = n_first; !rc && done < n; done *= 2) {
        const uint64_t n_more = min_u64(n - done, done);
        const struct device_copy copy = {d_dst + done, d_dst,
                                         n_more * sizeof *d_dst};

        rc = device->ops->copy(device, &copy, 1, err);
    }
    return rc;
}

int device_add(struct device *device, float *d_sum, const float *d_part,
               uint64_t n, struct err *err)
{
    return device->ops->add(device, d_sum, d_part, n, err);
}

int device_mark(struct device *device, unsigned slot, struct err *err)
{
    assert(slot < DEVICE_N_MARKS);
    return device->ops->mark(device, slot, err);
}

int device_elapsed(struct device *device, unsigned from, unsigned to,
                   double *ms, struct err *err)
{
    assert(from < DEVICE_N_MARKS && to < DEVICE_N_MARKS);
    return device->ops->elapsed(device, from, to, ms, err);
}

int device_wait(struct device *device, struct err *err)
{
    return device->ops->wait ? device->ops->wait(device, err) : 0;
}

int device_hold(struct device *device, struct err *err)
{
    return device->ops->hold ? device->ops->hold(device, err) : 0;
}

int device_release(struct device *device, struct err *err)
{
    return device->ops->release ? device->ops->release(device, err) : 0;
}

int device_delay(struct device *device, struct err *err)
{
    return device->ops->delay ? device->ops->delay(device, err) : 0;
}

int device_flush(struct device *device, struct err *err)
{
    return device->ops->flush ? device->ops->flush(device, err) : 0;
}

void device_health(const struct device *device, struct sample_health *health)
{
    *health = (struct sample_health){0};
    if (device->ops->health)
        device->ops->health(device, health);
}

/* Only the clock after the measurement is compared. Before the measurement, the
 * device may have been idle with a low clock. */
bool device_was_throttled(struct device *device,
                          const struct sample_health *before,
                          const struct sample_health *after)
{
    uint64_t reasons = before->throttle_reasons | after->throttle_reasons;

    if (after->sm_mhz > device->top_sm_mhz)
        device->top_sm_mhz = after->sm_mhz;
    return reasons & NVML_REASONS_SLOWED ||
           after->sm_mhz < FULL_CLOCK_FRAC * device->top_sm_mhz;
}
