/* SPDX-License-Identifier: MIT */
#include "cli/recorded_factors.h"

#include "base/file_write.h"
#include "io/cluster_json.h"
#include "io/tables_io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int fit_wire(struct recorded_factors *factors, struct plan *plan,
                    const struct job_times *job, struct arena *arena,
                    struct err *err)
{
    double measured_ms[N_STEP_PARTS];

    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        measured_ms[p] = NAN;
    for (size_t i = 2 * (size_t)job->n_ranks; i < job->n_phases; i++)
        measured_ms[job->phases[i].part] = job->phases[i].time.median_ms;
    return wire_fit(&factors->wire, plan, measured_ms, arena, err);
}

static int check_cluster(const char *text, size_t len, const char *source,
                         struct arena *arena, struct err *err)
{
    struct cluster cluster = {0};

    return cluster_from_json(&cluster, text, len, source, arena, err);
}

static int save_cluster(const struct cluster *cluster, const char *path,
                        struct err *err)
{
    json_t *root = cluster_to_json(cluster);
    char *text = json_to_text(root);
    const int rc =
        file_write_checked(path, text, strlen(text), check_cluster, err);

    free(text);
    json_decref(root);
    return rc;
}

int recorded_factors_save(struct recorded_factors *factors, struct plan *plan,
                          const struct job_times *job, bool has_exchanges,
                          const struct cli *cli, struct err *err)
{
    const struct problem *problem = &plan->problem;
    struct rank_lookups *measured =
        ARENA_NEW(cli->arena, struct rank_lookups, job->n_ranks);
    const double before_ms = plan->total_ms;

    if (!cli_given(cli, "output"))
        return 0;
    if (!plan_is_priced(plan) || !plan->cost.name)
        return err_input(err,
                         "%s: the plan is not priced; 'neuroshard cost "
                         "-o' prices it",
                         cli->args[0]);
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        const struct job_phase *own = &job->phases[2 * (size_t)r];

        measured[r] =
            (struct rank_lookups){own[0].time.median_ms, own[1].time.median_ms};
    }
    factors->slowdown = job_slowdown(job, &plan->problem.cluster, cli->arena);
    factors->n_devices = job->n_ranks;
    factors->wire.factor = NAN;
    if ((has_exchanges && fit_wire(factors, plan, job, cli->arena, err)) ||
        table_factors_find(&factors->tables, plan, measured, cli->arena, err))
        return err_prefix(err, "%s", cli->args[0]);
    factors->tables.before_ms = before_ms;
    if (cli_given(cli, "output-cluster") &&
        save_cluster(&problem->cluster, cli_string(cli, "output-cluster"), err))
        return -1;
    return tables_save(
        &(struct table_list){problem->tables, problem->n_tables, cli->args[0]},
        "# factors: measured by 'neuroshard record'\n",
        cli_string(cli, "output"), err);
}

void recorded_factors_to_json(const struct recorded_factors *factors,
                              json_t *root)
{
    const struct wire_fit *wire = &factors->wire;
    json_t *list;

    if (!factors->tables.n)
        return;
    json_object_set_new(root, "factors",
                        table_factors_to_json(&factors->tables));
    list = json_array();
    for (uint32_t r = 0; r < factors->n_devices; r++)
        json_array_append_new(list, json_real(factors->slowdown[r]));
    json_object_set_new(root, "slowdown", list);
    if (isnan(wire->factor))
        return;
    list = json_pack("{s:f}", "factor", wire->factor);
    if (wire->gbps > 0)
        json_object_set_new(list, wire->is_inter ? "inter_gbps" : "intra_gbps",
                            json_real(wire->gbps));
    json_object_set_new(root, "wire", list);
}

void recorded_factors_print(const struct recorded_factors *factors,
                            struct buf *out)
{
    const struct wire_fit *wire = &factors->wire;

    if (!factors->tables.n)
        return;
    table_factors_print(&factors->tables, out);
    for (uint32_t r = 0; r < factors->n_devices; r++)
        if (factors->slowdown[r] > 1)
            buf_printf(out, "GPU %u is %.2fx slow on its tables\n", r,
                       factors->slowdown[r]);
    if (isnan(wire->factor))
        return;
    buf_printf(out, "exchanges take %.2f times the predicted time",
               wire->factor);
    if (wire->gbps > 0)
        buf_printf(out, ", as at %.4g GB/s %s", wire->gbps,
                   wire->is_inter ? "across hosts" : "inside a host");
    buf_printf(out, "\n");
}
