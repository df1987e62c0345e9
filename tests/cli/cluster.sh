#!/bin/sh
# SPDX-License-Identifier: MIT
# Numbers of GPUs, GPUs that differ, and bandwidths inside and across hosts.
# The output consists of facts that hold for any good search, not of figures.
set -u
. "$ROOT/tests/cli/common"
export COLUMNS=999 # keeps lines unbroken

ns=$NEUROSHARD
tables=$ROOT/data/tables/criteo_kaggle_26.csv

# plan OPTIONS: plans quietly, with no memory reserved
plan()
{
    default_plan --reserve 0 "$@"
}

# default_plan OPTIONS: plans quietly, with the default reserve, and by the
# roofline, which is quick, unless the options choose a GPU, a model or hosts
default_plan()
{
    options=$*
    case ${options##*--search } in
    grid*) ;; # The last --search counts; this one takes no effort.
    *) set -- --effort 4000 "$@" ;;
    esac
    case "$options " in
    *--cost* | *--cluster* | *--from* | *--gpus-per-host* | *'--gpu '*) ;;
    *) set -- --cost roofline:h100 "$@" ;;
    esac
    "$ns" plan --details "$tables" --batch 4096 --host-ms 0 "$@" 2>messages
}

# total FILE: prints the step time of a plan
total()
{
    sed -n 's/^  "total_ms": \([^,]*\).*/\1/p' "$1"
}

# less A B: whether number A is below number B
less()
{
    awk "BEGIN {exit !($1 < $2)}"
}

# says NAME COMMAND...: prints the name, and whether the command succeeds
says()
{
    name=$1
    shift
    if "$@"; then
        echo "yes: $name"
    else
        echo "NO: $name"
    fi
}

# remedy: prints the remedy in the last message, without its figures
remedy()
{
    sed 's/: the tables need.*; it would/: ...; it would/
        s/[0-9.]* [MG]iB/SIZE/; s/or [0-9]* \([sG]\)/or N \1/' messages
}

# has_worked PID: whether the process has taken half a second of CPU time, so
# that it is in its first search
has_worked()
{
    [ "$(cut -d' ' -f14 "/proc/$1/stat")" -ge 50 ]
}

echo "# how many"
plan --gpus 1..4 --memory 800MiB -o smallest.json >range
sed -n '/^ *[0-9G]/p' range | awk '{print $1, $2, $3}'
grep -oE '^(cost|smallest that fits: [0-9]* GPUs|fastest)' range
plan --gpus 1..4 --memory 800MiB --json >range.json
for n in 2 3 4; do
    plan --gpus $n --memory 800MiB -o $n.json >report
    echo "$n GPUs: exit $?"
done
says "the smallest is what plan finds for it" cmp -s smallest.json 3.json
for n in 3 4; do
    says "the total of $n is that of a plan for it" \
        grep -q "\"total_ms\": $(total $n.json)" range.json
    says "and the hash of its inputs" grep -q \
        "$(sed -n 's/^  "inputs_hash": "\(.*\)",/"inputs_hash": "\1"/p' $n.json)" \
        range.json
done

echo "# whole hosts, below one any number"
plan --gpus 6..25 --gpus-per-host 8 --search grid |
    awk '$3 == "yes" {printf "%s GPUs on %s; ", $1, $2}'
echo

echo "# none fits"
plan --gpus 1..2 --memory 300MiB | awk '{print $1, $2, $3}'
plan --gpus 1..2 --memory 300MiB --json >range.json
echo "exit $?, $(grep -c '"why_not": "no plan fits: ' range.json) reasons"
remedy

echo "# an interrupt ends it after the number in hand"
"$ns" plan --details "$tables" --gpus 4..6 --effort 1000000000000 \
    >range 2>messages &
wait_until has_worked $!
kill -INT $!
wait $!
awk '{print $1, $2, $3}' range | sed -n 1,2p
grep interrupted messages

