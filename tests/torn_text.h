/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_TORN_TEXT_H
#define NEUROSHARD_TESTS_TORN_TEXT_H

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* Damages texts in the ways that happen to logs and copied texts. Include in
 * one file only. */

enum damage { LOST, DOUBLED, JOINED, FOREIGN, CUT, N_DAMAGES };
static const char *const damage_names[N_DAMAGES] = {"lost", "doubled", "joined",
                                                    "foreign", "cut"};

/* Lines that other programs print into a job's log. */
static const char *const foreign_lines[] = {
    "",
    "slurmstepd: error: *** JOB 4711 ON node-3 CANCELLED ***",
    "I0301 12:00:01.123456 4711 ProcessGroupNCCL.cpp:780] [Rank 1] started",
    "# of GPUs: 8",
    "#####  epoch 3  #####",
    "node-3:1887:1901 [0] NCCL INFO Channel 00/02 :    0   1   2   3",
    "Traceback (most recent call last):",
    "step 100 | loss 0.41 | lr 0.1 | 12 samples/s",
    "WARNING  data loader   is   slow   8",
    "{'loss': 0.4, 'rank': [3]}",
};
#define N_FOREIGN (sizeof(foreign_lines) / sizeof(*foreign_lines))

static const char *draw_foreign(struct rng *rng)
{
    return foreign_lines[rng_draw(rng, N_FOREIGN)];
}

/* A line of the text. */
struct torn_line {
    const char *at;
    size_t len; /* length without the '\n' */
};

static struct torn_line *split_lines(size_t *n, const char *text,
                                     struct arena *arena)
{
    struct torn_line *lines =
        ARENA_NEW(arena, struct torn_line, strlen(text) + 1);

    for (*n = 0; *text; ++*n) {
        lines[*n] = (struct torn_line){text, strcspn(text, "\n")};
        text += lines[*n].len + (text[lines[*n].len] == '\n');
    }
    return lines;
}

/* Writes a line with the given damage. */
static void add_torn(struct buf *out, struct torn_line line, enum damage damage,
                     struct rng *rng)
{
    const size_t half = rng_draw(rng, (uint32_t)line.len + 1);

    switch (damage) {
    case DOUBLED:
        buf_printf(out, "%.*s\n%.*s\n", (int)line.len, line.at, (int)line.len,
                   line.at);
        break;
    /* whole or cut, then the next line without a newline between */
    case JOINED:
        buf_add(out, line.at, rng_draw(rng, 2) ? line.len : half);
        break;
    case FOREIGN:
        if (rng_draw(rng, 2)) /* foreign text before the line, or inside it */
            buf_printf(out, "%s\n%.*s\n", draw_foreign(rng), (int)line.len,
                       line.at);
        else
            buf_printf(out, "%.*s%s\n%.*s\n", (int)half, line.at,
                       draw_foreign(rng), (int)(line.len - half),
                       line.at + half);
        break;
    case LOST:
    case CUT:
    case N_DAMAGES:
        break;
    }
}

/* Returns the text with one to three damaged lines, adjacent or scattered. */
static const char *tear(const char *text, enum damage damage, struct rng *rng,
                        struct arena *arena)
{
    const bool is_block = rng_draw(rng, 2);
    const uint32_t most = 1 + rng_draw(rng, 3);
    struct buf out = {0};
    const char *torn;
    size_t n, first;
    struct torn_line *lines = split_lines(&n, text, arena);

    if (damage == CUT)
        return arena_strndup(arena, text, 1 + rng_below(rng, strlen(text) - 1));
    first = rng_below(rng, n);
    for (size_t i = 0; i < n; i++) {
        const bool is_hit =
            is_block ? i >= first && i < first + most
                     : i == first || (most > 1 && !rng_draw(rng, 40));

        if (is_hit)
            add_torn(&out, lines[i], damage, rng);
        else
            buf_printf(&out, "%.*s\n", (int)lines[i].len, lines[i].at);
    }
    buf_add(&out, "", 0);
    torn = arena_strdup(arena, out.data ? out.data : "");
    buf_release(&out);
    return torn;
}

#endif
