#!/bin/sh
# SPDX-License-Identifier: MIT
# `tables profile`: it measures known ids from every source, refuses bad input
# with one sentence and leaves the old list untouched, and handles an
# interrupt.
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD
corpus=$ROOT/tests/fuzz/corpus

# array TYPE SHAPE NUMBER...: prints a NumPy file
array()
{
    perl -e 'my ($type, $shape, @n) = @ARGV;
        my $head = "{\x27descr\x27: \x27$type\x27, \x27fortran_order\x27: " .
            "False, \x27shape\x27: ($shape), }\n";
        print "\x93NUMPY\1\0", pack("v", length $head), $head,
            pack($type eq "<i4" ? "l<*" : "q<*", @n);' -- "$@"
}

# archive FILE...: prints an archive of the files, as np.savez writes it
archive()
{
    perl -e 'undef $/;
        my ($directory, $at) = ("", 0);
        for (@ARGV) {
            open my $in, "<", $_ or die;
            my $text = <$in>;
            my $sum = 0xffffffff;
            for (unpack "C*", $text) {
                $sum ^= $_;
                $sum = $sum >> 1 ^ ($sum & 1) * 0xedb88320 for 1 .. 8;
            }
            my $alike = pack "v4V", 0, 0, 0, 33, $sum ^ 0xffffffff;
            my $n = length $text;
            $directory .= "PK\1\2" . pack("v2", 45, 45) . $alike .
                pack("V2v5V2", $n, $n, length $_, 0, 0, 0, 0, 0, $at) . $_;
            my $member = "PK\3\4" . pack("v", 45) . $alike . "\xff" x 8 .
                pack("v2", length $_, 20) . $_ . pack("v2Q<2", 1, 16, $n, $n) .
                $text;
            $at += length $member;
            print $member;
        }
        print $directory, "PK\5\6", pack("v4V2v", 0, 0, scalar @ARGV,
            scalar @ARGV, length $directory, $at, 0);' -- "$@"
}

# frame NAME SAMPLES ID...: prints a frame of a pipe
frame()
{
    perl -e 'my ($name, $samples, @ids) = @ARGV;
        print pack("q<3", $samples, scalar @ids, length $name), $name,
            pack("q<*", @ids);' -- "$@"
}

# Two samples per batch. First batch: row 7 once, row 3 twice, row 0 five
# times. Second batch: row 3 once, row 1 three times. The last half batch is
# ignored.
ids="7 3 3 0 0 0 0 0  3 1 1 1  0 2"
# shellcheck disable=SC2086 # numbers
{
    array '<i8' 14, $ids >user_indices.npy
    array '<i8' 14, $ids >user.values.npy
    array '<i4' 5, 3 5 0 4 2 >user_lengths.npy
    array '<i8' 6, 0 3 8 8 12 14 >user-offsets.npy
}
mkdir other days
mv user.values.npy user-offsets.npy other
archive user_indices.npy user_lengths.npy >days/user.npz
(cd other && archive user.values.npy user-offsets.npy >../days/offsets.npz)
array '<i4' '4, 3' 1 1 2  3 3 3  0 1 2  9 9 9 >days/0.npy
cp days/0.npy matrix.npy
cp days/0.npy day_0_sparse.npy
cp days/0.npy day_1_sparse.npy
array '<f4' 4, >day_0_labels.npy
array '<i8' 5, 4 4 4 4 1 >days/item.npy
cat >list.csv <<EOF
name,num_embeddings,dim,pooling_factor,precision,zipf_alpha
other,100,8,2,fp16,1.2
user,10,64,,,
EOF

echo "== lengths"
"$ns" tables profile user_indices.npy user_lengths.npy --batch 2 --gpus 2 \
    --hottest 3 --dim 16 -o profiled.csv