echo "# the end of the time, which is that of all numbers"
plan --gpus 1..65536 --memory 3GiB --time-limit 0.000001 | sed -n '/time/p'
plan --gpus 1..65536 --memory 3GiB --time-limit 0.000001 --json |
    sed -n '/unplanned/,/]/p' | tr -d ' \n'
echo
plan --gpus 1..65536 --time-limit 0.000001 --memory 300MiB >none
echo "exit $?, $(grep -c '^ *[0-9]' none) planned for"
sed 's/.*; then/then/' messages
plan --gpus 1..5 --memory 3GiB --time-limit 600 >all
echo "exit $?, $(grep -c '^ *[0-9]' all) planned for"

echo "# time begins with the command: a list that comes late leaves none"
mkfifo late.csv
{
    sleep 1.1
    cat "$tables"
} >late.csv &
"$ns" plan --details late.csv --gpus 4 --batch 4096 --memory 3GiB --reserve 0 \
    --effort 1000 --time-limit 1 -o late.json >report 2>messages
grep -o '"stopped": "[a-z]*"' late.json

echo "# the same warning once"
plan --gpus 1..3 --memory 3GiB --gpu a100 >all
grep -c 'no model' messages

echo "# from a plan"
plan --gpus 3..4 --from 3.json --move-limit 1GiB --json | grep '"fits"'
plan --gpus 3 --from 3.json --move-limit 0 -o kept.json >report
sed -n '/^moves/s/[0-9.]* GiB stay/all stays/p' report

echo "# bandwidth across hosts, by the slower of the two levels"
hosts="--gpus 4 --gpus-per-host 2 --shard table"
for gbps in 12 45 48 96; do
    # shellcheck disable=SC2086 # options are several words
    plan $hosts --inter-gbps $gbps -o inter$gbps.json >report
done
# shellcheck disable=SC2086
plan $hosts -o own.json >own
grep 'communication:' report own | sed 's/.*communication/communication/'
says "45 GB/s are less than the GPU has at two hosts" \
    less "$(total own.json)" "$(total inter45.json)"
says "48 GB/s are more" less "$(total inter48.json)" "$(total own.json)"
says "12 GB/s are slower" less "$(total own.json)" "$(total inter12.json)"
says "96 GB/s are faster" less "$(total inter96.json)" "$(total own.json)"
grep -o '"inter_gbps": [0-9.]*' inter96.json
"$ns" cost --details inter96.json -o again.json >report
says "cost prices it alike" cmp -s inter96.json again.json
"$ns" cost --details own.json --inter-gbps 96 -o own96.json >report
says "and another plan by the same network" \
    less "$(total own96.json)" "$(total own.json)"
says "inputs differ" test "$(grep inputs_hash own.json)" != \
    "$(grep inputs_hash own96.json)"
for options in "--inter-gbps 26.843545600" ""; do
    # shellcheck disable=SC2086
    plan --gpus 4 --gpus-per-host 2 --cost torchrec $options |
        grep 'communication:'
done
plan --gpus 4 --gpus-per-host 2 --cost torchrec:inter=30 --inter-gbps 20 |
    grep 'communication:'

echo "# a file of GPUs that are alike is as good as options"
echo '{"hosts": [{"count": 2, "gpus": 2, "memory": "2GiB"}]}' >alike.json
plan --cluster alike.json -o file.json >report
plan --gpus 4 --gpus-per-host 2 --memory 2GiB -o options.json >report
says "the same plan" cmp -s file.json options.json

echo "# GPUs that differ, one of them used"
cat >differ.json <<EOF
{"gpu": "a100", "intra_gbps": 100,
 "hosts": [{"gpus": 3, "memory": ["2GiB", "1200MiB", "500MiB"],
            "used": ["100MiB", 0, "300MiB"]}]}
EOF
plan --cluster differ.json --reserve 1% -o differ-plan.json >report
echo "exit $?"
grep -A 1 '^memory' report
sed -n 's/.*\("memory_bytes.*\)},$/\1/p' differ-plan.json | head -n 1
grep -o '"name": "roofline:[a-z0-9]*"' differ-plan.json
grep -oE '"total": [0-9]*' differ-plan.json | tr -dc '0-9\n' |
    paste -d ' ' - - - | awk '{
        print $1 <= 2147483648, $2 <= 1258291200, $3 <= 524288000}'
