/* SPDX-License-Identifier: MIT */
#include "device/world_mpi.h"

#include "base/mem.h"
#include "device/world_private.h"

#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <string.h>
#include <time.h>

/* Largest number of bytes in one MPI message. Larger blocks are sent in several
 * pieces, because MPI counts in int. */
#define PIECE_BYTES ((size_t)1 << 30)
#define REST_US 1000 /* pause between two looks in world_rest */
#define SECOND_US 50 /* pause between two looks in the second world */

struct world_mpi {
    struct world base;
    MPI_Comm comm; /* a duplicate of MPI_COMM_WORLD; owned */
    /* The second world waits by testing its requests and sleeping in between.
     * MPI moves data only during calls, and it has no wait that sleeps. */
    bool is_second;
    /* sends and receives in progress, [n_requests]; owned */
    MPI_Request *requests;
    size_t n_requests, cap;
};

static MPI_Comm comm_of(const struct world *world)
{
    return ((const struct world_mpi *)world)->comm;
}

static bool is_second_world(const struct world *world)
{
    return ((const struct world_mpi *)world)->is_second;
}

#define MPI_CALL(call, err) mpi_call((call), #call, err)

static int mpi_call(int status, const char *call, struct err *err)
{
    char words[MPI_MAX_ERROR_STRING + 1] = "";
    int len = 0, name_len = (int)strcspn(call, "(");

    if (status == MPI_SUCCESS)
        return 0;
    if (MPI_Error_string(status, words, &len) != MPI_SUCCESS)
        return err_set(err, ERR_DEVICE, "%.*s failed with code %d", name_len,
                       call, status);
    return err_set(err, ERR_DEVICE, "%.*s failed: %s", name_len, call, words);
}

static void mpi_close(struct world *world)
{
    struct world_mpi *mpi = (struct world_mpi *)world;

    if (mpi->comm != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->comm);
    if (!mpi->is_second)
        MPI_Finalize();
    mem_free(mpi->requests);
    mem_free(mpi);
}

static void mpi_abort(struct world *world, int status)
{
    MPI_Abort(comm_of(world), status);
}

/* Waits until n requests are done. Tests them every pause_us microseconds and
 * sleeps in between. */
static int sleep_until_done(MPI_Request *requests, size_t n, long pause_us,
                            struct err *err)
{
    const struct timespec pause = {.tv_nsec = pause_us * 1000};
    int are_done = 0;

    for (;;) {
        if (MPI_CALL(
                MPI_Testall((int)n, requests, &are_done, MPI_STATUSES_IGNORE),
                err))
            return -1;
        if (are_done)
            return 0;
        nanosleep(&pause, NULL);
    }
}

/* Barrier. MPI_Barrier keeps a processor busy while it waits, and MPI_Ibarrier
 * does not. */
static int mpi_barrier(struct world *world, bool sleeps, struct err *err)
{
    const bool is_second = is_second_world(world);
    MPI_Request request;

    if (!sleeps && !is_second)
        return MPI_CALL(MPI_Barrier(comm_of(world)), err);
    if (MPI_CALL(MPI_Ibarrier(comm_of(world), &request), err))
        return -1;
    return sleep_until_done(&request, 1, sleeps ? REST_US : SECOND_US, err);
}

static int mpi_all_gather(struct world *world, const void *own, size_t n_bytes,
                          void *all, struct err *err)
{
    const int n = (int)n_bytes;
    MPI_Request request;

    assert(n_bytes <= INT_MAX);
    if (!is_second_world(world))
        return MPI_CALL(
            MPI_Allgather(own, n, MPI_BYTE, all, n, MPI_BYTE, comm_of(world)),
            err);
    if (MPI_CALL(MPI_Iallgather(own, n, MPI_BYTE, all, n, MPI_BYTE,
                                comm_of(world), &request),
                 err))
        return -1;
    return sleep_until_done(&request, 1, SECOND_US, err);
}

/* Starts to send or receive a block. A large block is sent in several pieces.
 * They arrive in order, because messages between two ranks do not overtake each
 * other. */
