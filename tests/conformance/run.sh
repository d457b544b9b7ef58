#!/usr/bin/env bash
# Measures how an MCP gateway does in the official MCP conformance suite, both eras. README.md has the whole story.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/conformance/common.sh
. "$here/common.sh"

usage() {
  cat <<'TEXT'
usage: run.sh GATEWAY_MCP_URL BEARER_TOKEN [CACERT]

  GATEWAY_MCP_URL   the gateway's Streamable HTTP endpoint, http or https, e.g. https://127.0.0.1:8443/mcp
  BEARER_TOKEN      the token; @FILE reads it from a file, - takes it from $GATEWAY_TOKEN, '' sends none
  CACERT            PEM file with the CA of an https gateway

environment
  GATEWAY_HOST_MODE  pass (default): the gateway sees Host and Origin as the suite sent them, 127.0.0.1:PORT of the proxy;
                     rewrite: the proxy's own address is replaced by the gateway's in both, foreign ones stay as they are
  GATEWAY_TLS_NAME   the name to verify in the gateway's certificate (default: the URL's, else the certificate's own)
  REVISIONS          default "2025-11-25 2026-07-28"
  ERA_TIMEOUT        seconds for one revision (default 300)
  OUT                directory for results (default: a new one under $TMPDIR)
  ALSO_REQUIRE       scenarios that the suite runs without scoring them, to be required here all the same
  STRICT_COUNTS=1    fail a scenario that ran fewer checks than expected-checks.json says
  NGINX_BIN          nginx, where it is not on the PATH

exit code: 0 every required server scenario passed and really ran; 1 not; 2 the run could not be made
TEXT
}
case ${1:-} in -h|--help) usage; exit 0 ;; esac
if [ $# -lt 2 ] || [ $# -gt 3 ]; then usage >&2; exit 2; fi

url=$1
read_token "$2"
cacert=${3:-}
mode=${GATEWAY_HOST_MODE:-pass}
read -r -a revisions <<<"${REVISIONS:-2025-11-25 2026-07-28}"
limit=${ERA_TIMEOUT:-300}

[[ $url =~ ^(https?)://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+)(:([0-9]+))?(/[A-Za-z0-9._~/%-]*)?$ ]] || die "not a usable URL: $url"
scheme=${BASH_REMATCH[1]} host=${BASH_REMATCH[2]} port=${BASH_REMATCH[4]} path=${BASH_REMATCH[5]:-/}
authority=$host${port:+:$port}
port=${port:-$([ "$scheme" = https ] && echo 443 || echo 80)}
case $mode in pass|rewrite) ;; *) die "GATEWAY_HOST_MODE=$mode: expected pass or rewrite" ;; esac
case $host in
  localhost|127.*|\[::1\]) ;;
  *) getent ahosts "$host" | awk '{print $1}' | grep -qvE '^(127\.|::1$)' && die "$host is not on this machine's loopback; this tool tests local gateways only" ;;
