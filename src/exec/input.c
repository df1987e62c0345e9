/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

#include "exec/batches.h"

#include <stdio.h>
#include <string.h>

/* Where a message is read. */
struct reader {
    const uint32_t *length;
    const uint64_t *id;
};

static uint64_t n_samples(const struct input *input, uint32_t rank)
{
    return placement_sample(input->placement, rank + 1) -
           placement_sample(input->placement, rank);
}

/* Where the ids begin in a message. */
static uint64_t ids_at(const struct input *input, uint32_t from, uint32_t to)
{
    uint64_t n_bags = 0;

    for (size_t k = input->first_piece[to]; k < input->first_piece[to + 1]; k++)
        n_bags += n_samples(input, from) * input->pieces[k]->group->n_outputs;
    return (n_bags * PROBLEM_LENGTH_BYTES + 7) / 8 * 8;
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

/* The ids of the piece's rows to `to`, and to lengths how many each bag has of
 * them; unless they are NULL. Returns how many there are. */
static uint64_t bucketize(const struct id_bags *own, const struct piece *piece,
                          uint32_t *lengths, uint64_t *to)
{
    const uint64_t *id = own->ids;
    uint64_t n = 0;

    for (uint64_t bag = 0; bag < own->n_bags; bag++) {
        const uint64_t *end = id + own->lengths[bag];
        uint64_t begin = n;

        for (; id < end; id++) {
            if (*id < piece->row_begin || *id >= piece->row_end)
                continue;
            if (to)
                to[n] = *id - piece->row_begin;
            n++;
        }
        if (lengths)
            lengths[bag] = (uint32_t)(n - begin);
    }
    return n;
}

/* Writes a message, unless `at` is NULL; returns its bytes. */
static uint64_t write_message(const struct input *input, uint32_t from,
                              uint32_t to, char *at)
{
    uint64_t n_bytes = ids_at(input, from, to);
    uint32_t *lengths = (void *)at;

    for (size_t k = input->first_piece[to]; k < input->first_piece[to + 1];
         k++) {
        const struct piece *piece = input->pieces[k];
        const struct id_bags *own = &input->ranks[from].own[piece->table_idx];
        uint64_t *ids = at ? (void *)(at + n_bytes) : NULL;
        uint64_t n_ids = own->n_ids;

        if (piece->row_end - piece->row_begin <
            input->placement->table_rows[piece->table_idx]) {
            n_ids = bucketize(own, piece, lengths, ids);
        } else if (at) {
            memcpy(lengths, own->lengths, own->n_bags * sizeof(*lengths));
            memcpy(ids, own->ids, n_ids * sizeof(*ids));
        }
        n_bytes += n_ids * PROBLEM_ID_BYTES;
        if (at)
            lengths += own->n_bags;
    }
    return n_bytes;
}

int input_pack(struct input *input, uint32_t rank, struct err *err)
{
    const struct input_rank *own = &input->ranks[rank];
    uint64_t at = 0;

    for (uint32_t to = 0; to < input->placement->n_ranks; to++)
        at += write_message(input, rank, to, own->sent + at);
    return own->sent == own->d_sent
               ? 0
               : device_upload(input->placement->device, own->d_sent, own->sent,
                               at, err);
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
    struct comm *comm = input->placement->comm;
    size_t n = comm->n_ranks;
    struct comm_block *blocks = mem_alloc(n * n, sizeof(*blocks));
    int rc = gather_sizes(input, err);

    for (size_t i = 0; i < n * n; i++) {
        uint32_t from = (uint32_t)(i / n), to = (uint32_t)(i % n);
        const char *d_sent = input->ranks[from].d_sent;
        char *d_came = input->ranks[to].d_came;

        blocks[i] = (struct comm_block){
            .from = from, .to = to, .n_bytes = input->sizes[i]};
        if (d_sent)
            blocks[i].d_src = d_sent + message_at(input, from, to, true);
        if (d_came)
            blocks[i].d_dst = d_came + message_at(input, from, to, false);
    }
    if (!rc)
        rc = comm_move(comm, blocks, n * n, err);
    mem_free(blocks);
    return rc;
}

/* Piece by piece, of each what the ranks sent in their order: all messages are
 * read side by side. */
int input_permute(struct input *input, uint32_t rank, struct err *err)
{
    const struct placement *placement = input->placement;
    const struct input_rank *own = &input->ranks[rank];
    uint32_t n_ranks = placement->n_ranks;
    struct reader *readers;
    uint64_t *offset = own->offsets;
    uint32_t *index = own->indices;

    if (own->came != own->d_came &&
        device_download(placement->device, own->came, own->d_came,
                        message_at(input, n_ranks, rank, false), err))
        return -1;
    readers = mem_alloc(n_ranks, sizeof(*readers));
    for (uint32_t from = 0; from < n_ranks; from++) {
        char *at = own->came + message_at(input, from, rank, false);

        readers[from] = (struct reader){
            (void *)at, (void *)(at + ids_at(input, from, rank))};
    }
    for (size_t k = input->first_piece[rank]; k < input->first_piece[rank + 1];
         k++)
        for (uint32_t from = 0; from < n_ranks; from++) {
            struct reader *reader = &readers[from];
            uint64_t n_bags =
                n_samples(input, from) * input->pieces[k]->group->n_outputs;

            for (; n_bags; n_bags--) {
                *offset++ = (uint64_t)(index - own->indices);
                for (uint32_t n = *reader->length++; n; n--)
                    *index++ = (uint32_t)*reader->id++;
            }
        }
    *offset = (uint64_t)(index - own->indices);
    mem_free(readers);
    return 0;
}

/* Whether the group's look-ups are what stands from an offset on. */
static int compare_group(bool *is_same, const struct input_rank *own,
                         const uint64_t *offsets, const struct group *group,
                         const struct index_batch *batch, struct err *err)
{
    size_t n_bags = (size_t)group->n_pieces * group->n_bags;
    size_t n = batch->lookups.n_lookups;
    uint64_t *want = mem_alloc(n_bags + 1, sizeof(*want));
    uint32_t *indices = mem_alloc(n, sizeof(*indices));
    int rc = -1;

    if (device_download(batch->device, want, batch->lookups.d_offsets,
                        (n_bags + 1) * sizeof(*want), err) ||
        (n && device_download(batch->device, indices, batch->lookups.d_indices,
                              n * sizeof(*indices), err)))
        goto out;
    *is_same = true;
    for (size_t bag = 0; bag <= n_bags; bag++)
        *is_same &= offsets[bag] - offsets[0] == want[bag];
    *is_same = *is_same && !memcmp(own->indices + offsets[0], indices,
                                   n * sizeof(*indices));
    rc = 0;
out:
    mem_free(want);
    mem_free(indices);
    return rc;
}

int input_check(const struct input *input, struct verify *verify,
                struct err *err)
{
    const struct placement *placement = input->placement;
    char *failure = verify->found.failure;

    for (size_t g = 0; g < placement->n_groups; g++) {
        const struct group *group = &placement->groups[g];
        const struct input_rank *own = &input->ranks[group->rank];
        const uint64_t *offsets = own->offsets;
        struct index_batch batch;
        bool is_same;
        int rc;

        if (group->replica || !offsets)
            continue;
        for (const struct group *before = placement->rank_groups[group->rank];
             before < group; before++)
            offsets += (size_t)before->n_pieces * before->n_bags;
        if (index_batch_init(&batch, placement, group, input->number, false,
                             err))
            return -1;
        rc = compare_group(&is_same, own, offsets, group, &batch, err);
        index_batch_release(&batch);
        if (rc)
            return -1;
        if (!is_same && !failure[0])
            snprintf(failure, sizeof(verify->found.failure),
                     "GPU %u: the ids that came to it are not those that it "
                     "looks up",
                     group->rank);
    }
    return 0;
}

static void list_pieces(struct input *input)
{
    const struct placement *placement = input->placement;
    size_t n = 0;

    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        input->first_piece[r] = n;
        for (const struct group *group = placement->rank_groups[r];
             group < placement->rank_groups[r + 1]; group++)
            for (uint32_t i = 0; !group->replica && i < group->n_pieces; i++)
                input->pieces[n++] = group->pieces[i];
    }
    input->first_piece[placement->n_ranks] = n;
}

