/* SPDX-License-Identifier: MIT */
#include "core/target_tiers.h"

unsigned problem_tiers(const struct problem *problem, size_t idx)
{
    const struct table *table = &problem->tables[idx];
    unsigned tiers = table->tiers;

    if (!problem->cluster.host_bytes || !problem_target(problem)->has_tiers)
        tiers &= 1u << TIER_HBM;
    if (table->precision != PRECISION_FP32 &&
        table->precision != PRECISION_FP16)
        tiers &= ~(1u << TIER_CACHED);
    return tiers;
}

unsigned tier_kinds(const struct table *table, enum tier tier, unsigned kinds)
{
    if (tier != TIER_HBM)
        kinds &= ~(unsigned)SHARD_REPLICATE;
    if (tier == TIER_CACHED && table->row_order == ROW_ORDER_FREQUENCY)
        kinds &= ~(unsigned)(SHARD_ROW | SHARD_GRID);
    return kinds;
}

bool target_caches_blocks(enum target target, const struct table *table,
                          uint64_t n_ways)
{
    const uint64_t last = table->num_embeddings - 1;

    return target_traits[target].rows[table->output] == TARGET_ROWS_ANY ||
           last / (last / n_ways + 1) + 1 == n_ways;
}

int target_check_tier(const struct problem *problem, enum target target,
                      const struct shard *shard, struct err *err)
{
    const struct target_traits *traits = &target_traits[target];
    const struct table *table = &problem->tables[shard->table];
    const uint32_t n =
        shard_cuts_rows(shard->kind) ? shard_row_ranks(problem, shard) : 0;

    if (shard->tier != TIER_HBM && !traits->has_tiers)
        return err_input(err,
                         "table '%.80s' is in tier '%s', but %s keeps all "
                         "tables in the memory of GPUs",
                         table->name, tier_names[shard->tier],
                         traits->framework);
    if (shard->tier != TIER_CACHED || !n ||
        target_caches_blocks(target, table, n))
        return 0;
    return err_input(err,
                     "table '%.80s' is cached, but some of its %u ranks have "
                     "no rows of it; %s counts its load factor there, too",
                     table->name, n, traits->framework);
}
