// Logs in to a server of the product with the official TypeScript client, at a certified OpenID provider: the challenge of the server,
// its metadata, the provider's metadata, a login with PKCE, a call, a 403 for a larger scope, a second login, and the call again.
// Then tokens that must be refused: for another audience, an ID token, and one that nobody signed.
//
//   node login.mjs --command SALLYPORT --data FOLDER
//
// It starts the provider and the server on loopback, and stops both. Prints a line per check and "N passed, M failed" last; exits 1
// when a check failed.
import { execFileSync, spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Provider } from 'oidc-provider';

const { values: options } = parseArgs({ options: { command: { type: 'string' }, data: { type: 'string' } } });
const callback = 'http://127.0.0.1/callback';
const scopes = 'memory:read memory:write';

let passed = 0;
let failed = 0;
function check(name, ok, got) {
  if (ok) {
    passed++;
    console.log(`ok    ${name}`);
  } else {
    failed++;
    console.log(`FAIL  ${name}: ${(JSON.stringify(got) ?? '').slice(0, 600)}`);
  }
}

const listening = async (server) => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
};

// freePort is one that the product can be told beforehand: its public URL has it.
async function freePort() {
  const server = createServer();
  const port = await listening(server);
  server.close();
  await once(server, 'close');
  return port;
}

function provide(issuer) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const client = {
    redirect_uris: [callback], application_type: 'native', token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code'], response_types: ['code'],
  };
  return new Provider(issuer, {
    clients: [{ ...client, client_id: 'agent' }],
    cookies: { keys: [randomBytes(16).toString('hex')] },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'first' }] },
    scopes: ['openid', ...scopes.split(' ')],
    pkce: { required: () => true },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    features: {
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => ({
          scope: scopes, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
}

// browse is a browser with a person at it, who answers every form of the provider and ends up at the callback.
async function browse(url, jar) {
  let method = 'GET';
  let body;
  for (let step = 0; step < 15; step++) {
    const response = await fetch(url, {
      method, body, redirect: 'manual', headers: { cookie: [...jar].map(([k, v]) => `${k}=${v}`).join('; ') },
    });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split('=');
      if (value) jar.set(name, value);
      else jar.delete(name);
    }
    method = 'GET';
    body = undefined;
    const location = response.headers.get('location');
    if (location) {
      url = new URL(location, url);
      if (url.href.startsWith(callback)) return url.searchParams;
      continue;
    }
    const page = await response.text();
    const action = /<form[^>]* action="([^"]+)"/.exec(page)?.[1];
    const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1];
    if (!action || !prompt) throw new Error(`no form at ${url}: ${response.status} ${page.slice(0, 300)}`);
    url = new URL(action, url);
    method = 'POST';
    body = new URLSearchParams(prompt === 'login' ? { prompt, login: 'carol', password: 'x' } : { prompt });
  }
  throw new Error('the login does not end');
}

