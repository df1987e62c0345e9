#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests pages of `neuroshard report` in headless Chromium: wide and narrow,
light and dark. Speaks TAP; NEUROSHARD is the program, SHOTS a folder for
screenshots.
"""
import itertools
import json
import math
import os
import re
import sys
import tempfile
from pathlib import Path

import browser
from tap import finish, neuroshard, ok

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "data/tables"
MOST_BYTES = 2 << 20
MOST_MS = 1000  # main-thread time until painted
LEAST_CONTRAST = 4.5  # for text; graphics need 3
LOOKS = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]
LOOKED_AT = ("small", "large", "compare")  # in all LOOKS; others in two
HOSTILE = [
    "</script><script>document.title = 'PWNED'</script>",
    "<img src=x onerror=\"document.title = 'PWNED'\">",
    "<!--<script>",
    "'; document.title = 'PWNED'; //",
    "{{7*7}} ${7*7} &lt;b&gt;",
]

# For each visible text in the page: its contrast to its background.
CONTRASTS = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [.2126, .7152, .0722].reduce((sum, k, i) => {
    const v = [r, g, b][i] / 255;
    return sum + k * (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  }, 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + .05) /
    (Math.min(light(a), light(b)) + .05);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const seen = {};
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((kid) =>
      kid.nodeType === 3 && kid.data.trim());
    if (!own || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName))
      continue;
    const style = getComputedStyle(node);
    const svg = node instanceof SVGElement;
    const colour = parse(svg ? style.fill : style.color);
    const key = node.tagName + "." + (node.getAttribute("class") || "");
    seen[key] = Math.min(seen[key] || 99, ratio(colour, behind(node)));
  }
  for (const node of document.querySelectorAll(
    ".key:not(.hatch), .seg:not(.hatch)")) {
    const key = "drawn " + node.style.getPropertyValue("--c");
    seen[key] = Math.min(seen[key] || 99, ratio(parse(getComputedStyle(node)
      .backgroundColor), behind(node.parentElement)));
  }
  return seen;
})()"""

PHASES = ("input", "forward", "output", "gradient", "backward", "replicas")
# Colours seen by people who lack one kind of cone: matrices for linear red,
# green and blue (Machado, Oliveira and Fernandes 2009). LEAST_DISTANCE is the
# smallest distance of two such colours in Lab; a step of 2 or 3 is just
# visible.
LEAST_DISTANCE = 10
CONES = {
    "red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# From linear light to XYZ, relative to white.
XYZ = (
    (0.4338910, 0.3762349, 0.1899060),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0177571, 0.1094742, 0.8727690),
)


# Commands that make the files of the pages.
COMMANDS = """
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 8 --trace trace -o small
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 6 -o six
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 4 --pipeline none -o none
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 12 --pipeline semisync \
    --dense-ms 2,4 -o semisync
plan lists/meta_torchrec_1935.csv -g 96 --time-limit 5 -o large
plan hostile.csv -g 2 --batch 512 -o hostile
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 16 --groups 2 \
    --groups-layout strided --sync-every 1000 -o groups
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 8 --cost torchrec -o published
plan lists/mlperf_dlrm_dcnv2_multihot.csv -g 1..9 --json >range
compare lists/mlperf_dlrm_dcnv2_multihot.csv -g 8 --json >compare
compare lists/mlperf_dlrm_dcnv2_multihot.csv -g 2 --tasks 3 \
    --cost roofline:h100 --json >tasks
diff small six --json >diff
eval --db cpu-amd-epyc-2t.db --model cpu-amd-epyc-2t.nsm \
    --learning-curve 5 --json >eval
run hostile --scale-rows 0.01 --iterations 12 --json >run
record small --times times.csv --db a.db --device cuda:a --isa b --json >record
"""
PAGES = (
    "small large compare hostile groups none semisync published tasks range "
    "diff eval run record trace"
).split()


