#!/bin/sh
# SPDX-License-Identifier: MIT
# Plans with tables in host memory: the first screen with its rivals, what
# explain, diff and compare say of tiers and caches, and refused options.
set -u
export COLUMNS=80

cat >tables.csv <<END
name,num_embeddings,dim,pooling_factor,zipf_alpha,tier
tall,20000000,64,4,1.05,
middle,8000000,64,20,0.9,
cold,4000000,128,1,1.05,
hot,200000,64,40,1.05,
kept,100000,32,1,1.05,hbm
END

# ns COMMAND LIST OPTION...: calls the program with the options of all cases
ns()
{
    command=$1
    list=$2
    shift 2
    "$NEUROSHARD" "$command" "$list" --gpus 2 --batch 4096 --reserve 0 \
        --cost roofline:h100 --effort 4000 "$@"
}

echo "== the first screen"
ns plan tables.csv --memory 3GiB --tiers host=64GiB -o plan.json \
    2>/dev/null
echo "== explain"
"$NEUROSHARD" explain plan.json --device 0 | sed -n '/^binds/,$p'
echo "== less memory"
ns plan tables.csv --memory 2GiB --tiers host=64GiB --no-rivals \
    -o less.json >/dev/null 2>&1
"$NEUROSHARD" diff plan.json less.json | sed -n '/^tables/,/^$/p'
"$NEUROSHARD" diff plan.json less.json --json | grep -o '"tier_[a-z]*": "[a-z]*"' |
    sort | uniq -c
echo "== column tier"
sed 's/^\(tall.*\),$/\1,host/; s/^\(cold.*\),$/\1,cached/' tables.csv >held.csv
ns plan held.csv --memory 3GiB --tiers host=64GiB --no-rivals \
    -o held.json >/dev/null 2>&1
ns plan held.csv --memory 3GiB --tiers host=64GiB --no-rivals --tables \
    2>/dev/null | sed -n '/^table/,$p'
ns plan held.csv --memory 3GiB 2>&1
sed 's/,hbm/,disk/' tables.csv >wrong.csv
ns plan wrong.csv --tiers host=64GiB 2>&1

echo "== host memory that is nearly and that is too small"
# bytes FILE: bytes of tables in the memory of the host
bytes()
{
    grep -o '"host": [0-9]*' "$1" |
        awk '{ all += $2 } END { printf "%.2f GiB\n", all / 2^30 }'
}
bytes plan.json
ns plan tables.csv --memory 3GiB --tiers host=4GiB --no-rivals -o near.json \
    >/dev/null 2>&1
bytes near.json
ns plan tables.csv --memory 2GiB --tiers host=1GiB 2>&1
echo "== a refusal offers tiers, unless the command line rules them out"
ns plan tables.csv --memory 2GiB 2>&1
ns plan tables.csv --memory 2GiB --target hugectr 2>&1
ns plan tables.csv --memory 2GiB --groups 2 --sync-every 100 2>&1
ns plan tables.csv --memory 2GiB --cost torchrec 2>&1
echo "== compare"
ns compare tables.csv --memory 3GiB --tiers host=64GiB 2>/dev/null |
    awk '/^planner/ { n++ } n == 1 && /^[a-z]/ { print $1, $2, $3 }'
ns compare tables.csv --memory 3GiB --tiers host=64GiB --cost torchrec \
    2>/dev/null | grep -A1 -e '^cache-rows' -e '^scale-up' -e '^neuroshard'

echo "== refused"
for tiers in '' 64GiB host host= host=0 host=-1 host=2XB auto,host=1GiB; do
    ns plan tables.csv --tiers "$tiers" 2>&1
done
sed '/"host_memory_bytes"/,+1d' "$ROOT/data/gpus/h100.json" >small.json
ns plan tables.csv --tiers auto --gpu small.json 2>&1
ns plan tables.csv --tiers host=64GiB --groups 2 2>&1
ns plan tables.csv --tiers host=64GiB --search reference 2>&1
ns plan tables.csv --tiers host=64GiB --cost torchrec 2>&1
ns plan tables.csv --tiers host=64GiB --target hugectr 2>&1
ns plan tables.csv --tiers host=64GiB --from plan.json 2>&1
ns plan tables.csv --memory 3GiB --from plan.json 2>&1
