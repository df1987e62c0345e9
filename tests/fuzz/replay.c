/* SPDX-License-Identifier: MIT */

/*
 * A main function for fuzz targets. `fuzz_NAME` runs every file of
 * tests/fuzz/corpus/NAME once and prints one line of TAP for each. `fuzz_NAME
 * FILE...` runs these files instead. A target aborts if a check fails.
 */

#include <dirent.h>
#include <libgen.h>

#include "base/file.h"
#include "tests/fuzz/target.h"
#include "tests/tap.h"

static void replay(const char *path)
{
    struct arena arena = {0};
    struct err err = {0};
    const char *text;
    uint8_t *data;
    size_t len;

    if (file_read(&text, &len, path, &arena, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    /* a block of exactly this size, so that ASan detects a read beyond it */
    data = malloc(len ? len : 1);
    memcpy(data, text, len);
    printf("# %s\n", path);
    fflush(stdout);
    ok(!LLVMFuzzerTestOneInput(data, len), "%s", path);
    free(data);
    arena_release(&arena);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    struct arena arena = {0};
    int n = scandir(folder, &entries, is_visible, alphasort);

    ok(n > 0, "%s has %d files", folder, n);
    for (int i = 0; i < n; i++) {
        replay(arena_printf(&arena, "%s/%s", folder, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const char prefix[] = "fuzz_";
    struct arena arena = {0};
    const char *name = basename(argv[0]);

    if (!strncmp(name, prefix, sizeof prefix - 1))
        name += sizeof prefix - 1;
    if (argc == 1)
        replay_folder(arena_printf(&arena, "tests/fuzz/corpus/%s", name));
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    arena_release(&arena);
    return tap_done();
}
