/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CLUSTER_H
#define NEUROSHARD_CORE_CLUSTER_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

/* The devices of a problem: how many, in which hosts, with what memory and
 * bandwidth. */

/* Range of bandwidths that a cluster may have, in GB/s. */
#define CLUSTER_MIN_GBPS 0.001
#define CLUSTER_MAX_GBPS 1e6

/* Phases of a step in which a GPU is busy with tables that the plan does not
 * place, such as tables of another planner. */
enum busy_phase {
    BUSY_INPUT,    /* exchange of ids and lengths */
    BUSY_CACHE,    /* fetch of rows into a cache */
    BUSY_FORWARD,  /* lookups */
    BUSY_OUTPUT,   /* exchange of the looked-up vectors */
    BUSY_GRADIENT, /* exchange of their gradients */
    BUSY_BACKWARD, /* backward pass with the optimizer update */
    N_BUSY_PHASES
};
extern const char *const busy_phase_names[]; /* NULL-terminated */
#define CLUSTER_MAX_BUSY_MS 1e9
#define CLUSTER_MAX_SLOWDOWN 1000
#define CLUSTER_MAX_OTHER_KINDS 64

struct cluster {
    uint32_t n_devices; /* R, the number of devices, >= 1 */
    uint32_t devices_per_host;
    /* number of hosts that NVLink joins into one domain; 0 means 1, so that
     * each host is a domain */
    uint32_t hosts_per_domain;
    uint64_t *memory_bytes; /* [R]: memory of each device */
    /* [R]: part of the memory of each device that shards may not use, because
     * it must stay free or is taken already. Includes the buffers of NCCL. */
    uint64_t *reserve_bytes;
    /* [R][N_BUSY_PHASES]: time of a step that each device spends on tables that
     * the plan does not place, by phase, >= 0; NULL: none */
    double (*busy_ms)[N_BUSY_PHASES];
    /* [R]: factor on the time of lookups and updates on each device, >= 1, as
     * measured on a slow machine; NULL: 1 */
    double *slowdown;
    /* kinds of sharding of these tables, for the time of the host
     * (core/host.h) */
    uint32_t n_other_kinds;
    /* bytes of NCCL's buffers on each device (cluster_nccl_bytes). They are
     * part of reserve_bytes. 0: unknown */
    uint64_t nccl_bytes;
    /* Memory of each host for tables whose rows are not in the memory of
     * devices (enum tier); 0: all tables are there. */
    uint64_t host_bytes;
    /* Bandwidth of a device in GB/s that the user set: intra_gbps inside its
     * group, inter_gbps across groups (cluster_group). 0: use the bandwidth
     * that the cost model knows. */
    double intra_gbps, inter_gbps;
    /*
     * gpu: name of the GPU model of the devices (gpu_spec_get); NULL: unknown.
     *
     * reserve: the user's text for the memory to keep free on each device
     * ("15%", "4GiB"), or NULL. reserve_bytes already includes this memory.
     * Plan files do not store the text.
     */
    const char *gpu, *reserve;
    /* True if no option, file or plan names the GPU, so that `gpu` is the
     * default. Plan files do not store it. */
    bool is_default_gpu;
    /* Usual number of GPUs in a host with this GPU model, if the input does not
     * give the number of devices per host; otherwise 0. Plan files do not store
     * it. */
    uint32_t host_size;
    /* Sizes that the user set, or 0: asked_host in devices per host,
     * asked_domain in hosts per domain. If the cluster has only one host or
     * only one domain, devices_per_host or hosts_per_domain may be smaller
     * (cluster_take_hosts). Plan files do not store the two sizes. */
    uint32_t asked_host, asked_domain;
};

/* Raises the memory of a device to at least least_bytes. If the reserve is a
 * percentage of the memory, it grows with the memory. */
void cluster_raise_memory(struct cluster *cluster, uint32_t device,
                          uint64_t least_bytes);

/* Returns the time that a device spends on other tables, in all phases. */
double cluster_busy_ms(const struct cluster *cluster, uint32_t device);

/* Returns the factor on the time of lookups and updates of a device. */
double cluster_slowdown(const struct cluster *cluster, uint32_t device);

/* Returns the number of devices in a group. A group is a host, or an NVLink
 * domain if it joins several hosts. A group is a range of consecutive devices,
 * and the first begins with device 0. All links of a group are as fast as the
 * links inside a host. If rows are cut "over one host", they are cut over one
 * group. Searches and cost models write "host" for both kinds of group. */
uint32_t cluster_group(const struct cluster *cluster);
/* Returns the word for a group of this cluster: "host" or "NVLink domain". */
const char *cluster_group_name(const struct cluster *cluster);
/* Prints a description of the cluster, such as "16 GPUs, 2 hosts of 8
 * (assumed)". */
void cluster_describe(const struct cluster *cluster, struct buf *out);
/* Checks that all hosts and all domains are complete. Returns ERR_INPUT if a
 * host or a domain is incomplete. */
int cluster_check_hosts(const struct cluster *cluster,
                        struct err *err) MUST_CHECK;

/* Sets the size of hosts to per_host devices and of domains to per_domain
 * hosts. A cluster with fewer than per_host devices becomes one smaller host. A
 * cluster with fewer than per_domain hosts becomes one smaller domain. */
void cluster_take_hosts(struct cluster *cluster, uint32_t per_host,
                        uint32_t per_domain);
/* Returns the number of devices per host to assume for n devices, if a host has
 * at most host_size devices. It is the largest divisor of n up to host_size,
 * possibly 1. */
uint32_t cluster_assumed_host(uint32_t n_devices, uint32_t host_size);
/* Changes the number of devices to n but leaves the memory arrays as they are.
 * Hosts and domains get the sizes that the user set. Without a size from the
 * user, they keep their size. If the host size was assumed, it is assumed anew:
 * the largest host size that divides n. A cluster of one host stays one
 * host. */
void cluster_resize(struct cluster *cluster, uint32_t n);
/* Calls cluster_resize and replaces the memory arrays by new ones in the arena.
 * Existing devices keep their memory and reserve. New devices get the memory
 * and reserve of device `like`. */
void cluster_grow(struct cluster *cluster, uint32_t n, uint32_t like,
                  struct arena *arena);
/* Returns the least number of devices >= n that fills complete hosts and
 * domains; n >= 1. If the host size is assumed, skips numbers of devices that
 * are larger than the host size and can only be split into hosts of one
 * device. */
uint32_t cluster_whole_hosts(const struct cluster *cluster, uint32_t n);

/* Returns the bytes that the buffers of one NCCL communicator take on a GPU
 * after the GPU has exchanged data with all other GPUs. Returns 0 if there is
 * only one GPU. Assumes that the group of the GPU is one NVLink domain. */
uint64_t cluster_nccl_bytes(const struct cluster *cluster);
/* Returns the bytes of NCCL's buffers on each device for a communicator that
 * only all-reduces over n_ranks devices, n_near of which are in one NVLink
 * domain. */
uint64_t cluster_nccl_ring_bytes(uint32_t n_ranks, uint32_t n_near);
/* Adds the reserve (cluster->reserve) to reserve_bytes, which holds the memory
 * that is in use already, up to the memory of each device. The reserve includes
 * NCCL's buffers, so it is at least nccl_bytes. Returns n_devices, or the first
 * device that has less memory than the reserve asks for. */
uint32_t cluster_add_reserve(struct cluster *cluster);
/* Returns true if all devices have the same memory and the same reserve, are
 * busy with no other tables, and none is slow. */
bool cluster_is_even(const struct cluster *cluster);

#endif
