/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_DEVICES_H
#define NEUROSHARD_TESTS_DEVICES_H

#include "base/mem.h"
#include "device/device.h"
#include "tests/tap.h"

/* Devices to run tests on: CPUs with different numbers of threads, and the
 * first GPU, real or emulated. */

struct test_device {
    const char *name;
    enum device_kind kind;
    unsigned n_threads;
};

static const struct test_device TEST_DEVICES[] = {
    {"1 thread", DEVICE_CPU, 1},
    {"2 threads", DEVICE_CPU, 2},
    {"3 threads", DEVICE_CPU, 3},
    {"GPU", DEVICE_CUDA, 0},
};
#define N_TEST_DEVICES (sizeof TEST_DEVICES / sizeof TEST_DEVICES[0])

/* Opens a device. Returns NULL, and skips a test, if there is no such
 * device. */
__attribute__((unused)) static struct device *
test_device_open(const struct test_device *which)
{
    struct device *device = NULL;
    struct err err = {0};

    if (which->kind == DEVICE_CUDA && !device_count(DEVICE_CUDA)) {
        tap_skip(which->name, "no CUDA device");
        return NULL;
    }
    ok(!device_open(&device, which->kind, 0, which->n_threads, &err),
       "open %s %s", which->name, err.msg);
    return device;
}

/* Returns a copy in host memory; release it with mem_free. */
__attribute__((unused)) static void *
test_device_copy(struct device *device, const void *d_src, size_t n_bytes)
{
    struct err err = {0};
    void *copy = mem_alloc(n_bytes, 1);

    if (device_download(device, copy, d_src, n_bytes, &err))
        ok(0, "download %zu bytes: %s", n_bytes, err.msg);
    return copy;
}

__attribute__((unused)) static void *test_device_alloc(struct device *device,
                                                       size_t n_bytes)
{
    struct err err = {0};
    void *d_ptr = NULL;

    if (device_alloc(device, &d_ptr, n_bytes, &err))
        ok(0, "allocate %zu bytes: %s", n_bytes, err.msg);
    return d_ptr;
}

#endif
