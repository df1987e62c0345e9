#!/bin/sh
# SPDX-License-Identifier: MIT
# Trace of each search: its result, the number of placements, the reason why it
# stopped, and its lower bound. The output shows the effects of stop rules,
# schedules, starts, pruning and the figures of cost models. A change to one of
# them changes lines here; check whether the new lines are better before you
# update the file.
set -u

field()
{
    sed -n "s/^  \"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" plan.json
}

sum_of()
{
    cksum | cut -d' ' -f1
}

# tell NAME: prints a summary of the plan in one line, with checksums of its
# shards and of the trace of costs
tell()
{
    [ -e trace.csv ] || : >trace.csv
    echo "$1: $(printf '%.9g of %.9g' "$(field total_ms)" \
        "$(field bound_ms | sed s/null/nan/)") ms, $(field n_evaluations)" \
        "placements, $(field stopped)," \
        "$(sed -n '/"shards"/,/"devices"/p' plan.json | sum_of)" \
        "$(cut -d, -f1,2 trace.csv | sum_of)"
}

# walk NAME TABLES OPTION...: plans a shipped list, or a file in this folder
walk()
{
    name=$1
    list=$2
    [ -e "$list" ] || list=$ROOT/data/tables/$2.csv
    shift 2
    rm -f plan.json trace.csv
    if "$NEUROSHARD" plan --details "$list" "$@" --no-rivals -o plan.json >report \
        2>messages; then
        tell "$name"
    else
        echo "$name: exit $?, $(cat messages)"
    fi
}

# Starts of searches, in ample and in tight memory: plans without any change.
for cost in torchrec roofline:h100; do
    while read -r list memory; do
        walk "$list $memory $cost" "$list" --gpus 8 --cost $cost --host-ms 0 \
            --reserve 0 --memory "$memory" --effort 0
    done <<END
criteo_1tb_torchrec_26 80GiB
criteo_1tb_torchrec_26 14GiB
criteo_1tb_torchrec_26 12GiB
criteo_kaggle_26 80GiB
criteo_kaggle_26 500MiB
deeprecsys_dlrm_rm2 80GiB
deeprecsys_dlrm_rm2 4GiB
mlperf_dlrm_dcnv2_multihot 80GiB
mlperf_dlrm_dcnv2_multihot 20GiB
mlperf_dlrm_dcnv2_multihot 14GiB
nvidia_synthetic_tiny_v3 80GiB
nvidia_synthetic_tiny_v3 1GiB
nvidia_synthetic_small_v3 4GiB
meta_tbe_eeg_example_5 80GiB
meta_tbe_eeg_example_5 1GiB
meta_tbe_eeg_example_5 500MiB
meta_tbe_eeg_example_5 400MiB
meta_tbe_eeg_example_5 350MiB
meta_tbe_eeg_example_5 300MiB
END
done

# Plans that are repaired, plans found by packing, and lists that are refused
# with a remedy.
while read -r list gpus memory; do
    walk "$list $gpus $memory" "$list" --gpus "$gpus" --cost torchrec \
        --reserve 0 --memory "$memory" --effort 0
done <<END
meta_tbe_eeg_example_5 8 262MiB
meta_tbe_eeg_example_5 8 250MiB
meta_tbe_eeg_example_5 3 600MiB
meta_tbe_eeg_example_5 2 900MiB
mlperf_dlrm_dcnv2_multihot 8 13000MiB
END

# Additive costs: lower bounds by the mean load and by the largest piece, rows
# that are cut only for memory, hosts, seeds, and lists of few and of many
# tables.
walk mean criteo_kaggle_26 --gpus 8 --cost torchrec --effort 60000 \
    --trace trace.csv
walk largest mlperf_dlrm_dcnv2_multihot --gpus 8 --cost torchrec --effort 60000 \
    --trace trace.csv
walk small_gap mlperf_dlrm_dcnv2_multihot --gpus 3 --cost torchrec
walk little_gain mlperf_dlrm_dcnv2_multihot --gpus 6 --cost torchrec
walk tight mlperf_dlrm_dcnv2_multihot --gpus 8 --cost torchrec --memory 20GiB \
    --reserve 0 --effort 40000 --trace trace.csv
walk hosts mlperf_dlrm_dcnv2_multihot --gpus 16 --cost torchrec \
    --gpus-per-host 8 --shard table,column,grid --effort 60000 \
    --trace trace.csv
walk proven deeprecsys_dlrm_rm3 --gpus 4 --cost torchrec --seed 1 \
    --trace trace.csv
walk narrow nvidia_synthetic_tiny_v3 --gpus 8 --cost torchrec --min-width 8 \
    --effort 60000 --trace trace.csv
