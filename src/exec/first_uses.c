/* SPDX-License-Identifier: MIT */
#include "exec/first_uses.h"

#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

#define NO_USE UINT32_MAX

struct first_use {
    uint32_t row;
    uint32_t number; /* NO_USE: the slot is empty */
};

void first_uses_init(struct first_uses *uses, uint64_t n)
{
    uint64_t n_slots = 2;

    while (n_slots < 2 * n)
        n_slots *= 2;
    *uses = (struct first_uses){
        mem_alloc((size_t)n_slots, sizeof(struct first_use)), n_slots - 1};
    first_uses_clear(uses);
}

void first_uses_release(struct first_uses *uses)
{
    mem_free(uses->slots);
    *uses = (struct first_uses){0};
}

void first_uses_clear(struct first_uses *uses)
{
    /* every byte of NO_USE is 0xff */
    memset(uses->slots, 0xff,
           (size_t)(uses->mask + 1) * sizeof(struct first_use));
}

uint32_t first_uses_add(struct first_uses *uses, uint32_t row, uint32_t number)
{
    uint64_t i = mix64(row) & uses->mask;

    while (uses->slots[i].number != NO_USE && uses->slots[i].row != row)
        i = (i + 1) & uses->mask;
    if (uses->slots[i].number == NO_USE)
        uses->slots[i] = (struct first_use){row, number};
    return uses->slots[i].number;
}
