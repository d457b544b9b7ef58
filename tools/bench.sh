#!/usr/bin/env bash
# ./hive bench: speed and memory next to other programs in the same run.
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive bench [OPTIONS] [NAME...]

Prints figures next to those of other programs, measured in turn in the same run, and whether each target is met.

  calls      a cheap tool over HTTP at 1, 16 and 64 callers, next to the MCP project's server-everything and to nginx
  mcp        the same tool over /mcp, next to the MCP project's servers and to bridges
  streams    memory of 1,000 open event streams
  lists      tools/list of 500 agents
  commands   run_command uptime, next to plain fork and exec
  fan-out    uptime on many machines at once, next to Ansible and to ssh with kept connections
  memory     the gateway with idle agents, and an agent
  audit      entries made durable and verified a second
  policy     who may do what: decisions a second for growing numbers of tokens and agents
  fleet      looking at fleets of 100, 1,000 and 10,000 agents: snapshot, pages, search, tools, what is kept on disk
  salvage    saving a container's root, next to cp -a, and the request that finds nothing to do (root)
  swarm      all four that follow, of a large fleet in one process; only where it is named
  online     what 10,000 agents cost a gateway that has nothing to do, and a call to one of them
  restart    how 10,000 agents come back from a gateway that was killed or stopped, and what callers see
  scattered  cheap calls over 100, 1,000 and 10,000 agents
  churn      what 20,000 connections that come and go leave in the gateway, and 10,000 failed dials in an agent
  network    a network that loses packets and forgets: time to notice and to recover (needs root; about 8 minutes)
  path       how much of a path of 100 ms and 100 Mbit/s a tunnel fills, and calls over it (needs root; a virtual machine)

  --quick          one short round
  --rounds N       rounds (default 3)
  --seconds N      length of one measurement (default 4)
  --agents N       size of the large fleet (default 10000)
  --connections N  for churn (default 20000)

Examples:
  ./hive bench --quick
  ./hive bench calls commands
TEXT
}

arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --quick) arguments+=("$1") ;;
    --rounds | --seconds)
      need_value "$1" $#
      [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "bench: $1 '$2' is not a number from 1 to 999"
      arguments+=("$1" "$2") && shift
      ;;
    --agents | --connections)
      need_value "$1" $#
      [[ $2 =~ ^[1-9][0-9]{1,6}$ ]] || usage_error "bench: $1 '$2' is not a number from 10 to 9999999"
      arguments+=("$1" "$2") && shift
      ;;
    swarm | online | restart | scattered | churn | network | path) arguments+=("$1") ;;
    calls | mcp | streams | lists | commands | fan-out | memory | audit | policy | salvage | fleet) arguments+=("$1") ;;
    *) usage_error "bench: unknown argument '$1'; see ./hive bench --help" ;;
  esac
  shift
done
prepare run bench
build_programs

node=$(hive_node) || node=$(command -v node) || die "Node.js is missing; run ./hive setup bench"
export HIVE_BIN=$hive_bin
exec "$node" "$HIVE_ROOT/bench/run.mjs" "${arguments[@]}"
