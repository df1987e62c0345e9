#!/bin/sh
# SPDX-License-Identifier: MIT
# A plan larger than the file-size limit does not kill the program by a signal.
# It prints a sentence, and the old plan stays.

cat >list.csv <<END
name,num_embeddings,dim,pooling_factor,zipf_alpha
a,1000,16,2,1.1
b,2000,32,1,1.1
END
echo "old plan" >plan.json
status=0
# One block is 512 or 1024 bytes: less than the plan, more than the message.
(ulimit -f 1 && exec "$NEUROSHARD" plan --details list.csv --gpus 2 -o plan.json \
    --cost roofline:h100) >stdout 2>stderr || status=$?
echo "status $status"
sed '/^searched /d' stderr
cat stdout plan.json
ls
