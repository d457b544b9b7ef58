#!/usr/bin/env bash
# ./hive lint: what can be said about the sources without running them.
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive lint [OPTIONS]

Checks the format of the C++ sources, the shell scripts, which room includes which, and runs clang-tidy over the sources
that differ from the main branch.

  --fix     write the right format into the sources
  --all     clang-tidy over every source (takes minutes)
  --quick   no clang-tidy

Examples:
  ./hive lint --fix
  ./hive lint --all
TEXT
}

fix=false tidy=changed
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --fix) fix=true ;;
    --all) tidy=all ;;
    --quick) tidy=none ;;
    *) usage_error "lint: unknown argument '$1'; see ./hive lint --help" ;;
  esac
  shift
done
prepare lint
cd "$HIVE_ROOT"
failed=()

# Tracked files and new ones that git does not ignore; what was deleted but not committed is no file.
sources() {
  git ls-files -z --cached --others --exclude-standard -- "$@" | while IFS= read -r -d '' file; do
    [ ! -f "$file" ] || printf '%s\0' "$file"
  done
}

say "format"
if $fix; then
  sources '*.cpp' '*.h' | xargs -0 -r clang-format-19 -i
else
  sources '*.cpp' '*.h' | xargs -0 -r -n 40 -P "$(nproc)" clang-format-19 --dry-run --Werror ||
    failed+=("format: run ./hive lint --fix")
fi

say "shell scripts"
scripts=()
while IFS= read -r -d '' file; do
  case $file in
    *.sh) scripts+=("$file") ;;
    *.*) ;;
    *) if head -c 64 -- "$file" | head -n 1 | grep -qaE '^#!.*\b(ba|da)?sh\b'; then scripts+=("$file"); fi ;;
  esac
done < <(sources)
[ ${#scripts[@]} -eq 0 ] || shellcheck -x "${scripts[@]}" || failed+=("shell scripts")

say "layers"
tools/check_layers || failed+=(layers)

if [ $tidy != none ]; then
  [ -f build/release/compile_commands.json ] || run_tool build --quiet
  if [ $tidy = all ]; then
    mapfile -d '' -t files < <(sources 'src/*.cpp' 'programs/*.cpp' 'tests/*.cpp' 'bench/*.cpp')
  else
    base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD)
    mapfile -d '' -t files < <(
      git diff -z --name-only --diff-filter=d "$base" -- '*.cpp'
      git ls-files -z --others --exclude-standard -- '*.cpp'
    )
  fi
  # Only what the release preset compiles has flags to check it with. They are g++'s: clang does not know all of them.
  known=()
  for file in "${files[@]}"; do
    ! grep -qF "\"$HIVE_ROOT/$file\"" build/release/compile_commands.json || known+=("$file")
  done
  say "clang-tidy over ${#known[@]} files"
  [ ${#known[@]} -eq 0 ] ||
    printf '%s\0' "${known[@]}" | xargs -0 -n 1 -P "$(nproc)" \
      clang-tidy-19 -p build/release --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null ||
    failed+=(clang-tidy)
fi

for what in "${failed[@]}"; do say "failed: $what"; done
[ ${#failed[@]} -eq 0 ] || die "lint found ${#failed[@]} kinds of faults; they stand above"
say "lint: nothing found"
