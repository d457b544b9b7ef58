# shellcheck shell=sh
# shellcheck disable=SC2034 # the variables are for the scripts that source this
# What the harness scripts share: messages, strict parsing, and answers about files and processes that cannot be
# fooled by a link, a loose mode or a reused process number. POSIX sh; needs /proc and the usual small tools, all of
# which busybox has. Meant to be sourced by a script beside it; it changes nothing by itself.

LC_ALL=C
export LC_ALL
unset CDPATH ENV
umask 077
set -fu # no globbing unless a function asks for it: words from outside are never patterns

TAB='	'
MY_UID=$(id -u)

# The exit codes of all harness scripts.
EX_FAILED=1       # it was tried and went wrong
EX_USAGE=2        # the request itself is wrong: nothing was tried
EX_PRECONDITION=3 # the request is fine, this host is not: nothing was changed

# die CODE MESSAGE: one line that says what is wrong and what to do.
die() {
  die_code=$1
  shift
  printf '%s: %s\n' "$PROGRAM" "$*" >&2
  exit "$die_code"
}

# is_uint VALUE MIN MAX: decimal digits only, no leading zero (shells would read 010 as octal), within the range.
is_uint() {
  case $1 in
    '' | *[!0-9]* | 0?* | ???????????*) return 1 ;;
  esac
  [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}

# is_word VALUE EXTRA MAX: letters, digits and the characters of EXTRA; not empty, not led by '-' or '.', at most MAX long.
is_word() {
  case $1 in
    '' | -* | .*) return 1 ;;
  esac
  [ "${#1}" -le "$3" ] || return 1
  case $1 in
    *[!A-Za-z0-9"$2"]*) return 1 ;;
  esac
  return 0
}

# now: sets NOW, hundredths of a second since boot. Not the wall clock, which may be set while a fault runs.
now() {
  IFS=' ' read -r now_text _ </proc/uptime
  NOW=${now_text%.*}${now_text#*.}
}

# pause: about a tenth of a second; a whole one where sleep knows no fractions.
pause() {
  sleep 0.1 2>/dev/null || sleep 1
}

# proc_stat PID: sets PROC_STATE, PROC_PPID, PROC_START (clock ticks after boot). Fails when no such process runs;
# a zombie does not run. PID and PROC_START together name one process for good, a PID alone does not.
proc_stat() {
  proc_line=
  # The group catches the shell's own message when the file is gone.
  { IFS= read -r proc_line <"/proc/$1/stat"; } 2>/dev/null || [ -n "$proc_line" ] || return 1
  # The command name is in parentheses and may hold anything, so fields count from the last one.
  proc_fields "${proc_line##*) }"
  case $PROC_STATE in
    Z | X | x) return 1 ;;
  esac
  return 0
}
proc_fields() {
  IFS=' '
  # shellcheck disable=SC2086 # splitting is the point
  set -- $1
  unset IFS
  PROC_STATE=$1
  PROC_PPID=$2
  shift 19
  PROC_START=$1
}

# same_process PID START: the process that had this number then is still running.
same_process() {
  proc_stat "$1" && [ "$PROC_START" = "$2" ]
}

# proc_identity PID: sets PROC_EXE (empty when it cannot be read), PROC_COMM and PROC_UID.
proc_identity() {
  PROC_EXE=$(readlink "/proc/$1/exe" 2>/dev/null) || PROC_EXE=
  PROC_EXE=${PROC_EXE% (deleted)}
  PROC_COMM=
  { IFS= read -r PROC_COMM <"/proc/$1/comm"; } 2>/dev/null || return 1
  PROC_UID=
  while IFS=": $TAB" read -r proc_key proc_real _; do
    [ "$proc_key" = Uid ] && PROC_UID=$proc_real
  done <"/proc/$1/status" 2>/dev/null
  [ -n "$PROC_UID" ]
}

# file_facts PATH: sets FILE_TYPE (-, d, l, ...), FILE_MODE (rwxr-xr-x) and FILE_UID of PATH itself, links not followed.
file_facts() {
  file_line=$(ls -ldn -- "$1" 2>/dev/null) || return 1
  file_fields "$file_line"
}
file_fields() {
  # shellcheck disable=SC2086 # splitting is the point
  set -- $1
  FILE_TYPE=${1%"${1#?}"}
  FILE_MODE=${1#?}
  FILE_UID=$3
}

# writable_by_others: of the last file_facts.
writable_by_others() {
  case $FILE_MODE in
    ????w* | ???????w*) return 0 ;;
  esac
  return 1
}

# is_trusted TYPE PATH: PATH is of TYPE (- or d), belongs to root or to this user, and nobody else may write it.
# Sets WHY otherwise.
is_trusted() {
  file_facts "$2" || {
    WHY="$2 does not exist or cannot be looked at"
    return 1
  }
  if [ "$FILE_TYPE" != "$1" ]; then
    WHY="$2 is not a $([ "$1" = d ] && echo directory || echo 'regular file')"
  elif [ "$FILE_UID" != 0 ] && [ "$FILE_UID" != "$MY_UID" ]; then
    WHY="$2 belongs to uid $FILE_UID, not to root or to uid $MY_UID"
  elif writable_by_others; then
    WHY="$2 may be written by others (mode $FILE_MODE): chmod go-w it"
  else
    return 0
  fi
  return 1
}

# read_conf FILE KEY...: reads KEY=value lines into CONF_KEY. Never sourced: a value is text, and whatever a shell would
# act on is refused, so that nobody is led to think that quoting works here. Values are single words or words split at blanks.
read_conf() {
  conf_file=$1
  shift
  for conf_key in "$@"; do
    eval "CONF_$conf_key="
  done
  is_trusted - "$conf_file" || die "$EX_PRECONDITION" "$WHY"
  conf_line_number=0
  while IFS= read -r conf_line || [ -n "$conf_line" ]; do
    conf_line_number=$((conf_line_number + 1))
    case $conf_line in
      '' | '#'*) continue ;;
      *=*) ;;
      *) die "$EX_PRECONDITION" "$conf_file:$conf_line_number: expected KEY=value" ;;
    esac
    conf_name=${conf_line%%=*}
    conf_value=${conf_line#*=}
    case " $* " in
      *" $conf_name "*) ;;
      *) die "$EX_PRECONDITION" "$conf_file:$conf_line_number: unknown key '$conf_name'; known: $*" ;;
    esac
    case $conf_value in
      *[\'\"\\\$\`\;\|\&\<\>]*) die "$EX_PRECONDITION" \
        "$conf_file:$conf_line_number: $conf_name: quotes and shell characters mean nothing here; write plain words" ;;
    esac
    eval "CONF_$conf_name=\$conf_value"
  done <"$conf_file"
}

# words TEXT COMMAND...: runs COMMAND with the blank-separated words of TEXT appended.
words() {
  words_text=$1
  shift
  # shellcheck disable=SC2086 # splitting is the point; globbing is off
  "$@" $words_text
}
