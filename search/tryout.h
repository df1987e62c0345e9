/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TRYOUT_H
#define NEUROSHARD_SEARCH_TRYOUT_H

#include "search/snapshot.h"

/*
 * One change of a layout at a time, priced by itself: what looks at few changes
 * and chooses among them needs no more. The annealing prices in batches
 * (search/anneal.h).
 */

struct tryout {
    struct layout layout;
    struct trial trial;
    uint64_t n_priced;
};

void tryout_init(struct tryout *tryout, const struct parts *parts);
void tryout_release(struct tryout *tryout);

/* The layout becomes this one, priced. */
void tryout_load(struct tryout *tryout, const struct snapshot *snapshot);

/* Prices tryout->trial, whose changes are in, pieces that meet joined: its
 * total, INFINITY where that is no number or pieces meet that must not
 * (search/join.h), and its excess. layout_commit may follow. */
double tryout_price(struct tryout *tryout);

/* What a device that the trial touches takes then by itself, as
 * layout->local_ms. */
double tryout_local_ms(const struct tryout *tryout, uint32_t device);

#endif
