#!/bin/sh
# SPDX-License-Identifier: MIT
# Each text of each file, path and option in turn contains sequences that no
# terminal and no script should see: a cleared screen, a forged line, a C1
# control, DEL, reversed writing direction, the end of a quote, shell words.
# The program never prints or writes this text raw. Each line of output is
# "label status: message". It has no message if the text was accepted. TEXT
# stands for the quoted text. A list of names that will grow is cut after its
# first name.

. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

# The text: raw, and in JSON and SQL.
# shellcheck disable=SC2016 # no shell is to expand it
raw=$(printf 'x\033[2J\nFORGED'\''or'\'':\302\23331m\177\342\200\256`touch PWNED`$(touch PWNED)')
# shellcheck disable=SC2016
json='x\\u001b[2J\\nFORGED'\''or'\'':\\u009b31m\\u007f\\u202e`touch PWNED`$(touch PWNED)'
sql="char(120,27,91,10) || 'FORGED''or'':' || char(155,127,8238) || '\$(touch PWNED)'"

# check FILE: reports raw text in a file: a control character other than line
# ends and tabs of a table, a change of writing direction, invalid UTF-8, or a
# forged line. In a message it also reports a quote between quotes.
check()
{
    grep -anP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]' \
        "$1" | sed "s/^/# RAW in $1: /"
    iconv -f UTF-8 -t UTF-8 "$1" >/dev/null 2>&1 || echo "# not UTF-8: $1"
    grep -n '^FORGED' "$1" | sed "s/^/# FORGED in $1: /"
    [ "$1" != stderr ] ||
        grep -n "'[^']*FORGED'" "$1" | sed "s/^/# QUOTE in $1: /"
}

# try LABEL COMMAND...: runs it; prints its status and message
try()
{
    label=$1
    shift
    rm -f out
    "$NEUROSHARD" "$@" >stdout 2>stderr </dev/null
    status=$?
    printf '%s %d%s\n' "$label" "$status" "$(sed -n "s/^neuroshard: //p" stderr |
        sed "/^warning: /d; s|$ROOT|ROOT|g; s/^/: /" |
        sed 's/x\\u001b[^)]*)/TEXT/
            s/\(; known are model:FILE\), .*/\1, .../
            s/\(figures for a GPU .*known are\) .*/\1 .../')"
    for file in stdout stderr out; do
        [ ! -s $file ] || check $file
    done
    [ ! -e PWNED ] || { echo "# PWNED by $label"; rm PWNED; }
}

cat >list.csv <<'END'
name,num_embeddings,dim,pooling_factor,sharding,device,group
a,1000,16,2,,,
b,2000,32,1,,0,g
END
"$NEUROSHARD" plan list.csv --gpus 2 --search grid --gpus-per-host 2 \
    -o plan.json >/dev/null 2>&1 || echo "# no plan"

echo "== plans"
for member in version inputs_hash source memory_model search stopped name hash \
    basis comm dense_optimizer group kind output precision optimizer; do
    sed "s/\"$member\": \"[^\"]*\"/\"$member\": \"$json\"/" plan.json >bad.json
    cmp -s bad.json plan.json && sed "s/^{/{ \"$member\": \"$json\",/" \
        plan.json >bad.json
    try "$member" cost bad.json --cost roofline:h100
    try "$member" emit bad.json --format dlrm -o out
done
sed "s/\"a\"/\"$json\"/" plan.json >bad.json
try "name of a table" emit bad.json --format torchrec
sed "s/\"seed\"/\"$json\": 1, \"seed\"/" plan.json >bad.json
try "an unknown member" cost bad.json --cost roofline:h100 --json
sed "s/\"gpus\": 2/\"gpus\": \"$json\"/" plan.json >bad.json
try "text for a number" cost bad.json

echo "== clusters"
for cluster in "{\"gpu\": \"$json\", \"hosts\": [{\"gpus\": 2}]}" \
    "{\"$json\": 1, \"hosts\": [{\"gpus\": 2}]}" \
    "{\"hosts\": [{\"gpus\": 2, \"$json\": 1}]}" \
    "{\"hosts\": [{\"gpus\": 2, \"memory\": \"$json\"}]}" \
    "{\"hosts\": [{\"gpus\": 2, \"used\": [1, \"$json\"]}]}" \
    "{\"hosts\": \"$json\"}" "{\"hosts\": $raw}"; do
    # The escapes have two backslashes; sed leaves one.
    printf '%s\n' "$cluster" | sed 's/\\\\/\\/g' >cluster.json
    try cluster plan list.csv --cluster cluster.json -o out
done

echo "== lists of tables"
for row in "\"$raw\",10,4,1,,," "a,\"$raw\",4,1,,," "a,10,\"$raw\",1,,," \
    "a,10,4,\"$raw\",,," "a,10,4,1,\"$raw\",," "a,10,4,1,,\"$raw\"," \
    "a,10,4,1,,,\"$raw\"" "a,10,4,1,,,$raw"; do
    { head -n 1 list.csv && printf '%s\n' "$row"; } >bad.csv
    try row plan bad.csv --gpus 2 --search grid -o out
