# shellcheck shell=sh
# Load faults, the two processes behind each fault, and the commands that look at them.
. "$TESTS/testlib.sh"

# processes_of_ours: a keeper or watcher of this suite is running; others on this machine do not count.
processes_of_ours() {
  for ours_path in /proc/[0-9]*; do
    case $({ tr '\0' ' ' <"$ours_path/cmdline"; } 2>/dev/null) in
      *'chaos.sh __'*) { tr '\0' '\n' <"$ours_path/environ" | grep -qx "WORK=$WORK"; } 2>/dev/null && return 0 ;;
    esac
  done
  return 1
}
nothing_runs() { ! processes_of_ours; }
none_active() {
  chaos status
  case $OUT in
    *'== active faults ==
(none)'*) return 0 ;;
  esac
  return 1
}
rss_of() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

it 'shows its usage and fails when called without a verb'
chaos
exits 2
says 'chaos.sh cpu SECONDS WORKERS'

it 'explains itself when asked'
chaos help
exits 0
says 'stop [ID|all]'

it 'refuses an unknown verb, naming the known ones, in one line'
chaos reboot 10 1
exits 2
says "unknown verb 'reboot'" 'cpu mem latency loss kill status stop'
one_line

it 'refuses numbers out of range, with signs, with leading zeros, or that are no numbers'
for words in 'cpu 301 1' 'cpu 0 1' 'cpu 10 0' 'cpu 10 65' 'cpu -1 1' 'cpu 010 1' 'cpu 1.5 1' 'cpu x 1' 'cpu 99999999999999999999 1' \
  'mem 10 0' 'mem 10 4097' 'mem 999 10' 'latency 10 5001 eth0' 'latency 10 0 eth0' 'loss 10 101 eth0' 'loss 10 0 eth0'; do
  # shellcheck disable=SC2086 # the words are the arguments
  chaos $words
  exits 2
  one_line
done

it 'refuses a wrong number of arguments'
chaos cpu 10
exits 2
chaos cpu 10 1 1
exits 2
chaos mem
exits 2
chaos status all
exits 2
chaos stop cpu-1 cpu-2
exits 2

it 'treats an argument as text, never as code'
chaos status '; touch '"$WORK/hacked"
exits 2
chaos cpu '1;1' 1
exits 2
# shellcheck disable=SC2016 # it must stay as it is
chaos latency 1 1 '$(id)'
exits 2
fails test -e "$WORK/hacked"

it 'leaves nothing behind when it refuses'
holds test -z "$(ls "$CHAOS_STATE_DIR" 2>/dev/null)"
fails processes_of_ours

it 'returns at once with the fault detached, and the fault ends by itself'
chaos cpu 2 2
exits 0
one_line
id=$(id_of)
says '2 busy workers for 2 s' detached 'reverts by itself' "chaos.sh stop $id"
keeper=$(recorded "$id" keeper) watcher=$(recorded "$id" watcher)
workers=$(recorded "$id" workers)
equal "$(echo "$workers" | wc -l)" 2
eventually state_is "$id" ended
for pid in $keeper $watcher $workers; do
  eventually gone "$pid"
done
equal "$(cat "$(record "$id")/how")" 'ran its time'

it 'keeps keeper and watcher in sessions of their own, away from the caller and from each other'
chaos cpu 300 1
id=$(id_of)
holds state_is "$id" active
session_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 4; }
keeper=$(recorded "$id" keeper) watcher=$(recorded "$id" watcher)
equal "$(session_of "$keeper")" "$keeper"
equal "$(session_of "$watcher")" "$watcher"
for pid in $keeper $watcher $(recorded "$id" workers); do
  holds alive "$pid"
done

it 'lists an active fault with id, amounts, time left and processes'
chaos status
exits 0
says '== active faults ==' "$id" '1 busy worker for 300 s' 's left' "keeper $keeper" "watcher $watcher" 'load ' \
  '== active netem qdiscs ==' '== load ==' 'load average'

it 'stops a fault early, and its processes are gone'
worker=$(recorded "$id" workers)
chaos stop "$id"
exits 0
says "$id: stopped early"
for pid in $keeper $watcher $worker; do
  eventually gone "$pid"
done

it 'says so, and succeeds, when a stopped fault is stopped again'
chaos stop "$id"
exits 0
says 'already ended (stopped early)'

it 'knows no fault that never was, and says that nothing changed'
chaos stop cpu-999999
exits 3
says "no fault 'cpu-999999' is known" 'Nothing changed'
one_line

it 'takes no path or pattern for an id'
for words in '../../etc' '*' 'cpu-*' 'cpu-01' 'cpu-' '-1'; do
  chaos stop "$words"
  exits 2
done

it 'has nothing to stop when nothing is active'
chaos stop
exits 0
says 'nothing to stop'

it 'stops all faults with one call'
chaos cpu 300 1
first=$(id_of)
chaos mem 300 8
second=$(id_of)
chaos stop all
exits 0
says "$first: stopped early" "$second: stopped early"
eventually nothing_runs

it 'shows what ended lately, and how'
chaos status
says '== ended lately ==' "$second" 'stopped early'

