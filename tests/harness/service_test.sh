# shellcheck shell=sh
# Starting, stopping and checking services without systemd, and with a stand-in for systemctl.
. "$TESTS/testlib.sh"

SERVICE_DIR=$WORK/services
SYSTEMD_RUNTIME=$WORK/no-systemd
export SERVICE_DIR SYSTEMD_RUNTIME
mkdir -m 755 "$SERVICE_DIR" "$WORK/run"
PIDFILE=$WORK/run/svc.pid
BUSYBOX=$(readlink -f "$WORK/bin/sleep")
SHELL_PROGRAM=$(readlink -f "$WORK/bin/sh")
service() { run sh "$HARNESS/service.sh" "$@"; }

# A service as they usually are: the program puts itself into the background and then writes its pid file. It counts its
# reloads.
cat >"$WORK/daemon" <<'TEXT'
case $1 in
  bad) echo 'bad configuration' >&2; exit 4 ;;
  late) sleep 1 ;;
esac
(
  trap 'echo reloaded >>"$3"' HUP
  [ "$1" = stubborn ] && trap '' TERM
  [ "$1" = fragile ] && trap - HUP
  sh -c 'echo $PPID' >"$2"
  while :; do sleep 0.1; done
) </dev/null >/dev/null 2>&1 &
TEXT
# describe MODE EXTRA...: the description of that service.
describe() {
  describe_mode=$1
  shift
  {
    echo "# a comment"
    echo "START=$WORK/bin/sh $WORK/daemon $describe_mode $PIDFILE $WORK/reloads"
    echo "PIDFILE=$PIDFILE"
    for describe_line; do echo "$describe_line"; done
  } >"$SERVICE_DIR/svc.conf"
}
pid_now() { cat "$PIDFILE"; }

it 'refuses names that are paths, options or empty, and unknown verbs'
for name in ../svc a/b -svc '' 'svc;id' '*'; do
  service "$name" status
  exits 2
done
service svc enable
exits 2
says 'known: start stop restart reload status check'
service svc
exits 2

it 'says what is missing where there is neither systemd nor a description'
service svc restart
exits 3
one_line
says 'no systemd' "$SERVICE_DIR/svc.conf"

it 'starts a service that puts itself into the background, and waits until it is there'
describe late
service svc start
exits 0
one_line
says "svc: started, pid $(pid_now)"
first=$(pid_now)
holds alive "$first"

it 'starts nothing twice'
service svc start
exits 0
says "already running, pid $first"

it 'answers status without calling it a failure, up or down'
service svc status
exits 0
says "svc: running, pid $first"
service svc stop
exits 0
says "svc: stopped, pid $first"
holds gone "$first"
service svc status
exits 0
says 'svc: stopped (' 'does not run'
service svc stop
exits 0
says 'already stopped'

it 'restarts with a new process and names both'
describe ok
service svc start
first=$(pid_now)
service svc restart
exits 0
says "svc: restarted, pid $(pid_now) (before: pid $first)"
fails test "$first" = "$(pid_now)"
holds gone "$first"

it 'brings a service back that was killed'
kill -s KILL "$(pid_now)"
eventually gone "$(pid_now)"
service svc restart
exits 0
says 'it was down'
holds alive "$(pid_now)"

it 'starts services in a session of their own, where the end of the caller does not reach'
session=$(sed 's/.*) //' "/proc/$(pid_now)/stat" | cut -d ' ' -f 4)
fails test "$session" = "$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 4)"

it 'reloads by signal'
service svc reload
exits 0
says "svc: reloaded, pid $(pid_now)"
eventually grep -q reloaded "$WORK/reloads"

it 'finds the restart path of a healthy service good'
describe ok "TEST=/bin/true"
service svc check
exits 0
says 'the restart path holds' 'the configuration test passes' "names pid $(pid_now), which is $WORK/bin/sh"
says_not FAIL

it 'changes nothing by checking'
before=$(pid_now)
service svc check
equal "$(pid_now)" "$before"
holds alive "$before"

it 'finds a failing configuration test before anything is broken, and refuses to restart with it'
printf '#!/bin/sh\necho "line 3: unknown directive" >&2\nexit 1\n' >"$WORK/test-config"
chmod 755 "$WORK/test-config"
describe ok "TEST=$WORK/test-config"
service svc check
exits 1
says 'FAIL' 'unknown directive' 'does NOT hold (1 of' 'do not break it'
service svc restart
exits 1
says 'nothing was changed' 'unknown directive'
service svc reload
exits 1
equal "$(pid_now)" "$before"
holds alive "$before"

it 'ends a service that ignores its signal, and says that it took KILL'
service svc stop
describe ok
service svc stop
describe stubborn 'STOP_SECONDS=1'
service svc start
first=$(pid_now)
service svc stop
exits 0
says 'by KILL since it did not obey TERM within 1 s'
holds gone "$first"

it 'notices a service that ends on the reload signal'
describe fragile
service svc start
service svc reload
exits 1
says 'instead of reloading'

it 'reports a start that fails'
describe bad
service svc start
exits 1
one_line
says 'did not start' 'exit status 4'

it 'reports a start that never gets to its pid file'
printf 'START=/bin/true\nPIDFILE=%s\nSTART_SECONDS=1\n' "$PIDFILE" >"$SERVICE_DIR/svc.conf"
service svc start
exits 1
says 'did not come up within 1 s' "there is no $PIDFILE"

it 'writes the pid file for a program that stays in the foreground'
printf 'START=%s/bin/sleep 300\nPIDFILE=%s\nFOREGROUND=yes\n' "$WORK" "$PIDFILE" >"$SERVICE_DIR/svc.conf"
service svc start
exits 0
equal "$(readlink "/proc/$(pid_now)/exe")" "$BUSYBOX"
service svc stop
exits 0

