/* SPDX-License-Identifier: MIT */
#include "exec/train_feed.h"

#include "base/clock.h"
#include "exec/values.h"

#include <pthread.h>
#include <signal.h>

static struct bags *replica_bags(const struct feed *feed, unsigned batch,
                                 const struct piece *piece)
{
    return &feed->replicas[batch * feed->placement->n_pieces +
                           (size_t)(piece - feed->placement->pieces)];
}

/* Returns the lookups of a piece on a rank of this process. Its ids must have
 * been permuted. */
static struct bags bags_of(const struct feed *feed, unsigned batch,
                           const struct piece *piece)
{
    return piece->replica ? *replica_bags(feed, batch, piece)
                          : feed->inputs[batch]
                                .piece_bags[piece - feed->placement->pieces];
}

/* Draws the lookups of a rank's replicas. */
static void draw_replicas(struct feed *feed, unsigned batch, uint32_t rank)
{
    const struct placement *placement = feed->placement;

    for (const struct group *group = placement->rank_groups[rank];
         group < placement->rank_groups[rank + 1]; group++)
        for (uint32_t i = 0; group->replica && i < group->n_pieces; i++)
            batches_draw(replica_bags(feed, batch, group->pieces[i]), placement,
                         group, group->pieces[i], feed->inputs[batch].number);
}

/* Raises most[g] to the number of lookups of the rank's group g in a batch. */
static void count_lookups(const struct feed *feed, unsigned batch,
                          uint32_t rank, uint64_t *most)
{
    const struct group *first = feed->placement->rank_groups[rank];
    const struct group *end = feed->placement->rank_groups[rank + 1];

    for (const struct group *group = first; group < end; group++) {
        uint64_t n = 0;

        for (uint32_t i = 0; i < group->n_pieces; i++)
            n += bags_of(feed, batch, group->pieces[i]).offsets[group->n_bags];
        most[group - first] = max_u64(most[group - first], n);
    }
}

/* Counts the lookups of each group in the batches, which input_open has
 * exchanged once, and opens the work of each rank for the largest counts. Then
 * overwrites the ids that came, so that a missing exchange is noticed. */
static int open_works(struct feed *feed, struct err *err)
{
    const struct placement *placement = feed->placement;
    const struct rank_range here = placement->here;

    for (uint32_t r = here.begin; r < here.end; r++) {
        struct rank_work *work = &feed->works[r];
        size_t n_groups =
            (size_t)(placement->rank_groups[r + 1] - placement->rank_groups[r]);
        uint64_t *most = ARENA_NEW(&feed->arena, uint64_t, n_groups);

        *work = (struct rank_work){.placement = placement,
                                   .rank = r,
                                   .n_sets = FEED_N_SETS,
                                   .n_chunks = 1};
        for (unsigned b = 0; b < feed->n_batches; b++) {
            input_permute(&feed->inputs[b], r, NULL);
            draw_replicas(feed, b, r);
            count_lookups(feed, b, r, most);
        }
        if (rank_work_open_empty(work, most, err))
            return -1;
    }
    for (unsigned b = 0; b < feed->n_batches; b++)
        if (input_forget(&feed->inputs[b], err))
            return -1;
    return 0;
}

int feed_open(struct feed *feed, const struct placement *placement,
              const struct dense *dense, unsigned n_batches,
              struct world *world, struct err *err)
{
    *feed = (struct feed){.placement = placement, .dense = dense};
    feed->works = ARENA_NEW(&feed->arena, struct rank_work, placement->n_ranks);
    feed->inputs = ARENA_NEW(&feed->arena, struct input, n_batches);
    feed->replicas =
        ARENA_NEW(&feed->arena, struct bags, n_batches * placement->n_pieces);
    if (input_link_open(&feed->link, placement, world, err))
        return -1;
    for (; feed->n_batches < n_batches; feed->n_batches++) {
        struct input *input = &feed->inputs[feed->n_batches];

        if (input_open(input, placement, &feed->link,
                       STEP_BATCH + feed->n_batches, err)) {
            input_close(input);
            return -1;
        }
    }
    return open_works(feed, err);
}

