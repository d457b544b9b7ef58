# shellcheck shell=sh
# Network faults, in a network of their own (see run.sh). Most statements use tc_standin.sh, for kernels without netem;
# the last ones use the kernel as it is.
. "$TESTS/testlib.sh"

mount -t sysfs sysfs /sys
mkdir "$WORK/tools" "$WORK/real"
cp "$TESTS/tc_standin.sh" "$WORK/tools/tc"
chmod +x "$WORK/tools/tc"
ln -s "$REAL_IP" "$WORK/tools/ip"
ln -s "$REAL_IP" "$WORK/real/ip"
ln -s "$REAL_TC" "$WORK/real/tc"
BASE_PATH=$PATH
PATH=$WORK/tools:$PATH
export PATH

# Two interfaces with the ends in this network; where no pair can be made, lo is all there is.
if ip link add eth0 type veth peer name eth1 2>/dev/null || ip link add eth0 type dummy 2>/dev/null; then
  IFACE=eth0
else
  IFACE=lo
  CHAOS_ALLOW_LOOPBACK=yes
  export CHAOS_ALLOW_LOOPBACK
fi
ip link set lo up
ip link set "$IFACE" up
ip address add 10.9.0.1/24 dev "$IFACE"
CHAOS_PROTECT=none
export CHAOS_PROTECT

qdiscs() { "$REAL_TC" qdisc show dev "$IFACE"; }
untouched() { [ "$(qdiscs)" = "$BEFORE" ]; }
BEFORE=$(qdiscs)

for fault in 'latency 250' 'loss 10'; do
  verb=${fault% *} amount=${fault#* }

  it "$verb: is taken away in time"
  chaos "$verb" 1 "$amount" "$IFACE"
  exits 0
  one_line
  says "on $IFACE for 1 s, detached"
  id=$(id_of)
  eventually state_is "$id" ended
  holds untouched

  it "$verb: is one rule with a handle of its own, and is reverted early by stop"
  chaos "$verb" 300 "$amount" "$IFACE"
  exits 0
  id=$(id_of)
  holds test "$(qdiscs | grep -c "pfifo $(cat "$(record "$id")/handle"): root")" = 1
  fails untouched
  chaos stop "$id"
  exits 0
  holds untouched

  it "$verb: is reverted by the watcher when the keeper is killed"
  chaos "$verb" 300 "$amount" "$IFACE"
  id=$(id_of)
  fails untouched
  kill -s KILL "$(recorded "$id" keeper)"
  eventually state_is "$id" ended
  holds untouched
  chaos status
  says 'reverted by the watcher'

  it "$verb: is reverted by the keeper when the watcher is killed"
  chaos "$verb" 1 "$amount" "$IFACE"
  id=$(id_of)
  kill -s KILL "$(recorded "$id" watcher)"
  eventually state_is "$id" ended
  holds untouched

  it "$verb: is reverted by the next call when both were killed"
  chaos "$verb" 300 "$amount" "$IFACE"
  id=$(id_of)
  kill -s KILL "$(recorded "$id" watcher)" "$(recorded "$id" keeper)"
  eventually gone "$(recorded "$id" keeper)"
  chaos status
  says 'reverted by the next call'
  holds untouched
done

it 'hands the kernel the delay and the loss that were asked for'
holds grep -q 'netem delay 250ms' "$WORK/tc.log"
holds grep -q 'netem loss 10%' "$WORK/tc.log"

it 'shows an active rule in status'
chaos latency 300 100 "$IFACE"
id=$(id_of)
chaos status
says "$id" "100 ms delay on $IFACE for 300 s" "qdisc netem $(cat "$(record "$id")/handle"): dev $IFACE root"

it 'refuses a second fault on an interface, and the first one stays until it is stopped'
chaos loss 1 10 "$IFACE"
exits 3
says "$id is active on $IFACE" "chaos.sh stop $id"
fails untouched
chaos stop "$id"
exits 0
holds untouched

it 'lets one of two calls that meet win, and the loser takes nothing away'
for first in latency loss; do
  sh "$HARNESS/chaos.sh" "$first" 300 10 "$IFACE" >"$WORK/one" 2>&1 &
  one=$!
  sh "$HARNESS/chaos.sh" loss 300 10 "$IFACE" >"$WORK/two" 2>&1 && two_rc=0 || two_rc=$?
  wait "$one" && one_rc=0 || one_rc=$?
  case $one_rc:$two_rc in
    0:3 | 3:0) ;;
    *) problem "exit statuses $one_rc and $two_rc: $(cat "$WORK/one" "$WORK/two")" ;;
  esac
  fails untouched
  chaos stop all
  exits 0
  holds untouched
done

it 'never replaces or removes a root qdisc of somebody else'
"$REAL_TC" qdisc add dev "$IFACE" root handle 77: pfifo limit 10
theirs=$(qdiscs)
chaos latency 1 100 "$IFACE"
exits 3
says "$IFACE has a root qdisc of its own already (pfifo 77:)" 'Nothing changed'
one_line
equal "$(qdiscs)" "$theirs"
chaos status
says '== active faults ==
(none)'
chaos stop all
equal "$(qdiscs)" "$theirs"
"$REAL_TC" qdisc del dev "$IFACE" root

