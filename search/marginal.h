/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MARGINAL_H
#define NEUROSHARD_SEARCH_MARGINAL_H

#include "base/parallel.h"
#include "search/search_space.h"

/*
 * Sets space->load_ms to the marginal cost of each piece type: the rise of the
 * total if all devices hold an equal share of all tables and one of them gets
 * the piece in addition. This cost includes the exchange, which the standalone
 * cost leaves out. If the cost model uses nets that price all devices at once,
 * the exchange is most of the total. Does nothing if the oracle has terms,
 * because terms include the exchange already.
 *
 * The computation takes some milliseconds for a list of 50 to 80 tables.
 */
void space_load_marginal(struct search_space *space, struct pool *pool);

#endif
