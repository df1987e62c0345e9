/* SPDX-License-Identifier: MIT */
#include "base/interrupt.h"

#include "base/err.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Mutable globals, because a signal handler can reach nothing else. */
static atomic_int requested, n_held;
static atomic_bool has_something;
static _Atomic(const char *) last_said, last_answer;

static void write_text(int fd, const char *text)
{
    ssize_t n = 1;

    for (size_t len = strlen(text); len && n > 0; len -= (size_t)n) {
        n = write(fd, text, len);
        text += n > 0 ? n : 0;
    }
}

/* Prints the texts and ends the process. It runs in a signal handler, so it
 * calls only async-signal-safe functions. */
static void end_at_once(void)
{
    const char *said = atomic_load(&last_said);

    if (!said || atomic_load(&has_something) || atomic_load(&n_held))
        return;
    write_text(STDERR_FILENO, said);
    write_text(STDOUT_FILENO, atomic_load(&last_answer));
    _exit(err_exit_status(ERR_INTERRUPTED));
}

static void on_signal(int signo)
{
    if (atomic_exchange(&requested, 1)) {
        signal(signo, SIG_DFL);
        raise(signo);
    }
    end_at_once();
}

void interrupt_end_at_once(const char *said, const char *answer)
{
    atomic_store(&last_answer, answer);
    atomic_store(&last_said, said);
}

void interrupt_keep(bool has)
{
    atomic_store(&has_something, has);
}

void interrupt_hold(void)
{
    atomic_fetch_add(&n_held, 1);
}

void interrupt_release(bool may_end)
{
    atomic_fetch_sub(&n_held, 1);
    if (may_end && interrupt_requested())
        end_at_once();
}

void interrupt_install(void)
{
    struct sigaction action = {0};

    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_requested(void)
{
    return atomic_load_explicit(&requested, memory_order_relaxed) != 0;
}

/* An interrupt during poll ends the poll at once. After an interrupt just
 * before poll, the poll ends by its timeout of 100 ms. */
int interrupt_wait(int fd, bool to_write)
{
    struct pollfd poll_fd = {.fd = fd, .events = to_write ? POLLOUT : POLLIN};

    while (!interrupt_requested())
        if (poll(&poll_fd, 1, 100) > 0)
            return 0;
    return -1;
}
