# shellcheck shell=sh disable=SC2034,SC2154 # shares variables with chaos.sh and its other parts
# Network faults: one netem qdisc as the root of one interface, with a handle of its own. Adding never replaces ('tc qdisc
# add' fails where a root qdisc is set), and the removal names the handle, which the kernel compares; so neither another
# tool's qdisc nor another fault's can be hit, also when two calls meet.

# root_qdisc IFACE: sets ROOT_QDISC ('kind handle:') when the root is not the kernel's own default, whose handle is 0.
root_qdisc() {
  ROOT_QDISC=
  root_shown=$(tc qdisc show dev "$1" 2>&1) || {
    ROOT_ERROR=$root_shown
    return 1
  }
  while read -r _ root_kind root_handle root_where _; do
    [ "$root_where" = root ] && [ "$root_handle" != 0: ] && ROOT_QDISC="$root_kind $root_handle"
  done <<TEXT
$root_shown
TEXT
  return 0
}

# stands_on DEVICE IFACE: packets of DEVICE leave through IFACE, itself or as a VLAN, bridge, bond or the like above it.
stands_on() {
  stands_todo=$1
  stands_steps=0
  while [ -n "$stands_todo" ] && [ "$stands_steps" -lt 64 ]; do
    stands_steps=$((stands_steps + 1))
    stands_device=${stands_todo%% *}
    case $stands_todo in
      *' '*) stands_todo=${stands_todo#* } ;;
      *) stands_todo= ;;
    esac
    [ "$stands_device" = "$2" ] && return 0
    set +f
    for stands_lower in "/sys/class/net/$stands_device"/lower_* "/sys/class/net/$stands_device"/brif/*; do
      [ -e "$stands_lower" ] || continue
      stands_lower=${stands_lower##*/}
      stands_todo="${stands_todo:+$stands_todo }${stands_lower#lower_}"
    done
    set -f
  done
  return 1
}

# check_protected IFACE: refuses the interface that carries a gateway's address. Not knowing the way counts as 'carries'.
check_protected() {
  [ "$PROTECT" != none ] || return 0
  [ -n "$PROTECT" ] || die "$EX_PRECONDITION" \
    "CHAOS_PROTECT is not set: name the gateway's addresses in $SETTINGS, so that a network fault cannot cut the way to them"
  command -v ip >/dev/null 2>&1 ||
    die "$EX_PRECONDITION" "'ip' is missing (package iproute2): cannot tell which interface leads to the gateway. Nothing changed"
  words "$PROTECT" check_addresses "$1"
}
check_addresses() {
  check_iface=$1
  shift
  for check_address in "$@"; do
    case $check_address in
      *[!0-9a-fA-F:.]*) die "$EX_PRECONDITION" "CHAOS_PROTECT: '$check_address' is not an IP address; names are not looked up here" ;;
    esac
    check_route=$(ip route get "$check_address" 2>/dev/null) || check_route=
    case " $check_route" in
      *' dev '*) ;;
      *) die "$EX_PRECONDITION" "there is no route to $check_address (CHAOS_PROTECT) now, so its path cannot be spared. Nothing changed" ;;
    esac
    check_device=${check_route#*dev }
    check_device=${check_device%%[ "$TAB"]*}
    ! stands_on "$check_device" "$check_iface" || die "$EX_PRECONDITION" \
      "$check_iface carries the way to the gateway $check_address (CHAOS_PROTECT): refused. Nothing changed"
  done
}

