#!/bin/sh
# SPDX-License-Identifier: MIT
# The job of a step: its pipeline, its chunks and its dense part. The output
# consists of facts that hold for any good search, not of figures.
set -u
export COLUMNS=999 # keeps lines unbroken

ns=$NEUROSHARD
tables=$ROOT/data/tables/criteo_kaggle_26.csv

# plan OPTIONS: plans quietly; prints messages and status after a failure
plan()
{
    "$ns" plan --details "$tables" --gpus 4 --batch 65536 --dim 64 --cost roofline:h100 \
        --effort 20000 --host-ms 0 "$@" 2>messages || { rc=$?; cat messages; echo "exit $rc"; }
}

# total FILE: prints the step time of a plan
total()
{
    sed -n 's/^  "total_ms": \([^,]*\).*/\1/p' "$1"
}

# says NAME CONDITION: prints whether an awk condition holds
says()
{
    awk "BEGIN {exit !($2)}" && echo "yes: $1" || echo "NO: $1"
}

echo "== wrong ones"
plan --pipeline fast
plan --chunks 0
plan --chunks 65
for dense in 1 "1," ",1" 1,-1 1,2,3 a,b 1e10,1; do
    plan --dense-ms $dense
done

echo "== pipelines"
for pipeline in none sdd prefetch semisync; do
    plan --pipeline $pipeline -o $pipeline.json |
        sed -n "s/^        pipeline/$pipeline:/p"
done
none=$(total none.json)
says "a hidden input is shorter" "$(total sdd.json) < $none"
says "hidden look-ups are shorter still" \
    "$(total semisync.json) < $(total sdd.json)"

echo "== a plan keeps its job"
plan --pipeline none --chunks 3 --dense-ms 0.5,1.25 -o job.json |
    sed -n '/^        pipeline/p'
sed -n 's/.*\("pipeline".*"dense_ms": [^]]*]\).*/\1/p' job.json
"$ns" cost --details job.json -o same.json >report && sed -n '/^        pipeline/p' report
cmp job.json same.json && echo "the same"
"$ns" explain job.json | sed -n '/^        pipeline/p'
# A small batch suffices: run's report about the job does not depend on it.
"$ns" plan --details "$tables" --gpus 4 --batch 256 --effort 100 --pipeline none --chunks 3 \
    --dense-ms 0.5,1.25 -o small.json >report 2>&1
"$ns" run small.json --scale-rows 0.01 --no-check --iterations 12 2>err |
    grep '^lookups'

echo "== but for what is asked"
"$ns" cost --details none.json --dense-ms 1,2 -o dense.json >report
says "the dense part comes on top" \
    "($(total dense.json) - $none - 3)^2 < 1e-18"
"$ns" cost --details none.json --pipeline sdd --dense-ms 1,2 -o hidden.json >report
says "and hides the input" "$(total hidden.json) < $(total dense.json)"

echo "== what de-duplication of ids takes"
{
    echo name,num_embeddings,dim,pooling_factor,output,dedup
    echo seen,100000,64,20,sequence,1
} >seen.csv
# seen OPTIONS: plans the list with repeated ids on one GPU
seen()
{
    "$ns" plan --details seen.csv --gpus 1 --batch 16384 --effort 10 --host-ms 0 \
        --pipeline none "$@" 2>messages
}
for cost in h100 cpu; do
    seen --cost roofline:$cost -o plain.json >report
    seen --cost roofline:$cost --dedup ids -o found.json | grep 'costs more'
    awk "BEGIN {ids = 16384 * 20; gb = ids * 64 * 4 / 1e9
        ms = 0.239 + 0.213e-6 * ids + 0.0166 + 0.679e-6 * ids + 1.96 * gb
        ms = $(total found.json) - $(total plain.json) - ms * (\"$cost\" == \"h100\")
        print \"$cost:\", ms * ms < 1e-10 ? \"as measured\" : ms}"
done
sed 's/,1$/,0.01/' seen.csv >often.csv
"$ns" plan --details often.csv --gpus 16 --inter-gbps 1 --cost roofline:h100 --effort 10 \
    --host-ms 0 --dedup ids -o often.json 2>messages | grep 'costs more'
"$ns" cost --details often.json --dedup none -o plain.json >report
says "across slow hosts it gains" "$(total often.json) < $(total plain.json)"

echo "== the host"
"$ns" cost --details none.json --host-ms 5 -o host.json >report
grep -E '^(step|binds|bound)|pipeline' report
sed -n 's/.*\("host_ms": [^,}]*\).*/\1/p' host.json
"$ns" explain host.json | grep -E '^(step|binds|bound)'
"$ns" cost --details small.json --host-ms 5 -o small_host.json >report
"$ns" run small_host.json --scale-rows 0.001 --no-check --iterations 12 2>messages |
    awk '/ms predicted/ { print "run has none: " ($7 < 5 ? "yes" : $0) }
         / \+-[0-9]+ %$/ { print "its error is that of what runs" }'
for cost in h100 h200 cpu; do
    echo "$cost: $("$ns" plan --details "$tables" --gpus 4 --dim 64 --effort 200 \
        --cost roofline:$cost 2>messages | grep -o 'host [0-9].*')"
done
"$ns" cost --details none.json --host-ms 5 --cost torchrec -o t_host.json >report
grep 'whatever the pipeline' report

echo "== published totals stay"
for pipeline in none semisync; do
    "$ns" cost --details none.json --cost torchrec --pipeline $pipeline -o t_$pipeline.json \
        >report
done
grep 'whatever the pipeline' report
says "whatever the pipeline" "$(total t_none.json) == $(total t_semisync.json)"

echo "== compare says it"
for cost in roofline:h100 torchrec; do
    "$ns" compare "$tables" --gpus 4 --dim 64 --cost $cost --effort 2000 \
        --pipeline semisync 2>messages | grep -o 'pipeline.*'
done

echo "== what is not said twice"
plan --dedup all
sed 's/^name,/dedup,name,/; t; s/^[^#]/0.5,&/' "$tables" >shared.csv
tables=shared.csv
plan --dedup none -o none.json >report
plan --dedup ids -o ids.json | sed -n 's/^        pipeline/ids:/p'
says "pooled tables stay as they are" "$(total ids.json) == $(total none.json)"
plan --dedup sessions -o sessions.json >report
says "fewer sessions are faster" "$(total sessions.json) < $(total none.json)"
sed -n 's/.*\("pipeline".*"dedup": "[a-z]*"\).*/\1/p' sessions.json
"$ns" cost --details sessions.json --dedup none -o all.json >report
"$ns" cost --details all.json --dedup sessions -o again.json >report
says "a plan is priced without and with" \
    "$(total all.json) > $(total sessions.json) && \
     $(total again.json) == $(total sessions.json)"
"$ns" cost --details sessions.json --cost torchrec -o published.json >report
grep 'whatever the pipeline' report
"$ns" cost --details published.json --dedup none -o plain.json >report
says "as published" "$(total published.json) == $(total plain.json)"
