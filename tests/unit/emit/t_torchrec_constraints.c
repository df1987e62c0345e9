/* SPDX-License-Identifier: MIT */
#include "tests/unit/emit/fixture.h"

#include "emit/formats.h"

static const char *emitted(const struct plan *plan, const char *prefix)
{
    const struct emitter *format = &emit_torchrec_constraints;
    const struct emit_options options = {.prefix = prefix};
    struct buf out = {0};
    struct err err = {0};
    const char *text = NULL;

    if (ok(!format->emit(plan, &options, &out, &err), "emitted: %s", err.msg))
        text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* Expected constraints. Features of a table share its lookups equally. A table
 * whose number of poolings per sample is not 1 states this number. 40 columns
 * in three pieces are 16, 16 and 8. A whole table may be cut, unless the table
 * list forbids it. */
static const char text[] =
    "{\"p_whole\": {\"sharding_types\": [\"table_wise\", \"column_wise\"], "
    "\"compute_kernels\": [\"fused\"], \"pooling_factors\": [3.0]},\n"
    " \"p_cut\": {\"sharding_types\": [\"column_wise\"], "
    "\"compute_kernels\": [\"fused\"], \"pooling_factors\": [2.0], "
    "\"min_partition\": 16},\n"
    " \"p_shared\": {\"sharding_types\": [\"table_wise\", \"column_wise\"], "
    "\"compute_kernels\": [\"fused\"], \"pooling_factors\": [4.0, 4.0, "
    "4.0]},\n"
    " \"p_rare\": {\"sharding_types\": [\"table_wise\"], "
    "\"compute_kernels\": [\"fused\"], \"pooling_factors\": [8.0], "
    "\"num_poolings\": [0.25]},\n"
    " \"p_copy\": {\"sharding_types\": [\"data_parallel\"], "
    "\"compute_kernels\": [\"dense\"], \"pooling_factors\": [1.0]},\n"
    " \"p_words\": {\"sharding_types\": [\"row_wise\"], "
    "\"compute_kernels\": [\"fused\"], \"pooling_factors\": [20.0]}}\n";

int main(void)
{
    const struct emitter *format = &emit_torchrec_constraints;
    const struct emit_options none = {0};
    struct buf out = {0};
    struct err err = {0};
    struct plan plan;

    plan = fixture_plan(2, 2, 64);
    fixture_whole(&plan, "whole", 10, 8, 3, 0);
    fixture_table(&plan, "cut", 10, 40, 2);
    fixture_shard(&plan, 0, 10, 0, 16, 0);
    fixture_shard(&plan, 0, 10, 16, 32, 0);
    fixture_shard(&plan, 0, 10, 32, 40, 1);
    fixture_whole(&plan, "shared", 10, 8, 12, 1);
    plan.problem.tables[2].num_outputs = 3;
    fixture_whole(&plan, "rare", 10, 8, 2, 1);
    plan.problem.tables[3].num_outputs = 0.25;
    plan.problem.tables[3].kinds = SHARD_TABLE | SHARD_ROW;
    fixture_table(&plan, "copy", 10, 8, 1);
    fixture_shard(&plan, 0, 10, 0, 8, 0);
    fixture_shard(&plan, 0, 10, 0, 8, 1);
    fixture_table(&plan, "words", 10, 8, 20)->output = OUTPUT_SEQUENCE;
    fixture_shard(&plan, 0, 5, 0, 8, 0);
    fixture_shard(&plan, 5, 10, 0, 8, 1);
    fixture_finish(&plan);
    is_str(emitted(&plan, "p_"), text, "each table's constraints");
    plan.problem.tables[0].name = "a.ebc.whole";
    plan.problem.tables[5].name = "a.ec.words";
    is_str(emitted(&plan, "p_"), text, "whatever their modules");
    plan.problem.tables[3].name = "b.ebc.whole";
    ok(format->emit(&plan, &none, &out, &err) == -1, "two of one name: %s",
       err.msg);
    is_str(err.msg,
           "table 'b.ebc.whole' is the second 'whole', and constraints do not "
           "distinguish modules",
           "says which");
    arena_release(&arena);
    return tap_done();
}
