/* SPDX-License-Identifier: MIT */
#include "core/plan.h"

#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_shards(const void *left, const void *right)
{
    const struct shard *a = left, *b = right;

    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    if (a->col_begin != b->col_begin)
        return a->col_begin < b->col_begin ? -1 : 1;
    if (a->row_begin != b->row_begin)
        return a->row_begin < b->row_begin ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

/* The shard stands first, so that compare_shards orders these too. */
struct priced_shard {
    struct shard shard;
    double alone_ms;
};

static void sort_priced(struct plan *plan)
{
    struct priced_shard *priced = mem_alloc(plan->n_shards, sizeof(*priced));

    for (size_t i = 0; i < plan->n_shards; i++)
        priced[i] = (struct priced_shard){plan->shards[i], plan->shard_ms[i]};
    qsort(priced, plan->n_shards, sizeof(*priced), compare_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        plan->shards[i] = priced[i].shard;
        plan->shard_ms[i] = priced[i].alone_ms;
    }
    mem_free(priced);
}

void plan_sort_shards(struct plan *plan)
{
    if (plan->shard_ms)
        sort_priced(plan);
    else
        qsort(plan->shards, plan->n_shards, sizeof(*plan->shards),
              compare_shards);
}

/* The kind that the pieces [begin, end) of one table amount to. */
static enum shard_kind kind_of_pieces(const struct table *table,
                                      const struct shard *pieces, size_t n)
{
    bool cut_rows = false, cut_columns = false;

    for (size_t i = 0; i < n; i++) {
        cut_rows |=
            pieces[i].row_begin || pieces[i].row_end != table->num_embeddings;
        cut_columns |= pieces[i].col_begin || pieces[i].col_end != table->dim;
    }
    if (cut_rows && cut_columns)
        return SHARD_GRID;
    if (cut_rows)
        return SHARD_ROW;
    if (cut_columns)
        return SHARD_COLUMN;
    return n > 1 ? SHARD_REPLICATE : SHARD_TABLE;
}

void plan_derive_kinds(struct plan *plan)
{
    plan_sort_shards(plan);
    for (size_t begin = 0, end; begin < plan->n_shards; begin = end) {
        uint32_t table = plan->shards[begin].table;
        enum shard_kind kind;

        for (end = begin + 1;
             end < plan->n_shards && plan->shards[end].table == table;)
            end++;
        kind = kind_of_pieces(&plan->problem.tables[table],
                              plan->shards + begin, end - begin);
        for (size_t i = begin; i < end; i++)
            plan->shards[i].kind = kind;
    }
}

static bool is_finite(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* vectors[n_shards][width], as embedded. */
static int check_finite(const struct plan *plan, const struct oracle *oracle,
                        const double *vectors, struct err *err)
{
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        if (!isfinite(plan->devices[r].total_ms))
            return err_set(err, ERR_INPUT,
                           "cost model '%s' gives no finite cost for gpu %u",
                           oracle->name, r);
    for (size_t i = 0; i < plan->n_shards; i++)
        if (!is_finite(vectors + i * oracle->width, oracle->width) ||
            !isfinite(plan->shard_ms[i]))
            return err_set(
                err, ERR_INPUT,
                "cost model '%s' gives no finite cost for table '%s'",
                oracle->name, plan->problem.tables[plan->shards[i].table].name);
    return 0;
}

static int check_kinds(const struct plan *plan, const struct oracle *oracle,
                       struct err *err)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (!(plan->shards[i].kind & oracle->kinds))
            return err_set(
                err, ERR_INPUT,
                "cost model '%s' cannot price %s shards (table '%s')",
                oracle->name, shard_kind_name(plan->shards[i].kind),
                plan->problem.tables[plan->shards[i].table].name);
    return 0;
}

/* Whether the piece is one of a cut over all devices, or of one over the host
 * that also holds the piece before it. */
static bool is_cut_by_ranks(const struct plan *plan, size_t shard_idx)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const struct shard *shard = &plan->shards[shard_idx];
    const struct shard *before = shard_idx ? shard - 1 : shard;
    uint32_t n_ranks = shard_row_ranks(&plan->problem, shard);

    if (n_ranks == cluster->n_devices)
        return true;
    return n_ranks && (before->table != shard->table ||
                       before->col_begin != shard->col_begin ||
                       before->device / n_ranks == shard->device / n_ranks);
}

static int check_row_cuts(const struct plan *plan, const struct oracle *oracle,
                          struct err *err)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (oracle->row_cut == ROW_CUT_RANKS &&
            plan->shards[i].kind & (SHARD_ROW | SHARD_GRID) &&
            !is_cut_by_ranks(plan, i))
            return err_set(
                err, ERR_INPUT,
                "cost model '%s' prices rows in equal blocks over all %u "
                "devices or the %u of one %s only (table '%s')",
                oracle->name, plan->problem.cluster.n_devices,
                cluster_group(&plan->problem.cluster),
                cluster_group_name(&plan->problem.cluster),
                plan->problem.tables[plan->shards[i].table].name);
    return 0;
}

