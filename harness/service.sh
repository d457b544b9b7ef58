#!/bin/sh
# Starts, stops and looks after one named service, with systemd or without it, and proves beforehand that it could:
# breaking a service that cannot be started again is an outage, not a test.
#   service.sh NAME start|stop|restart|reload|status|check
# A service is described by $SERVICE_DIR/NAME.conf (default /etc/myrmex/services/NAME.conf), read as text and never run as
# a script; without such a file it is the systemd unit of that name. Keys (START and PIDFILE are required):
#   START=/usr/sbin/nginx -c /etc/nginx/nginx.conf   absolute program and its words; no shell, no quotes
#   PIDFILE=/run/nginx.pid                           written by the program, or by us with FOREGROUND=yes
#   TEST=/usr/sbin/nginx -t                          must succeed before a start, restart or reload
#   EXE=/usr/sbin/nginx                              the running program, where it is not START's first word
#   STOP_SIGNAL=TERM  RELOAD_SIGNAL=HUP  START_SECONDS=10  STOP_SECONDS=10  LOG=/var/log/x.log

PROGRAM=service.sh
# Where the script is; without a slash it was found on PATH, or given to a shell in its own folder.
case $0 in
  /*) SELF=$0 ;;
  */*) SELF=$PWD/$0 ;;
  *) SELF=$(command -v "$0") || SELF=$PWD/$0 ;;
esac
HERE=${SELF%/*}
. "$HERE/lib.sh"
. "$HERE/service_plain.sh"
. "$HERE/service_systemd.sh"

usage() {
  echo 'service.sh NAME start|stop|restart|reload|status|check'
  echo 'Exit codes: 0 done or answered, 1 tried and failed, 2 wrong request, 3 this host cannot do it; nothing was tried for 2 and 3.'
}

# say_check OK TEXT: one line of 'check', counted.
CHECKS=0
CHECKS_FAILED=0
say_check() {
  CHECKS=$((CHECKS + 1))
  if [ "$1" = ok ]; then
    echo "  ok    $2"
  else
    CHECKS_FAILED=$((CHECKS_FAILED + 1))
    echo "  FAIL  $2"
  fi
}

check_verdict() {
  if [ "$CHECKS_FAILED" = 0 ]; then
    echo "$NAME: the restart path holds ($CHECKS of $CHECKS checks)"
  else
    echo "$NAME: the restart path does NOT hold ($CHECKS_FAILED of $CHECKS checks failed); do not break it"
    exit "$EX_FAILED"
  fi
}

case $# in
  2) ;;
  1)
    if [ "$1" = help ] || [ "$1" = --help ]; then
      usage
      exit 0
    fi
    die "$EX_USAGE" "takes a service and a verb; see: service.sh help"
    ;;
  *)
    usage
    exit "$EX_USAGE"
    ;;
esac
NAME=$1
is_word "$NAME" '_.@-' 64 || die "$EX_USAGE" "'$NAME' is not the name of a service"
case $2 in
  start | stop | restart | reload | status | check) ;;
  *) die "$EX_USAGE" "unknown verb '$2'; known: start stop restart reload status check" ;;
esac

DESCRIPTOR=${SERVICE_DIR:-/etc/myrmex/services}/$NAME.conf
if [ -e "$DESCRIPTOR" ]; then
  plain_load
  "plain_$2"
elif [ -d "${SYSTEMD_RUNTIME:-/run/systemd/system}" ] && command -v systemctl >/dev/null 2>&1; then
  "systemd_$2"
else
  die "$EX_PRECONDITION" "this host has no systemd, and there is no $DESCRIPTOR that says how to start $NAME"
fi
