# shellcheck shell=bash
# What the steps of the demo are made of. Sourced by demo.sh, after hive_lib.sh.
# shellcheck disable=SC2154 # DIR, port, NGINX, CURL, tool: set by demo.sh

# Tells a folder that the demo has made, and holds the port of its nginx.
# shellcheck disable=SC2034 # read by demo.sh
readonly demo_marker=.hive-demo

if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
  bold='' dim='' green='' red='' plain=''
fi

steps=0 failed_steps=()
declare -A expected_outcomes=([success]=0 [failure]=0 [denied]=0)

title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }

# A step is a command, what came back, and one line that says what held, or which parts did not.
held='' broken=''
step() {
  end_step
  steps=$((steps + 1))
  step_text=$*
  printf '\n%s%2d  %s%s\n' "$bold" "$steps" "$*" "$plain"
}
end_step() {
  [ -z "$held" ] || printf '    %sok%s  %s\n' "$green" "$plain" "$held"
  if [ -n "$broken" ]; then
    printf '    %sFAILED%s  %s\n' "$red" "$plain" "$broken"
    failed_steps+=("$steps  $step_text: $broken")
  fi
  held='' broken=''
}

# check TEXT: the status of the command before says whether TEXT holds.
check() {
  if [ $? -eq 0 ]; then
    held+=${held:+, }$1
  else
    broken+=${broken:+, }"not: $1"
  fi
}

# show_command WORDS...: as a person would type it.
show_command() {
  local word text=''
  for word; do
    # Quotes only where a shell would read something into the word.
    [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]] || word=$(sh_quote "$word")
    text+=" $word"
  done
  printf '    %s$%s%s\n' "$dim" "$text" "$plain"
}

# show_output: what came back, up to twelve lines.
show_output() {
  local lines
  lines=$(wc -l <<<"$output")
  head -n 12 <<<"$output" | sed 's/\r$//; s/^/    /; s/ *$//'
  [ "$lines" -le 12 ] || printf '    %s(%d more lines)%s\n' "$dim" "$((lines - 12))" "$plain"
}

# command_is EXIT_CODE WORDS...: runs a command of the CLI, shows it and what came back, and checks its exit code.
command_is() {
  local wanted=$1 status=0
  shift
  show_command "$@"
  output=$("$@" 2>&1 </dev/null) || status=$?
  show_output
  [ "$status" -eq "$wanted" ]
  check "exit code $wanted$([ "$status" -eq "$wanted" ] || echo " but $status")"
}

# run EXIT_CODE WORDS...: a command on the agent, through the gateway. The exit code is also the outcome that the audit log
# must show.
run() {
  local outcome
  case $1 in
    0) outcome=success ;;
    3) outcome=denied ;;
    *) outcome=failure ;;
  esac
  expected_outcomes[$outcome]=$((expected_outcomes[$outcome] + 1))
  command_is "$1" myrmex call "$tool" "${@:2}"
}

# expect TEXT: stands in what came back.
expect() {
  [[ $output == *"$1"* ]]
  check "\"$1\""
}

