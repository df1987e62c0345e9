/* SPDX-License-Identifier: MIT */
#include "emulated_kernel.h"

#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "emulator.h"

/* Runs blocks as fibers: one fiber per thread, each with its own stack,
 * switched by hand (x86-64, System V). The scheduler runs every fiber that can
 * go on, in a shuffled order, until all have returned. */

#if defined(__SANITIZE_ADDRESS__)
#    include <sanitizer/asan_interface.h>
#    include <sanitizer/common_interface_defs.h>
#    define WITH_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        include <sanitizer/asan_interface.h>
#        include <sanitizer/common_interface_defs.h>
#        define WITH_ASAN 1
#    endif
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

#define STACK_BYTES ((size_t)256 << 10)
#define PAGE ((size_t)4096)

enum fiber_state { READY, AT_BARRIER, AT_MEETING, RETURNED };

struct fiber {
    void *stack_pointer;
    char *stack;
    void *fake_stack; /* ASan's fake stack */
    fiber_state state;
    emulated_collective what; /* operation that it waits for at a meeting */
    uint32_t mask;
    uint64_t value;
    unsigned from;   /* lane whose value a shuffle asks for */
    uint64_t answer; /* result of the last meeting */
};

/* State of a warp: bit masks of lanes. */
struct warp {
    uint32_t waiting; /* lanes that wait at a meeting */
    uint32_t gone;    /* lanes that returned or never existed */
};

static struct {
    std::vector<fiber> fibers; /* sized for the largest block so far */
    std::vector<warp> warps;
    std::vector<uint32_t> order;
    uint32_t n_threads, current;
    uint32_t n_at_barrier, n_returned;
    const std::function<void()> *thread;
    std::vector<uint64_t> shared;
    uint64_t random;
    bool is_seeded;
    void *scheduler_pointer, *scheduler_fake;
    const void *scheduler_stack;
    size_t scheduler_bytes;
} block;

extern "C" void emulator_switch(void **save, void *load);
asm(R"(
    .text
    .globl emulator_switch
    .type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulator_switch, . - emulator_switch
)");

void emulator_abort(const char *sentence, ...)
{
    va_list args;

    fprintf(stderr,
            "emulator: block (%u, %u, %u), thread (%u, %u, %u): ", blockIdx.x,
            blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    va_start(args, sentence);
    vfprintf(stderr, sentence, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

uint64_t emulated_ticks;

uint64_t emulated_globaltimer_ns()
{
    return emulated_ticks / EMULATED_TICKS_A_NS;
}

void *emulated_dynamic_shared()
{
    return block.shared.data();
}

static uint32_t random_below(uint32_t n)
{
    if (!block.is_seeded) {
        block.random = emulator_setting("EMULATOR_SEED", 1) * 2 + 1;
        block.is_seeded = true;
    }
    block.random = block.random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    return (uint32_t)((block.random >> 32) * n >> 32);
}

static void switch_to_fiber(fiber *to)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&block.scheduler_fake, to->stack,
                                   STACK_BYTES);
#endif
    emulator_switch(&block.scheduler_pointer, to->stack_pointer);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(block.scheduler_fake, nullptr, nullptr);
#endif
}

static void switch_to_scheduler(fiber *from)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(
        from->state == RETURNED ? nullptr : &from->fake_stack,
        block.scheduler_stack, block.scheduler_bytes);
#endif
    emulator_switch(&from->stack_pointer, block.scheduler_pointer);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, &block.scheduler_stack,
                                    &block.scheduler_bytes);
#endif
}

static void fiber_main()
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack,
                                    &block.scheduler_bytes);
#endif
    emulated_ticks++;
    (*block.thread)();
    block.fibers[block.current].state = RETURNED;
    block.warps[block.current / 32].gone |= 1u << block.current % 32;
    block.n_returned++;
    switch_to_scheduler(&block.fibers[block.current]);
    abort();
}

