#!/usr/bin/env bash
#SBATCH --nodes={{hosts}} --ntasks-per-node=1 --gpus-per-node={{local}}
#SBATCH --exclusive
# Trains torchrec_dlrm/dlrm_main.py with a plan of neuroshard:
# {{job}}.
{{notes}}#
#   DLRM_DIR=dlrm/torchrec_dlrm bash FILE [options of dlrm_main.py]
#
# On several hosts pass it to sbatch, or run it on each host with NODE_RANK and
# MASTER_ADDR set. Without a data set DLRM draws random batches.
set -euo pipefail

# Under sbatch: runs once on each host. Hosts may not see this file, so bash
# reads it from stdin.
if [[ -n ${SLURM_JOB_ID:-} && -z ${SLURM_STEP_ID:-} ]]; then
    : "${MASTER_ADDR:=$(scontrol show hostnames | awk 'NR == 1')}"
    export MASTER_ADDR
    exec srun --ntasks-per-node=1 --cpu-bind=none \
        bash -s -- "$@" <"$0"
fi

DLRM_DIR=${DLRM_DIR:-.}
export DLRM_DIR
if [[ ! -f $DLRM_DIR/dlrm_main.py ]]; then
    echo "no dlrm_main.py in '$DLRM_DIR', see DLRM_DIR above" >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/plan.json" <<'END_OF_PLAN'
{{plan}}END_OF_PLAN

cat >"$work/loader.py" <<'END_OF_PYTHON'
{{loader}}END_OF_PYTHON

cat >"$work/train.py" <<'END_OF_PYTHON'
{{driver}}END_OF_PYTHON

args=(
    --num_embeddings_per_feature "{{rows}}"
    --embedding_dim {{width}}
{{dense}}    --batch_size {{batch}}
{{adagrad}})
{{multi_hot}}{{pod}}
torchrun --nnodes {{hosts}} --nproc_per_node {{local}} \
    --node_rank "${NODE_RANK:-${SLURM_NODEID:-0}}" \
    --master_addr "${MASTER_ADDR:-localhost}" \
    --master_port "${MASTER_PORT:-29500}" \
    "$work/train.py" "${args[@]}" "$@"