cat profiled.csv
echo "== offsets, an archive, and a pipe: the same"
"$ns" tables profile other/* --batch 2 --gpus 2 --dim 16 -o - |
    cmp - profiled.csv
"$ns" tables profile days/user.npz --batch 2 --gpus 2 --dim 16 -o - |
    cmp - profiled.csv
"$ns" tables profile days/offsets.npz --batch 2 --gpus 2 --dim 16 -o - |
    cmp - profiled.csv
{
    frame user 1 7 3 3
    frame user 0 0 0
    frame user 1 0 0 0
    frame user 1
    frame user 1 3 1 1 1
    frame user 1 0 2
} >pipe
"$ns" tables profile - --batch 2 --gpus 2 --dim 16 -o - <pipe |
    cmp - profiled.csv
echo "== a list that grows"
"$ns" tables profile days/user.npz --tables list.csv --batch 2 -o - >grown.csv
cut -d , -f 1-6 grown.csv
"$ns" plan grown.csv --gpus 2 --cost roofline:h100 >/dev/null 2>&1 || echo no plan
echo "== matrices, the files of two days, fewer batches"
"$ns" tables profile days/0.npy days/item.npy --batch 2 --json --hottest 1
"$ns" tables profile days/user.npz days/offsets.npz --batch 2
"$ns" tables profile days/user.npz days/offsets.npz --batch 2 --batches 1
"$ns" tables profile - --batch 2 --gpus 2 --batches 1 <pipe
"$ns" tables profile days/item.npy

echo "== a table a column: by the option, or by the name; labels are left out"
"$ns" tables profile matrix.npy --batch 2 --columns-are tables
"$ns" tables profile matrix.npy --batch 2 --columns-are samples
"$ns" tables profile day_?_*.npy --batch 2 --dim 4 -o - | cut -d , -f 1-4

echo "== what is refused"
echo old >out
# bad NAME ARGUMENT...: one sentence, no output, the old file unchanged
bad()
{
    label=$1
    shift
    "$ns" tables profile "$@" --dim 4 -o out >stdout 2>stderr <input
    status=$?
    printf '%-16s %d: ' "$label" $status
    sed "s|$ROOT|ROOT|g; s|^neuroshard: ||" stderr
    [ $status -ne 0 ] || echo "# accepted"
    [ "$(wc -l <stderr)" -eq 1 ] || echo "# not one sentence"
    [ ! -s stdout ] || echo "# printed a result"
    [ "$(cat out)" = old ] || echo "# touched the old file"
}

: >input
# one NAME TYPE SHAPE NUMBER...: profiles an array of ids
one()
{
    label=$1
    shift
    array "$@" >ids.npy
    bad "$label" ids.npy
}

bad no-file none.npy
bad folder other
bad device /dev/null
mkfifo named
bad pipe-by-name named
rm named
bad empty input
echo "1,2,3" >text.csv
bad text text.csv
bad no-ids -
one type '<f8' 2, 1 2
one byte-order '>i8' 2, 1 2
one scalar '<i8' '' 1
one cube '<i8' '1, 1, 1' 1
bad by-columns "$corpus/npy/fortran"
one cut '<i8' 3, 1 2
one too-long '<i8' 3, 1 2 3 4
one negative '<i8' 3, 1 -2 3
one too-large '<i8' 3, 1 1000000000 3
one huge '<i8' '4294967296, 4294967296' 1
bad compressed "$corpus/npz/deflated"
bad from-pipe "$corpus/npz/pipe"
bad matrix matrix.npy
bad only-labels day_0_labels.npy
perl -pe 's/\x07\0\0\0\0\0\0\0\x03/\x06\0\0\0\0\0\0\0\x03/' days/user.npz >flipped.npz
bad crc flipped.npz
perl -pe 's/user_indices.npyPK/user_indicez.npyPK/' days/user.npz >other.npz
bad directory other.npz
head -c -1 days/user.npz >end.npz
bad no-end end.npz
bad cut-archive "$corpus/npz/cut"
{
    printf 'PK\005\006'
    head -c 18 /dev/zero
} >empty.npz
bad no-arrays empty.npz
head -c 400 days/user.npz >cut.npz
bad cut-member cut.npz
archive text.csv >text.npz
bad no-array text.npz
archive user_lengths.npy >lengths.npz
bad no-indices lengths.npz
bad twice days/user.npz days/user.npz
cp user_indices.npy user_values.npy
bad two-of-ids user_indices.npy user_values.npy
rm user_values.npy
array '<i8' '2, 2' 1 2 3 4 >m_indices.npy
array '<i8' 2, 1 1 >m_lengths.npy
bad matrix-parted m_indices.npy m_lengths.npy
# parted NAME KIND SHAPE NUMBER...: profiles three ids with these lengths or
# offsets
array '<i8' 3, 1 2 3 >p_indices.npy
parted()
{
    label=$1 kind=$2
    shift 2
    array '<i8' "$@" >p_"$kind".npy
    bad "$label" p_indices.npy p_"$kind".npy
}
parted no-lengths lengths 0,
parted few-lengths lengths 2, 1 1
parted many-lengths lengths 2, 2 2
parted minus-lengths lengths 3, 2 -1 2
parted offsets-first offsets 3, 1 2 3
parted offsets-fall offsets 4, 0 2 1 3
parted offsets-end offsets 3, 0 1 2
parted offsets-beyond offsets 3, 0 1 4
parted offsets-none offsets 0,
frame a 1 5 >input
printf x >>input
bad frame-cut -
frame a 1 5 6 | head -c 35 >input
bad frame-ids -
frame a 2 5 >all
head -c 24 all >input
bad frame-name -
frame '' 2 5 >input
bad frame-unnamed -
frame "$(printf 'a\033b')" 1 5 >input
bad frame-escape -
frame a-b 1 5 | tr - '\000' >input
bad frame-nul -
frame a -1 5 >input
bad frame-minus -
frame a 3 5 >input
bad frame-long - --batch 4 --gpus 2
frame a 1 -5 >input
bad frame-id -
: >input
bad no-table days/item.npy --tables list.csv
array '<i8' 1, 10 >user.npy
bad row-of-list user.npy --tables list.csv
bad gpus days/item.npy --batch 4 --gpus 3
"$ns" tables profile days/item.npy -o out
"$ns" tables profile list.csv --tables list.csv -o list.csv
head -n 1 list.csv

echo "== an interrupt"
mkfifo fifo
exec 4<>fifo
"$ns" tables profile - --dim 4 -o out <fifo >stdout 2>stderr &
pid=$!
wait_until heeds $pid
cat pipe >fifo
sleep 0.2
kill -INT $pid
wait $pid
echo "status $?: $(cat stderr)"
cat stdout out
ls -A
