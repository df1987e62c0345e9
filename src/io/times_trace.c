/* SPDX-License-Identifier: MIT */
#include "io/times_trace.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STEP_RANGE "ProfilerStep#"
#define MAX_MS 1e9

/* Phases in the order in which their names are looked for. */
enum { FORWARD, BACKWARD, INPUT, OUTPUT, GRADIENT, N_TRACED };
static const enum step_part parts[N_TRACED] = {
    [FORWARD] = STEP_FORWARD, [BACKWARD] = STEP_BACKWARD, [INPUT] = STEP_INPUT,
    [OUTPUT] = STEP_OUTPUT,   [GRADIENT] = STEP_GRADIENT,
};

/* Categories of events. The first two are of a GPU. */
enum { KERNEL, GPU_RANGE, HOST_OP, HOST_RANGE, N_CATEGORIES };
static const char *const categories[] = {"kernel", "gpu_user_annotation",
                                         "cpu_op", "user_annotation"};

struct trace_event {
    double begin, end; /* in microseconds */
    int64_t op;        /* number of the operator that launched it; -1: none */
    int phase;         /* phase of its name; N_TRACED: none */
    int category;
};

struct trace_step {
    double begin, end; /* in microseconds */
    uint64_t number;
    int category;
    double ms[N_TRACED];
};

struct trace_reader {
    struct times *times;
    const char *text, *pos, *source;
    struct trace_event *events; /* owned; events that may have a phase */
    struct trace_step *steps;   /* owned */
    size_t n_events, cap_events, n_steps, cap_steps;
    bool has_gpu;
    int64_t rank, n_ranks; /* -1: not given */
};

