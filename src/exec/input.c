/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

#include "exec/first_uses.h"

#include <stdio.h>
#include <string.h>

/* Returns the number of bags that a rank draws for a table that has as many
 * outputs as the group. */
static uint64_t own_bags(const struct input *input, uint32_t rank,
                         const struct group *group)
{
    return (uint64_t)group->n_outputs *
           (placement_sample(input->placement, rank + 1) -
            placement_sample(input->placement, rank));
}

/* Returns the first piece of a rank after `piece` to which ids are sent. If
 * `piece` is NULL, returns the rank's first piece to which ids are sent. */
static const struct piece *next_piece(const struct input *input, uint32_t rank,
                                      const struct piece *piece)
{
    const struct piece *pieces = input->placement->pieces;
    const struct piece *end = pieces + input->placement->n_pieces;

    for (piece = piece ? piece + 1 : pieces; piece < end; piece++)
        if (piece->rank == rank && piece->group && !piece->replica)
            return piece;
    return NULL;
}

/* Returns whether a rank sends ids to another one. */
static bool sends_to(const struct input *input, uint32_t from, uint32_t to)
{
    return placement_copy_of(input->placement, from) ==
           placement_copy_of(input->placement, to);
}

/* Place of the data of one piece in a message between ranks. */
struct part {
    uint32_t *lengths;
    uint64_t *ids;
    uint64_t n; /* number of ids written so far */
};

/* Returns the byte offset at which the ids begin in a message. */
static size_t ids_at(const struct input *input, uint32_t from, uint32_t to)
{
    const struct piece *piece = NULL;
    size_t n = 0;

    while ((piece = next_piece(input, to, piece)))
        n += own_bags(input, from, piece->group);
    return (n * PROBLEM_LENGTH_BYTES + 7) / 8 * 8;
}

static struct part first_part(char *message, size_t ids_at)
{
    return (struct part){(void *)message, (void *)(message + ids_at), 0};
}

/* Returns the ids that a rank sends of a table. */
static const struct bags *sent_bags(const struct input *input, uint32_t rank,
                                    size_t t)
{
    size_t i = rank * input->placement->plan->problem.n_tables + t;

    return input->unique[i].offsets ? &input->unique[i] : &input->own[i];
}

/* Sends all ids to a piece that has all rows of the table. */
static void deal_all(const struct bags *own, uint64_t n_bags, struct part *part)
{
    part->n = own->offsets[n_bags];
    for (uint64_t bag = 0; part->lengths && bag < n_bags; bag++)
        part->lengths[bag] =
            (uint32_t)(own->offsets[bag + 1] - own->offsets[bag]);
    for (uint64_t i = 0; part->lengths && i < part->n; i++)
        part->ids[i] = own->indices[i];
}

/*
 * Distributes the ids of a table among the pieces that hold their rows.
 *
 * The pieces are sorted by first row and tile the table. For each id the search
 * finds the last piece that begins at or before the row. It starts at the piece
 * that would hold the row if all row blocks were equal. From the last piece it
 * goes back until the pieces that hold the row cover all columns. If the parts
 * (parts[n_pieces]) have no lengths, ids are only counted.
 */
static void deal(const struct input *input, uint32_t rank, size_t t,
                 struct part *parts)
{
    const struct placement *placement = input->placement;
    const struct piece_range pieces =
        placement_copy_pieces(placement, t, placement_copy_of(placement, rank));
    const struct piece *first = pieces.begin, *last = pieces.end - 1;
    const struct bags *own = sent_bags(input, rank, t);
    const uint64_t n_rows = placement->table_rows[t];
    const double per_row = (double)(last - first) / (double)n_rows;
    uint64_t n_bags;
    bool counts;

    if (!own->offsets)
        return;
    n_bags = own_bags(input, rank, first->group);
    parts += first - placement->pieces;
    counts = !parts->lengths;
    if (first->row_end == n_rows && !last->row_begin) {
        for (; first <= last; first++)
            deal_all(own, n_bags, parts++);
        return;
    }
    for (uint64_t bag = 0; bag < n_bags; bag++)
        for (uint64_t i = own->offsets[bag]; i < own->offsets[bag + 1]; i++) {
            const uint32_t row = own->indices[i];
            const struct piece *piece = first + (uint32_t)(row * per_row);

            while (piece < last && piece[1].row_begin <= row)
                piece++;
            for (uint32_t left = first->table->dim; left; piece--) {
                struct part *part = &parts[piece - first];

                if (row < piece->row_begin || row >= piece->row_end)
                    continue;
                left -= piece->width;
                if (!counts) {
                    part->lengths[bag]++;
                    part->ids[part->n] = row - piece->row_begin;
                }
                part->n++;
            }
        }
}

