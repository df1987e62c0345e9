/* SPDX-License-Identifier: MIT */
#include "search/replan_front.h"

#include "base/text.h"

#include <inttypes.h>

struct reasons {
    uint64_t all_bytes, gone_bytes, rank_bytes;
};

/* What a table moves because it stood on GPUs that are gone, or was cut by rows
 * over all GPUs. */
static void add_reasons(struct reasons *reasons, const struct homes *homes,
                        const struct problem *problem, uint32_t table,
                        uint64_t moved_bytes)
{
    const struct table_pieces *before = &homes->before[table];
    struct table_pieces one = *before;
    uint64_t gone = 0;

    if (!before->table || !before->n)
        return;
    if (before->pieces[0].kind & (SHARD_ROW | SHARD_GRID) &&
        (before->n_devices != problem->cluster.n_devices ||
         before->table->num_embeddings !=
             problem->tables[table].num_embeddings)) {
        reasons->rank_bytes += moved_bytes;
        return;
    }
    one.n = 1;
    for (size_t i = 0; i < before->n; i++) {
        struct moved_bytes bytes;

        one.pieces = &before->pieces[i];
        table_moves_count(&bytes, &one, &one);
        if (one.pieces->device >= problem->cluster.n_devices)
            gone += bytes.kept;
    }
    reasons->gone_bytes += gone < moved_bytes ? gone : moved_bytes;
}

static struct reasons find_reasons(struct replan *replan)
{
    const struct layout *layout = &replan->tryout.layout;
    struct reasons reasons = {0};

    snapshot_load(&replan->front.points[0].layout, &replan->tryout.layout);
    for (uint32_t u = 0; u < replan->parts.n_units; u++)
        if (layout->moved_bytes[u])
            add_reasons(&reasons, &replan->homes, replan->parts.problem,
                        replan->parts.of[u].unit->tables[0],
                        layout->moved_bytes[u]);
    reasons.all_bytes = layout->all_moved_bytes;
    return reasons;
}

int replan_refuse(struct replan *replan, uint64_t limit_bytes, struct err *err)
{
    struct reasons reasons = find_reasons(replan);
    char limit[TEXT_BYTES_MAX], least[TEXT_BYTES_MAX], bytes[TEXT_BYTES_MAX];
    struct buf why = {0};

    text_from_bytes(limit, (double)limit_bytes);
    text_from_bytes(least, (double)reasons.all_bytes);
    if (reasons.gone_bytes)
        buf_printf(&why, "; %s of it stand on GPUs that are gone",
                   text_from_bytes(bytes, (double)reasons.gone_bytes));
    if (reasons.rank_bytes)
        buf_printf(&why,
                   "; %s of it are of tables cut by rows, whose blocks change "
                   "with the number of rows and of GPUs",
                   text_from_bytes(bytes, (double)reasons.rank_bytes));
    err_set(err, ERR_NO_PLAN,
            "no plan was found that moves at most %s; the least movement "
            "found that will do is %s, %" PRIu64 " B%s",
            limit, least, reasons.all_bytes, why.len ? why.data : "");
    buf_release(&why);
    return -1;
}