"$ns" explain differ-plan.json --json | sed '/"pieces"/,$d' |
    grep -o '"memory_bytes": [0-9]*'
plan --cluster differ.json --from differ-plan.json --move-limit 0 \
    -o kept.json >report
says "replanned without a move" grep -q '^moves   0 B' report
"$ns" compare "$tables" --cluster differ.json --batch 4096 --effort 1000 \
    2>messages | awk '$1 == "neuroshard" {n += NF} END {print "compared:", n, "columns"}'
sed -i 's/2GiB/600MiB/; s/1200MiB/300MiB/' differ.json
plan --cluster differ.json >report
echo "exit $?"
remedy

echo "# what stays free"

# reserved [OPTIONS]: prints the reserved bytes of each GPU
reserved()
{
    echo "$*: $(default_plan "$@" --json |
        sed -n 's/.*"reserve_bytes": \(\[[^]]*\]\).*/\1/p')"
}
reserved --gpus 2
reserved --gpus 2 --memory 2000MiB
reserved --gpus 2 --memory-model weights
reserved --gpus 2 --memory-model weights --reserve 1%
reserved --gpus 2 --reserve 4GiB
hosts='"hosts": [{"gpus": 2, "memory": ["2GiB", "4GiB"], "used": [0, "1MiB"]}]'
echo "{$hosts}" >silent.json
echo "{\"reserve\": \"10%\", $hosts}" >says.json
reserved --cluster silent.json
reserved --cluster silent.json --reserve 1MiB
reserved --cluster silent.json --memory-model weights
reserved --cluster says.json
reserved --cluster says.json --memory-model weights
default_plan --gpus 4 --memory 2GiB -o free.json | grep ' reserved$'
"$ns" cost --details free.json 2>messages | grep ' reserved$'
"$ns" compare "$tables" --gpus 2 --memory 1200MiB --batch 4096 --effort 1000 \
    2>messages | grep -c 'no plan' >missed
default_plan --gpus 2 --memory 1200MiB >report
echo "exit $?, and as often so in compare: $(cat missed)"

# The memory that a message asks for is enough, also if a share is reserved.
for reserve in 15% 40%; do
    default_plan --gpus 2 --memory 1200MiB --reserve $reserve >report
    size=$(sed -n 's/.* with \([0-9.]* [MG]iB\) per GPU.*/\1/p' messages)
    default_plan --gpus 2 --memory "$size" --reserve $reserve >report
    echo "what a message asks for: exit $?"
done

echo "# hosts that nobody names"

# hosts OPTIONS: prints the hosts in the first line of the report
hosts()
{
    echo "$*: $(plan --search grid "$@" |
        sed -n 's/.* on \(.*\), global batch.*/\1/p')"
}
for n in 8 9 12 16 20 96; do
    hosts --gpus $n
done
hosts --gpus 16 --gpus-per-host 8
hosts --gpus 16 --gpus-per-host 16
hosts --gpus 16 --gpu cpu
plan --gpus 10..13 --search grid | sed -n '/^ *[1h]/p' |
    sed -E 's/^ *([0-9]+) +([0-9x]+) .*/\1 GPUs are \2/'
plan --gpus 16 --search grid --gpus-per-host 4 -o four.json >report
for n in 16 24 13; do
    echo "$n from 4 x 4:$(plan --gpus $n --from four.json |
        sed -n 's/.* on .* GPUs,\(.*\), global batch.*/\1/p')"
