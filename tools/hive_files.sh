# shellcheck shell=bash
# The files of a private hive: keys, tokens, configurations, the environment to be sourced. Sourced by up.sh, after
# hive_lib.sh.
# shellcheck disable=SC2154 # hive_bin is hive_lib.sh's

# used_ports: the ports on which anything listens or talks on this machine. The shell itself must not read these tables:
# it seeks back after each line, and the kernel walks through all connections at each seek.
used_ports() {
  local port
  while read -r port; do printf '%d\n' "0x$port"; done < <(
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk 'split($2, address, ":") == 2 { print address[2] }' | sort -u
  )
}

# choose_ports NAME...: sets each variable to another free port. From below the range of outgoing connections, so that
# none of those takes the port between this look and the gateway's bind.
choose_ports() {
  local -A taken=()
  local port name
  while read -r port; do taken[$port]=1; done < <(used_ports)
  for name; do
    port=$((20000 + SRANDOM % 12000))
    while [ -n "${taken[$port]-}" ]; do port=$((20000 + SRANDOM % 12000)); done
    taken[$port]=1
    printf -v "$name" %d "$port"
  done
}

# make_token: 256 random bits in hexadecimal.
make_token() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }

# make_keys DIR N: what is missing of the gateway's key, the tokens and the keys of agent-1 to agent-N.
make_keys() {
  local dir=$1 count=$2 role i folder missing=()
  [ -f "$dir/gateway/host_key" ] ||
    ssh-keygen -q -t ed25519 -N '' -C myrmex-gateway -f "$dir/gateway/host_key" </dev/null
  for role in admin operator read-only; do
    [ ! -f "$dir/gateway/tokens/$role" ] || continue
    make_token >"$dir/gateway/tokens/$role"
    printf 'Authorization: Bearer %s\n' "$(<"$dir/gateway/tokens/$role")" >"$dir/gateway/tokens/$role.header"
  done
  for ((i = 1; i <= count; i++)); do
    folder=$dir/agents/agent-$i
    [ -f "$folder/id_ed25519.pub" ] || missing+=("$i")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    # shellcheck disable=SC2016
    printf '%s\n' "${missing[@]}" | xargs -P "$(nproc)" -I '{}' bash -c '
      mkdir -p "$1/agents/agent-$2" && rm -f "$1/agents/agent-$2/id_ed25519" &&
      ssh-keygen -q -t ed25519 -N "" -C "agent-$2" -f "$1/agents/agent-$2/id_ed25519" </dev/null' keygen "$dir" '{}' ||
      die "ssh-keygen could not make the agents' keys under $dir/agents"
  fi
  if [ ${#missing[@]} -gt 0 ] || [ ! -f "$dir/gateway/authorized_keys" ]; then
    for ((i = 1; i <= count; i++)); do
      cat "$dir/agents/agent-$i/id_ed25519.pub"
    done >"$dir/gateway/authorized_keys"
  fi
}

# write_gateway_config DIR SSH_PORT HTTPS_PORT HTTP_PORT
write_gateway_config() {
  local dir=$1
  cat >"$dir/gateway/gateway_config.json" <<TEXT
{
  "listen_addr": "127.0.0.1:$2",
  "http_addr": "127.0.0.1:$3",
  "plaintext_http_addr": "127.0.0.1:$4",
  "host_key_path": $(json_string "$dir/gateway/host_key"),
  "authorized_keys_path": $(json_string "$dir/gateway/authorized_keys"),
  "state_dir": $(json_string "$dir/gateway/state"),
  "audit_log_path": $(json_string "$dir/gateway/audit.log"),
  "auth_token": "$(<"$dir/gateway/tokens/admin")",
  "tokens": {
    "$(<"$dir/gateway/tokens/operator")": "operator",
    "$(<"$dir/gateway/tokens/read-only")": "read-only"
  }
}
TEXT
}

# The allowlist of an agent that has no profile: enough to look around, nothing that changes anything.
default_profile() {
  cat <<'TEXT'
[
    {"name": "uptime", "args_regex": "^$"},
    {"name": "df", "args_regex": "^-h$"},
    {"name": "echo", "args_regex": "^[A-Za-z0-9][A-Za-z0-9._-]*( [A-Za-z0-9][A-Za-z0-9._-]*)*$"},
    {"name": "sleep", "args_regex": "^([1-9]|[1-9][0-9]|1[01][0-9]|120)$", "timeout_seconds": 130}
  ]
TEXT
}

# write_agent_config DIR ID SSH_PORT PROFILE: PROFILE is a file with a JSON array, or empty.
write_agent_config() {
  local folder=$1/agents/$2 profile
  if [ -n "$4" ]; then profile=$(<"$4"); else profile=$(default_profile); fi
  cat >"$folder/agent_config.json" <<TEXT
{
  "agent_id": "$2",
  "gateway_addr": "127.0.0.1:$3",
  "private_key_path": $(json_string "$folder/id_ed25519"),
  "gateway_host_key": $(json_string "$(<"$1/gateway/host_key.pub")"),
  "allowed_commands": $profile
}
TEXT
}

# write_env DIR SSH_PORT HTTPS_PORT HTTP_PORT: for `source` or `.` in any POSIX shell. Holds the admin token.
write_env() {
  local dir=$1
  {
    echo "export MYRMEX_URL=https://127.0.0.1:$3"
    echo "export MYRMEX_TOKEN=$(<"$dir/gateway/tokens/admin")"
    echo "export MYRMEX_CACERT=$(sh_quote "$dir/gateway/state/tls/tls_cert.pem")"
    echo "export MYRMEX_HTTP_URL=http://127.0.0.1:$4"
    echo "export MYRMEX_SSH_ADDR=127.0.0.1:$2"
    echo "export MYRMEX_AUDIT_LOG=$(sh_quote "$dir/gateway/audit.log")"
    echo "export MYRMEX_HOST_KEY=$(sh_quote "$dir/gateway/host_key.pub")"
    echo "export PATH=$(sh_quote "$hive_bin"):\"\$PATH\""
  } >"$dir/env.new"
  mv -f -- "$dir/env.new" "$dir/env"
}
