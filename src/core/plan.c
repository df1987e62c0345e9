/* SPDX-License-Identifier: MIT */
#include "core/plan.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/ranked.h"
#include "core/cluster.h"

#include <stdlib.h>
#include <string.h>

#define PART(part) MEMBER_REAL, (part) * sizeof(double)
const struct place_field step_part_fields[N_STEP_PARTS] = {
    {"input", PART(STEP_INPUT), true, 0, PLAN_MAX_MS, NULL},
    {"forward", PART(STEP_FORWARD), true, 0, PLAN_MAX_MS, NULL},
    {"output", PART(STEP_OUTPUT), true, 0, PLAN_MAX_MS, NULL},
    {"gradient", PART(STEP_GRADIENT), true, 0, PLAN_MAX_MS, NULL},
    {"backward", PART(STEP_BACKWARD), true, 0, PLAN_MAX_MS, NULL},
    {"replicas", PART(STEP_REPLICAS), true, 0, PLAN_MAX_MS, NULL},
};

/* The least value of each time is negative, because a neural net may predict a
 * negative part of the time. plan_check sets a stricter limit for negative
 * values. */
#define COST(member) MEMBER_OF(struct device_cost, member)
const struct place_field device_cost_fields[N_COST_FIELDS] = {
    {"compute_ms", COST(compute_ms), false, -PLAN_MAX_MS, PLAN_MAX_MS, NULL},
    {"fwd_comm_ms", COST(fwd_comm_ms), false, -PLAN_MAX_MS, PLAN_MAX_MS, NULL},
    {"bwd_comm_ms", COST(bwd_comm_ms), false, -PLAN_MAX_MS, PLAN_MAX_MS, NULL},
    {"total_ms", COST(total_ms), false, -PLAN_MAX_MS, PLAN_MAX_MS, NULL},
};

json_t *shard_to_json(const struct shard *shard)
{
    json_t *value = json_pack(
        "{s:I, s:s, s:o, s:o, s:I, s:I, s:I}", "table",
        (json_int_t)shard->table, "kind", shard_kind_name(shard->kind),
        "row_begin", json_whole(shard->row_begin), "row_end",
        json_whole(shard->row_end), "col_begin", (json_int_t)shard->col_begin,
        "col_end", (json_int_t)shard->col_end, "device",
        (json_int_t)shard->device);

    if (shard->tier != TIER_HBM)
        json_object_set_new(value, "tier",
                            json_string(tier_names[shard->tier]));
    return value;
}

int shard_compare(const void *left, const void *right)
{
    const struct shard *a = left, *b = right;
    const uint64_t x[] = {a->table, a->col_begin, a->row_begin, a->device};
    const uint64_t y[] = {b->table, b->col_begin, b->row_begin, b->device};

    return ranked_compare(x, y, 4);
}

/* A shard with its price. The shard is the first member, so that shard_compare
 * can sort an array of this struct. */
struct priced_shard {
    struct shard shard;
    double standalone_ms;
};

void plan_sort_shards(struct plan *plan)
{
    struct priced_shard *priced = mem_alloc(plan->n_shards, sizeof(*priced));

    for (size_t i = 0; i < plan->n_shards; i++)
        priced[i] = (struct priced_shard){
            plan->shards[i], plan->shard_ms ? plan->shard_ms[i] : 0};
    qsort(priced, plan->n_shards, sizeof(*priced), shard_compare);
    for (size_t i = 0; i < plan->n_shards; i++) {
        plan->shards[i] = priced[i].shard;
        if (plan->shard_ms)
            plan->shard_ms[i] = priced[i].standalone_ms;
    }
    mem_free(priced);
}

void plan_take_shards(struct plan *plan, const struct plan *from)
{
    plan->shards = from->shards;
    plan->n_shards = from->n_shards;
    plan->load_factors = from->load_factors;
}

void plan_fill_kinds(struct plan *plan)
{
    struct cuts {
        size_t n_pieces;
        bool rows, columns;
    } *cuts = mem_alloc(plan->problem.n_tables, sizeof(*cuts));

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &plan->problem.tables[shard->table];
        struct cuts *cut = &cuts[shard->table];

        cut->n_pieces++;
        cut->rows |=
            shard->row_begin || shard->row_end != table->num_embeddings;
        cut->columns |= shard->col_begin || shard->col_end != table->dim;
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct cuts *cut = &cuts[plan->shards[i].table];

        if (!plan->shards[i].kind)
            plan->shards[i].kind = shard_kind_of_cuts(
                cut->rows, cut->columns,
                cut->n_pieces > 1 && !cut->rows && !cut->columns);
    }
    mem_free(cuts);
}

