/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

#include "exec/batches.h"

#include <stdio.h>
#include <string.h>

static uint64_t n_samples(const struct input *input, uint32_t rank)
{
    return placement_sample(input->placement, rank + 1) -
           placement_sample(input->placement, rank);
}

/* The next of a rank's groups that is sent ids, behind NULL the first; replicas
 * are the last. */
static const struct group *next_group(const struct input *input, uint32_t rank,
                                      const struct group *group)
{
    struct group **groups = &input->placement->rank_groups[rank];

    group = group ? group + 1 : groups[0];
    return group == groups[1] || group->replica ? NULL : group;
}

/* Where the ids begin in a message. */
static uint64_t ids_at(const struct input *input, uint32_t from, uint32_t to)
{
    const struct group *group = NULL;
    uint64_t n = 0;

    while ((group = next_group(input, to, group)))
        n += (uint64_t)group->n_outputs * group->n_pieces;
    return (n * n_samples(input, from) * PROBLEM_LENGTH_BYTES + 7) / 8 * 8;
}

/* Where a message begins among those of its sender, or of its receiver. */
static uint64_t message_at(const struct input *input, uint32_t from,
                           uint32_t to, bool is_sent)
{
    size_t n = input->placement->n_ranks;
    uint64_t at = 0;

    for (size_t r = 0; r < (is_sent ? to : from); r++)
        at += input->sizes[is_sent ? from * n + r : r * n + to];
    return at;
}

static void draw_table(struct input *input, size_t t)
{
    const struct placement *placement = input->placement;
    struct stream stream;
    uint64_t *offsets;
    uint32_t *indices;

    batches_stream(&stream, placement, t);
    offsets = mem_alloc((size_t)stream.batch + 1, sizeof(*offsets));
    indices = mem_alloc((size_t)stream_n_lookups(&stream), sizeof(*indices));
    stream_fill(&stream, batches_seed(placement, input->number), 0, offsets,
                indices);
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        struct id_bags *own = &input->ranks[r].own[t];
        uint32_t n_outputs = stream.batch / placement->batch;
        const uint64_t *begin =
            offsets + (size_t)placement_sample(placement, r) * n_outputs;

        own->n_bags = n_samples(input, r) * n_outputs;
        own->n_ids = begin[own->n_bags] - begin[0];
        own->lengths = ARENA_NEW(&input->arena, uint32_t, own->n_bags);
        own->ids = ARENA_NEW(&input->arena, uint64_t, own->n_ids);
        for (uint64_t bag = 0; bag < own->n_bags; bag++)
            own->lengths[bag] = (uint32_t)(begin[bag + 1] - begin[bag]);
        for (uint64_t i = 0; i < own->n_ids; i++)
            own->ids[i] = indices[begin[0] + i];
    }
    mem_free(offsets);
    mem_free(indices);
}

/* Writes the ids of the piece's rows, and how many each bag has of them;
 * returns where the ids end. */
static uint64_t *bucketize(const struct id_bags *own, const struct piece *piece,
                           uint32_t *length, uint64_t *to)
{
    const uint64_t *id = own->ids;

    for (uint64_t bag = 0; bag < own->n_bags; bag++) {
        const uint64_t *end = id + own->lengths[bag], *begin = to;

        for (; id < end; id++)
            if (*id >= piece->row_begin && *id < piece->row_end)
                *to++ = *id - piece->row_begin;
        *length++ = (uint32_t)(to - begin);
    }
    return to;
}