done
printf 'name,rows,dim,hotness,"%s"\na,10,4,1,1\n' "$raw" >bad.csv
try "name of a column" tables bad.csv
printf '{"%s": {"num_embeddings": 10, "embedding_dim": 4}}' "$json" |
    sed 's/\\\\/\\/g' >bad.json
try "name of a table" tables bad.json --json
printf '{"a": {"num_embeddings": 10, "embedding_dim": 4, "%s": 1}}' "$json" |
    sed 's/\\\\/\\/g' >bad.json
try "name of a member" tables bad.json --pooling 1
printf '{"a": {"num_embeddings": "%s", "embedding_dim": 4}}' "$json" |
    sed 's/\\\\/\\/g' >bad.json
try "text for a number" tables bad.json

echo "== nets"
mkdir nets
for net in '{"features": ["TEXT"]}' '{"layers": [{"name": "TEXT"}]}' '["TEXT"' \
    '{"TEXT": {}'; do
    printf '%s\n' "$net" | sed "s/TEXT/$json/g" >nets/net_compute.json
    try net model import nets -o out
    try net plan list.csv --gpus 2 --cost reference:nets
done

echo "== databases"
shipped=$ROOT/data/models/cpu-amd-epyc-2t.nsm
few_samples few.db 100
for column in setting.device setting.isa setting.precision setting.optimizer \
    sample.version sample.started_at comm_sample.kind; do
    cp few.db bad.db
    sqlite3 bad.db "PRAGMA ignore_check_constraints = 1;
        UPDATE ${column%.*} SET ${column#*.} = $sql"
    try "$column: bench" bench --db bad.db --samples 0 --csv out
    try "$column: info" db info bad.db
    try "$column: info" db info bad.db --json
    case $column in
    setting.* | comm*) try "$column: eval" eval --db bad.db --model "$shipped" ;;
    esac
done

echo "== paths"
cp list.csv "$raw"
cp plan.json "$raw.json"
cp "$shipped" "$raw.nsm"
latin=$(printf 'caf\351\233')
for path in "$raw" "$latin"; do
    try "no such file" cost "none $path"
    try "no such model" plan list.csv --gpus 2 --cost "model:none $path"
    try "no such database" eval --db "none $path" --model "$raw.nsm"
    try "bad folder" plan list.csv --gpus 2 --search grid -o "none $path/out"
    cp list.csv "$path" && try "a list" tables "$path"
    try "a list as JSON" tables "$path" --json
    cp plan.json "$path" && try "a plan" diff "$path" "$path"
    try "a plan as JSON" diff "$path" plan.json --json
    try "an old plan" plan list.csv --gpus 2 --effort 0 --from "$path"
    cp "$raw.nsm" "$path" && try "a model" model info "$path"
    try "a model's name" plan list.csv --gpus 2 --search grid --batch 4096 \
        --cost "model:./$path" -o out
    try "a model judged" eval --db few.db --model "$path" --json
    mkdir -p nets
    rm -rf "$path"
    cp list.csv "$path"
    try "compared" compare "$path" --gpus 2 --effort 100 --json
done

echo "== options"
for option in --gpus --search --cost --shard --reserve --memory --cluster \
    --from --gpu --batch "--$raw"; do
    try "plan ${option%"$raw"}" plan list.csv --gpus 2 "$option" "$raw"
done
try "no command" "$raw"
try "no verb" model "$raw" x
try "no table" explain plan.json "$raw"
for option in --module --prefix --sequence-module; do
    try "emit $option" emit plan.json --format torchrec -o out "$option" "$raw"
done

echo "== shell words are no commands"
cat >list.csv <<'END'
name,num_embeddings,dim,pooling_factor
"'; touch PWNED; '",1000,16,2
"$(touch PWNED)`touch PWNED`",1000,16,2
END_OF_PLAN,1000,16,2
END_OF_PYTHON,1000,16,1
"""""; open('PWNED', 'w'); """"",1000,16,1
END
"$NEUROSHARD" plan list.csv --gpus 1 --search grid -o plan.json >/dev/null 2>&1
try "emit dlrm" emit plan.json --format dlrm -o out
mkdir bin work
touch dlrm_main.py
cat >bin/torchrun <<'END'
#!/bin/sh
for file; do
    case $file in */train.py) cp "$(dirname "$file")"/* "$COPY" ;; esac
done
END
chmod +x bin/torchrun
COPY=$PWD/work PATH=$PWD/bin:$PATH bash out >stdout 2>stderr
echo "the script ends with $?"
sed -n '/^TABLES/,/^}/p' work/train.py
[ ! -e PWNED ] || echo "# PWNED"