void plan_derive_kinds(struct plan *plan)
{
    plan_sort_shards(plan);
    for (size_t i = 0; i < plan->n_shards; i++)
        plan->shards[i].kind = 0;
    plan_fill_kinds(plan);
}

/* --- pieces of a table on the same device --- */

/* Compares two shards by table, then by rows, and then by columns. */
static int compare_by_rows(const void *left, const void *right)
{
    const struct shard *a = left, *b = right;
    const uint64_t x[] = {a->table, a->row_begin, a->row_end, a->col_begin};
    const uint64_t y[] = {b->table, b->row_begin, b->row_end, b->col_begin};

    return ranked_compare(x, y, 4);
}

static uint32_t width_of(const struct shard *shard)
{
    return shard->col_end - shard->col_begin;
}

static bool are_uneven(const struct shard *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (pieces[i].device == pieces[j].device &&
                width_of(&pieces[i]) != width_of(&pieces[j]))
                return true;
    return false;
}

/* Joins adjacent pieces that are on the same device. All n pieces must have the
 * same rows and be in column order. Returns the number of pieces that are
 * left. */
static size_t join_touching(struct shard *pieces, size_t n)
{
    size_t n_left = 1;

    for (size_t i = 1; i < n; i++) {
        struct shard *last = &pieces[n_left - 1];

        if (last->device == pieces[i].device &&
            last->col_end == pieces[i].col_begin)
            last->col_end = pieces[i].col_end;
        else
            pieces[n_left++] = pieces[i];
    }
    return n_left;
}

/* Joins all pieces on the same device into one piece and assigns the columns
 * anew. All n pieces must have the same rows and be in column order. Does
 * nothing if the columns of the pieces have gaps. (A grid has gaps if its
 * column ranges are cut into different rows.) */
static size_t join_devices(struct shard *pieces, size_t n)
{
    uint32_t col = pieces[0].col_begin;
    size_t n_left = 0;

    for (size_t i = 1; i < n; i++)
        if (pieces[i].col_begin != pieces[i - 1].col_end)
            return n;
    for (size_t i = 0; i < n; i++) {
        size_t mate = 0;

        while (mate < n_left && pieces[mate].device != pieces[i].device)
            mate++;
        if (mate < n_left)
            pieces[mate].col_end += width_of(&pieces[i]);
        else
            pieces[n_left++] = pieces[i];
    }
    for (size_t i = 0; i < n_left; i++) {
        uint32_t width = width_of(&pieces[i]);

        pieces[i].col_begin = col;
        pieces[i].col_end = col += width;
    }
    return n_left;
}

/* Returns the least number of pieces of equal width into which the piece must
 * be cut. The result is 1 unless the piece has all columns of the table and the
 * problem does not allow it to stay whole. */
static uint32_t n_equal_pieces(const struct problem *problem,
                               const struct shard *piece)
{
    const struct table *table = &problem->tables[piece->table];
    bool is_block = piece->row_begin || piece->row_end != table->num_embeddings;
    uint32_t n = 2;

    if (width_of(piece) < table->dim ||
        (table->kinds & problem->kinds &
         shard_kind_of_cuts(is_block, false, false)))
        return 1;
    while (n < table->dim && table->dim % (n * TABLE_COLUMN_STEP))
        n++; /* if n pieces are narrower than min_width, no allowed n is left */
    return n < table->dim ? n : 1;
}

/* Joins the n pieces, which have the same rows, if they must be joined. Returns
 * the number of pieces that are left. */
static size_t join(struct shard *pieces, size_t n, bool only_uneven)
{
    if (n < 2 || shard_is_replica(pieces->kind) ||
        (only_uneven && !are_uneven(pieces, n)))
        return n;
    n = join_touching(pieces, n);
    return are_uneven(pieces, n) ? join_devices(pieces, n) : n;
}

