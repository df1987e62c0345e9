#
#   DLRM_DIR=dlrm/torchrec_dlrm bash FILE [options of dlrm_main.py]
#
# On several hosts give it to sbatch, or run it on each, with NODE_RANK and
# MASTER_ADDR set. Without a data set DLRM draws random batches.
set -euo pipefail

# By sbatch: once on each host, which may not see this file.
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