void feed_close(struct feed *feed)
{
    const struct placement *placement = feed->placement;

    for (uint32_t r = 0; placement && r < placement->n_ranks; r++)
        rank_work_close(&feed->works[r]);
    for (size_t i = 0; placement && i < feed->n_batches * placement->n_pieces;
         i++)
        bags_release(&feed->replicas[i]);
    for (unsigned b = 0; b < feed->n_batches; b++)
        input_close(&feed->inputs[b]);
    input_link_close(&feed->link);
    arena_release(&feed->arena);
    *feed = (struct feed){0};
}

/* Stores the lookups of all groups of a rank in the set `set` of its work. */
static int place(struct feed *feed, unsigned batch, unsigned set, uint32_t rank,
                 struct err *err)
{
    const struct rank_work *work = &feed->works[rank];
    struct device *device = feed->placement->device;
    struct device *through = device_is_host(device) ? feed->link.host : device;
    int rc = 0;

    for (size_t g = 0; !rc && g < work->n_groups; g++) {
        struct group_work *own = &work->groups[g];
        const struct group *group = &own->group;
        struct bags *parts = mem_alloc(group->n_pieces, sizeof(*parts));

        for (uint32_t i = 0; i < group->n_pieces; i++)
            parts[i] = bags_of(feed, batch, group->pieces[i]);
        if (group->n_bags)
            rc = index_batch_place(&own->sets[set], through, group, parts, err);
        mem_free(parts);
    }
    return rc;
}

int feed_ids(struct feed *feed, unsigned batch, unsigned set, struct err *err)
{
    const struct rank_range here = feed->placement->here;
    struct input *input = &feed->inputs[batch];

    for (uint32_t r = here.begin; r < here.end; r++)
        input_pack(input, r);
    if (input_exchange(input, err) || input_bring_back(input, err))
        return -1;
    for (uint32_t r = here.begin; r < here.end; r++) {
        input_permute(input, r, NULL);
        if (place(feed, batch, set, r, err))
            return -1;
    }
    return 0;
}

int feed_features(const struct feed *feed, unsigned batch, uint32_t rank,
                  struct dense_net *net, struct err *err)
{
    const struct placement *placement = feed->placement;
    const struct dense *dense = feed->dense;
    const uint32_t n_features = dense_n_features(dense);
    const uint32_t n_labels = dense_n_outputs(dense);
    const uint64_t first =
        (uint64_t)feed->inputs[batch].number * placement->batch +
        placement_sample(placement, rank);
    const uint64_t n = net->n_samples;
    float *features = mem_alloc(n * n_features, sizeof(*features));
    float *labels = mem_alloc(n * n_labels, sizeof(*labels));
    int rc;

    for (uint64_t i = 0; i < n; i++)
        values_features(features + i * n_features, placement->seed, first + i,
                        n_features);
    for (uint64_t i = 0; i < n * n_labels; i++)
        labels[i] = values_label(placement->seed, first * n_labels + i);
    rc = device_upload(net->device, net->d_features, features,
                       n * n_features * sizeof(*features), err) ||
         device_upload(net->device, net->d_labels, labels,
                       n * n_labels * sizeof(*labels), err);
    mem_free(features);
    mem_free(labels);
    return rc ? -1 : 0;
}

struct feed_thread {
    struct feed *feed;
    unsigned batch, set;
    pthread_t thread;
    bool is_started; /* false: the caller's thread has done the work */
    double ms;
    int rc;
    struct err err;
};

static void *run_thread(void *ctx)
{
    struct feed_thread *own = ctx;
    const double begin_ms = clock_ms();

    own->rc = feed_ids(own->feed, own->batch, own->set, &own->err);
    own->ms = clock_ms() - begin_ms;
    return NULL;
}

struct feed_thread *feed_start(struct feed *feed, unsigned batch, unsigned set)
{
    struct feed_thread *own = mem_alloc(1, sizeof(*own));
    sigset_t all, before;

    *own = (struct feed_thread){.feed = feed, .batch = batch, .set = set};
    /* Signals go to the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    own->is_started = !pthread_create(&own->thread, NULL, run_thread, own);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!own->is_started)
        run_thread(own);
    return own;
}

int feed_finish(struct feed_thread *thread, double *ms, struct err *err)
{
    int rc;

    if (!thread)
        return 0;
    if (thread->is_started)
        pthread_join(thread->thread, NULL);
    rc = thread->rc;
    *ms = thread->ms;
    if (rc)
        *err = thread->err;
    mem_free(thread);
    return rc;
}
