/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

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

/* The samples of a rank, as if it held the whole table. */
static void draw_own(struct input *input, uint32_t rank, size_t t)
{
    const struct placement *placement = input->placement;
    struct piece piece = *placement->table_pieces[t];
    struct group group;

    if (piece.replica || !piece.group)
        return;
    piece.row_begin = 0;
    piece.row_end = placement->table_rows[t];
    group = *piece.group;
    group.owners = (struct rank_range){rank, rank + 1};
    batches_draw(&input->ranks[rank].own[t], placement, &group, &piece,
                 input->number);
}

/* Writes the ids of the piece's rows, and how many each bag has of them;
 * returns where the ids end. */
static uint64_t *bucketize(const struct bags *own, uint64_t n_bags,
                           const struct piece *piece, uint32_t *length,
                           uint64_t *to)
{
    for (uint64_t bag = 0; bag < n_bags; bag++) {
        const uint64_t *begin = to;

        for (uint64_t i = own->offsets[bag]; i < own->offsets[bag + 1]; i++) {
            uint64_t id = own->indices[i];

            if (id >= piece->row_begin && id < piece->row_end)
                *to++ = id - piece->row_begin;
        }
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
                uint64_t n_bags = n_samples(input, rank) * group->n_outputs;

                ids = bucketize(&self->own[piece->table_idx], n_bags, piece,
                                lengths, ids);
                lengths += n_bags;
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

/* What the ranks sent for a piece, in their order. */
static void place_piece(const struct input *input, const struct group *group,
                        struct reader *readers, struct bags *bags)
{
    uint64_t *offset = bags->offsets, n = 0;

    for (uint32_t from = 0; from < input->placement->n_ranks; from++) {
        struct reader *reader = &readers[from];
        uint64_t n_bags = n_samples(input, from) * group->n_outputs;

        for (; n_bags; n_bags--) {
            *offset++ = n;
            for (uint32_t left = *reader->length++; left; left--)
                bags->indices[n++] = (uint32_t)*reader->id++;
        }
    }
    *offset = n;
}

static void check_piece(const struct input *input, const struct group *group,
                        const struct piece *piece, const struct bags *bags,
                        char failure[400])
{
    uint64_t n = bags->offsets[group->n_bags];
    struct bags drawn;

    batches_draw(&drawn, input->placement, group, piece, input->number);
    if (!failure[0] &&
        (memcmp(bags->offsets, drawn.offsets,
                (group->n_bags + (size_t)1) * sizeof(uint64_t)) != 0 ||
         memcmp(bags->indices, drawn.indices, n * sizeof(uint32_t)) != 0))
        snprintf(
            failure, 400,
            "table '%s': the ids that came to GPU %u are not those that it "
            "looks up",
            piece->table->name, group->rank);
    bags_release(&drawn);
}

void input_permute(struct input *input, uint32_t rank, struct verify *verify)
{
    const struct input_rank *self = &input->ranks[rank];
    uint32_t n = input->placement->n_ranks;
    struct reader *readers = mem_alloc(n, sizeof(*readers));
    const struct group *group = NULL;
    struct bags bags = self->came_bags;

    for (uint32_t from = 0; from < n; from++) {
        char *at = self->came + message_at(input, from, rank, false);

        readers[from] = (struct reader){
            (void *)at, (void *)(at + ids_at(input, from, rank))};
    }
    while ((group = next_group(input, rank, group)))
        for (uint32_t i = 0; i < group->n_pieces; i++) {
            place_piece(input, group, readers, &bags);
            if (verify)
                check_piece(input, group, group->pieces[i], &bags,
                            verify->found.failure);
            bags.indices += bags.offsets[group->n_bags];
            bags.offsets += group->n_bags + 1;
        }
    mem_free(readers);
}

/* Room for what it sends, of row pieces as if each got all ids; and packs. */
static void open_sent(struct input *input, uint32_t rank)
{
    const struct placement *placement = input->placement;
    struct input_rank *self = &input->ranks[rank];
    uint64_t n_bytes = 0;

    for (uint32_t to = 0; to < placement->n_ranks; to++)
        n_bytes += ids_at(input, rank, to);
    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (!piece->replica && piece->group)
            n_bytes +=
                PROBLEM_ID_BYTES *
                self->own[piece->table_idx]
                    .offsets[n_samples(input, rank) * piece->group->n_outputs];
    }
    self->sent = ARENA_NEW(&input->arena, char, n_bytes);
    input_pack(input, rank);
}

/* Room for what comes, whose size is known, and for its look-ups. */
static void open_came(struct input *input, uint32_t rank)
{
    struct input_rank *self = &input->ranks[rank];
    uint64_t n_bytes =
        message_at(input, input->placement->n_ranks, rank, false);
    const struct group *group = NULL;
    uint64_t n_offsets = 0;

    while ((group = next_group(input, rank, group)))
        n_offsets += group->n_pieces * ((uint64_t)group->n_bags + 1);
    self->came = ARENA_NEW(&input->arena, char, n_bytes);
    self->came_bags = (struct bags){
        ARENA_NEW(&input->arena, uint64_t, n_offsets),
        ARENA_NEW(&input->arena, uint32_t, n_bytes / PROBLEM_ID_BYTES)};
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
    for (uint32_t r = here.begin; r < here.end; r++) {
        input->ranks[r].own = ARENA_NEW(arena, struct bags, n_tables);
        for (size_t t = 0; t < n_tables; t++)
            draw_own(input, r, t);
        open_sent(input, r);
    }
    if (device_open(&input->host, DEVICE_CPU, 0, pool_size(placement->pool),
                    err) ||
        comm_open(&input->comm, placement->comm->world, input->host,
                  placement->n_ranks, err) ||
        gather_sizes(input, err))
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
    const struct placement *placement = input->placement;

    for (uint32_t r = 0; placement && r < placement->n_ranks; r++)
        for (size_t t = 0;
             input->ranks[r].own && t < placement->plan->problem.n_tables; t++)
            bags_release(&input->ranks[r].own[t]);
    comm_close(input->comm);
    device_close(input->host);
    arena_release(&input->arena);
    *input = (struct input){0};
}
