/* SPDX-License-Identifier: MIT */

/*
 * Measures the speed of `tables profile`: int64 ids in a NumPy file that was
 * just written, on one core, from the file to bins, hottest rows and exponent.
 *
 *     bench_profile [MILLIONS_OF_IDS [ROWS]]
 *
 * Speeds are MB of ids per second, by wall time and by CPU time.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "device/stream.h"
#include "device/stream_math.h"
#include "io/ids.h"

#define PIECE 65536u

static struct err err;

static void check(int rc)
{
    if (rc) {
        fprintf(stderr, "bench_profile: %s\n", err.msg);
        exit(1);
    }
}

/* Writes n_ids ids whose rows follow a Zipf law with exponent alpha. */
static void write_ids(const char *path, uint64_t n_ids, uint32_t pooling,
                      uint32_t n_rows, double alpha)
{
    FILE *file = fopen(path, "wb");
    int64_t *ids = mem_alloc(PIECE, sizeof(*ids));
    struct stream_zipf zipf;
    struct row_map map;
    char header[119];

    if (!file)
        exit(1);
    snprintf(header, sizeof(header),
             "{'descr': '<i8', 'fortran_order': False, 'shape': (%" PRIu64
             ", %" PRIu32 "), }",
             n_ids / pooling, pooling);
    fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, header);
    stream_zipf_init(&zipf, alpha, n_rows);
    row_map_init(&map, ROW_ORDER_HASHED, n_rows, 7);
    for (uint64_t i = 0; i < n_ids; i += PIECE) {
        const uint64_t n = n_ids - i < PIECE ? n_ids - i : PIECE;

        for (uint32_t j = 0; j < n; j++)
            ids[j] = (int64_t)row_of_rank(
                &map, alpha > 0 ? stream_zipf_draw(&zipf, 5, (uint32_t)i + j)
                                : stream_random(5, i + j) % n_rows);
        if (fwrite(ids, sizeof(*ids), n, file) != n)
            exit(1);
    }
    if (fclose(file))
        exit(1);
    mem_free(ids);
}

static void measure(const char *what, char *path, uint32_t n_gpus,
                    uint64_t n_rows)
{
    struct table table;
    struct arena arena = {0};
    struct id_tables tables = {.list = {&table, 1, "list"},
                               .arena = &arena,
                               .options = {.batch = 65536,
                                           .local_batch = 65536 / n_gpus,
                                           .n_hottest = 10}};
    const struct profile_result *result;
    double begin_ms = clock_ms(), ms;
    clock_t begin = clock(), work;

    table_init(&table);
    table.name = arena_strndup(&arena, path_name(path),
                               strlen(path_name(path)) - strlen(".npy"));
    table.num_embeddings = n_rows;
    check(ids_measure(&tables, &path, 1, &err));
    result = &tables.tables[0].result;
    ms = clock_ms() - begin_ms;
    work = clock() - begin;
    printf("%-28s %4" PRIu32 " %11.0f %11.0f %9.2f %9.4f\n", what, n_gpus,
           (double)result->n_ids * 8 / 1e3 / ms,
           (double)result->n_ids * 8 / 1e6 / ((double)work / CLOCKS_PER_SEC),
           (double)tables.memory_bytes / (1 << 30), result->zipf_alpha);
    fflush(stdout);
    ids_release(&tables);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *what;
        uint32_t n_rows, pooling;
        double alpha;
    } cases[] = {
        {"4e7 rows, Zipf 1.05", 40000000, 1, 1.05},
        {"4e7 rows, Zipf 1.05, 100 ids", 40000000, 100, 1.05},
        {"4e7 rows, all alike", 40000000, 1, 0},
        {"1e9 rows, all alike", 1000000000, 1, 0},
    };
    const uint64_t n_ids =
        (argc > 1 ? strtoull(argv[1], NULL, 10) : 100) * 1000000;
    const uint64_t most_rows =
        argc > 2 ? strtoull(argv[2], NULL, 10) : UINT64_MAX;
    const char *folder = getenv("TMPDIR");
    struct arena arena = {0};
    char *path = arena_printf(&arena, "%s/neuroshard-bench-%ld.npy",
                              folder ? folder : "/tmp", (long)getpid());

    printf("%" PRIu64 " million ids in batches of 65,536 samples\n\n%-28s %4s "
           "%11s %11s %9s %9s\n",
           n_ids / 1000000, "", "GPUs", "MB/s", "MB/core s", "GiB", "Zipf");
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        if (cases[c].n_rows > most_rows)
            continue;
        write_ids(path, n_ids, cases[c].pooling, cases[c].n_rows,
                  cases[c].alpha);
        measure(cases[c].what, path, 1, cases[c].n_rows);
        if (cases[c].n_rows < 1000000000)
            measure(cases[c].what, path, 8, cases[c].n_rows);
    }
    unlink(path);
    arena_release(&arena);
    return 0;
}
