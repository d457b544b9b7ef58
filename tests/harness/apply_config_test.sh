# shellcheck shell=sh
# Configuration variants: all or nothing, and the truth about it.
. "$TESTS/testlib.sh"

mkdir -m 755 "$WORK/etc" "$WORK/variants" "$WORK/tools"
TARGET=$WORK/etc/generated.conf
APPLY_CONFIG=$WORK/apply.conf
export APPLY_CONFIG
apply() { run sh "$HARNESS/apply-config.sh" "$@"; }
settings() {
  {
    echo "TARGET=$TARGET"
    echo "VARIANT_DIR=$WORK/variants"
    for settings_line; do echo "$settings_line"; done
  } >"$APPLY_CONFIG"
}
target_is() { equal "$(cat "$TARGET" 2>/dev/null)" "$1"; }
# nothing_temporary: only the file itself and the one before are there.
nothing_temporary() {
  for path in "$WORK/etc"/.[!.]*; do
    [ ! -e "$path" ] || problem "is left: $path"
  done
}
tool() {
  printf '#!/bin/sh\n%s\n' "$2" >"$WORK/tools/$1"
  chmod 755 "$WORK/tools/$1"
}
echo one >"$WORK/variants/one.conf"
echo two >"$WORK/variants/two.conf"
echo broken >"$WORK/variants/broken.conf"
tool test-config "! grep -q broken '$TARGET' || { echo 'line 1: broken' >&2; exit 1; }"
tool reload "cat '$TARGET' >>'$WORK/loaded'"
tool fail 'echo "reload says no" >&2; exit 1'

it 'refuses what is no name: paths, options, patterns, nothing, two words'
settings
for name in ../../etc/shadow /etc/shadow -x 'a b' '*' '' one.conf 'one;id'; do
  apply "$name"
  exits 2
  one_line
done
apply
exits 2
apply one two
exits 2
fails test -e "$TARGET"

it 'changes nothing for a name that is not on the menu, and shows the menu'
echo before >"$TARGET"
apply three
exits 2
says "unknown variant 'three'; known: broken one two. Nothing changed"
target_is before
fails test -e "$TARGET.prev"

it 'puts a variant in place and says truthfully that nothing was reloaded'
apply one
exits 0
one_line
says "variant one is in place at $TARGET" 'nothing was reloaded'
target_is one
equal "$(cat "$TARGET.prev")" before
nothing_temporary

it 'keeps the file before after a refused change'
apply three
equal "$(cat "$TARGET.prev")" before

it 'lists the menu and what is in place'
apply list
exits 0
says '  one (in place)' '  two' '  broken'
says_not 'two (in place)'

it 'restores the one before, and that can be undone too'
apply restore
exits 0
says 'the previous configuration is in place'
target_is before
apply restore
target_is one

it 'has nothing to restore where nothing was applied'
rm -f "$TARGET" "$TARGET.prev"
apply restore
exits 3
says 'nothing was applied here before'

it 'makes the file where there was none, readable for the service'
apply two
exits 0
target_is two
equal "$(stat -c %a "$TARGET")" 644
fails test -e "$TARGET.prev"
nothing_temporary

it 'keeps the mode of the file that it replaces'
chmod 640 "$TARGET"
apply one
equal "$(stat -c %a "$TARGET")" 640
equal "$(stat -c %a "$TARGET.prev")" 640

it 'reloads by command and says by which'
settings "TEST=$WORK/tools/test-config" "RELOAD=$WORK/tools/reload"
apply two
exits 0
says "reloaded by: $WORK/tools/reload"
equal "$(tail -n 1 "$WORK/loaded")" two

it 'never loads a configuration that its test refuses'
: >"$WORK/loaded"
apply broken
exits 1
one_line
says 'variant broken was refused by the test' 'line 1: broken' 'what was there before is back' 'nothing was reloaded'
target_is two
equal "$(cat "$TARGET.prev")" one
holds test ! -s "$WORK/loaded"
nothing_temporary

it 'brings the one before back, and loads it, when the reload fails'
# The tool refuses to load 'one' and loads everything else.
tool picky "! grep -q one '$TARGET' || { echo 'reload says no' >&2; exit 1; }; cat '$TARGET' >>'$WORK/loaded'"
settings "RELOAD=$WORK/tools/picky"
apply one
exits 1
says 'could not be loaded' 'reload says no' 'what was there before is back and loaded again'
target_is two
equal "$(tail -n 1 "$WORK/loaded")" two
nothing_temporary

it 'says so when not even the one before can be loaded again'
settings "RELOAD=$WORK/tools/fail"
apply one
exits 1
says 'could NOT be loaded again' 'reload says no'
target_is two

