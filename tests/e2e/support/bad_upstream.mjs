// An MCP server of 2025-06-18 that misbehaves when it is told to, on stdio or on HTTP (--http PORT, with JSON answers).
// Its tool "publish" says of itself what stands in the file of DESCRIPTION_FILE.

import fs from 'node:fs';
import http from 'node:http';
import readline from 'node:readline';

const cancelled = [];
const tool = (name, description, properties = {}) => ({ name, description, inputSchema: { type: 'object', properties } });
const tools = () => [
  tool('publish', fs.readFileSync(process.env.DESCRIPTION_FILE, 'utf8').trim()),
  tool('pid', 'The process of this server.'),
  tool('hang', 'Never answers.'),
  tool('cancelled', 'How many of its calls were cancelled.'),
  tool('changed', 'Says that the list of tools has changed, so often.', { times: { type: 'integer' } }),
  tool('chatter', 'Sends so many notifications that nobody asked for.', { times: { type: 'integer' } }),
  tool('long_line', 'Sends a line of so many bytes.', { bytes: { type: 'integer' } }),
];
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
const notification = (method, params) => ({ jsonrpc: '2.0', method, params });

// Sends as fast as the other side reads.
async function many(times, message, write) {
  for (let i = 0; i < times; i++) if (!write(message)) await new Promise((resolve) => { process.stdout.once('drain', resolve); });
}

const calls = {
  publish: () => text('published'),
  pid: () => text(process.pid),
  hang: () => {
    console.error('hangs now');
    return new Promise(() => {});
  },
  cancelled: () => text(cancelled.length),
  changed: async ({ times = 1 }, write) => {
    await many(times, notification('notifications/tools/list_changed'), write);
    return text('told');
  },
  chatter: async ({ times = 1 }, write) => {
    await many(times, notification('notifications/message', { level: 'emergency', data: 'x'.repeat(200) }), write);
    return text('said');
  },
  long_line: async ({ bytes = 1 }) => text('y'.repeat(bytes)),
};

async function answer({ id, method, params = {} }, write) {
  if (method === 'notifications/cancelled') cancelled.push(params.requestId);
  if (id === undefined || method === undefined) return undefined;
  const reply = (body) => ({ jsonrpc: '2.0', id, ...body });
  if (method === 'initialize') {
    return reply({ result: {
      protocolVersion: '2025-06-18', serverInfo: { name: 'bad', version: '1' }, capabilities: { tools: { listChanged: true }, logging: {} } } });
  }
  if (method === 'tools/list') return reply({ result: { tools: tools() } });
  if (method === 'tools/call') return reply({ result: await calls[params.name](params.arguments ?? {}, write) });
  if (method === 'ping' || method === 'logging/setLevel') return reply({ result: {} });
  return reply({ error: { code: -32601, message: `Method not found: ${method}` } });
}

if (process.argv[2] === '--http') {
  const server = http.createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    let body = '';
    for await (const chunk of request) body += chunk;
    const message = await answer(JSON.parse(body), () => true);
    if (message === undefined) return response.writeHead(202).end();
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message));
  });
  server.listen(Number(process.argv[3]), '127.0.0.1', () => console.error(`listening on ${server.address().port}`));
} else {
  const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  readline.createInterface({ input: process.stdin }).on('line', async (line) => {
    const message = await answer(JSON.parse(line), write);
    if (message !== undefined) write(message);
  });
}
