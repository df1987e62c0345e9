/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec.h"

#include "base/json.h"
#include "base/text.h"
#include "io/cluster_json.h"
#include "io/tables_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A plan while it is read. */
struct reader {
    struct plan *plan;
    const char *source;
    struct arena *arena;
    bool lists_tables; /* those of the plan come from the text */
    json_t *places;    /* owned; the table of each name */
    bool *is_placed;   /* [n_tables] */
    size_t cap;        /* of the plan's shards, which are grown */
};

/* A table of the plan, what is cut of it and where it lies. */
struct entry {
    const char *fqn, *kernel;
    uint64_t n_rows, dim, width; /* as far as the text says; else 0 */
    uint32_t *ranks;             /* [n_ranks] */
    size_t n_ranks;
    uint32_t table;
};

static void place_name(struct reader *reader, const char *name, size_t table)
{
    json_object_set_new(reader->places, name, json_integer((json_int_t)table));
}

/* Of a rank, what is set of rows and columns; none where that is no row. */
static void add_shard(struct reader *reader, const struct entry *entry,
                      size_t rank, struct shard shard)
{
    struct plan *plan = reader->plan;

    shard.table = entry->table;
    shard.device = entry->ranks[rank];
    if (shard.row_begin == shard.row_end)
        return;
    plan->shards =
        mem_room(plan->shards, plan->n_shards, &reader->cap, sizeof(shard));
    plan->shards[plan->n_shards++] = shard;
}

static void add_replicas(struct reader *reader, const struct entry *entry)
{
    struct shard shard = shard_whole(&reader->plan->problem, entry->table, 0);

    shard.kind = SHARD_REPLICATE;
    for (size_t i = 0; i < entry->n_ranks; i++)
        add_shard(reader, entry, i, shard);
}

/* The table of that name, or of what stands behind one of its dots, which gets
 * its place now; where it has one, that of NAME#2. NULL: none. */
static const struct table *find_table(struct entry *entry,
                                      struct reader *reader)
{
    const char *name = entry->fqn, *dot;
    const json_t *idx = NULL;

    for (; !idx && name; name = (dot = strchr(name, '.')) ? dot + 1 : NULL)
        for (int k = 0; k < 2 && !idx; k++) {
            idx = json_object_get(
                reader->places,
                arena_printf(reader->arena, "%s%s", name, k ? "#2" : ""));
            if (idx && reader->is_placed[json_integer_value(idx)])
                idx = NULL;
        }
    if (!idx)
        return NULL;
    entry->table = (uint32_t)json_integer_value(idx);
    reader->is_placed[entry->table] = true;
    return &reader->plan->problem.tables[entry->table];
}

static int check_entry(struct entry *entry, struct reader *reader,
                       struct err *err)
{
    const uint32_t n_ranks = reader->plan->problem.cluster.n_devices;
    const struct table *table = find_table(entry, reader);

    if (!table)
        return err_input(err,
                         "table '%s' is not in the table list, or placed twice",
                         entry->fqn);
    if (text_which("fused|dense", entry->kernel) < 0)
        return err_input(err,
                         "table '%s' has the kernel '%s'; only fused and dense "
                         "keep it in the GPU's memory",
                         entry->fqn, entry->kernel);
    for (size_t i = 0; i < entry->n_ranks; i++)
        if (entry->ranks[i] >= n_ranks)
            return err_input(err, "table '%s' is on rank %u, but there are %u",
                             entry->fqn, entry->ranks[i], n_ranks);
    if (!entry->dim ||
        (entry->n_rows == table->num_embeddings && entry->dim == table->dim))
        return 0;
    return err_input(err,
                     "table '%s' has %" PRIu64 " rows and %" PRIu64
                     " columns, but %" PRIu64 " and %u in the table list",
                     entry->fqn, entry->n_rows, entry->dim,
                     table->num_embeddings, table->dim);
}

