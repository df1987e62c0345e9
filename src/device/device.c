/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <assert.h>

#include "device/device_ops.h"
#include "device/stream_math.h"

int device_open(struct device **out, enum device_kind kind, unsigned ordinal,
                unsigned n_threads, struct err *err)
{
    if (kind == DEVICE_CUDA)
        return device_open_cuda(out, ordinal, err);
    return device_open_cpu(out, n_threads, err);
}

void device_close(struct device *device)
{
    if (device)
        device->ops->close(device);
}

enum device_kind device_kind_of(const struct device *device)
{
    return device->kind;
}

const char *device_name(const struct device *device)
{
    return device->name;
}

const char *device_isa(const struct device *device)
{
    return device->isa;
}

unsigned device_n_threads(const struct device *device)
{
    return device->n_threads;
}

uint64_t device_free_bytes(const struct device *device)
{
    return device->ops->free_bytes(device);
}

int device_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                 struct err *err)
{
    return device->ops->alloc(device, d_ptr, n_bytes, err);
}

void device_free(struct device *device, void *d_ptr)
{
    if (d_ptr)
        device->ops->free(device, d_ptr);
}

int device_upload(struct device *device, void *d_dst, const void *src,
                  size_t n_bytes, struct err *err)
{
    return device->ops->upload(device, d_dst, src, n_bytes, err);
}

int device_download(struct device *device, void *dst, const void *d_src,
                    size_t n_bytes, struct err *err)
{
    return device->ops->download(device, dst, d_src, n_bytes, err);
}

int device_fill(struct device *device, void *d_dst, uint64_t n,
                enum precision precision, uint64_t seed, struct err *err)
{
    if (precision != PRECISION_FP32 && precision != PRECISION_FP16)
        return err_set(err, ERR_INPUT,
                       "tables of precision '%s' are not executed",
                       precision_name(precision));
    return device->ops->fill(device, d_dst, n, precision, seed, err);
}

float device_fill_value(uint64_t seed, uint64_t idx)
{
    return stream_fill_value(seed, idx);
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
