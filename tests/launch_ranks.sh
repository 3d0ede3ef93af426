#!/usr/bin/env bash
# launch_ranks.sh RANKS PROGRAM [ARGUMENTS...]: a process per rank, with the variables that Open MPI's
# mpirun sets. Fails if one of them fails, with the exit code of one that did.
set -euo pipefail
ranks=$1
shift
export OMPI_COMM_WORLD_SIZE=$ranks OMPI_COMM_WORLD_LOCAL_SIZE=$ranks PMIX_NAMESPACE=launch_ranks.$$
started=()
for ((rank = 0; rank < ranks; ++rank)); do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_LOCAL_RANK=$rank "$@" &
  started+=($!)
done
outcome=0
for process in "${started[@]}"; do wait "$process" || outcome=$?; done
exit "$outcome"
