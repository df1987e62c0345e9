/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_RESHARD_H
#define NEUROSHARD_EMIT_RESHARD_H

#include "emit/plan_diff.h"

/* The part of a change of plans that TorchRec's reshard can make in a running
 * job (core/reshard_rules.h), and the part that needs a checkpoint. */

/* Prints the tables that reshard moves, the tables that need a checkpoint with
 * the reason, the bytes, and the times of both ways. checkpoint_gbps: bandwidth
 * at which each GPU writes and reads a checkpoint, > 0. The text ends in a
 * newline. */
void reshard_print(const struct plan_diff *diff, double checkpoint_gbps,
                   struct buf *out);
/* Returns the same as JSON, which the caller decrefs: {"reshard": [{"name",
 * "from", "to", "moved_bytes", "torchrec_bytes"}], "checkpoint": [{"name",
 * "reason", "moved_bytes"}], "moved_bytes", "torchrec_bytes", "link_gbps",
 * "reshard_ms", "steps_to_pay", "checkpoint_gbps", "checkpoint_ms",
 * "checkpoint_steps_to_pay"}. link_gbps, reshard_ms and the steps are null if
 * unknown. The checkpoint has all tables that change, those of reshard
 * included. */
json_t *reshard_to_json(const struct plan_diff *diff, double checkpoint_gbps);

#endif
