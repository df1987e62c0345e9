#!/bin/sh
# SPDX-License-Identifier: MIT
# Measurements of other programs enter the database only once. Each bad file
# gives one sentence with its line, and nothing of it is stored.
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
corpus=$ROOT/tests/fuzz/corpus

# try COMMAND...: prints its messages and exit status
try()
{
    "$ns" record "$@" 2>&1
    echo "status $?"
}

echo "# nccl-tests"
cp "$corpus"/nccl_tests/*.txt .
try --nccl-tests h100_8.txt --db costs.db
try --nccl-tests h100_8.txt --db costs.db --isa sm_90
try --nccl-tests h100_16_on_2.txt --db costs.db
try --nccl-tests two_cycles.txt --db costs.db --device H100 --json |
    grep -v frac
try --nccl-tests marked.txt --db costs.db --hosts 2 | grep exchanges
for file in old_without_root rccl per_iteration size_zero; do
    try --nccl-tests $file.txt --db other.db --isa any | grep -E "^(dev|exch)"
done
try --nccl-tests h100_8.txt --db other.db --isa sm_91 --device cuda:H100 |
    grep device
sqlite3 costs.db "SELECT device, isa, kind, n_ranks, n_hosts, total_bytes,
    max_bytes, median_ms, n_iterations FROM comm_sample JOIN setting
    ON setting.id = setting_id"

echo "# what cannot be recorded"
for file in all_reduce cut_row empty huge no_heading no_host no_mpi no_rows \
    nul other_bandwidth reduced wrong_data; do
    try --nccl-tests $file.txt --db costs.db
done
try --nccl-tests missing.txt --db costs.db
try --nccl-tests h100_8.txt --db costs.db --hosts 9
try --nccl-tests h100_8.txt --db costs.db --device B200
try --nccl-tests h100_8.txt --db other.db --device cuda --isa any
try --nccl-tests h100_8.txt
try --db costs.db
sqlite3 costs.db "SELECT count(*) FROM comm_sample"

echo "# a job"
"$ns" plan --details "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 4096 \
    --cost roofline:h100 --effort 0 -o plan.json >/dev/null 2>&1
# job STEPS RANKS: prints times 20 and 30 % slower than predicted, with a
# constant part and a straggler
job()
{
    awk -v steps="$1" -v ranks="$2" 'BEGIN {
        print "step,rank,phase,ms"
        for (s = 0; s < steps; s++)
            for (r = 0; r < ranks; r++) {
                slow = (s < 3 ? 9 : 1) * (1 + (s * 7 + r * 3) % 5 / 200)
                slow *= r == 2 ? 1.5 : 1
                print s "," r ",forward," 0.4 * slow
                print s "," r ",backward," 1.0 * slow
                print s "," r ",output," 0.2 + (s % ranks != r) * (r + 1) / 10
            }
    }'
}
job 20 4 >times.csv
try plan.json --times times.csv --db costs.db
try plan.json --times times.csv --db costs.db --device H100 | cut -c 1-42
try plan.json --times times.csv --db costs.db --device H100 | grep samples
try plan.json --times times.csv --db costs.db --device 'cuda:NVIDIA H200' \
    --isa sm_90 --json | grep -vE '(frac|ms)"|cause'
for rank in 0 1 2 3; do
    awk -F , -v r=$rank 'NR == 1 || $2 == r' times.csv >times_$rank.csv
done
try plan.json times_1.csv times_2.csv times_3.csv --times times_0.csv \
    --db apart.db --device cuda:H100 --isa sm_90 | grep samples
job 21 4 | try plan.json --times - --db costs.db --device H100 | grep samples
sqlite3 costs.db "SELECT device, batch, kind, n_tables, n_iterations, flags,
    count(*), count(DISTINCT case_idx), count(DISTINCT seed) FROM sample
    JOIN setting ON setting.id = setting_id GROUP BY 1, 2, 3, 4, 5, 6;
    SELECT kind, n_ranks, n_hosts, total_bytes, max_bytes, median_ms
    FROM comm_sample WHERE n_ranks = 4;
    SELECT count(*), sum(n_unique > 0) FROM sample_table"

# FBGEMM's samples exclude the check of ids: here 14,000 ns plus 953 per table.
try plan.json --times times.csv --db fbgemm.db --isa sm_90 \
    --device 'fbgemm:NVIDIA H100 80GB HBM3' | grep samples
try plan.json --times times.csv --db cuda.db --isa sm_90 \
    --device 'cuda:NVIDIA H100 80GB HBM3' | grep samples
sqlite3 fbgemm.db "ATTACH 'cuda.db' AS cuda;
    SELECT a.n_tables, round(1e6 * (b.forward_median_ms - a.forward_median_ms)),
    round(1e6 * (b.backward_median_ms - a.backward_median_ms)),
    round(1e6 * (b.total_median_ms - a.total_median_ms))
    FROM sample a JOIN cuda.sample b USING (case_idx) ORDER BY 1, 2;
    SELECT DISTINCT 'exchanged by ' || kind FROM comm_sample"

echo "# the device is that of the plan's model; no database after an error"
"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 4096 \
    --cost model:h100 --effort 0 --no-rivals -o model.json >/dev/null 2>&1
try model.json --times times.csv --db plain.db |
    grep -E '^(device|samples|rank 2|    not|status)'
try plan.json --times times.csv --db missing.db
try --nccl-tests h100_8.txt --db missing.db
[ ! -e missing.db ] || echo "a database is left"

echo "# what is no such job"
cp "$corpus"/times/* .
for file in no_ms.csv short.csv other_world.csv negative_rank.csv no_step.csv \
    unknown_phase.csv negative.csv nan.csv huge.csv quote.csv nul.csv \
    empty.csv heading.csv truncated.json null.json number.json object.json \
    empty.json half_step.json missing.csv; do
    try plan.json --times $file --db costs.db --device H100
done
job 20 3 >three.csv
try plan.json --times three.csv --db costs.db --device H100
job 20 8 >eight.csv
try plan.json --times eight.csv --db costs.db --device H100
job 3 4 >short.csv
try plan.json --times short.csv --db costs.db --device H100
try plan.json times.csv --times times.csv --db costs.db --device H100
try plan.json --times times.csv --db costs.db --insist --nccl-tests h100_8.txt
try --nccl-tests h100_8.txt --db costs.db --insist
try times.csv --times times.csv --db costs.db --device H100
try plan.json --times times.csv --nccl-tests h100_8.txt --db costs.db
try --times times.csv --db costs.db
try plan.json --db costs.db
sqlite3 costs.db "SELECT count(*) FROM sample; SELECT count(*) FROM comm_sample"

echo "# what is doubtful"
awk -F , -v OFS=, 'NR > 1 { $4 *= 40 } 1' times.csv >cpu_times.csv
try plan.json --times cpu_times.csv --db doubt.db --isa sm_90 \
    --device 'cuda:NVIDIA H200'
try plan.json --times cpu_times.csv --db doubt.db --isa sm_90 --insist \
    --device 'cuda:NVIDIA H200' | grep -e samples -e status
awk 'NR != 41 && NR != 77' times.csv >gaps.csv
try plan.json --times gaps.csv --db doubt.db --device H200 | sed 5q
head -c -3 times.csv >cut.csv
try plan.json --times cut.csv --db doubt.db --device H200 | sed 4q
try --nccl-tests cut_second.txt --db doubt.db --isa any | sed 3q

echo "# peak memory"
"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 65536 \
    --memory 2GiB --reserve 256MiB --cost roofline:h100 --effort 1000 \
    --no-rivals -o tight.json >/dev/null 2>&1
cat >peaks.csv <<END
rank,allocated_bytes,reserved_bytes,used_bytes
0,1200000000,1300000000,1500000000
1,1200000000,1300000000,1500000000
3,400000000,500000000,700000000
END
try tight.json --memory peaks.csv
sed 's/,[0-9]*$/,/' peaks.csv >reserved.csv
try tight.json --memory reserved.csv
cp "$corpus"/peaks/torch2.log .
sed 's/7.90 GiB/2.00 GiB/; s/1.20 GiB/0.30 GiB/; s/2.00 GiB. GPU/0.50 GiB. GPU/
    s/5.00 GiB/1.60 GiB/; s/rank2/rank1/' torch2.log >oom.log
try tight.json --memory oom.log
try tight.json --memory oom.log --json
# The next plan counts less memory on each GPU than the suggested reserve
# leaves.
reserve=$("$ns" record tight.json --memory oom.log | grep -oE '[0-9.]+GiB')
"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 65536 \
    --memory 2GiB --reserve "$reserve" --cost roofline:h100 --effort 1000 --no-rivals \
    -o next.json >/dev/null 2>&1
try next.json --memory oom.log --json | grep -E 'counted|"reserve_bytes|fit'
try tight.json --memory torch2.log
try plan.json --times times.csv --memory peaks.csv --db memory.db \
    --device cuda:H100 --isa sm_90 | tail -n 8
for file in incomplete.log twice.csv empty.csv other_world.csv nul.log; do
    cp "$corpus/peaks/$file" peak_"$file"
    try tight.json --memory "peak_$file"
done
try tight.json --memory peaks.csv --db none.db
try tight.json --memory peaks.csv --warm-up 2
try tight.json more.csv --memory peaks.csv
try --memory peaks.csv
try tight.json --memory peaks.csv --nccl-tests h100_8.txt
[ ! -e none.db ] || echo "a database is left"

echo "# the next plan"
# Half-precision tables take 5 and 3 times as long as predicted, and the ranks
# hold them in different shares.
cat >mixed.csv <<END
name,num_embeddings,dim,pooling_factor,precision,device
a,100000,64,20,fp32,0
b,100000,64,20,fp32,0
c,100000,64,20,fp16,0
d,100000,64,20,fp32,1
e,100000,64,20,fp16,1
f,100000,64,20,fp16,1
END
sed 's/device/&,forward_factor,backward_factor/; s/fp16.*/&,5,3/
    s/fp32.*/&,,/' mixed.csv >truth.csv