/* Begins a message. The number of ids for each piece has been counted before.
 * The message is allocated only once, because its size does not change. */
static void begin_message(struct input *input, uint32_t rank, uint32_t to,
                          struct part *parts)
{
    const struct piece *pieces = input->placement->pieces, *piece = NULL;
    size_t i = rank * (size_t)input->placement->n_ranks + to;
    size_t pos = ids_at(input, rank, to), size = pos;
    struct part next;

    if (!sends_to(input, rank, to))
        return;
    while ((piece = next_piece(input, to, piece)))
        size += parts[piece - pieces].n * PROBLEM_ID_BYTES;
    if (!input->sent[i])
        input->sent[i] = ARENA_NEW(&input->arena, char, size);
    input->own_sizes[i] = size;
    memset(input->sent[i], 0, pos);
    next = first_part(input->sent[i], pos);
    while ((piece = next_piece(input, to, piece))) {
        struct part *part = &parts[piece - pieces];
        uint64_t n = part->n;

        *part = next;
        next.lengths += own_bags(input, rank, piece->group);
        next.ids += n;
    }
}

/* Copies the first occurrence of each of a rank's own ids to `unique`, which
 * has room for all. */
static void drop_repeats(struct bags *unique, const struct bags *own,
                         uint64_t n_bags)
{
    struct first_uses uses;
    uint64_t n = 0;

    first_uses_init(&uses, own->offsets[n_bags]);
    for (uint64_t bag = 0; bag < n_bags; bag++) {
        unique->offsets[bag] = n;
        for (uint64_t i = own->offsets[bag]; i < own->offsets[bag + 1]; i++)
            if (first_uses_add(&uses, own->indices[i], (uint32_t)i) == i)
                unique->indices[n++] = own->indices[i];
    }
    unique->offsets[n_bags] = n;
    first_uses_release(&uses);
}

void input_pack(struct input *input, uint32_t rank)
{
    const struct placement *placement = input->placement;
    struct part *parts = mem_alloc(placement->n_pieces, sizeof(*parts));
    size_t n_tables = placement->plan->problem.n_tables;

    for (size_t t = 0; t < n_tables; t++) {
        const size_t i = rank * n_tables + t;

        if (input->unique[i].offsets)
            drop_repeats(
                &input->unique[i], &input->own[i],
                own_bags(input, rank, placement->table_pieces[t]->group));
    }
    for (size_t t = 0; t < n_tables; t++)
        deal(input, rank, t, parts);
    for (uint32_t to = 0; to < placement->n_ranks; to++)
        begin_message(input, rank, to, parts);
    for (size_t t = 0; t < n_tables; t++)
        deal(input, rank, t, parts);
    mem_free(parts);
}

/* Allocates memory for a message that this process will receive. */
static int make_room(struct input *input, size_t i, struct err *err)
{
    if (input->came[i] || !input->sizes[i])
        return 0;
    input->came[i] = ARENA_NEW(&input->arena, char, input->sizes[i]);
    return input->link->host
               ? 0
               : device_alloc(input->placement->device,
                              (void **)&input->d_came[i], input->sizes[i], err);
}

int input_exchange(struct input *input, struct err *err)
{
    const struct placement *placement = input->placement;
    const struct rank_range here = placement->here;
    size_t n = placement->n_ranks;
    struct comm_block *blocks = mem_alloc(n * n, sizeof(*blocks));
    int rc = world_all_gather(
        input->link->comm->world, input->own_sizes + here.begin * n,
        (here.end - here.begin) * n * sizeof(uint64_t), input->sizes, err);

    for (size_t i = 0; !rc && i < n * n; i++) {
        uint32_t from = (uint32_t)(i / n), to = (uint32_t)(i % n);

        if (comm_is_here(input->link->comm, to))
            rc = make_room(input, i, err);
        blocks[i] = (struct comm_block){from, to, input->d_sent[i],
                                        input->d_came[i], input->sizes[i]};
    }
    rc = rc || comm_start(input->link->comm, blocks, n * n, err) ||
         comm_finish(input->link->comm, err);
    mem_free(blocks);
    return rc ? -1 : 0;
}

