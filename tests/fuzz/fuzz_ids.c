/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "io/ids.h"
#include "tests/fuzz/target.h"

#define MAX_ROWS 50

static void must_be_measured(const struct id_table *measured)
{
    const struct profile_result *result = &measured->result;
    uint64_t n_hot = 0;

    MUST(*measured->table.name && text_is_printable(measured->table.name));
    MUST(measured->table.num_embeddings >= 1);
    MUST(result->n_rows <= MAX_ROWS && result->n_used <= result->n_rows);
    MUST(result->n_batches <= 2 && result->n_used <= result->n_ids);
    for (size_t i = 0; i < result->n_hottest; i++) {
        MUST(result->hottest[i].row < result->n_rows);
        n_hot += result->hottest[i].count;
    }
    MUST(n_hot <= result->n_ids);
}

/* Reads the ids. Either their profile is measured, or the error begins with the
 * name of the source. */
static void measure(char *path, const char *source, struct table_list list)
{
    struct arena arena = {0};
    struct id_tables tables = {.list = list,
                               .dim = 4,
                               .arena = &arena,
                               .options = {.batch = 6,
                                           .local_batch = 3,
                                           .max_rows = MAX_ROWS,
                                           .max_batches = 2,
                                           .n_hottest = 2}};
    struct err err = {0};

    if (ids_measure(&tables, &path, 1, &err)) {
        MUST(err.code == ERR_INPUT && text_is_printable(err.msg));
        MUST(!strncmp(err.msg, source, strlen(source)) ||
             !strncmp(err.msg, "list: ", 6));
    }
    for (size_t i = 0; i < tables.n_tables; i++)
        if (!tables.tables[i].profile)
            must_be_measured(&tables.tables[i]);
    ids_release(&tables);
    arena_release(&arena);
}

/* Reads the input as a named file and through standard input; each once with
 * any table names and once with those of a list. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct table tables[2];
    const struct table_list lists[2] = {{0}, {tables, 2, "list"}};
    static char standard_input[] = "-";
    char path[64];
    FILE *file = tmpfile();
    int input = dup(STDIN_FILENO);

    table_init(&tables[0]);
    table_init(&tables[1]);
    tables[0].name = "user";
    tables[1].name = "a";
    tables[0].num_embeddings = MAX_ROWS;
    tables[1].num_embeddings = 6;
    MUST(file && input >= 0);
    MUST(fwrite(data, 1, size, file) == size && !fflush(file));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
    MUST(!dup2(fileno(file), STDIN_FILENO));
    for (int i = 0; i < 2; i++) {
        measure(path, path, lists[i]);
        MUST(!lseek(STDIN_FILENO, 0, SEEK_SET));
        measure(standard_input, "standard input", lists[i]);
    }
    MUST(!dup2(input, STDIN_FILENO));
    close(input);
    fclose(file);
    return 0;
}