# expect_healthy: the service's answer, however the CLI lays it out.
expect_healthy() {
  [[ ${output//[[:space:]]/} == '{"status":"ok"}' ]]
  check "healthy"
}

# expect_refusal: the agent's own allowlist said no.
expect_refusal() {
  [[ $output == *'is not in the approved allowlist'* || $output == *'do not match the approved pattern'* ]]
  check "refused by the agent's allowlist"
}

# read_cpu: sets cpu, a whole percentage; fails when there is none.
read_cpu() {
  expected_outcomes[success]=$((expected_outcomes[success] + 1))
  output=$(myrmex call agent-1__get_metrics -o json 2>&1 </dev/null) &&
    cpu=$(jq -e '.cpu_usage_percent | floor' <<<"$output" 2>/dev/null)
}

metrics() {
  show_command myrmex call agent-1__get_metrics -o json
  cpu=''
  read_cpu
  check "cpu_usage_percent: ${cpu:-unknown}"
}

# await_busy BEFORE: the usage rises above what it was, or to nearly all. The agent's figure is the mean since the call
# before, so it may take a few looks.
await_busy() {
  local deadline=$((EPOCHSECONDS + 20)) busy=false
  show_command myrmex call agent-1__get_metrics -o json
  cpu=''
  until $busy || [ "$EPOCHSECONDS" -ge "$deadline" ]; do
    sleep 0.5
    read_cpu || continue
    if [ "$cpu" -ge 90 ] || [ "$cpu" -ge $((${1:-0} + 30)) ]; then busy=true; fi
  done
  $busy
  check "cpu_usage_percent: ${cpu:-unknown}, before the fault ${1:-unknown}"
}

# audit: the log verifies, and holds what was done here, no more and no less.
audit() {
  local outcome count report
  command_is 0 myrmex audit verify
  report=$(myrmex audit verify -o json 2>/dev/null)
  for outcome in success failure denied; do
    count=$(jq -r --arg outcome "$outcome" '.by_outcome[$outcome] // 0' <<<"$report" 2>/dev/null)
    [ "$count" = "${expected_outcomes[$outcome]}" ]
    check "$outcome ${count:-unknown} of ${expected_outcomes[$outcome]}"
  done
}

summary() {
  local failed
  end_step
  title "Summary"
  if [ ${#failed_steps[@]} -eq 0 ]; then
    note "${green}all $steps steps held$plain"
    return 0
  fi
  note "$red${#failed_steps[@]} of $steps steps failed$plain"
  for failed in "${failed_steps[@]}"; do note "  $failed"; done
  return 1
}

how_to_go_on() {
  title "The hive and the nginx stay up. Go on with"
  cat <<TEXT
   source $DIR/hive/env
   myrmex status
   myrmex call $tool name=$DIR/harness/chaos.sh args=status
   myrmex audit list
   ./hive demo --stop $DIR
TEXT
}

# choose_free_port: for the nginx, from below the range of outgoing connections.
choose_free_port() {
  local used
  used=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '{ print $2 }')
  while :; do
    port=$((20000 + SRANDOM % 12000))
    grep -qi ":$(printf '%04X' "$port")$" <<<"$used" || return 0
  done
}

# write_demo_files: the harness as it would be installed, and what makes it know this nginx.
write_demo_files() {
  local source=$HIVE_ROOT/harness pattern=${DIR//./\\\\.}
  mkdir -p "$DIR"/{harness,services,variants,nginx,chaos}
  cp -- "$source"/*.sh "$DIR/harness/"
  chmod 700 "$DIR"/harness/{chaos,service,apply-config}.sh
  cp -- "$source"/demo/variants/*.conf "$DIR/variants/"
  cp -- "$source/demo/variants/baseline.conf" "$DIR/nginx/generated.conf"
  fill() {
    # '|' cannot stand in any of the values.
    sed -e "s|@DIR@|$DIR|g" -e "s|@DIR_PATTERN@|${pattern//\\/\\\\}|g" -e "s|@PORT@|$port|g" -e "s|@NGINX@|$NGINX|g" -e "s|@CURL@|$CURL|g" \
      "$source/demo/$1" >"$2"
  }
  fill nginx.conf.in "$DIR/nginx/nginx.conf"
  fill service.conf.in "$DIR/services/nginx.conf"
  fill apply-config.conf.in "$DIR/apply-config.conf"
  fill profile.json.in "$DIR/profile.json"
}

# processes_of_demo: every process that has the demo's folder in its command line or environment.
processes_of_demo() {
  local path
  for path in /proc/[0-9]*; do
    case ${path#/proc/} in "$$" | "$BASHPID") continue ;; esac
    if { tr '\0' '\n' <"$path/cmdline" && tr '\0' '\n' <"$path/environ"; } 2>/dev/null | grep -qF -e "$DIR/"; then
      printf '%s\n' "${path#/proc/}"
    fi
  done
}

# clean_up: ends what the demo has started and removes its folder; false, with what is left, if that cannot be done.
clean_up() {
  local status=0 left tries process
  [ -d "${DIR-}" ] || return 0
  # The harness itself ends its faults and the service, so this works when the gateway and the agent are gone too.
  if [ -x "$DIR/harness/chaos.sh" ]; then
    CHAOS_STATE_DIR=$DIR/chaos "$DIR/harness/chaos.sh" stop all >/dev/null || status=1
  fi
  if [ -f "$DIR/services/nginx.conf" ]; then
    SERVICE_DIR=$DIR/services "$DIR/harness/service.sh" nginx stop >/dev/null || status=1
  fi
  if [ -d "$DIR/hive" ]; then
    run_tool down --dir "$DIR/hive" >"$DIR/down.log" 2>&1 || { cat "$DIR/down.log" >&2; status=1; }
  fi
  tries=0
  while left=$(processes_of_demo) && [ -n "$left" ] && [ "$tries" -lt 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  for process in $left; do
    printf '    left, and killed now: %s %s\n' "$process" "$({ tr '\0' ' ' <"/proc/$process/cmdline"; } 2>/dev/null)" >&2
    kill -KILL "$process" 2>/dev/null
    status=1
  done
  if grep -qi ":$(printf '%04X' "$port") .* 0A " /proc/net/tcp; then
    echo "    something still listens on port $port" >&2
    status=1
  fi
  rm -rf -- "$DIR" || status=1
  return "$status"
}