// account is what a client keeps between its logins.
class Account {
  jar = new Map();
  asked = [];
  redirectUrl = callback;
  clientMetadata = { redirect_uris: [callback], token_endpoint_auth_method: 'none' };
  clientInformation() { return { client_id: 'agent' }; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(url) {
    this.asked.push({ scope: url.searchParams.get('scope'), resource: url.searchParams.get('resource') });
    this.answer = await browse(url, this.jar);
  }
}

const info = { name: 'sallyport-login', version: '1.0.0' };

async function drive(mcp, issuer) {
  const bare = await fetch(mcp, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  const challenge = bare.headers.get('www-authenticate') ?? '';
  check('a caller without a token is told where to get one',
    bare.status === 401 && challenge.includes('resource_metadata="') && challenge.includes(`scope="${scopes}"`) && !challenge.includes('error='),
    [bare.status, challenge]);

  const account = new Account();
  const transport = () => new StreamableHTTPClientTransport(new URL(mcp), { authProvider: account });
  // The account has read access first: the person at the browser was asked for no more.
  const narrow = async (url) => {
    url.searchParams.set('scope', 'memory:read');
    return Account.prototype.redirectToAuthorization.call(account, url);
  };
  account.redirectToAuthorization = narrow;
  let wire = transport();
  const first = await new Client(info).connect(wire).catch((error) => error);
  check('the client goes to log in', first instanceof UnauthorizedError && account.answer?.get('code'), `${first?.stack}`);
  check('the token is asked for this very resource', account.asked[0]?.resource === mcp, account.asked);
  check('the provider names itself as the issuer', account.answer?.get('iss') === issuer, `${account.answer}`);
  await wire.finishAuth(account.answer.get('code'));

  wire = transport();
  const client = new Client(info);
  await client.connect(wire);
  const found = await client.callTool({ name: 'recall_cloud_skill', arguments: { query: 'anything' } });
  check('a call with the token succeeds', found.structuredContent?.error === null, found);

  delete account.redirectToAuthorization;
  const save = {
    name: 'save_cloud_skill',
    arguments: { name: 'greet', description: 'Says hello.', instructions: 'Hello.' },
  };
  const refused = await client.callTool(save).catch((error) => error);
  check('a larger scope sends the client to log in again', refused instanceof UnauthorizedError, `${refused?.stack ?? JSON.stringify(refused)}`);
  check('it asks for what is needed and for what it had', account.asked[1]?.scope === scopes, account.asked);
  await wire.finishAuth(account.answer.get('code'));
  const saved = await client.callTool(save);
  check('the same call succeeds with the larger token', saved.structuredContent?.error === null, saved);
  await client.close();

  const who = async (token) => {
    const response = await fetch(new URL('/v1/capabilities', mcp), { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, challenge: response.headers.get('www-authenticate') ?? '', body: await response.json() };
  };
  const good = await who(account.kept.access_token);
  check('the token is a principal of the configured tenant',
    good.status === 200 && good.body.data.principal.id === 'oidc:certified:carol' && good.body.data.principal.tenant_id === 'acme', good);

  const elsewhere = await other(issuer, account.jar, 'https://other.example.org/mcp');
  const [header, payload] = account.kept.access_token.split('.');
  const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
  for (const [name, token] of [
    ['a token for another audience', elsewhere.access_token], ['an ID token', elsewhere.id_token],
    ['a token that nobody signed', `${none}.${payload}.`], ['a token with another signature', `${header}.${payload}.${'A'.repeat(342)}`],
  ]) {
    const bad = await who(token);
    check(`${name} is refused`, token && bad.status === 401 && bad.challenge.includes('error="invalid_token"'), bad);
  }
}

// other gets tokens for another resource by the plain flow.
async function other(issuer, jar, resource) {
  const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const verifier = randomBytes(32).toString('base64url');
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const url = new URL(metadata.authorization_endpoint);
  url.search = new URLSearchParams({
    client_id: 'agent', response_type: 'code', redirect_uri: callback, scope: 'openid memory:read', resource,
    code_challenge: Buffer.from(digest).toString('base64url'), code_challenge_method: 'S256',
  });
  const answer = await browse(url, jar);
  const response = await fetch(metadata.token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      client_id: 'agent', grant_type: 'authorization_code', code: answer.get('code'), redirect_uri: callback, code_verifier: verifier, resource,
    }),
  });
  return response.json();
}

const web = createServer();
const issuer = `http://127.0.0.1:${await listening(web)}`;
web.on('request', provide(issuer).callback());

const port = await freePort();
mkdirSync(options.data, { recursive: true, mode: 0o700 });
const settings = join(options.data, 'server.yaml');
const publicURL = `http://127.0.0.1:${port}`;
writeFileSync(settings, `listen: 127.0.0.1:${port}\nprofile: production\npublic_url: ${publicURL}
oidc:\n  - {issuer: ${issuer}, name: certified, tenant: acme}\n`);
const data = join(options.data, 'data');
execFileSync(options.command, ['--data', data, 'tenant', 'create', 'acme', '--json']); // a token opens no tenant that is not there
const product = spawn(options.command, ['--config', settings, '--data', data, 'serve', '--json'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  await Promise.race([
    once(createInterface(product.stdout), 'line'),
    once(product, 'exit').then(([status]) => { throw new Error(`the server ended with ${status}`); }),
  ]);
  await drive(`${publicURL}/mcp`, issuer);
} catch (error) {
  check('no error', false, `${error?.stack ?? error}`);
} finally {
  if (product.exitCode === null) {
    product.kill('SIGTERM');
    await once(product, 'exit');
  }
  web.close();
  web.closeAllConnections();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
