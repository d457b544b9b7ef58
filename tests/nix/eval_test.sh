#!/usr/bin/env bash
# The NixOS modules parse, evaluate, and say the same as the units of packaging/systemd.
set -u
here=$(cd "$(dirname -- "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
unit=$root/packaging/systemd/hive-priv.service
if ! command -v nix-instantiate >/dev/null; then
  if [ "${HIVE_REQUIRE_ALL-}" = 1 ]; then
    echo 'FAILED: nix-instantiate is not installed (apt-get install nix-bin), and HIVE_REQUIRE_ALL=1 allows no skipping'
    exit 1
  fi
  echo 'SKIPPED: nix-instantiate is not installed (apt-get install nix-bin)'
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
# A store of its own, so that nothing of this machine's is asked or changed.
export NIX_STORE_DIR=$work/store NIX_STATE_DIR=$work/state NIX_LOG_DIR=$work/log HOME=$work NIX_REMOTE='' NIX_CONF_DIR=$work
echo 'build-users-group =' >"$work/nix.conf"
failed=0
problem() {
  echo "FAILED  $*"
  failed=1
}
for file in "$root"/nix/*/*.nix "$here"/*.nix; do
  nix-instantiate --parse "$file" >/dev/null || problem "$file does not parse"
done
value=$(nix-instantiate --eval --strict --json "$here/eval.nix") || problem 'the modules do not evaluate'
# is KEY EXPECTED
is() {
  local got
  got=$(jq -r ".$1" <<<"$value")
  if [ "$got" = "$2" ]; then echo "ok      $1"; else problem "$1 is '$got', not '$2'"; fi
}
is off true
is listen /run/hive/priv.sock
is mode 0660
is group hive-core
is start '/package/bin/hive-priv serve'
is dropInPath 'lib/systemd/system/container@.service.d/50-hive-check-rootfs.conf'
is dropInText $'[Service]\nExecStartPre=/package/bin/hive-priv check-rootfs %i'
is uid 1000
is link 'L /home/iris/.local/state/nix - - - - /nix/var/nix/profiles/per-user/iris'

# Keys that come several times stand in one line, as the module has them.
settings_of_unit() {
  sed -n '/^\[Service\]/,$p' "$unit" | grep -E '^[A-Z][A-Za-z]*=' | grep -v '^ExecStart=' |
    awk -F= '{ key = $1; sub(/^[^=]*=/, ""); if (!(key in all)) order[++n] = key; all[key] = all[key] == "" ? $0 : all[key] " " $0 }
             END { for (i = 1; i <= n; i++) print order[i] "=" all[order[i]] }' | LC_ALL=C sort
}
difference=$(diff <(settings_of_unit) <(jq -r .settings <<<"$value" | grep -v '^ExecStart=' | LC_ALL=C sort))
if [ -z "$difference" ]; then echo 'ok      the sandbox is that of the unit'; else problem "the sandbox differs from that of the unit:"$'\n'"$difference"; fi
exit $failed
