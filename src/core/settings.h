/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SETTINGS_H
#define NEUROSHARD_CORE_SETTINGS_H

#include "core/problem.h"

/* Settings of a problem that a what-if question changes. The text of a question
 * is a list of settings, such as "batch=131072,reserve=30%". */

struct settings {
    /* global batch in samples; 0: unchanged, or device_batch of the problem for
     * each GPU */
    uint64_t batch;
    uint32_t n_devices;  /* number of GPUs; 0: unchanged */
    const char *reserve; /* memory to keep free on each GPU, as text_to_share
                            reads it; NULL: unchanged */
};

/* Largest number of GPUs in a setting. */
#define SETTINGS_MAX_DEVICES 65536

/* Parses a text of len bytes: "batch", "gpus" and "reserve", each at most once,
 * with '=' and a value, separated by commas. `reserve` is in the arena. Fails
 * with ERR_USAGE; the message quotes the setting and lists the keys or values
 * that are accepted. */
int settings_parse(struct settings *settings, const char *text, size_t len,
                   struct arena *arena, struct err *err) MUST_CHECK;

/*
 * Changes the problem to the settings. New arrays are in the arena, so copies
 * of the problem stay as they are.
 *
 * Hosts follow from the cluster (cluster_resize), and further GPUs have the
 * memory and the reserve of GPU 0. A new reserve replaces the whole reserve of
 * each GPU, but is at least the buffers of NCCL.
 *
 * Fails with ERR_USAGE if the GPUs do not fill whole hosts, or if the reserve
 * exceeds the memory of a GPU.
 */
int settings_apply(const struct settings *settings, struct problem *problem,
                   struct arena *arena, struct err *err) MUST_CHECK;

#endif