def make_pages(folder):
    """Makes the pages; returns their paths by name."""
    (folder / "lists").symlink_to(LISTS)
    for name in (
        "models/cpu-amd-epyc-2t.nsm",
        "measurements/cpu-amd-epyc-2t.db",
    ):
        (folder / Path(name).name).symlink_to(ROOT / "data" / name)
    (folder / "hostile.csv").write_text(
        "name,num_embeddings,dim,pooling_factor\n"
        + "".join(
            '"{}",{},32,{}\n'.format(name.replace('"', '""'), 9**i * 1000, i)
            for i, name in enumerate(HOSTILE, 1)
        ),
        encoding="utf-8",
    )
    (folder / "times.csv").write_text(
        "step,rank,phase,ms\n"
        + "".join(
            f"{step},{rank},{phase},{1 + (step * 7 + rank) % 5 / 10}\n"
            for step in range(9)
            for rank in range(8)
            for phase in ("forward", "backward", "output")
        ),
        encoding="utf-8",
    )
    os.chdir(folder)
    for line in COMMANDS.strip().split("\n"):
        command, _, output = line.partition(">")
        quick = ["--effort", "20000"] if line[0] in "pc" else []
        status, text, said = neuroshard(*command.split(), *quick)
        if status:
            sys.exit(f"neuroshard {command}: {said}")
        if output:
            (folder / output).write_text(text, encoding="utf-8")
    pages = {name: [name] for name in PAGES}
    pages["several"] = ["small", "trace", "compare", "range"]
    pages["pair"] = ["small", "six"]
    for name, files in pages.items():
        status, _, said = neuroshard("report", *files, "-o", name + ".html")
        if status:
            sys.exit(f"neuroshard report {name}: {said}")
    os.chdir(ROOT)
    return {name: str(folder / (name + ".html")) for name in pages}


def look(page, name, path, width, scheme):
    """Checks that apply to every page, at every width and in every colour
    scheme."""
    page.said.clear()
    page.open(path, width, scheme)
    worked_ms = page.worked_ms()
    what = f"{name}, {width} pixels, {scheme}"
    ok(worked_ms <= MOST_MS, f"{what}: painted by {worked_ms:.0f} ms of work")
    undrawn = page.run(
        "document.body.innerText.match(/.*could not be drawn.*/g) || []"
    )
    ok(
        not page.said and not undrawn,
        f"{what}: no message",
        "\n".join(page.said[:5] + undrawn),
    )
    wide = page.run("document.documentElement.scrollWidth")
    ok(wide == width, f"{what}: as wide as the window", f"{wide}")
    low = {
        key: round(value, 2)
        for key, value in page.run(CONTRASTS).items()
        if value < (3 if key.startswith("drawn") else LEAST_CONTRAST)
    }
    ok(not low, f"{what}: contrast", json.dumps(low))
    shots = os.environ.get("SHOTS")
    if shots:
        page.picture(f"{shots}/{name}-{width}-{scheme}.png")
    return page.run(
        "performance.getEntriesByName('first-contentful-paint')"
        ".map(entry => entry.startTime)[0] || 0"
    )


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab(light):
    """Lab of linear light, each part from 0 to 1."""
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in times(XYZ, [min(1, max(0, part)) for part in light])
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def check_colours(page, path):
    """Phases stay distinguishable for people who lack one kind of cone."""
    for scheme in ("light", "dark"):
        page.open(path, 1280, scheme)
        colours = {}
        for name in PHASES:
            text = page.run(
                "getComputedStyle(document.documentElement)"
                f".getPropertyValue('--{name}').trim()"
            )
            parts = (int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))
            colours[name] = [
                p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4
                for p in parts
            ]
        for lacked, matrix in CONES.items():
            seen = {k: lab(times(matrix, v)) for k, v in colours.items()}
            least = min(
                (math.dist(seen[a], seen[b]), a, b)
                for a, b in itertools.combinations(PHASES, 2)
            )
            ok(
                least[0] >= LEAST_DISTANCE,
                f"{scheme}: phases differ without {lacked} cones",
                str(least),
            )


