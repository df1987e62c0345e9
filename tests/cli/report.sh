#!/bin/sh
# SPDX-License-Identifier: MIT
# report: a page shows the content of its files, whatever the names of tables.
# Each kind of file is recognised by its members; anything else is refused.
# tests/report checks the pages in a browser.
set -eu

command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }

ns=$NEUROSHARD

# The list has a row-wise table on all GPUs, a replica, and names that look
# like markup.
cat >list.csv <<'END'
name,num_embeddings,dim,pooling_factor,sharding
</script><script>alert(1)</script>,4000000,64,40,row
<!--<img src=x onerror=alert(2)>,100,16,1,replicate
"quote"" & é",50000,32,3,
END
awk 'BEGIN { for (i = 0; i < 30; i++) print "t" i ",3000,16," i % 7 ",table" }' \
    >>list.csv
"$ns" plan list.csv --gpus 8 --cost roofline:h100 --effort 2000 --host-ms 0 \
    -o plan.json --trace trace.csv >/dev/null 2>&1
"$ns" plan list.csv --gpus 6 --cost roofline:h100 --effort 2000 -o other.json \
    >/dev/null 2>&1
"$ns" diff plan.json other.json --json >diff.json
"$ns" compare list.csv --gpus 4 --cost roofline:h100 --effort 500 --json \
    >compare.json 2>/dev/null
"$ns" plan list.csv --gpus 2..5 --cost roofline:h100 --effort 200 --json \
    >range.json 2>/dev/null

echo "# each kind"
"$ns" report plan.json diff.json compare.json range.json -o page.html --json |
    grep -v bytes
cat >look.py <<'END'
import json
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
text = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
assert "<" not in text, "something ends the data"
assert page.count("<script") == 2 and page.count("<!--") == 1
assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page), "network"
data = json.loads(text)


def rows(value):
    """Columns are objects again."""
    if isinstance(value, dict) and set(value) == {"columns", "rows"}:
        return [dict(zip(value["columns"], row)) for row in value["rows"]]
    return value


def alike(a, b):
    """But for members that are absent in one and null in the other."""
    if isinstance(a, dict) and isinstance(b, dict):
        return all(alike(a.get(k), b.get(k)) for k in {*a, *b})
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == b


for document in data["documents"]:
    content = {key: rows(v) for key, v in document["content"].items()}
    with open(document["file"], encoding="utf-8") as file:
        given = json.load(file)
    if document["kind"] == "plan":
        shards = given.pop("shards")
        pieces = content.pop("pieces")
        spread = [
            (p["table"], p["kind"], p["device"] + i, p["col_begin"], p["col_end"])
            for p in pieces
            for i in range(p["n"])
        ]
        assert spread == [
            (s["table"], s["kind"], s["device"], s["col_begin"], s["col_end"])
            for s in shards
        ]
        for t, table in enumerate(given["tables"]):
            own = [p for p in pieces if p["table"] == t]
            want = sum(s["alone_ms"] for s in shards if s["table"] == t)
            assert abs(sum(p["alone_ms"] for p in own) - want) < 1e-12
            cells = sum(
                (p["row_end"] - p["row_begin"])
                * (p["col_end"] - p["col_begin"])
                for p in own
            )
            assert cells == table["num_embeddings"] * table["dim"]
        found = document["found"]
        names = [table["name"] for table in given["tables"]]
        saves = found["saves_ms"]
        assert len(saves) == len(names)
        assert found["binds"]["table_ms"] == max(saves)
        assert found["binds"]["table"] == names[saves.index(max(saves))]
        print(len(shards), "shards in", len(pieces), "pieces,",
              len(document["found"]["rivals"]), "rivals")
    assert alike(content, given), document["file"]
    print(document["kind"], "is what the file says")
END
python3 look.py page.html
# Two plans begin with what moves between them; three do not.
"$ns" report plan.json plan.json -o pair.html --json | grep file
"$ns" report plan.json plan.json plan.json -o three.html --json | grep file
"$ns" report plan.json >piped.html
python3 look.py piped.html
"$ns" report trace.csv | python3 -c '
import json, re, sys
page = sys.stdin.read()
text = re.search(r"id=\"data\">(.*?)</script>", page).group(1)
trace = json.loads(text)["documents"][0]["content"]["trace"]
assert trace == open("trace.csv").read()
print("a trace is as it was,", *trace.split("\n")[0].split(","))'

echo "# refused"
# try COMMAND...: prints its messages and exit status
try()
{
    rm -f out.html
    "$ns" report "$@" -o out.html 2>&1 || echo "status $?"
    [ ! -e out.html ] || echo "out.html is there"
}
echo '{"held_out": []}' >part.json
echo '[1]' >list.json
echo '{"neuroshard_plan": 1, "shards": 3}' >broken.json
python3 - <<'END'
import json

plan = json.load(open("plan.json"))
for key in ("devices", "total_ms"):
    del plan[key]
json.dump(plan, open("unpriced.json", "w"))
END
try part.json
try list.json
try broken.json
try unpriced.json
try list.csv
printf 'evaluations,total_ms\n1,"2' >cut.csv
try cut.csv
try missing.json
try plan.json part.json
try
"$ns" report plan.json -o plan.json 2>&1 || echo "status $?"
"$ns" report plan.json --json 2>&1 || echo "status $?"

echo "# the model that priced a plan is not at hand"
sed 's/"roofline:h100"/"model:gone.nsm"/' plan.json >gone.json
"$ns" report gone.json | python3 -c '
import re, sys
print(re.search(r"\"found\":.*?}", sys.stdin.read()).group())' | sed 's/[0-9]\.[0-9]*/N/'

echo "# a plan that does not say what priced it"
"$ns" cost plan.json --host-ms 0 --json |
    sed 's/"cost_model": {[^}]*}/"cost_model": null/' >whose.json
"$ns" report whose.json | grep -c '<html'
"$ns" run whose.json --chunks 2 2>&1 || echo "status $?"
