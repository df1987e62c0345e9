/* SPDX-License-Identifier: MIT */
/* Each kind of change does what search/tuning.h describes, begins where that
 * file states, and occurs with the frequency given there. */
#include "search/moves.h"

#include "search/evaluator.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_TABLES 6
#define N_DEVICES 4
#define PINNED 2 /* table */
#define ITS_DEVICE 1
#define N_CANDIDATES 600

/* Tables, whole or cut by columns, one of them pinned. */
struct site {
    struct arena arena;
    struct problem problem;
    struct random_oracle oracle;
    struct tuning tuning;
    struct search_space space;
    struct evaluator evaluator;
    struct rng rng;
};

static bool is_pinned(const struct site *site, uint32_t unit)
{
    return site->space.units[unit].pin >= 0;
}

static uint32_t unit_at(const struct site *site, uint32_t piece)
{
    return site->space.types[site->evaluator.assignment.pieces[piece].type]
        .unit;
}

static void site_open(struct site *site)
{
    const uint64_t rows[N_TABLES] = {1000, 2000, 500, 70000, 12, 300};
    const uint32_t dims[N_TABLES] = {64, 32, 64, 16, 8, 64};
    struct snapshot start = {0};
    struct err err = {0};

    *site = (struct site){.tuning = tuning_default};
    rng_init(&site->rng, 71, 0);
    fake_problem(&site->problem, rows, dims, N_TABLES, N_DEVICES,
                 UINT64_C(1) << 30, &site->arena);
    site->problem.kinds = SHARD_TABLE | SHARD_COLUMN;
    site->problem.tables[PINNED].device = ITS_DEVICE;
    do
        random_oracle_init(&site->oracle, &site->problem, &site->rng);
    while (!site->oracle.base.ops->terms || site->oracle.base.is_additive);
    ok(!space_init(&site->space, &site->problem, &site->oracle.base, NULL, NULL,
                   &site->arena, &err),
       "a site: %s", err.msg);
    for (uint32_t u = 0; u < N_TABLES; u++)
        *snapshot_next(&start) = (struct change){
            .piece = NO_PIECE,
            .type = site->space.units[u].whole[TIER_HBM],
            .device = is_pinned(site, u) ? ITS_DEVICE : u % N_DEVICES};
    evaluator_init(&site->evaluator, &site->space);
    snapshot_load(&start, &site->evaluator.assignment);
    snapshot_release(&start);
    site->space.tuning = &site->tuning;
}

static void site_close(struct site *site)
{
    evaluator_release(&site->evaluator);
    arena_release(&site->arena);
}

/* Makes propose() use only this kind of change, and rebuilds in the given
 * number of 1000 cases. */
static void allow(struct site *site, enum change_kind kind, uint32_t rebuilds)
{
    memset(site->tuning.changes, 0, sizeof(site->tuning.changes));
    site->tuning.changes[0][kind] = 1;
    site->tuning.rebuilds = rebuilds;
}

/* Changes the assignment by a few random changes of any kind. */
static void wander(struct site *site)
{
    site->tuning = tuning_default;
    for (unsigned i = 0; i < 5; i++) {
        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        if (site->evaluator.candidate.changes.n &&
            isfinite(evaluator_price(&site->evaluator)))
            candidate_commit(&site->evaluator.assignment,
                             &site->evaluator.candidate);
    }
}

/* Width steps of each unit on each device, before and after a candidate. */
struct flow {
    uint32_t before[N_TABLES][N_DEVICES], after[N_TABLES][N_DEVICES];
};

static void find_flow(struct flow *flow, const struct site *site)
{
    const struct assignment *assignment = &site->evaluator.assignment;
    const struct candidate *candidate = &site->evaluator.candidate;

    *flow = (struct flow){0};
    for (uint32_t i = 0; i < assignment->n_pieces; i++) {
        const struct change *piece = &assignment->pieces[i];

        if (piece->type != NO_TYPE)
            flow->before[unit_at(site, i)][piece->device] +=
                site->space.types[piece->type].width / 4;
    }
    for (uint32_t u = 0; u < N_TABLES; u++)
        for (struct unit_walk walk = {.unit = u,
                                     .held = assignment->first_of[u]};
             candidate_walk(&walk, candidate, assignment);)
            flow->after[u][walk.piece.device] +=
                site->space.types[walk.piece.type].width / 4;
}

/* A transfer of n width steps of a unit from one device to another. n is
 * UINT32_MAX if the unit changes in any other way. */
struct stream {
    uint32_t unit, from, to, n;
};

static uint32_t find_streams(const struct flow *flow,
                             struct stream streams[N_TABLES])
{
    uint32_t n = 0;

