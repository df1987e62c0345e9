#!/bin/sh
# SPDX-License-Identifier: MIT
# TorchRec's plans: as its planner prints them, and as JSON.
# torchrec_stats.txt.gz is meta-pytorch/torchrec 376cac6a (BSD-3),
# torchrec/docs/wiki/sharding_stats_example.txt.

export COLUMNS=999 # keeps lines unbroken
gunzip -c "$ROOT/tests/cli/torchrec_stats.txt.gz" >stats.txt
list=$ROOT/data/tables/meta_torchrec_1935.csv
dcn=$ROOT/data/tables/mlperf_dlrm_dcnv2_multihot.csv

echo "== the published plan of 1,935 tables: 1300.325 ms on rank 28, mean 1003.567"
"$NEUROSHARD" cost --details stats.txt --tables "$list" --gpus-per-host 8 \
    --memory 192GiB --cost torchrec:outputs=legacy --wide >report
sed -n '/^plan/p; /^step/p; /^28 /p; /^mean /p' report
"$NEUROSHARD" cost --details stats.txt --memory 384GiB --gpus-per-host 8 \
    --cost torchrec:outputs=legacy | sed -n '/^plan/p; /^step/p'

echo "== the list that it holds"
"$NEUROSHARD" tables import "$list" -o ours.csv
"$NEUROSHARD" tables import stats.txt -o printed.csv
for tables in ours printed; do
    "$NEUROSHARD" tables $tables.csv --json |
        grep -v -e bytes -e precision -e optimizer >$tables.json
done
sed -n 1p printed.csv
cmp ours.json printed.json && echo "as the one that ships"

echo "== improved, 60 GiB of 617 moved at most"
"$NEUROSHARD" plan --details "$list" --gpus 96 --gpus-per-host 8 --batch-per-gpu 2560 \
    --memory 192GiB --cost torchrec:outputs=legacy --from stats.txt \
    --move-limit 60GiB --effort 20000 >report 2>said
awk '/^from/ { print ($8 < 1100 ? "below 1100 ms" : $0) }
    /^moves/ { print ($2 <= 60 && $3 == "GiB" ? "at most 60 GiB" : $0) }' report
grep guess said

echo "== ours as TorchRec's JSON, and back"
"$NEUROSHARD" plan --details "$dcn" --gpus 8 --effort 1000 -o plan.json >/dev/null 2>&1
"$NEUROSHARD" emit plan.json --format torchrec -o torchrec.json
"$NEUROSHARD" cost --details torchrec.json --tables "$dcn" --batch 65536 \
    --cost model:h100 -o back.json >/dev/null 2>&1
"$NEUROSHARD" cost --details plan.json --cost model:h100 --json >there.json 2>/dev/null
grep total_ms there.json >there
grep total_ms back.json >back
cmp there back && echo "the same price on each GPU"
"$NEUROSHARD" diff plan.json torchrec.json --tables "$dcn" --batch 65536 |
    sed -n '/^moves/p; /^tables/p'
"$NEUROSHARD" explain torchrec.json cat_20 --tables "$dcn" --batch 65536 \
    2>/dev/null | sed -n 1p
"$NEUROSHARD" compare "$dcn" --gpus 8 --effort 1000 --plan torchrec.json \
    --json 2>/dev/null >compared.json
grep -c '"planner": "given"' compared.json

echo "== replaced on other GPUs, of less memory and in other hosts"
"$NEUROSHARD" plan --details "$dcn" --gpus 2 --memory 1TiB --effort 0 -o large.json \
    >/dev/null 2>&1
"$NEUROSHARD" emit large.json --format torchrec -o large.torchrec
"$NEUROSHARD" plan --details "$dcn" --gpus 12 --gpus-per-host 6 --effort 0 \
    --from large.torchrec 2>/dev/null | grep -c '^from .*large.torchrec'

echo "== constraints for its planner"
printf '%s\n' name,rows,dim,hotness,num_features,sharding a,100,128,6,3,column \
    b,100,64,2,1,table c,50,16,1.5,1.5,replicate d,800,8,1,1,row >small.csv
"$NEUROSHARD" plan --details small.csv --gpus 2 --effort 1000 -o small.json \
    >/dev/null 2>&1
"$NEUROSHARD" emit small.json --format torchrec-constraints --prefix t_

echo "== as Python prints it, and as others save it"
printf '%s\n' name,rows,dim,hotness a,100,128,6 b,100,64,2 >two.csv
cat >printed.txt <<END
[default0]:module: m

[default0]: param | sharding type | compute kernel | ranks
[default0]:------ | ------------- | -------------- | ------
[default0]: a     | column_wise   | fused          | [0, 1]
[default0]: b     | table_wise    | fused          | [1]

[default0]: param | shard offsets | shard sizes | placement
[default0]:------ | ------------- | ----------- | -------------
[default0]: a     | [0, 0]        | [100, 64]   | rank:0/cuda:0
[default0]: a     | [0, 64]       | [100, 64]   | rank:1/cuda:1
[default0]: b     | [0, 0]        | [100, 64]   | rank:1/cuda:1
END
shard()
{
    printf '%s' "ShardMetadata(shard_offsets=[0, $1], shard_sizes=[100, 64], "
    printf '%s' "placement=rank:$2/cuda:$2)"
}
table()
{
    printf '%s' "'$1': ParameterSharding(sharding_type='$2', "
    printf '%s' "compute_kernel='fused', ranks=$3, sharding_spec="
    printf '%s' "EnumerableShardingSpec(shards=[$4]))"
}
echo "{'m': {$(table a column_wise '[0, 1]' "$(shard 0 0), $(shard 64 1)"), $(
    table b table_wise '[1]' "$(shard 0 1)")}}" >repr.txt
"$NEUROSHARD" cost --details printed.txt --tables two.csv --gpus 2 --batch 64 \
    --cost roofline:h100 -o printed.json >/dev/null 2>&1
"$NEUROSHARD" emit printed.json --format torchrec --module m -o printed.torchrec
sed 's/"[a-z_]*world_size": [0-9]*, *//g' printed.torchrec >serialized.json
cat >easyrec.json <<END
{"m": {"a": {"sharding_type": "column_wise", "compute_kernel": "fused",
             "ranks": [0, 1]},
       "b": {"sharding_type": "table_wise", "compute_kernel": "fused",
             "ranks": [1]}}}
END
for plan in repr.txt serialized.json easyrec.json; do
    "$NEUROSHARD" diff printed.json $plan --tables two.csv --batch 64 --gpus 2 2>&1 |
        grep "^moves\|^neuroshard: [^w]"
done
"$NEUROSHARD" cost --details easyrec.json --tables two.csv --batch 64 2>&1
cat >grid.json <<END
{"m": {"a": {"sharding_type": "grid_shard", "compute_kernel": "fused",
             "ranks": [0, 1, 2, 3]},
       "b": {"sharding_type": "table_wise", "compute_kernel": "fused",
             "ranks": [1]}}}
END
grid()
{
    "$NEUROSHARD" cost --details grid.json --tables two.csv --batch 64 \
        --cost roofline:h100 "$@" 2>&1 |
        grep -o '^neuroshard: grid.*\|4 GPUs, . host.*'
}
grid --gpus 4
grid --gpus 4 --gpus-per-host 2
"$NEUROSHARD" cost --details printed.txt --gpus 2 --batch 64 2>&1
cat printed.txt >twice.txt
sed 8d printed.txt >>twice.txt
"$NEUROSHARD" plan --details two.csv --gpus 2 --from twice.txt --effort 0 --batch 64 2>&1 |
    grep incomplete
exit 0
