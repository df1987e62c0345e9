/* SPDX-License-Identifier: MIT */
#include "exec/sync.h"

#include "base/clock.h"

#include <math.h>

/* Room for the padding of a vector in the scratch memory. */
#define PADDING_BYTES ((size_t)64)

/* Vectors of one round, which averages shards of one GPU of each group. They
 * are parts of the weights and states of these shards. */
struct round {
    const struct sync *sync;
    struct comm_part part;
    void **d_scratch;            /* [n_ranks of the part] */
    size_t room;                 /* bytes of scratch memory that are left */
    struct comm_vector *vectors; /* [n] */
    size_t n, cap;
};

static uint32_t ranks_of_copy(const struct placement *placement)
{
    return placement_copy_ranks(placement, 0).end;
}

/* Returns whether a sync averages the piece. */
static bool is_averaged(const struct piece *piece)
{
    return !piece->replica && piece->row_begin < piece->row_end;
}

static uint64_t n_weights(const struct piece *piece)
{
    return (piece->row_end - piece->row_begin) * piece->width;
}

static bool has_states(const struct piece *piece)
{
    return piece->table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
}

uint64_t sync_bytes(const struct placement *placement, uint32_t rank)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (piece->rank != rank || !is_averaged(piece))
            continue;
        bytes += n_weights(piece) * precision_bytes(piece->table->precision);
        if (has_states(piece))
            bytes += (piece->row_end - piece->row_begin) * sizeof(float);
    }
    return bytes;
}

size_t sync_scratch_bytes(const struct placement *placement, uint32_t rank)
{
    size_t n_vectors = 0;

    for (size_t i = 0; i < placement->n_pieces; i++)
        if (placement->pieces[i].rank == rank)
            n_vectors += 1 + has_states(&placement->pieces[i]);
    /* At the end of a vector, each rank has up to one element more. */
    return (size_t)min_u64(
        sync_bytes(placement, rank) +
            n_vectors * (PADDING_BYTES + placement->n_copies * sizeof(float)),
        SYNC_BYTES);
}

int sync_open(struct sync *sync, const struct placement *placement,
              struct arena *arena, struct err *err)
{
    *sync =
        (struct sync){placement, ARENA_NEW(arena, void *, placement->n_ranks)};
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        const size_t bytes = sync_scratch_bytes(placement, r);

        if (bytes &&
            device_alloc(placement->device, &sync->d_scratch[r], bytes, err))
            return -1;
    }
    return 0;
}

void sync_close(struct sync *sync)
{
    for (uint32_t r = 0; sync->d_scratch && r < sync->placement->n_ranks; r++)
        device_free(sync->placement->device, sync->d_scratch[r]);
    *sync = (struct sync){0};
}

/* --- rounds --- */

static void begin_round(struct round *round)
{
    const struct placement *placement = round->sync->placement;

    for (size_t v = 0; v < round->n; v++)
        mem_free(round->vectors[v].d_data);
    round->n = 0;
    round->room = sync_scratch_bytes(placement, round->part.first);
}

static int end_round(struct round *round, struct err *err)
{
    const int rc = comm_mean(round->sync->placement->comm, &round->part,
                             round->vectors, round->n, round->d_scratch, err);

    begin_round(round);
    return rc;
}

/* Returns the number of elements, up to n, for which the round has room. */
static uint64_t n_fitting(const struct round *round, uint64_t n, size_t size)
{
    const size_t room =
        round->room > PADDING_BYTES ? round->room - PADDING_BYTES : 0;
    const uint64_t n_ranks = round->part.n_ranks;

    return min_u64(n, room / size / n_ranks * n_ranks);
}

/* Adds the n elements of a vector to the round, and runs rounds that are full.
 * d_data[n_ranks of the part] are the vector on each rank of the part; NULL for
 * ranks of other processes. */
static int add_vector(struct round *round, char *const *d_data, uint64_t n,
                      enum precision precision, struct err *err)
{
    const uint32_t n_ranks = round->part.n_ranks;
    const size_t size = precision_bytes(precision);