void input_pack(struct input *input, uint32_t rank)
{
    const struct placement *placement = input->placement;
    const struct input_rank *self = &input->ranks[rank];
    uint64_t *size = input->own_sizes + (size_t)(rank - placement->here.begin) *
                                            placement->n_ranks;
    char *at = self->sent, *end;

    for (uint32_t to = 0; to < placement->n_ranks; to++, at = end) {
        uint32_t *lengths = (void *)at;
        uint64_t *ids = (void *)(at + ids_at(input, rank, to));
        const struct group *group = NULL;

        while ((group = next_group(input, to, group)))
            for (uint32_t i = 0; i < group->n_pieces; i++) {
                const struct piece *piece = group->pieces[i];
                const struct id_bags *own = &self->own[piece->table_idx];

                ids = bucketize(own, piece, lengths, ids);
                lengths += own->n_bags;
            }
        end = (char *)ids;
        *size++ = (uint64_t)(end - at);
    }
}

static int gather_sizes(struct input *input, struct err *err)
{
    const struct placement *placement = input->placement;
    size_t n = placement->here.end - placement->here.begin;

    return world_all_gather(placement->comm->world, input->own_sizes,
                            n * placement->n_ranks * sizeof(uint64_t),
                            input->sizes, err);
}

int input_exchange(struct input *input, struct err *err)
{
    size_t n = input->placement->n_ranks;
    struct comm_block *blocks = mem_alloc(n * n, sizeof(*blocks));
    int rc = gather_sizes(input, err);

    for (size_t i = 0; i < n * n; i++) {
        uint32_t from = (uint32_t)(i / n), to = (uint32_t)(i % n);
        const char *sent = input->ranks[from].sent;
        char *came = input->ranks[to].came;

        blocks[i] = (struct comm_block){
            .from = from, .to = to, .n_bytes = input->sizes[i]};
        if (sent)
            blocks[i].d_src = sent + message_at(input, from, to, true);
        if (came)
            blocks[i].d_dst = came + message_at(input, from, to, false);
    }
    if (!rc)
        rc = comm_move(input->comm, blocks, n * n, err);
    mem_free(blocks);
    return rc;
}

/* Where a message is read. */
struct reader {
    const uint32_t *length;
    const uint64_t *id;
};

/* Piece by piece what the ranks sent, in their order; returns the bytes of the
 * block. */
static size_t place_group(const struct input *input, const struct group *group,
                          struct reader *readers, uint64_t *block)
{
    uint64_t *offset = block;
    uint32_t *begin =
        (void *)(block + (size_t)group->n_pieces * group->n_bags + 1);
    uint32_t *index = begin;

    for (uint32_t i = 0; i < group->n_pieces; i++)
        for (uint32_t from = 0; from < input->placement->n_ranks; from++) {
            struct reader *reader = &readers[from];
            uint64_t n_bags = n_samples(input, from) * group->n_outputs;

            for (; n_bags; n_bags--) {
                *offset++ = (uint64_t)(index - begin);
                for (uint32_t n = *reader->length++; n; n--)
                    *index++ = (uint32_t)*reader->id++;
            }
        }
    *offset = (uint64_t)(index - begin);
    return (size_t)((char *)index - (char *)block);
}

static int check_group(const struct input *input, const struct group *group,
                       const uint64_t *block, size_t n_bytes, char failure[400],
                       struct err *err)
{
    struct index_batch batch;
    char *drawn = mem_alloc(n_bytes, 1);
    uint64_t n = block[(size_t)group->n_pieces * group->n_bags];
    int rc = index_batch_init(&batch, input->placement, group, input->number,
                              false, err);
    bool is_same = !rc && n == batch.lookups.n_lookups;

    if (is_same) {
        rc = device_download(batch.device, drawn, batch.d_block, n_bytes, err);
        is_same = !memcmp(block, drawn, n_bytes);
    }
    if (!rc && !is_same && !failure[0])
        snprintf(failure, 400,
                 "GPU %u: the ids that came to it are not those that it looks "
                 "up",
                 group->rank);
    index_batch_release(&batch);
    mem_free(drawn);
    return rc;
}