/* Room for all messages of a rank, or to it. */
static int open_messages(struct input *input, void **d_at, char **at,
                         uint64_t n_bytes, struct err *err)
{
    struct device *device = input->placement->device;

    if (device_alloc(device, d_at, n_bytes + 1, err))
        return -1;
    *at = device_is_host(device) ? *d_at
                                 : ARENA_NEW(&input->arena, char, n_bytes);
    return 0;
}

/* The sizes of all messages are known. */
static int open_rank(struct input *input, uint32_t rank, struct err *err)
{
    struct input_rank *own = &input->ranks[rank];
    uint32_t n_ranks = input->placement->n_ranks;
    uint64_t came_bytes = message_at(input, n_ranks, rank, false);
    size_t n_bags = 0;

    for (size_t k = input->first_piece[rank]; k < input->first_piece[rank + 1];
         k++)
        n_bags += input->pieces[k]->group->n_bags;
    own->offsets = ARENA_NEW(&input->arena, uint64_t, n_bags + 1);
    own->indices =
        ARENA_NEW(&input->arena, uint32_t, came_bytes / PROBLEM_ID_BYTES);
    if (open_messages(input, &own->d_sent, &own->sent,
                      message_at(input, rank, n_ranks, true), err))
        return -1;
    return open_messages(input, &own->d_came, &own->came, came_bytes, err);
}

int input_open(struct input *input, const struct placement *placement,
               unsigned number, struct err *err)
{
    struct rank_range here = placement->here;
    size_t n = placement->n_ranks, n_tables = placement->plan->problem.n_tables;
    struct arena *arena = &input->arena;
    int rc;

    *input = (struct input){.placement = placement, .number = number};
    arena_init(arena);
    input->pieces = ARENA_NEW(arena, const struct piece *, placement->n_pieces);
    input->first_piece = ARENA_NEW(arena, size_t, n + 1);
    input->own_sizes = ARENA_NEW(arena, uint64_t, n * (here.end - here.begin));
    input->sizes = ARENA_NEW(arena, uint64_t, n * n);
    input->ranks = ARENA_NEW(arena, struct input_rank, n);
    list_pieces(input);
    for (uint32_t r = here.begin; r < here.end; r++)
        input->ranks[r].own = ARENA_NEW(arena, struct id_bags, n_tables);
    for (size_t t = 0; t < n_tables; t++)
        draw_table(input, t);
    for (uint32_t r = here.begin; r < here.end; r++)
        for (uint32_t to = 0; to < n; to++)
            input->own_sizes[(r - here.begin) * n + to] =
                write_message(input, r, to, NULL);
    rc = gather_sizes(input, err);
    for (uint32_t r = here.begin; !rc && r < here.end; r++)
        rc = open_rank(input, r, err);
    if (rc)
        input_close(input);
    return rc;
}

void input_close(struct input *input)
{
    const struct placement *placement = input->placement;

    for (uint32_t r = 0; placement && r < placement->n_ranks; r++) {
        device_free(placement->device, input->ranks[r].d_sent);
        device_free(placement->device, input->ranks[r].d_came);
    }
    arena_release(&input->arena);
    *input = (struct input){0};
}
