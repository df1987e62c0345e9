#!/bin/sh
# SPDX-License-Identifier: MIT
# No line of a report or a message is wider than the terminal. The shipped
# lists are tested with 80, 100 and 132 columns, and every command with 80 (in
# the full size with all three). Plans of the longest lists cost seconds with a
# learned model, so they have one only in the full size.
set -u
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
lists=$ROOT/data/tables
db=few.db
few_samples $db 200
model=$ROOT/data/models/cpu-amd-epyc-2t.nsm

size=
[ "${TEST_SIZE-}" != full ] || size=full
n_lines=0
# fits COMMAND...: checks the width of its output, and that it succeeds or, if
# $fails is set, fails
fits()
{
    "$ns" "$@" >said 2>&1 </dev/null
    status=$?
    [ $status = 0 ] || [ "${fails-}" ] || echo "failed: $*: $(cat said)"
    [ $status != 0 ] || [ -z "${fails-}" ] || echo "not refused: $*"
    awk -v most="$COLUMNS" -v what="$*" '
        length > most {print "wider than " most ": " what ": " $0}' said |
        sed "s|$ROOT/||g"
    n_lines=$((n_lines + $(wc -l <said)))
}

while read -r list gpus; do
    for COLUMNS in 80 100 132; do
        export COLUMNS
        if [ $COLUMNS = 80 ]; then
            set --
            case $list$size in
            *full) ;;
            meta_torchrec_1935 | hugectr_200table_* | nvidia_synthetic_[ml]*)
                set -- --cost torchrec
                ;;
            esac
            fits plan "$lists/$list.csv" --gpus "$gpus" --effort 1 "$@" \
                -o plan.json
        else
            fits cost plan.json
        fi
    done
    export COLUMNS=80
    fits explain plan.json
    fits tables "$lists/$list.csv"
done <<EOF
criteo_1tb_torchrec_26 8
criteo_kaggle_26 4
deeprecsys_dlrm_rm1 2
deeprecsys_dlrm_rm2 4
deeprecsys_dlrm_rm3 2
hugectr_200table_100B_hotness20 32
hugectr_7table_470B_hotness20 64
meta_tbe_eeg_example_5 2
meta_torchrec_1935 96
mlperf_dlrm_dcnv2_multihot 8
mlperf_dlrm_v1_onehot 8
nvidia_synthetic_large_v3 64
nvidia_synthetic_medium_v3 16
nvidia_synthetic_small_v3 8
nvidia_synthetic_tiny_v3 4
EOF
echo "the lists that ship: $(find "$lists" -name '*.csv' | wc -l)"

dcn=$lists/mlperf_dlrm_dcnv2_multihot.csv
small=$lists/criteo_kaggle_26.csv
"$ns" plan "$small" --gpus 4 --batch 256 --effort 1 -o old.json >/dev/null 2>&1
"$ns" plan "$small" --gpus 4 --batch 256 --effort 9000 --no-rivals --seed 3 -o new.json \
    >/dev/null 2>&1
cp "$db" ceilings.db
"$ns" db export "$db" -o costs.csv
"$ns" help | sed -n '/^commands:/,/^$/s/^  \([a-z ]*[a-z]\)  .*/\1/p' >commands
long=a_database_of_a_name_that_is_longer_than_any_line_has_room_for_if_it_has_eighty
cp "$db" $long.db
perl -e 'my $head = "{\x27descr\x27: \x27<i8\x27, \x27fortran_order\x27: " .
        "False, \x27shape\x27: (10000,), }\n";
    print "\x93NUMPY\1\0", pack("v", length $head), $head,
        pack("q<*", map { $_ * 7919 % 5003 } 1 .. 10000)' >$long.npy
echo step,rank,phase,ms >times.csv
for step in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
    for rank in 0 1 2 3; do
        echo "$step,$rank,forward,0.5"
        echo "$step,$rank,backward,0.75"
    done
done >>times.csv
set -- --device 'cuda:NVIDIA H200' --isa sm_90
widths=80
[ -z $size ] || widths="80 100 132"
for COLUMNS in $widths; do
    export COLUMNS
    fits compare "$dcn" --gpus 8 --effort 1
    fits compare "$dcn" "$small" --gpus 2 --effort 1 --memory 60GiB
    fits compare "$dcn" --gpus 8 --effort 1 --cost torchrec
    fits plan "$small" --gpus 1..4 --effort 1 --memory 1GiB
    fits plan "$small" --gpus 4 --from old.json --effort 1 --batch 256
    fits explain new.json C3
    fits diff old.json new.json
    fits run new.json --device cpu --iterations 12 --scale-rows 0.01
    for file in "$ROOT"/data/models/*.nsm; do
        fits model info "$file"
    done
    fits eval --drift --learning-curve 1 --db "$db" --model "$model"
    fits db info "$db"
    fits bench --device cpu --ceilings --memory 16MiB \
        --db ceilings.db
    fits bench --device cpu --samples 2 --batch 64 --memory 16MiB --db $long.db
    fits bench --device cpu --alltoall 2 --batch 64 --samples 2 \
        --memory 16MiB --db $long.db
    fits bench --device cpu --samples 0 --db $long.db --csv cases.csv
    fits train --db "$db" -o $long.nsm --kind roofline
    fits train --db "$db" -o net.nsm --kind net --epochs 2 --force
    fits retrain --db $long.db --model net.nsm --kind roofline
    fits retrain --db $long.db --model net.nsm --kind net --epochs 1
    fits record new.json --times times.csv --db $long.db "$@"
    fits record --nccl-tests "$ROOT/tests/fuzz/corpus/nccl_tests/h100_8.txt" \
        --db $long.db "$@"
    for format in torchrec dlrm text; do
        fits emit new.json --format $format -o $long.$format
    done
    fits report old.json new.json -o $long.html
    fits tables profile $long.npy --batch 1000 --hottest 3
    fits tables import "$dcn" -o $long.csv
    fits db info $long.db
    fits db check $long.db
    fits db merge $long.db ceilings.db -o "merged$COLUMNS.db"
    fits db export $long.db -o $long.text
    fits db import costs.csv --db "merged$COLUMNS.db"
    fits --help
    while read -r command; do
        # shellcheck disable=SC2086 # "tables import" is two words
        fits help $command
    done <commands
    # Commands that are refused.
    fails=1
    fits plan "$dcn" --gpus 2..3 --effort 1 --memory 10GiB
    fits plan "$dcn" --gpus 2 --memory 10GiB
    fits plan "$dcn" --gpus 8 --memory 13GiB --shard table
    fits plan "$small" --gpus 13
    fits plan "$small" --gpus 4 --cost "model:/a/path/that/is/longer/than/one/line/of/a/terminal/has/room/for/if/it/has/eighty/columns.nsm"
    fits plan "$small" --gpus 4 --gpu b2oo
    fits explain new.json no-such-table
    fits train --db "$db"
    fits train --db "$db" -o $long.nsm --since 2030-01-01
    fits eval --db "$db" --model $long.html
    fits db check $long.html
    fits db import $long.npy --db "merged$COLUMNS.db"
    fits record new.json --times $long.npy --db $long.db
    fits report $long.npy -o report.html
    fits tables profile $long.npy --batch 1000000 --dim 4 -o "$db"
    fits bench --device cpu --mixed --alltoall 2 --db $long.db
    fits compare "$dcn" --gpus 8 --plan old.json --tasks 3
    fits report $long.nothing -o report.html
    fails=
done
[ $n_lines -gt 1000 ] && echo "more than 1000 lines"
