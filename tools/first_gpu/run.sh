#!/usr/bin/env bash
# One slice of the first contact with a GPU: bash tools/first_gpu/run.sh SLICE, in the root of the tree.
#
# `python tools/first_gpu/prepare.py` has put wheels into .whl before. Evidence goes to ev/, and at the end, or when the
# time is over, as one archive to $OUT, from where `python tools/first_gpu/prepare.py home ARCHIVE` takes it into the
# tree. Nothing here sets clocks, power, MIG, or resets the card. DRY=1 says what would run. DEVICE=cpu tries all of it
# where there is no GPU: at the small sizes, and as few replicates as decide anything.
set -euo pipefail
cd "$(dirname "$0")/../.."
slice="${1:?which slice: 1 to 6, or 7 if time is left}"
out="${OUT:-.}"
device="${DEVICE:-cuda}"
budget="${BUDGET:-520}"  # seconds, of the third slice
replicates="$([[ "$device" == cuda ]] && echo 6 || echo 4)"

say() { printf '\n== %s\n' "$*"; }

# timed SECONDS COMMAND...: verify takes SIGTERM for Ctrl-C, and what was measured stays written.
timed() {
  local seconds=$1
  shift
  say "at most $seconds s: $*"
  [[ -n "${DRY:-}" ]] && return
  timeout "$seconds" "$@" || echo "FAIL  exit $?: $*"
}

# measured TIMEOUT BUDGET ARGUMENTS...
measured() {
  local seconds=$1 budget=$2
  shift 2
  timed "$seconds" python3 -m torchlint verify --device "$device" --evidence ev --stale --max-replicates "$replicates" \
    --budget "${budget}s" --raw "$out/raw-$slice.json.gz" "$@"
}

# size NAME: what stands for it where there is no GPU
size() {
  printf -- '--size\n%s\n' "$([[ "$device" == cuda ]] && echo "$1" || echo smoke)"
}

# on_cuda SECONDS COMMAND...: what only a GPU can do
on_cuda() {
  if [[ "$device" == cuda ]]; then timed "$@"; else say "on a GPU: ${*:2}"; fi
}

rules() {
  local rule
  for rule in "$@"; do printf -- '--rule\n%s\n' "$rule"; done
}

home() {
  mkdir -p "$out"
  tar czf "$out/ev.tgz" ev && say "evidence is in $out/ev.tgz"
  [[ -n "${DRY:-}" ]] || python3 tools/first_gpu/look.py ev
}

if [[ -z "${DRY:-}" ]]; then
  python3 -m pip install -q --no-index --no-deps --no-cache-dir --upgrade --target .site .whl/*.whl
  # Without PYTHONSAFEPATH, `-m torchlint` in this folder is the source, which lacks `torchlint.rules`.
  export PYTHONPATH="$PWD/.site" PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
  mkdir -p ev "$out"
  trap home EXIT
  # Where torch has no compiled files, or such as do not fit, each process compiles it anew, for 8 s in place of 2.
  export PYTHONPYCACHEPREFIX="${TMPDIR:-/tmp}/torchlint-compiled"
  env -u PYTHONDONTWRITEBYTECODE \
    python3 -c 'import torch, torch._dynamo, torch._inductor.compile_fx, torch.profiler, torch.utils.flop_counter'
fi

case "$slice" in
  1) # does each part work?
    on_cuda 20 nvidia-smi --format=csv --query-gpu=name,driver_version,persistence_mode,compute_mode,mig.mode.current,clocks.sm,clocks.max.sm,power.limit
    timed 5 df -h . /dev/shm
    on_cuda 60 python3 tools/first_gpu/probe.py start
    timed 20 python3 -c 'from torchlint.verify.placement import available_tier as tier; print("tier", tier())'
    on_cuda 40 python3 tools/first_gpu/probe.py profiler
    on_cuda 40 python3 tools/first_gpu/probe.py profiler --empty-session-first
    on_cuda 30 python3 tools/first_gpu/probe.py noise
    timed 150 python3 -m torchlint verify --device "$device" --evidence ev --max-replicates 4 --budget 140s --rule TL318 $(size gpu)
    ;;
  2) # can times be believed, and does the product's promise hold?
    timed 260 python3 -m torchlint verify --device "$device" --self-check --max-replicates 4 --budget 240s
    timed 150 python3 -m torchlint verify tools/first_gpu/program/bench_first.py --device "$device" --unsafe-fixes --max-replicates 4 --budget 140s -n
    measured 130 90 $(size gpu) $(rules TL314)
    ;;
  3) # what all pairs compute and ask for, several at once; the slices after it only time them
    timed 60 python3 -m torchlint verify --device "$device" --evidence ev --stale --phase numerics,counts $(size gpu) --rule ALL --plan
    measured "$((budget + 20))" "$budget" --phase numerics,counts $(size gpu) --rule ALL
    ;;
  4) # waits
    measured 490 470 $(size gpu) $(rules TL306 TL302 TL301 TL309 TL316 TL322)
    ;;
  5) # kernels, precision, and the pairs that float64 and TF32 decide
    measured 490 470 $(size gpu) $(rules TL601 TL505 TL624 TL508 TL510 TL801)
    ;;
  6) # loaders, copies, memory
    measured 430 410 $(size gpu) $(rules TL103 TL106 TL205 TL201 TL402 TL511)
    ;;
  7) # only if over four minutes are left: where fixes should not pay, and the simulated device against the real one
    measured 200 180 $(size nohelp) $(rules TL505 TL601)
    [[ -n "${DRY:-}" ]] || export PYTHONPATH="$PWD/.site:$PWD/tests"
    on_cuda 200 python3 -m pytest -q -c /dev/null --rootdir . tests/verify/test_calibration.py
    ;;
  *)
    echo "no slice is called $slice" >&2
    exit 2
    ;;
esac