done
cat messages
"$ns" cost --details four.json 2>messages | sed -n 's/.* on \(.*\), global.*/\1/p'
plan --gpus 8 --memory 240MiB >report
echo "exit $?"
n=$(sed -n 's/.* or \([0-9]*\) such GPUs.*/\1/p' messages)
plan --gpus "$n" --memory 240MiB --effort 1 >report
echo "with as many as that says: exit $?"
for hosts in "--gpus-per-host 3" "--gpus-per-host 3 --hosts-per-domain 3"; do
    # shellcheck disable=SC2086
    plan --gpus 3 $hosts --memory 240MiB >report
    n=$(sed -n 's/.* or \([0-9]*\) such GPUs.*/\1/p' messages)
    # shellcheck disable=SC2086
    plan --gpus "$n" $hosts --memory 240MiB --effort 1 >report
    echo "$hosts: $n, exit $?"
done

echo "# NVLink domains"
for per_domain in 1 2 4; do
    plan --gpus 16 --gpus-per-host 4 --hosts-per-domain $per_domain \
        --inter-gbps 40 --search grid -o domains$per_domain.json >report
    sed -n 's/.* on \(.*\), global batch.*/\1/p' report
    plan --gpus 16 --gpus-per-host $((4 * per_domain)) --inter-gbps 40 \
        --search grid -o hosts$per_domain.json >report
    says "it costs what hosts of as many GPUs do" test \
        "$(total domains$per_domain.json)" = "$(total hosts$per_domain.json)"
    for file in domains$per_domain.json hosts$per_domain.json; do
        "$ns" emit "$file" --format torchrec | grep -o 'rank:7/cuda:.' | head -n 1
    done
done
says "domains of one host are none" cmp -s domains1.json hosts1.json
says "inputs differ" test "$(grep inputs_hash domains2.json)" != \
    "$(grep inputs_hash hosts2.json)"
grep -o '"gpus_per_host": 4, "pod_size": [0-9]*' domains2.json
"$ns" cost --details domains2.json -o again.json >report 2>messages
says "cost keeps them" cmp -s domains2.json again.json
echo '{"pod_size": 2, "hosts": [{"count": 4, "gpus": 4}]}' >pods.json
plan --cluster pods.json --inter-gbps 40 --search grid -o pods-plan.json >report
says "and a file says the same" cmp -s domains2.json pods-plan.json
for n in 8 12; do
    hosts --gpus $n --from domains2.json --search full
done
"$ns" compare "$tables" --gpus 12 --batch 4096 --effort 1000 2>messages |
    grep -o '^26 tables on .*, batch'
plan --gpus 2..40 --gpus-per-host 4 --hosts-per-domain 4 --search grid |
    awk '$3 == "yes" {printf "%s as %s; ", $1, $2}'
echo
for kinds in column,row row,grid; do
    "$ns" plan --details "$ROOT/data/tables/mlperf_dlrm_dcnv2_multihot.csv" --gpus 16 \
        --gpus-per-host 1 --hosts-per-domain 2 --shard $kinds --effort 2000 \
        -o grids.json >report 2>messages
    grep -q '"kind": "grid"' grids.json
    echo "grids over domains, of $kinds: $((1 - $?))"
done
# Allowing columns and rows also allows grids.
for kinds in column,row column,row,grid row; do
    "$ns" plan --details "$ROOT/data/tables/mlperf_dlrm_dcnv2_multihot.csv" --gpus 16 \
        --gpus-per-host 4 --shard $kinds --effort 2000 --simplest-within 0% -o grids.json \
        >report 2>messages
    echo "grids of $kinds: $(grep -c '"kind": "grid"' grids.json)"
done

echo "== GPUs that would do have the batch of a GPU each"
printf 'name,rows,dim,pooling_factor,sharding\na,20000000,64,1,row\n' >rows.csv
set -- --batch-per-gpu 65536 --memory 1GiB --reserve 0 --effort 100 --no-rivals
"$NEUROSHARD" plan --details rows.csv --gpus 2 "$@" 2>&1 | grep -o 'or [0-9]* such'
"$NEUROSHARD" plan --details rows.csv --gpus 6 "$@" 2>&1 | grep -o 'no plan fits\|^step'
"$NEUROSHARD" plan --details rows.csv --gpus 7 "$@" 2>&1 | grep -o 'no plan fits\|^step'
