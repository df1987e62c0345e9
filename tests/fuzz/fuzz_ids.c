/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "io/ids.h"
#include "tests/fuzz/target.h"

#define MAX_ROWS 50

static struct profile *open_profile(void)
{
    static const struct profile_options options = {.batch = 6,
                                                   .local_batch = 3,
                                                   .max_rows = MAX_ROWS,
                                                   .max_batches = 2,
                                                   .n_hottest = 2};

    return profile_open(&options);
}

/* What was counted before an error, too. */
static void must_be_measured(struct profile *profile, struct arena *arena)
{
    struct profile_result result;
    uint64_t n_hot = 0;

    profile_finish(profile, &result, arena);
    MUST(result.n_rows <= MAX_ROWS && result.n_used <= result.n_rows);
    MUST(result.n_batches <= 2 && result.n_used <= result.n_ids);
    for (size_t i = 0; i < result.n_hottest; i++) {
        MUST(result.hottest[i].row < result.n_rows);
        n_hot += result.hottest[i].count;
    }
    MUST(n_hot <= result.n_ids);
    profile_close(profile);
}

static void must_be_said(const struct err *err, const char *source)
{
    MUST(err->code == ERR_INPUT && text_is_printable(err->msg));
    MUST(!strncmp(err->msg, source, strlen(source)));
}

static void read_file(char *path, struct arena *arena)
{
    struct id_parts parts;
    struct err err = {0};

    if (ids_list(&parts, &path, 1, arena, &err))
        must_be_said(&err, path);
    else
        MUST(parts.n_parts > 0 || !parts.n_ids);
    for (size_t i = 0; err.code == ERR_NONE && i < parts.n_parts; i++) {
        struct profile *profile = open_profile();

        MUST(*parts.parts[i].table && text_is_printable(parts.parts[i].table));
        if (ids_read(profile, &parts.parts[i], NULL, &err))
            must_be_said(&err, path);
        must_be_measured(profile, arena);
    }
    mem_free(parts.parts);
}

static struct profile *find_profile(void *ctx, const char *table,
                                    struct err *err)
{
    MUST(*table && text_is_printable(table));
    if (*table == '!') {
        err_set(err, ERR_INPUT, "no table is called '%s'", table);
        return NULL;
    }
    return ctx;
}

/* As a file that has a name, and as what comes through standard input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct profile *profile = open_profile();
    struct err err = {0};
    FILE *file = tmpfile();
    int input = dup(STDIN_FILENO);

    MUST(file && input >= 0);
    MUST(fwrite(data, 1, size, file) == size && !fflush(file));
    read_file(arena_printf(&arena, "/proc/self/fd/%d", fileno(file)), &arena);
    rewind(file);
    MUST(!dup2(fileno(file), STDIN_FILENO));
    if (ids_stream(find_profile, profile, NULL, &err))
        must_be_said(&err, "standard input: frame ");
    must_be_measured(profile, &arena);
    MUST(!dup2(input, STDIN_FILENO));
    close(input);
    fclose(file);
    arena_release(&arena);
    return 0;
}