it 'brings the one before back when the service does not pass VERIFY'
tool verify "! grep -q one '$TARGET'"
settings "RELOAD=$WORK/tools/reload" "VERIFY=$WORK/tools/verify" 'VERIFY_SECONDS=1'
apply one
exits 1
says 'did not pass VERIFY' 'loaded again'
target_is two
equal "$(tail -n 1 "$WORK/loaded")" two

it 'gives a reload the time to take effect'
tool slow-verify "echo x >>'$WORK/looks'; [ \$(wc -l <'$WORK/looks') -ge 4 ]"
settings "VERIFY=$WORK/tools/slow-verify" 'VERIFY_SECONDS=10'
apply one
exits 0
target_is one

it 'takes an interrupted change back'
# A test that never ends, so the change can be cut off in its middle.
tool hang "echo \$\$ >'$WORK/hanging'; exec sleep 300"
settings "TEST=$WORK/tools/hang"
sh "$HARNESS/apply-config.sh" two >/dev/null 2>&1 &
change=$!
eventually test -s "$WORK/hanging"
target_is two
kill "$(cat "$WORK/hanging")"
kill -s TERM "$change"
wait "$change"
target_is one
nothing_temporary

it 'takes back, at the next call, a change that was killed without warning'
rm "$WORK/hanging"
sh "$HARNESS/apply-config.sh" two >/dev/null 2>&1 &
change=$!
eventually test -s "$WORK/hanging"
kill -s KILL "$change"
wait "$change" 2>/dev/null
kill "$(cat "$WORK/hanging")"
target_is two
settings
apply broken
exits 0
says 'was cut off; it has been taken back' 'variant broken is in place'
equal "$(cat "$TARGET.prev")" one
nothing_temporary

it 'lets a second change wait for the first'
tool slow "echo >'$WORK/holding'; while [ ! -e '$WORK/go' ]; do sleep 0.1; done"
settings "RELOAD=$WORK/tools/slow"
sh "$HARNESS/apply-config.sh" one >"$WORK/first" 2>&1 &
change=$!
eventually test -e "$WORK/holding"
holds test -d "$WORK/etc/.generated.conf.lock"
{ sleep 1 && : >"$WORK/go"; } &
apply two
exits 0
wait "$change"
target_is two
equal "$(cat "$TARGET.prev")" one
nothing_temporary

it 'refuses a target, a variant or settings that others could have made'
settings
rm "$TARGET"
ln -s /etc/passwd "$TARGET"
apply one
exits 3
says 'not a regular file'
rm "$TARGET"
chmod 666 "$WORK/variants/one.conf"
apply one
exits 3
says 'may be written by others' 'Nothing changed'
chmod 644 "$WORK/variants/one.conf"
ln -s /etc/shadow "$WORK/variants/shadow.conf"
apply shadow
exits 3
says 'not a regular file'
rm "$WORK/variants/shadow.conf"
chmod 666 "$APPLY_CONFIG"
apply one
exits 3
says 'may be written by others'
chmod 644 "$APPLY_CONFIG"
fails test -e "$TARGET"

it 'names what is wrong in the settings'
echo 'VARIANT_DIR=/x' >"$APPLY_CONFIG"
apply one
exits 3
says 'TARGET is missing'
settings 'SERVICE=x' 'RELOAD=/bin/true'
apply one
exits 3
says 'two ways to reload'
settings 'RELOAD=true'
apply one
exits 3
says 'absolute path'
rm "$APPLY_CONFIG"
apply one
exits 3
says "$APPLY_CONFIG does not exist"

it 'reloads through service.sh'
SERVICE_DIR=$WORK/services
export SERVICE_DIR
mkdir -m 755 "$SERVICE_DIR"
sh -c 'trap "echo reloaded >\"$1\"" HUP; echo $$ >"$2"; while :; do sleep 0.1; done' sh "$WORK/reloaded" "$WORK/svc.pid" &
running=$!
eventually test -s "$WORK/svc.pid"
printf 'START=%s/bin/sh\nPIDFILE=%s/svc.pid\n' "$WORK" "$WORK" >"$SERVICE_DIR/svc.conf"
settings 'SERVICE=svc'
apply one
exits 0
says "svc: reloaded, pid $running"
eventually test -s "$WORK/reloaded"
kill "$running"
wait "$running" 2>/dev/null
apply two
exits 1
says 'not running' 'what was there before is back'
target_is one

it 'ships the four variants of the example'
printf 'TARGET=%s/etc/example.conf\n' "$WORK" >"$APPLY_CONFIG"
for name in baseline high-timeout low-memory no-cache; do
  apply "$name"
  exits 0
done
holds grep -qx 'timeout=30' "$WORK/etc/example.conf"
holds grep -qx 'max_memory_mb=1024' "$WORK/etc/example.conf"
holds grep -qx 'cache=off' "$WORK/etc/example.conf"

finish
