/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

/*
 * Lets a program that is built here (STATIC=1) run on machines with an older
 * libc: glibc 2.31 (Debian 11, Ubuntu 20.04) or later. Since then glibc gave
 * some functions a new version and moved others into libc.so.6. The program
 * uses their old versions for x86-64, which newer libcs still contain. It is
 * linked with libdl, libpthread and librt, because these functions are there in
 * an old libc.
 */

/* Defines `name` as a jump to the old version of the libc function. The symbol
 * is hidden; otherwise the name in libc would lead back here. */
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

/* libstdc++ reads this flag to decide whether it may leave out atomics. */
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
HIDE(__libc_single_threaded);

/* For libstdc++'s random_device, which this program links but does not use. */
uint32_t arc4random(void);
uint32_t arc4random(void)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}
HIDE(arc4random);

/* In an old libc these functions are inline. They call __xstat etc. with the
 * version of the struct. */
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

/* stat64 has the same struct as stat if long has 64 bits. */
__asm__(".globl stat64\nstat64 = stat\n.globl lstat64\nlstat64 = lstat\n"
        ".globl fstat64\nfstat64 = fstat");
HIDE(stat);
HIDE(lstat);
HIDE(fstat);
HIDE(stat64);
HIDE(lstat64);
HIDE(fstat64);

/* A newer libc runs the constructors of a program. An older one leaves this to
 * the program, which passes a function for it. */
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
