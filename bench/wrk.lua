-- The load that wrk sends, told through the environment so that no token stands in a process list:
--   BENCH_BODY     the body of a POST; absent: GET. "%ID%" becomes a number of its own in every request, "%AGENT%" a
--                  number from 1 to BENCH_AGENTS, each in turn.
--   BENCH_HEADERS  "Name: value" lines
-- Prints one line for run.mjs: BENCH requests microseconds errors p50 p99 (microseconds)

local body = os.getenv("BENCH_BODY")
if body then
  wrk.method = "POST"
  wrk.body = body
end
for name, value in string.gmatch(os.getenv("BENCH_HEADERS") or "", "([^:\n]+): ([^\n]+)") do
  wrk.headers[name] = value
end

if body and string.find(body, "%ID%", 1, true) then
  local before, after = string.match(body, "^(.-)%%ID%%(.*)$")
  local number = 0
  function request()
    number = number + 1
    return wrk.format(nil, nil, nil, before .. number .. after)
  end
end

-- Made before the clock runs: with thousands of agents, making them would cost the load generator as much as sending.
if body and string.find(body, "%AGENT%", 1, true) then
  local requests = {}
  function init()
    local before, after = string.match(body, "^(.-)%%AGENT%%(.*)$")
    for number = 1, tonumber(os.getenv("BENCH_AGENTS")) do
      requests[number] = wrk.format(nil, nil, nil, before .. number .. after)
    end
  end
  local next = 0
  function request()
    next = next % #requests + 1
    return requests[next]
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("BENCH %d %d %d %d %d\n", summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
