/* SPDX-License-Identifier: MIT */
#include "device/comm_nccl.h"

#include "base/mem.h"
#include "device/device_ops.h"
#include "device/nccl.h"

#include <string.h>

/* Exchange over NCCL, with one rank per process, each with a GPU of its own. */
struct comm_nccl {
    struct comm base;
    struct nccl nccl;       /* owned */
    struct nccl_comm *comm; /* owned */
};

static void nccl_close(struct comm *comm)
{
    struct comm_nccl *self = (struct comm_nccl *)comm;

    if (self->comm)
        self->nccl.comm_destroy(self->comm);
    nccl_unload(&self->nccl);
}

static int queue_block(struct comm_nccl *self, const struct comm_block *block,
                       struct err *err)
{
    uint32_t rank = self->base.world->rank;
    const struct nccl *nccl = &self->nccl;
    void *stream = self->base.device->queue;

    if (block->from == rank &&
        nccl_check(nccl,
                   nccl->send(block->d_src, block->n_bytes, NCCL_BYTES,
                              (int)block->to, self->comm, stream),
                   "ncclSend", err))
        return -1;
    if (block->to != rank)
        return 0;
    return nccl_check(nccl,
                      nccl->recv(block->d_dst, block->n_bytes, NCCL_BYTES,
                                 (int)block->from, self->comm, stream),
                      "ncclRecv", err);
}

/* Queues all blocks as one NCCL group, so that they move at the same time. If
 * NCCL refuses a block, the group is still ended, because it has been begun. */
static int nccl_start(struct comm *comm, const struct comm_block *blocks,
                      size_t n_blocks, struct err *err)
{
    struct comm_nccl *self = (struct comm_nccl *)comm;
    const struct nccl *nccl = &self->nccl;
    int status, rc = 0;
    struct err second;

    if (nccl_check(nccl, nccl->group_start(), "ncclGroupStart", err))
        return -1;
    for (size_t i = 0; i < n_blocks && !rc; i++)
        rc = queue_block(self, &blocks[i], err);
    if (nccl_check(nccl, nccl->group_end(), "ncclGroupEnd",
                   rc ? &second : err) ||
        rc ||
        nccl_check(nccl, nccl->comm_get_async_error(self->comm, &status),
                   "ncclCommGetAsyncError", err))
        return -1;
    return nccl_check(nccl, status, "an earlier all-to-all", err);
}

/* Facts about a process. Each process sends them to all others before NCCL
 * connects the processes. */
struct peer {
    char identity[sizeof((struct device *)0)->identity];
    bool lacks_nccl;
};

/* Checks that no two processes use the same GPU: the identities of their GPUs
 * would be equal. Also checks that all processes have loaded NCCL. A process
 * without NCCL takes part in this check, so that the others fail, too, and do
 * not wait for it. */
static int check_peers(struct comm_nccl *self, struct err *err)
{
    const uint32_t n = self->base.world->size;
    struct peer own, *all = mem_alloc(n, sizeof *all);
    struct err lacking;
    int rc;

    memcpy(own.identity, self->base.device->identity, sizeof own.identity);
    own.lacks_nccl = nccl_load(&self->nccl, NCCL_LIBRARY, &lacking);
    rc = world_all_gather(self->base.world, &own, sizeof own, all, err);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; !rc && b < a; b++)
            if (!memcmp(all[a].identity, all[b].identity, sizeof own.identity))
                rc = err_set(err, ERR_DEVICE,
                             "ranks %u and %u would share one GPU: start no "
                             "more processes than a host has GPUs, or a single "
                             "one for all ranks",
                             b, a);
    if (!rc && own.lacks_nccl) {
        *err = lacking;
        rc = -1;
    }
    for (uint32_t r = 0; !rc && r < n; r++)
        if (all[r].lacks_nccl)
            rc = err_set(err, ERR_DEVICE, "rank %u cannot load NCCL", r);
    mem_free(all);
    return rc;
}

static int connect(struct comm_nccl *self, struct err *err)
{
    struct world *world = self->base.world;
    struct nccl_id id = {{0}};
    struct err own = {0};

    /* If rank 0 could not make an id, the id stays zero, and all processes
     * refuse it. */
    if (!world->rank && nccl_check(&self->nccl, self->nccl.get_unique_id(&id),
                                   "ncclGetUniqueId", &own))
        id = (struct nccl_id){{0}};
    if (world_broadcast(world, &id, sizeof id, err))
        return -1;
    if (own.code) {
        *err = own;
        return -1;
    }
    return nccl_check(&self->nccl,
                      self->nccl.comm_init_rank(&self->comm,
                                                (int)self->base.n_ranks, id,
                                                (int)world->rank),
                      "ncclCommInitRank", err);
}

int comm_open_nccl(struct comm **out, const struct comm *shape, struct err *err)
{
    struct comm_nccl *self = mem_alloc(1, sizeof *self);

    self->base = *shape;
    self->base.kind = "nccl";
    self->base.start = nccl_start;
    self->base.close = nccl_close;
    self->base.sent_bytes =
        mem_alloc(shape->n_ranks, sizeof *self->base.sent_bytes);
    if (check_peers(self, err) || connect(self, err)) {
        comm_close(&self->base);
        return -1;
    }
    *out = &self->base;
    return 0;
}
