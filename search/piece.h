/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PIECE_H
#define NEUROSHARD_SEARCH_PIECE_H

#include <stdint.h>

/* Pieces: the smallest things that a search places. */

/* Index that stands for "no piece type". */
#define NO_TYPE UINT32_MAX

/* Index that stands for "no piece" or "no device". */
#define NO_PIECE UINT32_MAX
/* A piece of an assignment, or a change in a candidate. A change is a changed
 * piece, a new piece (`piece` is NO_PIECE) or a removed piece (`type` is
 * NO_TYPE). */
struct change {
    uint32_t piece; /* index of the piece in the assignment */
    uint32_t type;  /* piece type; NO_TYPE: the entry is free */
    uint32_t device;
    uint32_t range; /* column range of the unit that the piece belongs to; the
                       row blocks of a range are separate pieces */
    uint32_t block; /* row block of the piece; 0 if the rows are not cut */
};

#endif