    for (uint32_t u = 0; u < N_TABLES; u++) {
        struct stream stream = {u, NO_PIECE, NO_PIECE, 0};
        unsigned n_less = 0, n_more = 0;

        for (uint32_t r = 0; r < N_DEVICES; r++) {
            if (flow->after[u][r] < flow->before[u][r]) {
                stream.from = r;
                stream.n = flow->before[u][r] - flow->after[u][r];
                n_less++;
            } else if (flow->after[u][r] > flow->before[u][r]) {
                stream.to = r;
                n_more++;
            }
        }
        if (!n_less && !n_more)
            continue;
        if (n_less != 1 || n_more != 1 ||
            flow->after[u][stream.to] - flow->before[u][stream.to] != stream.n)
            stream.n = UINT32_MAX;
        streams[n++] = stream;
    }
    return n;
}

static bool is_right(enum change_kind kind, const struct flow *flow)
{
    struct stream all[N_TABLES];
    const struct stream *a = &all[0], *b = &all[1];
    const uint32_t n = find_streams(flow, all);
    uint32_t held, there;

    for (uint32_t i = 0; i < n; i++)
        if (all[i].n == UINT32_MAX)
            return false;
    /* a table whose pieces of two widths are swapped counts as one stream */
    if (!n || n > 2 || (n == 2 && (a->from != b->to || a->to != b->from)))
        return false;
    held = flow->before[a->unit][a->from];
    there = flow->before[a->unit][a->to];
    switch (kind) {
    case CHANGE_MOVE:
        return n == 1 && a->n == held;
    case CHANGE_SWAP:
        return n == 1 ? a->n == held - there
                      : a->n == held && b->n == flow->before[b->unit][b->from];
    case CHANGE_TRADE:
        return n == 2 && a->n == b->n;
    case CHANGE_SPLIT:
        return n == 1 && a->n < held;
    case CHANGE_MERGE:
        return n == 1 && a->n == held && there;
    case CHANGE_RESPLIT:
        return n == 1 && a->n < held && there;
    case N_CHANGE_KINDS:
        break;
    }
    return false;
}

#define NAME(id, name, few, many) #name,
static const char *const names[] = {CHANGE_KINDS(NAME)};

static void check_kind(struct site *site, enum change_kind kind)
{
    const struct candidate *candidate = &site->evaluator.candidate;
    unsigned n_made = 0, n_wrong = 0, n_pinned = 0;

    for (unsigned i = 0; i < N_CANDIDATES; i++) {
        struct flow flow;

        wander(site);
        allow(site, kind, 0);
        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        if (!candidate->changes.n)
            continue;
        n_made++;
        find_flow(&flow, site);
        n_wrong += !is_right(kind, &flow);
        for (uint32_t u = 0; u < N_TABLES; u++)
            n_pinned +=
                is_pinned(site, u) && memcmp(flow.before[u], flow.after[u],
                                             sizeof(flow.before[u])) != 0;
    }
    ok(n_made > N_CANDIDATES / 8, "%s: %u of %u draws lead to one", names[kind],
       n_made, N_CANDIDATES);
    is_i64(n_wrong, 0, "each candidate is of this kind");
    is_i64(n_pinned, 0, "pinned tables do not change");
}

/* Splits and trades take any number of columns, but never all, from a whole
 * table of 16 width steps. */
static void check_numbers(struct site *site, enum change_kind kind)
{
    unsigned seen = 0; /* one bit per number of width steps */

    allow(site, kind, 0);
    for (unsigned i = 0; i < 4 * N_CANDIDATES; i++) {
        struct stream all[N_TABLES];
        struct flow flow;

        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        find_flow(&flow, site);
        if (find_streams(&flow, all) &&
            flow.before[all[0].unit][all[0].from] == 16)
            seen |= 1u << all[0].n;
    }
    is_i64(seen & 0xffff, 0xfffe, names[kind]);
}

/* Checks that n_got of n draws agree with the expected `share`. */
static void is_share(unsigned n_got, unsigned n, double share, const char *name)
{
    ok(fabs(n_got - share * n) <= 4 * sqrt(n * share * (1 - share)),
       "%s: %u of %u, %.1f %% are expected", name, n_got, n, 100 * share);
}

