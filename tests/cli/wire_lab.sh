#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016
# tests/wire/lab without making hosts: its arguments, and the reasons for which
# it skips. Programs that it calls are replaced by stand-ins.

lab=$ROOT/tests/wire/lab

try()
{
    echo "$ lab $*"
    said=$("$lab" "$@" 2>&1) && status=0 || status=$?
    echo "$said" | sed "s|$ROOT/||g; /^usage/q"
    echo "status $status"
}

echo "== arguments"
try
try up 2 100
try up 0 100 true
try up 2 100.5 true
try run 2
try rate fast
try gbps 100 200
try clean now
try run 1 hostname
try rate 100
try gbps 100

mkdir bin
for program in awk bash cat chmod grep mktemp rm sed seq sort xargs; do
    ln -s "$(command -v $program)" bin/
done
# stand_in NAME COMMANDS: makes a program of this name.
stand_in()
{
    printf '#!/bin/bash\n%s\n' "$2" >bin/"$1"
    chmod +x bin/"$1"
}
PATH=$PWD/bin
echo "== reasons to skip"
stand_in id 'echo 1000'
try up 2 100 touch ran
stand_in id 'echo 0'
try up 2 100 touch ran
stand_in ip '[ "$1 $2" != "netns add" ]'
stand_in tc ''
try up 2 100 touch ran
stand_in mpirun 'echo "HYDRA build details:"'
try up 2 100 touch ran
stand_in mpirun 'echo "mpirun (Open MPI) 4.1.4"'
try up 2 100 touch ran
stand_in ip '[ "$3 $4" != "link add" ]'
try up 2 100 touch ran
[ ! -e ran ] || echo "the command ran without hosts"