bool times_is_trace(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{' &&
           strstr(text, "\"traceEvents\"");
}

/* --- names --- */

/* True if the name has "embedding_", perhaps "nobag_" and "codegen_", and then
 * the word. */
static bool is_lookup(const char *name, const char *word)
{
    while ((name = strstr(name, "embedding_"))) {
        const char *pos = name += strlen("embedding_");

        pos += strncmp(pos, "nobag_", 6) ? 0 : 6;
        pos += strncmp(pos, "codegen_", 8) ? 0 : 8;
        if (!strncmp(pos, word, strlen(word)))
            return true;
    }
    return false;
}

/* True if the name is a range of an exchange and goes on with the suffix. */
static bool is_exchange(const char *name, const char *suffix)
{
    static const char *const exchanges[] = {"## All2All", "## Variable",
                                            "## Reduce", "## AllGather"};

    for (size_t i = 0; i < sizeof(exchanges) / sizeof(*exchanges); i++) {
        const char *found = strstr(name, exchanges[i]);

        if (found && strstr(found, suffix))
            return true;
    }
    return false;
}

static int phase_of(const char *name)
{
    return is_lookup(name, "forward")            ? FORWARD
           : is_lookup(name, "backward")         ? BACKWARD
           : strstr(name, "## all2all_data:kjt") ? INPUT
           : is_exchange(name, "_fwd")           ? OUTPUT
           : is_exchange(name, "_bw")            ? GRADIENT
                                                 : N_TRACED;
}

/* --- JSON --- */

static char next(struct trace_reader *reader)
{
    reader->pos += strspn(reader->pos, " \t\r\n");
    return *reader->pos;
}

static int wrong(const struct trace_reader *reader, size_t n_more,
                 const char *what, struct err *err)
{
    size_t line = 1 + n_more;

    for (const char *pos = reader->text; pos < reader->pos; pos++)
        line += *pos == '\n';
    return err_input(err, "%s:%zu: not a whole trace: %s", reader->source, line,
                     what);
}

/* Reads an object or array, and moves behind it. */
static int read_tree(json_t **tree, struct trace_reader *reader,
                     struct err *err)
{
    json_error_t error;

    *tree = json_loadb(reader->pos, strlen(reader->pos), JSON_DISABLE_EOF_CHECK,
                       &error);
    if (!*tree)
        return wrong(reader, error.line > 0 ? (size_t)error.line - 1 : 0,
                     error.text, err);
    reader->pos += error.position;
    return 0;
}

/* Moves behind a string that begins at the position. */
static int skip_string(struct trace_reader *reader, struct err *err)
{
    const char *start = reader->pos++;

    while (*reader->pos && *reader->pos != '"')
        reader->pos += 1 + (*reader->pos == '\\' && reader->pos[1]);
    if (*reader->pos) {
        reader->pos++;
        return 0;
    }
    reader->pos = start;
    return wrong(reader, 0, "a string has no end", err);
}

static int skip_value(struct trace_reader *reader, struct err *err)
{
    const char first = next(reader);
    json_t *tree;
    size_t len;

    if (first == '"')
        return skip_string(reader, err);
    if (first == '{' || first == '[') {
        if (read_tree(&tree, reader, err))
            return -1;
        json_decref(tree);
        return 0;
    }
    len = strcspn(reader->pos, ",}] \t\r\n");
    reader->pos += len;
    return len ? 0 : wrong(reader, 0, "a value is missing", err);
}

/* --- events --- */

static void add_step(struct trace_reader *reader, const char *name,
                     const struct trace_event *event)
{
    reader->steps = mem_room(reader->steps, reader->n_steps, &reader->cap_steps,
                             sizeof(*reader->steps));
    reader->steps[reader->n_steps++] = (struct trace_step){
        .begin = event->begin,
        .end = event->end,
        .number = strtoull(name + strlen(STEP_RANGE), NULL, 10),
        .category = event->category,
    };
}

/* Keeps an event if it may have a phase, or is a step. */
static void add_event(struct trace_reader *reader, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *phase = json_string_value(json_object_get(object, "ph"));
    const char *category = json_string_value(json_object_get(object, "cat"));
    const json_t *begin = json_object_get(object, "ts");
    const json_t *length = json_object_get(object, "dur");
    const json_t *op =
        json_object_get(json_object_get(object, "args"), "External id");
    struct trace_event event = {
        .op = json_is_integer(op) ? json_integer_value(op) : -1};

    if (!name || !phase || strcmp(phase, "X") != 0 || !category ||
        !json_is_number(begin) || !json_is_number(length))
        return;
    while (event.category < N_CATEGORIES &&
           strcmp(category, categories[event.category]) != 0)
        event.category++;
    if (event.category == N_CATEGORIES)
        return;
    event.begin = json_number_value(begin);
    event.end = event.begin + json_number_value(length);
    event.phase = phase_of(name);
    reader->has_gpu |= event.category <= GPU_RANGE;
    if (!strncmp(name, STEP_RANGE, strlen(STEP_RANGE))) {
        add_step(reader, name, &event);
    } else if (event.phase < N_TRACED ||
               (event.category == KERNEL && event.op >= 0)) {
        reader->events = mem_room(reader->events, reader->n_events,
                                  &reader->cap_events, sizeof(event));
        reader->events[reader->n_events++] = event;
    }
}

static int read_events(struct trace_reader *reader, struct err *err)
{
    if (next(reader) != '[')
        return wrong(reader, 0, "traceEvents is not a list", err);
    reader->pos++;
    while (next(reader) != ']') {
        json_t *event;

        if (*reader->pos != '{')
            return wrong(reader, 0, "an event is missing", err);
        if (read_tree(&event, reader, err))
            return -1;
        add_event(reader, event);
        json_decref(event);
        if (next(reader) == ',')
            reader->pos++;
        else if (*reader->pos != ']')
            return wrong(reader, 0, "no ',' or ']' after an event", err);
    }
    reader->pos++;
    return 0;
}

/* Reads {"rank": 0, "world_size": 2}. */
static int read_ranks(struct trace_reader *reader, struct err *err)
{
    const json_t *rank, *n_ranks;
    json_t *info;

    if (next(reader) != '{')
        return wrong(reader, 0, "distributedInfo is not an object", err);
    if (read_tree(&info, reader, err))
        return -1;
    rank = json_object_get(info, "rank");
    n_ranks = json_object_get(info, "world_size");
    if (json_is_integer(rank))
        reader->rank = json_integer_value(rank);
    if (json_is_integer(n_ranks))
        reader->n_ranks = json_integer_value(n_ranks);
    json_decref(info);
    return 0;
}

/* Reads the members of the trace. */
static int read_members(struct trace_reader *reader, struct err *err)
{
    next(reader);
    for (reader->pos++; next(reader) != '}';) {
        const char *key = reader->pos;
        size_t len;
        int rc;

        if (*key != '"')
            return wrong(reader, 0, "a member has no name", err);
        if (skip_string(reader, err))
            return -1;
        len = (size_t)(reader->pos - key);
        if (next(reader) != ':')
            return wrong(reader, 0, "a member has no ':'", err);
        reader->pos++;
        rc = (!strncmp(key, "\"traceEvents\"", len) ? read_events
              : !strncmp(key, "\"distributedInfo\"", len)
                  ? read_ranks
                  : skip_value)(reader, err);
        if (rc)
            return -1;
        if (next(reader) == ',')
            reader->pos++;
        else if (*reader->pos != '}')
            return wrong(reader, 0, "no ',' or '}' after a member", err);
    }
    reader->pos++;
    return next(reader) ? wrong(reader, 0, "a text follows it", err) : 0;
}

/* --- times --- */

static int compare_ops(const void *a, const void *b)
{
    const struct trace_event *left = a, *right = b;

    return (left->op > right->op) - (left->op < right->op);
}

static int compare_begins(const void *a, const void *b)
{
    const struct trace_event *left = a, *right = b;

    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->end < right->end) - (left->end > right->end);
}

