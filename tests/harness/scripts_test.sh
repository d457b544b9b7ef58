#!/bin/sh
# What can be said about the scripts without running them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
harness=$(cd "$here/../../harness" && pwd)
failed=0
problem() {
  failed=1
  echo "FAILED  $*"
}

for script in "$harness"/chaos.sh "$harness"/service.sh "$harness"/apply-config.sh; do
  [ -x "$script" ] || problem "$script cannot be executed"
  # An agent runs them by this line; images with busybox have no bash.
  [ "$(head -n 1 "$script")" = '#!/bin/sh' ] || problem "$script does not begin with #!/bin/sh"
done
for script in "$harness"/*.sh; do
  for shell in dash 'bash --posix' 'busybox ash'; do
    command -v "${shell%% *}" >/dev/null || continue
    $shell -n "$script" || problem "$script is no program for $shell"
  done
done
if command -v shellcheck >/dev/null; then
  shellcheck "$harness"/*.sh "$here"/*.sh || problem 'shellcheck has something to say'
elif [ "${HIVE_REQUIRE_ALL:-}" = 1 ]; then
  problem 'shellcheck is not installed, and HIVE_REQUIRE_ALL=1 allows no skipping'
else
  echo 'shellcheck is not installed; not looked at'
fi
[ "$failed" = 0 ] && echo 'ok      the scripts are POSIX sh, executable, and clean'
exit "$failed"
