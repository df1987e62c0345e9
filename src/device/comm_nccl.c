/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "device/comm_private.h"
#include "device/device_ops.h"
#include "device/nccl.h"

#include <string.h>

/* One rank a process, each with a GPU of its own. */
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

/* One group: all blocks travel at once. A group that was begun is ended, even
 * when a block in it was refused. */
static int nccl_move(struct comm *comm, const struct comm_block *blocks,
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
    if (nccl_check(nccl, nccl->group_end(), "ncclGroupEnd", rc ? &second : err))
        return -1;
    if (rc || nccl_check(nccl, nccl->comm_get_async_error(self->comm, &status),
                         "ncclCommGetAsyncError", err))
        return -1;
    return nccl_check(nccl, status, "an earlier exchange", err);
}

static const struct comm_ops NCCL_OPS = {.close = nccl_close,
                                         .move = nccl_move};

/* A GPU is no one's own where two processes see the same identity. */
static int check_gpus(struct comm_nccl *self, struct err *err)
{
    struct world *world = self->base.world;
    uint32_t n = world->size;
    const char *identity = self->base.device->identity;
    size_t size = sizeof self->base.device->identity;
    char *all = mem_alloc(n, size);
    int rc = world_all_gather(world, identity, size, all, err);

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; !rc && b < a; b++)
            if (!memcmp(all + a * size, all + b * size, size))
                rc = err_set(err, ERR_DEVICE,
                             "ranks %u and %u would share one GPU: start no "
                             "more processes than a host has GPUs, or one "
                             "process alone, which is every rank",
                             b, a);
    mem_free(all);
    return rc;
}

/* NCCL is loaded by all or none: who lacks it tells the others, which would
 * wait for it otherwise. */
static int load_everywhere(struct comm_nccl *self, struct err *err)
{
    struct world *world = self->base.world;
    bool lacks = nccl_load(&self->nccl, NCCL_LIBRARY, err);
    uint32_t n = world->size;
    double from_last = lacks ? n - world->rank : 0; /* the first counts */
    struct err second;

    if (world_largest(world, &from_last, 1, lacks ? &second : err) || lacks)
        return -1;
    if (from_last > 0)
        return err_set(err, ERR_DEVICE, "rank %u cannot load NCCL",
                       n - (uint32_t)from_last);
    return 0;
}

static int connect(struct comm_nccl *self, struct err *err)
{
    struct world *world = self->base.world;
    struct nccl_id id = {{0}};
    struct err own = {0};

    /* An id that could not be made stays zero and is refused everywhere. */
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
    self->base.ops = &NCCL_OPS;
    self->base.kind = "nccl";
    if (check_gpus(self, err) || load_everywhere(self, err) ||
        connect(self, err)) {
        comm_close(&self->base);
        return -1;
    }
    *out = &self->base;
    return 0;
}
