/* SPDX-License-Identifier: MIT */
#include "emit/tiers_line.h"

#include "base/text.h"
#include "emit/formats.h"

#define NAMES_SHOWN 3
#define MOST_NAME 20u

/* Prints the number of the tables in a tier, as `what` says it, and the first
 * names. Returns the number. */
static size_t print_tables(const struct plan *plan, enum tier tier,
                           const char *what, struct buf *out)
{
    struct buf names = {0};
    size_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i = emit_shards_end(plan, i)) {
        const char *name = plan->problem.tables[plan->shards[i].table].name;

        if (plan->shards[i].tier != tier || n++ >= NAMES_SHOWN)
            continue;
        buf_printf(&names, "%s", names.len ? " " : "");
        text_column(&names, name,
                    (unsigned)min_u64(text_length(name), MOST_NAME));
    }
    if (n)
        buf_printf(out, "%zu table%s %s (%s%s)", n, n == 1 ? "" : "s", what,
                   names.data, n > NAMES_SHOWN ? " .." : "");
    buf_release(&names);
    return n;
}

/* Prints the hits of the cache that misses the largest share of its rows, if
 * the plan is priced. */
static void print_hits(const struct plan *plan, struct buf *out)
{
    uint32_t worst = 0;
    double miss = -1;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        for (size_t i = 0; i < plan->devices[r].n_caches; i++)
            if (plan->devices[r].caches[i].miss > miss) {
                miss = plan->devices[r].caches[i].miss;
                worst = r;
            }
    if (miss >= 0)
        buf_printf(out, ", least hits %.0f %% on GPU %u", 100 * (1 - miss),
                   worst);
}

void emit_tiers_line(const struct plan *plan, const char *label,
                     struct buf *out)
{
    struct buf line = {0};

    if (print_tables(plan, TIER_CACHED, "cached", &line) && plan->devices)
        print_hits(plan, &line);
    if (line.len)
        buf_printf(&line, "; ");
    if (!print_tables(plan, TIER_HOST, "not cached", &line) && line.len)
        line.len -= 2;
    if (line.len)
        buf_printf(out, "%s%.*s\n", label, (int)line.len, line.data);
    buf_release(&line);
}
