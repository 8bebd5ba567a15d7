// Drives an MCP endpoint with the clients of the official TypeScript SDK: version 1 (the older revision), version 2 in the older
// revision, in the current one, and letting it choose. Each lists the tools, finds and reads a skill, runs a script and sends a bad
// argument. The clients hold every result against the tool's output schema themselves.
//
//   node clients.mjs --url URL [--key KEY] [--command CMD [--command-arg A]...] [--slug S] [--script P] [--args JSON]
//                    [--expect success|CODE]
//
// --expect is what running the script must give: success, or the code of the refusal. --command tests stdio beside the URL.
// Prints a line per check and "N passed, M failed" last; exits 1 when a check failed.
import { parseArgs } from 'node:util';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' }, key: { type: 'string' },
    command: { type: 'string' }, 'command-arg': { type: 'string', multiple: true, default: [] },
    slug: { type: 'string', default: 'greet' }, script: { type: 'string', default: 'scripts/greet.sh' },
    args: { type: 'string', default: '{}' }, expect: { type: 'string', default: 'success' },
  },
});

const timeout = 90_000;
const info = { name: 'sallyport-clients', version: '1.0.0' };
const requestInit = options.key ? { headers: { Authorization: `Bearer ${options.key}` } } : {};
const command = { command: options.command, args: options['command-arg'], stderr: 'inherit' };

const http1 = () => new Http1(new URL(options.url), { requestInit });
const http2 = () => new Http2(new URL(options.url), { requestInit });
const second = (mode) => new Client2(info, { versionNegotiation: { mode } });

const parties = [];
if (options.url) {
  parties.push(
    ['v1 over http', () => new Client1(info), http1],
    ['v2 legacy over http', () => second('legacy'), http2],
    ['v2 auto over http', () => second('auto'), http2],
    ['v2 2026-07-28 over http', () => second({ pin: '2026-07-28' }), http2],
  );
}
if (options.command) {
  parties.push(
    ['v1 over stdio', () => new Client1(info), () => new Stdio1(command)],
    ['v2 legacy over stdio', () => second('legacy'), () => new Stdio2(command)],
    ['v2 2026-07-28 over stdio', () => second({ pin: '2026-07-28' }), () => new Stdio2(command)],
  );
}

let passed = 0;
let failed = 0;
function check(name, ok, got) {
  if (ok) {
    passed++;
    console.log(`ok    ${name}`);
  } else {
    failed++;
    console.log(`FAIL  ${name}: ${JSON.stringify(got)?.slice(0, 600)}`);
  }
}

// call makes a tool call and checks what every result keeps.
async function call(party, client, name, args) {
  const result = party.startsWith('v1')
    ? await client.callTool({ name, arguments: args }, undefined, { timeout })
    : await client.callTool({ name, arguments: args }, { timeout });
  const envelope = result.structuredContent;
  const error = envelope?.error ?? null;
  check(`${party}: ${name} answers with an envelope and a text`,
    typeof envelope?.kind === 'string' && result.content?.[0]?.type === 'text' && (error !== null) === (result.isError ?? false), result);
  return { envelope, error, text: result.content?.[0]?.text ?? '' };
}

async function drive(party, client) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  check(`${party}: lists the tools`,
    ['execute_cloud_skill', 'recall_cloud_skill', 'recall_context', 'save_cloud_skill'].every((name) => names.includes(name)), names);

  const found = await call(party, client, 'recall_cloud_skill', { query: options.slug });
  check(`${party}: finds the skill`, found.envelope?.data?.skills?.some((skill) => skill.slug === options.slug), found);

  const root = await call(party, client, 'recall_cloud_skill', { slug: options.slug });
  const skill = root.envelope?.data?.skill;
  check(`${party}: reads the skill`, skill?.scripts?.some((script) => script.path === options.script), root);

  const file = await call(party, client, 'recall_cloud_skill',
    { slug: options.slug, resource: options.script, revision_id: skill?.revision?.revision_id });
  check(`${party}: reads the script`, typeof file.envelope?.data?.resource?.content === 'string', file);

  const bundle = await call(party, client, 'recall_context', { query: `how to use ${options.slug}`, max_tokens: 2000 });
  const item = bundle.envelope?.data?.items?.find((one) => one.kind === 'script' && one.source.path === options.script);
  check(`${party}: gathers the script with what a run of it would meet`,
    item?.runnable === (options.expect === 'success') && (options.expect === 'success' || item.gate?.code === options.expect), bundle);

  const run = await call(party, client, 'execute_cloud_skill',
    { slug: options.slug, script_path: options.script, input_args: JSON.parse(options.args) });
  const outcome = run.error?.code ?? run.envelope?.data?.status;
  check(`${party}: running it gives ${options.expect}`, outcome === options.expect && run.envelope?.kind === 'execution', run);

  const bad = await call(party, client, 'execute_cloud_skill',
    { slug: options.slug, script_path: options.script, timeout_seconds: 61 });
  check(`${party}: a bad argument is INVALID_ARGUMENT`, bad.error?.code === 'INVALID_ARGUMENT' && bad.text.startsWith('INVALID_ARGUMENT'), bad);
}

for (const [party, makeClient, makeTransport] of parties) {
  const client = makeClient();
  try {
    await client.connect(makeTransport());
    await drive(party, client);
  } catch (error) {
    check(`${party}: no error`, false, `${error?.stack ?? error}`);
  } finally {
    await client.close().catch(() => {});
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
