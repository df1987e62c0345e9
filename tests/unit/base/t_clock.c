/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static double in_ms(const struct timespec *time)
{
    return (double)time->tv_sec * 1e3 + (double)time->tv_nsec * 1e-6;
}

static void test_clock(void)
{
    char buf[CLOCK_TEXT_MAX];
    struct timespec before, after;
    double now_ms;
    int year, month, day, hour, minute, second;
    char zone;

    clock_gettime(CLOCK_MONOTONIC, &before);
    now_ms = clock_ms();
    clock_gettime(CLOCK_MONOTONIC, &after);
    ok(now_ms >= in_ms(&before) && now_ms <= in_ms(&after),
       "milliseconds of the system's clock");
    is_i64(sscanf(clock_utc(buf), "%4d-%2d-%2dT%2d:%2d:%2d%c", &year, &month,
                  &day, &hour, &minute, &second, &zone),
           7, "the date has its seven parts");
    ok(strlen(buf) == 20 && zone == 'Z', "and is 20 characters long");
}

/* Returns the signal that ends a child which raises the two signals, or 0 if
 * the child survives. */
static int child_killed_by(int first, int second)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        interrupt_install();
        raise(first);
        if (!interrupt_requested())
            _exit(9);
        if (second)
            raise(second);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void test_interrupt(void)
{
    ok(!interrupt_requested(), "nobody has asked yet");
    is_i64(child_killed_by(SIGINT, 0), 0, "the first SIGINT is a request");
    is_i64(child_killed_by(SIGTERM, 0), 0, "so is the first SIGTERM");
    is_i64(child_killed_by(SIGINT, SIGINT), SIGINT, "the second kills");
    is_i64(child_killed_by(SIGINT, SIGTERM), SIGTERM, "whichever it is");
}

/* Runs a progress display with two updates in a child whose stderr is fd.
 * Returns false if the machine was so slow between the two that the second
 * update had to be drawn. */
static bool show_progress(int fd)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct progress progress;
        double begin_ms;

        dup2(fd, STDERR_FILENO);
        progress_start(&progress, "samples", 200, false);
        progress_update(&progress, 10);
        sleep_ms(250);
        begin_ms = clock_ms();
        progress_update(&progress, 50);
        progress_update(&progress, 51);
        status = clock_ms() - begin_ms >= 100;
        progress_finish(&progress);
        _exit(status);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

/* Reads all that a terminal receives until its other end is closed; the output
 * may arrive in parts. Returns false if there is no pseudo terminal. */
static bool read_terminal(char *text, size_t size)
{
    int unlock = 0, slave, master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    size_t len = 0;
    ssize_t n;
    bool in_time;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) ||
        (slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY)) < 0) {
        if (master >= 0)
            close(master);
        return false;
    }
    in_time = show_progress(slave);
    close(slave);
    while (len < size - 1 && (n = read(master, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    close(master);
    text[len] = '\0';
    return in_time || read_terminal(text, size);
}

static void test_progress(void)
{
    char text[512] = "";
    size_t len;
    int fds[2];
    ssize_t n = -1;

    if (pipe(fds) == 0) {
        show_progress(fds[1]);
        close(fds[1]);
        n = read(fds[0], text, sizeof text);
        close(fds[0]);
    }
    is_i64(n, 0, "a pipe sees no progress");
    if (!read_terminal(text, sizeof text)) {
        tap_skip("a terminal sees progress", "no pseudo terminal");
        return;
    }
    len = strlen(text);
    ok(strstr(text, "\rsamples: 50 of 200 (25 %), ") != NULL,
       "a terminal sees progress");
    ok(strstr(text, " s left") != NULL, "and the time left");
    ok(!strstr(text, " 51 of"), "at most ten times a second");
    ok(len > 4 && !strcmp(text + len - 4, "\r\033[K"),
       "and at last a clear line");
}

int main(void)
{
    test_clock();
    test_interrupt();
    test_progress();
    return tap_done();
}
