/* SPDX-License-Identifier: MIT */
#include "base/radix_sort.h"

#include <stdbool.h>
#include <string.h>

/* Largest number of bits of a digit. The counts of all digits fit in a
 * first-level cache. */
#define MAX_BITS 11
/* Least size of a list in bytes for which the highest digit is sorted first,
 * because so large a list does not fit in a second-level cache. */
#define LARGE_BYTES ((size_t)2 << 20)

/* A digit of a key is key >> shift & mask. */
struct digit {
    unsigned shift;
    uint32_t mask;
};

void radix_places(uint32_t *counts, size_t n_chunks, size_t stride,
                  uint32_t n_digits)
{
    uint32_t place = 0;

    for (uint32_t digit = 0; digit < n_digits; digit++)
        for (size_t chunk = 0; chunk < n_chunks; chunk++) {
            uint32_t *count = &counts[chunk * stride + digit];
            uint32_t n = *count;

            *count = place;
            place += n;
        }
}

/* Returns the digit of n_bits bits that starts at the lowest bit of the
 * mask. */
static struct digit lowest_digit(uint64_t mask, unsigned n_bits)
{
    const unsigned shift = (unsigned)__builtin_ctzll(mask);

    return (struct digit){shift,
                          (uint32_t)(mask >> shift) & ((1u << n_bits) - 1)};
}

/* Removes the lowest digit from the mask. */
static uint64_t without_lowest(uint64_t mask, unsigned n_bits)
{
    const struct digit digit = lowest_digit(mask, n_bits);

    return mask & ~((uint64_t)digit.mask << digit.shift);
}

static unsigned n_digits(uint64_t mask, unsigned n_bits)
{
    unsigned n = 0;

    for (; mask; mask = without_lowest(mask, n_bits))
        n++;
    return n;
}

/* Returns the number of bits of a digit with which a sort of n items takes the
 * least time. A pass takes about eight times as long for an item as for a
 * count. */
static unsigned best_bits(uint64_t mask, size_t n)
{
    unsigned best = 1;
    uint64_t least = UINT64_MAX;

    for (unsigned n_bits = 1; n_bits <= MAX_BITS; n_bits++) {
        const uint64_t time =
            n_digits(mask, n_bits) * (8 * (uint64_t)n + (1u << n_bits));

        if (time < least) {
            least = time;
            best = n_bits;
        }
    }
    return best;
}

static inline uint64_t get_key(const void *keys, size_t i, bool is_wide)
{
    return is_wide ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
}

static inline uint32_t digit_of(uint64_t key, struct digit digit)
{
    return (uint32_t)(key >> digit.shift) & digit.mask;
}

/* A pass by one digit, which also counts the next digit. To count it here takes
 * less time than to read the keys once more. */
struct pass {
    const struct radix_sort *sort;
    unsigned from; /* index of the lists that the pass reads */
    struct digit digit, next;
    uint32_t *places; /* place of the next item with each value of the digit */
    uint32_t *counts; /* number of items with each value of the next digit */
};

/* The compiler makes a version for each kind of items. */
static inline void move(const struct pass *pass, bool is_wide, bool has_values)
{
    const struct digit digit = pass->digit, next = pass->next;
    const void *keys = pass->sort->keys[pass->from];
    const uint32_t *values = pass->sort->values[pass->from];
    void *to = pass->sort->keys[!pass->from];
    uint32_t *to_values = pass->sort->values[!pass->from];
    uint32_t *places = pass->places, *counts = pass->counts;
    const size_t n = pass->sort->n;

    for (size_t i = 0; i < n; i++) {
        const uint64_t key = get_key(keys, i, is_wide);
        const size_t place = places[digit_of(key, digit)]++;

        if (is_wide)
            ((uint64_t *)to)[place] = key;
        else
            ((uint32_t *)to)[place] = (uint32_t)key;
        if (has_values)
            to_values[place] = values[i];
        counts[digit_of(key, next)]++;
    }
}

static void run_pass(const struct pass *pass)
{
    const bool has_values = pass->sort->values[0];

    radix_places(pass->places, 1, 0, pass->digit.mask + 1);
    memset(pass->counts, 0, (pass->next.mask + 1) * sizeof(*pass->counts));
    if (pass->sort->key_bytes == 8 && has_values)
        move(pass, true, true);
    else if (pass->sort->key_bytes == 8)
        move(pass, true, false);
    else if (has_values)
        move(pass, false, true);
    else
        move(pass, false, false);
}

static void count(const struct radix_sort *sort, struct digit digit,
                  uint32_t counts[1 << MAX_BITS])
{
    const size_t n = sort->n;

    memset(counts, 0, (digit.mask + 1) * sizeof(*counts));
    if (sort->key_bytes == 8)
        for (size_t i = 0; i < n; i++)
            counts[digit_of(get_key(sort->keys[0], i, true), digit)]++;
    else
        for (size_t i = 0; i < n; i++)
            counts[digit_of(get_key(sort->keys[0], i, false), digit)]++;
}

/* Sorts from the lowest digit. Returns the index of the sorted lists. If there
 * is one digit, ends[0][d] is at the end the number of items whose digit is at
 * most d. */
static unsigned sort_low(const struct radix_sort *sort, unsigned n_bits,
                         uint32_t ends[2][1 << MAX_BITS])
{
    const struct digit first = lowest_digit(sort->mask, n_bits);
    struct pass pass = {.sort = sort, .next = first};

    count(sort, first, ends[0]);
    for (uint64_t mask = sort->mask; mask; pass.from = !pass.from) {
        mask = without_lowest(mask, n_bits);
        pass.digit = pass.next;
        /* The last pass counts a digit in vain. A test would take longer. */
        pass.next = mask ? lowest_digit(mask, n_bits) : first;
        pass.places = ends[pass.from];
        pass.counts = ends[!pass.from];
        run_pass(&pass);
    }
    return pass.from;
}

/* Sorts by the highest digit, and then the items of each of its values from the
 * lowest digit. */
static unsigned sort_large(const struct radix_sort *sort, unsigned n_bits)
{
    uint32_t ends[2][1 << MAX_BITS], scratch[2][1 << MAX_BITS];
    struct radix_sort high = *sort, low = *sort;
    uint32_t n_parts;
    unsigned sorted = 0;

    while (n_digits(high.mask, n_bits) > 1)
        high.mask = without_lowest(high.mask, n_bits);
    low.mask = sort->mask & ~high.mask;
    sort_low(&high, n_bits, ends);
    n_parts = lowest_digit(high.mask, n_bits).mask + 1;
    n_bits = best_bits(low.mask, sort->n / n_parts);
    for (uint32_t d = 0, begin = 0; d < n_parts; begin = ends[0][d++]) {
        for (unsigned k = 0; k < 2; k++) {
            low.keys[k] =
                (char *)sort->keys[!k] + (size_t)begin * sort->key_bytes;
            if (sort->values[0])
                low.values[k] = sort->values[!k] + begin;
        }
        low.n = ends[0][d] - begin;
        sorted = sort_low(&low, n_bits, scratch);
    }
    return !sorted;
}

unsigned radix_sort(const struct radix_sort *sort)
{
    const unsigned n_bits = best_bits(sort->mask, sort->n);
    uint32_t ends[2][1 << MAX_BITS];

    if (!sort->mask)
        return 0;
    if (sort->n * sort->key_bytes >= LARGE_BYTES &&
        n_digits(sort->mask, n_bits) > 2)
        return sort_large(sort, n_bits);
    return sort_low(sort, n_bits, ends);
}