def centre(page, selector):
    """Scrolls an element to the middle of the window; returns its centre."""
    page.run(
        f"document.querySelector({json.dumps(selector)})"
        ".scrollIntoView({block: 'center'}); new Promise(done =>"
        " requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    return page.run(
        "(box => [box.x + box.width / 2, box.y + box.height / 2])("
        f"document.querySelector({json.dumps(selector)})"
        ".getBoundingClientRect())"
    )


TIP = (
    "(tip => tip.style.visibility === 'visible' ? tip.innerText : '')"
    "(document.querySelector('#tip'))"
)


def check_binding(page, path):
    """The page names the same bottleneck as the text report."""
    page.open(path, 1280)
    said = page.run("document.body.innerText")
    _, text, _ = neuroshard("cost", "--details", path[: -len(".html")])
    text = " ".join(text.split("\nbinds ")[1].split("\nplan ")[0].split())
    host, _, rest = text.rpartition("among the GPUs: ")
    # The name of a table may have any characters, also "; " and quotes.
    *want, last = rest.strip().split("; ", 2)
    want = [part + ";" for part in want]
    last = re.sub(r"^table '(.*)'(?= on GPU|,)", r"table \1", last) + ". "
    last = last.replace("it is", "it would be")
    # The page writes ranges of GPUs with other commas and dashes.
    want += re.split(r"(?<= on GPU)s? [0-9,-]+", last)
    if host:
        want.append("It waits for the host, ")
    ok(
        all(part in said for part in want),
        f"{Path(path).stem}: what binds it",
        f"{want}: {said[:500]}",
    )


def check_pointer(page, plan):
    """Pointing at an element shows its figure."""
    page.point(*centre(page, ".bars .seg"))
    tip = page.run(TIP)
    want = f"{plan['devices'][0]['phases_ms']['input']:.3f} ms"
    ok(
        "GPU 0: input" in tip and want in tip,
        "pointing shows the figure",
        f"{tip!r}, not {want}",
    )
    page.point(2, 2)
    ok(page.run(TIP) == "", "pointing elsewhere hides the figure")
    page.point(*centre(page, ".plot[role=application]"))
    tip = page.run(TIP)
    ok("GPU" in tip, "pointing at a cell shows its content", repr(tip))


def check_keys(page):
    """Tab moves to a figure, arrow keys move inside it."""
    page.run("document.activeElement.blur(); scrollTo(0, 0)")
    focused = "document.activeElement.getAttribute('aria-label') || ''"
    for _ in range(40):
        page.key("Tab")
        if page.run(focused).startswith("GPU 0: input"):
            break
    first = page.run(focused)
    ok(first.startswith("GPU 0: input"), "Tab goes to the first bar", first)
    ok("GPU 0: input" in page.run(TIP), "the focused bar shows its figure")
    page.key("ArrowRight")
    ok(
        page.run(focused).startswith("GPU 0: forward"),
        "an arrow goes to the next bar",
        page.run(focused),
    )
    page.key("ArrowDown")
    ok(
        page.run(focused).startswith("GPU 1: forward"),
        "an arrow goes to the next row",
        page.run(focused),
    )
    page.key("Home")
    ok(
        page.run(focused).startswith("GPU 1: input"),
        "Home goes to the first bar of the row",
        page.run(focused),
    )
    outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
    ok(outline == "solid", "the focused element is outlined", outline)
    page.key("Escape")
    ok(page.run(TIP) == "", "Escape hides the figure")
    page.key("Tab")
    ok(not page.run(focused).startswith("GPU 1"), "Tab leaves the bars")
    page.run("document.querySelector('.plot[role=application]').focus()")
    said = []
    for key in ("Home", "ArrowRight", "ArrowDown", "End"):
        page.key(key)
        said.append(page.run("document.querySelector('.readout').textContent"))
    gpus = [text.split("GPU ")[1].split(",")[0] for text in said]
    ok(
        gpus == ["0", "1", "1", "7"] and said[1] != said[2],
        "arrows go from cell to cell",
        "\n".join(said),
    )


