/* SPDX-License-Identifier: MIT */
/* Orders of rows are permutations, and the hashed order is the one that the
 * manual defines. */
#include "core/row_order.h"

#include "base/hash.h"
#include "base/mem.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <string.h>

/* --- hash as defined in man/neuroshard-tables.5 --- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t draw(uint64_t seed, uint64_t counter)
{
    return mix(seed + (counter + 1) * 0x9e3779b97f4a7c15u);
}

static uint32_t f(uint64_t half, uint32_t key)
{
    uint32_t h = (uint32_t)half;

    h = (h + key) * 0x85ebca6bu;
    h = (h ^ h >> 15) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static uint64_t row_by_manual(const char *name, uint64_t n, uint64_t i)
{
    const uint64_t seed = draw(hash_bytes(name, strlen(name), 0), 1);
    uint64_t left, right, mask_left, mask_right;
    uint32_t key[4], b = 0, to_the_right;

    for (uint32_t r = 0; r < 4; r++)
        key[r] = (uint32_t)draw(seed, r);
    while (b < 64 && (n - 1) >> b)
        b++;
    to_the_right = b - b / 2;
    mask_right = (1ull << to_the_right) - 1;
    mask_left = (1ull << b / 2) - 1;
    do {
        left = i >> to_the_right;
        right = i & mask_right;
        right ^= f(left, key[0]) & mask_right;
        left ^= f(right, key[1]) & mask_left;
        right ^= f(left, key[2]) & mask_right;
        left ^= f(right, key[3]) & mask_left;
        i = left << to_the_right | right;
    } while (i >= n);
    return i;
}

static void test_manual(void)
{
    static const uint64_t sizes[] = {1,          2,          3,
                                     1000,       40000000,   UINT32_MAX,
                                     1ull << 32, 5000000000, 1ull << 62};
    static const char contents[] =
        "num_embeddings=40000000 dim=128 pooling_factor=100";
    static const uint64_t published[] = {31317561, 13765450, 24315566};
    struct row_map map;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        int is_same = 1;

        row_map_init(&map, ROW_ORDER_HASHED, sizes[s], hash_bytes("a", 1, 0));
        for (uint64_t i = 0; i < 1000 && i < sizes[s]; i++)
            is_same &= row_of_rank(&map, i) == row_by_manual("a", sizes[s], i);
        ok(is_same, "%" PRIu64 " rows: as the manual has it", sizes[s]);
    }
    row_map_init(&map, ROW_ORDER_HASHED, 40000000,
                 hash_bytes(contents, strlen(contents), 0));
    for (uint64_t i = 0; i < 3; i++)
        is_i64((int64_t)row_of_rank(&map, i), (int64_t)published[i],
               "the example of the manual");
}

static void test_permutation(enum row_order order, uint64_t n)
{
    char *seen = mem_alloc(n, 1);
    struct row_map map;
    uint64_t n_seen = 0;

    row_map_init(&map, order, n, hash_bytes("table", 5, 0));
    for (uint64_t rank = 0; rank < n; rank++) {
        uint64_t row = row_of_rank(&map, rank);

        n_seen += row < n && !seen[row];
        seen[row < n ? row : 0] = 1;
    }
    is_i64((int64_t)n_seen, (int64_t)n, row_order_names[order]);
    mem_free(seen);
}

/* In the uniform order, the hottest `ranks` rows spread evenly over the eighths
 * of the table, up to a few single rows. This holds for any number of ranks. */
static void test_even(uint64_t n)
{
    struct row_map map;
    double worst = 0;

    row_map_init(&map, ROW_ORDER_UNIFORM, n, 0);
    for (uint64_t ranks = 1; ranks <= 4096; ranks *= 2) {
        double in_block[8] = {0};

        for (uint64_t rank = 0; rank < ranks; rank++)
            in_block[row_of_rank(&map, rank) / (n / 8)]++;
        for (int b = 0; b < 8; b++) {
            double off = in_block[b] - (double)ranks / 8;

            worst = off > worst ? off : -off > worst ? -off : worst;
        }
    }
    ok(worst < 4, "%" PRIu64 " rows dealt out evenly: %g off at most", n,
       worst);
}

int main(void)
{
    test_manual();
    for (int order = 0; order < N_ROW_ORDERS; order++)
        for (uint64_t n = 1; n < 70000; n = n * 3 + 1)
            test_permutation((enum row_order)order, n);
    test_permutation(ROW_ORDER_UNIFORM, 65536);
    test_even(65536);
    test_even(5000000000);
    return tap_done();
}
