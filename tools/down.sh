#!/usr/bin/env bash
# ./hive down: stops exactly what ./hive up has started in a folder.
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"
# shellcheck source=tools/hive_processes.sh
source "$HIVE_ROOT/tools/hive_processes.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive down [OPTIONS]

Stops the agents and then the gateway that ./hive up has started. Keys, tokens, logs and the audit log stay, so that
./hive up goes on where it was. Stopping what does not run any more is no error.

  --dir DIR   the folder (default: .hive in the checkout)
  --remove    delete the folder afterwards, the audit log too

Examples:
  ./hive down
  ./hive down --dir /tmp/big --remove
TEXT
}

dir=$HIVE_ROOT/.hive remove=false
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --dir) need_value "$1" $# && dir=$2 && shift ;;
    --dir=*) dir=${1#*=} ;;
    --remove) remove=true ;;
    *) usage_error "down: unknown argument '$1'; see ./hive down --help" ;;
  esac
  shift
done
[ -n "$dir" ] || usage_error "down: --dir is empty"
if [ ! -e "$dir" ]; then
  say "nothing runs in $dir"
  exit 0
fi
[ -e "$dir/$hive_marker" ] || die "$dir is not a folder of ./hive up"
dir=$(cd -- "$dir" && pwd -P)
lock_hive "$dir"

agent_pid_files "$dir"
alive=0
for file in "${pid_files[@]}" "$dir/pids/gateway.pid"; do
  process_of "$file" >/dev/null && alive=$((alive + 1))
done
# Agents first: they end what they run, and the gateway records how that ended.
stop_processes 10 "${pid_files[@]}"
stop_processes 20 "$dir/pids/gateway.pid"
if $remove; then
  rm -rf -- "$dir"
fi
say "stopped $alive processes of $dir"