/* Collects the lookups that all ranks sent for one piece, in the order of the
 * ranks. Advances each part in parts[n_ranks] to the next piece. */
static void place_piece(const struct input *input, const struct group *group,
                        struct part *parts, struct bags *bags)
{
    uint64_t *offset = bags->offsets, n = 0;

    for (uint32_t from = group->owners.begin; from < group->owners.end;
         from++) {
        struct part *part = &parts[from];

        for (uint64_t left = own_bags(input, from, group); left; left--) {
            *offset++ = n;
            for (uint32_t length = *part->lengths++; length; length--)
                bags->indices[n++] = (uint32_t)*part->ids++;
        }
    }
    *offset = n;
}

static void check_piece(const struct input *input, const struct piece *piece,
                        const struct bags *bags, char failure[400])
{
    const struct group *group = piece->group;
    uint64_t n = bags->offsets[group_input_bags(group)];
    struct bags drawn;

    batches_draw(&drawn, input->placement, group, piece, input->number);
    if (!failure[0] &&
        (memcmp(bags->offsets, drawn.offsets,
                (group_input_bags(group) + 1) * sizeof(uint64_t)) != 0 ||
         memcmp(bags->indices, drawn.indices, n * sizeof(uint32_t)) != 0))
        snprintf(failure, 400,
                 "table '%s': the ids that GPU %u received are not the ids "
                 "that it looks up",
                 piece->table->name, group->rank);
    bags_release(&drawn);
}

void input_permute(struct input *input, uint32_t rank, struct verify *verify)
{
    uint32_t n = input->placement->n_ranks;
    struct part *parts = mem_alloc(n, sizeof(*parts));
    const struct piece *piece = NULL;
    struct bags bags = input->came_bags[rank];

    for (uint32_t from = 0; from < n; from++)
        if (input->came[from * (size_t)n + rank])
            parts[from] = first_part(input->came[from * (size_t)n + rank],
                                     ids_at(input, from, rank));
    while ((piece = next_piece(input, rank, piece))) {
        place_piece(input, piece->group, parts, &bags);
        input->piece_bags[piece - input->placement->pieces] = bags;
        if (verify)
            check_piece(input, piece, &bags, verify->found.failure);
        bags.indices += bags.offsets[group_input_bags(piece->group)];
        bags.offsets += group_input_bags(piece->group) + 1;
    }
    mem_free(parts);
}

/* Draws the lookups of the rank's own samples, for all tables whose ids are
 * sent to ranks. */
static void draw_own(struct input *input, uint32_t rank)
{
    const struct placement *placement = input->placement;
    size_t n_tables = placement->plan->problem.n_tables;

    for (size_t t = 0; t < n_tables; t++) {
        const struct piece *piece = placement->table_pieces[t];

        struct bags *own = &input->own[rank * n_tables + t];

        if (!piece->group || piece->replica)
            continue;
        batches_draw_table(own, placement, t,
                           (struct rank_range){rank, rank + 1}, input->number,
                           false);
        if (placement_drops_repeats(placement, t)) {
            const uint64_t n_bags = own_bags(input, rank, piece->group);
            struct bags *unique = &input->unique[rank * n_tables + t];

            unique->offsets =
                mem_grow(NULL, (size_t)n_bags + 1, sizeof(uint64_t));
            unique->indices =
                mem_grow(NULL, (size_t)own->offsets[n_bags], sizeof(uint32_t));
        }
    }
}

/* Allocates the bags of a rank, into which received lookups are permuted. */
static void open_bags(struct input *input, uint32_t rank)
{
    size_t n = input->placement->n_ranks;
    const struct piece *piece = NULL;
    uint64_t n_offsets = 0, n_bytes = 0;

    for (size_t i = rank; i < n * n; i += n)
        n_bytes += input->sizes[i];
    while ((piece = next_piece(input, rank, piece)))
        n_offsets += (uint64_t)group_input_bags(piece->group) + 1;
    input->came_bags[rank] = (struct bags){
        ARENA_NEW(&input->arena, uint64_t, n_offsets),
        ARENA_NEW(&input->arena, uint32_t, n_bytes / PROBLEM_ID_BYTES), 0};
}

