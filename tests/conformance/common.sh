# shellcheck shell=bash
# Shared by run.sh and clients.sh: the pinned packages, nginx, the token. Source it, don't run it.
# shellcheck disable=SC2034 # what it sets is for them

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

# find_packages: sets MODULES to the folder of the packages that tests/package-lock.json pins, and NODE22 to a Node.js 22.
find_packages() {
  local candidate
  MODULES=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)/node_modules
  [ -d "$MODULES/@modelcontextprotocol/conformance" ] || die "the npm packages of tests/ are missing; run ./hive setup test"
  NODE22=''
  for candidate in node "$MODULES"/node-linux-*/bin/node; do
    if [ "$("$candidate" -p 'Number(process.versions.node.split(".")[0]) >= 22' 2>/dev/null)" = true ]; then
      NODE22=$(command -v "$candidate")
      return
    fi
  done
  die "no Node.js 22 here; run ./hive setup test"
}

find_nginx() {
  NGINX=${NGINX_BIN:-$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx || true)}
  [ -x "$NGINX" ] || die "nginx is missing; run ./hive setup test, or set NGINX_BIN"
}

# read_token ARGUMENT: the token itself, @FILE, or - for $GATEWAY_TOKEN. Sets TOKEN; empty means that none is sent.
read_token() {
  case $1 in
    -) TOKEN=${GATEWAY_TOKEN:-} ;;
    @*) TOKEN=$(cat "${1#@}") || die "cannot read ${1#@}" ;;
    *) TOKEN=$1 ;;
  esac
  [[ $TOKEN =~ ^[A-Za-z0-9._~+/=:-]*$ ]] || die "the token has characters that a bearer token cannot have"
}