it 'holds the memory it was asked for, once, in one process that the kernel would kill first'
chaos mem 300 96
exits 0
says '96 MB held for 300 s'
id=$(id_of)
worker=$(recorded "$id" workers)
holds test "$(rss_of "$worker")" -ge $((90 * 1024))
holds test "$(rss_of "$worker")" -le $((110 * 1024))
holds test "$(rss_of "$(recorded "$id" keeper)")" -le $((10 * 1024))
equal "$(cat "/proc/$worker/oom_score_adj")" 1000
holds test -z "$(find "$(record "$id")" -name pipe)"

it 'is over, and says why, when the kernel kills the load'
kill -s KILL "$worker"
eventually state_is "$id" ended
holds grep -q 'killed early' "$(record "$id")/how"

it 'frees the memory when the keeper is killed'
chaos mem 300 32
id=$(id_of)
worker=$(recorded "$id" workers)
kill -s KILL "$(recorded "$id" keeper)"
eventually gone "$worker"
eventually state_is "$id" ended

it 'refuses more memory than four fifths of what is available'
if [ "$(id -u)" = 0 ]; then
  # A machine with 100 MB left, for this call alone.
  echo 'MemAvailable:     102400 kB' >"$WORK/meminfo"
  # shellcheck disable=SC2016 # for the inner shell
  on_small_host() { run unshare -m sh -c 'mount --bind "$WORK/meminfo" /proc/meminfo && exec sh "$HARNESS/chaos.sh" "$@"' sh "$@"; }
  on_small_host mem 1 81
  exits 3
  says '81 MB is more than 80 % of the 100 MB available' 'at most 80 MB'
  on_small_host mem 1 80
  exits 0
  eventually nothing_runs
else
  echo '        (not looked at: a private /proc/meminfo needs root)'
fi

it 'reverts through the watcher when the keeper is killed'
chaos cpu 300 1
id=$(id_of)
worker=$(recorded "$id" workers)
kill -s KILL "$(recorded "$id" keeper)"
eventually state_is "$id" ended
eventually gone "$worker"
eventually gone "$(recorded "$id" watcher)"
chaos status
says 'its keeper was killed; reverted by the watcher'

it 'reverts in time when the keeper hangs'
chaos cpu 300 1
id=$(id_of)
keeper=$(recorded "$id" keeper)
kill -s STOP "$keeper"
# Only now its time is made to be over: a short one might be over before the keeper hangs.
echo 1 >"$(record "$id")/end"
eventually state_is "$id" ended
eventually gone "$keeper"
holds grep -q 'missed the time; reverted by the watcher' "$(record "$id")/how"

it 'can be stopped early even when the keeper hangs'
chaos cpu 300 1
id=$(id_of)
kill -s STOP "$(recorded "$id" keeper)" "$(recorded "$id" watcher)"
chaos stop "$id"
exits 0
says "$id: stopped early; its keeper did not answer"
eventually gone "$(recorded "$id" keeper)"
kill -s CONT "$(recorded "$id" watcher)"

it 'cleans up at the next call when keeper and watcher were both killed'
chaos cpu 300 1
id=$(id_of)
worker=$(recorded "$id" workers)
kill -s KILL "$(recorded "$id" watcher)" "$(recorded "$id" keeper)"
eventually gone "$worker"
chaos status
says 'reverted by the next call'

if [ "$(id -u)" = 0 ] && unshare -p -f true 2>/dev/null; then
  it 'ends its load with the keeper also where nobody collects the dead, as in many containers'
  # The first process of these is a cat, which never asks for children that it got from others.
  mkfifo "$WORK/over"
  cat >"$WORK/uncollected.sh" <<'TEXT'
. "$TESTS/testlib.sh"
CHAOS_STATE_DIR=$WORK/uncollected
export CHAOS_STATE_DIR
it 'ends the load'
chaos cpu 300 1
id=$(id_of)
keeper=$(recorded "$id" keeper)
kill -s KILL "$(recorded "$id" watcher)" "$keeper"
eventually gone "$(recorded "$id" workers)"
holds grep -q '^State:.*Z' "/proc/$keeper/status"
finish
TEXT
  # shellcheck disable=SC2016 # for the inner shell
  run unshare -p -f --mount-proc sh -c '{ sh "$WORK/uncollected.sh" >"$WORK/said" 2>&1; : >"$WORK/over"; } & exec cat "$WORK/over"'
  OUT=$(cat "$WORK/said")
  says '1 passed, 0 failed'
fi

it 'ends at once when the host tells its processes to end'
chaos cpu 300 1
id=$(id_of)
kill -s TERM "$(recorded "$id" watcher)" "$(recorded "$id" keeper)"
eventually state_is "$id" ended
eventually gone "$(recorded "$id" workers)"

it 'ends load that ignores TERM'
# What a shell was started to ignore, it and its children cannot un-ignore.
run sh -c "trap '' TERM; exec sh '$HARNESS/chaos.sh' cpu 300 1"
exits 0
id=$(id_of)
worker=$(recorded "$id" workers)
kill -s TERM "$worker"
holds alive "$worker"
chaos stop "$id"
exits 0
holds gone "$worker"
eventually gone "$(recorded "$id" keeper)"

