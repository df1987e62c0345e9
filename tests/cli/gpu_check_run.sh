#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/gpu/check on unfamiliar machines, with the emulated GPU: no driver, an
# old driver, several GPUs of which CUDA shows one, two kinds of GPUs, a GPU
# without shipped figures, no NCCL, an NCCL that refuses, a folder of another
# GPU, a read-only folder, a full disk, and an interrupt.
set -eu
. "$ROOT/tests/cli/common"

build=$(dirname "$NEUROSHARD")
check=$ROOT/tests/gpu/check

grep -q emulated_enqueue "$NEUROSHARD" || skip "not built with CUDA=emulated"
[ -x "$build/tests/bench/bench_page" ] || skip "make gpu-programs was not run"
unset EMULATOR_DEVICES NEUROSHARD_DATA LD_LIBRARY_PATH

# stub NAME TEXT: makes a command that runs TEXT.
mkdir bin
stub()
{
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
}
PATH=$PWD/bin:$PATH
stub python3 'exit 1'
stub nvidia-smi 'case $* in *mig.mode*) echo "Emulated GPU, 580.1, Enabled" ;;
-L) printf "GPU 0: A\n  MIG 1g Device 0: B\n  MIG 1g Device 1: C\n" ;;
*--query-gpu=name) printf "A\nB\nA\n" ;;
*compute-apps*) printf "12\n34\n" ;; esac'

# Prints the output that does not depend on the machine.
try()
{
    status=0
    "$check" --build "$build" --out out --small "$@" >page 2>err || status=$?
    sed -e "s|$PWD|.|" -e 's/ in [0-9]* s/ in N s/' -e 's/[0-9]* processors/N processors/' \
        -e 's/not done, [0-9]* s/not done, N s/' page |
        grep '^machine\|^exchanges' || :
    grep '^gpu/check' err | sed "s|$PWD|.|" || :
    echo "status $status"
}

echo "== no driver"
EMULATOR_DRIVER=0 try designed
echo "== a driver for CUDA 11.4"
EMULATOR_DRIVER=11040 try designed
echo "== a GPU in parts, of which CUDA shows one"
try exchanges
echo "== of two kinds"
stub nvidia-smi 'case $* in *--query-gpu=name) printf "A\nB\n" ;;
*mig.mode*) printf "A, 580.1\nB, 580.1\n" ;; esac'
EMULATOR_DEVICES=2 try --plan
grep '^machine' out/machine.table | sed 's/[0-9]* processors/N processors/'
echo "== no NCCL that can be loaded"
mkdir none
echo none >none/libnccl.so.2
EMULATOR_DEVICES=2 LD_LIBRARY_PATH=$PWD/none try exchanges
echo "== an NCCL that refuses"
EMULATOR_DEVICES=2 LD_LIBRARY_PATH=$build/fake FAKE_NCCL_REFUSES=1 \
    try exchanges
grep -c ncclCommInitRank err
echo "== a test that fails, one that is skipped"
mkdir -p built/tests/unit/device
ln -s "$NEUROSHARD" built/neuroshard
ln -s "$build/tests/bench" built/tests/bench
cat >built/tests/unit/device/t_good <<'END'
#!/bin/sh
echo ok 1
END
sed 's/ok 1/"1..0 # SKIP no memory for it"/' built/tests/unit/device/t_good \
    >built/tests/unit/device/t_left
sed 's/ok 1/"not ok 1 - bits"; exit 1/' built/tests/unit/device/t_good \
    >built/tests/unit/device/t_bad
chmod +x built/tests/unit/device/t_*
"$check" --build built --out out --small correct 2>err |
    sed -n '/compute-sanitizer/d; s/, [0-9]* s, .*//; /^correct/p'
sed "s|$PWD|.|" err
echo "== the folder of another GPU"
echo "cuda:NVIDIA H100 80GB HBM3" >out/gpu
try designed
rm out/gpu
echo "== a full disk"
stub df 'printf "a\n/dev/x 100 93 7 93 /\n"'
try designed
rm bin/df
echo "== a folder that takes nothing"
"$check" --build "$build" --out /proc/self --plan 2>&1 || echo "status $?"
echo "== ended by hand, and begun again"
"$check" --build "$build" --out ended --small collect >page 2>err &
wait_until test -s ended/costs.db
kill "$!"
wait "$!" || echo "status $?"
cat err
"$check" --build "$build" --out ended --small collect 2>err |
    sed -n 's/^\(collect .*\) in [0-9]* s/\1 in N s/p'
echo "== its plan, what is done left out"
: >out/correct.done
"$check" --build "$build" --out out --small --plan
echo "== what the plan is made of is what is done"
# ASan would touch an eighth of 80 GiB.
grep -q __asan_init "$NEUROSHARD" ||
    "$ROOT/tests/gpu/count" "$build" probes kernels designed exchanges beside |
    cut -c 1-44 >counted
touch counted
cut -c 1-44 "$ROOT/tests/gpu/counts" | grep -x -v -F -f - counted || :