static void prepare(fiber *fiber)
{
    void **top;

    if (!fiber->stack) {
        /* the page below the stack is an inaccessible guard page */
        void *pages = mmap(nullptr, PAGE + STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (pages == MAP_FAILED || mprotect(pages, PAGE, PROT_NONE))
            emulator_abort("no memory for the stack of a thread");
        fiber->stack = (char *)pages + PAGE;
    }
    fiber->state = READY;
    top = (void **)(fiber->stack + STACK_BYTES) - 8;
#ifdef WITH_ASAN
    __asan_unpoison_memory_region(top - 64, 72 * sizeof *top);
#endif
    /* return address, above six registers; 16-byte aligned */
    top[6] = (void *)fiber_main;
    fiber->stack_pointer = top;
}

static void wait_in(fiber_state state)
{
    fiber *own = &block.fibers[block.current];

    own->state = state;
    switch_to_scheduler(own);
}

void emulated_barrier()
{
    block.n_at_barrier++;
    wait_in(AT_BARRIER);
}

unsigned emulated_lane()
{
    return block.current % 32;
}

/* Returns the first lane of the mask that has not arrived yet, or 32. */
static unsigned missing_lane(const fiber *own, uint32_t first)
{
    for (unsigned lane = 0; lane < 32; lane++) {
        const fiber *other = &block.fibers[first + lane];

        if (!(own->mask >> lane & 1))
            continue;
        if (first + lane >= block.n_threads || other->state == RETURNED)
            emulator_abort("mask %08x names lane %u, which %s", own->mask, lane,
                           first + lane >= block.n_threads ? "does not exist"
                                                           : "has returned");
        if (other != own &&
            (other->state != AT_MEETING || other->mask != own->mask ||
             other->what != own->what))
            return lane;
    }
    return 32;
}

static void answer_all(const fiber *own, uint32_t first)
{
    uint64_t votes = 0;

    for (unsigned lane = 0; lane < 32; lane++)
        if (own->mask >> lane & 1 && block.fibers[first + lane].value)
            votes |= 1u << lane;
    for (unsigned lane = 0; lane < 32; lane++) {
        fiber *other = &block.fibers[first + lane];

        if (!(own->mask >> lane & 1))
            continue;
        other->answer = own->what == EMULATED_SHUFFLE
                            ? block.fibers[first + other->from].value
                            : votes;
        other->state = READY;
    }
}

uint64_t emulated_meet(emulated_collective what, uint32_t mask, uint64_t value,
                       unsigned from)
{
    uint32_t first = block.current & ~31u, bit = 1u << block.current % 32;
    fiber *own = &block.fibers[block.current];
    warp *warp = &block.warps[block.current / 32];

    if (!(mask & bit))
        emulator_abort("mask %08x lacks the lane that calls", mask);
    emulated_ticks++;
    own->what = what;
    own->mask = mask;
    own->value = value;
    own->from = from;
    /* the first condition decides most cases with one operation */
    if ((mask & ~(warp->waiting | bit) && !(mask & warp->gone)) ||
        missing_lane(own, first) < 32) {
        warp->waiting |= bit;
        wait_in(AT_MEETING);
        return own->answer;
    }
    warp->waiting &= ~mask;
    answer_all(own, first);
    return own->answer;
}

static void become(uint32_t thread)
{
    block.current = thread;
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / blockDim.x / blockDim.y;
}

static void report_deadlock()
{
    uint32_t waiting = 0, other = 0;

    while (block.fibers[waiting].state == RETURNED)
        waiting++;
    become(waiting);
    if (block.fibers[waiting].state == AT_MEETING)
        emulator_abort("deadlock: waits for lane %u of mask %08x, which is "
                       "elsewhere",
                       missing_lane(&block.fibers[waiting], waiting & ~31u),
                       block.fibers[waiting].mask);
    while (block.fibers[other].state != AT_MEETING)
        other++;
    emulator_abort("deadlock: waits in __syncthreads for thread %u, which "
                   "waits for its warp",
                   other);
}

static void release_barrier()
{
    for (uint32_t i = 0; i < block.n_threads; i++)
        if (block.fibers[i].state == AT_BARRIER)
            block.fibers[i].state = READY;
    block.n_at_barrier = 0;
}

/* Returns the mask of the warp's lanes beyond the end of the block. */
static uint32_t lanes_beyond(uint32_t warp)
{
    uint32_t n = block.n_threads - warp * 32;

    return n < 32 ? ~0u << n : 0;
}

static void run_block()
{
    block.n_returned = 0;
    block.n_at_barrier = 0;
    for (uint32_t i = 0; i < block.n_threads; i++)
        prepare(&block.fibers[i]);
    for (uint32_t i = 0; i < block.warps.size(); i++)
        block.warps[i] = warp{0, lanes_beyond(i)};
    while (block.n_returned < block.n_threads) {
        bool went_on = false;

        for (uint32_t i = block.n_threads - 1; i; i--)
            std::swap(block.order[i], block.order[random_below(i + 1)]);
        for (uint32_t thread : block.order) {
            if (block.fibers[thread].state != READY)
                continue;
            become(thread);
            switch_to_fiber(&block.fibers[thread]);
            went_on = true;
        }
        if (block.n_at_barrier &&
            block.n_at_barrier + block.n_returned == block.n_threads)
            release_barrier();
        else if (!went_on)
            report_deadlock();
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

void emulate_grid(dim3 grid, dim3 block_dim, size_t shared_bytes,
                  const std::function<void()> &thread)
{
    uint64_t n_blocks = (uint64_t)grid.x * grid.y * grid.z;
    uint64_t step = random_below(1000003) + 1, at = random_below(1u << 30);

    block.thread = &thread;
    block.n_threads = block_dim.x * block_dim.y * block_dim.z;
    if (block.fibers.size() < block.n_threads + 32)
        block.fibers.resize(block.n_threads + 32);
    block.warps.resize((block.n_threads + 31) / 32);
    block.order.resize(block.n_threads);
    for (uint32_t i = 0; i < block.n_threads; i++)
        block.order[i] = i;
    block.shared.assign((shared_bytes + 7) / 8 + 1, 0xcbcbcbcbcbcbcbcb);
    gridDim = grid;
    blockDim = block_dim;
    while (common_divisor(step, n_blocks) != 1)
        step++;
    for (uint64_t i = 0; i < n_blocks; i++) {
        at = (at + step) % n_blocks;
        blockIdx.x = (unsigned)(at % grid.x);
        blockIdx.y = (unsigned)(at / grid.x % grid.y);
        blockIdx.z = (unsigned)(at / grid.x / grid.y);
        run_block();
    }
}
