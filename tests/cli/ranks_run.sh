#!/bin/sh
# SPDX-License-Identifier: MIT
# A plan run by one process per rank gives the same bits as in a single
# process. The plans are one of a real list and one made by hand with row
# pieces, columns, replicas, uneven ranks and an empty rank. Processes started
# by the program print the same as those started by mpirun, if it is available,
# except times.
set -eu
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD
many=$(launcher)
keep_mpi_quiet

# piece TABLE ROWS COLUMNS GPU KIND, ranges as "begin:end": prints a shard
piece()
{
    printf '%s{"table": %s, "row_begin": %s, "row_end": %s, "col_begin": %s,' \
        "$comma" "$1" "${2%:*}" "${2#*:}" "${3%:*}"
    printf ' "col_end": %s, "device": %s, "kind": "%s"}\n' "${3#*:}" "$4" "$5"
    comma=,
}

# table NAME ROWS DIM POOLING [MORE]: prints a table
table()
{
    printf '%s{"name": "%s", "num_embeddings": %s, "dim": %s,' \
        "$comma" "$1" "$2" "$3"
    printf ' "pooling_factor": %s, "zipf_alpha": 1.05%s}\n' "$4" "${5-}"
    comma=,
}

# Makes two plans for four GPUs. The last GPU holds only its replicas. In the
# second plan the third GPU is empty.
make_plan()
{
    gib=1073741824
    echo '{"neuroshard_plan": 1, "version": "hand", "seed": 0, "batch": 203,'
    echo '"cluster": {"gpus": 4, "gpus_per_host": 4,'
    echo "\"memory_bytes\": [$gib, $gib, $gib, $gib]}, \"tables\": ["
    comma=
    table columns 3000 32 4
    table rows 5000 16 3.5
    table twice 900 12 6 ', "num_outputs": 2'
    table half 2000 24 5 ', "comm_precision": "fp16"'
    [ "$1" = sparse ] || table copies 700 8 2
    echo '], "shards": ['
    comma=
    piece 0 0:3000 0:20 0 column
    piece 0 0:3000 20:32 1 column
    piece 1 0:1000 0:16 0 row
    piece 1 1000:5000 0:16 1 row
    piece 2 0:900 0:12 0 table
    piece 3 0:2000 0:24 3 table
    if [ "$1" != sparse ]; then
        for gpu in 0 1 2 3; do
            piece 4 0:700 0:8 $gpu replicate
        done
    fi
    echo ']}'
}

hashes()
{
    grep -oE '"(output|weight)_hash": "[0-9a-f]+"|"passed": [a-z]+' "$1"
}

# untimed FILE: prints it without times and without the exchange's transport.
untimed()
{
    sed -E -e '/"(median|p10|p90|total|(b|f)wd_comm)_ms"/s/: .*/:/' \
        -e '/"(input|forward|output|gradient|backward|replicas)":/s/: .*/:/' \
        -e '/"(slowest|slowest_error_frac|gain_frac|disturbed)"/s/: .*/:/' \
        -e 's/"(shm|mpi)"/KIND/' -e 's/over (shared memory|MPI)/over KIND/' "$1"
}

# compare NAME PROCESSES PLAN [OPTIONS]: compares one process with several
compare()
{
    name=$1
    n=$2
    shift 2
    "$ns" run "$@" --iterations 12 --threads 1 --json >alone.json
    "$ns" run "$@" --iterations 12 --threads 1 --json --ranks "$n" \
        --db costs.db >together.json 2>err || {
        cat err
        exit 1
    }
    hashes alone.json >alone
    hashes together.json >together
    if [ "$(grep -c _hash alone)" = 2 ] && cmp alone together; then
        echo "$name: $n processes have the bits of one"
    fi
    grep -oE '"processes": [0-9]+|"kind": "[a-z]+"' together.json
    [ "$many" ] || return 0
    $many -n "$n" "$ns" run "$@" --iterations 12 --threads 1 --json \
        --db mpi.db >mpi.json 2>err || {
        many=
        grep -q 'has no MPI support' err && return 0
        cat err
        exit 1
    }
    untimed together.json >said
    untimed mpi.json | diff - said
    grep -q '"kind": "mpi"' mpi.json || echo "without MPI"
}

make_plan all >all.json
compare "every kind of piece" 4 all.json
make_plan sparse >sparse.json
compare "a GPU without a piece" 4 sparse.json
cp together.json whole.json
compare "in three chunks" 4 sparse.json --chunks 3
hashes whole.json | cmp - together && echo "as in one part"
grep -oE '"(gain_frac|predicted_gain_frac)"' together.json
"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 2 --batch 300 \
    --cost roofline:h100 --effort 20000 \
    -o kaggle.json >/dev/null 2>&1
compare "Criteo Kaggle" 2 kaggle.json --scale-rows 0.001 --pipeline none \
    --dense-ms 1000,2000
# Both ranks have phases, predicted for that job and measured.
grep -c '"phases_ms"' together.json
grep -oE '"total_ms": [0-9]' together.json | sort | uniq -c
# Two threads on the only allowed processor, whatever the machine has.
if command -v taskset >/dev/null; then
    one=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
    taskset -c "$one" "$ns" run kaggle.json --scale-rows 0.001 --no-check \
        --iterations 12 --threads 1 --ranks 2 --json |
        grep -o '"oversubscribed".*'
else
    echo '"oversubscribed": true'
fi
"$ns" plan "$ROOT/data/tables/mlperf_dlrm_v1_onehot.csv" --gpus 4 \
    --cost roofline:h100 --effort 20000 \
    --batch 1024 -o mlperf.json >/dev/null 2>&1
compare "MLPerf DLRM v1" 4 mlperf.json --scale-rows 0.0005

if command -v sqlite3 >/dev/null; then
    [ "$(sqlite3 costs.db "SELECT count(*) FROM sample
        WHERE kind = 'executed'")" = 13 ] && echo "a sample of each rank"
    [ "$(sqlite3 costs.db "SELECT count(*) FROM comm_sample
        WHERE kind = 'shm' AND n_hosts = 1")" -ge 2 ] &&
        echo "and of the exchanges"
    [ ! "$many" ] || for rows in sample comm_sample; do
        for db in mpi costs; do
            sqlite3 "$db.db" "SELECT count(*) FROM $rows"
        done | uniq | tail -n +2
    done
else
    printf 'a sample of each rank\nand of the exchanges\n'
fi

# refused PROCESSES PLAN...: the run fails, and with mpirun in the same way
refused()
{
    status=0
    "$ns" run "$2" --ranks "$1" >out 2>err || status=$?
    echo "status $status"
    cat out err
    [ "$many" ] || return 0
    status=0
    $many -n "$1" "$ns" run "$2" >out 2>mpi || status=$?
    [ $status != 0 ] && [ ! -s out ] || echo "not by MPI"
    grep -q -F -x "$(cat err)" mpi || cat mpi
}

# The number of processes must be the number of ranks, or one.
refused 3 all.json
refused 4 nowhere.json
"$ns" run all.json --ranks 3 --json 2>/dev/null || echo "status $?"