it 'leaves alone what somebody put in the place of its rule'
chaos latency 300 100 "$IFACE"
id=$(id_of)
"$REAL_TC" qdisc del dev "$IFACE" root
"$REAL_TC" qdisc add dev "$IFACE" root handle 77: pfifo limit 10
theirs=$(qdiscs)
chaos stop "$id"
exits 0
says 'was already gone'
equal "$(qdiscs)" "$theirs"
"$REAL_TC" qdisc del dev "$IFACE" root

it 'counts a rule that somebody removed by hand as reverted'
# Long enough for the removal by hand to come first.
chaos latency 5 100 "$IFACE"
id=$(id_of)
"$REAL_TC" qdisc del dev "$IFACE" root
eventually state_is "$id" ended
holds grep -q 'ran its time; the rule on .* was already gone' "$(record "$id")/how"
holds untouched

it 'shows a rule that cannot be removed as stuck, goes on trying, and never calls it over'
: >"$WORK/stuck"
chaos latency 300 100 "$IFACE"
id=$(id_of)
chaos stop "$id"
exits 1
says 'could not be reverted' "tc qdisc del dev $IFACE root"
chaos status
says STUCK
rm "$WORK/stuck"
eventually state_is "$id" ended
holds untouched

it 'refuses lo unless it is allowed'
run env CHAOS_ALLOW_LOOPBACK=no sh "$HARNESS/chaos.sh" loss 1 10 lo
exits 3
says CHAOS_ALLOW_LOOPBACK

it 'refuses an interface that is not there, and names that are none'
chaos latency 1 100 eth77
exits 3
says "no network interface 'eth77'"
for name in '-a' 'eth0;id' 'eth0/..' '..' '' 'averyverylongname'; do
  chaos latency 1 100 "$name"
  exits 2
done

it 'will not guess where the gateway is'
run env -u CHAOS_PROTECT sh "$HARNESS/chaos.sh" loss 1 10 "$IFACE"
exits 3
says 'CHAOS_PROTECT is not set'
holds untouched

it 'refuses the interface that leads to the gateway'
run env CHAOS_PROTECT='10.9.0.7' sh "$HARNESS/chaos.sh" loss 1 10 "$IFACE"
exits 3
says "$IFACE carries the way to the gateway 10.9.0.7"
run env CHAOS_PROTECT='127.0.0.1 10.9.0.7' sh "$HARNESS/chaos.sh" loss 1 10 "$IFACE"
exits 3
holds untouched

it 'refuses to go on when the way to the gateway is not known'
run env CHAOS_PROTECT='192.0.2.99' sh "$HARNESS/chaos.sh" loss 1 10 "$IFACE"
exits 3
says 'no route to 192.0.2.99'
run env CHAOS_PROTECT='gateway.example.com' sh "$HARNESS/chaos.sh" loss 1 10 "$IFACE"
exits 3
says 'not an IP address'
holds untouched

if [ "$IFACE" = eth0 ]; then
  it 'spares the gateway behind another interface'
  run env CHAOS_PROTECT='127.0.0.1' sh "$HARNESS/chaos.sh" loss 1 10 "$IFACE"
  exits 0
  eventually state_is "$(id_of)" ended
  holds untouched

  if ip link add br0 type bridge 2>/dev/null && ip link set eth0 master br0; then
    it 'refuses an interface below the one that leads to the gateway'
    ip address flush dev eth0
    ip address add 10.9.0.1/24 dev br0
    ip link set br0 up
    run env CHAOS_PROTECT='10.9.0.7' sh "$HARNESS/chaos.sh" loss 1 10 eth0
    exits 3
    says 'eth0 carries the way to the gateway 10.9.0.7'
    ip link del br0
  fi
fi

it 'says exactly what is wrong when the kernel has no netem, and changes nothing'
for answer in 'Error: Specified qdisc kind is unknown.' 'RTNETLINK answers: No such file or directory' 'Unknown qdisc "netem", hence option "delay" is unparsable'; do
  run env TC_SAYS="$answer" sh "$HARNESS/chaos.sh" latency 1 100 "$IFACE"
  exits 3
  says 'this kernel has no netem (sch_netem). Nothing changed'
  one_line
done
run env TC_SAYS='RTNETLINK answers: Operation not permitted' sh "$HARNESS/chaos.sh" latency 1 100 "$IFACE"
exits 3
says 'not permitted' CAP_NET_ADMIN
run env TC_SAYS='RTNETLINK answers: Something new' sh "$HARNESS/chaos.sh" latency 1 100 "$IFACE"
exits 3
says 'Something new'
holds untouched
chaos status
says '== active faults ==
(none)'

it 'does with the real tc what this kernel can: the rule and its removal, or the plain refusal'
PATH=$WORK/real:$BASE_PATH
if "$REAL_TC" qdisc add dev "$IFACE" root netem delay 1ms 2>/dev/null; then
  "$REAL_TC" qdisc del dev "$IFACE" root
  chaos latency 300 100 "$IFACE"
  exits 0
  holds test "$(qdiscs | grep -c 'netem 4d..: root .*delay 100ms')" = 1
  chaos stop
  exits 0
else
  chaos latency 1 100 "$IFACE"
  exits 3
  says 'this kernel has no netem (sch_netem). Nothing changed'
fi
holds untouched

finish
