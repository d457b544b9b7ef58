#!/usr/bin/env bash
# ./hive up: a private hive on loopback, for trying things; the demo, the tests and the benchmarks stand on it.
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"
# shellcheck source=tools/hive_processes.sh
source "$HIVE_ROOT/tools/hive_processes.sh"
# shellcheck source=tools/hive_files.sh
source "$HIVE_ROOT/tools/hive_files.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive up [OPTIONS]

Starts a gateway and agents on 127.0.0.1 with fresh keys, free ports, a certificate and tokens under one folder, waits
until all agents are online and writes DIR/env. Where a hive was stopped (or something of it died), what is missing is
started again with the same keys, ports, tokens and audit log.

  --dir DIR             the folder (default: .hive in the checkout)
  --agents N            number of agents, agent-1 to agent-N (default 1, at most 2000)
  --agent-profile FILE  a JSON array of allowed_commands for agent-1, in place of the small default list
  --fresh               throw away what a stopped hive left in DIR, its audit log too

  HIVE_BIN=FOLDER       take the programs from another build

Examples:
  ./hive up && source .hive/env && myrmex status
  ./hive up --dir /tmp/big --agents 50
  ./hive down
TEXT
}

dir=$HIVE_ROOT/.hive agents='' profile='' fresh=false
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --dir) need_value "$1" $# && dir=$2 && shift ;;
    --dir=*) dir=${1#*=} ;;
    --agents) need_value "$1" $# && agents=$2 && shift ;;
    --agents=*) agents=${1#*=} ;;
    --agent-profile) need_value "$1" $# && profile=$2 && shift ;;
    --agent-profile=*) profile=${1#*=} ;;
    --fresh) fresh=true ;;
    *) usage_error "up: unknown argument '$1'; see ./hive up --help" ;;
  esac
  shift
done
[ -n "$dir" ] || usage_error "up: --dir is empty"
[[ -z $agents || $agents =~ ^(0|[1-9][0-9]{0,3})$ && $agents -le 2000 ]] ||
  usage_error "up: --agents '$agents' is not a number from 0 to 2000"
if [ -n "$profile" ]; then
  [ -r "$profile" ] || usage_error "up: --agent-profile: cannot read $profile"
  jq -e 'type == "array"' "$profile" >/dev/null 2>&1 || usage_error "up: --agent-profile: $profile is not a JSON array"
fi
prepare run
build_programs
for program in myrmex-gateway myrmex-agent myrmex; do
  [ -x "$hive_bin/$program" ] || die "$hive_bin/$program is missing; run ./hive build, or set HIVE_BIN"
done

umask 077
mkdir -p -- "$dir" 2>/dev/null || die "cannot make the folder $dir; choose another with --dir"
dir=$(cd -- "$dir" && pwd -P)
if [ ! -e "$dir/$hive_marker" ]; then
  [ -z "$(ls -A -- "$dir")" ] || die "$dir is not empty and not made by ./hive up; choose another folder with --dir"
  : >"$dir/$hive_marker"
fi
lock_hive "$dir"

agent_pid_files "$dir"
alive=0
for file in "${pid_files[@]}"; do
  process_of "$file" >/dev/null && alive=$((alive + 1))
done
gateway_alive=false
process_of "$dir/pids/gateway.pid" >/dev/null && gateway_alive=true

if $fresh && ! $gateway_alive && [ $alive -eq 0 ]; then
  rm -rf -- "$dir"/gateway "$dir"/agents "$dir"/log "$dir"/pids "$dir"/env
fi
exists=false
[ -f "$dir/gateway/ports" ] && exists=true
known_agents=1
[ ! -f "$dir/agents/count" ] || known_agents=$(<"$dir/agents/count")
agents=${agents:-$known_agents}

if $gateway_alive && [ $alive -ge "$agents" ]; then
  die "a hive already runs in $dir with $alive agents; source $dir/env to use it, or stop it: ./hive down --dir $dir"
fi
if $gateway_alive && [ "$agents" -gt "$known_agents" ]; then
  die "the hive in $dir runs with fewer agents; stop it first: ./hive down --dir $dir"
fi

