/* SPDX-License-Identifier: MIT */
#include "emit/diff_tiers.h"

#include "base/json.h"
#include "base/text.h"
#include "core/plan_moves.h"

#include <math.h>

#define CHANGES_SHOWN 3
#define MOST_NAME 20u

static double factor_of(const struct plan *plan, const struct shard *shard)
{
    return shard->tier == TIER_CACHED && plan->load_factors
               ? plan->load_factors[shard->table]
               : NAN;
}

void diff_tiers_find(struct diff_tiers *out, const struct plan plans[2],
                     struct arena *arena)
{
    const struct problem *problem = &plans[1].problem;
    const size_t n = problem->n_tables;
    struct table_pieces *pieces[2];

    for (unsigned i = 0; i < 2; i++) {
        pieces[i] = ARENA_NEW(arena, struct table_pieces, n);
        table_pieces_find(pieces[i], problem->tables, n, &plans[i]);
    }
    *out =
        (struct diff_tiers){.changes = ARENA_NEW(arena, struct tier_change, n)};
    for (size_t t = 0; t < n; t++) {
        struct tier_change change = {.table = problem->tables[t].name};
        bool is_factor;

        if (!pieces[0][t].n || !pieces[1][t].n)
            continue;
        for (unsigned i = 0; i < 2; i++) {
            change.tiers[i] = pieces[i][t].pieces[0].tier;
            change.factors[i] = factor_of(&plans[i], &pieces[i][t].pieces[0]);
        }
        is_factor = fabs(change.factors[1] - change.factors[0]) >
                    DIFF_FACTOR_FRAC * change.factors[0];
        if (change.tiers[0] == change.tiers[1] && !is_factor)
            continue;
        out->n_tiers += change.tiers[0] != change.tiers[1];
        out->changes[out->n++] = change;
    }
}

/* Prints the first changes, either of tiers or of load factors. */
static void print_changes(const struct diff_tiers *tiers, bool of_tiers,
                          struct buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < tiers->n; i++) {
        const struct tier_change *change = &tiers->changes[i];

        if ((change->tiers[0] != change->tiers[1]) != of_tiers ||
            n++ >= CHANGES_SHOWN)
            continue;
        buf_printf(out, n > 1 ? ", " : "");
        text_column(out, change->table,
                    (unsigned)min_u64(text_length(change->table), MOST_NAME));
        if (of_tiers)
            buf_printf(out, " %s -> %s", tier_names[change->tiers[0]],
                       tier_names[change->tiers[1]]);
        else
            buf_printf(out, " %.3g -> %.3g", change->factors[0],
                       change->factors[1]);
    }
    if (n > CHANGES_SHOWN)
        buf_printf(out, " ..");
}

void diff_tiers_print(const struct diff_tiers *tiers, struct buf *out)
{
    const size_t n_factors = tiers->n - tiers->n_tiers;

    if (tiers->n_tiers) {
        buf_printf(out, "tiers   %zu table%s: ", tiers->n_tiers,
                   tiers->n_tiers == 1 ? "" : "s");
        print_changes(tiers, true, out);
        buf_printf(out, "\n");
    }
    if (n_factors) {
        buf_printf(out, "caches  %zu load factor%s: ", n_factors,
                   n_factors == 1 ? "" : "s");
        print_changes(tiers, false, out);
        buf_printf(out, "\n");
    }
}

json_t *diff_tiers_to_json(const struct diff_tiers *tiers)
{
    json_t *list = json_array();

    for (size_t i = 0; i < tiers->n; i++) {
        const struct tier_change *change = &tiers->changes[i];

        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:o, s:o}", "table", change->table,
                      "tier_before", tier_names[change->tiers[0]], "tier_after",
                      tier_names[change->tiers[1]], "load_factor_before",
                      json_real_or_null(change->factors[0]),
                      "load_factor_after",
                      json_real_or_null(change->factors[1])));
    }
    return list;
}
