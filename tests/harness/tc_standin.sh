#!/bin/sh
# Stands in for tc where a kernel has no netem: the real tc and the real kernel do everything, with a plain queue in the
# place of netem, so what counts (one root an interface, handles, exclusiveness) is not imitated. TC_SAYS, if it is set,
# is what "tc qdisc add" answers instead; a file WORK/stuck makes removals fail.
case $1:$2 in
  qdisc:show)
    shown=$("$REAL_TC" "$@") || exit
    printf '%s\n' "$shown" | sed 's/^qdisc pfifo \(4d[0-9a-f]*:\)/qdisc netem \1/'
    ;;
  qdisc:add)
    if [ -n "${TC_SAYS:-}" ]; then
      echo "$TC_SAYS" >&2
      exit 2
    fi
    echo "$*" >>"$WORK/tc.log"
    # add dev IFACE root handle H: netem ...
    exec "$REAL_TC" qdisc add "$3" "$4" "$5" "$6" "$7" pfifo limit 1000
    ;;
  qdisc:del)
    if [ -e "$WORK/stuck" ]; then
      echo 'RTNETLINK answers: Device or resource busy' >&2
      exit 2
    fi
    exec "$REAL_TC" "$@"
    ;;
  *)
    echo "tc_standin: not expected: $*" >&2
    exit 9
    ;;
esac
