/* SPDX-License-Identifier: MIT */
#include "emit/first_screen.h"

#include "base/ranked.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/host.h"
#include "core/sharding_groups.h"
#include "emit/formats.h"
#include "emit/placed_tables.h"
#include "emit/report_parts.h"
#include "emit/tiers_line.h"
#include "emit/wire_line.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Widths in characters: the bar of a row of GPUs, the longest label of a row,
 * the longest table name. */
#define BAR_WIDTH 15
#define MOST_LABEL 14u
#define MOST_NAME 20u

/* --- how fast --- */

/* Prints "H100" for "h100". The path of a file and changed figures of the GPU
 * are printed as they are. */
static void print_gpu(const struct cluster *cluster, struct buf *out)
{
    const char *name = cluster->gpu ? cluster->gpu : "GPU";
    const size_t len = strcspn(name, ":");
    const bool is_path = strcspn(name, "/.") < len;

    for (size_t i = 0; i < len; i++)
        buf_printf(out, "%c",
                   is_path ? name[i] : toupper((unsigned char)name[i]));
    buf_printf(out, "%s", name + len);
}

/* Prints tables, GPUs, the step time and samples a second. Without the dense
 * part the step is only that of the tables, so the rate is an upper bound. */
static void print_speed(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct time_range step = plan_step(plan);
    const struct cluster *cluster = &plan->problem.cluster;
    const struct cluster whole = sharding_groups_cluster(&plan->problem);

    buf_printf(out, "%zu table%s on %u x ", plan->problem.n_tables,
               plan->problem.n_tables == 1 ? "" : "s", whole.n_devices);
    print_gpu(cluster, out);
    if (whole.n_devices > whole.devices_per_host)
        buf_printf(out, ", %u a host", whole.devices_per_host);
    buf_printf(out, ": step %.*f ms", step.ms < 100 ? 2 : 0, step.ms);
    if (step.most_ms > step.least_ms)
        buf_printf(out, ", %.3g to %.3g", step.least_ms, step.most_ms);
    buf_printf(out, "; %s", job_knows_dense(&plan->problem.job) ? "" : "<= ");
    text_print_rate(
        1000 * (double)problem_all_samples(&plan->problem) / step.ms, out);
    buf_printf(out, " samples/s\n");
}

/* Returns the name of a part of the step, as opposed to the same part of the
 * dense part of the model. */
