/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_GOLDEN_H
#define NEUROSHARD_TESTS_GOLDEN_H

/*
 * Access to the reference data outside the repository: their path, the table
 * pool and the JSON files. A test program that does not find them skips.
 * Include in one file only.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "core/problem.h"

/* Returns "../shared/data/NAME", or $NEUROSHARD_SHARED/data/NAME if it is
 * set. */
__attribute__((unused)) static const char *golden_path(const char *name,
                                                       struct arena *arena)
{
    const char *root = getenv("NEUROSHARD_SHARED");

    return arena_printf(arena, "%s/data/%s", root ? root : "../shared", name);
}

__attribute__((unused)) static json_t *golden_json(const char *name,
                                                   struct arena *arena)
{
    const char *path = golden_path(name, arena), *text;
    struct err err = {0};
    json_t *root = NULL;
    size_t len;

    if (file_read(&text, &len, path, arena, &err) ||
        json_parse(&root, text, len, path, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return root;
}

/* Splits a line at commas, in place; returns the number of fields. */
static size_t golden_split(char *line, char **fields, size_t max)
{
    size_t n = 0;

    for (char *p = line; p && n < max; n++) {
        fields[n] = p;
        p = strchr(p, ',');
        if (p)
            *p++ = '\0';
    }
    return n;
}

/* Returns the pool of calibrated tables, with dim 0, in file order; stores
 * their number in *n. */
__attribute__((unused)) static struct table *golden_tables(size_t *n,
                                                           struct arena *arena)
{
    const char *path = golden_path("tables/dlrm_t856_calibrated.csv", arena);
    struct table *tables = ARENA_NEW(arena, struct table, 1024);
    char *header[64] = {NULL}, *line, *rest = NULL;
    struct err err = {0};
    const char *text;
    size_t len, n_columns = 0;

    *n = 0;
    if (file_read(&text, &len, path, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    for (line = strtok_r(arena_strndup(arena, text, len), "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *fields[64];
        struct table *table = &tables[*n];

        if (*line == '#')
            continue;
        if (!n_columns) {
            n_columns = golden_split(line, header, 64);
            continue;
        }
        golden_split(line, fields, 64);
        table_init(table);
        table->optimizer = OPTIMIZER_SGD;
        table->skew_assumed = false;
        for (size_t c = 0; c < n_columns; c++) {
            unsigned k;

            if (!strcmp(header[c], "name"))
                table->name = fields[c];
            else if (!strcmp(header[c], "num_embeddings"))
                table->num_embeddings = strtoull(fields[c], NULL, 10);
            else if (!strcmp(header[c], "pooling_factor"))
                table->pooling_factor = strtod(fields[c], NULL);
            else if (sscanf(header[c], "bin_%u", &k) == 1 && k < REUSE_BINS) {
                table->has_bins = true;
                table->bins[k] = strtod(fields[c], NULL);
            }
        }
        ++*n;
    }
    return tables;
}

/* Makes a problem of the published benchmark. Tables are pool indices `ids`
 * with dims `dims`; memory counts weights only, and the batch is 65,536. */
__attribute__((unused)) static void
golden_problem(struct problem *problem, const struct table *pool,
               const json_t *ids, const json_t *dims, uint32_t n_devices,
               double memory_gib, struct arena *arena)
{
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, json_array_size(ids)),
        .n_tables = json_array_size(ids),
        .source = "golden",
        .batch = 65536,
        .memory_model = MEMORY_WEIGHTS,
        .kinds = SHARD_TABLE | SHARD_COLUMN,
        .cluster = {.n_devices = n_devices,
                    .devices_per_host = n_devices,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)},
    };
    for (uint32_t r = 0; r < n_devices; r++)
        problem->cluster.memory_bytes[r] =
            (uint64_t)(memory_gib * 1024 * 1024 * 1024);
    assert(pool || !problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct table *table = &problem->tables[i];

        *table = pool[json_integer_value(json_array_get(ids, i))];
        table->name = arena_printf(arena, "%s_%zu", table->name, i);
        table->dim = (uint32_t)json_integer_value(json_array_get(dims, i));
    }
}

/* Draws a task by the published protocol: `least` to `most` tables of the pool,
 * with replacement, with dims of 4 to 128. Tables have at most 15 GiB per four
 * devices; each device has 4 GiB. */
__attribute__((unused)) static void
golden_draw(struct problem *problem, const struct table *pool, size_t n_pool,
            uint32_t least, uint32_t most, uint32_t n_devices, struct rng *rng,
            struct arena *arena)
{
    static const int dims[] = {4, 8, 16, 32, 64, 128};
    const uint64_t most_bytes = (UINT64_C(15) << 30) * n_devices / 4;
    uint64_t bytes;
    json_t *ids, *widths;

    do {
        const size_t n = least + rng_below(rng, most - least + 1);

        bytes = 0;
        ids = json_array();
        widths = json_array();
        for (size_t i = 0; i < n; i++) {
            const size_t id = rng_below(rng, n_pool);
            const int dim = dims[rng_below(rng, 6)];

            json_array_append_new(ids, json_integer((json_int_t)id));
            json_array_append_new(widths, json_integer(dim));
            bytes += pool[id].num_embeddings * (uint64_t)dim * 4;
        }
        if (bytes <= most_bytes)
            golden_problem(problem, pool, ids, widths, n_devices, 4, arena);
        json_decref(ids);
        json_decref(widths);
    } while (bytes > most_bytes);
}

#endif
