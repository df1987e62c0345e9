#!/bin/sh
# SPDX-License-Identifier: MIT
# A call fails while a plan is written. The status is 1 with one sentence; the
# old plan is unchanged, and no other file is left.

if [ -z "$FAULT_SO" ]; then
    echo "the program is built with sanitizers" >&2
    exit 77
fi
cat >list.csv <<END
name,num_embeddings,dim,pooling_factor
a,1000,16,2
b,2000,32,1
END

# plan FAULT ARGUMENT...: one run; prints its status, its last line, and the
# files that are left.
plan()
{
    fault=$1
    shift
    echo "old plan" >plan.json
    status=0
    FAULT=$fault LD_PRELOAD=$FAULT_SO "$NEUROSHARD" plan list.csv \
        --gpus 2 --effort 100 "$@" >stdout 2>stderr || status=$?
    case $(cat plan.json) in
    "old plan") kept="old plan kept" ;;
    "{"*"}") kept="new plan written" ;;
    *) kept="PLAN BROKEN" ;;
    esac
    rm -f stdout plan.json
    echo "$fault: status $status, $kept; $(tail -n 1 stderr)"
    rm -f stderr
    for left in * .[!.]*; do
        [ ! -e "$left" ] || [ "$left" = list.csv ] || echo "left: $left"
    done
}

echo "== a plan in a file"
plan write:1 -o plan.json
plan fsync:1 -o plan.json
plan pread:1 -o plan.json
plan rename:1 -o plan.json
echo "== a plan on standard output"
plan fflush:1
plan fclose:1
echo "== no memory"
for call in aligned_alloc:1 aligned_alloc:2 realloc:1; do
    plan $call -o plan.json | sed 's/([0-9 x]* bytes)/(... bytes)/'
done