/* A kernel has two phases: one by its own name, and one by the operator that
 * launched it. Keeps the one that is earlier in the list of phases. */
static void find_launchers(struct trace_reader *reader, struct arena *arena)
{
    struct trace_event *ops =
        ARENA_NEW(arena, struct trace_event, reader->n_events);
    size_t n = 0;

    for (size_t i = 0; i < reader->n_events; i++)
        if (reader->events[i].category == HOST_OP && reader->events[i].op >= 0)
            ops[n++] = reader->events[i];
    qsort(ops, n, sizeof(*ops), compare_ops);
    for (size_t i = 0; i < reader->n_events; i++) {
        struct trace_event *event = &reader->events[i];
        const struct trace_event *op =
            event->category == KERNEL
                ? bsearch(event, ops, n, sizeof(*ops), compare_ops)
                : NULL;

        if (op && op->phase < event->phase)
            event->phase = op->phase;
    }
}

static struct trace_step *step_of(const struct trace_reader *reader,
                                  double begin)
{
    for (size_t i = 0; i < reader->n_steps; i++) {
        struct trace_step *step = &reader->steps[i];

        if ((step->category <= GPU_RANGE) == reader->has_gpu &&
            step->begin <= begin && begin < step->end)
            return step;
    }
    return NULL;
}

/* Adds up the events of each phase in each step. */
static void sum_events(struct trace_reader *reader)
{
    double ends[N_TRACED];

    for (int p = 0; p < N_TRACED; p++)
        ends[p] = -1e300;
    if (reader->n_events)
        qsort(reader->events, reader->n_events, sizeof(*reader->events),
              compare_begins);
    for (size_t i = 0; i < reader->n_events; i++) {
        const struct trace_event *event = &reader->events[i];
        struct trace_step *step;

        if ((event->category <= GPU_RANGE) != reader->has_gpu ||
            event->phase == N_TRACED || event->begin < ends[event->phase])
            continue;
        step = step_of(reader, event->begin);
        if (!step)
            continue;
        ends[event->phase] = event->end;
        step->ms[event->phase] += (event->end - event->begin) / 1000;
    }
}

static int store_times(struct trace_reader *reader, struct err *err)
{
    struct times *times = reader->times;
    const size_t n = times->n;

    for (size_t i = 0; i < reader->n_steps; i++)
        for (int p = 0; p < N_TRACED; p++) {
            const double ms = reader->steps[i].ms[p];

            if (!(ms > 0))
                continue;
            if (ms > MAX_MS)
                return err_input(err, "%s:1: step %" PRIu64 " takes %g ms",
                                 reader->source, reader->steps[i].number, ms);
            times->times = mem_room(times->times, times->n, &times->cap,
                                    sizeof(*times->times));
            times->times[times->n++] =
                (struct part_time){.step = reader->steps[i].number,
                                   .rank = (uint32_t)reader->rank,
                                   .part = parts[p],
                                   .ms = ms};
        }
    if (times->n > n)
        return 0;
    return err_input(err,
                     reader->n_steps
                         ? "%s:1: no lookups or exchanges of TorchRec in a step"
                         : "%s:1: the profiler did not mark steps: give it a "
                           "schedule, and call its step()",
                     reader->source);
}

/* Checks the rank against the plan. A trace without ranks is of one rank. */
static int check_rank(struct trace_reader *reader, struct err *err)
{
    const int64_t n = reader->times->n_ranks;

    if (reader->rank < 0 && n == 1)
        reader->rank = 0;
    if (reader->n_ranks >= 0 && reader->n_ranks != n)
        return err_input(err,
                         "%s:1: the trace is of a job of %" PRId64
                         " ranks, but the plan has %" PRId64,
                         reader->source, reader->n_ranks, n);
    if (reader->rank < 0)
        return err_input(err, "%s:1: the trace has no rank in distributedInfo",
                         reader->source);
    if (reader->rank >= n)
        return err_input(err,
                         "%s:1: the trace is of rank %" PRId64
                         ", but the plan has %" PRId64 " ranks",
                         reader->source, reader->rank, n);
    return 0;
}

int times_add_trace(struct times *times, const char *text, const char *source,
                    struct arena *arena, struct err *err)
{
    struct trace_reader reader = {.times = times,
                                  .text = text,
                                  .pos = text,
                                  .source = source,
                                  .rank = -1,
                                  .n_ranks = -1};
    int rc = read_members(&reader, err) || check_rank(&reader, err);

    if (!rc) {
        find_launchers(&reader, arena);
        sum_events(&reader);
        rc = store_times(&reader, err);
        times->has_starts |= !reader.has_gpu;
    }
    mem_free(reader.events);
    mem_free(reader.steps);
    return rc ? -1 : 0;
}
