#!/usr/bin/env bash
# ./hive setup: installs the packages of packaging/packages.txt and the pinned npm packages.
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"

readonly list=$HIVE_ROOT/packaging/packages.txt
readonly all_groups='build run demo test lint bench'

usage() {
  cat <<TEXT
Usage: ./hive setup [OPTIONS] [GROUP...]

Installs the Debian packages listed in packaging/packages.txt and the npm packages pinned in tests/ and bench/.
Runs as root, or through sudo. What is there already is left alone; then nothing is downloaded.

Groups: $all_groups (default: all)

  --quiet    say nothing when there is nothing to do
  --check    install nothing; list what is missing and exit 1 if anything is

Examples:
  ./hive setup               everything
  ./hive setup build run     what ./hive up needs
TEXT
}

quiet=false check=false groups=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --quiet) quiet=true ;;
    --check) check=true ;;
    -*) usage_error "setup: unknown option '$1'; see ./hive setup --help" ;;
    *)
      [[ " $all_groups " == *" $1 "* ]] || usage_error "setup: no group '$1'; there are: $all_groups"
      groups+=("$1")
      ;;
  esac
  shift
done
[ ${#groups[@]} -gt 0 ] || read -ra groups <<<"$all_groups"

wanted_group() {
  local group
  for group in "${groups[@]}"; do
    [ "$group" != "$1" ] || return 0
  done
  return 1
}

# missing_packages: the Debian packages of the wanted groups that are not installed, one a line.
missing_packages() {
  local name group _ command wanted=()
  while read -r name group _; do
    case $name in '' | '#'*) continue ;; esac
    wanted_group "$group" || continue
    if [[ $name == *\?* ]]; then
      command=${name#*\?}
      # /usr/sbin is not on everybody's PATH, and nginx lives there.
      PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null && continue
      name=${name%%\?*}
    fi
    wanted+=("$name")
  done <"$list"
  [ ${#wanted[@]} -gt 0 ] || return 0
  # dpkg-query fails when it knows a name not at all; what it prints for the others still counts.
  { dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true; } |
    awk -v wanted="${wanted[*]}" '
      $1 == "installed" { installed[$2] }
      END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in installed)) print names[i] }' |
    sort -u
}

# as_root COMMAND...: runs it as root, or fails with the way out.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    # Without a terminal nobody can type a password: fail at once instead of waiting for one.
    local flags=()
    [ -t 0 ] || flags=(-n)
    sudo "${flags[@]}" env DEBIAN_FRONTEND=noninteractive "$@"
  else
    die "packages are missing and neither root nor sudo is here; as root run: apt-get install ${missing[*]}"
  fi
}

# A server package starts its service when it is installed. We want its program, not a web server on port 80.
readonly policy=/usr/sbin/policy-rc.d
hold_services() {
  [ ! -e $policy ] || return 0
  # shellcheck disable=SC2016
  as_root sh -c 'printf "#!/bin/sh\nexit 101\n" >"$1" && chmod 755 "$1"' sh $policy
  trap 'as_root rm -f $policy' EXIT
}

install_packages() {
  [ -f /etc/debian_version ] || die "setup knows Debian 12; install what packaging/packages.txt lists by hand: ${missing[*]}"
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  hold_services
  as_root apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update -qq ||
    die "apt-get update failed; check the network and /etc/apt/sources.list, then run ./hive setup again"
  as_root apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install -y -qq --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]}; its message stands above"
  if [[ " ${missing[*]} " == *' nginx-light '* ]] && [ -d /run/systemd/system ]; then
    as_root systemctl --quiet disable nginx.service || say "note: nginx.service stays enabled"
  fi
}

# install_npm FOLDER: its packages exactly as the lock file says. The stamp tells a second run that they are there.
install_npm() {
  local folder=$HIVE_ROOT/$1 stamp=$HIVE_ROOT/$1/node_modules/.installed-lock
  cmp -s "$folder/package-lock.json" "$stamp" && return 0
  if $check; then
    missing+=("npm:$1")
    return 0
  fi
  command -v npm >/dev/null || die "npm is missing; run ./hive setup test bench"
  say "installing the npm packages of $1/package-lock.json"
  (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error >&2) ||
    die "npm ci failed in $1/; check the network and the registry (npm config get registry), then run ./hive setup again"
  # An optional package that npm cannot fetch is no error to npm.
  [ "$1" != tests ] || hive_node >/dev/null ||
    die "npm ci brought no Node.js 22 into tests/; check the network and the registry (npm config get registry), then run ./hive setup again"
  cp "$folder/package-lock.json" "$stamp"
  installed_npm=true
}

mapfile -t missing < <(missing_packages)
installed_npm=false
nothing=true
if [ ${#missing[@]} -gt 0 ]; then
  nothing=false
  $check || install_packages
fi
if wanted_group test; then install_npm tests; fi
if wanted_group bench; then install_npm bench; fi

if $check; then
  [ ${#missing[@]} -gt 0 ] || exit 0
  printf '%s\n' "${missing[@]}"
  exit 1
fi
if $nothing && ! $installed_npm; then
  $quiet || say "everything is there"
else
  say "setup done"
fi
