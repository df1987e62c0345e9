/* SPDX-License-Identifier: MIT */
/* Equal GPUs exchange their names so that as many bytes as possible stay where
 * they are. */
#include "search/rename_gpus.h"

#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define GIB (UINT64_C(1) << 30)

/* Returns the best sum over all permutations of columns, from `row` on. */
static double best_sum(const double *value, uint32_t n, uint32_t row,
                       unsigned used)
{
    double best = row == n ? 0 : -INFINITY;

    for (uint32_t c = 0; c < n && row < n; c++)
        if (!(used >> c & 1))
            best = fmax(best, value[row * n + c] +
                                  best_sum(value, n, row + 1, used | 1u << c));
    return best;
}

/* Returns true if swapping the columns of two rows would gain. */
static bool two_gain(const uint32_t *column_of, const double *value, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            if (value[a * n + column_of[b]] + value[b * n + column_of[a]] >=
                value[a * n + column_of[a]] + value[b * n + column_of[b]] + 1)
                return true;
    return false;
}

/* After assign_by_swaps no swap gains any more, and the sum is near the
 * best. */
static void check_assignment(void)
{
    double all = 0, all_best = 0;
    size_t n_wrong = 0;
    struct rng rng;

    rng_init(&rng, 3, 0);
    for (unsigned i = 0; i < 300; i++) {
        uint32_t n = 1 + i % 6, column_of[6];
        double value[36], sum = 0, said;
        unsigned used = 0;

        for (uint32_t k = 0; k < n * n; k++)
            value[k] = (double)rng_below(&rng, 10);
        said = assign_by_swaps(column_of, value, n, n);
        for (uint32_t row = 0; row < n; row++) {
            sum += value[row * n + column_of[row]];
            used |= 1u << column_of[row];
        }
        n_wrong += used != (1u << n) - 1 || said != sum ||
                   two_gain(column_of, value, n);
        all += sum;
        all_best += best_sum(value, n, 0, 0);
    }
    is_i64((int64_t)n_wrong, 0, "assignments that no swap betters");
    ok(all > 0.95 * all_best && all <= all_best, "in sum %g of %g", all,
       all_best);
}

/* With values this large, adding one changes nothing. Swaps that gain nothing
 * must end the loop. */
static void check_large_values(void)
{
    const double huge[] = {1e19, 1e19, 1e19, 1e19};
    uint32_t column_of[2];

    ok(assign_by_swaps(column_of, huge, 2, 2) == 2e19 && column_of[0] == 0 &&
           column_of[1] == 1,
       "nothing is swapped for nothing");
}

#define N_NAMED 256u

/* One table on each of many GPUs. The names of the GPUs are shuffled within
 * each host, and the names of the hosts are rotated. rename_gpus must recover
 * the old names. */
static void check_many_names(uint32_t n_local)
{
    uint32_t now[N_NAMED], dims[N_NAMED];
    uint64_t rows[N_NAMED];
    struct snapshot assignment = {0};
    struct problem problem;
    struct oracle oracle;
    struct search_space space;
    struct current_plan current;
    struct err err = {0};
    struct arena arena = {0};
    struct plan from;
    struct rng rng;
    size_t n_wrong = 0;

    rng_init(&rng, 5, n_local);
    for (uint32_t r = 0; r < N_NAMED; r++) {
        rows[r] = 1000 + r;
        dims[r] = 16;
        now[r] = r;
    }
    fake_problem(&problem, rows, dims, N_NAMED, N_NAMED, GIB, &arena);
    problem.kinds = SHARD_TABLE;
    problem.cluster.devices_per_host = n_local;
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, now, N_NAMED, &arena);
    current_init(&current, &problem, &from, &arena);
    ok(!space_init(&space, &problem, &oracle, &current, NULL, &arena, &err),
       "many GPUs: %s", err.msg);
    for (uint32_t first = 0; first < N_NAMED; first += n_local)
        for (uint32_t k = n_local - 1; k; k--) {
            uint32_t *other = &now[first + rng_draw(&rng, k + 1)];
            uint32_t was = now[first + k];

            now[first + k] = *other;
            *other = was;
        }
    for (uint32_t u = 0; u < space.n_units; u++) {
        uint32_t device = now[space.units[u].tables[0]];

        *snapshot_next(&assignment) =
            (struct change){.piece = NO_PIECE,
                            .type = space.units[u].whole[TIER_HBM],
                            .device = (device + n_local) % N_NAMED};
    }
    rename_gpus(&assignment, &space);
    for (uint32_t i = 0; i < assignment.n; i++) {
        uint32_t unit = space.types[assignment.pieces[i].type].unit;

        n_wrong += assignment.pieces[i].device != space.units[unit].tables[0];
    }
    is_i64((int64_t)n_wrong, 0, "all have their old names");
    snapshot_release(&assignment);
    arena_release(&arena);
}

int main(void)
{
    check_assignment();
    check_large_values();
    check_many_names(N_NAMED);
    check_many_names(8);
    return tap_done();
}
