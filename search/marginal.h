/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MARGINAL_H
#define NEUROSHARD_SEARCH_MARGINAL_H

#include "base/parallel.h"
#include "search/choices.h"

/*
 * Sets parts->load_ms to the marginal cost of each piece: the rise of the total
 * if all devices hold an equal share of all tables and one of them gets the
 * piece as well. It counts the exchange, which is most of the total of nets
 * that price all devices at once; the cost of a piece alone leaves it out. Does
 * nothing if the oracle has terms, which count the exchange already.
 *
 * A list of 50 to 80 tables takes some milliseconds.
 */
void parts_load_marginal(struct parts *parts, struct pool *pool);

#endif
