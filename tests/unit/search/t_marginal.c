/* SPDX-License-Identifier: MIT */
/* Loads of pieces. If only comm prices the exchange, a load is the increase of
 * the total, and a wider piece never counts less than a narrower one. If the
 * oracle has terms, a load is the standalone cost. */
#include "search/marginal.h"

#include "tests/unit/search/scene.h"

/* Returns the number of piece types whose load is above their standalone
 * cost. */
static unsigned n_above(const struct search_space *space)
{
    unsigned n = 0;

    for (uint32_t p = 0; p < space->n_types; p++)
        n += space->load_ms[p] > space->standalone_ms[p];
    return n;
}

/* Returns the number of widths whose load is below that of a narrower piece. */
static unsigned n_falling(const struct search_space *space)
{
    unsigned n = 0;

    for (uint32_t u = 0; u < space->n_units; u++)
        for (uint32_t q = 2; q < space->units[u].n_width_steps; q++)
            n += space->load_ms[unit_type_of_steps(&space->units[u], q,
                                                   TIER_HBM)] <
                 space->load_ms[unit_type_of_steps(&space->units[u], q - 1,
                                                   TIER_HBM)] -
                     1e-9;
    return n;
}

/* Returns the number of piece types whose load is not the increase of the
 * total. */
static unsigned n_wrong(const struct search_space *space)
{
    const struct oracle *oracle = space->oracle;
    double sums[SCENE_DEVICES * RANDOM_WIDTH] = {0}, ms[3 * SCENE_DEVICES];
    double share[RANDOM_WIDTH] = {0}, total_ms[2];
    unsigned n = 0;

    for (uint32_t u = 0; u < space->n_units; u++)
        for (unsigned w = 0; w < RANDOM_WIDTH; w++)
            share[w] +=
                space->vectors[space->units[u].whole[TIER_HBM] * RANDOM_WIDTH +
                               w] /
                SCENE_DEVICES;
    for (uint32_t p = 0; p < space->n_types; p++) {
        for (unsigned is_added = 0; is_added < 2; is_added++) {
            for (unsigned i = 0; i < SCENE_DEVICES * RANDOM_WIDTH; i++)
                sums[i] = share[i % RANDOM_WIDTH];
            for (unsigned w = 0; is_added && w < RANDOM_WIDTH; w++)
                sums[w] += space->vectors[p * RANDOM_WIDTH + w];
            oracle->ops->compute(oracle, sums, SCENE_DEVICES, ms);
            total_ms[is_added] = oracle_comm_total_ms(oracle, sums, ms);
        }
        n += !(fabs(fmax(0, total_ms[1] - total_ms[0]) - space->load_ms[p]) <
               1e-9 * total_ms[1]);
    }
    return n;
}

int main(void)
{
    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++) {
        struct scene scene;

        scene_open(&scene, sort);
        space_load_marginal(&scene.space, NULL);
        if (sort == BY_COMM) {
            is_i64(n_wrong(&scene.space), 0, "loads are rises of the total");
            is_i64(n_falling(&scene.space), 0, "wider pieces count no less");
            ok(n_above(&scene.space) > 0, "and the exchange counts");
        } else {
            ok(scene.space.load_ms == scene.space.standalone_ms,
               "by terms loads are of pieces alone");
        }
        scene_close(&scene);
    }
    return tap_done();
}