static int read_shards(struct reader *reader, const struct entry *entry,
                       json_t *shards, struct err *err)
{
    const struct table *table = &reader->plan->problem.tables[entry->table];
    const json_int_t n_rows = (json_int_t)table->num_embeddings;
    json_int_t row, col, rows, cols;

    for (size_t i = 0; i < entry->n_ranks; i++) {
        struct shard shard = {0};

        if (json_array_size(shards) != entry->n_ranks ||
            json_unpack(json_array_get(shards, i), "{s:[II], s:[II]}",
                        "shard_offsets", &row, &col, "shard_sizes", &rows,
                        &cols) ||
            row < 0 || row > n_rows || rows < 0 || rows > n_rows - row ||
            col < 0 || col > table->dim || cols < 1 || cols > table->dim - col)
            return err_input(
                err,
                "table '%s' has no shard %zu, of %zu, within %" PRIu64
                " rows and %u columns",
                entry->fqn, i, entry->n_ranks, table->num_embeddings,
                table->dim);
        shard.row_begin = (uint64_t)row;
        shard.row_end = (uint64_t)(row + rows);
        shard.col_begin = (uint32_t)col;
        shard.col_end = (uint32_t)(col + cols);
        add_shard(reader, entry, i, shard);
    }
    return 0;
}

/* "3,14,14", "0-95" or, in JSON, "3, 14]"; false where it is none. Of a range
 * more than there are ranks are one that is none, and so not kept. */
static bool read_ranks(struct entry *entry, const struct reader *reader,
                       const char *text)
{
    const size_t most =
        strlen(text) +
        (strchr(text, '-') ? reader->plan->problem.cluster.n_devices : 0);
    char *end;

    entry->ranks = ARENA_NEW(reader->arena, uint32_t, most);
    for (;; text = end + 1) {
        uint64_t rank = strtoull(text, &end, 10), last = rank;

        if (end == text)
            return false;
        if (*end == '-')
            last = strtoull(end + 1, &end, 10);
        for (; rank <= last && entry->n_ranks < most; rank++)
            entry->ranks[entry->n_ranks++] =
                (uint32_t)min_u64(rank, UINT32_MAX);
        if (*end != ',')
            return (!*end || *end == ']') && entry->n_ranks;
    }
}

static int read_entry(struct reader *reader, json_t *value, const char *fqn,
                      struct err *err)
{
    struct entry entry = {.fqn = fqn};
    json_t *ranks, *shards = NULL;
    const char *type;

    if (json_unpack(value, "{s:s, s:s, s:o, s?o}", "sharding_type", &type,
                    "compute_kernel", &entry.kernel, "ranks", &ranks, "shards",
                    &shards) ||
        !json_is_array(ranks) ||
        !read_ranks(&entry, reader, json_cell(ranks, reader->arena) + 1))
        return err_input(
            err, "table '%s' has no sharding_type, compute_kernel and ranks",
            fqn);
    if (check_entry(&entry, reader, err))
        return -1;
    if (strcmp(type, "data_parallel") != 0)
        return read_shards(reader, &entry, shards, err);
    add_replicas(reader, &entry);
    return 0;
}

/* Every table of every module, each in its line: all that stands three deep. */
static int read_modules(struct reader *reader, json_t *modules,
                        const char *text, size_t len, struct err *err)
{
    const size_t *line = place_child_lines(text, len, 3, reader->arena);
    const char *module, *name;
    json_t *tables, *value;

    json_object_foreach(modules, module, tables)
    {
        if (!json_is_object(tables))
            return err_input(err, "%s:1: '%s' is no module", reader->source,
                             module);
        json_object_foreach(tables, name, value)
        {
            const char *fqn =
                arena_printf(reader->arena, "%s.%s", module, name);

            if (read_entry(reader, value, fqn, err))
                return err_prefix(err, "%s:%zu", reader->source, *line);
            line++;
        }
    }
    return 0;
}

static int read_json(struct reader *reader, const char *text, size_t len,
                     struct err *err)
{
    struct cluster *cluster = &reader->plan->problem.cluster;
    int n_ranks = 0, n_local = 0, n_hosts = 1;
    json_t *root = NULL, *modules = NULL;
    int rc = json_parse(&root, text, len, reader->source, err);