walk many hugectr_200table_100B_hotness20 --gpus 16 --cost torchrec \
    --shard table,column --effort 200000 --trace trace.csv
awk 'function draw(n) {
        x = x * 16807 % 2147483647
        return int(x / 2147483647 * n)
    }
    BEGIN {
        x = 7920
        n = 6 + draw(25)
        print "name,num_embeddings,dim,pooling_factor"
        for (i = 0; i < n; i++) {
            rows = int(10 ^ (2 + draw(500) / 100))
            dim = 8 * 2 ^ draw(5)
            print "t" i "," rows "," dim "," 1 + draw(60) / 2
        }
    }' >drawn.csv
walk wide_gap drawn.csv --gpus 2 --cost torchrec

# Costs that are not additive, with and without host time.
walk host criteo_kaggle_26 --gpus 4 --cost roofline:h100 --trace trace.csv
walk usual meta_tbe_eeg_example_5 --gpus 4 --cost roofline:h100 --host-ms 0 \
    --effort 60000 --trace trace.csv
walk few deeprecsys_dlrm_rm1 --gpus 4 --cost roofline:a100 --host-ms 0 \
    --trace trace.csv
walk effort mlperf_dlrm_dcnv2_multihot --gpus 8 --cost roofline:h100 \
    --effort 200000 --trace trace.csv
walk rows mlperf_dlrm_dcnv2_multihot --gpus 4 --cost roofline:h200 --host-ms 0 \
    --effort 100000 --row-cut any --pipeline none --trace trace.csv
walk dense nvidia_synthetic_tiny_v3 --gpus 8 --cost roofline:h100 --host-ms 0 \
    --shard table,column --effort 200000 --dense-ms 1,2 --trace trace.csv
walk domains nvidia_synthetic_tiny_v3 --gpus 16 --cost roofline:gb200 \
    --gpus-per-host 4 --hosts-per-domain 2 --host-ms 0 --pipeline semisync \
    --dedup ids --effort 100000 --trace trace.csv
walk simple nvidia_synthetic_tiny_v3 --gpus 8 --cost roofline:h100 \
    --host-ms 0 --chunks 4 --effort 50000 --simplest-within 2%

# Costs of learned nets.
walk learned criteo_kaggle_26 --gpus 4 --host-ms 0 --effort 20000 \
    --cost model:"$ROOT"/data/models/h100.nsm --trace trace.csv
walk cpu deeprecsys_dlrm_rm1 --gpus 4 --host-ms 0 --effort 20000 \
    --cost model:"$ROOT"/data/models/cpu-amd-epyc-2t.nsm --trace trace.csv

# GPUs with unequal memory.
cat >cluster.json <<END
{"hosts": [{"gpus": 4, "memory": ["8GiB", "8GiB", "4GiB", "2GiB"]}]}
END
walk uneven nvidia_synthetic_tiny_v3 --cluster cluster.json --cost torchrec \
    --effort 20000 --trace trace.csv

# The published searches.
walk grid criteo_kaggle_26 --gpus 4 --search grid --cost roofline:h100 \
    --host-ms 0
walk beam criteo_kaggle_26 --gpus 4 --search reference --cost roofline:h100 \
    --host-ms 0

# Explanations with a new search.
"$NEUROSHARD" plan --details "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 \
    --cost torchrec --effort 0 --no-rivals -o plan.json >report 2>messages
"$NEUROSHARD" explain plan.json --anew --device 3 2>messages |
    sed -n '/^fresh/,$p'
"$NEUROSHARD" explain plan.json --device 4 2>&1

# Re-planning: an existing plan for a list that has changed.
again=$ROOT/data/tables/mlperf_dlrm_dcnv2_multihot.csv
for cost in torchrec roofline:h100; do
    "$NEUROSHARD" plan --details "$again" --gpus 8 --cost $cost --effort 20000 \
        --no-rivals -o old.json >report 2>messages || cat messages
    awk -F, -v OFS=, 'NR > 1 && NR % 5 == 0 { $4 *= 3 } { print }' \
        "$again" >grown.csv
    for limit in 0 4GiB 30GiB; do
        rm -f plan.json trace.csv
        "$NEUROSHARD" plan --details grown.csv --gpus 8 --cost $cost \
            --from old.json --move-limit $limit --effort 20000 --no-rivals -o plan.json >report 2>messages ||
            cat messages
        tell "from $cost $limit"
        grep -h -i -e '^moves' report
    done
done

# Other planners.
for cost in torchrec roofline:h100; do
    "$NEUROSHARD" compare "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 8 \
        --host-ms 0 --effort 20000 --cost $cost --json 2>messages |
        grep -o -e '"planner": "[a-z-]*"' -e '"total_ms": [0-9]*\.[0-9]\{6\}' |
        paste -s -d ' \n'
done