bool plan_join_columns(struct plan *plan, bool only_uneven, struct arena *arena)
{
    struct shard *sorted = mem_alloc(plan->n_shards, sizeof(*sorted));
    struct shard *joined = NULL;
    size_t n_joined = 0, capacity = 0;
    bool is_changed;

    if (plan->n_shards)
        memcpy(sorted, plan->shards, plan->n_shards * sizeof(*sorted));
    qsort(sorted, plan->n_shards, sizeof(*sorted), compare_by_rows);
    for (size_t begin = 0, end, n; begin < plan->n_shards; begin = end) {
        for (end = begin + 1;
             end < plan->n_shards && sorted[end].table == sorted[begin].table &&
             sorted[end].row_begin == sorted[begin].row_begin &&
             sorted[end].row_end == sorted[begin].row_end;)
            end++;
        n = join(sorted + begin, end - begin, only_uneven);
        for (size_t i = begin; i < begin + n; i++) {
            const uint32_t n_equal =
                n < end - begin ? n_equal_pieces(&plan->problem, &sorted[i])
                                : 1;
            struct shard piece = sorted[i];

            piece.col_end = piece.col_begin;
            for (uint32_t k = 0; k < n_equal; k++) {
                piece.col_begin = piece.col_end;
                piece.col_end += width_of(&sorted[i]) / n_equal;
                joined = mem_room(joined, n_joined, &capacity, sizeof(*joined));
                joined[n_joined++] = piece;
            }
        }
    }
    is_changed = n_joined && n_joined != plan->n_shards;
    for (size_t i = 0; i < n_joined && !is_changed; i++)
        is_changed = joined[i].col_begin != sorted[i].col_begin;
    if (is_changed) {
        plan->shards = ARENA_NEW(arena, struct shard, n_joined);
        memcpy(plan->shards, joined, n_joined * sizeof(*joined));
        plan->n_shards = n_joined;
        plan->shard_ms = NULL; /* shard_ms belongs to the old shards */
        plan_derive_kinds(plan);
    }
    mem_free(sorted);
    mem_free(joined);
    return is_changed;
}

enum row_cut plan_row_cut(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (shard_cuts_rows(plan->shards[i].kind) &&
            !shard_row_ranks(&plan->problem, &plan->shards[i]))
            return ROW_CUT_ANY;
    return ROW_CUT_RANKS;
}

double plan_used_frac(const struct plan *plan, uint32_t device)
{
    const uint64_t have = plan->problem.cluster.memory_bytes[device];

    return have ? (double)plan->devices[device].memory.total / (double)have : 0;
}

uint32_t plan_fullest(const struct plan *plan)
{
    uint32_t fullest = 0;

    for (uint32_t r = 1; r < plan->problem.cluster.n_devices; r++)
        if (plan_used_frac(plan, r) > plan_used_frac(plan, fullest))
            fullest = r;
    return fullest;
}

static uint64_t mix_double(double x, uint64_t hash)
{
    x += 0.0; /* + 0.0 makes -0 and 0 equal */
    return hash_bytes(&x, sizeof(x), hash);
}

static uint64_t mix_u64(uint64_t x, uint64_t hash)
{
    return hash_bytes(&x, sizeof(x), hash);
}

static uint64_t mix_text(const char *s, uint64_t hash)
{
    return s ? hash_bytes(s, strlen(s), hash) : mix_u64(0, hash);
}

/* Mixes the inputs of tiers: allowed tiers and measured reach. */
static uint64_t mix_tiers(const struct table *table, uint64_t hash)
{
    hash = mix_u64(table->tiers, hash);
    for (unsigned k = 0; k < table->n_reach; k++)
        hash = mix_double(table->misses[k], mix_double(table->reach[k], hash));
    return hash;
}

static uint64_t mix_table(const struct table *table, uint64_t hash)
{
    hash = mix_text(table->name, hash);
    hash = mix_u64(table->num_embeddings, hash);
    hash = mix_u64(table->dim, hash);
    hash = mix_double(table->pooling_factor, hash);
    hash = mix_double(table->num_outputs, hash);
    hash = mix_u64(
        (uint64_t)table->output << 24 | (uint64_t)table->precision << 16 |
            (uint64_t)table->comm_precision << 8 | (uint64_t)table->optimizer,
        hash);
    hash = mix_u64(table->kinds, hash);
    hash = mix_u64((uint64_t)table->device, hash);
    hash = mix_text(table->group, hash);
    if (table->row_order != ROW_ORDER_HASHED)
        hash = mix_u64(table->row_order, hash);
    if (table->dedup < 1)
        hash = mix_double(table->dedup, hash);
    if (table->row_overhead_bytes > 0)
        hash = mix_double(table->row_overhead_bytes, hash);
    if (table->forward_factor != 1 || table->backward_factor != 1)
        hash = mix_double(table->backward_factor,
                          mix_double(table->forward_factor, hash));
    if (table->min_width)
        hash = mix_u64((uint64_t)table->min_width << 32, hash);
    if (table->rows_over != ROWS_OVER_ANY)
        hash = mix_u64(N_ROW_ORDERS + table->rows_over, hash);
    if (!table->has_bins)
        return mix_double(table->zipf_alpha, hash);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        hash = mix_double(table->bins[k], hash);
    return hash;
}

