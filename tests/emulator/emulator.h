/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_EMULATOR_H
#define NEUROSHARD_TESTS_EMULATOR_H

#include <cstddef>
#include <cstdint>

/* Declarations shared by the emulator's source files. */

/* Returns a number from the environment, or `otherwise` if it is not set. */
uint64_t emulator_setting(const char *name, uint64_t otherwise);
/* Returns true under EMULATOR_EMPTY=1: kernels do nothing and memory is not
 * watched, so only the host's work remains. */
bool emulator_is_empty();

/*
 * The device's memory. Without a sanitizer the host may touch it only while the
 * device works, and an inaccessible guard page follows each block. With a
 * sanitizer each block comes from malloc, so that ASan detects accesses beyond
 * its ends and after its release.
 */
void *emulated_memory_take(size_t n_bytes); /* NULL if it is full */
/* Releases a block. Returns false if the pointer is not device memory. */
bool emulated_memory_give(void *ptr);
bool emulated_memory_holds(const void *ptr, size_t n_bytes);
size_t emulated_memory_total();
size_t emulated_memory_used();
/* Mark the start and the end of the device's work. Calls nest. */
void emulated_memory_open();
void emulated_memory_close();

#endif