static void count_memory(struct plan *plan)
{
    const struct cluster *cluster = &plan->problem.cluster;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        struct memory_items reserve = {.reserve = cluster->reserve_bytes[r],
                                       .total = cluster->reserve_bytes[r]};

        memory_add(&plan->devices[r].memory, &reserve);
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct memory_items items;

        shard_memory(&items, &plan->problem, &plan->shards[i]);
        memory_add(&plan->devices[plan->shards[i].device].memory, &items);
    }
}

static void add_up(struct plan *plan, const struct oracle *oracle,
                   const double *sums, const double *compute, const double *fwd,
                   const double *bwd)
{
    plan->total_ms = 0;
    plan->bound_ms = NAN;
    plan->n_floored = 0;
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++) {
        struct device_cost *device = &plan->devices[r];

        device->compute_ms = compute[r];
        device->bwd_comm_ms = bwd[r];
        device->fwd_comm_ms = fwd[r];
        device->total_ms = compute[r] + bwd[r] + fwd[r];
        if (device->total_ms > plan->total_ms)
            plan->total_ms = device->total_ms;
        if (oracle->floor_lane >= 0) {
            double floor_ms =
                sums[r * (size_t)oracle->width + (uint32_t)oracle->floor_lane];

            plan->n_floored += floor_ms > 0 && compute[r] <= floor_ms;
        }
    }
}

int plan_price(struct plan *plan, const struct oracle *oracle,
               struct arena *arena, struct err *err)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    uint32_t width = oracle->width;
    double *vectors, *sums, *compute, *fwd, *bwd;
    int rc;

    if (check_kinds(plan, oracle, err) || check_row_cuts(plan, oracle, err))
        return -1;
    plan->devices = ARENA_NEW(arena, struct device_cost, n_devices);
    plan->shard_ms = ARENA_NEW(arena, double, plan->n_shards);
    vectors = mem_alloc(plan->n_shards * (size_t)width, sizeof(double));
    sums = mem_alloc(n_devices * ((size_t)width + 3), sizeof(double));
    compute = sums + n_devices * (size_t)width;
    fwd = compute + n_devices;
    bwd = fwd + n_devices;

    oracle->ops->embed(oracle, plan->shards, plan->n_shards, vectors);
    oracle->ops->compute(oracle, vectors, plan->n_shards, plan->shard_ms);
    oracle_add_shards(oracle, plan->shards, vectors, plan->n_shards, 1, sums);
    oracle->ops->compute(oracle, sums, n_devices, compute);
    oracle->ops->comm(oracle, 1, sums, compute, fwd, bwd);
    count_memory(plan);
    add_up(plan, oracle, sums, compute, fwd, bwd);
    /* A net may put a small shard below zero. */
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shard_ms[i] < 0)
            plan->shard_ms[i] = 0;
    plan->cost = (struct cost_source){
        .name = oracle->name,
        .hash = oracle->hash,
        .basis = oracle->basis,
        .comm = oracle->comm,
        .device = oracle->device,
    };
    rc = check_finite(plan, oracle, vectors, err);
    mem_free(vectors);
    mem_free(sums);
    return rc;
}

static uint64_t mix_double(double x, uint64_t hash)
{
    x += 0.0; /* -0 and 0 are one number */
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
    if (!table->has_bins)
        return mix_double(table->zipf_alpha, hash);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        hash = mix_double(table->bins[k], hash);
    return hash;
}

const char *plan_inputs_hash(const struct plan *plan, struct arena *arena)
{
    const struct problem *problem = &plan->problem;
    uint32_t *order = mem_alloc(problem->n_tables, sizeof(*order));
    char *text = arena_alloc(arena, HASH_TEXT_MAX, 1);
    uint64_t hash = mix_u64(problem->n_tables, 0);

    problem_canonical_order(problem, order);
    for (size_t i = 0; i < problem->n_tables; i++)
        hash = mix_table(&problem->tables[order[i]], hash);
    mem_free(order);
    hash = mix_u64(problem->cluster.n_devices, hash);
    hash = mix_u64(problem->cluster.devices_per_host, hash);
    if (problem->cluster.hosts_per_domain > 1)
        hash = mix_u64(problem->cluster.hosts_per_domain, hash);
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++) {
        hash = mix_u64(problem->cluster.memory_bytes[r], hash);
        hash = mix_u64(problem->cluster.reserve_bytes[r], hash);
    }
    if (problem->cluster.intra_gbps > 0 || problem->cluster.inter_gbps > 0) {
        hash = mix_double(problem->cluster.intra_gbps, hash);
        hash = mix_double(problem->cluster.inter_gbps, hash);
    }
    hash = mix_u64(problem->batch, hash);
    hash = mix_u64(problem->memory_model, hash);
    if (problem->dense_optimizer != DENSE_AS_TABLE &&
        problem->dense_optimizer != DENSE_ADAM)
        hash = mix_u64(problem->dense_optimizer, hash);
    hash = mix_u64(problem->kinds, hash);
    hash = mix_text(plan->cost.hash, hash);
    hash_text(text, hash);
    return text;
}
