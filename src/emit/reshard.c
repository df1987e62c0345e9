/* SPDX-License-Identifier: MIT */
#include "emit/reshard.h"

#include "base/text.h"
#include "core/cluster.h"
#include "core/reshard_rules.h"

#include <inttypes.h>
#include <math.h>

/* TorchRec counts four bytes for each element of a table that moves, whatever
 * its precision and however much of it stays. */
#define TORCHREC_ELEMENT_BYTES 4

/* A table of the new plan under both plans. */
struct resharded {
    const struct table_moves *moves;
    struct table_pieces before, after;
    const char *reason; /* why it needs a checkpoint; NULL: reshard moves it */
    bool stays;         /* all pieces stay as they are */
};

/* Sums over all tables that reshard moves. */
struct resharding {
    const struct plan_diff *diff;
    struct arena arena;
    const char *reason;       /* why no table can move; NULL: some can */
    struct resharded *tables; /* [n_tables], of the new plan */
    size_t n_tables, n_moved, n_checkpointed;
    uint64_t moved_bytes; /* sum over the tables that reshard moves */
    double torchrec_bytes;
    double link_gbps, reshard_ms; /* NAN: unknown */
    double checkpoint_gbps, checkpoint_ms;
    /* steps until the shorter step pays for each way; NAN: unknown, never, or
     * reshard cannot make all changes */
    double steps_to_pay, checkpoint_steps_to_pay;
};

/* Returns whether TorchRec's plan writes the whole tables of this table's
 * module as column_wise, because it cuts some by columns. */
static bool is_column_wise(const struct plan *plan, const struct table *table)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct table *cut = &plan->problem.tables[plan->shards[i].table];

        if (plan->shards[i].kind == SHARD_COLUMN &&
            cut->output == table->output && tables_share_module(cut, table))
            return true;
    }
    return false;
}

/* Returns whether pieces i of two plans have the same rank and columns. */
static bool is_same_piece(const struct shard *a, const struct shard *b)
{
    return a->device == b->device && a->row_begin == b->row_begin &&
           a->row_end == b->row_end && a->col_begin == b->col_begin &&
           a->col_end == b->col_end && a->kind == b->kind;
}

static bool is_unchanged(const struct table_pieces *a,
                         const struct table_pieces *b)
{
    size_t i = 0;

    while (i < a->n && i < b->n && is_same_piece(&a->pieces[i], &b->pieces[i]))
        i++;
    return a->n == b->n && i == a->n;
}

static bool has_same_ranks(const struct table_pieces *a,
                           const struct table_pieces *b)
{
    size_t i = 0;

    while (i < a->n && i < b->n && a->pieces[i].device == b->pieces[i].device)
        i++;
    return a->n == b->n && i == a->n;
}

/* Returns why reshard cannot make the change of a table, or NULL. */
static const char *why_not(const struct resharding *all,
                           const struct resharded *table)
{
    const struct plan *plans = all->diff->plans;
    const struct table_pieces *a = &table->before, *b = &table->after;
    const char *reason = all->reason;

    reason = reason ? reason : reshard_bars_table(a->table, b->table);
    reason = reason ? reason : reshard_bars_pieces(a);
    reason = reason ? reason : reshard_bars_pieces(b);
    if (reason)
        return reason;
    if (is_column_wise(&plans[0], a->table) !=
        is_column_wise(&plans[1], b->table))
        return "another sharding type";
    if (has_same_ranks(a, b))
        return "other widths on the same ranks, which reshard does not see";
    return NULL;
}

/* Returns the most bytes that a GPU holds of the tables that change. `plan` is
 * one of the two plans. All GPUs read replicas, and the first one writes them
 * (has_copies: false). */
static double most_held(struct resharding *all, const struct plan *plan,
                        bool has_copies)
{
    const struct problem *problem = &plan->problem;
    double *bytes = ARENA_NEW(&all->arena, double, problem->cluster.n_devices);
    const bool is_old = plan == &all->diff->plans[0];
    double most = 0;

    for (size_t t = 0; t < all->n_tables; t++) {
        const struct table_pieces *pieces =
            is_old ? &all->tables[t].before : &all->tables[t].after;

        for (size_t i = 0; i < pieces->n && !all->tables[t].stays; i++) {
            const struct shard *shard = &pieces->pieces[i];

            if (i && !has_copies && shard_is_replica(shard->kind))
                break;
            bytes[shard->device] += (double)piece_stored_bytes(pieces, i);
        }
    }
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        most = fmax(most, bytes[r]);
    return most;
}

