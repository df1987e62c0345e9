#!/bin/sh
# SPDX-License-Identifier: MIT
# bench --alltoall between processes: the samples that the first process
# stores, that it continues instead of starting again, and the errors that end
# all processes at once.

command -v mpirun >/dev/null || {
    echo "there is no mpirun" >&2
    exit 77
}
# Allow root, more processes than processors, and other tests at the same time.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
# Leaks of Open MPI are not ours to report.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

# between N OPTIONS...: runs bench --alltoall on N processes.
between()
{
    processes=$1
    shift
    mpirun -n "$processes" "$NEUROSHARD" bench --memory 16MiB --threads 1 \
        --alltoall "$@" >stdout 2>stderr </dev/null
    status=$?
    sed -e 's/^device .*/device/' -e 's/^time .*/time/' \
        -e '/^held-out\|held_out/,$d' -e 's/  */ /g' stdout
    sed -n 's/^neuroshard: /error: /p' stderr | sort -u
    [ "$status" -eq 0 ] || echo "status $status"
}

between 2 3 --db costs.db >refusal
grep -q 'no MPI' refusal && {
    echo "this build has no MPI" >&2
    exit 77
}
echo "== two processes for three ranks"
cat refusal
echo "== six patterns"
between 2 2 --db costs.db --samples 6 --verbose
echo "== again: nothing is left to do"
between 2 2 --db costs.db --samples 6
echo "== four ranks are another matter"
between 4 4 --db costs.db --samples 2 --verbose
echo "== one process is all ranks"
between 1 2 --db costs.db --samples 2 --verbose
echo "== as JSON"
between 2 2 --db costs.db --samples 6 --json |
    grep -e kind -e ranks -e hosts -e measured -e resumed -e stopped
echo "== the file cannot be made"
between 2 2 --db no/such/folder.db
echo "== stopped by the clock"
between 2 2 --db late.db --samples 1000000 --time-limit 0.2 |
    grep -o 'stopped: time'
echo "== stopped from outside; what is stored is sound"
mpirun -n 2 "$NEUROSHARD" bench --memory 16MiB --threads 1 --alltoall 2 \
    --db killed.db --samples 1000000 --verbose >stdout 2>stderr </dev/null &
for _ in $(seq 600); do
    [ "$(grep -c stored stdout)" -lt 3 ] || break
    sleep 0.1
done
kill -TERM $!
wait $! && echo "it should not have ended well"
sqlite3 killed.db 'PRAGMA integrity_check;
    SELECT count(*) >= 3 FROM comm_sample'
between 2 2 --db killed.db --samples 3 | grep samples
