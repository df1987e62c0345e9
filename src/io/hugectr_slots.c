/* SPDX-License-Identifier: MIT */
#include "io/hugectr_slots.h"

#include "io/python_value.h"

#include <string.h>

static const json_t *argument(const json_t *call, const char *name,
                              const char *position)
{
    const json_t *value = json_object_get(call, name);

    return value ? value : json_object_get(call, position);
}

/* Adds an input of the model: DataReaderSparseParam(name, nnz, is_fixed, n). */
static void add_input(struct hugectr_slots *slots, const json_t *call)
{
    const json_t *name = argument(call, "top_name", "0");
    const json_t *nnz = argument(call, "nnz_per_slot", "1");
    const char *fixed = python_unknown(argument(call, "is_fixed_length", "2"));
    const json_t *n = argument(call, "slot_num", "3");

    if (!json_is_string(name) || !json_is_integer(n))
        return;
    json_object_set_new(
        slots->inputs, json_string_value(name),
        json_pack("{s:I, s:I, s:I}", "nnz",
                  fixed && !strcmp(fixed, "True") && json_is_integer(nnz)
                      ? json_integer_value(nnz)
                      : (json_int_t)0,
                  "n", json_integer_value(n), "first", slots->n));
    if (json_integer_value(n) > 0 && json_integer_value(n) < 1 << 20)
        slots->n += json_integer_value(n);
}

void slots_init(struct hugectr_slots *slots, const char *text,
                const json_t *names)
{
    static const char input[] = "DataReaderSparseParam(",
                      reader[] = "DataReaderParams(";
    struct err unused = {0};
    json_t *call;

    slots->inputs = json_object();
    for (const char *pos = text; (pos = strstr(pos, input));) {
        pos += strlen(input);
        if (python_call(&call, &pos, names, &unused))
            continue;
        add_input(slots, call);
        json_decref(call);
    }
    for (const char *pos = text; (pos = strstr(pos, reader));) {
        json_t *sizes;

        pos += strlen(reader);
        if (python_call(&call, &pos, names, &unused))
            continue;
        sizes = json_object_get(call, "slot_size_array");
        if (json_is_array(sizes)) {
            json_decref(slots->sizes);
            slots->sizes = json_incref(sizes);
        }
        json_decref(call);
    }
}

void slots_release(struct hugectr_slots *slots)
{
    json_decref(slots->inputs);
    json_decref(slots->sizes);
}

/* Adds the table of a slot. */
static int add_slot(struct tables_found *found, const char *name,
                    const json_t *rows, const json_t *dim, json_int_t nnz,
                    size_t line, struct err *err)
{
    struct arena *arena = found->cells.arena;

    if (!json_is_integer(rows) || json_integer_value(rows) < 1)
        return err_input(err,
                         "%s:%zu: slot '%s' has %s rows; a slot without rows "
                         "of its own uses those of another one, which is not "
                         "named",
                         found->source, line, tables_shown(name, arena),
                         json_cell(rows, arena));
    found_begin(found);
    found_set(found, COLUMN_NAME, "name", name);
    found_set(found, COLUMN_ROWS, "slot_size_array", json_cell(rows, arena));
    found_set(found, COLUMN_DIM, "embedding_vec_size", json_cell(dim, arena));
    found_set(found, COLUMN_POOLING, "nnz_per_slot",
              nnz > 0 ? arena_printf(arena, "%lld", (long long)nnz) : NULL);
    return found_end(found, line, FOUND_SAME, err);
}

int slots_add(const struct hugectr_slots *slots, struct tables_found *found,
              const json_t *call, size_t line, struct err *err)
{
    const json_t *bottom = json_object_get(call, "bottom_name");
    const json_t *own = json_object_get(call, "slot_size_array");
    const json_t *dim = json_object_get(call, "embedding_vec_size");
    const json_t *sizes = json_is_array(own) ? own : slots->sizes;
    const json_t *input =
        json_object_get(slots->inputs, json_string_value(bottom));
    const json_int_t n = json_integer_value(json_object_get(input, "n"));
    const json_int_t first =
        sizes == own ? 0 : json_integer_value(json_object_get(input, "first"));

    if (!input || !json_is_integer(dim))
        return err_input(err,
                         "%s:%zu: the %s of a SparseEmbedding is not "
                         "known",
                         found->source, line,
                         input ? "embedding_vec_size" : "input");
    if (!sizes)
        return err_input(err,
                         "%s:%zu: the SparseEmbedding of '%s' has no "
                         "slot_size_array, so its rows are not known",
                         found->source, line, json_string_value(bottom));
    if (n < 1 ||
        (sizes == own ? n : slots->n) != (json_int_t)json_array_size(sizes))
        return err_input(
            err, "%s:%zu: %s %lld slots, but slot_size_array has %zu",
            found->source, line,
            sizes == own ? "the input has" : "the inputs have",
            (long long)(sizes == own ? n : slots->n), json_array_size(sizes));
    for (json_int_t i = 0; i < n; i++)
        if (add_slot(found,
                     arena_printf(found->cells.arena, "%s_%lld",
                                  json_string_value(bottom), (long long)i),
                     json_array_get(sizes, (size_t)(first + i)), dim,
                     json_integer_value(json_object_get(input, "nnz")), line,
                     err))
            return -1;
    return 0;
}
