/* SPDX-License-Identifier: MIT */
#include "device/world_fork.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "device/world_private.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * World of forked processes. For each pair of processes there are two ring
 * buffers in shared memory, one for each direction. All data between processes
 * go through these ring buffers. The writer copies in as much as fits, and the
 * reader copies it out at the same time.
 *
 * The second world has a second set of ring buffers. Both sets are mapped
 * before the processes are forked. In the second world, a process that can copy
 * nothing sleeps until a process at the other end of one of its ring buffers
 * rings its bell.
 */
/* Limit of the memory of all ring buffers of a set together. The system assigns
 * a page only when it is first used. */
#define RINGS_BYTES ((size_t)256 << 20)
#define MAX_RING_BYTES ((size_t)256 << 10)
/* One copy moves at most 1/TURNS of a ring buffer, so that writer and reader
 * can copy at the same time. */
#define TURNS 4
#define LOOK_MS 5
#define SLEEP_MS 1
#define STOPPED_MS \
    2000 /* time after an interrupt during which stopped ranks are resumed */

/* State of a ring buffer: the bytes that were written to it and read from it
 * since the start. Only the writer changes n_written, and only the reader
 * changes n_read. */
struct ring {
    _Alignas(64) atomic_uint_least64_t n_written;
    _Alignas(64) atomic_uint_least64_t n_read;
};

/* Tells a process of the second world that a ring buffer has changed. Its
 * process sleeps only as long as n_rung has the value that it read before it
 * looked at its ring buffers. */
struct bell {
    _Alignas(64) atomic_uint_least32_t n_rung;
    atomic_bool is_awaited; /* the process sleeps or is about to sleep */
};

/* The ring buffers and bells of one world, one after the other in memory. */
struct ring_set {
    struct bell *bells; /* [size] */
    struct ring *rings; /* [size][size], indexed by sender and receiver */
    char *data;         /* [size][size][ring_bytes] */
    size_t ring_bytes;
};

struct world_fork {
    struct world base;
    struct ring_set set;        /* of this world */
    struct ring_set second_set; /* of the second world */
    struct world_fork *first;   /* the first world if this is the second */
    /* Used by the first world only: memory of both sets, owned; and whether the
     * second world is open. */
    void *mapped;
    size_t mapped_bytes;
    bool has_second;
    bool sleeps;               /* true: the process sleeps while it waits */
    struct stretch *stretches; /* blocks being moved, [n_stretches]; owned */
    size_t n_stretches, cap;
    unsigned n_starts;
};

static void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void fork_close(struct world *world)
{
    struct world_fork *self = (struct world_fork *)world;

    assert(!self->has_second);
    if (self->first)
        self->first->has_second = false;
    else
        munmap(self->mapped, self->mapped_bytes);
    mem_free(self->stretches);
    mem_free(self);
}

/* All processes are on one host and share all ring buffers. A process with
 * another rank uses the ring buffers of this rank, which are still empty. */
static int fork_renumber(struct world *world, uint32_t rank, struct err *err)
{
    (void)err;
    assert(!((const struct world_fork *)world)->n_starts);
    world->rank = world->local_rank = rank;
    return 0;
}

static void fork_abort(struct world *world, int status)
{
    (void)world;
    _exit(status);
}

/* Both functions change one value of the bell and then read the other. All four
 * steps are sequentially consistent, so a process either sees the change or is
 * woken. */
static void bell_wait(struct bell *bell, uint32_t n_rung)
{
    atomic_store(&bell->is_awaited, true);
    syscall(SYS_futex, &bell->n_rung, FUTEX_WAIT, n_rung, NULL, NULL, 0);
    atomic_store(&bell->is_awaited, false);
}

