# shellcheck shell=sh
# The kill verb: only the right process, or none.
. "$TESTS/testlib.sh"

SERVICE_PROGRAM=$(readlink -f "$WORK/bin/sleep")
PIDFILE=$WORK/run/svc.pid
mkdir -m 755 "$WORK/run"

# start_service: a process, and a pid file written after its start.
start_service() {
  sleep 300 &
  SERVICE_PID=$!
  echo "$SERVICE_PID" >"$PIDFILE"
  chmod 644 "$PIDFILE"
}
end_service() {
  kill -s KILL "$SERVICE_PID" 2>/dev/null
  wait "$SERVICE_PID" 2>/dev/null
}
# untouched: the refusal changed nothing.
untouched() {
  exits 3
  one_line
  holds alive "$SERVICE_PID"
}

it 'signals the process of the pid file and says which program it was'
start_service
chaos kill TERM "$PIDFILE"
exits 0
one_line
says "sent SIGTERM to pid $SERVICE_PID ($SERVICE_PROGRAM)" 'it ended after'
holds gone "$SERVICE_PID"

it 'says that the service is down already when its process is gone'
chaos kill TERM "$PIDFILE"
exits 3
says "no process $SERVICE_PID runs" 'down already'
end_service

it 'knows five signals and no others'
start_service
for signal in INT 9 SIGTERM term STOP -9 ''; do
  chaos kill "$signal" "$PIDFILE"
  exits 2
done
holds alive "$SERVICE_PID"
chaos kill KILL "$PIDFILE"
exits 0
says 'sent SIGKILL'
end_service

it 'says that a process that ignores TERM still runs'
sh -c 'trap "" TERM; echo ready >"$1"; while :; do sleep 1; done' sh "$WORK/ready" &
SERVICE_PID=$!
eventually test -e "$WORK/ready"
echo "$SERVICE_PID" >"$PIDFILE"
chaos kill TERM "$PIDFILE"
exits 0
says 'still running after 3 s'
end_service

it 'says when a supervisor started the service again, and after how long'
sleep 300 &
first=$!
echo "$first" >"$PIDFILE"
(
  while [ -d "/proc/$first" ] && ! grep -q '^State:.*Z' "/proc/$first/status"; do sleep 0.05; done
  sleep 300 &
  echo $! >"$PIDFILE"
  echo $! >"$WORK/second"
) &
supervisor=$!
chaos kill TERM "$PIDFILE"
exits 0
wait "$first" "$supervisor" 2>/dev/null
says "pid $first" "was started again as pid $(cat "$WORK/second")" 's later'
kill "$(cat "$WORK/second")"

it 'refuses a number that is not a service: 0, 1, negative, huge, empty, or text'
start_service
for content in 0 1 -1 -15 01 '' ' ' 4194305 99999999999999999999 abc "$SERVICE_PID x" "$SERVICE_PID
1" '$$'; do
  printf '%s\n' "$content" >"$PIDFILE"
  chaos kill TERM "$PIDFILE"
  untouched
done

it 'refuses a pid file that is missing, a link, a folder, or a pipe'
echo "$SERVICE_PID" >"$WORK/run/real.pid"
rm "$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
says 'does not exist'
ln -s "$WORK/run/real.pid" "$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
says 'not a regular file'
rm "$PIDFILE"
mkdir "$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
rmdir "$PIDFILE"
mkfifo "$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
rm "$PIDFILE"

it 'takes only a plain absolute path'
for path in svc.pid ./run/svc.pid "$WORK/run/../run/svc.pid" "$WORK/run/*.pid" '/run/x;id' "$WORK/run/svc.pid
x"; do
  chaos kill TERM "$path"
  exits 2
done
holds alive "$SERVICE_PID"

it 'refuses a pid file that others may write or replace'
echo "$SERVICE_PID" >"$PIDFILE"
chmod 666 "$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
says 'may be written by others'
chmod 644 "$PIDFILE"
chmod 777 "$WORK/run"
chaos kill TERM "$PIDFILE"
untouched
says 'who could replace it'
chmod 755 "$WORK/run"

it 'signals only the expected program, and names both when it is another'
run env CHAOS_KILL_EXE=/usr/sbin/nginx sh "$HARNESS/chaos.sh" kill TERM "$PIDFILE"
untouched
says "pid $SERVICE_PID, which is $SERVICE_PROGRAM and not /usr/sbin/nginx" 'Nothing was signalled'

it 'refuses a pid file from before the process started, and names both'
# The number in the file was another process's: the file is from the year 2001.
touch -t 200109090146.40 "$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
says "pid file $PIDFILE is older than the process" "pid $SERVICE_PID is now $SERVICE_PROGRAM" 's after the file was written'
touch "$PIDFILE"

it 'accepts the expected program by a path that is a link'
run env CHAOS_KILL_EXE="/usr/sbin/nginx $WORK/bin/sleep" sh "$HARNESS/chaos.sh" kill TERM "$PIDFILE"
exits 0
holds gone "$SERVICE_PID"
end_service

if [ "$(id -u)" = 0 ]; then
  it 'refuses a pid file of a user that names a process of another user'
  start_service
  chown 65534 "$PIDFILE"
  chaos kill TERM "$PIDFILE"
  untouched
  says 'belongs to uid 65534' 'runs as uid 0'
  end_service
fi

it 'never signals init, an SSH server, the agent, the gateway or what runs this call'
# A program is known by its file, so a copy of another with that name will do.
start_service
for name in sshd sshd-session myrmex-agent myrmex-gateway mcp-agent hive-priv systemd; do
  cp "$SLEEP_PROGRAM" "$WORK/$name"
  "$WORK/$name" 300 &
  protected=$!
  eventually grep -q "$name" "/proc/$protected/comm"
  echo "$protected" >"$PIDFILE"
  chaos kill TERM "$PIDFILE"
  exits 3
  says "pid $protected is $WORK/$name, which is never signalled from here"
  run env CHAOS_KILL_EXE="$WORK/$name" sh "$HARNESS/chaos.sh" kill KILL "$PIDFILE"
  exits 3
  holds alive "$protected"
  kill "$protected"
  wait "$protected" 2>/dev/null
done
echo $$ >"$PIDFILE"
chaos kill TERM "$PIDFILE"
untouched
says 'one of the processes that run this call'
end_service

if [ "$(id -u)" = 0 ]; then
  it 'refuses a thread of the kernel'
  kernel_thread=
  for path in /proc/[0-9]*; do
    { [ "$(sed -n 's/^PPid:[^0-9]*//p' "$path/status")" = 2 ] && kernel_thread=${path#/proc/} && break; } 2>/dev/null
  done
  if [ -n "$kernel_thread" ]; then
    echo "$kernel_thread" >"$PIDFILE"
    chaos kill TERM "$PIDFILE"
    exits 3
    says 'thread of the kernel'
  else
    echo '        (not looked at: no kernel threads are visible here)'
  fi
fi

finish
