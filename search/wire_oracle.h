/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_WIRE_ORACLE_H
#define NEUROSHARD_SEARCH_WIRE_ORACLE_H

#include "core/oracle.h"

/*
 * A cost model of a plan's worst regret over several bandwidths of the wire.
 *
 *     regret of a plan at a bandwidth = its total / the best total - 1
 *
 * The search then minimises this worst regret, as it minimises the total of any
 * other cost model.
 */

struct wire_oracle {
    struct oracle base; /* the cost model of the worst regret */
    struct oracle_ops ops;
    /* the cost model at each bandwidth of wire_shares; not owned */
    const struct oracle *models[N_WIRES];
    double weights[N_WIRES]; /* best total at wire 0 / best total at wire k */
    double most_ms;          /* limit of the total at wire 0, or INFINITY */
};

/*
 * Initialises the oracle. The struct must not be moved afterwards. `models` are
 * the oracles of one cost model and one problem that only differ in bandwidths;
 * they have `terms`, `exchanges` and a step. best_ms[k] > 0 is the best total
 * at wire k.
 *
 * The total of an assignment is (1 + worst regret) x best_ms[0]. Each ms of its
 * total at wire 0 above most_ms adds 10 ms. All other answers, such as phases
 * and errors, are those at wire 0.
 */
void wire_oracle_init(struct wire_oracle *oracle,
                      const struct oracle *const models[N_WIRES],
                      const double best_ms[N_WIRES], double most_ms);

#endif
