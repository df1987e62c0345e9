/* SPDX-License-Identifier: MIT */
#include "core/cluster.h"

#include "base/text.h"

#include <string.h>

const char *const busy_phase_names[] = {
    "input", "cache", "forward", "output", "gradient", "backward", NULL};

double cluster_slowdown(const struct cluster *cluster, uint32_t device)
{
    return cluster->slowdown ? cluster->slowdown[device] : 1;
}

double cluster_busy_ms(const struct cluster *cluster, uint32_t device)
{
    double ms = 0;

    for (unsigned p = 0; cluster->busy_ms && p < N_BUSY_PHASES; p++)
        ms += cluster->busy_ms[device][p];
    return ms;
}

uint32_t cluster_group(const struct cluster *cluster)
{
    uint32_t n_hosts = cluster->hosts_per_domain;

    return cluster->devices_per_host * (n_hosts ? n_hosts : 1);
}

const char *cluster_group_name(const struct cluster *cluster)
{
    return cluster->hosts_per_domain > 1 ? "NVLink domain" : "host";
}

void cluster_describe(const struct cluster *cluster, struct buf *out)
{
    uint32_t n = cluster->n_devices, per_host = cluster->devices_per_host;
    uint32_t n_groups = n / cluster_group(cluster);

    buf_printf(out, "%u GPU%s, ", n, n == 1 ? "" : "s");
    if (n <= per_host)
        buf_printf(out, "1 host");
    else
        buf_printf(out, "%u hosts of %u%s", n / per_host, per_host,
                   cluster->host_size ? " (assumed)" : "");
    if (cluster->hosts_per_domain > 1)
        buf_printf(out, " in %u NVLink domain%s", n_groups,
                   n_groups == 1 ? "" : "s");
}

int cluster_check_hosts(const struct cluster *cluster, struct err *err)
{
    uint32_t n = cluster->n_devices, per_host = cluster->devices_per_host;
    uint32_t per_domain = cluster->hosts_per_domain;

    if (n % per_host)
        return err_input(err, "%u GPUs do not fill whole hosts of %u GPUs each",
                         n, per_host);
    if (per_domain && n / per_host % per_domain)
        return err_input(
            err, "%u hosts do not fill whole NVLink domains of %u hosts each",
            n / per_host, per_domain);
    return 0;
}

void cluster_take_hosts(struct cluster *cluster, uint32_t per_host,
                        uint32_t per_domain)
{
    const uint32_t n = cluster->n_devices;

    cluster->devices_per_host = per_host < n ? per_host : n;
    cluster->hosts_per_domain =
        (uint32_t)min_u64(per_domain, n / cluster->devices_per_host);
}

uint32_t cluster_assumed_host(uint32_t n_devices, uint32_t host_size)
{
    uint32_t per_host = n_devices < host_size ? n_devices : host_size;

    while (n_devices % per_host)
        per_host--;
    return per_host;
}

void cluster_resize(struct cluster *cluster, uint32_t n)
{
    const uint32_t per_host = cluster->devices_per_host;
    const bool is_one = per_host >= cluster->n_devices;

    cluster->n_devices = n;
    if (cluster->host_size)
        cluster->devices_per_host = cluster_assumed_host(n, cluster->host_size);
    else if (cluster->asked_host)
        cluster_take_hosts(cluster, cluster->asked_host, cluster->asked_domain);
    else
        cluster_take_hosts(cluster, is_one ? n : per_host,
                           cluster->hosts_per_domain);
}

void cluster_grow(struct cluster *cluster, uint32_t n, uint32_t like,
                  struct arena *arena)
{
    const struct cluster given = *cluster;

