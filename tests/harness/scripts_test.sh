#!/bin/sh
# What can be said about the scripts without running them; ./hive lint says more (shellcheck).
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
# A guard that documentation names must not vanish with a rename.
tests=$here/..
page=$here/../../docs/service-testing.md
# shellcheck disable=SC2016 # backticks of the page
guards=$(grep -o '`[A-Za-z]*\.[A-Z][A-Za-z]*`' "$page" | tr -d '`')
[ "$(printf '%s\n' "$guards" | wc -l)" -ge 4 ] || problem "$page names too few guards"
for guard in $guards; do
  grep -rqE "TEST(_F|_P)?\(${guard%.*}, ${guard#*.}\)" "$tests" --include='*_test.cpp' || problem "$page names the test $guard, which does not exist"
done
statements=$(sed -n '/^| what went wrong/,/^$/s/[^"]*"\([^"]*\)"[^"]*/\1\n/gp' "$page" | grep -v '^success$')
while IFS= read -r statement; do
  [ -n "$statement" ] || continue
  grep -qF "it '$statement'" "$here"/*_test.sh || problem "$page names the statement '$statement', which no suite makes"
done <<TEXT
$statements
TEXT

[ "$failed" = 0 ] && echo 'ok      the scripts are POSIX sh, and executable, and the guards that documentation names exist'
exit "$failed"