place()
{
    "$ns" plan "$1.csv" --gpus 2 --cost roofline:cpu --effort 0 --no-rivals \
        -o "$1.json" >/dev/null 2>&1
}
place mixed
place truth
{
    echo step,rank,phase,ms
    for step in 0 1 2 3 4; do
        grep -o '"phases_ms": {[^}]*}' truth.json | awk -F '[:,]' -v s=$step '{
            print s "," NR - 1 ",forward," $5 + 0
            print s "," NR - 1 ",backward," $11 + 0 }'
    done
} >truth_times.csv
try mixed.json --times truth_times.csv -o next.csv
cat next.csv
try mixed.json --times truth_times.csv -o next.csv --json | grep -A 12 factors
# Priced by these factors, the times are as predicted.
place next
try next.json --times truth_times.csv -o again.csv | grep predicted:
try mixed.json --memory peaks.csv -o next.csv
try mixed.json --times truth_times.csv
try mixed.json --times truth_times.csv -o missing/next.csv

echo "# a slow machine and a slow link"
{
    echo name,num_embeddings,dim,pooling_factor
    seq 24 | sed 's/.*/t&,100000&,64,20/'
} >equal.csv
# place24 OUT OPTIONS...: plans 24 equal tables
place24()
{
    out=$1
    shift
    "$ns" plan "$@" --cost roofline:h100 --batch 65536 --effort 2000 \
        --no-rivals --shard table --simplest-within 0% -o "$out"
}
place24 even.json equal.csv --gpus 4 >/dev/null 2>&1
# slow_job PLAN: prints the plan's times, with rank 2 slow and slow exchanges
slow_job()
{
    echo step,rank,phase,ms
    for step in 0 1 2 3 4; do
        grep -o '"phases_ms": {[^}]*}' "$1" | awk -F '[:,]' -v s=$step '{
            slow = NR == 3 ? 1.5 : 1
            print s "," NR - 1 ",forward," slow * ($5 + 0)
            print s "," NR - 1 ",output," 1.4 * ($7 + 0)
            print s "," NR - 1 ",backward," slow * ($11 + 0) }'
    done
}
slow_job even.json >slow_times.csv
try even.json --times slow_times.csv -o slow.csv --output-cluster slow.json |
    tail -n 5
grep -E 'gbps|1.5' slow.json
try even.json --times slow_times.csv -o slow.csv --json | grep -A 11 '"slowdown'
place24 uneven.json slow.csv --cluster slow.json 2>&1 | grep -w slow
# count PLAN: prints the number of tables on each GPU
count()
{
    grep -oE '"device": [0-9]+' "$1" | sort | uniq -c | awk '{ print $3, $1 }' |
        xargs
}
count even.json
count uneven.json
try even.json --times slow_times.csv --db slow.db --output-cluster slow.json

echo "# what is recorded is learned from"
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" cpu.db
sqlite3 cpu.db 'DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
    sample WHERE case_idx >= 400); DELETE FROM sample WHERE case_idx >= 400;
    DELETE FROM comm_sample'
learned()
{
    "$ns" train --db cpu.db -o cpu.nsm --kind net --epochs 1 --force 2>&1 |
        grep -oE '^samples.*|^communication.*'
}
learned
try plan.json --times times.csv --db cpu.db --device EPYC | grep samples
job 30 4 | try plan.json --times - --db cpu.db --device EPYC | grep samples
learned