esac
if [ -n "$cacert" ]; then
  [ -r "$cacert" ] || die "cannot read $cacert"
  cacert=$(cd "$(dirname "$cacert")" && pwd)/${cacert##*/}
elif [ "$scheme" = https ]; then
  cacert=/etc/ssl/certs/ca-certificates.crt
fi

# 1. What is needed.
find_packages
find_nginx
suite=$MODULES/@modelcontextprotocol/conformance
out=${OUT:-$(mktemp -d "${TMPDIR:-/tmp}/hive-conformance-results.XXXXXX")}
mkdir -p "$out"
out=$(cd "$out" && pwd)
for revision in "${revisions[@]}"; do
  [ -f "$suite/requirements/$revision.yaml" ] || die "the suite has no requirements for $revision"
  rm -rf "${out:?}/$revision"
done
rm -f "$out/proxy.jsonl" "$out/summary.json"

private=$(mktemp -d "${TMPDIR:-/tmp}/hive-conformance.XXXXXX")
nginx_pid='' suite_pid=''
# shellcheck disable=SC2317 # the traps call it
cleanup() {
  trap - EXIT
  [ -z "$suite_pid" ] || kill "$suite_pid" 2>/dev/null || true
  if [ -n "$nginx_pid" ]; then kill -TERM "$nginx_pid" 2>/dev/null || true; wait "$nginx_pid" 2>/dev/null || true; fi
  [ ! -f "$private/error.log" ] || cp "$private/error.log" "$out/proxy-error.log"
  rm -rf "$private"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

probe() {
  local code=0
  MCP_TOKEN=$2 NODE_EXTRA_CA_CERTS=$cacert "$NODE22" --no-warnings "$here/probe.mjs" "$1" >"$private/probe.txt" || code=$?
  grep -Ev '^(tls-name|refusals) ' "$private/probe.txt" | sed "s/^/$3: /"
  return $code
}
give_up() {
  printf '%s\n' "$1"
  local line='' revision
  for revision in "${revisions[@]}"; do
    line+="${line:+; }$revision: 0/$(sed -n '/^server:/,/^[a-z]*:$/p' "$suite/requirements/$revision.yaml" | grep -c '^  - ') scenarios, 0 checks"
  done
  printf '%s\n' "$line"
  exit 2
}

# 2. Is anybody there? Asked before the suite runs, because the suite ticks some scenarios against a dead port.
printf 'gateway %s, results in %s\n' "$url" "$out"
code=0
probe "$url" "$TOKEN" direct || code=$?
case $code in
  0) ;;
  3) give_up "the gateway does not answer at $url" ;;
  *) give_up "something listens at $url, but it answers neither era (token, path or host wrong?)" ;;
esac
tls_name=${GATEWAY_TLS_NAME:-$(sed -n 's/^tls-name //p' "$private/probe.txt")}
[[ $tls_name =~ ^[A-Za-z0-9.-]*$ ]] || die "not a usable name in the certificate: $tls_name"

