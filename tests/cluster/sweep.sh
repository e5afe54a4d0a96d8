# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash Functions of scripts/slurm-check and scripts/parallel-check: the sweep that is computed in
# shards, the progress of a shard, its process, and the comparison at the end. To be sourced by a script that defines
#   root      the repository
#   part I    a function that prints the name of the file of cells of shard I

root=${root:?is set by the script that sources this}
shards=4
kvbench='' work='' scratch='' install=yes

step() { echo "== $* ($SECONDS s)"; }

# check_options SCRIPT ARGUMENTS...: [--no-install] [KVBENCH]
check_options() {
  local script=$1
  shift
  kvbench=$root/build/release/kvbench
  while [[ $# -gt 0 ]]; do
    case $1 in
      --no-install) install=no ;;
      -h | --help) sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$script"; exit 0 ;;
      -*) echo "$(basename "$script"): unknown option '$1' (see --help)" >&2; exit 2 ;;
      *) kvbench=$(realpath "$1") ;;
    esac
    shift
  done
  [[ -x $kvbench ]] || { echo "$(basename "$script"): $kvbench is not a program; build kvbench first" >&2; exit 2; }
}

# check_needs GROUP PROGRAM...: installs the group of scripts/setup, or with --no-install ends as skipped where a
# program is missing.
check_needs() {
  local group=$1 program
  shift
  [[ $install == no ]] || "$root/scripts/setup" "$group"
  for program in "$@"; do
    command -v "$program" >/dev/null ||
      { echo "skipped: $program is not installed; scripts/setup $group installs it"; exit 77; }
  done
}

# check_begin: makes the scratch folder, the sweep file, and the table of the unsplit sweep. The sweep is long enough
# that every shard is still running when it is disturbed.
check_begin() {
  scratch=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/kvbench-cluster.XXXXXX")")
  work="$scratch/100% of a sweep"
  mkdir "$work"
  cd "$work" || return
  cat >"the sweep.toml" <<TOML
name = "cluster-check"
[defaults]
traces = ["$root/traces/smollm2-135m.h5"]
layers = [2, 14, 26]
budgets = ["6.25%", "12.5%", "25%", "50%"]
methods = ["sink", "snapkv", "uniform", "balancekv", "quest", "chelsea", "kmeans", "subgen"]
[[run]]
name = "decode"
protocol = "decode"
[[run]]
name = "prefill"
protocol = "prefill"
TOML
  step "the unsplit sweep"
  "$kvbench" sweep "the sweep.toml" --no-times -o reference.csv --quiet
}

wait_for() {  # SECONDS COMMAND...: waits until COMMAND succeeds; returns 1 after SECONDS
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $deadline ]] || return 1
    sleep 0.2
  done
}

fail() { echo "FAILED: $*" >&2; exit 1; }

size_of() { stat -c %s "$(part "$1")" 2>/dev/null || echo 0; }
larger() { [[ $(size_of "$1") -gt $2 ]]; }

# all_begun: waits until every file of cells has its first frame, which describes the cells, and stores the sizes of the
# files.
all_begun() {
  local shard
  first_size=()
  for ((shard = 1; shard <= shards; shard++)); do
    wait_for 60 larger "$shard" 0 || fail "shard $shard did not begin"
    first_size[shard]=$(size_of "$shard")
  done
}

# in_the_middle I: waits until shard I has stored cells and is still running.
in_the_middle() {
  wait_for 60 larger "$1" "${first_size[$1]}" || fail "the cells of shard $1 did not grow"
  process_of "$1" >/dev/null || fail "shard $1 ended before it could be disturbed"
}

# process_of I: prints the process id of the kvbench that computes shard I in this folder. Shells with the same words on
# their command line are excluded.
process_of() {
  local folder pid
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    if [[ $(readlink "$folder/cwd" 2>/dev/null) == "$work" && $(cat "$folder/comm" 2>/dev/null) != *sh ]] &&
      tr '\0' '\n' <"$folder/cmdline" 2>/dev/null | grep -qx "$1/$shards"; then
      echo "$pid"
      return
    fi
  done
  return 1
}

kill_hard() {  # I
  kill -9 "$(process_of "$1")"
  echo "shard $1: kvbench killed (kill -9) after $(size_of "$1") bytes of cells"
}

compare() {  # TABLE
  [[ -f $1 ]] || fail "there is no merged table"
  cmp reference.csv "$1" || fail "the merged table differs from that of the unsplit sweep"
  echo "the merged table has the same bytes as that of the unsplit sweep: $(wc -l <reference.csv) lines"
}
