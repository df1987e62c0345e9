/* SPDX-License-Identifier: MIT */
#include "costmodel/model_file.h"

#include "base/file.h"
#include "base/hash.h"
#include "costmodel/model_json.h"

#include <math.h>
#include <string.h>

static const unsigned char magic[8] = {0x89, 'N', 'S', 'H',
                                       'A',  'R', 'D', '\n'};

#define PREFIX_BYTES 24 /* magic, version, H, N */
#define HASH_BYTES 8
#define ALIGNMENT 64

static void put_uint(unsigned char *at, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_uint(const unsigned char *at, unsigned n_bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < n_bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void put_floats(unsigned char *at, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof(bits));
        put_uint(at + 4 * i, bits, 4);
    }
}

static void get_floats(const unsigned char *at, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)get_uint(at + 4 * i, 4);

        memcpy(&x[i], &bits, sizeof(bits));
    }
}

void model_to_bytes(struct model *model, const char **data, size_t *len,
                    struct arena *arena)
{
    json_t *root = model_to_json(model);
    char *header = json_to_text(root);
    const size_t n_text = strlen(header), n_params = model->mlp.n_params;
    size_t n_header = n_text, n_hashed;
    unsigned char *out;

    while ((PREFIX_BYTES + n_header) % ALIGNMENT)
        n_header++;
    n_hashed = PREFIX_BYTES + n_header + 4 * n_params;
    out = arena_alloc(arena, n_hashed + HASH_BYTES, 1);
    memcpy(out, magic, sizeof(magic));
    put_uint(out + 8, MODEL_VERSION, 4);
    put_uint(out + 12, n_header, 4);
    put_uint(out + 16, n_params, 8);
    memset(out + PREFIX_BYTES, ' ', n_header);
    memcpy(out + PREFIX_BYTES, header, n_text);
    put_floats(out + PREFIX_BYTES + n_header, model->mlp.params, n_params);
    model->hash = hash_bytes(out, n_hashed, 0);
    put_uint(out + n_hashed, model->hash, HASH_BYTES);
    *data = (const char *)out;
    *len = n_hashed + HASH_BYTES;
    mem_free(header);
    json_decref(root);
}

/* The frame: where header and weights lie. */
struct frame {
    const unsigned char *header, *weights;
    size_t n_header, n_params;
    uint32_t version;
    uint64_t hash;
};

static int read_frame(struct frame *frame, const unsigned char *data,
                      size_t len, const char *where, struct err *err)
{
    uint64_t version, n_header, n_params, want;

    if (len < sizeof(magic) || memcmp(data, magic, sizeof(magic)))
        return err_set(err, ERR_INPUT,
                       "%s: not a model file (it does not start as one)",
                       where);
    if (len < PREFIX_BYTES + HASH_BYTES)
        return err_set(err, ERR_INPUT, "%s: truncated to %zu bytes", where,
                       len);
    version = get_uint(data + 8, 4);
    if (version < MODEL_OLDEST_VERSION || version > MODEL_VERSION)
        return err_set(err, ERR_INPUT,
                       "%s: was written in model format %llu, this program "
                       "reads %d to %d",
                       where, (unsigned long long)version, MODEL_OLDEST_VERSION,
                       MODEL_VERSION);
    frame->version = (uint32_t)version;
    n_header = get_uint(data + 12, 4);
    n_params = get_uint(data + 16, 8);
    if (n_header > MODEL_MAX_HEADER || n_params > UINT32_MAX)
        return err_set(err, ERR_INPUT,
                       "%s: claims a header of %llu bytes and %llu weights, "
                       "which is absurd",
                       where, (unsigned long long)n_header,
                       (unsigned long long)n_params);
    want = PREFIX_BYTES + n_header + 4 * n_params + HASH_BYTES;
    if (len != want)
        return err_set(err, ERR_INPUT, "%s: %s: %zu bytes instead of %llu",
                       where, len < want ? "truncated" : "too long", len,
                       (unsigned long long)want);
    frame->header = data + PREFIX_BYTES;
    frame->n_header = (size_t)n_header;
    frame->weights = frame->header + n_header;
    frame->n_params = (size_t)n_params;
    frame->hash = hash_bytes(data, len - HASH_BYTES, 0);
    if (frame->hash != get_uint(data + len - HASH_BYTES, HASH_BYTES))
        return err_set(err, ERR_INPUT, "%s: damaged: the checksum does not fit",
                       where);
    return 0;
}

