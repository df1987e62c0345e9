/* SPDX-License-Identifier: MIT */
#include "search/rivals_partition.h"

#include <string.h>

uint64_t sharding_option_bytes(const struct sharding_option *option,
                               uint32_t shard)
{
    if (shard < option->n_full)
        return option->bytes;
    return shard == option->n_full ? option->rest_bytes : 0;
}

double sharding_option_storage(const struct sharding_option *option)
{
    return option->n_full * option->storage + option->rest_storage;
}

void partitioner_init(struct partitioner *partitioner,
                      const struct problem *problem, struct arena *arena)
{
    const struct cluster *cluster = &problem->cluster;
    uint32_t n = cluster->n_devices, n_local = cluster_group(cluster);

    *partitioner = (struct partitioner){
        .n_ranks = n,
        .n_local = n_local,
        .n_hosts = n / n_local,
        .room_bytes = ARENA_NEW(arena, uint64_t, n),
        .free_bytes = ARENA_NEW(arena, uint64_t, n),
        .ms = ARENA_NEW(arena, double, n),
        .heap = ARENA_NEW(arena, uint32_t, n),
        .set_aside = ARENA_NEW(arena, uint32_t, n),
        .kept_ms = ARENA_NEW(arena, double, n_local),
        .kept_bytes = ARENA_NEW(arena, uint64_t, n_local),
        .hosts = ARENA_NEW(arena, struct ranked, n / n_local),
        .order = ARENA_NEW(arena, struct ranked, problem->n_tables)};
    for (uint32_t r = 0; r < n; r++)
        partitioner->room_bytes[r] = cluster_room_bytes(cluster, r);
}

/* Less load, then the lower rank in its host, then the lower rank. */
static bool goes_before(const struct partitioner *p, uint32_t a, uint32_t b)
{
    uint32_t local_a = a % p->n_local, local_b = b % p->n_local;

    if (p->ms[a] != p->ms[b])
        return p->ms[a] < p->ms[b];
    return local_a != local_b ? local_a < local_b : a < b;
}

static void sift_down(struct partitioner *p, uint32_t at)
{
    uint32_t rank = p->heap[at];

    for (uint32_t child; (child = 2 * at + 1) < p->n_heap; at = child) {
        if (child + 1 < p->n_heap &&
            goes_before(p, p->heap[child + 1], p->heap[child]))
            child++;
        if (!goes_before(p, p->heap[child], rank))
            break;
        p->heap[at] = p->heap[child];
    }
    p->heap[at] = rank;
}