def check_sorting(page, plan):
    """A column header sorts all rows, not only the visible ones."""

    def column(name):
        """Visible cells of a column."""
        return page.run(
            "(root => { const i = [...root.querySelectorAll('th button')]"
            f".findIndex(button => button.textContent === {name!r});"
            "return [...root.querySelectorAll('tbody tr')]"
            ".map(row => row.cells[i].textContent); })"
            "(document.querySelector('[aria-label=\"tables\"]'))"
        )

    press = (
        '[...document.querySelectorAll(\'[aria-label="tables"] th '
        "button')].find(button => button.textContent === {!r})"
    )
    rows = sorted(
        (table["num_embeddings"] for table in plan["tables"]), reverse=True
    )
    page.run(press.format("rows") + ".click()")
    shown = [int(text.replace(",", "")) for text in column("rows")]
    ok(
        shown == rows[: len(shown)],
        "a heading sorts, largest first",
        f"{shown[:5]}",
    )
    sort = press.format("rows") + ".parentElement.getAttribute('aria-sort')"
    ok(page.run(sort) == "descending", "the heading shows the order")
    page.run(press.format("rows") + ".focus()")
    page.key("Enter")
    shown = [int(text.replace(",", "")) for text in column("rows")]
    ok(
        shown == rows[::-1][: len(shown)] and page.run(sort) == "ascending",
        "a key reverses the order",
        f"{shown[:5]}",
    )
    page.run(press.format("table") + ".click()")
    names = column("table")
    ok(
        page.run(sort) == "none" and names[0] == "cat_0",
        "only one column sorts at a time",
        f"{names[:3]}",
    )
    page.run(
        "(input => { input.value = 'cat_2'; input.dispatchEvent("
        "new Event('input')); })(document.querySelector("
        "'[aria-label=\"find in: tables\"]'))"
    )
    names = column("table")
    ok(
        names and all("cat_2" in name for name in names),
        "find finds",
        f"{names}",
    )


def check_pair(page, path):
    """Two plans are drawn side by side, and the navigation names each."""
    page.open(path, 1280)
    heads = page.run(
        "[...document.querySelectorAll('.pairs h3')].map(node => "
        "[node.textContent, node.getBoundingClientRect().top])"
    )
    ok(
        len(heads) == 2
        and heads[0][0].startswith("small: ")
        and heads[1][0].startswith("six: ")
        and heads[0][1] == heads[1][1],
        "two plans side by side",
        f"{heads}",
    )
    named = page.run(
        "[...document.querySelectorAll('nav b')].map(node => node.textContent)"
    )
    ok(
        named == ["small and six", "small", "six"],
        "the navigation names the files",
        f"{named}",
    )
    rows = page.run(
        "[...document.querySelectorAll('[aria-label=\"where each table was "
        "and is\"] tbody tr')].map(row => [row.className, "
        "row.cells[1].textContent])"
    )
    ok(
        rows
        and all((size != "0 B") == (mark == "strong") for mark, size in rows),
        "tables that move are bold",
        f"{rows[:5]}",
    )


def check_hostile(page, path):
    """Names of tables are text, not markup."""
    page.open(path, 1280)
    page.key("Tab")
    names = page.run(
        '[...document.querySelectorAll(\'[aria-label="tables"] '
        "td:first-child')].map(cell => cell.textContent)"
    )
    ok(
        sorted(names) == sorted(HOSTILE),
        "hostile names are shown unchanged",
        "\n".join(names),
    )
    ok(
        "PWNED" not in page.run("document.title")
        and page.run(
            "document.querySelectorAll('img, script[src], iframe, link')"
            ".length"
        )
        == 0
        and page.run("document.scripts.length") == 2,
        "and make nothing",
    )


