/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_EMULATOR_H
#define NEUROSHARD_TESTS_EMULATOR_H

#include <cstddef>
#include <cstdint>

/* What the emulator's own parts share. */

/* A number of the environment. */
uint64_t emulator_setting(const char *name, uint64_t otherwise);
/* EMULATOR_EMPTY=1: kernels do nothing and memory is not watched, so that what
 * is left is the host's work. */
bool emulator_is_empty();

/*
 * The device's memory. Without a sanitizer the host may touch it only while
 * the device works, and a page behind each block is nobody's; with one, each
 * block comes from malloc, so that ASan watches its ends and its death.
 */
void *emulated_memory_take(size_t n_bytes); /* NULL: it is full */
/* Whether it was memory of the device, which is forgotten then. */
bool emulated_memory_give(void *ptr);
bool emulated_memory_holds(const void *ptr, size_t n_bytes);
size_t emulated_memory_total();
size_t emulated_memory_used();
/* The device starts to work; it rests again. They nest. */
void emulated_memory_open();
void emulated_memory_close();

#endif