    cluster_resize(cluster, n);
    cluster->memory_bytes = ARENA_NEW(arena, uint64_t, n);
    cluster->reserve_bytes = ARENA_NEW(arena, uint64_t, n);
    if (given.busy_ms)
        cluster->busy_ms = arena_alloc(arena, n, sizeof(*cluster->busy_ms));
    if (given.slowdown)
        cluster->slowdown = ARENA_NEW(arena, double, n);
    for (uint32_t r = 0; r < n; r++) {
        const uint32_t source = r < given.n_devices ? r : like;

        cluster->memory_bytes[r] = given.memory_bytes[source];
        cluster->reserve_bytes[r] = given.reserve_bytes[source];
        if (given.slowdown)
            cluster->slowdown[r] = given.slowdown[source];
        if (given.busy_ms)
            memcpy(cluster->busy_ms[r], given.busy_ms[source],
                   sizeof(*cluster->busy_ms));
    }
}

uint32_t cluster_whole_hosts(const struct cluster *cluster, uint32_t n)
{
    for (;; n++) {
        struct cluster next = *cluster;
        struct err ignored;

        cluster_resize(&next, n);
        if (!cluster_check_hosts(&next, &ignored) &&
            (n <= next.host_size || next.devices_per_host > 1 ||
             !next.host_size))
            return n;
    }
}

void cluster_raise_memory(struct cluster *cluster, uint32_t device,
                          uint64_t least_bytes)
{
    uint64_t *memory = &cluster->memory_bytes[device], before, after;

    if (*memory >= least_bytes)
        return;
    if (cluster->reserve && text_to_share(cluster->reserve, *memory, &before) &&
        text_to_share(cluster->reserve, least_bytes, &after))
        cluster->reserve_bytes[device] += after - before;
    *memory = least_bytes;
}

/*
 * Buffers of NCCL 2.x with its default settings:
 *
 * A channel to a peer in the same NVLink domain has a receive buffer and a send
 * buffer, both in pages of 2 MiB. The receive buffer has 4 MiB, and in addition
 * the buffers of the protocols LL and LL128 (NCCL's init and p2p transport). An
 * exchange opens 32 channels to each peer in the NVLink domain, or 4 channels
 * if the network is slower (NCCL's paths). Rings have the same number of
 * channels in addition. Traffic over the network has two shared buffers of 32
 * channels x 16 steps x 128 KiB (NCCL's net transport).
 *
 * On 8 H100, the buffers of an exchange take 3.28 GB
 * (https://github.com/NVIDIA/nccl/issues/1685). The formula below gives 3.22
 * GB.
 */
#define CHANNEL_BYTES ((uint64_t)12 << 20)
#define NETWORK_BYTES ((uint64_t)128 << 20)
#define N_CHANNELS ((uint64_t)32)

uint64_t cluster_nccl_bytes(const struct cluster *cluster)
{
    const uint64_t n_beside_network = 4;
    uint32_t n = cluster->n_devices, group = cluster_group(cluster);

    if (n <= 1)
        return 0;
    if (n <= group)
        return CHANNEL_BYTES * N_CHANNELS * n;
    return CHANNEL_BYTES * (N_CHANNELS + n_beside_network * (group - 1)) +
           NETWORK_BYTES;
}

/* The ring of an exchange, without the exchange itself. */
uint64_t cluster_nccl_ring_bytes(uint32_t n_ranks, uint32_t n_near)
{
    if (n_ranks <= 1)
        return 0;
    return (n_near > 1 ? CHANNEL_BYTES * N_CHANNELS : 0) +
           (n_ranks > n_near ? NETWORK_BYTES : 0);
}

uint32_t cluster_add_reserve(struct cluster *cluster)
{
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        uint64_t *taken = &cluster->reserve_bytes[r], reserve = 0;
        const uint64_t memory = cluster->memory_bytes[r];

        if (cluster->reserve &&
            !text_to_share(cluster->reserve, memory, &reserve))
            return r;
        reserve = max_u64(reserve, cluster->nccl_bytes);
        *taken += min_u64(reserve, memory - *taken);
    }
    return cluster->n_devices;
}

bool cluster_is_even(const struct cluster *cluster)
{
    for (uint32_t r = 1; r < cluster->n_devices; r++)
        if (cluster->memory_bytes[r] != cluster->memory_bytes[0] ||
            cluster->reserve_bytes[r] != cluster->reserve_bytes[0])
            return false;
    return !cluster->busy_ms && !cluster->slowdown;
}