def check_folding(page, path):
    """Many GPUs share rows, and all of them are there."""
    page.open(path, 1280)
    rows = page.run(
        "[...document.querySelectorAll('[aria-label=\"phases by "
        "GPU\"] .label')].map(label => label.textContent)"
    )
    n = sum(
        1 if row.startswith("GPU ") else int(row.split()[0]) for row in rows
    )
    ok(n == 96 and len(rows) < 33, "96 GPUs in a few rows", f"{rows}")
    n = page.run("document.querySelectorAll('*').length")
    ok(n < 6000, "the page of a large plan is small", f"{n} elements")


def check_print(page, path):
    """In print: black on white, and nothing is cut off."""
    page.open(path, 1280, "dark")
    page.call(
        "Emulation.setEmulatedMedia",
        media="print",
        features=[{"name": "prefers-color-scheme", "value": "light"}],
    )
    ok(
        page.run("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)",
        "paper stays white",
    )
    pdf = page.call("Page.printToPDF", printBackground=True)["data"]
    ok(len(pdf) > 10000, "prints")
    page.call("Emulation.setEmulatedMedia", media="")


def check_groups(page, path):
    """One group is shown, with the ranks of both."""
    page.open(path, 1280)
    rows = page.run(
        "[...document.querySelectorAll('[aria-label=\"ranks of the groups\"] "
        "tbody tr')].map(row => row.textContent)"
    )
    ok(
        rows == [f"{gpu}{2 * gpu}, {2 * gpu + 1}" for gpu in range(8)],
        "a GPU stands for a rank of each group",
        f"{rows}",
    )
    ok(
        page.run("document.querySelector('h1').textContent").endswith(
            "on 16 GPUs in 2 groups"
        ),
        "the heading counts the GPUs of all groups",
    )


def check_timeline(page, pages):
    """Blocks of a GPU follow each other and end with the step."""
    for name in ("small", "none", "semisync"):
        page.open(pages[name], 1280)
        rows = page.run(
            '[...document.querySelectorAll(\'[aria-label="the step in time"] '
            ".lane:not(.under)')].map(lane => "
            "[...lane.querySelectorAll('.seg')].map(seg => "
            "[parseFloat(seg.style.left), parseFloat(seg.style.width)]))"
        )
        gaps = [
            abs(b[0] - a[0] - a[1])
            for row in rows
            for a, b in zip(row, row[1:])
        ]
        ends = [row[-1][0] + row[-1][1] for row in rows]
        ok(
            rows
            and max(gaps) < 0.01
            and all(abs(end - 100) < 0.5 for end in ends),
            f"{name}: the step in time is whole",
            f"{ends} {max(gaps)}",
        )


def main():
    program = browser.find()
    if not program:
        print("1..0 # SKIP there is no chromium")
        return
    paints = {}
    with tempfile.TemporaryDirectory() as name, browser.Browser(
        program
    ) as page:
        folder = Path(name)
        pages = make_pages(folder)
        for name, path in pages.items():
            size = os.path.getsize(path)
            ok(size <= MOST_BYTES, f"{name}: {size} bytes")
            looks = LOOKS if name in LOOKED_AT else LOOKS[::3]
            for width, scheme in looks:
                paints[f"{name} {width} {scheme}"] = look(
                    page, name, path, width, scheme
                )
        with open(folder / "small", encoding="utf-8") as file:
            plan = json.load(file)
        page.open(pages["small"], 1280)
        check_pointer(page, plan)
        check_keys(page)
        check_sorting(page, plan)
        check_pair(page, pages["pair"])
        check_hostile(page, pages["hostile"])
        check_groups(page, pages["groups"])
        check_folding(page, pages["large"])
        check_timeline(page, pages)
        for name in ("small", "semisync", "hostile", "none", "published"):
            check_binding(page, pages[name])
        check_print(page, pages["small"])
        check_colours(page, pages["small"])
    for what, paint in paints.items():
        print(f"# first paint {what}: {paint:.0f} ms")
    finish()


main()