int input_permute(struct input *input, uint32_t rank, struct verify *verify,
                  struct err *err)
{
    const struct input_rank *self = &input->ranks[rank];
    uint32_t n = input->placement->n_ranks;
    struct reader *readers = mem_alloc(n, sizeof(*readers));
    const struct group *group = NULL;
    int rc = 0;

    for (uint32_t from = 0; from < n; from++) {
        char *at = self->came + message_at(input, from, rank, false);

        readers[from] = (struct reader){
            (void *)at, (void *)(at + ids_at(input, from, rank))};
    }
    while (!rc && (group = next_group(input, rank, group))) {
        size_t n_bytes = place_group(input, group, readers, self->block);

        if (verify)
            rc = check_group(input, group, self->block, n_bytes,
                             verify->found.failure, err);
    }
    mem_free(readers);
    return rc;
}

/* Room for what it sends, of row pieces as if each got all ids; and packs. */
static void open_sent(struct input *input, uint32_t rank)
{
    const struct placement *placement = input->placement;
    struct input_rank *self = &input->ranks[rank];
    uint64_t n_bytes = 0;

    for (uint32_t to = 0; to < placement->n_ranks; to++)
        n_bytes += ids_at(input, rank, to);
    for (size_t i = 0; i < placement->n_pieces; i++)
        if (!placement->pieces[i].replica)
            n_bytes += self->own[placement->pieces[i].table_idx].n_ids *
                       PROBLEM_ID_BYTES;
    self->sent = ARENA_NEW(&input->arena, char, n_bytes);
    input_pack(input, rank);
}

/* Room for what comes, whose size is known, and for one group of it. */
static void open_came(struct input *input, uint32_t rank)
{
    struct input_rank *self = &input->ranks[rank];
    uint64_t n_bytes =
        message_at(input, input->placement->n_ranks, rank, false);
    const struct group *group = NULL;
    uint64_t n_bags = 0;

    while ((group = next_group(input, rank, group)))
        n_bags += (uint64_t)group->n_pieces * group->n_bags;
    self->came = ARENA_NEW(&input->arena, char, n_bytes);
    self->block = ARENA_NEW(&input->arena, uint64_t, n_bags + 1 + n_bytes / 8);
}

static int open_comm(struct input *input, struct err *err)
{
    const struct placement *placement = input->placement;

    input->comm = placement->comm;
    if (device_is_host(placement->device))
        return 0;
    input->comm = NULL;
    return device_open(&input->host, DEVICE_CPU, 0, 1, err) ||
                   comm_open(&input->comm, placement->comm->world, input->host,
                             placement->n_ranks, err)
               ? -1
               : 0;
}

int input_open(struct input *input, const struct placement *placement,
               unsigned number, struct err *err)
{
    struct rank_range here = placement->here;
    size_t n = placement->n_ranks, n_tables = placement->plan->problem.n_tables;
    struct arena *arena = &input->arena;

    *input = (struct input){.placement = placement, .number = number};
    arena_init(arena);
    input->own_sizes = ARENA_NEW(arena, uint64_t, n * (here.end - here.begin));
    input->sizes = ARENA_NEW(arena, uint64_t, n * n);
    input->ranks = ARENA_NEW(arena, struct input_rank, n);
    for (uint32_t r = here.begin; r < here.end; r++)
        input->ranks[r].own = ARENA_NEW(arena, struct id_bags, n_tables);
    for (size_t t = 0; t < n_tables; t++)
        draw_table(input, t);
    for (uint32_t r = here.begin; r < here.end; r++)
        open_sent(input, r);
    if (open_comm(input, err) || gather_sizes(input, err))
        goto fail;
    for (uint32_t r = here.begin; r < here.end; r++)
        open_came(input, r);
    if (input_exchange(input, err))
        goto fail;
    return 0;
fail:
    input_close(input);
    return -1;
}

void input_close(struct input *input)
{
    if (input->host)
        comm_close(input->comm);
    device_close(input->host);
    arena_release(&input->arena);
    *input = (struct input){0};
}