    if (!rc && (json_unpack(root, "{s:i, s:i, s?i, s:o !}", "world_size",
                            &n_ranks, "local_world_size", &n_local, "pod_size",
                            &n_hosts, "plan", &modules) ||
                n_ranks < 1 || n_ranks > CLUSTER_MAX_GPUS || n_local < 1 ||
                n_hosts < 1 || !json_is_object(modules)))
        rc = err_input(err,
                       "%s:1: a plan of TorchRec has world_size, "
                       "local_world_size, perhaps pod_size, and plan, no more",
                       reader->source);
    cluster->n_devices = (uint32_t)n_ranks;
    cluster->devices_per_host = (uint32_t)n_local;
    cluster->hosts_per_domain = (uint32_t)n_hosts;
    rc = rc || read_modules(reader, modules, text, len, err);
    json_decref(root);
    return rc ? -1 : 0;
}

/* Columns of "Parameter Info", and what they are in a list. */
enum { FQN, SHARDING, KERNEL, INDICES, POOLINGS, OUTPUT, DIM, ROWS, RANKS };
static const struct {
    const char *name;
    size_t column;
} printed_columns[] = {
    [FQN] = {"FQN", COLUMN_NAME},
    [SHARDING] = {"Sharding", N_TABLE_COLUMNS},
    [KERNEL] = {"Compute Kernel", N_TABLE_COLUMNS},
    [INDICES] = {"Num Indices", COLUMN_POOLING},
    [POOLINGS] = {"Sum Num Poolings", COLUMN_OUTPUTS},
    [OUTPUT] = {"Output", COLUMN_OUTPUT},
    [DIM] = {"Emb Dim (CW Dim)", COLUMN_DIM},
    [ROWS] = {"Hash Size", COLUMN_ROWS},
    [RANKS] = {"Ranks", N_TABLE_COLUMNS},
};
#define N_COLUMNS (sizeof(printed_columns) / sizeof(*printed_columns))
#define MAX_CELLS 32

/* The printed tables: of ranks, and of parameters, whose heading says where
 * their columns are. */
struct printed {
    enum { WITHIN_NONE, WITHIN_RANKS, WITHIN_TABLES } within;
    size_t column[N_COLUMNS];
    char *cells[MAX_CELLS + 1]; /* of a line */
    size_t n_cells;
};

/* What stands between the frame's '#', with two blanks or more between. */
static void split_line(struct printed *printed, char *line)
{
    char *end;

    printed->n_cells = 0;
    line += strcspn(line, "#");
    line += strspn(line, "# ");
    for (end = line + strlen(line); end > line && strchr("# \r", end[-1]);)
        *--end = '\0';
    while (line && *line && printed->n_cells < MAX_CELLS) {
        printed->cells[printed->n_cells++] = line;
        line = strstr(line, "  ");
        if (line) {
            *line++ = '\0';
            line += strspn(line, " ");
        }
    }
}

/* A grid's pieces are listed by rank: those of a host are, one after another on
 * each rank, of its column blocks. */
static void add_pieces(struct reader *reader, const struct entry *entry)
{
    const uint64_t n_blocks = (entry->dim - 1) / entry->width + 1;
    const uint64_t n_local = entry->n_ranks / n_blocks; /* blocks of rows */
    const uint64_t step = (entry->n_rows - 1) / n_local + 1;
    uint64_t host = UINT64_MAX, first = 0, next = 0, same = 0;

    for (size_t i = 0; i < entry->n_ranks; i++) {
        uint64_t block = i, row = 0;

        if (n_local > 1) {
            first = entry->ranks[i] / n_local == host ? first : next;
            host = entry->ranks[i] / n_local;
            same = i && entry->ranks[i] == entry->ranks[i - 1] ? same + 1 : 0;
            block = min_u64(first + same, n_blocks - 1);
            next = first + same + 1;
            row = entry->ranks[i] % n_local;
        }
        add_shard(reader, entry, i,
                  (struct shard){
                      .row_begin = min_u64(row * step, entry->n_rows),
                      .row_end = min_u64((row + 1) * step, entry->n_rows),
                      .col_begin = (uint32_t)(block * entry->width),
                      .col_end = (uint32_t)min_u64((block + 1) * entry->width,
                                                   entry->dim),
                  });
    }
}

