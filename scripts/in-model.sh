# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Sourced by the scripts that measure inside a model. Installs the packages that they need, fetches SmolLM2-135M (its
# path: KVBENCH_MODEL) and llama.cpp, and builds the programs.
#   . scripts/in-model.sh [hf]     hf: gemma3-270m ($gemma), Qwen2.5-Coder-0.5B ($qwen) and a Python with PyTorch and
#                                  transformers ($python) as well
scripts/setup build model
eval "$(scripts/fetch-model)"
if [ "${1:-}" = hf ]; then
  scripts/fetch-model --hf
  gemma=$(scripts/fetch-model --gemma)
  qwen=$(scripts/fetch-model --qwen)
  python=$(scripts/fetch-model --folder)/torch/bin/python
fi
export PYTHONPATH=python:scripts   # kvbench and put_part
cmake --preset release -DKVBENCH_KVDUMP=ON -DKVBENCH_LLAMA_PREFIX="$KVBENCH_LLAMA_PREFIX" --log-level=WARNING
cmake --build --preset release --target kvdump kveval kvbench -j "$(nproc)"

# measure RESULT FLAGS...: kveval writes RESULT, a row per document, unless it is there, from where it was interrupted.
measure() {
  local result=$1 status=0
  if [ -e "$result" ]; then return; fi
  echo "${0##*/}: $result" >&2
  build/release/kveval "${@:2}" --per-document --no-times --resume -o "$result" || status=$?
  if [ "$status" -gt 1 ]; then exit "$status"; fi   # 1: a row failed, and the table says which
}

# methods_of FORMATS EVICTIONS BUDGET: writes $out/methods.toml for --sweep; formats hold all tokens.
methods_of() {
  mkdir -p "$out"
  cat >"$out/methods.toml" <<END
[defaults]
traces = ["none.h5"]   # of replays

[[run]]
name = "formats"
methods = ["${1//,/\", \"}"]
budgets = ["100%mem"]

[[run]]
name = "evictions"
methods = ["${2//,/\", \"}"]
budgets = ["$3"]
END
}

# table TITLE REPORT: the table of this title in a report (.md).
table() {
  awk -v title="**$1**" '$0 == title { on = 1; next } on && /^\|/ { print; rows++ } on && rows && !/^\|/ { exit }' "$2"
}

# tokens MODEL TEXT...: sets the array ids to the flags --ids of these texts; their token ids are beside them.
tokens() {
  local text own
  ids=()
  for text in "${@:2}"; do
    own=${text%.txt}.ids
    [ -e "$own" ] || build/release/kvdump "$1" --text "$text" --tokens-only -q -o "$own"
    ids+=(--ids "$own")
  done
}

# documents OUT [FIRST]: $each documents of each of five kinds from number FIRST (0) on, of more than $context tokens,
# without their first lines; texts of Debian packages that scripts/setup installs, of which each kind has five.
documents() {
  local licences=/usr/share/common-licenses headers manual library number first=${2:-0}
  local -a names
  headers=$(echo /usr/include/c++/*/bits) manual=$(echo /usr/share/cmake-*/Help/manual)
  library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
  mkdir -p "$1"
  bible -f gen1:1-50:26 </dev/null | cut -d' ' -f2- >"$1/genesis"   # public domain
  piece() { head -c $(($2 + 8 * context)) "$1" | tail -c $((8 * context)) | tail -n +2 >"$3.txt"; }
  for number in $(seq "$first" $((first + each - 1))); do
    piece "$1/genesis" $((25000 * number)) "$1/prose$number"
  done
  local -A files=([licence]="$licences/GPL-3 $licences/MPL-2.0 $licences/GFDL-1.3 $licences/LGPL-2.1 $licences/MPL-1.1"
    [cpp]="$headers/stl_algo.h $headers/hashtable.h $headers/stl_tree.h $headers/deque.tcc $headers/basic_string.h"
    [python]="$library/argparse.py $library/inspect.py $library/tarfile.py $library/typing.py $library/ast.py"
    [manual]="$manual/ctest.1.rst $manual/cmake-generator-expressions.7.rst $manual/cmake-file-api.7.rst
      $manual/cmake-presets.7.rst $manual/cmake-buildsystem.7.rst")
  for kind in "${!files[@]}"; do
    read -r -d "" -a names <<<"${files[$kind]}" || true
    for number in $(seq "$first" $((first + each - 1))); do piece "${names[number]}" 3000 "$1/$kind$number"; done
  done
}
