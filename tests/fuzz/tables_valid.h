/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_FUZZ_TABLES_VALID_H
#define NEUROSHARD_TESTS_FUZZ_TABLES_VALID_H

/*
 * Checks that hold after any table list was read, whatever its bytes were: the
 * list is valid, or an error explains the failure. Include in one file only.
 */

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/printable.h"
#include "io/tables_csv.h"
#include "io/tables_reader.h"
#include "tests/fuzz/target.h"

static void must_be_text(const char *text)
{
    MUST(*text && text_is_printable(text));
}

static void must_be_table(const struct table *table)
{
    double sum = 0;

    must_be_text(table->name);
    if (table->group)
        must_be_text(table->group);
    MUST(table->num_embeddings >= 1 && table->num_embeddings <= INT64_MAX);
    MUST(table->dim <= TABLES_MAX_DIM);
    MUST(isnan(table->pooling_factor) ||
         (table->pooling_factor >= 0 && !signbit(table->pooling_factor)));
    MUST(!(table->pooling_factor > TABLES_MAX_FACTOR));
    MUST(table->num_outputs >= 0 && table->num_outputs <= TABLES_MAX_FACTOR);
    MUST(table->zipf_alpha >= 0 && table->zipf_alpha <= TABLE_MAX_ZIPF);
    MUST(table->output == OUTPUT_POOLED || table->output == OUTPUT_SEQUENCE);
    MUST((unsigned)table->precision < N_PRECISIONS);
    MUST((unsigned)table->comm_precision < N_PRECISIONS);
    MUST((unsigned)table->optimizer < N_OPTIMIZERS);
    MUST(table->kinds != 0 && (table->kinds & ~SHARD_ALL_KINDS) == 0);
    MUST(table->device >= -1 && table->device <= (int64_t)TABLES_MAX_DEVICE);
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        MUST(table->bins[k] >= 0 && table->bins[k] <= 1);
        MUST(table->has_bins || table->bins[k] == 0);
        sum += table->bins[k];
    }
    MUST(table->n_reach <= REACH_WINDOWS);
    MUST(table_wrong_reach(table) == REACH_WINDOWS);
    if (table->has_bins)
        MUST(fabs(sum - 1) < 0.011 || (sum == 0 && table->pooling_factor == 0));
}

static int compare_names(const void *a, const void *b)
{
    const struct table *left = a, *right = b;

    return strcmp(left->name, right->name);
}

/* Checks a reader's return code together with its list or error; sorts the
 * list. */
static void must_be_valid_or_explained(int rc, struct table_list *list,
                                       const struct err *err)
{
    if (rc) {
        MUST(rc == -1 && err->code == ERR_INPUT && *err->msg);
        MUST(strlen(err->msg) < sizeof(err->msg));
        return;
    }
    MUST(list->n_tables >= 1 && !strcmp(list->source, "fuzz"));
    for (size_t i = 0; i < list->n_tables; i++)
        must_be_table(&list->tables[i]);
    qsort(list->tables, list->n_tables, sizeof(list->tables[0]), compare_names);
    for (size_t i = 1; i < list->n_tables; i++)
        MUST(compare_names(&list->tables[i - 1], &list->tables[i]) < 0);
}

/* Warnings quote the file, and its raw bytes must not reach the terminal. */
static void must_be_sentence(void *ctx, const char *sentence)
{
    (void)ctx;
    MUST(text_is_printable(sentence));
}

typedef int tables_reader(struct table_list *list, const char *text, size_t len,
                          const char *source,
                          const struct tables_options *options,
                          struct arena *arena, struct err *err);

/* Checks that an imported list can be read back by the list's own reader. The
 * text is imported with and without a pooling factor for tables without one. */
__attribute__((unused)) static void
must_import_list(tables_reader *read, const uint8_t *data, size_t size)
{
    static const struct tables_options options = {.keeps_unknown = true};

    for (int pooling = 0; pooling < 2; pooling++) {
        struct table_list list = {0}, again = {0};
        struct buf notes = {0}, text = {0};
        struct tables_options import = {.columns = "",
                                        .pooling = pooling,
                                        .notes = &notes,
                                        .keeps_unknown = true,
                                        .warn = must_be_sentence};
        struct arena arena = {0};
        struct err err = {0};
        int rc;

        rc = read(&list, (const char *)data, size, "fuzz", &import, &arena,
                  &err);
        if (!rc) {
            buf_printf(&text, "%s", notes.data ? notes.data : "");
            tables_to_csv(&text, &list);
            MUST(!tables_from_csv(&again, text.data, text.len, "fuzz", &options,
                                  &arena, &err));
            MUST(again.n_tables == list.n_tables);
        }
        must_be_valid_or_explained(rc, &list, &err);
        must_be_sentence(NULL, err.msg);
        buf_release(&notes);
        buf_release(&text);
        arena_release(&arena);
    }
}

#endif
