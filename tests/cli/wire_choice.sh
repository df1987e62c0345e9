#!/bin/sh
# SPDX-License-Identifier: MIT
# Plans for a wire of unknown bandwidth: which plans have its regrets, their
# definition, and the lines that name them.
set -u
export COLUMNS=80

ns=$NEUROSHARD
cat >list.csv <<END
name,num_embeddings,dim,pooling_factor
a,4000000,128,1
b,3000000,64,20
c,2000000,128,2
d,500000,32,40
e,100000,128,5
f,50000,64,1
g,20000,256,1
h,10000,128,1
i,1000,256,1
j,500,128,1
END

# plan FILE OPTION...: makes a plan with a short search
plan()
{
    file=$1
    shift
    "$ns" plan list.csv --effort 20000 --no-rivals -o "$file" "$@" >screen \
        2>messages || cat messages
}

# regrets FILE: whether a plan has regrets, and the wire that they are of
regrets()
{
    awk '/"is_inter"/ { print /true/ ? "inter" : "intra"; found = 1 }
        END { if (!found) print "none" }' "$1"
}

# has OPTION...: plans and prints whether the plan has regrets
has()
{
    plan own.json "$@"
    echo "$*: $(regrets own.json)"
}

# total FILE: prints the GPU work of a plan
total()
{
    sed -n 's/^  "total_ms": \([^,]*\).*/\1/p' "$1"
}

# regret FILE N: prints the Nth regret of a plan
regret()
{
    tr -d ' \n' <"$1" | sed 's/.*"regrets":\[\([^]]*\).*/\1/' | cut -d , -f "$2"
}

echo "# assumed bandwidths"
has --gpus 4
has --gpus 4 --gpus-per-host 2
has --gpus 4 --gpus-per-host 2 --intra-gbps 100
has --gpus 4 --wire robust
echo "# known ones, no exchange, other searches"
has --gpus 4 --wire nominal
has --gpus 4 --simplest-within 5%
has --gpus 4 --intra-gbps 100
has --gpus 4 --gpus-per-host 2 --inter-gbps 50
has --gpus 1
has --gpus 4 --cost torchrec
plan old.json --gpus 4
has --gpus 4 --from old.json
"$ns" plan list.csv --gpus 4 --search grid -o own.json >screen 2>messages
echo "grid: $(regrets own.json)"

echo "# the limit, and the definition"
plan nominal.json --gpus 8 --gpus-per-host 4 --wire nominal
plan limited.json --gpus 8 --gpus-per-host 4
plan robust.json --gpus 8 --gpus-per-host 4 --wire robust
awk "BEGIN { exit !($(total limited.json) <= 1.01 * $(total nominal.json)) }" &&
    echo "at most 1 % dearer"
grep -c '"break_even_gbps"' limited.json
# total of the best plan known at a half and a quarter
gbps=$(sed -n 's/.*"assumed_gbps": \([^,]*\).*/\1/p' limited.json)
for n in 2 3; do
    for name in limited robust; do
        "$ns" cost $name.json -o slow.json --inter-gbps \
            "$(awk "BEGIN { printf \"%.17g\", $gbps / 2 ^ ($n - 1) }")" \
            >screen 2>messages
        echo "$name $n: $(regrets slow.json), $(awk "BEGIN {
            printf \"%.2f\", 10 * $(total slow.json) / (1 + $(regret $name.json $n)) }")"
    done
done

echo "# lines"
plan limited.json --gpus 8 --gpus-per-host 4
grep -E "wire|NVLink" screen
plan limited.json --gpus 4
grep -E "wire|NVLink" screen
"$ns" explain limited.json 2>messages | grep -A1 NVLink
"$ns" cost limited.json 2>messages | grep NVLink
"$ns" cost limited.json --batch 4096 2>messages | grep NVLink
"$ns" plan list.csv --gpus 4 --wire best
echo "exit $?"
