// The official JSON schema of every revision of MCP, and whether a message of a server keeps to it.

import assert from 'node:assert/strict';
import fs from 'node:fs';

import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const folder = new URL('../../conformance/schema/', import.meta.url);
const results = {
  initialize: 'InitializeResult',
  ping: 'EmptyResult',
  'logging/setLevel': 'EmptyResult',
  'resources/subscribe': 'EmptyResult',
  'resources/unsubscribe': 'EmptyResult',
  'tools/list': 'ListToolsResult',
  'tools/call': 'CallToolResult',
  'prompts/list': 'ListPromptsResult',
  'prompts/get': 'GetPromptResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
  'resources/read': 'ReadResourceResult',
  'completion/complete': 'CompleteResult',
  'server/discover': 'DiscoverResult',
  'subscriptions/listen': 'SubscriptionsListenResult',
};
const schemas = new Map();

class Schema {
  constructor(revision) {
    const text = fs.readFileSync(new URL(`${revision}.json`, folder), 'utf8');
    const schema = JSON.parse(text);
    this.key = schema.$defs ? '$defs' : 'definitions';
    this.definitions = schema[this.key];
    this.ajv = new (schema.$defs ? Ajv2020 : Ajv)({ strict: false, allErrors: true });
    addFormats.default(this.ajv);
    // The formats of RFC 6570 and of base64 are known; what a schema names beyond them is not ours to judge.
    this.ajv.addSchema(schema, 'mcp');
    // Names of notifications and requests that the server sends, by method.
    const sent = (name) => (this.definitions[name]?.anyOf ?? []).map(({ $ref }) => $ref.split('/').at(-1));
    this.byMethod = new Map(['ServerNotification', 'ServerRequest'].flatMap(sent)
      .map((name) => [this.definitions[name].properties.method.const, name]));
  }

  has(name) {
    return name in this.definitions;
  }

  problems(name, value) {
    const validate = this.ajv.getSchema(`mcp#/${this.key}/${name}`);
    if (validate(value)) return [];
    return validate.errors.map((error) => `${name}${error.instancePath} ${error.message}`);
  }
}

function schemaOf(revision) {
  if (!schemas.has(revision)) schemas.set(revision, new Schema(revision));
  return schemas.get(revision);
}

// What is wrong with a message that a server sent. `method`: of the request that a response answers.
export function problemsOf(revision, message, method) {
  const schema = schemaOf(revision);
  const either = (...names) => names.find((name) => schema.has(name));
  if (message?.method !== undefined) {
    const name = schema.byMethod.get(message.method);
    if (!name) return [`${message.method} is nothing that a server sends in ${revision}`];
    const envelope = 'id' in message ? 'JSONRPCRequest' : 'JSONRPCNotification';
    return [...schema.problems(envelope, message), ...schema.problems(name, message)];
  }
  if (message?.error !== undefined) {
    // An error that answers no request has no id, which the older schemas do not know.
    const value = 'id' in message || schema.has('JSONRPCErrorResponse') ? message : { ...message, id: 0 };
    return schema.problems(either('JSONRPCErrorResponse', 'JSONRPCError'), value);
  }
  const envelope = schema.problems(either('JSONRPCResultResponse', 'JSONRPCResponse'), message);
  if (envelope.length > 0) return envelope;
  const name = results[method];
  if (!name || !schema.has(name)) return [`${method} has no result in ${revision}`];
  if (message.result.resultType === 'input_required') return schema.problems('InputRequiredResult', message.result);
  return schema.problems(name, message.result);
}

export function assertValid(revision, message, method) {
  const problems = problemsOf(revision, message, method);
  assert.deepEqual(problems, [], `against the schema of ${revision}: ${JSON.stringify(message).slice(0, 2000)}`);
}
