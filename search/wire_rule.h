/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_WIRE_RULE_H
#define NEUROSHARD_SEARCH_WIRE_RULE_H

#include "core/plan_error.h"
#include "search/search.h"

/*
 * Rules by which a plan is chosen if the bandwidth of the wire is an assumption
 * (search/wire_choice.h). Candidates are priced at the shares wire_shares of
 * the assumed bandwidth:
 *
 *     regret = total of the plan / total of the best plan known there - 1
 */
#define WIRE_LIMIT_FRAC 0.01
/* Least fall of the worst regret for which WIRE_LIMITED takes another plan. */
#define WIRE_LEAST_GAIN_FRAC 0.001

struct wire_candidate {
    struct priced_parts prices[N_WIRES];
    double host_ms;
    unsigned n_kinds; /* kinds of sharding (core/host.h) */
    size_t n_changed; /* number of tables whose training changes */
    size_t n_shards;
};

/* The recommended plan at the assumed bandwidth, list[0], and others. */
#define MOST_WIRE_CANDIDATES 16
struct wire_candidates {
    struct wire_candidate list[MOST_WIRE_CANDIDATES]; /* [n], n >= 1 */
    unsigned n;
    double best_ms[N_WIRES]; /* total of the best plan known at each wire */
    bool knows_dense;        /* the totals include the dense part */
};

/* Adds a candidate to the list, and lowers best_ms. */
void wire_add(struct wire_candidates *all, const struct wire_candidate *one);
/* Returns the index of the first candidate with the least total at a wire. */
unsigned wire_best_at(const struct wire_candidates *all, unsigned wire);
/* Returns the regret of a candidate at a wire. */
double wire_regret_at(const struct wire_candidates *all, unsigned candidate,
                      unsigned wire);
/* Returns the largest total at the assumed bandwidth that WIRE_LIMITED
 * allows. */
double wire_limit_ms(const struct wire_candidates *all);
/* Returns the index of the candidate that `choice` takes. Among equals it is
 * the first. */
unsigned wire_pick(const struct wire_candidates *all, enum wire_choice choice);

/* The largest bandwidth at which another candidate would be recommended. */
struct wire_break_even {
    double share;     /* share of the assumed bandwidth, at most 1; 0: none */
    double gain_frac; /* total of the chosen one / total of the other - 1, at
                         the slowest wire */
};
/*
 * Finds the break-even of the chosen candidate. The other candidate is the one
 * with the largest gain beyond the gain that it needs to be recommended
 * (search/gain.h) at the slowest wire. Totals are about linear in
 * 1 / bandwidth, so this gain is interpolated in it.
 */
struct wire_break_even wire_break_even(const struct wire_candidates *all,
                                       unsigned chosen);

#endif