static int start_block(struct world_mpi *mpi, const struct comm_block *block,
                       struct err *err)
{
    for (size_t pos = 0; pos < block->n_bytes; pos += PIECE_BYTES) {
        int n = (int)min_u64(block->n_bytes - pos, PIECE_BYTES);
        MPI_Request *request;

        mpi->requests = mem_room(mpi->requests, mpi->n_requests, &mpi->cap,
                                 sizeof *mpi->requests);
        request = &mpi->requests[mpi->n_requests++];
        if (block->to == mpi->base.rank
                ? MPI_CALL(MPI_Irecv((char *)block->d_dst + pos, n, MPI_BYTE,
                                     (int)block->from, 1, mpi->comm, request),
                           err)
                : MPI_CALL(MPI_Isend((const char *)block->d_src + pos, n,
                                     MPI_BYTE, (int)block->to, 1, mpi->comm,
                                     request),
                           err))
            return -1;
    }
    return 0;
}

/* Starts to send the blocks whose receiver is in [begin, end), in the order of
 * the list. */
static int start_sends(struct world_mpi *mpi, const struct comm_block *blocks,
                       size_t n_blocks, uint32_t begin, uint32_t end,
                       struct err *err)
{
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].to >= begin && blocks[i].to < end &&
            start_block(mpi, &blocks[i], err))
            return -1;
    return 0;
}

/* Starts to move blocks. It posts all receives before it sends anything, so
 * that no message has to wait in a buffer. Each rank sends to the ranks above
 * it first. In a list that ascends by receivers, each rank thus begins with
 * another receiver. If all ranks began with rank 0, its port would be busy
 * while the others wait: four equal hosts would take 5/3 of the time. Blocks
 * that stay on their rank are copied while the others travel. */
static int mpi_start(struct world *world, const struct comm_block *blocks,
                     size_t n_blocks, struct err *err)
{
    struct world_mpi *mpi = (struct world_mpi *)world;
    const uint32_t rank = world->rank;

    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].to == rank && blocks[i].from != rank &&
            start_block(mpi, &blocks[i], err))
            return -1;
    if (start_sends(mpi, blocks, n_blocks, rank + 1, world->size, err) ||
        start_sends(mpi, blocks, n_blocks, 0, rank, err))
        return -1;
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].from == blocks[i].to && blocks[i].n_bytes)
            memcpy(blocks[i].d_dst, blocks[i].d_src, blocks[i].n_bytes);
    return 0;
}

static int mpi_finish(struct world *world, struct err *err)
{
    struct world_mpi *mpi = (struct world_mpi *)world;
    const size_t n = mpi->n_requests;

    assert(n <= INT_MAX);
    mpi->n_requests = 0;
    if (mpi->is_second)
        return sleep_until_done(mpi->requests, n, SECOND_US, err);
    return MPI_CALL(MPI_Waitall((int)n, mpi->requests, MPI_STATUSES_IGNORE),
                    err);
}

/* Duplicates a communicator. The copy returns errors instead of ending the
 * process. */
static int duplicate(MPI_Comm *out, MPI_Comm comm, struct err *err)
{
    if (MPI_CALL(MPI_Comm_dup(comm, out), err))
        return -1;
    return MPI_CALL(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN), err);
}

static int mpi_open_second(struct world **out, struct world *world,
                           struct err *err)
{
    struct world_mpi *second;
    int provided;

    assert(!is_second_world(world));
    if (MPI_CALL(MPI_Query_thread(&provided), err))
        return -1;
    if (provided < MPI_THREAD_MULTIPLE)
        return err_set(
            err, ERR_DEVICE,
            "this MPI does not let two threads of a process exchange "
            "data at the same time (MPI_THREAD_MULTIPLE)");
    second = mem_alloc(1, sizeof *second);
    second->base = *world;
    second->base.host_of = NULL;
    second->comm = MPI_COMM_NULL;
    second->is_second = true;
    if (duplicate(&second->comm, comm_of(world), err)) {
        world_close(&second->base);
        return -1;
    }
    *out = &second->base;
    return 0;
}

