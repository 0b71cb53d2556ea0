#!/bin/sh
# On a GPU runner: check the kernels, then measure the commits of a range beside llama.cpp. Nothing is fetched or built but the
# kernels themselves; asv, cupti-python and a libllama must be there (README, "On a GPU").
#
#   RANGE=A..B        commits to measure (those that changed the engine); or COMMITS_FILE=file with a commit a line
#   MODEL=file.gguf   weights; default: random blocks in Qwen2.5-7B's shape and Q4_K_M mix, written on first use
#   CHECK=0           skip the kernels' own checks
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
MODEL=${MODEL:-.cache/models/qwen2.5-7b-shape-q4_k_m.gguf}
if [ ! -f "$MODEL" ]; then
  echo "gpu_history: writing $MODEL (4.7 GB)"
  mkdir -p "$(dirname "$MODEL")"
  "$PYTHON" -m minfer synth --shape qwen2.5-7b --mix q4_k_m "$MODEL"
fi
[ "${CHECK:-1}" = 0 ] || "$PYTHON" tools/gpu_check.py tests
export MINFER_MODEL="$(realpath "$MODEL")"
if [ -n "${COMMITS_FILE:-}" ]; then
  exec "$PYTHON" -m benchmarks bench --only "$COMMITS_FILE"
fi
exec "$PYTHON" -m benchmarks bench --range "${RANGE:-HEAD~10..HEAD}"