/* Mixes the text of the dense part and its predicted times. These stand for the
 * rates of the GPU, which are inputs of the plan, too. */
static uint64_t mix_dense(const struct plan *plan, uint64_t hash)
{
    struct buf text = {0};

    dense_print(plan->problem.job.dense, &text);
    hash = mix_text(text.data, hash);
    buf_release(&text);
    return mix_double(dense_cost_ms(&plan->dense), hash);
}

static uint64_t mix_groups(const struct sharding_groups *groups, uint64_t hash)
{
    hash = mix_u64(groups->count, hash);
    hash = mix_u64(groups->layout, hash);
    hash = mix_u64(groups->devices_per_host, hash);
    hash = mix_u64(groups->hosts_per_domain, hash);
    return mix_u64(groups->sync_every, hash);
}

static uint64_t mix_cluster(const struct cluster *cluster, uint64_t hash)
{
    hash = mix_u64(cluster->n_devices, hash);
    hash = mix_u64(cluster->devices_per_host, hash);
    if (cluster->hosts_per_domain > 1)
        hash = mix_u64(cluster->hosts_per_domain, hash);
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        hash = mix_u64(cluster->memory_bytes[r], hash);
        hash = mix_u64(cluster->reserve_bytes[r], hash);
    }
    for (uint32_t r = 0; cluster->busy_ms && r < cluster->n_devices; r++)
        for (unsigned p = 0; p < N_BUSY_PHASES; p++)
            hash = mix_double(cluster->busy_ms[r][p], hash);
    if (cluster->host_bytes)
        hash = mix_u64(cluster->host_bytes, hash);
    for (uint32_t r = 0; cluster->slowdown && r < cluster->n_devices; r++)
        hash = mix_double(-cluster->slowdown[r], hash);
    if (cluster->n_other_kinds)
        hash = mix_u64((uint64_t)cluster->n_other_kinds << 32, hash);
    if (cluster->intra_gbps > 0 || cluster->inter_gbps > 0) {
        hash = mix_double(cluster->intra_gbps, hash);
        hash = mix_double(cluster->inter_gbps, hash);
    }
    return hash;
}

static uint64_t mix_job(const struct plan *plan, uint64_t hash)
{
    const struct job *job = &plan->problem.job;

    hash = mix_u64(job->pipeline, hash);
    hash = mix_u64(job_n_chunks(job), hash);
    hash = mix_double(job->dense_ms[0], hash);
    hash = mix_double(job->dense_ms[1], hash);
    if (job->dedup != DEDUP_NONE)
        hash = mix_u64(job->dedup, hash);
    if (job->dense)
        hash = mix_dense(plan, hash);
    if (job->asks_host)
        hash = mix_double(job->host_ms, hash);
    return hash;
}

const char *plan_inputs_hash(const struct plan *plan, struct arena *arena)
{
    const struct problem *problem = &plan->problem;
    char *text = arena_alloc(arena, HASH_TEXT_MAX, 1);
    uint64_t hash = mix_u64(problem->n_tables, 0), of_tables = 0;

    for (size_t i = 0; i < problem->n_tables; i++)
        of_tables += mix_table(&problem->tables[i],
                               problem->cluster.host_bytes
                                   ? mix_tiers(&problem->tables[i], 0)
                                   : 0);
    hash = mix_u64(of_tables, hash);
    hash = mix_cluster(&problem->cluster, hash);
    hash = mix_u64(problem->batch, hash);
    hash = mix_u64(problem->memory_model, hash);
    /* DENSE_ADAM is the usual value and does not change the hash */
    if (problem->dense_optimizer != DENSE_ADAM)
        hash = mix_u64(problem->dense_optimizer, hash);
    /* LAYOUT_PLAIN, the layout of older plans, does not change the hash */
    if (problem->layout != LAYOUT_PLAIN)
        hash = mix_u64((uint64_t)problem->layout << 32, hash);
    if (problem->buffers != BUFFERS_COPIES) /* the rule of older plans */
        hash = mix_u64((uint64_t)problem->buffers << 40, hash);
    if (problem_min_width(problem) > TABLE_COLUMN_STEP)
        hash = mix_u64(problem->min_width, hash);
    if (target_is_named(problem->target))
        hash = mix_u64((uint64_t)problem->target << 40, hash);
    hash = mix_u64(problem->kinds, hash);
    if (!job_is_default(&problem->job))
        hash = mix_job(plan, hash);
    if (problem_n_groups(problem) > 1)
        hash = mix_groups(&problem->groups, hash);
    hash = mix_text(plan->cost.hash, hash);
    hash_text(text, hash);
    return text;
}
