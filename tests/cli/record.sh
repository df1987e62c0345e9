#!/bin/sh
# SPDX-License-Identifier: MIT
# What other programs measured: into the database once, each bad file told in
# one sentence with its line, and nothing stored of it.
command -v sqlite3 >/dev/null || { echo "no sqlite3 tool" >&2; exit 77; }

ns=$NEUROSHARD
corpus=$ROOT/tests/fuzz/corpus

# try COMMAND...: its exit status and what it says
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
