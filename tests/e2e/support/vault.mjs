// A server of secrets that follows the documented HTTP API of HashiCorp Vault as far as the engine KV goes: versions 1
// and 2, namespaces, tokens, sealing, deleted versions. In memory, on a free port of 127.0.0.1.

import http from 'node:http';
import https from 'node:https';
import { randomUUID } from 'node:crypto';

const envelope = (data) => ({
  request_id: randomUUID(), lease_id: '', renewable: false, lease_duration: 0, data, wrap_info: null, warnings: null, auth: null,
});

export class Vault {
  // `tls`: { key, cert } in PEM; without it the server speaks plain HTTP. `engines`: mount to version.
  static async start({ token, tls, namespace = '', engines = { secret: 2, kv: 1 } }) {
    const vault = new Vault();
    Object.assign(vault, { token, namespace, engines, sealed: false, asked: [], secrets: new Map() });
    const handler = (request, response) => vault.#serve(request, response);
    vault.server = tls ? https.createServer(tls, handler) : http.createServer(handler);
    await new Promise((resolve) => vault.server.listen(0, '127.0.0.1', resolve));
    vault.url = `${tls ? 'https' : 'http'}://127.0.0.1:${vault.server.address().port}`;
    return vault;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  // The paths that were read since the last time.
  takeReads() {
    return this.asked.splice(0).filter(({ method }) => method === 'GET').map(({ path }) => path);
  }

  #serve(request, response) {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const [status, body] = this.#answer(request, Buffer.concat(chunks).toString());
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body === undefined ? '' : JSON.stringify(body));
    });
  }

  #answer(request, body) {
    if (this.sealed) return [503, { errors: ['Vault is sealed'] }];
    const url = new URL(request.url, this.url);
    if (!url.pathname.startsWith('/v1/')) return [404, { errors: [] }];
    this.asked.push({ method: request.method, path: url.pathname.slice(4) });
    if (request.headers['x-vault-token'] !== this.token) return [403, { errors: ['permission denied'] }];
    if ((request.headers['x-vault-namespace'] ?? '').replace(/\/$/, '') !== this.namespace) return [404, { errors: [] }];
    const [mount, ...rest] = url.pathname.slice(4).split('/');
    if (this.engines[mount] === 1) return this.#versionOne(request.method, [mount, ...rest].join('/'), body);
    if (this.engines[mount] === 2 && rest[0] === 'data') return this.#versionTwo(request.method, [mount, ...rest].join('/'), body);
    return [404, { errors: [] }];
  }

  #versionOne(method, path, body) {
    if (method === 'PUT' || method === 'POST') {
      this.secrets.set(path, JSON.parse(body));
      return [204];
    }
    if (method === 'DELETE') return [204, this.secrets.delete(path) && undefined];
    return this.secrets.has(path) ? [200, envelope(this.secrets.get(path))] : [404, { errors: [] }];
  }

  #versionTwo(method, path, body) {
    const versions = this.secrets.get(path) ?? [];
    const newest = versions.at(-1);
    if (method === 'PUT' || method === 'POST') {
      const metadata = { created_time: new Date().toISOString(), custom_metadata: null, deletion_time: '', destroyed: false, version: versions.length + 1 };
      this.secrets.set(path, [...versions, { data: JSON.parse(body).data, metadata }]);
      return [200, envelope(metadata)];
    }
    if (method === 'DELETE') {
      if (newest) newest.metadata.deletion_time = new Date().toISOString();
      return [204];
    }
    if (!newest) return [404, { errors: [] }];
    // A deleted version is answered with its metadata, and with 404.
    return newest.metadata.deletion_time ? [404, envelope({ data: null, metadata: newest.metadata })] : [200, envelope(newest)];
  }
}
