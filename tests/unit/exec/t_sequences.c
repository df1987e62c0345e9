/* SPDX-License-Identifier: MIT */
#include "exec/sequences.h"

#include "device/interference_probe.h"
#include "exec/exec.h"
#include "exec/first_uses.h"
#include "exec/input.h"
#include "sink.h"
#include "stage.h"
#include "tests/tap.h"

/*
 * Sequences: numbers of vectors, their places, and tests that the comparison
 * notices vectors and gradients that are at wrong places or missing. A step
 * runs in parts, and the test changes vectors between them. Runs on a GPU too,
 * if there is one.
 */
#define BATCH 65
#define N_LOOKUPS (4 * BATCH)
#define N_ROWS 20

/* Makes a plan of two ranks. Rank 0 has columns 0..8 of "halves" and rows 0..8
 * of "rows", rank 1 has the rest; "copied" is on both. */
static void place(struct stage *stage, enum device_kind kind, enum dedup dedup)
{
    static const char *const names[] = {"halves", "rows", "copied"};
    struct fixture *fixture = &stage->fixture;

    memset(stage, 0, sizeof(*stage));
    fixture_init_on(fixture, kind, 2, BATCH);
    for (unsigned t = 0; t < 3; t++) {
        struct table *table = add_table(fixture, names[t], N_ROWS, 16, 4);

        table->output = OUTPUT_SEQUENCE;
        table->num_outputs = 2;
        table->zipf_alpha = 0;
        if (t == 0) {
            add_columns(fixture, 0, 0, 8);
            add_columns(fixture, 1, 8, 16);
        } else if (t == 1) {
            add_rows(fixture, 0, 0, 8);
            add_rows(fixture, 1, 8, N_ROWS);
        } else {
            add_replicas(fixture);
        }
    }
    fixture->plan.problem.job.dedup = dedup;
    stage_open(stage);
}

/* Returns the piece of table t on a rank. */
static const struct piece *piece_of(const struct stage *stage, unsigned t,
                                    uint32_t rank)
{
    return stage->placement.table_pieces[t] + rank;
}

static void download(struct stage *stage, void *to, const void *d_from,
                     size_t n_bytes)
{
    struct err err;

    if (device_download(stage->fixture.device, to, d_from, n_bytes, &err))
        fixture_bail(&err);
}

static void upload(struct stage *stage, void *d_to, const void *from,
                   size_t n_bytes)
{
    struct err err;

    if (device_upload(stage->fixture.device, d_to, from, n_bytes, &err))
        fixture_bail(&err);
}

/* Exchanges the first vector of n with the first one that differs from it. */
static void swap_vectors(struct stage *stage, char *d_vectors, uint64_t n,
                         size_t vector_bytes)
{
    char first[256], other[256];

    download(stage, first, d_vectors, vector_bytes);
    for (uint64_t i = 1; i < n; i++) {
        download(stage, other, d_vectors + i * vector_bytes, vector_bytes);
        if (!memcmp(first, other, vector_bytes))
            continue;
        upload(stage, d_vectors, other, vector_bytes);
        upload(stage, d_vectors + i * vector_bytes, first, vector_bytes);
        return;
    }
    ok(0, "all vectors are equal");
}

/* Clears n vectors, as if nobody had sent them. */
static void clear_vectors(struct stage *stage, char *d_vectors, uint64_t n,
                          size_t vector_bytes)
{
    char *zeros = mem_alloc((size_t)n, vector_bytes);

    upload(stage, d_vectors, zeros, (size_t)n * vector_bytes);
    mem_free(zeros);
}

/* Spoils the vectors of table t that `receiver` got from rank `from`, and tests
 * that the comparison of outputs names the table. */
static void
spoil_outputs(struct stage *stage, unsigned t, uint32_t from, uint32_t receiver,
              void (*change)(struct stage *, char *, uint64_t, size_t),
              const char *what)
{
    const struct group *group = piece_of(stage, t, from)->group;
    struct output_block block = exchange_block(&stage->set, group, receiver);
    const size_t n_bytes = (size_t)block.n_bags * group_bag_bytes(group);
    char *sound = mem_alloc(n_bytes, 1);

    download(stage, sound, block.d_at, n_bytes);
    change(stage, block.d_at, block.n_bags, group_bag_bytes(group));
    is_str(failed_table(stage, VERIFY_OUTPUTS), stage->fixture.tables[t].name,
           what);
    upload(stage, block.d_at, sound, n_bytes);
    is_str(failed_table(stage, VERIFY_OUTPUTS), NULL, "... until repaired");
    mem_free(sound);
}

