// The smallest server that the official TypeScript SDK makes: one tool that returns what it gets, from memory. Over
// Streamable HTTP with JSON answers on 127.0.0.1 (PORT in the environment), or with --stdio behind a bridge.

import crypto from 'node:crypto';
import http from 'node:http';

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

function makeServer() {
  const server = new Server({ name: 'minimal', version: '1' }, { capabilities: { tools: {} } });
  const inputSchema = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] };
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'echo', description: 'Returns the message.', inputSchema }] }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({ content: [{ type: 'text', text: params.arguments.message }] }));
  return server;
}

async function answer(sessions, request, response) {
  const id = request.headers['mcp-session-id'];
  let transport = sessions.get(id);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      enableJsonResponse: true,
      onsessioninitialized: (made) => sessions.set(made, transport),
    });
    await makeServer().connect(transport);
  }
  await transport.handleRequest(request, response);
}

if (process.argv.includes('--stdio')) {
  await makeServer().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const server = http.createServer((request, response) => {
    answer(sessions, request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening on port'));
}
