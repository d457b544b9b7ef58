// Many open event streams at one MCP endpoint, spread over identities.

import http from 'node:http';

const meta = 'io.modelcontextprotocol/';

function request(url, method, headers, body) {
  return new Promise((resolve, reject) => {
    const made = http.request(url, { method, headers, agent: false }, (response) => resolve(response));
    made.on('error', reject);
    made.end(body);
  });
}

async function textOf(response) {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

async function openOne(url, token, era) {
  const common = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  let response;
  if (era === 'modern') {
    const _meta = { [`${meta}protocolVersion`]: '2026-07-28', [`${meta}clientCapabilities`]: {} };
    response = await request(url, 'POST', { ...common, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true }, _meta } }));
  } else {
    const initialize = await request(url, 'POST', common, JSON.stringify({
      jsonrpc: '2.0', id: 1, method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hive-bench', version: '1' } },
    }));
    const text = await textOf(initialize);
    const session = initialize.headers['mcp-session-id'];
    if (!session) throw new Error(`initialize answers ${initialize.statusCode}: ${text}`);
    const own = { ...common, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' };
    await textOf(await request(url, 'POST', own, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })));
    response = await request(url, 'GET', { ...own, accept: 'text/event-stream' });
  }
  if (response.statusCode !== 200 || !/event-stream/.test(response.headers['content-type'])) {
    throw new Error(`a stream was refused with ${response.statusCode}: ${await textOf(response)}`);
  }
  response.resume();
  return response;
}

// Resolves once all are open.
export async function openStreams({ url, tokens, count, era }) {
  const streams = [];
  for (let i = 0; i < count; i += 20) {
    streams.push(...await Promise.all(Array.from({ length: Math.min(20, count - i) }, (_, n) => openOne(url, tokens[(i + n) % tokens.length], era))));
  }
  let closing = false;
  for (const stream of streams) {
    stream.on('error', () => {});
    stream.on('close', () => {
      if (!closing) throw new Error('the gateway closed a stream');
    });
  }
  return {
    close() {
      closing = true;
      for (const stream of streams) stream.destroy();
    },
  };
}
