#!/usr/bin/env bash
# ./hive demo: the main job on a real nginx, through the gateway, step by step, each step checked.
set -uo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"
# shellcheck source=tools/demo_lib.sh
source "$HIVE_ROOT/tools/demo_lib.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive demo [OPTIONS]

Starts a private hive and an nginx on free loopback ports, then breaks and repairs it through the gateway: every command
is one that you could type, and what came back stands below it. Ends with exit code 0 only if every step held, and leaves
no process, file or rule behind.

  --keep       leave everything running and say how to go on
  --stop DIR   end what a demo with --keep has left
  --dir DIR    the folder to work in (default: a new one under /tmp); must not exist

  HIVE_BIN=FOLDER   take the programs from another build

Examples:
  ./hive demo
  ./hive demo --keep
TEXT
}

keep=false dir='' stop_dir=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --keep) keep=true ;;
    --dir) need_value "$1" $# && dir=$2 && shift ;;
    --dir=*) dir=${1#*=} ;;
    --stop) need_value "$1" $# && stop_dir=$2 && shift ;;
    --stop=*) stop_dir=${1#*=} ;;
    *) usage_error "demo: unknown argument '$1'; see ./hive demo --help" ;;
  esac
  shift
done

if [ -n "$stop_dir" ]; then
  [ -e "$stop_dir/$demo_marker" ] || die "$stop_dir is not a folder of ./hive demo"
  DIR=$(cd -- "$stop_dir" && pwd -P)
  port=$(<"$DIR/$demo_marker")
  clean_up || die "not everything of the demo could be ended; see above"
  say "the demo in $DIR is gone"
  exit 0
fi

prepare run demo
build_programs
# The commands of ours that follow need not look again.
export HIVE_READY=1
NGINX=$(readlink -f -- "$(PATH=$PATH:/usr/sbin:/sbin command -v nginx)") || die "nginx is missing; run ./hive setup demo"
CURL=$(command -v curl) || die "curl is missing; run ./hive setup demo"
umask 077
if [ -n "$dir" ]; then
  [ ! -e "$dir" ] || die "$dir exists; the demo needs a folder of its own"
  mkdir -p -- "$dir" || die "cannot make the folder $dir"
  DIR=$(cd -- "$dir" && pwd -P)
else
  DIR=$(mktemp -d /tmp/hive-demo.XXXXXX) || die "cannot make a folder under /tmp; choose one with --dir"
fi
# The folder's name goes into patterns and into files whose words are split at blanks.
[[ $DIR =~ ^[A-Za-z0-9/._-]+$ ]] || { rmdir -- "$DIR"; die "the folder $DIR has characters other than letters, digits and /._-; choose another with --dir"; }

# Whatever ends this script ends the demo. A second Ctrl-C does not interrupt the tidying up.
# shellcheck disable=SC2317 # called by the trap
leave() {
  local status=$?
  trap '' INT TERM HUP
  trap - EXIT
  if $keep && [ "$status" = 0 ]; then exit 0; fi
  [ -z "${interrupted-}" ] || printf '\n%sinterrupted by %s: tidying up%s\n' "$bold" "$interrupted" "$plain"
  clean_up || status=1
  exit "$status"
}
trap leave EXIT
trap 'interrupted=Ctrl-C; exit 130' INT
trap 'interrupted=SIGTERM; exit 143' TERM
trap 'interrupted=SIGHUP; exit 129' HUP

choose_free_port
echo "$port" >"$DIR/$demo_marker"
tc_before=$(tc qdisc show 2>/dev/null)
write_demo_files

title "A hive and an nginx, made for this demo in $DIR"
if ! run_tool up --dir "$DIR/hive" --agents 1 --agent-profile "$DIR/profile.json" >"$DIR/up.log" 2>&1; then
  cat "$DIR/up.log" >&2
  die "the hive did not come up; its output stands above"
fi
# shellcheck source=/dev/null
source "$DIR/hive/env"
note "gateway $MYRMEX_URL, agents dial in on $MYRMEX_SSH_ADDR, audit log $MYRMEX_AUDIT_LOG"

tool=agent-1__run_command
chaos=$DIR/harness/chaos.sh service=$DIR/harness/service.sh apply=$DIR/harness/apply-config.sh
pidfile=$DIR/nginx/nginx.pid url=http://127.0.0.1:$port
workers=$(nproc)
[ "$workers" -le 64 ] || workers=64

step "Start the service"
run 0 "name=$service" args=nginx args=start
expect "nginx: started, pid"

step "Is there a way back? Proved before anything is broken"
run 0 "name=$service" args=nginx args=check
expect "the restart path holds"

step "The service is healthy"
run 0 name=curl args=-sS args=--max-time args=3 "args=$url/healthz"
expect_healthy

step "Break it"
run 0 "name=$chaos" args=kill args=TERM "args=$pidfile"
expect "sent SIGTERM to pid"

step "The outage is seen: connection refused"
run 4 name=curl args=-sS args=--max-time args=3 "args=$url/healthz"
expect "exit status 7"

step "Bring it back"
run 0 "name=$service" args=nginx args=restart
expect "nginx: restarted, pid"

step "The service is healthy again"
run 0 name=curl args=-sS args=--max-time args=3 "args=$url/healthz"
expect_healthy

step "Try another configuration: tested, reloaded, verified, or not at all"
run 0 "name=$apply" args=no-cache
expect "variant no-cache is in place"
expect "nginx: reloaded, pid"

step "The change is seen in the answer"
run 0 name=curl args=-sS args=-i args=--max-time args=3 "args=$url/healthz"
expect "X-Variant: no-cache"

step "How busy is the host before the next fault?"
metrics
before=$cpu

step "A fault that ends by itself: $workers busy workers for 60 s"
run 0 "name=$chaos" args=cpu args=60 "args=$workers"
expect "detached; reverts by itself"
fault=$(grep -o 'cpu-[0-9]*' <<<"$output" | head -n 1)

step "The fault is seen, with the time it has left"
run 0 "name=$chaos" args=status
expect "$fault "
expect " s left"

step "And it is seen in the host's metrics"
await_busy "$before"

step "End it early"
run 0 "name=$chaos" args=stop "args=$fault"
expect "$fault: stopped early"

step "What is not on the list does not run"
run 3 name=bash args=-c args=whoami
expect_refusal
step "A listed command with other arguments does not run"
run 3 "name=$chaos" args=kill args=TERM args=/run/sshd.pid
expect_refusal
step "Nor does a probe of another host"
run 3 name=curl args=-sS args=--max-time args=3 args=http://192.0.2.1:80/healthz
expect_refusal
step "Nor does what a shell would make of it"
run 3 "name=$service" args=nginx 'args=status;id'
expect_refusal

step "Every step stands in a signed log that verifies"
audit

summary
finish_status=$?
if $keep && [ "$finish_status" = 0 ]; then
  how_to_go_on
  exit 0
fi
keep=false
title "Tidying up"
clean_up || finish_status=1
if [ "$(tc qdisc show 2>/dev/null)" != "$tc_before" ]; then
  note "${red}the network rules are not what they were$plain"
  finish_status=1
fi
[ -e "$DIR" ] || note "no process, file or rule is left"
exit "$finish_status"
