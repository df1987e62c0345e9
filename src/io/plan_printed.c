/* SPDX-License-Identifier: MIT */
#include "io/plan_printed.h"

#include "base/text.h"
#include "io/python_value.h"

#include <string.h>

#define BLANKS " \t\r\n"
#define CALL "ParameterSharding("
#define MAX_CELLS 8
/* number of cells of a row, in each of the two printed tables */
#define N_CELLS 4

struct printed_reader {
    const char *source;
    struct arena *arena;
    /* current and last complete plan, as objects of modules; owned; NULL:
     * none */
    json_t *now, *best;
    json_t *module; /* current module of the plan `now`, borrowed */
    enum { WITHIN_NONE, WITHIN_PARAMS, WITHIN_SHARDS } within;
    size_t line, now_line, best_line;
    struct err fault; /* first error of the plan `now`; code 0: no error */
};

bool plan_printed_is(const char *text)
{
    return strstr(text, CALL) ||
           (strstr(text, "| sharding type") && strstr(text, "| shard offsets"));
}

static void set_fault(struct printed_reader *reader, size_t line,
                      const struct err *fault)
{
    if (reader->fault.code)
        return;
    reader->fault = *fault;
    (void)err_prefix(&reader->fault, "%s:%zu", reader->source, line);
}

/* --- the end of a plan --- */

/* Checks that a table has as many shards as ranks. */
static int check_table(const char *name, const json_t *table, struct err *err)
{
    const json_t *type = json_object_get(table, "sharding_type");
    const size_t n_ranks = json_array_size(json_object_get(table, "ranks"));
    const size_t n = json_array_size(json_object_get(table, "shards"));

    if (!json_is_string(type))
        return err_input(err, "table '%s' has no sharding_type", name);
    if (n == n_ranks ||
        (!strcmp(json_string_value(type), "data_parallel") && !n))
        return 0;
    return err_input(err, "table '%s' has %zu ranks, but %zu shards are listed",
                     name, n_ranks, n);
}

static size_t line_of(const json_t *table)
{
    return (size_t)json_integer_value(json_object_get(table, "line"));
}

/* Ends the current plan. If it is complete, it becomes the best plan. */
static void end_plan(struct printed_reader *reader)
{
    const char *path, *name;
    json_t *module, *table;
    struct err fault = {0};
    size_t n = 0;

    json_object_foreach(reader->now, path, module)
    {
        json_object_foreach(module, name, table)
        {
            n++;
            if (check_table(name, table, &fault))
                set_fault(reader, line_of(table), &fault);
        }
    }
    if (!n && reader->now) {
        (void)err_input(&fault, "the plan has no tables");
        set_fault(reader, reader->now_line, &fault);
    }
    if (reader->fault.code || !reader->now)
        return;
    json_decref(reader->best);
    reader->best = reader->now;
    reader->best_line = reader->now_line;
    reader->now = NULL;
}

static void begin_plan(struct printed_reader *reader)
{
    end_plan(reader);
    json_decref(reader->now);
    reader->now = json_object();
    reader->module = NULL;
    reader->now_line = reader->line;
    reader->fault = (struct err){0};
}

/* --- printed tables --- */

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && strchr(BLANKS, end[-1]))
        *--end = '\0';
    return text + strspn(text, BLANKS);
}

static size_t split(char *cells[MAX_CELLS], char *line)
{
    size_t n = 0;
    char *cell;

    while (n < MAX_CELLS && (cell = strsep(&line, "|")))
        cells[n++] = trim(cell);
    return n;
}

/* Returns the last word of a cell. The words before it are a prefix that a
 * launcher printed. */
static const char *last_word(const char *cell)
{
    const char *blank = strrchr(cell, ' ');

    return blank ? blank + 1 : cell;
}

/* Reads a list of integers such as "[0, 1]". Returns NULL if the text is
 * anything else. */
static json_t *read_list(const char *text)
{
    struct err unused = {0};
    json_t *list = NULL;

    if (*text != '[' || python_value(&list, &text, NULL, &unused))
        return NULL;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_integer(json_array_get(list, i)) || *text) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* Adds a table from a row such as "t | row_wise | fused | [0, 1]". Lines of any
 * other form belong to other programs and are ignored. */