static const char *name_part(const char *part)
{
    static const char *const names[][2] = {
        {"input", "input exchange"},       {"forward", "lookups"},
        {"output", "output exchange"},     {"gradient", "gradient exchange"},
        {"backward", "lookups' backward"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(part, names[i][0]))
            return names[i][1];
    return part;
}

/* Prints GPU work and host time, and which of them the step waits for. The
 * step is longer than each of them, because they overlap only in part. */
static void print_waits(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct bottleneck *bottleneck = &report->bottleneck;
    const double host_ms = plan_host(plan).ms, dense_ms = plan_dense_ms(plan);

    buf_printf(out, "%s: GPU work %.*f ms",
               job_knows_dense(&plan->problem.job) ? "with the dense part"
                                                   : "tables only",
               plan->total_ms < 100 ? 2 : 0, plan->total_ms);
    plan_print_error(plan, out);
    if (dense_ms > 0)
        buf_printf(out, " (dense %.*f)", dense_ms < 100 ? 2 : 0, dense_ms);
    if (host_ms > 0)
        buf_printf(out, " partly beside host %.2f ms", host_ms);
    if (plan_waits_for_host(plan))
        buf_printf(out, "; waits for host");
    else
        buf_printf(out, "; waits for %s", name_part(bottleneck->phase));
    if (!plan_waits_for_host(plan) && report->n_devices > 1)
        buf_printf(out, " on GPU %u", bottleneck->gpu);
    buf_printf(out, "\n");
}

/* Prints a ratio with its relative error, if that is known. If both the
 * error and the distance to 1 are below 5 %, they have a further decimal. */
static void print_ratio(double ratio, double error_frac, struct buf *out)
{
    const int n_more = fabs(ratio - 1) < 0.0495 && error_frac < 0.05;

    buf_printf(out, "%.*fx", 2 + n_more, ratio);
    if (!isnan(error_frac))
        buf_printf(out, " +-%.*f %%", n_more, 100 * error_frac);
}

/* Prints the GPU work of a rival as a multiple of ours, in brackets, and its
 * host time if that differs from ours. If the rival ties in GPU work, prints
 * its step as a multiple of ours, too. */
static void print_rival_work(const struct compare_entry *rival, double host_ms,
                             struct buf *out)
{
    const bool has_host = host_ms > 0;

    if (!has_host && rival->is_significant)
        return;
    buf_printf(out, " (");
    print_ratio(rival->ratio, rival->gain_error_frac / rival->ratio, out);
    if (rival->is_significant)
        buf_printf(out, " GPU work");
    else if (has_host && isfinite(rival->step_ratio))
        buf_printf(out, "; %.2fx step", rival->step_ratio);
    if (has_host && fabs(rival->step.host_ms - host_ms) >= 0.005)
        buf_printf(out, ", host %.2f ms", rival->step.host_ms);
    buf_printf(out, ")");
}

/* Prints "1.06x faster than A", by the step, or "ties A in GPU work", and what
 * the step of A takes. */
static void print_rival(const struct compare_entry *rival, double host_ms,
                        struct buf *out)
{
    const bool has_host = host_ms > 0;
    const double ratio = has_host ? rival->step_ratio : rival->ratio;

    if (!isfinite(rival->ratio)) {
        buf_printf(out, "%s: no plan to compare\n", rival->planner);
        return;
    }
    if (!rival->is_significant) {
        buf_printf(out, "ties %s in GPU work", rival->planner);
    } else {
        print_ratio(ratio < 1 ? 1 / ratio : ratio,
                    has_host ? rival->step_error_frac
                             : rival->gain_error_frac / rival->ratio,
                    out);
        buf_printf(out, " %s than %s", ratio < 1 ? "slower" : "faster",
                   rival->planner);
    }
    print_rival_work(rival, host_ms, out);
    buf_printf(out, "\n");
}

static void print_rivals(const struct report *report, struct buf *out)
{
    const double host_ms = plan_host(report->plan).ms;

    for (size_t i = 0; i < report->options.n_rivals; i++)
        print_rival(&report->options.rivals[i], host_ms, out);
}

static void print_groups(const struct plan *plan, struct buf *out)
{
    if (problem_n_groups(&plan->problem) == 1)
        return;
    emit_groups_line(plan, out);
    buf_printf(out, "; ");
    emit_groups_training(problem_n_groups(&plan->problem), out);
    buf_printf(out, "\n");
}

/* --- memory, cuts and training --- */

/* Tables that are sharded in one way. */
struct cut_group {
    size_t n;
    struct buf names; /* names of the first NAMES_SHOWN tables */
};
#define NAMES_SHOWN 2
/* The groups in the order in which they are printed. */
static const enum shard_kind group_kinds[] = {SHARD_ROW, SHARD_COLUMN,
                                              SHARD_GRID, SHARD_REPLICATE};
#define N_GROUPS (sizeof(group_kinds) / sizeof(*group_kinds))

static size_t group_of(enum shard_kind kind)
{
    size_t g = 0;

    while (group_kinds[g] != kind)
        g++;
    return g;
}

/* Adds a name to a list. */
static void add_name(struct buf *list, const char *name)
{
    buf_printf(list, "%s", list->len ? " " : "");
    text_column(list, name, (unsigned)min_u64(text_length(name), MOST_NAME));
}

/* Groups the cut and replicated tables whose training is changed, or those
 * whose training is not. Returns their number. */
static size_t find_groups(struct cut_group groups[N_GROUPS],
                          const struct plan *plan, bool changed)
{
    size_t n = 0;

    memset(groups, 0, N_GROUPS * sizeof(*groups));
    for (size_t i = 0; i < plan->n_shards; i = emit_shards_end(plan, i)) {
        const struct shard *shard = &plan->shards[i];
        struct cut_group *group;

        if (shard->kind == SHARD_TABLE ||
            shard_changes_training(&plan->problem, shard) != changed)
            continue;
        group = &groups[group_of(shard->kind)];
        if (group->n < NAMES_SHOWN)
            add_name(&group->names, plan->problem.tables[shard->table].name);
        group->n++;
        n++;
    }
    return n;
}

/* Prints the step and the GPU work of an alternative as multiples of the
 * plan's. */
static void print_gain(const struct report_alternative *alternative,
                       struct buf *out)
{
    const char *without =
        alternative->keeps_training ? "" : alternative->without;

    if (alternative->is_chosen)
        return;
    if (!isfinite(alternative->ratio)) {
        buf_printf(out, "; no plan without %s", alternative->without);
        return;
    }
    buf_printf(out, "; without%s%s: ", *without ? " " : "", without);
    if (isfinite(alternative->step_ratio))
        buf_printf(out, "%.2fx as long (", alternative->step_ratio);
    print_ratio(alternative->ratio, alternative->error / alternative->ratio,
                out);
    buf_printf(out, " GPU work");
    if (alternative->step_ratio < 1 && alternative->ratio > 1)
        buf_printf(out, ", which decides");
    if (isfinite(alternative->step_ratio))
        buf_printf(out, ")");
}

/* Prints the value of --shard that allows only the kinds that change the
 * training of no table. */
static void print_safe_kinds(const struct problem *problem, struct buf *out)
{
    buf_printf(out, "; --shard ");
    for (size_t i = 0; i < N_SHARD_KINDS; i++) {
        bool is_safe = true;

        for (size_t t = 0; t < problem->n_tables && is_safe; t++)
            is_safe = !kind_changes_training(&problem->tables[t],
                                             shard_traits[i].kind,
                                             problem->dense_optimizer);
        if (is_safe)
            buf_printf(out, "%s%s", i ? "," : "", shard_traits[i].name);
    }
    buf_printf(out, " keeps training");
}

/* Prints a group as "2 by columns (a b), a state per piece". */
static void print_group(const struct cut_group *group, enum shard_kind kind,
                        bool changed, struct buf *out)
{
    buf_printf(out, "%zu %s (%s%s)", group->n,
               shard_traits[shard_kind_idx(kind)].cut, group->names.data,
               group->n > NAMES_SHOWN ? " .." : "");
    if (changed)
        buf_printf(out, ", %s",
                   shard_is_replica(kind) ? "the dense optimizer"
                                          : "a state per piece");
}

/* Prints a line with the tables whose training is changed, or with the other
 * cut or replicated tables, and the GPU work without these cuts. */
static void print_cuts(const struct report *report, bool changed,
                       struct buf *out)
{
    const struct report_options *options = &report->options;
    struct cut_group groups[N_GROUPS];
    bool any = false;

    if (find_groups(groups, report->plan, changed)) {
        buf_printf(out, "%s", changed ? "training changes: " : "cut: ");
        for (size_t g = 0; g < N_GROUPS; g++) {
            if (!groups[g].n)
                continue;
            buf_printf(out, "%s", any ? ", " : "");
            print_group(&groups[g], group_kinds[g], changed, out);
            any = true;
        }
        for (size_t i = 0; i < options->n_alternatives; i++)
            if (options->alternatives[i].keeps_training == changed)
                print_gain(&options->alternatives[i], out);
        if (changed)
            print_safe_kinds(&report->plan->problem, out);
        buf_printf(out, "\n");
    }
    for (size_t g = 0; g < N_GROUPS; g++)
        buf_release(&groups[g].names);
}

static void print_memory(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct cluster *cluster = &plan->problem.cluster;
    const uint32_t r = plan_fullest(plan);
    const double reserve_gib = (double)cluster->reserve_bytes[r] / 0x1p30;
    const double used_gib =
        (double)plan->devices[r].memory.total / 0x1p30 - reserve_gib;
    bool is_whole = true, changes = false;

    for (size_t i = 0; i < plan->n_shards; i++) {
        is_whole = is_whole && plan->shards[i].kind == SHARD_TABLE;
        changes =
            changes || shard_changes_training(&plan->problem, &plan->shards[i]);
    }
    buf_printf(out, "fits: fullest GPU %u, %.*g", r, used_gib < 1 ? 2 : 3,
               used_gib);
    if (reserve_gib > 0)
        buf_printf(out, " + %.3g reserve", reserve_gib);
    buf_printf(out, " of %.3g GiB", (double)cluster->memory_bytes[r] / 0x1p30);
    if (is_whole)
        buf_printf(out, "; no cut, training unchanged");
    else if (!changes)
        buf_printf(out, "; training unchanged");
    buf_printf(out, "\n");
    emit_tiers_line(plan, "host memory: ", out);
    report_other_tables(plan, "", out);
    report_slow_gpus(plan, "", out);
}

/* --- the GPUs --- */

/* Prints the GPUs of a row as ranges, in at most MOST_LABEL characters. */
static void print_numbers(const struct ranked *order, size_t n, struct buf *out)
{
    uint32_t *gpus = mem_alloc(n, sizeof(*gpus));

    for (size_t i = 0; i < n; i++)
        gpus[i] = order[i].idx;
    placed_print_gpus(gpus, n, MOST_LABEL, out);
    mem_free(gpus);
}

/* Prints the most expensive pieces of a GPU, as far as the line has room. */
static void print_tables(const struct report *report, uint32_t gpu, size_t room,
                         struct buf *out)
{
    const struct plan *plan = report->plan;
    struct placed *pieces = mem_alloc(plan->n_shards, sizeof(*pieces));
    const size_t n = placed_find(pieces, plan, gpu);
    size_t used = 0, shown = 0;

    for (; shown < n; shown++) {
        struct buf name = {0};
        int rest;
        bool fits;

        placed_print_name(plan, pieces[shown].begin, MOST_NAME, &name);
        rest = n - shown > 1 ? snprintf(NULL, 0, " +%zu", n - shown - 1) : 0;
        used += strlen(" ") + text_length(name.data);
        fits = used + (size_t)rest <= room;
        if (fits)
            buf_printf(out, " %s", name.data);
        buf_release(&name);
        if (!fits)
            break;
    }
    if (shown < n)
        buf_printf(out, " +%zu", n - shown);
    mem_free(pieces);
}

/* Returns the time that the tables of a GPU take in a step. */
static double busy_ms(const struct report *report, uint32_t gpu)
{
    const struct device_cost *cost = &report->devices[gpu].cost;

    return plan_has_parts(report->plan)
               ? cost->alone_ms
               : cost->compute_ms + cost->bwd_comm_ms + cost->fwd_comm_ms;
}

/* Rows of GPUs: one for each GPU, or for each group of about equally busy
 * ones. */
struct rows {
    const struct report *report;
    struct ranked *order; /* [n_devices] */
    bool is_grouped;
    double share;   /* share by which busy times in a group may differ */
    double most_ms; /* busy time of the busiest GPU */
    size_t width;   /* width of the labels in characters */
};

static size_t row_end(const struct rows *rows, size_t begin)
{
    return rows->is_grouped
               ? ranked_run_end(rows->order, rows->report->n_devices, begin,
                                rows->share)
               : begin + 1;
}

static void print_row(const struct rows *rows, size_t begin, struct buf *out)
{
    const struct report *report = rows->report;
    const uint32_t gpu = rows->order[begin].idx;
    const size_t end = row_end(rows, begin);
    const double ms = busy_ms(report, gpu);
    double bytes = 0;
    const long n_bar =
        rows->most_ms > 0 ? lround(BAR_WIDTH * ms / rows->most_ms) : 0;
    struct buf line = {0};

    buf_printf(&line, "GPU ");
    for (size_t i = begin; i < end; i++)
        bytes =
            fmax(bytes,
                 (double)report->devices[rows->order[i].idx].cost.memory.total);
    print_numbers(rows->order + begin, end - begin, &line);
    while (line.len < strlen("GPU ") + rows->width + 1)
        buf_printf(&line, " ");
    for (long b = 0; b < BAR_WIDTH; b++)
        buf_printf(&line, "%c", b < n_bar ? '#' : ' ');
    buf_printf(&line, " %6.2f ms %4.0f GiB ", ms, bytes / 0x1p30);
    if (end - begin > 1)
        buf_printf(&line, " GPU %u:", gpu);
    buf_add(out, line.data, line.len);
    if (report->options.n_columns > line.len)
        print_tables(report, gpu, report->options.n_columns - line.len, out);
    buf_printf(out, "\n");
    buf_release(&line);
}

/* Prints at most n_rows rows of GPUs. A group shows its longest time, its
 * largest memory, and the tables of its busiest GPU. */
static void print_gpus(const struct report *report, size_t n_rows,
                       struct buf *out)
{
    const size_t n = report->n_devices;
    struct rows rows = {.report = report,
                        .order = mem_alloc(n, sizeof(*rows.order)),
                        .is_grouped = n > n_rows};

    for (uint32_t r = 0; r < n; r++) {
        rows.order[r] = (struct ranked){-busy_ms(report, r), r};
        rows.most_ms = fmax(rows.most_ms, busy_ms(report, r));
    }
    if (rows.is_grouped) {
        ranked_sort(rows.order, n);
        rows.share = ranked_share(rows.order, n, n_rows);
    }
    for (size_t i = 0; i < n; i = row_end(&rows, i)) {
        struct buf label = {0};

        print_numbers(rows.order + i, row_end(&rows, i) - i, &label);
        rows.width = max_u64(rows.width, label.len);
        buf_release(&label);
    }
    for (size_t i = 0; i < n; i = row_end(&rows, i))
        print_row(&rows, i, out);
    mem_free(rows.order);
}

/* --- the last lines --- */

/* Prints the inputs that were assumed, the GPU first. */
static void print_assumed(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct problem *problem = &plan->problem;
    const struct wire *wire = &plan->cost.wire;
    /* the line of the wire names its bandwidth */
    const bool names_inter = emit_has_wire_line(plan) && plan->wire.is_inter;
    const bool names_intra = emit_has_wire_line(plan) && !plan->wire.is_inter;
    size_t n_assumed = 0;
    struct buf list = {0};

    for (size_t t = 0; t < problem->n_tables; t++)
        n_assumed += problem->tables[t].skew_assumed;
    if (problem->cluster.is_default_gpu)
        buf_printf(&list, ", GPU %s", problem->cluster.gpu);
    if (wire->assumes_intra && !names_intra)
        buf_printf(&list, ", NVLink %.0f GB/s", wire->intra_gbps);
    if (wire->assumes_inter && !names_inter)
        buf_printf(&list, ", wire %.0f GB/s", wire->inter_gbps);
    if (n_assumed)
        buf_printf(&list, ", skew Zipf %g", DEFAULT_ZIPF_ALPHA);
    if (report->options.is_default_batch)
        buf_printf(&list, ", global batch %" PRIu64,
                   problem_all_samples(problem));
    if (plan->cost.host == HOST_ASSUMED && !problem->job.asks_host)
        buf_printf(&list, ", host %.3g ms", plan_host(plan).ms);
    if (!job_knows_dense(&plan->problem.job) && plan_has_parts(plan))
        buf_printf(&list, ", no dense");
    if (plan->cost.n_outside)
        buf_printf(&list, ", %zu inputs beyond the model's range",
                   plan->cost.n_outside);
    if (list.len)
        buf_printf(out, "assumed: %s\n", list.data + 2);
    buf_release(&list);
}

static void print_next(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const char *path = report->options.path;

    if (plan->stopped && text_which("done|budget", plan->stopped) < 0)
        buf_printf(out,
                   "the search was cut short (%s): a longer one may find a "
                   "better plan\n",
                   plan->stopped);
    if (path)
        buf_printf(out,
                   "wrote %s; next: neuroshard emit %s --format torchrec, or "
                   "--details\n",
                   path, path);
    else
        buf_printf(
            out,
            "next: add -o plan.json (emit passes it to TorchRec), or --details "
            "to explain it\n");
}

static size_t count_lines(const struct buf *text)
{
    size_t n = 0;

    for (size_t i = 0; i < text->len; i++)
        n += text->data[i] == '\n';
    return n;
}

void emit_first_screen(const struct plan *plan,
                       const struct report_options *options, struct buf *out)
{
    struct buf text = {0}, head = {0}, foot = {0};
    struct report report;
    size_t used;

    report_init(&report, plan, options);
    print_speed(&report, &text);
    print_waits(&report, &text);
    print_groups(plan, &text);
    print_rivals(&report, &text);
    print_memory(&report, &text);
    print_cuts(&report, true, &text);
    print_cuts(&report, false, &text);
    text_wrap_lines(&head, text.data, report.options.n_columns);
    buf_release(&text);
    if (emit_has_wire_line(plan)) {
        emit_wire_line(plan, &text);
        buf_printf(&text, "\n");
    }
    if (options->groups) {
        emit_groups_estimate(options->groups, &text);
        buf_printf(&text, "\n");
    }
    print_assumed(&report, &text);
    print_next(&report, &text);
    text_wrap_lines(&foot, text.data, report.options.n_columns);
    used = count_lines(&head) + count_lines(&foot);
    buf_add(out, head.data, head.len);
    print_gpus(&report,
               used + 1 < FIRST_SCREEN_LINES ? FIRST_SCREEN_LINES - used : 1,
               out);
    buf_add(out, foot.data, foot.len);
    buf_release(&text);
    buf_release(&head);
    buf_release(&foot);
    report_release(&report);
}
