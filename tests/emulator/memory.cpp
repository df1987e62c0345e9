/* SPDX-License-Identifier: MIT */
#include "emulator.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "emulated_kernel.h"

#if defined(__SANITIZE_ADDRESS__)
#    define FROM_MALLOC 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define FROM_MALLOC 1
#    endif
#endif
#ifndef FROM_MALLOC
#    define FROM_MALLOC 0
#endif

#define PAGE ((size_t)4096)
#define ALIGNMENT ((size_t)512)

struct region {
    size_t n_bytes;
    char *pages; /* NULL if the block comes from malloc */
    size_t page_bytes;
};

static struct {
    std::map<uintptr_t, region> regions;
    size_t n_used;
    unsigned n_open;
} memory;

uint64_t emulator_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, nullptr, 0) : otherwise;
}

size_t emulated_memory_total()
{
    return emulator_setting("EMULATOR_MEMORY", (uint64_t)2 << 30);
}

size_t emulated_memory_used()
{
    return memory.n_used;
}

bool emulator_is_empty()
{
    static const bool is_empty = emulator_setting("EMULATOR_EMPTY", 0);

    return is_empty;
}

static int protection()
{
    return memory.n_open || emulator_is_empty() ? PROT_READ | PROT_WRITE
                                                : PROT_NONE;
}

void *emulated_memory_take(size_t n_bytes)
{
    size_t padded = (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    region region = {n_bytes, nullptr, 0};
    char *ptr;

    if (memory.n_used + padded > emulated_memory_total())
        return nullptr;
    if (FROM_MALLOC) {
        /* allocates the exact size, so that ASan detects an access one byte
         * behind */
        if (posix_memalign((void **)&ptr, ALIGNMENT, n_bytes))
            return nullptr;
    } else {
        region.page_bytes = (padded + PAGE - 1) / PAGE * PAGE;
        region.pages = (char *)mmap(
            nullptr, region.page_bytes + PAGE, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (region.pages == MAP_FAILED)
            return nullptr;
        mprotect(region.pages + region.page_bytes, PAGE, PROT_NONE);
        /* huge pages: fewer pages to open and close */
        madvise(region.pages, region.page_bytes, MADV_HUGEPAGE);
        ptr = region.pages + region.page_bytes - padded;
    }
    if (!emulator_is_empty())
        memset(ptr, 0xcb, n_bytes);
    if (region.pages)
        mprotect(region.pages, region.page_bytes, protection());
    memory.regions[(uintptr_t)ptr] = region;
    memory.n_used += padded;
    return ptr;
}

bool emulated_memory_give(void *ptr)
{
    auto found = memory.regions.find((uintptr_t)ptr);

    if (found == memory.regions.end())
        return false;
    memory.n_used -=
        (found->second.n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (found->second.pages)
        munmap(found->second.pages, found->second.page_bytes + PAGE);
    else
        free(ptr);
    memory.regions.erase(found);
    return true;
}

bool emulated_memory_holds(const void *ptr, size_t n_bytes)
{
    auto found = memory.regions.upper_bound((uintptr_t)ptr);

    if (found == memory.regions.begin())
        return false;
    --found;
    return (uintptr_t)ptr + n_bytes <= found->first + found->second.n_bytes;
}

static void protect_all()
{
    for (auto &entry : memory.regions)
        if (entry.second.pages && !emulator_is_empty())
            mprotect(entry.second.pages, entry.second.page_bytes, protection());
}

void emulated_memory_open()
{
    if (memory.n_open++ == 0)
        protect_all();
}

void emulated_memory_close()
{
    if (--memory.n_open == 0)
        protect_all();
}
