#!/usr/bin/env bash
# ./hive build: configures and compiles into build/PRESET.
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive build [OPTIONS] [TARGET...]

Compiles the programs into build/PRESET/bin. Without a target: everything of the preset.

  --preset NAME   release (default), debug, asan, tsan or fuzz
  --quiet         print only what fails
  HIVE_JOBS=N     compile N files at a time (default: what cores and memory allow)

Examples:
  ./hive build
  ./hive build --preset asan
  ./hive build myrmex myrmex-agent
TEXT
}

preset=release quiet=false targets=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --preset) need_value "$1" $# && preset=$2 && shift ;;
    --preset=*) preset=${1#*=} ;;
    --quiet) quiet=true ;;
    -*) usage_error "build: unknown option '$1'; see ./hive build --help" ;;
    *) targets+=("$1") ;;
  esac
  shift
done
case $preset in
  release | debug | asan | tsan | fuzz) ;;
  *) usage_error "build: no preset '$preset'; there are: release debug asan tsan fuzz" ;;
esac

case $preset in
  fuzz) prepare lint ;;
  *) prepare ;;
esac

cd "$HIVE_ROOT"
readonly folder=build/$preset log=build/$preset/hive-build.log
# A checkout that was moved or copied carries a cache that points to its old place; CMake refuses to use it.
if [ -f "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$HIVE_ROOT" "$folder/CMakeCache.txt"; then
  say "the checkout has moved: starting $folder afresh"
  rm -rf -- "$folder"
fi
mkdir -p "$folder"

# Two builds in one folder ruin each other, for example a test run beside a demo.
exec {lock}>"$folder/.hive-lock"
flock -n "$lock" || { say "waiting for another build in $folder" && flock "$lock"; }

cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2 && die "CMake could not configure $folder; its message stands above"; }

command=(cmake --build "$folder" --parallel "$(build_jobs)")
[ ${#targets[@]} -eq 0 ] || command+=(--target "${targets[@]}")
# show_progress: reads ninja's lines. A build of a few steps needs no words; one of minutes must show that it lives.
show_progress() {
  local line tenth shown=0
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] && ${BASH_REMATCH[2]} -gt 20 ]] || continue
    tenth=$((BASH_REMATCH[1] * 10 / BASH_REMATCH[2]))
    [ "$shown" != 0 ] || say "building $preset, ${BASH_REMATCH[2]} steps; the first time takes some minutes"
    [ "$shown" = 0 ] || [ "$tenth" -lt "$shown" ] || say "building $preset: ${tenth}0 %"
    [ "$shown" != 0 ] && [ "$tenth" -lt "$shown" ] || shown=$((tenth + 1))
  done
}

if $quiet; then
  "${command[@]}" >"$log" 2>&1 &
  build=$!
  tail --pid="$build" -n +1 -f -- "$log" 2>/dev/null | show_progress
  wait "$build" || { cat "$log" >&2 && die "the build of $preset failed; the compiler's message stands above"; }
else
  say "building $preset in $folder"
  start=$EPOCHSECONDS
  "${command[@]}" >&2 || die "the build of $preset failed; the compiler's message stands above"
  say "built $preset in $(seconds_since "$start") s: $folder/bin"
fi