/* What the text says of a table. */
static int read_cells(struct entry *entry, struct table *table,
                      const struct reader *reader, char *const cells[N_COLUMNS],
                      struct err *err)
{
    static const struct tables_options options = {0};
    struct table_cells told = {.options = &options, .arena = reader->arena};
    char *width = strstr(cells[DIM], " (");
    size_t n_blocks, wrong = N_COLUMNS;

    if (width)
        *width++ = '\0';
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (printed_columns[c].column < N_TABLE_COLUMNS) {
            told.names[printed_columns[c].column] = printed_columns[c].name;
            told.texts[printed_columns[c].column] = cells[c];
        }
    entry->fqn = cells[FQN];
    entry->kernel = cells[KERNEL];
    if (table_from_cells(table, &told, err))
        return err_prefix(err, "table '%s'", entry->fqn);
    if (width)
        width[-1] = ' ';
    entry->n_rows = table->num_embeddings;
    entry->dim = table->dim;
    entry->width = width ? strtoull(width + 1, NULL, 10) : entry->dim;
    n_blocks = entry->width ? (entry->dim - 1) / entry->width + 1 : 1;
    if (!read_ranks(entry, reader, cells[RANKS]) || entry->n_ranks % n_blocks)
        wrong = RANKS;
    if (!entry->width || entry->width > entry->dim)
        wrong = DIM;
    if (text_which("DP|TW|CW|TWCW|RW|TWRW|GS", cells[SHARDING]) < 0)
        wrong = SHARDING;
    if (wrong == N_COLUMNS)
        return 0;
    return err_input(err, "table '%s' cannot have the %s '%s'", entry->fqn,
                     printed_columns[wrong].name, cells[wrong]);
}

/* Lists the table where no list is given. */
static int read_row(struct reader *reader, const struct printed *printed,
                    struct err *err)
{
    struct problem *problem = &reader->plan->problem;
    char *cells[N_COLUMNS];
    struct entry entry = {0};
    struct table table;

    for (size_t c = 0; c < N_COLUMNS; c++)
        cells[c] = printed->cells[printed->column[c]];
    if (read_cells(&entry, &table, reader, cells, err))
        return -1;
    if (json_object_get(reader->places, entry.fqn))
        table.name = arena_printf(reader->arena, "%s#2", entry.fqn);
    if (reader->lists_tables && !json_object_get(reader->places, table.name)) {
        place_name(reader, table.name, problem->n_tables);
        problem->tables[problem->n_tables++] = table;
    }
    if (check_entry(&entry, reader, err))
        return -1;
    (strcmp(cells[SHARDING], "DP") ? add_pieces : add_replicas)(reader, &entry);
    return 0;
}

/* Where the columns are. */
static int read_heading(struct printed *printed, struct err *err)
{
    printed->cells[printed->n_cells] = NULL;
    for (size_t c = 0; c < N_COLUMNS; c++) {
        int i = text_choice((const char *const *)printed->cells,
                            printed_columns[c].name);

        if (i < 0)
            return err_input(err, "there is no column '%s'",
                             printed_columns[c].name);
        printed->column[c] = (size_t)i;
    }
    printed->within = WITHIN_TABLES;
    return 0;
}

static int read_line(struct reader *reader, struct printed *printed, char *line,
                     struct err *err)
{
    struct problem *problem = &reader->plan->problem;
    const uint64_t max_batch = (uint64_t)PROBLEM_MAX_BATCH;
    uint32_t *n_ranks = &problem->cluster.n_devices;
    const char *first;

    split_line(printed, line);
    first = printed->n_cells ? printed->cells[0] : "";
    if (!*first || !strcmp(first, "Rank"))
        printed->within = *first ? WITHIN_RANKS : WITHIN_NONE;
    else if (!strcmp(first, "FQN"))
        return read_heading(printed, err);
    else if (!strncmp(first, "Batch Size: ", 12))
        problem->batch = *n_ranks * min_u64(strtoull(first + 12, NULL, 10),
                                            max_batch / (*n_ranks + 1));
    else if (printed->within == WITHIN_RANKS && *first != '-')
        *n_ranks += *n_ranks < CLUSTER_MAX_GPUS;
    else if (printed->within == WITHIN_TABLES && *first != '-')
        return printed->n_cells > printed->column[RANKS]
                   ? read_row(reader, printed, err)
                   : err_input(err, "table '%s' lacks columns", first);
    return 0;
}

