/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_FAKE_RUNTIME_H
#define NEUROSHARD_TESTS_FAKE_RUNTIME_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The CUDA runtime of the program that loads a stand-in library. If the program
 * exports one (the emulator's), it copies the memory. Otherwise the memory is
 * host memory. */

enum { MEMCPY_DEFAULT = 4 };
struct runtime {
    /* functions of the program's runtime; NULL if it has none */
    int (*wait)(void *stream);
    int (*copy)(void *dst, const void *src, size_t n, int kind);
};

static inline struct runtime runtime_of_program(void)
{
    void *program = dlopen(NULL, RTLD_NOW);
    void *wait = dlsym(program, "cudaStreamSynchronize");
    void *copy = dlsym(program, "cudaMemcpy");
    struct runtime runtime;

    memcpy(&runtime.wait, &wait, sizeof wait);
    memcpy(&runtime.copy, &copy, sizeof copy);
    dlclose(program);
    return runtime;
}

/* Copies n bytes. Returns 0, or an error of the runtime. */
static inline int runtime_copy(const struct runtime *runtime, void *dst,
                               const void *src, size_t n)
{
    if (runtime->copy)
        return runtime->copy(dst, src, n, MEMCPY_DEFAULT);
    memcpy(dst, src, n);
    return 0;
}

#endif
