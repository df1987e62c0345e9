/* SPDX-License-Identifier: MIT */
#include "search/rivals.h"

int rival_check_constraints(const struct problem *problem, const char *planner,
                            struct err *err)
{
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        if (table->device >= 0 || table->group)
            return err_set(
                err, ERR_NO_PLAN,
                "no plan was found: table '%s' is %s, which %s's planner "
                "does not know",
                table->name, table->group ? "in a group" : "pinned to a device",
                planner);
    }
    return 0;
}

const struct rival *search_rivals(void)
{
    static const struct rival rivals[] = {
        {"torchrec", rival_torchrec},
        {"hugectr", rival_hugectr},
        {NULL, NULL},
    };

    return rivals;
}