static void check_shares(struct site *site)
{
    unsigned n = 0, n_splits = 0, n_rebuilds = 0;

    allow(site, CHANGE_MOVE, 0);
    site->tuning.changes[0][CHANGE_SPLIT] = 3;
    for (unsigned i = 0; i < 4 * N_CANDIDATES; i++) {
        struct stream all[N_TABLES];
        struct flow flow;

        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        find_flow(&flow, site);
        if (!find_streams(&flow, all))
            continue;
        n++;
        n_splits += all[0].n < flow.before[all[0].unit][all[0].from];
    }
    is_share(n_splits, n, 0.75, "three splits a move");
    allow(site, CHANGE_MERGE, 300); /* which whole tables cannot do */
    for (unsigned i = 0; i < 4 * N_CANDIDATES; i++) {
        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        n_rebuilds += site->evaluator.candidate.changes.n > 0;
    }
    /* a rebuild whose only table would be pinned is dropped */
    ok(n_rebuilds < 0.33 * 4 * N_CANDIDATES &&
           n_rebuilds > 0.22 * 4 * N_CANDIDATES,
       "of %u candidates %u are rebuilds, 30 %% at most", 4 * N_CANDIDATES,
       n_rebuilds);
}

/* Changes begin on a device that leads a term, in proportion to the size of the
 * term, or at any piece. */
static void check_begin(struct site *site, bool anywhere)
{
    const struct assignment *assignment = &site->evaluator.assignment;
    const uint32_t *leader = assignment->leader;
    unsigned n_from[N_DEVICES] = {0}, n = 0;
    double share[N_DEVICES] = {0}, sum = 0;

    do
        wander(site);
    while (leader[0] == leader[1] || leader[0] == ITS_DEVICE ||
           leader[1] == ITS_DEVICE);
    for (uint32_t r = 0; anywhere && r < N_DEVICES; r++) {
        const struct holding *on = &assignment->holdings[r];

        share[r] = on->n - (r == ITS_DEVICE);
    }
    for (uint32_t k = 0; !anywhere && k < 2; k++)
        share[leader[k]] = assignment->most_ms[k];
    for (uint32_t r = 0; r < N_DEVICES; r++)
        sum += share[r];
    allow(site, CHANGE_MOVE, 0);
    site->tuning.anywhere = anywhere ? 1000 : 0;
    for (unsigned i = 0; i < 4 * N_CANDIDATES; i++) {
        struct stream all[N_TABLES];
        struct flow flow;

        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        find_flow(&flow, site);
        if (find_streams(&flow, all)) {
            n_from[all[0].from]++;
            n++;
        }
    }
    for (uint32_t r = 0; r < N_DEVICES; r++)
        is_share(n_from[r], n, share[r] / sum,
                 anywhere ? "begins at any piece"
                          : "begins at what sets the total");
}

/* Checks how many whole tables a rebuild removes, and how many it cuts. */
static void check_rebuilds(struct site *site, uint32_t recuts)
{
    unsigned n_of[TUNING_MAX_REBUILT + 1] = {0}, n_pinned = 0, n_cut = 0;
    const struct candidate *candidate = &site->evaluator.candidate;

    allow(site, CHANGE_MOVE, 1000);
    site->tuning.n_rebuilt = 3;
    site->tuning.recuts = recuts;
    site->tuning.pours = false;
    for (unsigned i = 0; i < N_CANDIDATES; i++) {
        unsigned n_off = 0, n_several = 0, n_pieces[N_TABLES] = {0};

        propose(&site->evaluator.candidate, &site->evaluator.assignment,
                &site->rng);
        for (uint32_t c = 0; c < candidate->changes.n; c++) {
            const struct change *change = &candidate->changes.pieces[c];

            n_off += change->type == NO_TYPE;
            if (change->type == NO_TYPE)
                n_pinned += is_pinned(site, unit_at(site, change->piece));
            else
                n_several +=
                    ++n_pieces[site->space.types[change->type].unit] == 2;
        }
        n_of[n_off < TUNING_MAX_REBUILT ? n_off : TUNING_MAX_REBUILT]++;
        n_cut += n_several > 1;
    }
    ok(n_of[1] && n_of[2] && n_of[3] && !n_of[4] && !n_pinned,
       "one, two or three tables are rebuilt (%u, %u, %u times), pinned %u",
       n_of[1], n_of[2], n_of[3], n_pinned);
    ok((n_cut > 0) == (recuts > 0), "some %u times several are cut", n_cut);
}

int main(void)
{
    struct site site;

    site_open(&site);
    check_numbers(&site, CHANGE_SPLIT);
    check_numbers(&site, CHANGE_TRADE);
    check_shares(&site);
    check_rebuilds(&site, 0);
    check_rebuilds(&site, 1000);
    for (enum change_kind kind = CHANGE_MOVE; kind < N_CHANGE_KINDS; kind++)
        check_kind(&site, kind);
    check_begin(&site, true);
    check_begin(&site, false);
    site_close(&site);
    return tap_done();
}