static int read_weights(struct model *model, const struct mlp_shape *shape,
                        const struct frame *frame, const char *where,
                        struct arena *arena, struct err *err)
{
    if (frame->n_params != mlp_n_params(shape))
        return err_set(err, ERR_INPUT,
                       "%s: has %zu weights where its shape takes %zu", where,
                       frame->n_params, mlp_n_params(shape));
    mlp_init(&model->mlp, shape, arena);
    get_floats(frame->weights, model->mlp.params, frame->n_params);
    for (size_t i = 0; i < frame->n_params; i++)
        if (!isfinite(model->mlp.params[i]))
            return err_set(err, ERR_INPUT,
                           "%s: weight %zu is not a finite number", where, i);
    return 0;
}

int model_parse(struct model *model, const char *data, size_t len,
                const char *where, struct arena *arena, struct err *err)
{
    struct frame frame = {0};
    struct mlp_shape shape;
    json_t *root = NULL;
    int rc = -1;

    memset(model, 0, sizeof(*model));
    if (read_frame(&frame, (const unsigned char *)data, len, where, err))
        goto out;
    if (json_parse(&root, (const char *)frame.header, frame.n_header, where,
                   err))
        goto out;
    if (model_from_json(model, &shape, root, where, arena, err))
        goto out;
    if (read_weights(model, &shape, &frame, where, arena, err))
        goto out;
    model->format = frame.version;
    model->hash = frame.hash;
    rc = 0;
out:
    json_decref(root);
    return rc;
}

void model_range_add(struct model_range *range, uint32_t batch)
{
    if (range->batch_min > batch)
        range->batch_min = batch;
    if (range->batch_max < batch)
        range->batch_max = batch;
    range->n_samples++;
}

void model_add_range(struct model *model, const struct sample_setting *setting)
{
    struct model_range *range = model->ranges;

    while (range < model->ranges + model->n_ranges &&
           (range->precision != setting->precision ||
            range->optimizer != setting->optimizer))
        range++;
    if (range == model->ranges + model->n_ranges) {
        *range = (struct model_range){setting->precision, setting->optimizer,
                                      setting->batch, setting->batch, 0};
        model->n_ranges++;
    }
    model_range_add(range, setting->batch);
}

static const char *known(const char *text)
{
    return text ? text : "";
}

void model_add_environment(struct model *model,
                           const struct sample_setting *setting)
{
    const struct model_environment wanted = {
        known(setting->driver), known(setting->cuda), known(setting->host), 0};
    size_t i = 0;

    if (!*wanted.driver && !*wanted.cuda && !*wanted.host)
        return;
    while (i < model->n_environments &&
           (strcmp(model->environments[i].driver, wanted.driver) != 0 ||
            strcmp(model->environments[i].cuda, wanted.cuda) != 0 ||
            strcmp(model->environments[i].host, wanted.host) != 0))
        i++;
    if (i == MODEL_MAX_ENVIRONMENTS)
        return;
    if (i == model->n_environments)
        model->environments[model->n_environments++] = wanted;
    model->environments[i].n_samples++;
}

const char *environment_text(const struct model_environment *environment,
                             struct arena *arena)
{
    const char *text = "";

    if (*environment->host)
        text = arena_printf(arena, "host %s", environment->host);
    /* The driver of a CPU is its system, which has a name. */
    if (*environment->driver)
        text = arena_printf(arena, "%s%s%s%s", text, *text ? ", " : "",
                            *environment->cuda ? "driver " : "",
                            environment->driver);
    if (*environment->cuda)
        text = arena_printf(arena, "%s%sCUDA %s", text, *text ? ", " : "",
                            environment->cuda);
    return text;
}

