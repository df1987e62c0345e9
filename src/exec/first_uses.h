/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_FIRST_USES_H
#define NEUROSHARD_EXEC_FIRST_USES_H

#include <stdint.h>

/* Hash table of the rows of a table that have been looked up, each with the
 * number of its first lookup. De-duplication of ids uses it. */
struct first_uses {
    struct first_use *slots; /* [mask + 1]; owned */
    uint64_t mask;
};

/* Makes an empty hash table with room for n different rows. */
void first_uses_init(struct first_uses *uses, uint64_t n);
void first_uses_release(struct first_uses *uses); /* accepts a zeroed struct */
/* Removes all rows. O(room). */
void first_uses_clear(struct first_uses *uses);
/* Returns the number of the first lookup of a row. Adds the row with `number`,
 * which is less than UINT32_MAX, if the table does not have the row yet. */
uint32_t first_uses_add(struct first_uses *uses, uint32_t row, uint32_t number);

#endif