static int add_param(struct printed_reader *reader, char *cells[],
                     struct err *err)
{
    const char *name = last_word(cells[0]);
    json_t *ranks = read_list(cells[3]);

    if (!ranks)
        return 0;
    if (json_object_get(reader->module, name)) {
        json_decref(ranks);
        return err_input(err, "table '%s' is listed twice", name);
    }
    if (json_object_set_new(
            reader->module, name,
            json_pack("{s:s, s:s, s:o, s:[], s:I}", "sharding_type", cells[1],
                      "compute_kernel", cells[2], "ranks", ranks, "shards",
                      "line", (json_int_t)reader->line)))
        return err_input(err, "a name is not valid UTF-8");
    return 0;
}

/* Adds a shard from a row such as "t | [0, 0] | [50, 64] | rank:0/cuda:0". */
static int add_shard(struct printed_reader *reader, char *cells[],
                     struct err *err)
{
    const char *name = last_word(cells[0]);
    json_t *offsets = read_list(cells[1]), *sizes = read_list(cells[2]);
    json_t *table = json_object_get(reader->module, name);

    if (!offsets || !sizes || strncmp(cells[3], "rank:", 5) != 0) {
        json_decref(offsets);
        json_decref(sizes);
        return 0;
    }
    if (!table) {
        json_decref(offsets);
        json_decref(sizes);
        return err_input(err, "a shard of table '%s', but the table has no row",
                         name);
    }
    json_array_append_new(json_object_get(table, "shards"),
                          json_pack("{s:o, s:o, s:s}", "shard_offsets", offsets,
                                    "shard_sizes", sizes, "placement",
                                    cells[3]));
    return 0;
}

static void begin_module(struct printed_reader *reader, const char *path)
{
    if (!reader->now || json_object_get(reader->now, path))
        begin_plan(reader);
    reader->module = json_object();
    if (json_object_set_new(reader->now, path, reader->module))
        reader->module = NULL;
    reader->within = WITHIN_NONE;
}

/* Recognizes the heading of a table of parameters or of shards. If no "module:"
 * line came before, the table belongs to a module without a name. */
static bool read_heading(struct printed_reader *reader, char *cells[])
{
    const bool is_params = !strcmp(cells[1], "sharding type");

    if (strcmp(last_word(cells[0]), "param") != 0 ||
        !(is_params || !strcmp(cells[1], "shard offsets")))
        return false;
    if (!reader->module || (is_params && (json_object_size(reader->module) ||
                                          reader->within == WITHIN_SHARDS)))
        begin_module(reader, "");
    reader->within = is_params ? WITHIN_PARAMS : WITHIN_SHARDS;
    return true;
}

static int read_line(struct printed_reader *reader, char *line, struct err *err)
{
    char *module = strstr(line, "module: "), *cells[MAX_CELLS];
    size_t n;

    if (module && !strchr(line, '|')) {
        begin_module(reader, trim(module + strlen("module: ")));
        return 0;
    }
    n = split(cells, line);
    if (n < N_CELLS || read_heading(reader, cells) || !reader->module ||
        reader->within == WITHIN_NONE || strspn(cells[1], "-+") > 0)
        return 0;
    if (n > N_CELLS)
        return err_input(err,
                         "a row has %zu cells, but the heading has %d: rows "
                         "have run into each other",
                         n, N_CELLS);
    return reader->within == WITHIN_PARAMS ? add_param(reader, cells, err)
                                           : add_shard(reader, cells, err);
}

static void read_tables(struct printed_reader *reader, char *text)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        struct err fault = {0};

        reader->line++;
        if (read_line(reader, line, &fault))
            set_fault(reader, reader->line, &fault);
    }
    end_plan(reader);
}

/* --- output of repr() --- */

static size_t line_at(const char *text, const char *pos)
{
    size_t n = 1;

    for (; text < pos; text++)
        n += *text == '\n';
    return n;
}

/* True if a '{' is the value of a key in a dict. The search for the key stops
 * at `least`. */