static void bell_ring(struct bell *bell)
{
    atomic_fetch_add(&bell->n_rung, 1);
    if (atomic_load(&bell->is_awaited))
        syscall(SYS_futex, &bell->n_rung, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A block that this process is sending or receiving. */
struct stretch {
    size_t ring;
    uint32_t other; /* the rank at the other end of the ring buffer */
    char *pos;      /* next byte of the block; read-only if is_sent */
    size_t n_left;
    bool is_sent;
    unsigned start; /* number of the fork_start call that began it */
};

/* Copies as much of a block as is possible now. Returns true if any bytes were
 * copied. */
static bool copy_on(struct world_fork *self, struct stretch *stretch)
{
    const size_t ring_bytes = self->set.ring_bytes;
    struct ring *ring = &self->set.rings[stretch->ring];
    char *data = self->set.data + stretch->ring * ring_bytes;
    uint64_t n_written = atomic_load(&ring->n_written);
    uint64_t n_read = atomic_load(&ring->n_read);
    size_t n = stretch->is_sent ? ring_bytes - (n_written - n_read)
                                : n_written - n_read;
    size_t pos = (stretch->is_sent ? n_written : n_read) % ring_bytes;

    n = min_u64(min_u64(n, stretch->n_left),
                min_u64(ring_bytes - pos, ring_bytes / TURNS));
    if (!n)
        return false;
    if (stretch->is_sent) {
        memcpy(data + pos, stretch->pos, n);
        atomic_store(&ring->n_written, n_written + n);
    } else {
        memcpy(stretch->pos, data + pos, n);
        atomic_store(&ring->n_read, n_read + n);
    }
    if (self->first)
        bell_ring(&self->set.bells[stretch->other]);
    stretch->pos += n;
    stretch->n_left -= n;
    return true;
}

/* Starts to move blocks. A block that stays on its rank is copied at once. All
 * other blocks are copied by fork_finish. A ring buffer carries one block after
 * the other, in the order of the calls of fork_start. */
static int fork_start(struct world *world, const struct comm_block *blocks,
                      size_t n_blocks, struct err *err)
{
    struct world_fork *self = (struct world_fork *)world;

    (void)err;
    self->n_starts++;
    for (size_t i = 0; i < n_blocks; i++) {
        const struct comm_block *block = &blocks[i];
        bool is_sent = block->from == world->rank;

        self->stretches = mem_room(self->stretches, self->n_stretches,
                                   &self->cap, sizeof *self->stretches);
        if (block->from != block->to)
            self->stretches[self->n_stretches++] = (struct stretch){
                (size_t)block->from * world->size + block->to,
                is_sent ? block->to : block->from,
                is_sent ? (char *)(uintptr_t)block->d_src : block->d_dst,
                block->n_bytes,
                is_sent,
                self->n_starts};
        else if (block->n_bytes)
            memcpy(block->d_dst, block->d_src, block->n_bytes);
    }
    return 0;
}

/* Waits because no byte could be copied. n_rung: number of rings of the own
 * bell before the ring buffers were looked at. */
static int wait_for_change(const struct world_fork *self, uint32_t n_rung,
                           struct err *err)
{
    if (self->sleeps && interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (self->sleeps)
        pause_ms(SLEEP_MS);
    else if (self->first)
        bell_wait(&self->set.bells[self->base.rank], n_rung);
    else
        sched_yield();
    return 0;
}

static int fork_finish(struct world *world, struct err *err)
{
    struct world_fork *self = (struct world_fork *)world;
    const struct bell *bell = &self->set.bells[world->rank];
    const struct stretch *end = self->stretches + self->n_stretches;
    struct stretch *first = self->stretches, *stretch;

    while (first < end) { /* one fork_start call per turn */
        const uint32_t n_rung = atomic_load(&bell->n_rung);
        bool is_left = false, has_moved = false;

        for (stretch = first; stretch < end && stretch->start == first->start;
             stretch++) {
            has_moved |= copy_on(self, stretch);
            is_left |= stretch->n_left;
        }
        if (!is_left)
            first = stretch;
        else if (!has_moved && wait_for_change(self, n_rung, err))
            return -1;
    }
    self->n_stretches = 0;
    return 0;
}

static int fork_all_gather(struct world *world, const void *own, size_t n_bytes,
                           void *all, struct err *err)
{
    const uint32_t rank = world->rank;
    struct comm_block *blocks = mem_alloc(2 * world->size, sizeof *blocks);
    size_t n = 0;
    int rc;

    for (uint32_t r = 0; r < world->size; r++) {
        blocks[n++] = (struct comm_block){
            rank, r, own, (char *)all + rank * n_bytes, n_bytes};
        if (r != rank)
            blocks[n++] = (struct comm_block){
                r, rank, NULL, (char *)all + r * n_bytes, n_bytes};
    }
    rc = fork_start(world, blocks, n, err) || fork_finish(world, err);
    mem_free(blocks);
    return rc ? -1 : 0;
}

/* Barrier. Every process sends one byte to every other. A process that has
 * received a byte from all others knows that all have arrived. */
static int fork_barrier(struct world *world, bool sleeps, struct err *err)
{
    struct world_fork *self = (struct world_fork *)world;
    const char own = 0;
    char all[WORLD_MAX_FORKS];
    int rc;

    self->sleeps = sleeps;
    rc = fork_all_gather(world, &own, 1, all, err);
    self->sleeps = false;
    return rc;
}

static int fork_open_second(struct world **out, struct world *world,
                            struct err *err)
{
    struct world_fork *first = (struct world_fork *)world;
    struct world_fork *second = mem_alloc(1, sizeof *second);

    (void)err;
    assert(!first->first && !first->has_second);
    second->base = *world;
    second->set = first->second_set;
    second->first = first;
    first->has_second = true;
    *out = &second->base;
    return 0;
}

static const struct world_ops FORK_OPS = {
    .kind = "shm",
    .close = fork_close,
    .open_second = fork_open_second,
    .renumber = fork_renumber,
    .abort = fork_abort,
    .barrier = fork_barrier,
    .all_gather = fork_all_gather,
    .start = fork_start,
    .finish = fork_finish,
};

/* Sets the error for the process that failed first. The message is empty if the
 * process exited by itself, because it has already printed its own message. */
static int tell_failure(uint32_t rank, int status, struct err *err)
{
    static const enum err_code codes[] = {ERR_USAGE, ERR_NO_PLAN,
                                          ERR_INTERRUPTED};

    err_set(err, ERR_DEVICE, "%s", "");
    if (WIFSIGNALED(status))
        return err_set(err, ERR_DEVICE, "rank %u was ended by signal %d (%s)",
                       rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (err_exit_status(codes[i]) == WEXITSTATUS(status))
            err->code = codes[i];
    return -1;
}

/* Passes an interrupt on to rank 0. Rank 0 informs the other ranks if they need
 * to know. Stopped ranks are resumed, because a stopped process cannot react to
 * an interrupt. */
static void hand_on_interrupt(const pid_t *pids, uint32_t n)
{
    if (pids[0])
        kill(pids[0], SIGTERM);
    for (uint32_t r = 0; r < n; r++)
        if (pids[r])
            kill(pids[r], SIGCONT);
}

static void kill_all(const pid_t *pids, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++)
        if (pids[r])
            kill(pids[r], SIGKILL);
}

static uint32_t rank_of(pid_t pid, const pid_t *pids, uint32_t n)
{
    uint32_t rank = 0;

    while (rank < n && pids[rank] != pid)
        rank++;
    return rank;
}

/* Waits until all processes have ended. If one fails, the others are killed.
 * After an interrupt, stopped ranks are resumed. A rank that is still being
 * stopped STOPPED_MS after the interrupt is killed. */
static int wait_for_all(pid_t *pids, uint32_t n, struct err *err)
{
    /* time at which the interrupt was passed on; 0: not yet */
    double passed_ms = 0;
    int rc = 0, status;

    for (uint32_t n_left = n; n_left;) {
        const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        const uint32_t rank = pid > 0 ? rank_of(pid, pids, n) : n;

        if (passed_ms == 0 && interrupt_requested()) {
            hand_on_interrupt(pids, n);
            passed_ms = clock_ms();
        }
        if (!pid)
            pause_ms(LOOK_MS);
        if (rank == n)
            continue;
        if (WIFSTOPPED(status)) {
            if (passed_ms > 0)
                kill(pid,
                     clock_ms() < passed_ms + STOPPED_MS ? SIGCONT : SIGKILL);
            continue;
        }
        pids[rank] = 0;
        n_left--;
        if (!status || rc)
            continue;
        rc = tell_failure(rank, status, err);
        kill_all(pids, n);
    }
    return rc;
}

/* Turns this forked process into a rank of the world. The process dies when its
 * parent dies. It has a process group of its own, so that a key such as Ctrl-C
 * reaches it only through the parent. */
static struct world *become(struct world_fork *self, uint32_t rank,
                            pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0);
    self->base.rank = self->base.local_rank = rank;
    return &self->base;
}

static struct ring_set ring_set_at(void *memory, size_t size, size_t ring_bytes)
{
    struct ring_set set = {.bells = memory, .ring_bytes = ring_bytes};

    set.rings = (struct ring *)(set.bells + size);
    set.data = (char *)(set.rings + size * size);
    return set;
}

static struct world_fork *make_rings(uint32_t size, struct err *err)
{
    const size_t n = (size_t)size * size;
    /* a multiple of the cache line, so that the parts of a set are aligned */
    const size_t ring_bytes =
        min_u64(RINGS_BYTES / n, MAX_RING_BYTES) / CACHE_LINE * CACHE_LINE;
    const size_t set_bytes =
        size * sizeof(struct bell) + n * (sizeof(struct ring) + ring_bytes);
    struct world_fork *self = mem_alloc(1, sizeof *self);

    self->mapped_bytes = 2 * set_bytes;
    self->mapped = mmap(NULL, self->mapped_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (self->mapped == MAP_FAILED) {
        mem_free(self);
        err_set(err, ERR_IO, "cannot share memory between %u processes: %s",
                size, strerror(errno));
        return NULL;
    }
    self->set = ring_set_at(self->mapped, size, ring_bytes);
    self->second_set =
        ring_set_at((char *)self->mapped + set_bytes, size, ring_bytes);
    self->base = (struct world){
        .ops = &FORK_OPS,
        .size = size,
        .local_size = size,
        .n_hosts = 1,
        .host_of = mem_alloc(size, sizeof *self->base.host_of),
    };
    return self;
}

int world_fork(struct world **out, uint32_t n, struct err *err)
{
    const pid_t parent = getpid();
    struct world_fork *self;
    pid_t *pids;
    uint32_t rank = 0;
    int rc = -1;

    assert(n > 1 && n <= WORLD_MAX_FORKS);
    *out = NULL;
    if (world_launched_size() > 1)
        return err_usage(
            err, "a launcher already started %u processes, one per rank",
            world_launched_size());
    self = make_rings(n, err);
    if (!self)
        return -1;
    pids = mem_alloc(n, sizeof *pids);
    for (; rank < n && (pids[rank] = fork()) > 0; rank++)
        ;
    if (rank < n && !pids[rank]) {
        *out = become(self, rank, parent);
        mem_free(pids);
        return 0;
    }
    if (rank < n) {
        err_set(err, ERR_IO, "cannot start process %u of %u: %s", rank + 1, n,
                strerror(errno));
        kill_all(pids, rank);
        for (uint32_t r = 0; r < rank; r++)
            waitpid(pids[r], NULL, 0);
    } else {
        rc = wait_for_all(pids, n, err);
    }
    mem_free(pids);
    world_close(&self->base);
    return rc;
}
