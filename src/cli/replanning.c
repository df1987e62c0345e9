/* SPDX-License-Identifier: MIT */
#include "cli/replanning.h"

#include "base/text.h"
#include "core/plan_check.h"
#include "core/plan_moves.h"
#include "costmodel/oracles.h"
#include "io/plan_json.h"

#include <string.h>

int replanning_load(struct plan *from, struct cli *cli, struct err *err)
{
    if (!cli_given(cli, "from")) {
        if (!cli_given(cli, "move-limit"))
            return 0;
        return err_set(err, ERR_USAGE,
                       "option '--move-limit' needs '--from': what would move "
                       "otherwise");
    }
    if (strcmp(cli_string(cli, "search"), "full") != 0)
        return err_set(err, ERR_USAGE,
                       "option '--from' needs the full search, not '%s'",
                       cli_string(cli, "search"));
    return plan_load(from, cli_string(cli, "from"), cli_arena(cli), err);
}

/* The index of the table of this name, or n_tables. */
static size_t find_table(const struct problem *problem, const char *name)
{
    size_t t = 0;

    while (t < problem->n_tables && strcmp(problem->tables[t].name, name) != 0)
        t++;
    return t;
}

/* The old placement of the tables of today, priced; false where it does not
 * hold them all, or breaks what is asked for today. */
static bool price_today(struct plan *out, const struct plan *from,
                        const struct problem *problem,
                        const struct oracle *oracle, struct arena *arena)
{
    struct err ignored = {0};
    size_t t = 0;

    *out = (struct plan){.problem = *problem};
    out->shards = ARENA_NEW(arena, struct shard, from->n_shards);
    for (size_t i = 0; i < from->n_shards; i++) {
        struct shard shard = from->shards[i];

        if (!i || shard.table != from->shards[i - 1].table)
            t = find_table(problem, from->problem.tables[shard.table].name);
        if (t == problem->n_tables)
            continue;
        shard.table = (uint32_t)t;
        out->shards[out->n_shards++] = shard;
    }
    plan_sort_shards(out);
    return !plan_check(out, &ignored) &&
           !plan_price(out, oracle, arena, &ignored);
}

void replanning_report(const struct plan *from, const struct plan *plan,
                       const struct oracle *oracle, struct cli *cli,
                       struct buf *out)
{
    const char *path = cli_shown(cli, "from");
    struct plan_moves moves;
    struct plan before, then = *from;
    struct err ignored = {0};
    size_t n_tables = 0;
    char moved[TEXT_BYTES_MAX], kept[TEXT_BYTES_MAX];

    plan_moves_find(&moves, from, plan, cli_arena(cli));
    for (size_t t = 0; t < moves.n_tables; t++)
        n_tables += moves.tables[t].bytes.moved > 0;
    if (price_today(&before, from, &plan->problem, oracle, cli_arena(cli)))
        buf_printf(out, "from    %s: %.4f ms as it stands, %.4f ms now\n", path,
                   before.total_ms, plan->total_ms);
    else if (!oracle_price_plan(&then, oracle->name, cli_arena(cli), &ignored))
        buf_printf(out,
                   "from    %s: %.4f ms with what it was made for, %.4f ms "
                   "now\n",
                   path, then.total_ms, plan->total_ms);
    else
        buf_printf(out, "from    %s: not priced, %.4f ms now\n", path,
                   plan->total_ms);
    buf_printf(out,
               "moves   %s in %zu piece%s of %zu table%s; %zu table%s new; %s "
               "stay\n",
               text_from_bytes(moved, (double)moves.bytes.moved), moves.n_moves,
               moves.n_moves == 1 ? "" : "s", n_tables,
               n_tables == 1 ? "" : "s", moves.n_fates[FATE_ADDED],
               moves.n_fates[FATE_ADDED] == 1 ? " is" : "s are",
               text_from_bytes(kept, (double)moves.bytes.kept));
}
