#!/usr/bin/env bash
# Drives an MCP server with real clients: the Inspector's command line and both TypeScript SDKs. README.md has the story.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/conformance/common.sh
. "$here/common.sh"

usage() {
  cat <<'TEXT'
usage: clients.sh URL TOKEN [CACERT]

  URL      Streamable HTTP endpoint, e.g. https://127.0.0.1:8443/mcp; '' skips HTTP
  TOKEN    bearer token; @FILE, - for $GATEWAY_TOKEN, '' for none
  CACERT   PEM file with the CA

environment
  SSE_URL     endpoint of the older HTTP+SSE transport (default: URL with /mcp replaced by /sse; empty skips it)
  STDIO_CMD   shell command that serves MCP on stdin and stdout; unset skips stdio
  ECHO_TOOL, ECHO_ARG, SLOW_TOOL   which tools to call (default: found by name)
  ALLOW_SKIP=1      a skipped transport is no failure
  ERAS        which eras the Inspector tries (default "legacy modern")

Prints one line a check: PASS, FAIL or SKIP, where, what, why. Exit code: 0 all passed, 1 a check failed or a transport was
skipped, 2 the run could not be made.
TEXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; esac
if [ $# -lt 2 ] || [ $# -gt 3 ]; then usage >&2; exit 2; fi
url=$1
read_token "$2"
cacert=${3:-}
if [ -n "$cacert" ]; then
  [ -r "$cacert" ] || die "cannot read $cacert"
  cacert=$(cd "$(dirname "$cacert")" && pwd)/${cacert##*/}
fi
if [ -z "${SSE_URL+set}" ]; then
  case $url in */mcp) SSE_URL=${url%/mcp}/sse ;; *) SSE_URL='' ;; esac
fi
eras=${ERAS:-legacy modern}

find_packages

private=$(mktemp -d "${TMPDIR:-/tmp}/hive-clients.XXXXXX")
trap 'rm -rf "$private"' EXIT
passed=0 failed=0

# What the Inspector must have printed: a tool list, or a result with the text that was sent.
judge='
const { readFileSync } = require("fs");
const [file, what, text] = process.argv.slice(1);
const raw = readFileSync(file, "utf8");
let body;
try { body = JSON.parse(raw).result ?? JSON.parse(raw); } catch { console.log("no JSON: " + raw.slice(0, 200)); process.exit(1); }
if (body.error) { console.log(JSON.stringify(body.error).slice(0, 200)); process.exit(1); }
if (what === "tools/list") {
  if (!Array.isArray(body.tools) || body.tools.length === 0) { console.log("no tools"); process.exit(1); }
  const echo = process.env.ECHO_TOOL || body.tools.map((tool) => tool.name).find((name) => /echo/i.test(name)) || "";
  require("fs").writeFileSync(file + ".echo", echo);
  console.log(body.tools.length + " tools");
} else {
  const got = (body.content ?? []).map((block) => block.text ?? "").join("");
  if (body.isError || !got.includes(text)) { console.log("got " + JSON.stringify(got).slice(0, 160)); process.exit(1); }
  console.log("the text came back");
}'

# inspector WHERE TARGET…: tools/list and tools/call with the given way to reach the server.
inspector() {
  local where=$1 what reason code; shift
  local message='inspector says "hi" to the gr\u00fc\u00dfe' text
  # shellcheck disable=SC2016 # JavaScript
  text=$("$NODE22" -p '`inspector says "hi" to the gr\u00fc\u00dfe`')
  for what in tools/list tools/call; do
    local arguments=(--method "$what" --format json -q)
    if [ $what = tools/call ]; then
      local echo; echo=$(cat "$private/list.json.echo" 2>/dev/null || true)
      if [ -z "$echo" ]; then
        printf 'FAIL  %-24s %-16s %s\n' "$where" "$what" "no echo tool found; set ECHO_TOOL"; failed=$((failed + 1)); continue
      fi
      arguments+=(--tool-name "$echo" --tool-args-json "{\"${ECHO_ARG:-message}\":\"${message//\"/\\\"}\"}")
    else
      rm -f "$private/list.json.echo"
    fi
    code=0
    env HOME="$private" ${cacert:+NODE_EXTRA_CA_CERTS="$cacert"} timeout -k 5 60 "$NODE22" "$MODULES/.bin/mcp-inspector" --cli \
      "$@" "${arguments[@]}" >"$private/list.json" 2>"$private/inspector.err" </dev/null || code=$?
    [ -s "$private/list.json" ] || cp "$private/inspector.err" "$private/list.json"
    if reason=$("$NODE22" -e "$judge" "$private/list.json" "$what" "$text") && [ $code = 0 ]; then
      printf 'PASS  %-24s %-16s %s\n' "$where" "$what" "$reason"; passed=$((passed + 1))
    else
      printf 'FAIL  %-24s %-16s %s\n' "$where" "$what" "$reason (exit $code)"; failed=$((failed + 1))
    fi
  done
}
header=()
[ -z "$TOKEN" ] || header=(--header "Authorization: Bearer $TOKEN")
if [ -n "$url" ]; then
  for era in $eras; do inspector "inspector http $era" --server-url "$url" --transport http --protocol-era "$era" --stored-auth-only "${header[@]}"; done
fi
if [ -n "$SSE_URL" ]; then inspector 'inspector sse' --server-url "$SSE_URL" --transport sse --stored-auth-only "${header[@]}"; fi
if [ -n "${STDIO_CMD:-}" ]; then
  for era in $eras; do inspector "inspector stdio $era" sh -c "exec $STDIO_CMD" --protocol-era "$era"; done
fi
printf 'inspector: %d passed, %d failed\n' "$passed" "$failed"

code=0
env CLIENTS_DIR="${MODULES%/*}" MCP_URL="$url" SSE_URL="$SSE_URL" STDIO_CMD="${STDIO_CMD:-}" MCP_TOKEN="$TOKEN" ${cacert:+NODE_EXTRA_CA_CERTS="$cacert"} \
  timeout -k 10 600 "$NODE22" --no-warnings "$here/clients.mjs" </dev/null || code=$?
if [ $failed = 0 ] && { [ $code = 0 ] || { [ $code = 3 ] && [ "${ALLOW_SKIP:-}" = 1 ]; }; }; then exit 0; fi
exit 1