started=()
# give_up REASON: shows the logs' ends, stops what this run has started, and fails.
give_up() {
  local log
  for log in "$dir/log/gateway.log" "${@:2}"; do
    [ -s "$log" ] || continue
    say "the end of $log:"
    tail -n 15 -- "$log" >&2
  done
  [ ${#started[@]} -eq 0 ] || stop_processes 5 "${started[@]}"
  die "$1"
}
trap 'trap - INT TERM; give_up "interrupted"' INT TERM

# api PATH: asks the gateway over its plaintext loopback port. The token goes through a file that only we can read.
api() {
  curl --silent --show-error --fail --noproxy '*' --max-time 5 -H "@$dir/gateway/tokens/admin.header" \
    "http://127.0.0.1:$http_port$1"
}

# start_gateway: 0 when it is ready, 1 when a port was taken in the meantime.
start_gateway() {
  local pid_file=$dir/pids/gateway.pid log=$dir/log/gateway.log deadline=$((EPOCHSECONDS + 90)) before
  : >>"$log"
  before=$(stat -c %s -- "$log")
  start_process "$pid_file" "$log" "$hive_bin/myrmex-gateway" --config "$dir/gateway/gateway_config.json"
  started+=("$pid_file")
  until curl --silent --fail --noproxy '*' --max-time 2 --output /dev/null "http://127.0.0.1:$http_port/readyz"; do
    if ! process_of "$pid_file" >/dev/null; then
      ! tail -c "+$((before + 1))" -- "$log" | grep -qi 'address already in use' || return 1
      give_up "the gateway ended at its start"
    fi
    [ "$EPOCHSECONDS" -lt "$deadline" ] || give_up "the gateway was not ready within 90 s"
    sleep 0.05
  done
}

start=$EPOCHREALTIME
mkdir -p "$dir"/{gateway/state,gateway/tokens,agents,log,pids}
make_keys "$dir" "$agents"

if ! $gateway_alive; then
  if $exists; then
    read -r ssh_port https_port http_port <"$dir/gateway/ports"
    start_gateway || give_up "a port of this hive is taken by another program; stop that, or start over with --fresh"
  else
    for attempt in 1 2 3 4 5; do
      choose_ports ssh_port https_port http_port
      write_gateway_config "$dir" "$ssh_port" "$https_port" "$http_port"
      start_gateway && break
      [ "$attempt" -lt 5 ] || give_up "no free port found in five attempts"
    done
    printf '%s %s %s\n' "$ssh_port" "$https_port" "$http_port" >"$dir/gateway/ports"
  fi
else
  read -r ssh_port https_port http_port <"$dir/gateway/ports"
fi

for ((i = 1; i <= agents; i++)); do
  folder=$dir/agents/agent-$i
  if [ ! -f "$folder/agent_config.json" ] || { [ $i = 1 ] && [ -n "$profile" ]; }; then
    write_agent_config "$dir" "agent-$i" "$ssh_port" "$([ $i = 1 ] && echo "$profile")"
  fi
  pid_file=$dir/pids/agent-$i.pid
  [ -e "$pid_file" ] && process_of "$pid_file" >/dev/null && continue
  start_process "$pid_file" "$dir/log/agent-$i.log" "$hive_bin/myrmex-agent" --config "$folder/agent_config.json"
  started+=("$pid_file")
done
printf '%s\n' "$agents" >"$dir/agents/count"
write_env "$dir" "$ssh_port" "$https_port" "$http_port"

deadline=$((EPOCHSECONDS + 90 + agents / 10))
online=0
until [ "$online" -ge "$agents" ]; do
  online=$(api /api/status 2>/dev/null | jq '[.agents[] | select(.online)] | length' 2>/dev/null) || online=0
  online=${online:-0}
  [ "$online" -lt "$agents" ] || break
  for file in "${started[@]}"; do
    process_of "$file" >/dev/null ||
      give_up "$(basename -- "$file" .pid) ended at its start" "$dir/log/$(basename -- "$file" .pid).log"
  done
  [ "$EPOCHSECONDS" -lt "$deadline" ] ||
    give_up "only $online of $agents agents came online in time" "$dir/log/agent-1.log"
  sleep 0.1
done

took=$(awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }')
printf -v shown %q "$dir"
option=" --dir $shown"
[ "$dir" != "$HIVE_ROOT/.hive" ] || option=''
[ "$dir" != "$PWD/.hive" ] || shown=.hive
cat <<TEXT
The hive is up: $agents agents online after $took s.
  SSH    127.0.0.1:$ssh_port
  HTTPS  https://127.0.0.1:$https_port
  HTTP   http://127.0.0.1:$http_port
  logs   $dir/log

Go on with:
  source $shown/env
  myrmex status
  myrmex call agent-1__run_command name=uptime
  ./hive down$option
TEXT
