#!/bin/sh
# SPDX-License-Identifier: MIT
# Complete answers of plan, cost and explain on small lists: for one number of
# GPUs and for ranges, and from an existing plan, as text and as JSON. The
# expected output has every line except wall-clock times. Review each changed
# line before you update the file.
set -u

untimed()
{
    sed -E -e 's/ in [0-9]+ ms, stopped by:/ in T ms, stopped by:/' \
        -e 's/"(version|build)": "[^"]*"/"\1": V/'
}

# say COMMAND...: prints its output, its messages and its exit code
say()
{
    echo "--- $*"
    "$NEUROSHARD" "$@" >printed 2>messages
    code=$?
    untimed <printed
    untimed <messages | sed 's/^/! /'
    [ $code -eq 0 ] || echo "exit $code"
}

# planned LIST OPTION...: plans with TorchRec's costs and a short search
planned()
{
    list=$1
    shift
    say plan "$list" --details --cost torchrec --effort 200 "$@"
}

cat >list.csv <<END
name,num_embeddings,dim,pooling_factor,group
one,40000,64,20,
two,30000,32,10,g
three,20000,32,5,g
four,1000,16,2,
END
awk -F, -v OFS=, 'NR == 3 { $4 *= 6 } { print }
    END { print "five", 5000, 64, 3, "" }' list.csv >grown.csv

# One number of GPUs.
planned list.csv --gpus 2 -o plan.json
planned list.csv --gpus 2 --no-rivals
say plan list.csv --details --gpus 4 --cost roofline:h100 --effort 200 --host-ms 0 \
    --dedup ids --dense-ms 1,2 --chunks 2
planned list.csv --gpus 2 --memory 4MiB --reserve 0
planned list.csv --gpus 2 --memory 200MiB --reserve 0 --no-rivals
planned list.csv --gpus 4 --simplest-within 50% --no-rivals
planned list.csv --gpus 2 --no-rivals --trace trace.csv
cut -d, -f1,2 trace.csv

# Ranges of GPUs.
planned list.csv --gpus 1..4 --memory 200MiB --reserve 0 -o first.json
grep -c '"gpus": 2' first.json
planned list.csv --gpus 1..3 --json
planned list.csv --gpus 8..12 --batch-per-gpu 100
planned list.csv --gpus 1..2 --memory 4MiB --reserve 0
planned list.csv --gpus 1..2 --memory 4MiB --reserve 0 --json
planned list.csv --gpus 4..8 --gpus-per-host 4

# Replacing another plan.
planned grown.csv --gpus 2 --no-rivals --from plan.json
planned grown.csv --gpus 2 --no-rivals --from plan.json --json
planned grown.csv --gpus 3 --no-rivals --from plan.json --move-limit 6MiB
planned grown.csv --gpus 3 --no-rivals --from plan.json --move-limit 0 \
    --json
planned list.csv --gpus 1 --no-rivals --from plan.json --move-limit 0

# Cost of a plan, and its explanation.
say cost plan.json --details --cost roofline:h100 --host-ms 0
say cost plan.json --details --cost torchrec --json
say explain plan.json
say explain plan.json --table three
say explain plan.json --table three --json
say explain plan.json --device 1 --json
