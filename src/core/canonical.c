/* SPDX-License-Identifier: MIT */
#include "core/canonical.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/ranked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Columns of a table file that belong to the contents of a table. The number of
 * rows, the bins and the device belong to the contents, too, but have code of
 * their own. The first N_STATED columns are always printed. */
#define TABLE(member) MEMBER_OF(struct table, member)
static const struct content {
    const char *column;
    enum member_type type;
    size_t offset;
    /* names of the values if the column is an enum, otherwise NULL */
    const char *const *names;
} contents[] = {
    {"dim", TABLE(dim), NULL},
    {"pooling_factor", TABLE(pooling_factor), NULL},
    {"num_outputs", TABLE(num_outputs), NULL},
    {"output", TABLE(output), table_output_names},
    {"precision", TABLE(precision), precision_names},
    {"comm_precision", TABLE(comm_precision), precision_names},
    {"optimizer", TABLE(optimizer), optimizer_names},
    {"zipf_alpha", TABLE(zipf_alpha), NULL},
    {"row_order", TABLE(row_order), row_order_names},
    {"dedup", TABLE(dedup), NULL},
    {"sharding", TABLE(kinds), NULL},
    {"rows_over", TABLE(rows_over), rows_over_names},
    {"row_overhead_bytes", TABLE(row_overhead_bytes), NULL},
    {"min_width", TABLE(min_width), NULL},
};
enum { N_STATED = 2, N_CONTENTS = sizeof(contents) / sizeof(*contents) };

static double number_of(const struct table *table,
                        const struct content *content)
{
    const void *pos = (const char *)table + content->offset;

    /* The bins override the Zipf exponent, so its value does not matter. */
    if (table->has_bins && pos == &table->zipf_alpha)
        return DEFAULT_ZIPF_ALPHA;
    if (content->type == MEMBER_U32)
        return *(const uint32_t *)pos;
    return *(const double *)pos + 0.0; /* + 0.0 makes -0 and 0 equal */
}

void table_print_contents(const struct table *table, struct buf *out)
{
    struct table plain;

    table_init(&plain);
    buf_printf(out, "num_embeddings=%" PRIu64, table->num_embeddings);
    for (size_t i = 0; i < N_CONTENTS; i++) {
        const struct content *content = &contents[i];
        const double x = number_of(table, content);

        if (i >= N_STATED && x == number_of(&plain, content))
            continue;
        if (content->names)
            buf_printf(out, " %s=%s", content->column,
                       content->names[(size_t)x]);
        else
            buf_printf(out, " %s=%.17g", content->column, x);
    }
    for (unsigned k = 0; table->has_bins && k < REUSE_BINS; k++)
        buf_printf(out, " bin_%u=%.17g", k, table->bins[k] + 0.0);
    if (table->device >= 0)
        buf_printf(out, " device=%" PRId64, table->device);
    if (table->group)
        buf_printf(out, " group");
}

static uint64_t hash_contents(const struct table *table, uint64_t seed,
                              struct buf *scratch)
{
    scratch->len = 0;
    table_print_contents(table, scratch);
    return hash_bytes(scratch->data, scratch->len, seed);
}

struct hashed {
    uint64_t hash;
    size_t idx;
};

static int compare_hashed(const void *left, const void *right)
{
    const struct hashed *a = left, *b = right;
    const uint64_t x[] = {a->hash, a->idx}, y[] = {b->hash, b->idx};

    return ranked_compare(x, y, 2);
}

void tables_draw_row_seeds(struct table *tables, size_t n)
{
    struct hashed *hashed = mem_alloc(n, sizeof(*hashed));
    struct buf scratch = {0};
    uint64_t number = 0;

    for (size_t i = 0; i < n; i++)
        hashed[i] = (struct hashed){hash_contents(&tables[i], 0, &scratch), i};
    qsort(hashed, n, sizeof(*hashed), compare_hashed);
    for (size_t i = 0; i < n; i++) {
        struct table *table = &tables[hashed[i].idx];

        number = i && hashed[i].hash == hashed[i - 1].hash ? number + 1 : 0;
        table->row_seed =
            number ? hash_contents(table, number, &scratch) : hashed[i].hash;
    }
    buf_release(&scratch);
    mem_free(hashed);
}

uint64_t row_seed_of_name(const char *name)
{
    return hash_bytes(name, strlen(name), 0);
}

/* --- the canonical order --- */

struct placed_shard {
    const struct table *table;
    /* hash over the contents of all tables of the table's group, or 0 */
    uint64_t of_group;
};

static int compare_groups(const void *left, const void *right)
{
    const struct placed_shard *a = left, *b = right;

    if (!a->table->group || !b->table->group)
        return !a->table->group - !b->table->group;
    return strcmp(a->table->group, b->table->group);
}

/* Sets of_group of each table in a group: the sum of the hashes of all tables
 * of the group. This sum does not depend on the name of the group. */
static void hash_groups(struct placed_shard *placed, size_t n)
{
    struct buf scratch = {0};

    qsort(placed, n, sizeof(*placed), compare_groups);
    for (size_t begin = 0, end; begin < n && placed[begin].table->group;
         begin = end) {
        uint64_t sum = 0;

        for (end = begin;
             end < n && !compare_groups(&placed[begin], &placed[end]); end++)
            sum += hash_contents(placed[end].table, 0, &scratch);
        for (size_t i = begin; i < end; i++)
            placed[i].of_group = sum;
    }
    buf_release(&scratch);
}

/* Compares two tables by contents, the larger table first. Both tables must be
 * in the same array. */
static int compare_tables(const void *left, const void *right)
{
    const struct placed_shard *x = left, *y = right;
    const struct table *a = x->table, *b = y->table;
    double of_a[N_CONTENTS + 2], of_b[N_CONTENTS + 2];
    int c = ranked_compare_u64(&b->num_embeddings, &a->num_embeddings);

    if (c)
        return c;
    for (size_t i = 0; i < N_CONTENTS; i++) {
        of_a[i] = number_of(a, &contents[i]);
        of_b[i] = number_of(b, &contents[i]);
    }
    of_a[N_CONTENTS] = a->has_bins;
    of_b[N_CONTENTS] = b->has_bins;
    of_a[N_CONTENTS + 1] = (double)a->device;
    of_b[N_CONTENTS + 1] = (double)b->device;
    c = ranked_compare_reals(of_b, of_a, N_CONTENTS + 2);
    if (!c && a->has_bins)
        c = ranked_compare_reals(b->bins, a->bins, REUSE_BINS);
    if (!c)
        c = ranked_compare_u64(&x->of_group, &y->of_group);
    if (!c)
        c = ranked_compare_u64(&a->row_seed, &b->row_seed);
    return c ? c : (a > b) - (a < b);
}

void tables_canonical_order(const struct table *tables, size_t n,
                            uint32_t *order)
{
    struct placed_shard *placed = mem_alloc(n, sizeof(*placed));

    for (size_t i = 0; i < n; i++)
        placed[i].table = &tables[i];
    hash_groups(placed, n);
    qsort(placed, n, sizeof(*placed), compare_tables);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)(placed[i].table - tables);
    mem_free(placed);
}
