#!/bin/bash
# sbatch slurm.sh SOLUTIONS.jsonl SUITE OUT
#
# One job for everything: a scheduler and the client on the first node, workers on all of them.
# Needs a folder that all nodes see (where this is submitted), the judge in JUDGE (default: judge,
# from PATH), and `judge sandbox build` done on every node or in a home that they share.
#SBATCH --job-name=judge
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-cpu=4G
#SBATCH --time=04:00:00
set -euo pipefail
solutions=$1 suite=$2 out=$3
judge=${JUDGE:-judge}
port=${JUDGE_PORT:-8786}
host=$(hostname)

export JUDGE_CLUSTER_CERTIFICATES=$PWD/judge-certificates-$SLURM_JOB_ID
"$judge" cluster certificates "$JUDGE_CLUSTER_CERTIFICATES" --days 7
trap 'kill $(jobs -p) 2>/dev/null; rm -r "$JUDGE_CLUSTER_CERTIFICATES"' EXIT

"$judge" cluster scheduler --listen "tls://$host:$port" &
srun --kill-on-bad-exit=0 "$judge" cluster worker "tls://$host:$port" \
    --processes "$SLURM_CPUS_PER_TASK" &
cat > "$JUDGE_CLUSTER_CERTIFICATES/cluster.yaml" <<YAML
address: tls://$host:$port
certificates: .
workers: $((SLURM_NNODES * SLURM_CPUS_PER_TASK))
wait_s: 300
YAML
"$judge" score "$solutions" --dataset "$suite" --out "$out" --quiet \
    --cluster "$JUDGE_CLUSTER_CERTIFICATES/cluster.yaml"