static void test_outputs(enum device_kind kind, enum dedup dedup)
{
    struct stage stage;

    place(&stage, kind, dedup);
    stage_forward(&stage);
    printf("# device %d, de-duplicated: %s\n", (int)kind, dedup_names[dedup]);
    is_str(failed_table(&stage, VERIFY_OUTPUTS), NULL, "vectors agree");
    is_i64((int64_t)stage.verify.found.tallies[VERIFY_OUTPUTS].n,
           3 * N_LOOKUPS * 16, "... those of every lookup");
    spoil_outputs(&stage, 1, 0, 1, swap_vectors,
                  "a vector at the place of another one is noticed");
    spoil_outputs(&stage, 0, 1, 0, swap_vectors, "... also one of a half");
    spoil_outputs(&stage, 2, 1, 1, swap_vectors, "... and of a replica");
    spoil_outputs(&stage, 1, 1, 0, clear_vectors,
                  "a row block that sends nothing is noticed");
    stage_close(&stage);
}

/* Runs a step, but changes the gradients that rank `rank` received for its
 * piece of table t. */
static void spoil_gradients(
    enum device_kind kind, enum dedup dedup, unsigned t, uint32_t rank,
    void (*change)(struct stage *, char *, uint64_t, size_t), const char *what)
{
    struct stage stage;
    const struct group *group;

    place(&stage, kind, dedup);
    stage_forward(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "halves",
           "weights before their update are noticed");
    stage_gradients(&stage);
    group = piece_of(&stage, t, rank)->group;
    if (change)
        change(&stage, group->d_out, group->n_bags, group_bag_bytes(group));
    stage_update(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS),
           change ? stage.fixture.tables[t].name : NULL, what);
    if (!change)
        is_i64((int64_t)stage.verify.found.tallies[VERIFY_WEIGHTS].n,
               N_ROWS * (16 + 16 + 2 * 16), "... and all of them");
    stage_close(&stage);
}

static void test_gradients(enum device_kind kind, enum dedup dedup)
{
    spoil_gradients(kind, dedup, 0, 0, NULL, "updated weights agree");
    spoil_gradients(kind, dedup, 1, 1, swap_vectors,
                    "a gradient at the place of another one is noticed");
    spoil_gradients(kind, dedup, 0, 1, swap_vectors, "... also one of a half");
    spoil_gradients(kind, dedup, 1, 0, clear_vectors,
                    "a row block that gets no gradients is noticed");
}

/* Each rank gets one vector from a whole column range for each of its lookups;
 * row blocks share them. With de-duplication it is one for each of its rows. */
static void test_counts(enum dedup dedup)
{
    struct stage stage;

    place(&stage, DEVICE_CPU, dedup);
    for (uint32_t r = 0; r < 2; r++) {
        uint64_t counts[3][2], n_rows = 0, n_lookups, n_seen[N_ROWS] = {0};
        struct bags bags;

        for (unsigned t = 0; t < 3; t++)
            for (uint32_t k = 0; k < 2; k++)
                counts[t][k] =
                    exchange_block(&stage.set, piece_of(&stage, t, k)->group, r)
                        .n_bags;
        batches_draw_table(&bags, &stage.placement, 1,
                           (struct rank_range){r, r + 1}, STEP_BATCH, false);
        n_lookups = bags.offsets[2 * (r ? BATCH - BATCH / 2 : BATCH / 2)];
        for (uint64_t i = 0; i < n_lookups; i++)
            n_rows += !n_seen[bags.indices[i]]++;
        bags_release(&bags);
        is_i64((int64_t)(counts[1][0] + counts[1][1]),
               (int64_t)(dedup == DEDUP_IDS ? n_rows : n_lookups),
               dedup == DEDUP_IDS ? "a rank gets a vector for each of its rows"
                                  : "a rank gets a vector for each lookup");
        ok(counts[0][0] == counts[0][1] && counts[1][0] != counts[1][1],
           "... as many of each half, more of the larger row block");
        ok(counts[2][r] && !counts[2][1 - r],
           "... and vectors of its own replica only");
    }
    stage_close(&stage);
}

/* The ids that arrive are those that the lookups use. */
static void test_input(enum dedup dedup)
{
    struct input_link link;
    struct stage stage;
    struct input input;
    struct err err = {0};

    place(&stage, DEVICE_CPU, dedup);
    if (input_link_open(&link, &stage.placement, stage.fixture.world, &err) ||
        input_open(&input, &stage.placement, &link, STEP_BATCH, &err))
        fixture_bail(&err);
    for (uint32_t r = 0; r < 2; r++)
        input_permute(&input, r, &stage.verify);
    is_str(stage.verify.found.failure, "", "ids arrive");
    /* one more id in the message from rank 0 to rank 1 */
    ++*(uint32_t *)(void *)input.came[1];
    input_permute(&input, 1, &stage.verify);
    is_str(stage.verify.found.failure,
           "table 'halves': the ids that GPU 1 received are not the ids that "
           "it looks up",
           "... and a wrong number of ids is noticed");
    input_close(&input);
    input_link_close(&link);
    stage_close(&stage);
}

/* A sequence has as many vectors as lookups where they are made and where they
 * arrive, and the comparison copies those of one receiver. */
