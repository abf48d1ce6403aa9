#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/mpirun.sh NP PROGRAM ARGUMENT...
# Starts NP ranks on this machine, also as root, also on fewer cores than ranks, with Open MPI or MPICH.
# MPIRUN names the launcher (default mpirun). Exit status: the launcher's.
set -u
np=$1
shift
launcher=${MPIRUN:-mpirun}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# Every command starts without a launcher as a single rank, ten times as fast; tests/run/pinning.sh starts one with it.
[ "$np" != 1 ] || exec "$@"
# MPI closes its plug-ins at the end, and what they leave has no name any more that could be suppressed. Leaks of
# our own are looked for in runs without a launcher.
[ -z "${ASAN_OPTIONS:-}" ] || export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
case ${LAUNCHER_SAYS:=$($launcher --version 2>&1)} in
*"Open MPI"* | *OpenRTE* | *PRRTE*)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 \
        PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # Containers forbid one process to read another's memory; Open MPI then warns on every run.
    export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    # Ranks of one host meet in shared memory; opening every network that there might be takes half of a start.
    export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} OMPI_MCA_btl=${OMPI_MCA_btl:-^ofi,openib,tcp,usnic}
    # Nor are plug-ins opened for what we never do (windows), or for collectives of many hosts; nobody is to be recognised.
    export OMPI_MCA_osc=${OMPI_MCA_osc:-^ucx,rdma,sm,pt2pt,portals4,monitoring}
    export OMPI_MCA_coll=${OMPI_MCA_coll:-^adapt,han,hcoll,inter,monitoring,sm,sync}
    export PMIX_MCA_psec=${PMIX_MCA_psec:-native}
    # What ranks are told at their start comes by messages: files of shared memory cost each rank more than they save.
    export PMIX_MCA_gds=${PMIX_MCA_gds:-hash}
    # One rank that leaves with an error ends the others, and each then costs a second of waiting.
    export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-0}
    exec $launcher --oversubscribe --bind-to none -np "$np" "$@"
    ;;
*)
    exec $launcher -n "$np" "$@"
    ;;
esac
