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
  export PYTHONPATH=python
fi
cmake --preset release -DKVBENCH_KVDUMP=ON -DKVBENCH_LLAMA_PREFIX="$KVBENCH_LLAMA_PREFIX" --log-level=WARNING
cmake --build --preset release --target kvdump kveval kvbench -j "$(nproc)"

# measure RESULT FLAGS...: kveval writes RESULT, a row per document, unless it is there, from where it was interrupted.
measure() {
  local result=$1 status=0
  if [ -e "$result" ]; then return; fi
  echo "${0##*/}: $result"
  build/release/kveval "${@:2}" --per-document --no-times --resume -o "$result" || status=$?
  if [ "$status" -gt 1 ]; then exit "$status"; fi   # 1: a row failed, and the table says which
}