int input_link_open(struct input_link *link, const struct placement *placement,
                    struct world *world, struct err *err)
{
    *link = (struct input_link){0};
    if (world->size > 1 && !device_is_host(placement->device)) {
        link->comm = placement->comm;
        return 0;
    }
    return device_open(&link->host, DEVICE_CPU, 0, pool_size(placement->pool),
                       err) ||
                   comm_open(&link->comm, world, link->host, placement->n_ranks,
                             err)
               ? -1
               : 0;
}

void input_link_close(struct input_link *link)
{
    if (link->host)
        comm_close(link->comm);
    device_close(link->host);
    *link = (struct input_link){0};
}

/* Tells which memory the messages are sent from. Between GPUs, copies the
 * messages into the memory of the device. */
static int place_messages(struct input *input, struct err *err)
{
    const struct placement *placement = input->placement;
    const size_t n = placement->n_ranks;

    if (input->link->host) {
        input->d_sent = input->sent;
        input->d_came = input->came;
        return 0;
    }
    input->d_sent = ARENA_NEW(&input->arena, char *, n *n);
    input->d_came = ARENA_NEW(&input->arena, char *, n *n);
    for (size_t i = 0; i < n * n; i++)
        if (input->sent[i] &&
            (device_alloc(placement->device, (void **)&input->d_sent[i],
                          input->own_sizes[i], err) ||
             device_upload(placement->device, input->d_sent[i], input->sent[i],
                           input->own_sizes[i], err)))
            return -1;
    return 0;
}

int input_bring_back(struct input *input, struct err *err)
{
    const size_t n = input->placement->n_ranks;

    for (size_t i = 0; !input->link->host && i < n * n; i++)
        if (input->came[i] &&
            device_download(input->placement->device, input->came[i],
                            input->d_came[i], input->sizes[i], err))
            return -1;
    return 0;
}

int input_forget(struct input *input, struct err *err)
{
    const size_t n = input->placement->n_ranks;

    for (size_t i = 0; i < n * n; i++) {
        if (!input->came[i])
            continue;
        memset(input->came[i], 0, input->sizes[i]);
        if (!input->link->host &&
            device_upload(input->placement->device, input->d_came[i],
                          input->came[i], input->sizes[i], err))
            return -1;
    }
    return 0;
}

int input_open(struct input *input, const struct placement *placement,
               const struct input_link *link, unsigned number, struct err *err)
{
    struct rank_range here = placement->here;
    size_t n = placement->n_ranks, n_tables = placement->plan->problem.n_tables;
    struct arena *arena = &input->arena;

    *input =
        (struct input){.placement = placement, .link = link, .number = number};
    input->own = ARENA_NEW(arena, struct bags, n * n_tables);
    input->unique = ARENA_NEW(arena, struct bags, n * n_tables);
    input->own_sizes = ARENA_NEW(arena, uint64_t, n * n);
    input->sizes = ARENA_NEW(arena, uint64_t, n * n);
    input->sent = ARENA_NEW(arena, char *, n *n);
    input->came = ARENA_NEW(arena, char *, n *n);
    input->came_bags = ARENA_NEW(arena, struct bags, n);
    input->piece_bags = ARENA_NEW(arena, struct bags, placement->n_pieces);
    for (uint32_t r = here.begin; r < here.end; r++) {
        draw_own(input, r);
        input_pack(input, r);
    }
    if (place_messages(input, err) || input_exchange(input, err) ||
        input_bring_back(input, err))
        return -1;
    for (uint32_t r = here.begin; r < here.end; r++)
        open_bags(input, r);
    return 0;
}

void input_close(struct input *input)
{
    const struct placement *placement = input->placement;
    size_t n = placement ? placement->n_ranks : 0;

    for (size_t i = 0; placement && i < n * placement->plan->problem.n_tables;
         i++) {
        bags_release(&input->own[i]);
        bags_release(&input->unique[i]);
    }
    for (size_t i = 0; input->d_sent && !input->link->host && i < n * n; i++) {
        device_free(placement->device, input->d_sent[i]);
        device_free(placement->device, input->d_came[i]);
    }
    arena_release(&input->arena);
    *input = (struct input){0};
}