    for (uint64_t pos = 0; pos < n;) {
        const uint64_t n_more = n_fitting(round, n - pos, size);
        struct comm_vector *vector;

        if (!n_more) {
            if (end_round(round, err))
                return -1;
            continue;
        }
        round->vectors = mem_room(round->vectors, round->n, &round->cap,
                                  sizeof(*round->vectors));
        vector = &round->vectors[round->n++];
        *vector = (struct comm_vector){
            mem_alloc(n_ranks, sizeof(*vector->d_data)), n_more, precision};
        for (uint32_t c = 0; c < n_ranks; c++)
            vector->d_data[c] = d_data[c] ? d_data[c] + pos * size : NULL;
        round->room -= comm_mean_scratch(&round->part, vector, 1);
        pos += n_more;
    }
    return 0;
}

/* Adds the weights and states of a piece of the first copy, and of the same
 * piece of the other copies. `apart` is the number of pieces from one copy of
 * the table to the next. */
static int add_piece(struct round *round, const struct piece *piece,
                     size_t apart, struct err *err)
{
    const uint32_t n_copies = round->part.n_ranks;
    char **d_weights = mem_alloc(n_copies, sizeof(*d_weights));
    char **d_states = mem_alloc(n_copies, sizeof(*d_states));
    int rc;

    for (uint32_t c = 0; c < n_copies; c++) {
        d_weights[c] = piece[c * apart].d_weight;
        d_states[c] = (char *)piece[c * apart].d_state;
    }
    rc = add_vector(round, d_weights, n_weights(piece), piece->table->precision,
                    err) ||
         (has_states(piece) &&
          add_vector(round, d_states, piece->row_end - piece->row_begin,
                     PRECISION_FP32, err));
    mem_free(d_weights);
    mem_free(d_states);
    return rc ? -1 : 0;
}

/* Averages the shards of GPU `device` of all groups. */
static int average_device(const struct sync *sync, uint32_t device,
                          struct err *err)
{
    const struct placement *placement = sync->placement;
    const uint32_t n = ranks_of_copy(placement);
    struct round round = {.sync = sync,
                          .part = {device, n, placement->n_copies},
                          .d_scratch =
                              mem_alloc(placement->n_copies, sizeof(void *))};
    int rc = 0;

    for (uint32_t c = 0; c < placement->n_copies; c++)
        round.d_scratch[c] = sync->d_scratch[device + c * n];
    begin_round(&round);
    for (size_t t = 0; !rc && t < placement->plan->problem.n_tables; t++) {
        const struct piece_range pieces =
            placement_copy_pieces(placement, t, 0);

        for (const struct piece *piece = pieces.begin;
             !rc && piece < pieces.end; piece++)
            if (piece->rank == device && is_averaged(piece))
                rc = add_piece(&round, piece,
                               (size_t)(pieces.end - pieces.begin), err);
    }
    rc = rc || (round.n && end_round(&round, err));
    begin_round(&round);
    mem_free(round.vectors);
    mem_free(round.d_scratch);
    return rc ? -1 : 0;
}

int sync_run(const struct sync *sync, struct err *err)
{
    const struct placement *placement = sync->placement;
    const struct rank_range here = placement->here;
    const uint32_t n = ranks_of_copy(placement);

    /* a process has one rank or all of them */
    for (uint32_t r = here.begin; r < here.end && r < here.begin + n; r++)
        if (average_device(sync, r % n, err))
            return -1;
    return device_wait(placement->device, err);
}

int sync_time(const struct sync *sync, double *ms, struct err *err)
{
    struct world *world = sync->placement->comm->world;
    double begin_ms;

    if (world_barrier(world, err))
        return -1;
    begin_ms = clock_ms();
    if (sync_run(sync, err) || world_barrier(world, err))
        return -1;
    *ms = clock_ms() - begin_ms;
    return 0;
}

/* --- bytes --- */

int sync_count(const struct placement *placement, uint64_t *sent,
               struct err *err)
{
    const struct rank_range here = placement->here;

    return world_all_gather(placement->comm->world,
                            placement->comm->sent_bytes + here.begin,
                            (here.end - here.begin) * sizeof(*sent), sent, err);
}

double sync_most_sent(const struct placement *placement, const uint64_t *before,
                      const uint64_t *after)
{
    const uint32_t n = ranks_of_copy(placement);
    double most = 0;

    for (uint32_t device = 0; device < n; device++) {
        double sum = 0;

        for (uint32_t r = device; r < placement->n_ranks; r += n)
            sum += (double)(after[r] - before[r]);
        most = fmax(most, sum / placement->n_copies);
    }
    return most;
}
