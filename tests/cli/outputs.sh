#!/bin/sh
# SPDX-License-Identifier: MIT
# An output file that is one of the inputs, under whatever name, or that would
# replace a database: status 2, and every file is unchanged. A line of output
# is "status: message".

tables=$ROOT/data/tables/criteo_kaggle_26.csv
sum()
{
    find . -type f ! -name 'std*' ! -name sums -exec cksum {} + | sort
    find . -type l | sort
}

# refused COMMAND...: runs it with the table list on standard input
refused()
{
    sum >sums
    "$NEUROSHARD" "$@" >stdout 2>stderr <list.csv
    status=$?
    [ $status = 2 ] || echo "# $*"
    echo "$status: $(sed -n '/: warning: /d; s/^neuroshard: //p' stderr)"
    sum | cmp -s - sums || echo "# CHANGED by $*"
    [ ! -s stdout ] || echo "# printed"
}

printf 'name,rows,dim,hotness\na,10,8,1\nb,20,8,1\n' >list.csv
cp "$ROOT/data/models/cpu-amd-epyc-2t.nsm" model.nsm
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" costs.db
"$NEUROSHARD" plan --details list.csv --gpus 2 --search reference --batch 4096 \
    --cost model:./model.nsm -o plan.json >/dev/null 2>&1 || echo "# no plan"
printf '{"hosts": [{"gpus": 2}]}' >cluster.json
mkdir nets folder
echo '{}' >nets/net_compute.json
ln list.csv hard.csv
ln -s list.csv soft.csv
ln -s ../costs.db folder/soft.db
ln -s loop loop
ln -s pool loop2
ln -s loop2 pool

echo "== the list of tables"
refused plan list.csv --gpus 2 -o list.csv
refused plan list.csv --gpus 2 -o ./folder/../list.csv
refused plan list.csv --gpus 2 -o hard.csv
refused plan soft.csv --gpus 2 -o list.csv
refused plan list.csv --gpus 2 -o soft.csv
refused plan - --gpus 2 -o list.csv
refused plan list.csv --gpus 1..2 -o list.csv
refused plan "$tables" --cluster cluster.json -o cluster.json
echo "== plans"
refused plan list.csv --gpus 2 --from plan.json -o plan.json
refused cost plan.json -o plan.json
refused emit plan.json --format torchrec -o plan.json
refused run plan.json --db plan.json
echo "== models, also inside of plans"
refused plan list.csv --gpus 2 --cost model:./model.nsm -o model.nsm
refused cost plan.json -o model.nsm
refused plan list.csv --gpus 2 --cost reference:nets -o nets/net_compute.json
refused model import nets -o nets/net_compute.json
refused eval --db costs.db --model costs.db
echo "== databases"
refused train --db costs.db -o costs.db
refused train --db costs.db -o folder/soft.db
refused bench --db costs.db --samples 0 --csv costs.db
refused bench --db new.db --samples 1 --csv ./new.db
refused plan list.csv --gpus 2 -o costs.db
refused plan list.csv --gpus 2 -o folder/soft.db
refused emit plan.json --format text -o costs.db
refused retrain --db costs.db --model costs.db
echo "== loops of symbolic links"
refused plan list.csv --gpus 2 -o loop
refused emit plan.json --format text -o loop2
echo "== what is no input is written"
"$NEUROSHARD" emit plan.json --format text -o folder/plan.json && sum | grep -c 'r/plan'
"$NEUROSHARD" emit plan.json --format text -o hard.csv && cat list.csv
"$NEUROSHARD" plan - --details --gpus 2 -o /dev/null <list.csv 2>&1 | grep -c '^plan '
"$NEUROSHARD" emit - --format text <plan.json | grep -c .
cp list.csv same.csv
"$NEUROSHARD" tables import - <same.csv 2>/dev/null
"$NEUROSHARD" plan - --details --gpus 2 --effort 0 -o - <list.csv 2>&1 |
    grep -c '"neuroshard_plan"'
echo "== where nothing can be written is said before anything is searched"
for file in none/plan.json folder list.csv/plan.json; do
    "$NEUROSHARD" plan --details list.csv --gpus 2 -o $file >stdout 2>stderr
    echo "$?: $(cat stderr stdout)"
done
