/* SPDX-License-Identifier: MIT */
#include "device/world.h"

#include "base/mem.h"
#include "device/world_mpi.h"
#include "device/world_private.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of processes that the launcher of this process started.
 * The number is read from the environment variables that these launchers set:
 * Open MPI's mpirun, the Hydra of MPICH and its relatives, or srun. Slurm's
 * SLURM_NTASKS is not used, because batch scripts have this variable as
 * well. */
uint32_t world_launched_size(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                            "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = getenv(variables[i]);
        unsigned long size = text ? strtoul(text, NULL, 10) : 0;

        if (size > 1 && size <= UINT32_MAX)
            return (uint32_t)size;
    }
    return 1;
}

static struct world *make_alone(void)
{
    struct world *world = mem_alloc(1, sizeof *world);

    *world = (struct world){.size = 1,
                            .local_size = 1,
                            .n_hosts = 1,
                            .host_of = mem_alloc(1, sizeof *world->host_of)};
    return world;
}

int world_open(struct world **out, struct err *err)
{
    uint32_t launched = world_launched_size();

    if (launched > 1)
        return world_open_mpi(out, launched, err);
    *out = make_alone();
    return 0;
}

int world_open_second(struct world **out, struct world *world, struct err *err)
{
    const size_t host_bytes = world->size * sizeof *world->host_of;

    if (!world->ops) {
        *out = make_alone();
        return 0;
    }
    if (world->ops->open_second(out, world, err))
        return -1;
    (*out)->host_of = mem_alloc(host_bytes, 1);
    memcpy((*out)->host_of, world->host_of, host_bytes);
    return 0;
}

void world_close(struct world *world)
{
    if (!world)
        return;
    mem_free(world->host_of);
    if (world->ops)
        world->ops->close(world);
    else
        mem_free(world);
}

int world_renumber(struct world *world, uint32_t rank, struct err *err)
{
    return world->ops ? world->ops->renumber(world, rank, err) : 0;
}

void world_abort(struct world *world, int status)
{
    if (world->ops)
        world->ops->abort(world, status);
}

int world_barrier(struct world *world, struct err *err)
{
    return world->ops ? world->ops->barrier(world, false, err) : 0;
}

int world_rest(struct world *world, struct err *err)
{
    return world->ops ? world->ops->barrier(world, true, err) : 0;
}

int world_all_gather(struct world *world, const void *own, size_t n_bytes,
                     void *all, struct err *err)
{
    if (world->ops)
        return world->ops->all_gather(world, own, n_bytes, all, err);
    if (n_bytes)
        memcpy(all, own, n_bytes);
    return 0;
}

int world_broadcast(struct world *world, void *data, size_t n_bytes,
                    struct err *err)
{
    void *all = mem_alloc(world->size, n_bytes);
    int rc = world_all_gather(world, data, n_bytes, all, err);

    if (!rc)
        memcpy(data, all, n_bytes);
    mem_free(all);
    return rc;
}

int world_largest(struct world *world, double *numbers, size_t n,
                  struct err *err)
{
    double *all = mem_alloc(world->size * n, sizeof *all);
    int rc = world_all_gather(world, numbers, n * sizeof *all, all, err);

    for (size_t i = 0; !rc && i < world->size * n; i++)
        numbers[i % n] = all[i] > numbers[i % n] ? all[i] : numbers[i % n];
    mem_free(all);
    return rc;
}

int world_collect(struct world *world, const void *own, size_t n_bytes,
                  struct buf *all, struct err *err)
{
    /* number of ranks that send to this rank */
    uint32_t n = world->rank ? 0 : world->size;
    struct comm_block *blocks = mem_alloc(world->size, sizeof *blocks);
    uint64_t *sizes = mem_alloc(world->size, sizeof *sizes);
    uint64_t n_own = n_bytes, n_all = 0;
    char *texts = NULL;
    int rc = -1;

    if (world_all_gather(world, &n_own, sizeof n_own, sizes, err))
        goto out;
    for (uint32_t r = 0; r < n; r++)
        n_all += sizes[r];
    texts = mem_alloc(n_all, 1);
    blocks[0] = (struct comm_block){world->rank, 0, own, texts, n_bytes};
    for (uint32_t r = 1; r < n; r++)
        blocks[r] = (struct comm_block){
            r, 0, NULL, (char *)blocks[r - 1].d_dst + sizes[r - 1], sizes[r]};
    if (world->ops && (world->ops->start(world, blocks, n ? n : 1, err) ||
                       world->ops->finish(world, err)))
        goto out;
    if (n_all)
        buf_add(all, world->ops ? texts : own, n_all);
    rc = 0;
out:
    mem_free(texts);
    mem_free(sizes);
    mem_free(blocks);
    return rc;
}