static int read_stats(struct reader *reader, const char *text, size_t len,
                      struct err *err)
{
    struct printed printed = {0};
    char *copy = arena_strndup(reader->arena, text, len);
    size_t n_lines = 1, number = 1;

    for (const char *p = copy; (p = strchr(p, '\n')); p++)
        n_lines++;
    if (reader->lists_tables) {
        reader->plan->problem.tables =
            ARENA_NEW(reader->arena, struct table, n_lines);
        reader->is_placed = ARENA_NEW(reader->arena, bool, n_lines);
    }
    for (char *line; (line = strsep(&copy, "\n")); number++)
        if (read_line(reader, &printed, line, err))
            return err_prefix(err, "%s:%zu", reader->source, number);
    return 0;
}

bool tables_is_stats(const char *text)
{
    return strstr(text, "--- Planner Statistics ---");
}

static bool is_json_plan(const char *text)
{
    return strstr(text, "\"plan\"") && !strstr(text, "\"neuroshard_plan\"") &&
           (strstr(text, "\"world_size\"") ||
            strstr(text, "\"sharding_type\""));
}

bool plan_is_torchrec(const char *text)
{
    return is_json_plan(text) || tables_is_stats(text);
}

/* Leaves out the tables that have no place. */
static int finish(struct reader *reader, struct err *err)
{
    struct plan *plan = reader->plan;
    struct problem *problem = &plan->problem;
    const size_t n = problem->n_tables;
    uint32_t *now = ARENA_NEW(reader->arena, uint32_t, n);

    if (!plan->n_shards)
        return err_input(err,
                         "%s:1: no tables with their ranks; the planner lists "
                         "them where it is told to debug",
                         reader->source);
    problem->n_tables = 0;
    for (size_t t = 0; t < n; t++)
        if (reader->is_placed[t]) {
            now[t] = (uint32_t)problem->n_tables;
            problem->tables[problem->n_tables++] = problem->tables[t];
        }
    for (size_t i = 0; i < plan->n_shards; i++)
        plan->shards[i].table = now[plan->shards[i].table];
    return 0;
}

int plan_from_torchrec(struct plan *plan, const char *text, size_t len,
                       const char *source, struct arena *arena, struct err *err)
{
    const size_t n_tables = plan->problem.n_tables;
    struct reader reader = {.plan = plan,
                            .source = source,
                            .arena = arena,
                            .lists_tables = !n_tables,
                            .places = json_object(),
                            .is_placed = ARENA_NEW(arena, bool, n_tables)};
    int rc;

    for (size_t t = 0; t < n_tables; t++)
        place_name(&reader, plan->problem.tables[t].name, t);
    if (!is_json_plan(text))
        rc = read_stats(&reader, text, len, err);
    else if (n_tables)
        rc = read_json(&reader, text, len, err);
    else
        rc = err_input(err,
                       "%s:1: a plan without the look-ups of its tables; "
                       "option '--tables' gives them",
                       source);
    plan->shards =
        arena_keep(arena, plan->shards, plan->n_shards, sizeof(*plan->shards));
    rc = rc || finish(&reader, err);
    json_decref(reader.places);
    return rc ? -1 : 0;
}

int tables_from_stats(struct table_list *list, const char *text, size_t len,
                      const char *source, const struct tables_options *options,
                      struct arena *arena, struct err *err)
{
    struct plan plan = {0};

    (void)options;
    if (plan_from_torchrec(&plan, text, len, source, arena, err))
        return -1;
    *list = (struct table_list){.tables = plan.problem.tables,
                                .n_tables = plan.problem.n_tables,
                                .source = arena_strdup(arena, source)};
    return 0;
}