/* Finds the host of each rank. Ranks that can share memory are on the same
 * host. The lowest rank of a host identifies it. */
static int find_hosts(struct world *world, struct err *err)
{
    MPI_Comm local = MPI_COMM_NULL;
    uint32_t *first = mem_alloc(world->size, sizeof *first);
    uint32_t own = world->rank;
    int rank, size, rc = -1;

    if (MPI_CALL(MPI_Comm_split_type(comm_of(world), MPI_COMM_TYPE_SHARED,
                                     (int)world->rank, MPI_INFO_NULL, &local),
                 err) ||
        MPI_CALL(MPI_Comm_rank(local, &rank), err) ||
        MPI_CALL(MPI_Comm_size(local, &size), err) ||
        MPI_CALL(MPI_Bcast(&own, 1, MPI_UINT32_T, 0, local), err) ||
        MPI_CALL(MPI_Allgather(&own, 1, MPI_UINT32_T, first, 1, MPI_UINT32_T,
                               comm_of(world)),
                 err))
        goto out;
    world->local_rank = (uint32_t)rank;
    world->local_size = (uint32_t)size;
    mem_free(world->host_of);
    world->host_of = mem_alloc(world->size, sizeof *world->host_of);
    world->n_hosts = 0;
    for (uint32_t r = 0; r < world->size; r++)
        world->host_of[r] =
            first[r] == r ? world->n_hosts++ : world->host_of[first[r]];
    rc = 0;
out:
    if (local != MPI_COMM_NULL)
        MPI_Comm_free(&local);
    mem_free(first);
    return rc;
}

/* Replaces the communicator by one with the same processes in the new order. */
static int mpi_renumber(struct world *world, uint32_t rank, struct err *err)
{
    struct world_mpi *mpi = (struct world_mpi *)world;
    MPI_Comm comm = MPI_COMM_NULL;

    assert(!mpi->is_second);
    if (MPI_CALL(MPI_Comm_split(mpi->comm, 0, (int)rank, &comm), err))
        return -1;
    MPI_Comm_free(&mpi->comm);
    mpi->comm = comm;
    world->rank = rank;
    if (MPI_CALL(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), err))
        return -1;
    return find_hosts(world, err);
}

static const struct world_ops MPI_OPS = {
    .kind = "mpi",
    .close = mpi_close,
    .open_second = mpi_open_second,
    .renumber = mpi_renumber,
    .abort = mpi_abort,
    .barrier = mpi_barrier,
    .all_gather = mpi_all_gather,
    .start = mpi_start,
    .finish = mpi_finish,
};

static int find_place(struct world_mpi *mpi, uint32_t launched, struct err *err)
{
    int rank, size;

    /* If an MPI call failed before this one, MPI has ended the process with its
     * own message. */
    if (MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                 err) ||
        duplicate(&mpi->comm, MPI_COMM_WORLD, err) ||
        MPI_CALL(MPI_Comm_rank(mpi->comm, &rank), err) ||
        MPI_CALL(MPI_Comm_size(mpi->comm, &size), err))
        return -1;
    if ((uint32_t)size != launched)
        return err_usage(err,
                         "%u processes were started, but MPI connects only %d "
                         "of them: the launcher does not belong to this MPI "
                         "(with srun, try '--mpi=pmix')",
                         launched, size);
    mpi->base.rank = (uint32_t)rank;
    mpi->base.size = (uint32_t)size;
    return find_hosts(&mpi->base, err);
}

int world_open_mpi(struct world **out, uint32_t launched, struct err *err)
{
    struct world_mpi *mpi = mem_alloc(1, sizeof *mpi);
    int provided;

    mpi->base.ops = &MPI_OPS;
    mpi->comm = MPI_COMM_NULL;
    /* An MPI that provides less than this has no second world. */
    if (MPI_CALL(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided),
                 err)) {
        mem_free(mpi);
        return -1;
    }
    if (find_place(mpi, launched, err)) {
        world_close(&mpi->base);
        return -1;
    }
    *out = &mpi->base;
    return 0;
}