/* Sets the time to write and to read all tables that change. Each GPU writes
 * its pieces under the old plan and reads those under the new one. */
static void set_checkpoint(struct resharding *all)
{
    const struct plan *plans = all->diff->plans;
    const double bytes =
        most_held(all, &plans[0], false) + most_held(all, &plans[1], true);

    all->checkpoint_ms = bytes / (all->checkpoint_gbps * 1e6);
}

/* Returns the number of steps until the gain pays for a change of this time. */
static double steps_to_pay(const struct resharding *all, double ms)
{
    const struct plan *plans = all->diff->plans;
    const double gain_ms = plans[0].total_ms - plans[1].total_ms;

    return diff_is_priced(plans) && gain_ms > 0 ? ceil(ms / gain_ms) : NAN;
}

/* Sets the time of the moves at the link that the cost model or the plan names.
 * The slowest GPU sends or receives most. */
static void set_times(struct resharding *all)
{
    const struct plan *now = &all->diff->plans[1];
    const struct plan_moves *moves = &all->diff->moves;
    const struct cluster *cluster = &now->problem.cluster;
    const bool is_inter = cluster_group(cluster) < cluster->n_devices;
    const double given = is_inter ? cluster->inter_gbps : cluster->intra_gbps;
    const double priced =
        is_inter ? now->cost.wire.inter_gbps : now->cost.wire.intra_gbps;
    double *bytes = ARENA_NEW(&all->arena, double, 2 * moves->n_devices);
    double most = 0;

    for (size_t i = 0; i < moves->n_moves; i++) {
        const struct move *move = &moves->moves[i];
        const struct resharded *table = &all->tables[move->table];

        if (table->reason || table->stays)
            continue;
        bytes[2 * move->from] += (double)move->bytes;
        bytes[2 * move->to + 1] += (double)move->bytes;
    }
    for (size_t i = 0; i < 2 * (size_t)moves->n_devices; i++)
        most = fmax(most, bytes[i]);
    all->link_gbps = given > 0 ? given : priced > 0 ? priced : NAN;
    all->reshard_ms = most / (all->link_gbps * 1e6);
    all->steps_to_pay =
        all->n_checkpointed ? NAN : steps_to_pay(all, all->reshard_ms);
    set_checkpoint(all);
    all->checkpoint_steps_to_pay = steps_to_pay(all, all->checkpoint_ms);
}

static void find_resharding(struct resharding *all,
                            const struct plan_diff *diff,
                            double checkpoint_gbps)
{
    const struct problem *now = &diff->plans[1].problem;
    struct table_pieces *pieces[2];

    *all = (struct resharding){.diff = diff,
                               .n_tables = now->n_tables,
                               .checkpoint_gbps = checkpoint_gbps};
    all->tables = ARENA_NEW(&all->arena, struct resharded, now->n_tables);
    for (unsigned i = 0; i < 2; i++) {
        pieces[i] = ARENA_NEW(&all->arena, struct table_pieces, now->n_tables);
        table_pieces_find(pieces[i], now->tables, now->n_tables,
                          &diff->plans[i]);
    }
    all->reason = reshard_bars_job(&diff->plans[0].problem, now, pieces[0]);
    for (size_t t = 0; t < now->n_tables; t++) {
        struct resharded *table = &all->tables[t];

        *table = (struct resharded){.moves = &diff->moves.tables[t],
                                    .before = pieces[0][t],
                                    .after = pieces[1][t]};
        table->reason = why_not(all, table);
        table->stays = diff->moves.tables[t].fate == FATE_KEPT &&
                       is_unchanged(&table->before, &table->after);
        if (table->stays)
            continue;
        all->n_checkpointed += table->reason != NULL;
        if (table->reason)
            continue;
        all->n_moved++;
        all->moved_bytes =
            saturating_add(all->moved_bytes, table->moves->bytes.moved);
        all->torchrec_bytes += TORCHREC_ELEMENT_BYTES *
                               (double)now->tables[t].num_embeddings *
                               now->tables[t].dim;
    }
    set_times(all);
}

static double torchrec_bytes_of(const struct resharded *table)
{
    return TORCHREC_ELEMENT_BYTES * (double)table->after.table->num_embeddings *
           table->after.table->dim;
}

/* --- text --- */

static void print_ranks(const struct table_pieces *pieces, struct buf *out)
{
    for (size_t i = 0; i < pieces->n; i++)
        buf_printf(out, "%s%" PRIu32, i ? "," : "", pieces->pieces[i].device);
}

