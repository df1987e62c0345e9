/* SPDX-License-Identifier: MIT */
/* The Zipf exponent estimated from ids equals the exponent that the index
 * stream was drawn with, for any order of the rows. */
#include "core/profile.h"
#include "device/stream.h"
#include "device/stream_math.h"
#include "tests/tap.h"

#define PIECE 65536u

static const struct {
    double alpha;
    uint32_t n_rows;
    enum row_order order;
    bool is_given; /* the number of rows is given */
} cases[] = {
    {1.05, 40000000, ROW_ORDER_HASHED, true},
    {1.05, 40000000, ROW_ORDER_FREQUENCY, true},
    {0.6, 10000000, ROW_ORDER_HASHED, true},
    {1.5, 40000000, ROW_ORDER_UNIFORM, true},
    {2.5, 1000000, ROW_ORDER_HASHED, true},
    {0.9, 1000, ROW_ORDER_HASHED, false},
    {0.3, 100000, ROW_ORDER_HASHED, false},
    {1.2, 7, ROW_ORDER_HASHED, true},
    {0, 100000, ROW_ORDER_HASHED, true},
};

int main(void)
{
    const uint32_t n_ids = (uint32_t)tap_size(2000000, 100000000);
    int64_t *ids = mem_alloc(PIECE, sizeof(*ids));

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        const uint32_t n_rows = cases[c].n_rows;
        const struct profile_options options = {
            .batch = PIECE,
            .local_batch = PIECE,
            .n_rows = cases[c].is_given ? n_rows : 0,
            .max_rows = n_rows};
        struct profile *profile = profile_open(&options);
        struct profile_result got;
        struct stream_zipf zipf;
        struct row_map map;
        struct arena arena = {0};
        struct err err = {0};
        int failed = 0;

        stream_zipf_init(&zipf, cases[c].alpha, n_rows);
        row_map_init(&map, cases[c].order, n_rows, 7);
        for (uint32_t i = 0; i < n_ids; i += PIECE) {
            for (uint32_t j = 0; j < PIECE; j++)
                ids[j] = (int64_t)row_of_rank(
                    &map, stream_zipf_draw(&zipf, 5, i + j));
            failed |= profile_add(profile, ids, PIECE, &err);
            profile_end(profile, PIECE);
        }
        profile_finish(profile, &got, &arena);
        ok(!failed && fabs(got.zipf_alpha - cases[c].alpha) <= 0.02,
           "Zipf %g over %" PRIu32 " rows: %.4f of %" PRIu64 " ids",
           cases[c].alpha, n_rows, got.zipf_alpha, got.n_ids);
        profile_close(profile);
        arena_release(&arena);
    }
    mem_free(ids);
    return tap_done();
}