check_interface() {
  command -v tc >/dev/null 2>&1 || die "$EX_PRECONDITION" "'tc' is missing (package iproute2). Nothing changed"
  if [ "$1" = lo ] && [ "$ALLOW_LOOPBACK" != yes ]; then
    die "$EX_PRECONDITION" "lo carries this host's own services: refused unless CHAOS_ALLOW_LOOPBACK=yes"
  fi
  if [ -d /sys/class/net ] && [ ! -e "/sys/class/net/$1" ]; then
    die "$EX_PRECONDITION" "there is no network interface '$1' here"
  fi
  check_protected "$1"
  for check_id in $(records); do
    open_record "$check_id"
    { [ "$STATE_NOW" != ended ] && [ "$(get iface)" = "$1" ]; } || continue
    die "$EX_PRECONDITION" "$check_id is active on $1; one network fault an interface: chaos.sh stop $check_id"
  done
  root_qdisc "$1" || die "$EX_PRECONDITION" "tc cannot look at $1: ${ROOT_ERROR%%[!A-Za-z0-9 :.,_-]*}"
  [ -z "$ROOT_QDISC" ] || die "$EX_PRECONDITION" \
    "$1 has a root qdisc of its own already ($ROOT_QDISC), which is not ours to replace. Nothing changed"
}

# inflict_net: by the keeper.
inflict_net() {
  net_iface=$(get iface)
  net_handle=$(get handle)
  case $ID in
    latency-*) net_error=$(tc qdisc add dev "$net_iface" root handle "$net_handle:" netem delay "$(get amount)ms" 2>&1) ;;
    *) net_error=$(tc qdisc add dev "$net_iface" root handle "$net_handle:" netem loss "$(get amount)%" 2>&1) ;;
  esac && return 0
  # The first line tells; iproute2 and the kernel have said it in several ways over the years.
  net_error=${net_error%%"
"*}
  case $net_error in
    *'qdisc kind is unknown'* | *'No such file or directory'* | *'Unknown qdisc'*)
      refuse 'this kernel has no netem (sch_netem). Nothing changed' ;;
    *'not permitted'*) refuse "tc was not permitted to change $net_iface (needs CAP_NET_ADMIN). Nothing changed" ;;
    *'invalid argument'*netem*) refuse 'this tc has no netem: install iproute2. Nothing changed' ;;
    *) refuse "tc could not add netem to $net_iface: $net_error. Nothing changed" ;;
  esac
}

# undo_net: true when the current record's qdisc is not there any more.
undo_net() {
  undo_iface=$(get iface)
  undo_handle=$(get handle)
  # Nothing was made yet when the record is that young.
  [ -n "$undo_iface" ] && [ -n "$undo_handle" ] || return 0
  if ! netem_there; then
    [ "$NETEM_KNOWN" = 1 ] || return 1
    [ "$(get state)" = active ] && UNDO_NOTE="the rule on $undo_iface was already gone"
    return 0
  fi
  tc qdisc del dev "$undo_iface" root handle "$undo_handle:" >/dev/null 2>&1
  ! netem_there && [ "$NETEM_KNOWN" = 1 ] && return 0
  UNDO_NOTE="netem $undo_handle: is still on $undo_iface; remove it with: tc qdisc del dev $undo_iface root handle $undo_handle:"
  return 1
}

# netem_there: our rule is on the interface. NETEM_KNOWN is 0 when that could not be found out.
netem_there() {
  NETEM_KNOWN=1
  netem_shown=$(tc qdisc show dev "$undo_iface" 2>/dev/null) || {
    [ -d /sys/class/net ] && [ ! -e "/sys/class/net/$undo_iface" ] && return 1
    NETEM_KNOWN=0
    UNDO_NOTE="tc cannot look at $undo_iface"
    return 1
  }
  case $netem_shown in
    *"qdisc netem $undo_handle: root"*) return 0 ;;
  esac
  return 1
}

show_netem() {
  command -v tc >/dev/null 2>&1 || {
    echo '(tc is missing: package iproute2)'
    return 0
  }
  show_none=1
  show_text=$(tc qdisc show 2>/dev/null)
  while IFS= read -r show_line; do
    case $show_line in
      'qdisc netem '*)
        show_none=0
        printf '%s\n' "$show_line"
        ;;
    esac
  done <<TEXT
$show_text
TEXT
  [ "$show_none" = 0 ] || echo '(none)'
}