static void print_table(const struct resharded *table, struct buf *out)
{
    buf_printf(out, "  %s: ", table->moves->name);
    if (table->reason) {
        buf_printf(out, "%s\n", table->reason);
        return;
    }
    buf_printf(out, "ranks ");
    print_ranks(&table->before, out);
    buf_printf(out, " to ");
    print_ranks(&table->after, out);
    buf_printf(out, ", %s", TEXT_BYTES(table->moves->bytes.moved));
    buf_printf(out, " move, %s by TorchRec's count\n",
               TEXT_BYTES(torchrec_bytes_of(table)));
}

static void print_tables(const struct resharding *all, bool is_moved,
                         struct buf *out)
{
    for (size_t t = 0; t < all->n_tables; t++)
        if (!all->tables[t].stays && !all->tables[t].reason == is_moved)
            print_table(&all->tables[t], out);
}

static void print_steps(double steps, struct buf *out)
{
    if (!isnan(steps))
        buf_printf(out, "; the new plan pays for it in %.0f steps", steps);
    buf_printf(out, "\n");
}

void reshard_print(const struct plan_diff *diff, double checkpoint_gbps,
                   struct buf *out)
{
    struct resharding all;

    find_resharding(&all, diff, checkpoint_gbps);
    buf_printf(out, "reshard moves %zu table%s", all.n_moved,
               all.n_moved == 1 ? "" : "s");
    buf_printf(out, ", %s", TEXT_BYTES(all.moved_bytes));
    buf_printf(out, " (%s by TorchRec's count)\n",
               TEXT_BYTES(all.torchrec_bytes));
    print_tables(&all, true, out);
    if (all.n_moved && !isnan(all.reshard_ms)) {
        buf_printf(out, "  %.4g ms at %.4g GB/s a GPU", all.reshard_ms,
                   all.link_gbps);
        print_steps(all.steps_to_pay, out);
    }
    buf_printf(out, "%zu table%s need%s a checkpoint\n", all.n_checkpointed,
               all.n_checkpointed == 1 ? "" : "s",
               all.n_checkpointed == 1 ? "s" : "");
    print_tables(&all, false, out);
    if (all.n_moved + all.n_checkpointed) {
        buf_printf(out,
                   "a checkpoint of all changes takes %.4g s at %.4g GB/s a "
                   "GPU",
                   all.checkpoint_ms / 1000, all.checkpoint_gbps);
        print_steps(all.checkpoint_steps_to_pay, out);
    }
    arena_release(&all.arena);
}

/* --- JSON --- */

static json_t *ranks_to_json(const struct table_pieces *pieces)
{
    json_t *list = json_array();

    for (size_t i = 0; i < pieces->n; i++)
        json_array_append_new(list, json_integer(pieces->pieces[i].device));
    return list;
}

static json_t *tables_to_json(const struct resharding *all, bool is_moved)
{
    json_t *list = json_array();

    for (size_t t = 0; t < all->n_tables; t++) {
        const struct resharded *table = &all->tables[t];
        const struct moved_bytes *bytes = &table->moves->bytes;

        if (table->stays || !table->reason != is_moved)
            continue;
        json_array_append_new(
            list, is_moved
                      ? json_pack("{s:s, s:o, s:o, s:o, s:o}", "name",
                                  table->moves->name, "from",
                                  ranks_to_json(&table->before), "to",
                                  ranks_to_json(&table->after), "moved_bytes",
                                  json_whole(bytes->moved), "torchrec_bytes",
                                  json_real(torchrec_bytes_of(table)))
                      : json_pack("{s:s, s:s, s:o}", "name", table->moves->name,
                                  "reason", table->reason, "moved_bytes",
                                  json_whole(bytes->moved)));
    }
    return list;
}

json_t *reshard_to_json(const struct plan_diff *diff, double checkpoint_gbps)
{
    struct resharding all;
    json_t *root;

    find_resharding(&all, diff, checkpoint_gbps);
    root = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o}",
                     "reshard", tables_to_json(&all, true), "checkpoint",
                     tables_to_json(&all, false), "moved_bytes",
                     json_whole(all.moved_bytes), "torchrec_bytes",
                     json_real(all.torchrec_bytes), "link_gbps",
                     json_real_or_null(all.link_gbps), "reshard_ms",
                     json_real_or_null(all.reshard_ms), "steps_to_pay",
                     json_real_or_null(all.steps_to_pay), "checkpoint_gbps",
                     all.checkpoint_gbps, "checkpoint_ms", all.checkpoint_ms,
                     "checkpoint_steps_to_pay",
                     json_real_or_null(all.checkpoint_steps_to_pay));
    arena_release(&all.arena);
    return root;
}
