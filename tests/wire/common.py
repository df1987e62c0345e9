# SPDX-License-Identifier: MIT
"""Functions of the benches over links of a known rate (bench.py, train.py,
groups.py, torchrec_jobs.py).

Options of all: --small does a little of everything. --keep DIR keeps all
files in DIR, and makes or measures no file again that is there.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

NEUROSHARD = os.path.abspath(os.environ.get("NEUROSHARD", "neuroshard"))
LAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab")
SMALL = "--small" in sys.argv
KEEP = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None


def run(*command, env=None):
    """Runs a command and returns its output."""
    done = subprocess.run([str(part) for part in command], text=True, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n"
                 f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def neuroshard(*arguments):
    return run(NEUROSHARD, *arguments)


@contextlib.contextmanager
def beside(*command):
    """Runs a command again and again until the block ends."""
    loop = 'while "$@"; do :; done'
    with subprocess.Popen(["sh", "-c", loop, "sh", *map(str, command)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          start_new_session=True) as other:
        try:
            yield
        finally:
            os.killpg(other.pid, signal.SIGTERM)


def gbps(mbit):
    """Bandwidth of a link in GB/s of payload."""
    return float(run(LAB, "gbps", mbit))


def tell(text):
    print(text, file=sys.stderr, flush=True)


def once(path, make):
    """Makes a file by make(path), unless it exists. Returns its path."""
    if not os.path.exists(path):
        make(path + ".new")
        os.rename(path + ".new", path)
    return path


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def train(path, database):
    """Trains a model of measured lookups, exchanges and products."""
    neuroshard("train", "--db", database, "--kind", "roofline", "--disturbed",
               "-o", path)


def up(hosts, mbit, what, folder):
    """Runs the part `what` of this program inside the lab. Ends the program if
    this machine cannot have a lab."""
    command = [LAB, "up", str(hosts), str(mbit), sys.executable, sys.argv[0],
               *sys.argv[1:], "--inside", what, str(hosts), folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        output = lab.communicate()[0]
    if output.startswith("skipped:"):
        print(f"{os.path.basename(sys.argv[0])} {output}", end="")
        sys.exit(0)
    if lab.returncode:
        sys.exit(lab.returncode)


def start(bench, parts):
    """Outside the lab, runs bench(folder). Inside, runs the part that up() has
    named: parts[what](folder, hosts)."""
    if "--inside" in sys.argv:
        what, hosts, folder = sys.argv[sys.argv.index("--inside") + 1:]
        if what in parts:
            parts[what](folder, int(hosts))
    elif KEEP:
        os.makedirs(KEEP, exist_ok=True)
        bench(KEEP)
    else:
        with tempfile.TemporaryDirectory() as folder:
            bench(folder)
