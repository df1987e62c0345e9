/* SPDX-License-Identifier: MIT */
#include "base/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/* A mutable global: a signal handler can reach nothing else. */
static atomic_int requested;

static void on_signal(int signo)
{
    if (atomic_exchange(&requested, 1)) {
        signal(signo, SIG_DFL);
        raise(signo);
    }
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

/* An interrupt ends the poll at once, or, where it came just before, soon. */
int interrupt_wait(int fd, bool to_write)
{
    struct pollfd poll_fd = {.fd = fd, .events = to_write ? POLLOUT : POLLIN};

    while (!interrupt_requested())
        if (poll(&poll_fd, 1, 100) > 0)
            return 0;
    return -1;
}
