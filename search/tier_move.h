/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TIER_MOVE_H
#define NEUROSHARD_SEARCH_TIER_MOVE_H

#include "search/candidate.h"

/* Fills an empty candidate with the changes that move the table of a piece to
 * another tier, drawn at random. Its pieces stay as they are. The candidate
 * stays empty if the tier does not allow them. */
void tier_propose(struct candidate *candidate,
                  const struct assignment *assignment, uint32_t piece,
                  struct rng *rng);

#endif
