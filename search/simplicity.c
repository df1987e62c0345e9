/* SPDX-License-Identifier: MIT */
#include "search/simplicity.h"

struct simplicity plan_simplicity(const struct plan *plan)
{
    struct simplicity out = {.n_pieces = plan->n_shards};

    for (size_t i = 0; i < plan->n_shards; i++)
        out.n_changed +=
            (!i || plan->shards[i].table != plan->shards[i - 1].table) &&
            shard_changes_training(&plan->problem, &plan->shards[i]);
    return out;
}

bool is_simpler(struct simplicity one, double one_ms, struct simplicity other,
                double other_ms)
{
    if (one.n_changed != other.n_changed)
        return one.n_changed < other.n_changed;
    if (one.n_pieces != other.n_pieces)
        return one.n_pieces < other.n_pieces;
    return one_ms < other_ms;
}

bool plan_is_simpler(const struct plan *one, const struct plan *other)
{
    return is_simpler(plan_simplicity(one), one->total_ms,
                      plan_simplicity(other), other->total_ms);
}