static void push(struct partitioner *p, uint32_t rank)
{
    uint32_t at = p->n_heap++;

    for (; at && goes_before(p, rank, p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = rank;
}

static void build_heap(struct partitioner *p)
{
    p->n_heap = p->n_ranks;
    for (uint32_t r = 0; r < p->n_ranks; r++)
        p->heap[r] = r;
    for (uint32_t at = p->n_heap / 2; at--;)
        sift_down(p, at);
    p->is_heap = true;
}

static void load(struct partitioner *p, uint32_t rank,
                 const struct sharding_option *option, uint32_t shard)
{
    p->free_bytes[rank] -= sharding_option_bytes(option, shard);
    p->ms[rank] += option->ms;
}

static bool has_room(const struct partitioner *p, uint32_t rank,
                     const struct sharding_option *option, uint32_t shard)
{
    return sharding_option_bytes(option, shard) <= p->free_bytes[rank];
}

/* Shard i to rank first + i, if all fit. */
static bool place_on_each(struct partitioner *p,
                          const struct sharding_option *option, uint32_t first)
{
    for (uint32_t i = 0; i < option->n_shards; i++)
        if (!has_room(p, first + i, option, i))
            return false;
    for (uint32_t i = 0; i < option->n_shards; i++)
        load(p, first + i, option, i);
    return true;
}

/* Each shard to the least loaded rank of all that has room. */
static bool place_anywhere(struct partitioner *p,
                           const struct sharding_option *option,
                           uint32_t *placement)
{
    if (!p->is_heap)
        build_heap(p);
    for (uint32_t i = 0; i < option->n_shards; i++) {
        uint32_t n_aside = 0;

        while (p->n_heap && !has_room(p, p->heap[0], option, i)) {
            p->set_aside[n_aside++] = p->heap[0];
            p->heap[0] = p->heap[--p->n_heap];
            if (p->n_heap)
                sift_down(p, 0);
        }
        if (!p->n_heap)
            return false;
        placement[i] = p->heap[0];
        load(p, p->heap[0], option, i);
        sift_down(p, 0);
        while (n_aside)
            push(p, p->set_aside[--n_aside]);
    }
    return true;
}

/* The same within one host, whose ranks stay as they were where it fails. */
static bool place_within(struct partitioner *p,
                         const struct sharding_option *option, uint32_t first,
                         uint32_t *placement)
{
    uint32_t end = first + p->n_local;

    memcpy(p->kept_ms, p->ms + first, p->n_local * sizeof(*p->ms));
    memcpy(p->kept_bytes, p->free_bytes + first,
           p->n_local * sizeof(*p->free_bytes));
    for (uint32_t i = 0; i < option->n_shards; i++) {
        uint32_t best = end;

        for (uint32_t r = first; r < end; r++)
            if (has_room(p, r, option, i) &&
                (best == end || p->ms[r] < p->ms[best]))
                best = r;
        if (best == end) {
            memcpy(p->ms + first, p->kept_ms, p->n_local * sizeof(*p->ms));
            memcpy(p->free_bytes + first, p->kept_bytes,
                   p->n_local * sizeof(*p->free_bytes));
            return false;
        }
        placement[i] = best;
        load(p, best, option, i);
    }
    return true;
}

/* All shards to the ranks of the least loaded host that has room. */
static bool place_on_host(struct partitioner *p,
                          const struct sharding_option *option,
                          uint32_t *placement)
{
    p->is_heap = false;
    for (uint32_t h = 0; h < p->n_hosts; h++) {
        p->hosts[h] = (struct ranked){.idx = h};
        for (uint32_t i = 0; i < p->n_local; i++)
            p->hosts[h].key += p->ms[h * p->n_local + i];
    }
    ranked_sort(p->hosts, p->n_hosts);
    for (uint32_t h = 0; h < p->n_hosts; h++) {
        uint32_t first = p->hosts[h].idx * p->n_local;

        if (option->type == TABLE_COLUMN_WISE) {
            if (place_within(p, option, first, placement))
                return true;
        } else if (place_on_each(p, option, first)) {
            for (uint32_t i = 0; i < option->n_shards; i++)
                placement[i] = first + i;
            return true;
        }
    }
    return false;
}

static bool is_uniform(const struct sharding_option *option)
{
    return option->type == DATA_PARALLEL || option->type == ROW_WISE;
}

bool partition(struct partitioner *p,
               const struct sharding_option *const *proposal, uint32_t n,
               uint32_t *const *placement)
{
    uint32_t n_sorted = 0;

    memcpy(p->free_bytes, p->room_bytes, p->n_ranks * sizeof(*p->free_bytes));
    memset(p->ms, 0, p->n_ranks * sizeof(*p->ms));
    p->is_heap = false;
    for (uint32_t t = 0; t < n; t++) {
        if (is_uniform(proposal[t])) {
            if (!place_on_each(p, proposal[t], 0))
                return false;
            continue;
        }
        p->order[n_sorted++] =
            (struct ranked){-sharding_option_storage(proposal[t]), t};
    }
    ranked_sort(p->order, n_sorted);
    for (uint32_t i = 0; i < n_sorted; i++) {
        uint32_t t = p->order[i].idx;
        const struct sharding_option *option = proposal[t];

        if (option->type == TABLE_WISE || option->type == COLUMN_WISE
                ? !place_anywhere(p, option, placement[t])
                : !place_on_host(p, option, placement[t]))
            return false;
    }
    return true;
}