const struct model_range *model_find_range(const struct model *model,
                                           enum precision precision,
                                           enum optimizer optimizer)
{
    for (size_t i = 0; i < model->n_ranges; i++)
        if (model->ranges[i].precision == precision &&
            model->ranges[i].optimizer == optimizer)
            return &model->ranges[i];
    return NULL;
}

struct sample_setting model_device(const struct model *model)
{
    return (struct sample_setting){.device = model->device,
                                   .n_threads = model->n_threads,
                                   .isa = model->isa};
}

bool model_covers(const struct model *model, enum precision precision,
                  enum optimizer optimizer, double batch)
{
    const struct model_range *range =
        model_find_range(model, precision, optimizer);

    return range && batch >= range->batch_min && batch <= range->batch_max;
}

const char *device_text(const struct sample_setting *setting,
                        struct arena *arena)
{
    const char *threads =
        setting->n_threads
            ? arena_printf(arena, "%u threads, ", setting->n_threads)
            : "";

    return arena_printf(arena, "%s, %s%s", setting->device, threads,
                        setting->isa);
}

const char *setting_text(const struct sample_setting *setting,
                         struct arena *arena)
{
    return arena_printf(arena, "%s, %s, %s, batch %u",
                        device_text(setting, arena),
                        precision_name(setting->precision),
                        optimizer_name(setting->optimizer), setting->batch);
}

/* "a|b|c": the names whose bits are set. */
static const char *join_names(unsigned mask, const char *(*name)(unsigned id),
                              struct arena *arena)
{
    const char *list = "";

    for (unsigned id = 0; mask >> id; id++)
        if (mask >> id & 1)
            list =
                arena_printf(arena, "%s%s%s", list, *list ? "|" : "", name(id));
    return list;
}

static const char *precision_of(unsigned id)
{
    return precision_name((enum precision)id);
}

static const char *optimizer_of(unsigned id)
{
    return optimizer_name((enum optimizer)id);
}

const char *model_setting_text(const struct model *model, struct arena *arena)
{
    const struct sample_setting device = model_device(model);
    unsigned precisions = 0, optimizers = 0;
    uint32_t batch_min = UINT32_MAX, batch_max = 0;
    const char *text;

    for (size_t i = 0; i < model->n_ranges; i++) {
        const struct model_range *range = &model->ranges[i];

        precisions |= 1u << range->precision;
        optimizers |= 1u << range->optimizer;
        if (batch_min > range->batch_min)
            batch_min = range->batch_min;
        if (batch_max < range->batch_max)
            batch_max = range->batch_max;
    }
    text =
        arena_printf(arena, "%s, %s, %s, batch %u", device_text(&device, arena),
                     join_names(precisions, precision_of, arena),
                     join_names(optimizers, optimizer_of, arena), batch_min);
    return batch_min == batch_max
               ? text
               : arena_printf(arena, "%s to %u", text, batch_max);
}

int model_load(struct model *model, const char *path, struct arena *arena,
               struct err *err)
{
    const char *data;
    size_t len;

    if (file_read(&data, &len, path, arena, err))
        return -1;
    return model_parse(model, data, len, path, arena, err);
}

/* A file_check. */
static int check_bytes(const char *data, size_t len, const char *where,
                       struct arena *arena, struct err *err)
{
    struct model model;

    return model_parse(&model, data, len, where, arena, err);
}

int model_save(struct model *model, const char *path, struct err *err)
{
    struct arena scratch;
    const char *data;
    size_t len;
    int rc;

    arena_init(&scratch);
    model_to_bytes(model, &data, &len, &scratch);
    rc = file_write_checked(path, data, len, check_bytes, err);
    arena_release(&scratch);
    return rc;
}
