/* SPDX-License-Identifier: MIT */
#include "base/radix_sort.h"

#include "base/mem.h"
#include "base/ranked.h"
#include "base/rng.h"
#include "tests/tap.h"

/* Lists of items, and the order that qsort gives them: sorted[i] is the
 * original index of item i. */
struct items {
    struct radix_sort sort;
    uint64_t *keys; /* the keys before the sort */
    size_t *order;
};

static const struct items *compared;

/* Compares two items by their bits in the mask, then by their indices. */
static int compare(const void *left, const void *right)
{
    const size_t *a = left, *b = right;
    const uint64_t mask = compared->sort.mask;
    const uint64_t keys[2] = {compared->keys[*a] & mask,
                              compared->keys[*b] & mask};

    return keys[0] != keys[1] ? ranked_compare_u64(&keys[0], &keys[1])
                              : (*a > *b) - (*a < *b);
}

static uint64_t key_of(const struct items *items, unsigned list, size_t i)
{
    return items->sort.key_bytes == 8
               ? ((const uint64_t *)items->sort.keys[list])[i]
               : ((const uint32_t *)items->sort.keys[list])[i];
}

/* Draws n items with keys below `n_keys`, shifted to the lowest bit of the
 * mask, and random bits outside the mask. */
static void items_open(struct items *items, struct rng *rng, size_t n,
                       unsigned key_bytes, uint64_t mask, uint64_t n_keys,
                       bool has_values)
{
    *items = (struct items){.sort = {.n = n, .key_bytes = key_bytes}};
    items->sort.mask = key_bytes == 8 ? mask : (uint32_t)mask;
    items->keys = mem_alloc(n, sizeof(*items->keys));
    items->order = mem_alloc(n, sizeof(*items->order));
    for (unsigned k = 0; k < 2; k++) {
        items->sort.keys[k] = mem_alloc(n, key_bytes);
        if (has_values)
            items->sort.values[k] = mem_alloc(n, sizeof(uint32_t));
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t some = rng_u64(rng) & ~mask;
        const int shift = mask ? __builtin_ctzll(mask) : 0;
        const uint64_t key = some | (rng_below(rng, n_keys) << shift & mask);

        items->order[i] = i;
        if (key_bytes == 8)
            ((uint64_t *)items->sort.keys[0])[i] = key;
        else
            ((uint32_t *)items->sort.keys[0])[i] = (uint32_t)key;
        items->keys[i] = key_of(items, 0, i);
        if (has_values)
            items->sort.values[0][i] = (uint32_t)i;
    }
    compared = items;
    if (n)
        qsort(items->order, n, sizeof(*items->order), compare);
}

static void items_close(struct items *items)
{
    for (unsigned k = 0; k < 2; k++) {
        mem_free(items->sort.keys[k]);
        mem_free(items->sort.values[k]);
    }
    mem_free(items->keys);
    mem_free(items->order);
}

/* Sorts, and returns the number of items that differ from the order of qsort.
 * Whole keys are compared, so items that are equal in the mask but differ in
 * other bits show whether the sort is stable. */
static size_t n_wrong(struct items *items)
{
    const unsigned sorted = radix_sort(&items->sort);
    const uint32_t *values = items->sort.values[sorted];
    size_t n = 0;

    for (size_t i = 0; i < items->sort.n; i++)
        n += key_of(items, sorted, i) != items->keys[items->order[i]] ||
             (values && values[i] != items->order[i]);
    return n;
}

/* Returns the difference of the sums of the keys in the two lists. */
static uint64_t list_difference(const struct items *items)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < items->sort.n; i++)
        sum += key_of(items, 0, i) - key_of(items, 1, i);
    return sum;
}

/* Masks of any width at any place, and masks with gaps. */
static void test_masks(void)
{
    size_t wrong = 0, lost = 0;
    struct rng rng;

    rng_init(&rng, 11, 0);
    for (size_t i = 0; i < tap_many(3000); i++) {
        const unsigned bits = 1 + rng_draw(&rng, 64);
        const unsigned shift = rng_draw(&rng, 65 - bits);
        const uint64_t gaps = i % 3 ? 0 : rng_u64(&rng) & rng_u64(&rng);
        const uint64_t mask = UINT64_MAX >> (64 - bits) << shift & ~gaps;
        const uint64_t n_keys = i % 2 ? UINT64_MAX : 1 + rng_draw(&rng, 300);
        const size_t n = (size_t)1 << rng_draw(&rng, 12);
        struct items items;

        items_open(&items, &rng, rng_draw(&rng, (uint32_t)n), i & 4 ? 8 : 4,
                   mask, n_keys, i & 8);
        wrong += n_wrong(&items);
        lost += items.sort.mask && list_difference(&items);
        items_close(&items);
    }
    is_i64((int64_t)wrong, 0, "keys of any width are sorted stably");
    is_i64((int64_t)lost, 0, "the other list holds the same keys");
}

static void test_few(void)
{
    struct rng rng;
    struct items items;

    rng_init(&rng, 12, 0);
    for (size_t n = 0; n < 3; n++) {
        items_open(&items, &rng, n, 8, UINT64_MAX, UINT64_MAX, true);
        is_i64((int64_t)n_wrong(&items), 0, "no item, one, and two");
        items_close(&items);
    }
    items_open(&items, &rng, 1000, 8, 0xfff0, 1, true);
    is_i64((int64_t)n_wrong(&items), 0, "equal keys keep their order");
    items_close(&items);
    items_open(&items, &rng, 1000, 4, 0, 1, true);
    is_i64(radix_sort(&items.sort), 0, "no bit to sort by: no pass");
    items_close(&items);
}

/* Large lists are sorted from the highest digit. */
static void test_large(void)
{
    static const struct {
        unsigned key_bytes;
        bool has_values;
        uint64_t mask, n_keys;
    } CASES[] = {
        {4, false, UINT32_MAX, UINT64_MAX},
        {4, true, 0xfffffff, 1000},
        {8, false, UINT64_C(0xffffffff) << 32, UINT64_MAX},
        {8, true, UINT64_MAX, UINT64_C(1) << 40},
    };
    struct rng rng;

    rng_init(&rng, 13, 0);
    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct items items;

        items_open(&items, &rng, (4u << 20) / CASES[i].key_bytes,
                   CASES[i].key_bytes, CASES[i].mask, CASES[i].n_keys,
                   CASES[i].has_values);
        is_i64((int64_t)n_wrong(&items), 0, "a large list is sorted stably");
        items_close(&items);
    }
}

static void test_places(void)
{
    /* two chunks with three digits each, and a fourth number that is unused */
    uint32_t counts[] = {2, 0, 1, 7, 1, 3, 4, 7};
    static const uint32_t want[] = {0, 3, 6, 7, 2, 3, 7, 7};

    radix_places(counts, 2, 4, 3);
    ok(!memcmp(counts, want, sizeof(want)),
       "places are ordered by digit, then by chunk");
}

int main(void)
{
    test_masks();
    test_few();
    test_large();
    test_places();
    return tap_done();
}
