#!/bin/sh
# Puts one of a few prepared configurations in place, or none at all. The caller picks a name from a menu and writes
# nothing; what the variants say is decided by whoever owns the files.
#   apply-config.sh VARIANT | restore | list
# A change is all or nothing: the file is replaced in one step, tested, reloaded and verified, and the one before comes
# back if any of that fails. A change that was cut off (kill -9, power) is taken back by the next call.
# Settings are read as text from $APPLY_CONFIG (default /etc/myrmex/apply-config.conf); TARGET is required:
#   TARGET=/etc/myservice/generated.conf   the file that changes
#   VARIANT_DIR=/opt/myrmex/variants       NAME.conf for each NAME on the menu (default: the folder beside this script)
#   TEST=/usr/sbin/nginx -t                run with the new file in place; must succeed before a reload
#   SERVICE=myservice                      reloaded through service.sh, or
#   RELOAD=/usr/sbin/nginx -s reload       by a command; neither: nothing is reloaded, and the answer says so
#   VERIFY=/usr/bin/curl -fsS http://127.0.0.1:8080/healthz   must succeed after the reload, within VERIFY_SECONDS=5

PROGRAM=apply-config.sh
# Where the script is; without a slash it was found on PATH, or given to a shell in its own folder.
case $0 in
  /*) SELF=$0 ;;
  */*) SELF=$PWD/$0 ;;
  *) SELF=$(command -v "$0") || SELF=$PWD/$0 ;;
esac
HERE=${SELF%/*}
. "$HERE/lib.sh"

load_settings() {
  SETTINGS=${APPLY_CONFIG:-/etc/myrmex/apply-config.conf}
  read_conf "$SETTINGS" TARGET VARIANT_DIR TEST SERVICE RELOAD VERIFY VERIFY_SECONDS
  TARGET=$CONF_TARGET TEST=$CONF_TEST SERVICE=$CONF_SERVICE RELOAD=$CONF_RELOAD VERIFY=$CONF_VERIFY
  VARIANT_DIR=${CONF_VARIANT_DIR:-$HERE/variants}
  VERIFY_SECONDS=${CONF_VERIFY_SECONDS:-5}
  [ -n "$TARGET" ] || die "$EX_PRECONDITION" "$SETTINGS: TARGET is missing: the absolute path of the file to change"
  for setting in "$TARGET" "$VARIANT_DIR" "${TEST:-/}" "${RELOAD:-/}" "${VERIFY:-/}"; do
    case $setting in
      /*) ;;
      *) die "$EX_PRECONDITION" "$SETTINGS: '$setting' does not begin with an absolute path" ;;
    esac
  done
  [ -z "$SERVICE" ] || [ -z "$RELOAD" ] || die "$EX_PRECONDITION" "$SETTINGS: SERVICE and RELOAD are two ways to reload; keep one"
  is_uint "$VERIFY_SECONDS" 1 60 || die "$EX_PRECONDITION" "$SETTINGS: VERIFY_SECONDS is a number from 1 to 60"
  FOLDER=${TARGET%/*}
  FOLDER=${FOLDER:-/}
  BASE=${TARGET##*/}
  PENDING=$FOLDER/.$BASE.pending
  LOCK=$FOLDER/.$BASE.lock
  NEW=$FOLDER/.$BASE.new
  { [ -d "$FOLDER" ] && [ -w "$FOLDER" ]; } || die "$EX_PRECONDITION" "the folder $FOLDER of TARGET is not there or may not be written by uid $MY_UID"
  if [ -e "$TARGET" ] || [ -h "$TARGET" ]; then
    is_trusted - "$TARGET" || die "$EX_PRECONDITION" "TARGET: $WHY"
  fi
}

# menu: the names of the variants.
menu() {
  set +f
  for menu_path in "$VARIANT_DIR"/*.conf; do
    [ -f "$menu_path" ] || continue
    menu_name=${menu_path##*/}
    menu_name=${menu_name%.conf}
    is_word "$menu_name" - 63 && printf '%s ' "$menu_name"
  done
  set -f
}

list() {
  echo "variants for $TARGET:"
  for list_name in $(menu); do
    if cmp -s "$VARIANT_DIR/$list_name.conf" "$TARGET"; then
      echo "  $list_name (in place)"
    else
      echo "  $list_name"
    fi
  done
}

# take_lock: two changes of one file never mix. A lock whose holder is gone is taken over.
take_lock() {
  lock_tries=0
  while ! mkdir "$LOCK" 2>/dev/null; do
    lock_owner=
    { read -r lock_owner lock_start <"$LOCK/owner"; } 2>/dev/null
    if [ -n "$lock_owner" ] && ! same_process "$lock_owner" "$lock_start"; then
      rm -rf -- "$LOCK"
      continue
    fi
    lock_tries=$((lock_tries + 1))
    [ "$lock_tries" -lt 100 ] || die "$EX_PRECONDITION" "another change of $TARGET is under way (pid ${lock_owner:-unknown}, $LOCK); try again later"
    pause
  done
  LOCKED=1
  proc_stat $$ && echo "$$ $PROC_START" >"$LOCK/owner"
}

