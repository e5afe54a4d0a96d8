# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Starts a private Slurm of one node on this machine: munged, slurmctld and slurmd with a key, ports and folders of
# their own, without systemd, cgroups or accounting, as root or as any user. To be sourced.
#   cluster_start FOLDER CPUS   afterwards sbatch, squeue and scontrol use this Slurm; returns 1 with the reason on
#                               stderr if it does not start
#   cluster_stop                ends every job and daemon that cluster_start started; does nothing if there are none
# Uses wait_for of sweep.sh.

cluster_folder='' cluster_daemons=()

# Slurm needs the name of the user, which may be missing in a container.
cluster_user() { id -un 2>/dev/null || { echo "slurm: the user id $(id -u) has no name here" >&2; return 1; }; }

cluster_free_ports() {
  python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))'
}

# proctrack/linuxproc and task/none avoid cgroups. config_overrides sets the number of processors, whatever the machine
# has, so that tasks run at the same time. cred_expire is also the time that a requeued job waits, 120 s by default.
cluster_config() {
  local host user ports
  host=$(uname -n) user=$(cluster_user)
  host=${host%%.*}
  read -ra ports < <(cluster_free_ports)
  cat <<CONF
ClusterName=kvbench
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$cluster_folder/munge/socket,cred_expire=5
StateSaveLocation=$cluster_folder/state
SlurmdSpoolDir=$cluster_folder/spool
SlurmctldPidFile=$cluster_folder/slurmctld.pid
SlurmdPidFile=$cluster_folder/slurmd.pid
SlurmctldLogFile=$cluster_folder/slurmctld.log
SlurmdLogFile=$cluster_folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=500
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=5
MinJobAge=3600
NodeName=$host NodeAddr=127.0.0.1 CPUs=$1 RealMemory=16000 State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=60 State=UP
CONF
}

# cluster_daemon NAME COMMAND...: starts COMMAND in the background, without detaching, so that its process id is known.
cluster_daemon() {
  local name=$1
  shift
  "$@" >"$cluster_folder/$name.out" 2>&1 &
  cluster_daemons+=("$!")
}

# cluster_fail MESSAGE: prints which daemon did not start, with the end of all logs.
cluster_fail() {
  echo "slurm: $1" >&2
  tail -n 5 "$cluster_folder"/*.out "$cluster_folder"/*.log >&2 2>/dev/null
  return 1
}

cluster_start() {
  cluster_folder=$1
  cluster_user >/dev/null || return 1
  (umask 077 && mkdir -p "$cluster_folder"/{state,spool} &&
    dd if=/dev/urandom of="$cluster_folder/munge.key" bs=128 count=1 status=none)
  mkdir -p "$cluster_folder/munge"
  export SLURM_CONF=$cluster_folder/slurm.conf
  cluster_config "$2" >"$SLURM_CONF"
  cluster_daemon munged munged --foreground --force --num-threads=2 --key-file="$cluster_folder/munge.key" \
    --socket="$cluster_folder/munge/socket" --pid-file="$cluster_folder/munged.pid" \
    --log-file="$cluster_folder/munged.log" --seed-file="$cluster_folder/munged.seed"
  wait_for 10 munge -n --socket="$cluster_folder/munge/socket" || cluster_fail "munged does not answer" || return 1
  cluster_daemon slurmctld slurmctld -D
  wait_for 20 scontrol ping || cluster_fail "slurmctld does not answer" || return 1
  cluster_daemon slurmd slurmd -D
  wait_for 20 cluster_idle || cluster_fail "the node does not become idle: $(sinfo -h -o '%T %E' 2>&1)" || return 1
}

cluster_idle() { [[ $(sinfo -h -o %T) == idle ]]; }

cluster_stop() {
  [[ ${#cluster_daemons[@]} -gt 0 ]] || return 0
  timeout 10 scancel --me 2>/dev/null || true
  wait_for 15 cluster_empty || echo "slurm: jobs did not end" >&2
  local i
  for ((i = ${#cluster_daemons[@]} - 1; i >= 0; i--)); do
    kill "${cluster_daemons[i]}" 2>/dev/null || true
    wait "${cluster_daemons[i]}" 2>/dev/null || true
  done
  cluster_daemons=()
}

cluster_empty() { [[ -z $(timeout 5 squeue -h --me) ]]; }