static bool is_member(const char *least, const char *brace)
{
    while (brace > least && strchr(BLANKS, brace[-1]))
        brace--;
    return brace - least >= 2 && brace[-1] == ':' && strchr("'\"", brace[-2]);
}

/* Returns the '{' at which the plan begins, or the module if the text has only
 * one. `call` points to the "ParameterSharding(" of a table. Returns NULL if
 * this table is not the first one of its plan or module. The search goes back
 * no further than `least`. */
static const char *find_start(const char *least, const char *call)
{
    for (unsigned n = 0; call > least && n < 2;)
        if (*--call == '{') {
            if (!is_member(least, call))
                return call;
            n++;
        }
    return NULL;
}

/* Replaces the words of a printed object, such as "None", "True" and "0.5", by
 * JSON values. */
static void take_words(json_t *object)
{
    const char *key, *word;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        double number;

        word = json_string_value(value);
        if (!word)
            continue;
        if (!strcmp(word, "None"))
            json_object_set_new(object, key, json_null());
        else if (!strcmp(word, "True") || !strcmp(word, "False"))
            json_object_set_new(object, key, json_boolean(*word == 'T'));
        else if (text_to_double(word, &number))
            json_object_set_new(object, key, json_real(number));
    }
}

/* Gives each table of a printed plan its member "shards" and its line. */
static int take_tables(json_t *modules, size_t line, struct err *err)
{
    const char *path, *name;
    json_t *module, *table;

    json_object_foreach(modules, path, module)
    {
        if (!json_is_object(module))
            return err_input(err, "'%s' is not a module", path);
        json_object_foreach(module, name, table)
        {
            json_t *spec = json_object_get(table, "sharding_spec");
            json_t *shards = json_object_get(spec, "shards");

            if (!json_is_object(table))
                return err_input(err, "'%s' is not a table", name);
            take_words(table);
            take_words(json_object_get(table, "cache_params"));
            json_object_set_new(table, "shards",
                                shards ? json_incref(shards) : json_array());
            json_object_set_new(table, "line", json_integer((json_int_t)line));
        }
    }
    return 0;
}

static int read_repr(struct printed_reader *reader, const char **pos,
                     struct err *err)
{
    json_t *plan, *first;

    if (python_value(&plan, pos, NULL, err))
        return -1;
    first = json_object_iter_value(json_object_iter(plan));
    /* the text is a single module */
    if (json_object_get(first, "sharding_type"))
        plan = json_pack("{s:o}", "", plan);
    json_decref(reader->now);
    reader->now = plan;
    return take_tables(plan, reader->line, err);
}

static void read_reprs(struct printed_reader *reader, const char *text)
{
    const char *pos = text, *call;

    while ((call = strstr(pos, CALL))) {
        const char *start = find_start(pos, call);
        struct err fault = {0};

        pos = call + strlen(CALL);
        if (!start) /* the table belongs to a broken plan */
            continue;
        reader->line = line_at(text, start);
        begin_plan(reader);
        if (read_repr(reader, &start, &fault))
            set_fault(reader, reader->line, &fault);
        pos = start > pos ? start : pos;
    }
    end_plan(reader);
}

int plan_printed_read(json_t **modules, const char **doubt, const char *text,
                      size_t len, const char *source, struct arena *arena,
                      struct err *err)
{
    struct printed_reader reader = {.source = source, .arena = arena};
    int rc = 0;

    *doubt = NULL;
    if (strstr(text, CALL))
        read_reprs(&reader, text);
    else
        read_tables(&reader, arena_strndup(arena, text, len));
    *modules = reader.best;
    if (!reader.best && reader.fault.code) {
        *err = reader.fault;
        rc = -1;
    } else if (!reader.best) {
        rc = err_input(err, "%s:1: no plan with tables was found", source);
    } else if (reader.fault.code) {
        *doubt =
            arena_printf(arena,
                         "%s; the plan of line %zu is incomplete, so the one "
                         "of line %zu is read",
                         reader.fault.msg, reader.now_line, reader.best_line);
    }
    json_decref(reader.now);
    return rc;
}
