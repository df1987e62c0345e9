/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TIERS_JSON_H
#define NEUROSHARD_IO_PLAN_TIERS_JSON_H

#include "base/json.h"
#include "core/plan.h"

/* The members of plan files that only plans with tiers have. */

/* Reads "tiers", a list of names, and "reach" and "misses", two lists of one
 * figure for each window, of a table. Absent members leave the table as it
 * is. */
int plan_read_table_tiers(struct table *table, const struct json_place *place,
                          struct err *err) MUST_CHECK;
/* Sets these members unless they have their defaults. */
void plan_set_table_tiers(json_t *value, const struct table *table);

/* Reads "tier" of a shard of the plan, and "load_factor" if it is cached, which
 * must agree with the other shards of the table. The plan's tables have been
 * read. */
int plan_read_tier(struct plan *plan, struct shard *shard,
                   const struct json_place *place, struct err *err) MUST_CHECK;

/* Reads "caches" of a device. */
int plan_read_caches(struct device_cost *device, const struct json_place *place,
                     struct err *err) MUST_CHECK;
/* Sets this member if the device has caches. */
void plan_set_caches(json_t *value, const struct device_cost *device);

#endif