static void test_need(void)
{
    const double n = 40 * BATCH, vector_bytes = 64 * sizeof(float);
    struct placement placement;
    struct fixture fixture;
    struct placement_need need;
    struct err err = {0};
    double input, work;
    unsigned n_sets;

    fixture_init(&fixture, 2, BATCH);
    add_table(&fixture, "long", 1000, 64, 40)->output = OUTPUT_SEQUENCE;
    add_whole(&fixture, 0);
    plan_derive_kinds(&fixture.plan);
    if (placement_init(&placement, &fixture.plan, fixture.comm, 1, 3,
                       &fixture.arena, &err))
        fixture_bail(&err);
    sequences_count(&placement, &fixture.arena);
    is_near(placement_lookups(&placement, placement.pieces), n, 0,
            "lookups are counted");
    placement_need(&need, &placement);
    n_sets = rank_work_n_cold_sets(&placement, 0);
    input = 4 * (PROBLEM_ID_BYTES * n + 8 * BATCH);
    work = n_sets * (8 + 4) * n + n * (16 + vector_bytes / LOOKUP_RUN_PART);
    is_near(need.batch_bytes - (double)INTERFERENCE_PROBE_BYTES,
            2 * n * vector_bytes + fmax(input, work) + 28 * n + 8 * BATCH +
                n / 2 * vector_bytes,
            1, "memory of vectors, lookups and the comparison");
    placement_release(&placement);
    fixture_release(&fixture);
}

/* Counts the samples and the exchanges that a run stores. */
struct stored {
    unsigned n_samples, n_exchanges;
};

static int count_sample(void *ctx, const struct sample_setting *setting,
                        const struct sample *sample, struct err *err)
{
    (void)setting, (void)sample, (void)err;
    ((struct stored *)ctx)->n_samples++;
    return 0;
}

static int count_exchange(void *ctx, const struct sample_setting *setting,
                          const struct comm_sample *sample, struct err *err)
{
    (void)setting, (void)sample, (void)err;
    ((struct stored *)ctx)->n_exchanges++;
    return 0;
}

/* Samples describe pooled lookups, so ranks with sequences store none. */
static void test_samples(void)
{
    struct stored stored = {0};
    struct sample_sink sink = {.ctx = &stored,
                               .put = count_sample,
                               .put_comm = count_exchange,
                               .has = has_none};
    struct exec_options options;
    struct exec_result result;
    struct fixture fixture;
    struct err err = {0};

    fixture_init(&fixture, 2, BATCH);
    add_table(&fixture, "long", 100, 16, 9)->output = OUTPUT_SEQUENCE;
    add_whole(&fixture, 0);
    add_table(&fixture, "pooled", 100, 16, 9);
    add_whole(&fixture, 1);
    plan_derive_kinds(&fixture.plan);
    exec_options_init(&options);
    options.n_iterations = 1;
    options.wait_for_quiet = false;
    options.sink = &sink;
    for (unsigned has_sequence = 2; has_sequence-- > 0;) {
        fixture.tables[0].output =
            has_sequence ? OUTPUT_SEQUENCE : OUTPUT_POOLED;
        stored = (struct stored){0};
        ok(!exec_run(&result, &fixture.plan, fixture.world, fixture.device,
                     &options, &fixture.arena, &err) &&
               !result.failure,
           "a run that stores samples: %s", err.msg);
        ok(stored.n_samples == 2 - has_sequence &&
               stored.n_exchanges == 1 - has_sequence,
           "... of %u ranks and %u exchanges", stored.n_samples,
           stored.n_exchanges);
    }
    fixture_release(&fixture);
}

static void test_first_uses(void)
{
    static const uint32_t rows[] = {7, 3, 7, 0, UINT32_MAX, 3, UINT32_MAX};
    static const uint32_t want[] = {0, 1, 0, 3, 4, 1, 4};
    struct first_uses uses;

    first_uses_init(&uses, 4);
    for (unsigned round = 0; round < 2; round++) {
        unsigned n_right = 0;

        for (uint32_t i = 0; i < 7; i++)
            n_right += first_uses_add(&uses, rows[i], i) == want[i];
        is_i64(n_right, 7, "lookups know the first lookup of their row");
        first_uses_clear(&uses);
    }
    first_uses_release(&uses);
}

int main(void)
{
    test_first_uses();
    test_need();
    test_samples();
    for (unsigned dedup = DEDUP_NONE; dedup <= DEDUP_IDS; dedup++) {
        test_counts(dedup);
        test_input(dedup);
        test_outputs(DEVICE_CPU, dedup);
        test_gradients(DEVICE_CPU, dedup);
        if (!device_count(DEVICE_CUDA))
            continue;
        test_outputs(DEVICE_CUDA, dedup);
        test_gradients(DEVICE_CUDA, dedup);
    }
    return tap_done();
}