it 'does not take another program that got the number for the service'
sleep 300 &
other=$!
describe ok "EXE=$SHELL_PROGRAM"
[ "$SHELL_PROGRAM" = "$BUSYBOX" ] && describe ok 'EXE=/usr/sbin/nginx'
echo "$other" >"$PIDFILE"
service svc status
exits 0
says 'stopped' "process $other, which is $BUSYBOX and not"
service svc stop
exits 0
holds alive "$other"
service svc check
exits 1
says 'FAIL  it does not run'
kill "$other"
wait "$other" 2>/dev/null

it 'finds a program that is not there, and one that others may change'
printf 'START=/usr/sbin/no-such-program\nPIDFILE=%s\n' "$PIDFILE" >"$SERVICE_DIR/svc.conf"
service svc check
exits 1
says 'FAIL  /usr/sbin/no-such-program is not an executable program'
service svc start
exits 3
cp "$WORK/test-config" "$WORK/loose"
chmod 777 "$WORK/loose"
printf 'START=%s/loose\nPIDFILE=%s\n' "$WORK" "$PIDFILE" >"$SERVICE_DIR/svc.conf"
service svc check
exits 1
says 'may be written by others'

it 'reads a description as text and names the line it cannot accept'
# shellcheck disable=SC2016 # it must stay as it is
for line in 'START=/bin/sh -c "id"' 'START=$(id)' 'START=/bin/a;/bin/b' 'START=relative' 'PIDFILE=x' 'SPEED=1' 'nonsense' \
  'STOP_SIGNAL=9' 'STOP_SECONDS=never' 'FOREGROUND=maybe'; do
  printf 'START=/bin/true\nPIDFILE=%s\n%s\n' "$PIDFILE" "$line" >"$SERVICE_DIR/svc.conf"
  service svc status
  exits 3
  one_line
  says "$SERVICE_DIR/svc.conf:"
done
printf 'START=/bin/true\n' >"$SERVICE_DIR/svc.conf"
service svc status
exits 3
says 'PIDFILE is missing'

it 'refuses a description that others may write'
describe ok
chmod 666 "$SERVICE_DIR/svc.conf"
service svc status
exits 3
says 'may be written by others'

# From here on with systemd, as far as it can be told from systemctl.
rm "$SERVICE_DIR/svc.conf"
mkdir "$SYSTEMD_RUNTIME" "$WORK/systemd"
cat >"$WORK/systemd/systemctl" <<'TEXT'
#!/bin/sh
echo "$*" >>"$WORK/systemctl.log"
verb=
for word; do
  case $word in
    show | start | stop | restart | reload) verb=$word ;;
  esac
done
case $verb in
  show) cat "$WORK/unit" ;;
  *)
    [ ! -e "$WORK/job-fails" ] || { echo "Job for svc.service failed." >&2; exit 1; }
    [ ! -e "$WORK/unit.after" ] || cp "$WORK/unit.after" "$WORK/unit"
    ;;
esac
TEXT
chmod 755 "$WORK/systemd/systemctl"
PATH=$WORK/systemd:$PATH
export PATH
# unit LOAD ACTIVE SUB CANSTART NRESTARTS RELOAD_NEEDED
unit() {
  printf 'LoadState=%s\nActiveState=%s\nSubState=%s\nCanStart=%s\nNRestarts=%s\nRestart=on-failure\nMainPID=4711\nFragmentPath=/etc/systemd/system/svc.service\nNeedDaemonReload=%s\n' "$@"
}

it 'with systemd: asks it to restart the unit and looks whether it is up afterwards'
unit loaded active running yes 0 no >"$WORK/unit"
service svc restart
exits 0
says 'svc: restarted, pid 4711'
holds grep -q 'restart -- svc.service' "$WORK/systemctl.log"

it 'with systemd: reports a job that succeeded and left nothing running'
unit loaded failed failed yes 0 no >"$WORK/unit.after"
service svc restart
exits 1
says "'failed'" 'journalctl -u svc.service'
rm "$WORK/unit.after"

it 'with systemd: reports a job that failed'
unit loaded active running yes 0 no >"$WORK/unit"
: >"$WORK/job-fails"
service svc start
exits 1
says 'could not start svc.service' 'Job for svc.service failed'
rm "$WORK/job-fails"

it 'with systemd: answers status for an inactive unit without failing'
unit loaded inactive dead yes 0 no >"$WORK/unit"
service svc status
exits 0
says 'svc: inactive (dead)'

it 'with systemd: says that a unit does not exist'
unit not-found inactive dead no 0 no >"$WORK/unit"
service svc restart
exits 3
says 'no usable unit svc.service' 'not-found'
service svc check
exits 1

if [ "$(id -u)" = 0 ]; then
  it 'with systemd: finds the restart path of an active unit good'
  unit loaded active running yes 2 no >"$WORK/unit"
  service svc check
  exits 0
  says 'the restart path holds' '2 so far, Restart=on-failure'
fi

it 'with systemd: finds what would go wrong'
unit loaded failed failed yes 0 no >"$WORK/unit"
service svc check
exits 1
says "FAIL  it is 'failed'"
unit loaded active running no 0 no >"$WORK/unit"
service svc check
exits 1
says 'FAIL  systemd refuses manual starts'
unit loaded active running yes '' no >"$WORK/unit"
service svc check
exits 1
says 'FAIL  the count of automatic restarts'
unit loaded active running yes 0 yes >"$WORK/unit"
service svc check
exits 1
says 'daemon-reload'

it 'prefers a description to systemd'
describe ok
: >"$WORK/systemctl.log"
service svc status
exits 0
holds test ! -s "$WORK/systemctl.log"

finish