it 'ends by itself when the caller is killed in the middle of the call'
sh "$HARNESS/chaos.sh" cpu 1 1 >/dev/null 2>&1 &
caller=$!
kill -s KILL "$caller"
wait "$caller" 2>/dev/null
# What it started last may not have become a process of the harness yet, so this is asked until it is so.
eventually none_active
eventually nothing_runs

it 'survives a caller that stops listening'
sh "$HARNESS/chaos.sh" cpu 1 1 | true
eventually nothing_runs

it 'gives two calls that meet two different ids'
sh "$HARNESS/chaos.sh" cpu 1 1 >"$WORK/one" 2>&1 &
one=$!
sh "$HARNESS/chaos.sh" cpu 1 1 >"$WORK/two" 2>&1
wait "$one"
fails test "$(cut -d : -f 1 "$WORK/one")" = "$(cut -d : -f 1 "$WORK/two")"
eventually nothing_runs

it 'takes a record from before a restart of the host as ended, and touches no process of today'
sleep 600 &
bystander=$!
mkdir "$CHAOS_STATE_DIR/4000"
echo cpu >"$CHAOS_STATE_DIR/4000/kind"
echo active >"$CHAOS_STATE_DIR/4000/state"
echo 'another boot' >"$CHAOS_STATE_DIR/4000/boot"
echo "$bystander 1" >"$CHAOS_STATE_DIR/4000/workers"
echo '1 busy worker for 20 s' >"$CHAOS_STATE_DIR/4000/what"
chaos stop cpu-4000
exits 0
says 'already ended (the host was restarted'
holds alive "$bystander"

it 'signals no process that got the number of a worker later'
mkdir "$CHAOS_STATE_DIR/4001"
echo cpu >"$CHAOS_STATE_DIR/4001/kind"
cp /proc/sys/kernel/random/boot_id "$CHAOS_STATE_DIR/4001/boot"
echo active >"$CHAOS_STATE_DIR/4001/state"
echo "$bystander 1" >"$CHAOS_STATE_DIR/4001/workers"
echo '1 busy worker for 20 s' >"$CHAOS_STATE_DIR/4001/what"
chaos stop cpu-4001
exits 0
holds alive "$bystander"
kill "$bystander"
wait "$bystander" 2>/dev/null

it 'refuses a state directory that others could have made'
mkdir -m 777 "$WORK/open"
run env CHAOS_STATE_DIR="$WORK/open" sh "$HARNESS/chaos.sh" cpu 1 1
exits 3
says "$WORK/open is open to others"
ln -s "$WORK" "$WORK/link"
run env CHAOS_STATE_DIR="$WORK/link" sh "$HARNESS/chaos.sh" cpu 1 1
exits 3
says 'is not a directory of uid'
run env CHAOS_STATE_DIR=relative sh "$HARNESS/chaos.sh" cpu 1 1
exits 3
run env CHAOS_STATE_DIR="$WORK/missing/deep" sh "$HARNESS/chaos.sh" cpu 1 1
exits 3
says 'cannot be made'

it 'refuses settings that others may write, and settings that look like a script'
echo 'CHAOS_KILL_EXE=/bin/true' >"$WORK/chaos.conf"
chmod 666 "$WORK/chaos.conf"
run env CHAOS_CONF="$WORK/chaos.conf" sh "$HARNESS/chaos.sh" status
exits 3
says 'may be written by others'
chmod 600 "$WORK/chaos.conf"
# shellcheck disable=SC2016 # it must stay as it is
for line in 'CHAOS_PROTECT=$(touch x)' 'CHAOS_PROTECT="10.0.0.1"' 'SPEED=1' 'no equals sign'; do
  echo "$line" >"$WORK/chaos.conf"
  run env CHAOS_CONF="$WORK/chaos.conf" sh "$HARNESS/chaos.sh" status
  exits 3
  says "$WORK/chaos.conf:1:"
done

it 'refuses a timed fault where it could not be detached'
mkdir "$WORK/poor"
cp -P "$WORK"/bin/* "$WORK/poor"
rm "$WORK/poor/setsid"
run env PATH="$WORK/poor" sh "$HARNESS/chaos.sh" cpu 1 1
exits 3
says 'setsid is missing' 'Nothing changed'

it 'forgets old ended faults but the last twenty'
number=5000
while [ "$number" -lt 5030 ]; do
  mkdir "$CHAOS_STATE_DIR/$number"
  echo cpu >"$CHAOS_STATE_DIR/$number/kind"
  echo ended >"$CHAOS_STATE_DIR/$number/state"
  number=$((number + 1))
done
chaos status
holds test "$(find "$CHAOS_STATE_DIR" -name '[1-9]*' -type d | wc -l)" -le 20
holds test -d "$CHAOS_STATE_DIR/5029"

it 'needs tc for network faults and says so without it'
chaos latency 5 100 eth0
exits 3
says "'tc' is missing" 'Nothing changed'
one_line
chaos status
says '(tc is missing'

finish
