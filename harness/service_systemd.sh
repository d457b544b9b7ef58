# shellcheck shell=sh disable=SC2034,SC2154 # shares variables with service.sh
# Services that systemd looks after.

# unit_facts: sets UNIT_<property> for what systemd says about the unit.
unit_facts() {
  UNIT=$NAME
  case $NAME in
    *.service) ;;
    *) UNIT=$NAME.service ;;
  esac
  UNIT_LoadState='' UNIT_ActiveState='' UNIT_SubState='' UNIT_CanStart='' UNIT_NRestarts='' UNIT_Restart=''
  UNIT_MainPID='' UNIT_FragmentPath='' UNIT_NeedDaemonReload=''
  facts_text=$(systemctl show --no-pager \
    -p LoadState,ActiveState,SubState,CanStart,NRestarts,Restart,MainPID,FragmentPath,NeedDaemonReload -- "$UNIT" 2>&1) ||
    die "$EX_PRECONDITION" "systemctl cannot ask systemd about $UNIT: ${facts_text%%"
"*}"
  while IFS='=' read -r facts_key facts_value; do
    case $facts_key in
      LoadState) UNIT_LoadState=$facts_value ;;
      ActiveState) UNIT_ActiveState=$facts_value ;;
      SubState) UNIT_SubState=$facts_value ;;
      CanStart) UNIT_CanStart=$facts_value ;;
      NRestarts) UNIT_NRestarts=$facts_value ;;
      Restart) UNIT_Restart=$facts_value ;;
      MainPID) UNIT_MainPID=$facts_value ;;
      FragmentPath) UNIT_FragmentPath=$facts_value ;;
      NeedDaemonReload) UNIT_NeedDaemonReload=$facts_value ;;
    esac
  done <<TEXT
$facts_text
TEXT
}

require_unit() {
  unit_facts
  [ "$UNIT_LoadState" = loaded ] || die "$EX_PRECONDITION" "systemd has no usable unit $UNIT (it is '${UNIT_LoadState:-unknown}'), and there is no $DESCRIPTOR"
}

# run_job VERB: lets systemd do it and tells what came of it.
run_job() {
  require_unit
  job_output=$(systemctl --no-ask-password --no-pager "$1" -- "$UNIT" 2>&1 </dev/null) ||
    die "$EX_FAILED" "systemd could not $1 $UNIT: $(printf '%s' "$job_output" | tail -n 3 | tr '\n' ' ')"
  unit_facts
}

# require_active PAST: a job that systemd calls done may still have left a service that died at once.
require_active() {
  case $UNIT_ActiveState in
    active | reloading) echo "$NAME: $1, pid $UNIT_MainPID" ;;
    *) die "$EX_FAILED" "$UNIT is '$UNIT_ActiveState' ($UNIT_SubState) after the job; see: journalctl -u $UNIT" ;;
  esac
}

systemd_start() { run_job start && require_active started; }
systemd_restart() { run_job restart && require_active restarted; }
systemd_reload() { run_job reload && require_active reloaded; }
systemd_stop() {
  run_job stop
  case $UNIT_ActiveState in
    inactive | failed) echo "$NAME: stopped" ;;
    *) die "$EX_FAILED" "$UNIT is still '$UNIT_ActiveState' ($UNIT_SubState)" ;;
  esac
}

systemd_status() {
  require_unit
  if [ "$UNIT_ActiveState" = active ]; then
    echo "$NAME: running, pid $UNIT_MainPID ($UNIT_SubState, restarted by systemd ${UNIT_NRestarts:-0} time(s))"
  else
    echo "$NAME: $UNIT_ActiveState ($UNIT_SubState)"
  fi
}

systemd_check() {
  unit_facts
  echo "$NAME (systemd unit $UNIT)"
  if [ "$UNIT_LoadState" = loaded ]; then
    say_check ok "the unit is loaded from ${UNIT_FragmentPath:-memory}"
  else
    say_check fail "the unit is '${UNIT_LoadState:-unknown}', not loaded"
  fi
  if [ "$UNIT_ActiveState" = active ]; then
    say_check ok "it runs: pid $UNIT_MainPID ($UNIT_SubState)"
  else
    say_check fail "it is '$UNIT_ActiveState' ($UNIT_SubState), not active"
  fi
  if [ "$UNIT_CanStart" = yes ]; then
    say_check ok 'systemd may be asked to start it'
  else
    say_check fail 'systemd refuses manual starts of it (CanStart)'
  fi
  if is_uint "$UNIT_NRestarts" 0 999999999; then
    say_check ok "automatic restarts are counted: ${UNIT_NRestarts} so far, Restart=${UNIT_Restart}"
  else
    say_check fail 'the count of automatic restarts cannot be read (systemd 235 or newer needed)'
  fi
  if [ "$UNIT_NeedDaemonReload" = yes ]; then
    say_check fail 'the unit file changed on disk: a restart would not do what runs now (systemctl daemon-reload)'
  else
    say_check ok 'what systemd has loaded is what stands on disk'
  fi
  if [ "$MY_UID" = 0 ]; then
    say_check ok 'this call runs as root, who may restart it'
  else
    say_check fail "this call runs as uid $MY_UID; whether polkit lets it restart the unit cannot be told beforehand"
  fi
  check_verdict
}
