/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SHORTAGE_H
#define NEUROSHARD_SEARCH_SHORTAGE_H

#include "search/parts.h"

/* ERR_NO_PLAN: what is short, by item, which unit cannot be placed, and the
 * least change that would make it fit: memory of a device, number of devices,
 * or kinds that are not allowed. Each was tried by packing. Returns -1. */
int shortage_report(const struct problem *problem, const struct oracle *oracle,
                    const struct parts *parts, uint32_t stuck, struct err *err);

#endif
