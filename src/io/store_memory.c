/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include <malloc.h>

static void *take_memory(int size)
{
    return mem_take((size_t)size);
}

static void *regrow_memory(void *ptr, int size)
{
    return mem_grow(ptr, 1, (size_t)size);
}

static int memory_size(void *ptr)
{
    return (int)malloc_usable_size(ptr);
}

static int round_up_8(int size)
{
    return (size + 7) & ~7;
}

static int no_init(void *data)
{
    (void)data;
    return SQLITE_OK;
}

static void no_shutdown(void *data)
{
    (void)data;
}

void store_give_memory(void)
{
    static const struct sqlite3_mem_methods methods = {
        .xMalloc = take_memory,
        .xFree = mem_free,
        .xRealloc = regrow_memory,
        .xSize = memory_size,
        .xRoundup = round_up_8,
        .xInit = no_init,
        .xShutdown = no_shutdown,
    };

    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}