# roll_back: what PENDING holds comes back. An empty-marker says that there was no file before.
roll_back() {
  if [ -e "$PENDING" ]; then
    mv -f -- "$PENDING" "$TARGET"
  elif [ -e "$PENDING.none" ]; then
    rm -f -- "$TARGET" && rm -f -- "$PENDING.none"
  fi
}

LOCKED=
# leave: whatever ends this script, a half-done change is taken back.
leave() {
  [ -n "$LOCKED" ] || return 0
  rm -f -- "$NEW"
  roll_back
  rm -rf -- "$LOCK"
  LOCKED=
}

# place SOURCE: SOURCE becomes TARGET in one step; what was there waits in PENDING.
place() {
  if [ -e "$TARGET" ]; then
    # The service may run as another user, so the new file begins as a copy, with the owner and the mode of the one before.
    { cp -p -- "$TARGET" "$NEW" && cp -p -- "$TARGET" "$PENDING.part" && mv -f -- "$PENDING.part" "$PENDING"; } ||
      no_room "$PENDING"
  else
    { : >"$NEW" && chmod 644 "$NEW" && : >"$PENDING.none"; } || no_room "$NEW"
  fi
  cat -- "$1" >"$NEW" || no_room "$NEW"
  sync -- "$NEW" 2>/dev/null || sync
  mv -f -- "$NEW" "$TARGET" || no_room "$TARGET"
}
no_room() {
  rm -f -- "$PENDING.part"
  die "$EX_FAILED" "$1 cannot be written: is the disk full? Nothing changed"
}

# reload: sets RELOADED, what was reloaded, empty for nothing; RELOAD_OUTPUT on failure.
reload() {
  RELOADED=
  if [ -n "$SERVICE" ]; then
    RELOAD_OUTPUT=$(sh "$HERE/service.sh" "$SERVICE" reload 2>&1 </dev/null) || return 1
    RELOADED=$RELOAD_OUTPUT
  elif [ -n "$RELOAD" ]; then
    RELOAD_OUTPUT=$(words "$RELOAD" command 2>&1 </dev/null) || return 1
    RELOADED="reloaded by: $RELOAD"
  fi
}

# verify: a reload takes effect a little after the signal, so the check may need a few looks.
verify() {
  [ -n "$VERIFY" ] || return 0
  now
  verify_end=$((NOW + VERIFY_SECONDS * 100))
  until VERIFY_OUTPUT=$(words "$VERIFY" command 2>&1 </dev/null); do
    now
    [ "$NOW" -lt "$verify_end" ] || return 1
    pause
  done
}

# give_up REASON: takes the change back, has the old configuration loaded again if the new one may have been, and ends.
give_up() {
  roll_back
  give_note='what was there before is back'
  if [ "$2" = reloaded ]; then
    if reload; then
      give_note="$give_note and loaded again"
    else
      give_note="$give_note but could NOT be loaded again: $(last_lines "$RELOAD_OUTPUT")"
    fi
  else
    give_note="$give_note; nothing was reloaded"
  fi
  die "$EX_FAILED" "$1; $give_note"
}

last_lines() {
  printf '%s' "$1" | tail -n 3 | tr '\n' ' '
}

# change SOURCE WHAT
change() {
  place "$1"
  if [ -n "$TEST" ]; then
    test_output=$(words "$TEST" command 2>&1 </dev/null) ||
      give_up "$2 was refused by the test ($TEST): $(last_lines "$test_output")" untouched
  fi
  reload || give_up "$2 could not be loaded: $(last_lines "$RELOAD_OUTPUT")" reloaded
  verify || give_up "$2 was loaded but did not pass VERIFY ($VERIFY): $(last_lines "$VERIFY_OUTPUT")" reloaded
  # From here the change stands; the one before is kept for 'restore'.
  if [ -e "$PENDING" ]; then
    mv -f -- "$PENDING" "$TARGET.prev"
  else
    rm -f -- "$PENDING.none"
  fi
  echo "$2 is in place at $TARGET; ${RELOADED:-nothing was reloaded (neither SERVICE nor RELOAD is set)}"
}

[ $# -eq 1 ] || die "$EX_USAGE" 'takes one word: the name of a variant, restore or list'
is_word "$1" - 63 || die "$EX_USAGE" "'$1' is not the name of a variant (letters, digits and '-')"
load_settings
case $1 in
  list)
    list
    exit 0
    ;;
  restore)
    [ -f "$TARGET.prev" ] || die "$EX_PRECONDITION" "there is no $TARGET.prev: nothing was applied here before"
    is_trusted - "$TARGET.prev" || die "$EX_PRECONDITION" "$WHY"
    source_file=$TARGET.prev
    what='the previous configuration'
    ;;
  *)
    source_file=$VARIANT_DIR/$1.conf
    if [ ! -e "$source_file" ]; then
      menu_text=$(menu)
      die "$EX_USAGE" "unknown variant '$1'; known: ${menu_text% }. Nothing changed"
    fi
    is_trusted - "$source_file" || die "$EX_PRECONDITION" "$WHY. Nothing changed"
    what="variant $1"
    ;;
esac
trap leave EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
trap 'exit 129' HUP
take_lock
if [ -e "$PENDING" ] || [ -e "$PENDING.none" ]; then
  roll_back
  echo "an earlier change of $TARGET was cut off; it has been taken back"
fi
change "$source_file" "$what"
