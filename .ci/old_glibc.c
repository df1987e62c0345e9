/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

/*
 * Linked into a program that is built here (STATIC=1) and runs on machines with
 * an older libc, from glibc 2.31 (Debian 11, Ubuntu 20.04) on: whatever glibc
 * gave a new version or moved into libc.so.6 since then is taken by its old
 * one, of x86-64. Of newer libcs the old ones are a part. Linked with libdl,
 * libpthread and librt, where an old libc has them.
 */

/* What the program calls goes to the old version; hidden, or libc's own name
 * would lead back here. */
#define HIDE(name) __asm__(".hidden " #name)
#define OLD(name, version)                                                    \
    __asm__(".symver old_" #name "," #name "@GLIBC_" version "\n.text\n"      \
            ".globl " #name "\n.type " #name ",@function\n" #name ":\n"       \
            "\tjmp *old_" #name "@GOTPCREL(%rip)\n.size " #name ",.-" #name); \
    HIDE(name)

OLD(dlopen, "2.2.5");
OLD(dlmopen, "2.3.4");
OLD(dlclose, "2.2.5");
OLD(dlerror, "2.2.5");
OLD(dlsym, "2.2.5");
OLD(dlvsym, "2.2.5");
OLD(hypot, "2.2.5");
OLD(pthread_condattr_setpshared, "2.2.5");
OLD(pthread_create, "2.2.5");
OLD(pthread_detach, "2.2.5");
OLD(pthread_getaffinity_np, "2.3.4");
OLD(pthread_getspecific, "2.2.5");
OLD(pthread_join, "2.2.5");
OLD(pthread_key_create, "2.2.5");
OLD(pthread_key_delete, "2.2.5");
OLD(pthread_kill, "2.2.5");
OLD(pthread_mutex_trylock, "2.2.5");
OLD(pthread_mutexattr_destroy, "2.2.5");
OLD(pthread_mutexattr_init, "2.2.5");
OLD(pthread_mutexattr_setpshared, "2.2.5");
OLD(pthread_mutexattr_settype, "2.2.5");
OLD(pthread_once, "2.2.5");
OLD(pthread_rwlock_destroy, "2.2.5");
OLD(pthread_rwlock_init, "2.2.5");
OLD(pthread_rwlock_rdlock, "2.2.5");
OLD(pthread_rwlock_timedrdlock, "2.2.5");
OLD(pthread_rwlock_timedwrlock, "2.2.5");
OLD(pthread_rwlock_tryrdlock, "2.2.5");
OLD(pthread_rwlock_trywrlock, "2.2.5");
OLD(pthread_rwlock_unlock, "2.2.5");
OLD(pthread_rwlock_wrlock, "2.2.5");
OLD(pthread_rwlockattr_destroy, "2.2.5");
OLD(pthread_rwlockattr_init, "2.2.5");
OLD(pthread_rwlockattr_setpshared, "2.2.5");
OLD(pthread_setaffinity_np, "2.3.4");
OLD(pthread_setspecific, "2.2.5");
OLD(pthread_sigmask, "2.2.5");
OLD(pthread_spin_destroy, "2.2.5");
OLD(pthread_spin_init, "2.2.5");
OLD(pthread_spin_lock, "2.2.5");
OLD(pthread_spin_trylock, "2.2.5");
OLD(pthread_spin_unlock, "2.2.5");
OLD(sem_destroy, "2.2.5");
OLD(sem_init, "2.2.5");
OLD(sem_post, "2.2.5");
OLD(sem_timedwait, "2.2.5");
OLD(sem_trywait, "2.2.5");
OLD(sem_wait, "2.2.5");
OLD(shm_open, "2.2.5");
OLD(shm_unlink, "2.2.5");

/* libstdc++ asks whether it may leave atomics out. */
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
HIDE(__libc_single_threaded);

/* Its random_device, which nobody here asks for numbers. */
uint32_t arc4random(void);
uint32_t arc4random(void)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}
HIDE(arc4random);

/* These were functions of their caller's, for a version of the struct. */
#define STAT_VERSION 1
__asm__(".symver old_xstat,__xstat@GLIBC_2.2.5");
__asm__(".symver old_lxstat,__lxstat@GLIBC_2.2.5");
__asm__(".symver old_fxstat,__fxstat@GLIBC_2.2.5");
int old_xstat(int version, const char *path, struct stat *out);
int old_lxstat(int version, const char *path, struct stat *out);
int old_fxstat(int version, int fd, struct stat *out);

int stat(const char *restrict path, struct stat *restrict out)
{
    return old_xstat(STAT_VERSION, path, out);
}

int lstat(const char *restrict path, struct stat *restrict out)
{
    return old_lxstat(STAT_VERSION, path, out);
}

int fstat(int fd, struct stat *out)
{
    return old_fxstat(STAT_VERSION, fd, out);
}

/* The same struct, where long has 64 bits. */
__asm__(".globl stat64\nstat64 = stat\n.globl lstat64\nlstat64 = lstat\n"
        ".globl fstat64\nfstat64 = fstat");
HIDE(stat);
HIDE(lstat);
HIDE(fstat);
HIDE(stat64);
HIDE(lstat64);
HIDE(fstat64);

/* A newer libc runs the constructors of a program; an older one leaves that to
 * the program, which hands over a function for it. */
typedef int main_function(int argc, char **argv, char **envp);
typedef void constructor(int argc, char **argv, char **envp);
extern constructor *__init_array_start[], *__init_array_end[];

__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5");
int old_start(main_function *, int, char **, constructor *, void (*)(void),
              void (*)(void), void *);
int __libc_start_main(main_function *, int, char **, constructor *,
                      void (*)(void), void (*)(void), void *);
HIDE(__libc_start_main);

static void construct(int argc, char **argv, char **envp)
{
    for (constructor **next = __init_array_start; next < __init_array_end;
         next++)
        (*next)(argc, argv, envp);
}

int __libc_start_main(main_function *run, int argc, char **argv,
                      constructor *init, void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    (void)init;
    return old_start(run, argc, argv, construct, fini, rtld_fini, stack_end);
}