# 3. A private nginx that adds the token. It holds no connection to the gateway open between requests: a reused connection
# that the gateway closes at the same moment would look like a gateway error.
write_config() {
  local listen=$1
  mkdir -p "$private/tmp"
  {
    [ "$(id -u)" != 0 ] || echo 'user root;'
    cat <<CONFIG
daemon off;
worker_processes 1;
pid $private/nginx.pid;
error_log $private/error.log warn;
events { worker_connections 1024; }
http {
  log_format jsonl escape=json '{"time":"\$time_iso8601","method":"\$request_method","uri":"\$request_uri","mcp_method":"\$http_mcp_method","mcp_name":"\$http_mcp_name",'
    '"protocol":"\$http_mcp_protocol_version","session":"\$http_mcp_session_id","host":"\$http_host","origin":"\$http_origin","host_sent":"\$gateway_host",'
    '"status":"\$status","answered_after":"\$upstream_header_time","bytes":"\$body_bytes_sent","seconds":"\$request_time"}';
  access_log $out/proxy.jsonl jsonl;
  client_body_temp_path $private/tmp/body;
  proxy_temp_path $private/tmp/proxy;
  fastcgi_temp_path $private/tmp/fastcgi;
  uwsgi_temp_path $private/tmp/uwsgi;
  scgi_temp_path $private/tmp/scgi;
  map_hash_bucket_size 256;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  large_client_header_buffers 8 32k;
  ignore_invalid_headers off;
  merge_slashes off;
  gzip off;
  map \$http_host \$gateway_host {
    default \$http_host;
CONFIG
    [ "$mode" = pass ] || printf '    "127.0.0.1:%s" "%s";\n    "localhost:%s" "%s";\n' "$listen" "$authority" "$listen" "$authority"
    # shellcheck disable=SC2016 # nginx's variables
    printf '  }\n  map $http_origin $gateway_origin {\n    default $http_origin;\n'
    [ "$mode" = pass ] || printf '    "http://127.0.0.1:%s" "%s://%s";\n    "http://localhost:%s" "%s://%s";\n' "$listen" "$scheme" "$authority" "$listen" "$scheme" "$authority"
    cat <<CONFIG
  }
  server {
    listen 127.0.0.1:$listen;
    location = /mcp {
      proxy_pass $scheme://$host:$port$path;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host \$gateway_host;
      proxy_set_header Origin \$gateway_origin;
CONFIG
    [ -z "$TOKEN" ] || printf '      proxy_set_header Authorization "Bearer %s";\n' "$TOKEN"
    if [ "$scheme" = https ]; then
      printf '      proxy_ssl_protocols TLSv1.2 TLSv1.3;\n'
      if [ "$tls_name" = - ]; then
        # The certificate carries addresses only; nginx compares names only. The probe above verified chain and address.
        printf '      proxy_ssl_verify off;\n'
      else
        printf '      proxy_ssl_server_name on;\n      proxy_ssl_name %s;\n      proxy_ssl_verify on;\n      proxy_ssl_verify_depth 4;\n      proxy_ssl_trusted_certificate %s;\n' "$tls_name" "$cacert"
      fi
    fi
    cat <<'CONFIG'
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_cache off;
      proxy_max_temp_file_size 0;
      proxy_buffer_size 64k;
      proxy_buffers 8 64k;
      proxy_busy_buffers_size 128k;
      proxy_connect_timeout 10s;
      proxy_send_timeout 3600s;
      proxy_read_timeout 3600s;
      send_timeout 3600s;
      proxy_next_upstream error;
      proxy_ignore_client_abort off;
      proxy_intercept_errors off;
      proxy_redirect off;
    }
    location / { return 404; }
  }
}
CONFIG
  } >"$private/nginx.conf"
}
for attempt in 1 2 3 4 5; do
  listen=$("$NODE22" -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
  write_config "$listen"
  "$NGINX" -p "$private/" -c "$private/nginx.conf" -e "$private/error.log" &
  nginx_pid=$!
  for _ in $(seq 100); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$listen") 2>/dev/null; then break 2; fi
    kill -0 "$nginx_pid" 2>/dev/null || break
    sleep 0.05
  done
  kill "$nginx_pid" 2>/dev/null || true
  wait "$nginx_pid" 2>/dev/null || true
  nginx_pid=''
  [ "$attempt" != 5 ] || { cat "$private/error.log" >&2; die "nginx does not start"; }
done
endpoint=http://127.0.0.1:$listen/mcp
code=0
probe "$endpoint" '' "through nginx, Host $mode" || code=$?
if [ $code != 0 ]; then
  tail -n 5 "$private/error.log" || true
  hint=''
  if [ "$mode" = pass ] && grep -qE '^refusals .*(400|403|421)' "$private/probe.txt"; then
    hint="; it answers directly, so it may refuse the Host 127.0.0.1:$listen: try GATEWAY_HOST_MODE=rewrite"
  fi
  give_up "the gateway does not answer through the proxy$hint"
fi
# The probes are not part of the measurement (nginx appends, so the file may simply be emptied).
: >"$out/proxy.jsonl"

# 4. The suite, once for each revision, then what really passed.
results=()
for revision in "${revisions[@]}"; do
  mkdir -p "$out/$revision"
  printf 'running the suite for %s\n' "$revision"
  code=0
  timeout -k 10 "$limit" "$NODE22" "$suite/dist/index.js" server \
    --url "$endpoint" --requirements "$revision" -o "$out/$revision" >"$out/$revision.log" 2>&1 </dev/null &
  suite_pid=$!
  wait "$suite_pid" || code=$?
  suite_pid=''
  results+=("$revision=$code")
done
printf '\n'
code=0
"$NODE22" "$here/report.mjs" --suite "$suite" --out "$out" --expected "$here/expected-checks.json" ${WRITE_EXPECTED:+--write-expected "$WRITE_EXPECTED"} "${results[@]}" || code=$?
exit $code
