/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_NCCL_H
#define NEUROSHARD_DEVICE_COMM_NCCL_H

#include "device/comm.h"

/* The NCCL body of exchanges. */

/* Opens the NCCL body, for a world of processes with one GPU each. All members
 * of `shape` are copied, except kind, sent_bytes, start and close. */
int comm_open_nccl(struct comm **out, const struct comm *shape,
                   struct err *err) MUST_CHECK;

#endif
