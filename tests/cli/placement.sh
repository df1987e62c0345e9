#!/bin/sh
# SPDX-License-Identifier: MIT
# Where the tables are: plan --tables and explain --device, on a plan with cuts
# that change training and with replicas, and on hundreds of tables.
set -u

ns=$NEUROSHARD
export COLUMNS=80

# say COMMAND...: prints its output, its errors and its exit code
say()
{
    echo "--- $*"
    "$ns" "$@" >printed 2>messages
    code=$?
    cat printed
    grep '^neuroshard: option' messages
    [ $code -eq 0 ] || echo "exit $code"
}

cat >list.csv <<'END'
name,num_embeddings,dim,pooling_factor,optimizer
clicks_of_the_last_seven_days_by_session,400000,64,50,rowwise_adagrad
items,3000000,64,8,sgd
users,2000000,64,1,rowwise_adagrad
country,200,16,1,rowwise_adagrad
device,50,16,1,adam
END

# planned OPTION...: plans by the formulas of an L40S and a short search
planned()
{
    say plan list.csv --gpus 2 --gpu l40s --effort 500 --no-rivals "$@"
}

# Columns of a table with row-wise Adagrad change training, those of a table
# with SGD do not.
planned --shard column --tables -o columns.json
say explain columns.json --device 1
say explain columns.json --device 2

# Replicas change training unless the dense optimizer is the table's own.
planned --shard replicate --tables
planned --shard replicate --dense-optimizer table --tables | grep -c '!$'
say plan list.csv --gpus 4 --gpus-per-host 2 --gpu l40s --effort 500 \
    --no-rivals --shard grid --tables

# With the whole report, as JSON, and for several numbers of GPUs.
planned --details --tables | sed -n '/^table /,/^items/p'
planned --shard column --json |
    grep -o '"memory_bytes": [0-9]*, "changes.*}' | sort
"$ns" explain columns.json --json --device 1 |
    grep -o '"alone_ms": [0-9.]*\|"memory_bytes": [0-9]*, "ch.*\|"changes_.*'
say plan list.csv --gpus 2,4 --tables
say plan list.csv --gpus 2 --tables=yes

# Hundreds of tables have a line each, at 80 columns.
"$ns" plan "$ROOT/data/tables/nvidia_synthetic_medium_v3.csv" --gpus 16 \
    --gpus-per-host 8 --effort 500 --no-rivals --tables 2>messages |
    sed '1,/^table /d' >many
grep -c ' whole ' many
awk 'length($0) > 80 {print "too wide: " $0}
    $4 == "whole" {if (NR > 1 && $7 > last) n++; last = $7}
    END {print n + 0 " out of order"}' many
