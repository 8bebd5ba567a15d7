// Drives runs that want a person's yes, take their time and are cancelled, with the clients of the official TypeScript SDK: version 1, and
// version 2 in both eras of the protocol, over HTTP and through the bridge over stdio.
//
//   node runs.mjs --url URL [--command CMD [--command-arg A]...]
//
// URL is a server whose runs want a yes, and whose script scripts/wait.sh of the skill wait takes as many seconds as it is told.
// Prints a line per check and "N passed, M failed" last; exits 1 when a check failed.
import { parseArgs } from 'node:util';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' }, command: { type: 'string' }, 'command-arg': { type: 'string', multiple: true, default: [] },
  },
});
const timeout = 90_000;
const info = { name: 'sallyport-runs', version: '1.0.0' };
const command = { command: options.command, args: options['command-arg'], stderr: 'inherit' };
const first = () => new Client1(info, { capabilities: { elicitation: {} } });
const second = (mode) => () => new Client2(info, { capabilities: { elicitation: {} }, versionNegotiation: { mode } });

const parties = [
  ['v1 over http', first, () => new Http1(new URL(options.url))],
  ['v2 legacy over http', second('legacy'), () => new Http2(new URL(options.url))],
  ['v2 2026-07-28 over http', second({ pin: '2026-07-28' }), () => new Http2(new URL(options.url))],
];
if (options.command) {
  parties.push(
    ['v1 over stdio', first, () => new Stdio1(command)],
    ['v2 legacy over stdio', second('legacy'), () => new Stdio2(command)],
    ['v2 2026-07-28 over stdio', second({ pin: '2026-07-28' }), () => new Stdio2(command)],
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

async function newest() {
  const response = await fetch(new URL(options.url.replace(/\/mcp$/, '/v1/executions?limit=1')));
  return (await response.json()).data.executions[0];
}

async function drive(party, client, transport) {
  let answer = { action: 'accept', content: { confirm: true } };
  let asked = [];
  const handle = async (request) => {
    asked.push(request.params.message);
    return answer;
  };
  const v1 = party.startsWith('v1');
  if (v1) client.setRequestHandler(ElicitRequestSchema, handle);
  else client.setRequestHandler('elicitation/create', handle);
  await client.connect(transport);
  const run = async (seconds, more = {}) => {
    const params = { name: 'execute_cloud_skill', arguments: { slug: 'wait', script_path: 'scripts/wait.sh', input_args: { seconds } } };
    const result = v1 ? await client.callTool(params, undefined, { timeout, ...more }) : await client.callTool(params, { timeout, ...more });
    return { result, error: result.structuredContent?.error, data: result.structuredContent?.data };
  };

  const yes = await run(0);
  check(`${party}: the user is asked, says yes, and the script runs`,
    yes.data?.status === 'success' && asked.length === 1 && asked[0].includes('scripts/wait.sh'), { yes, asked });
  answer = { action: 'decline' };
  const no = await run(0);
  check(`${party}: the user says no, and it does not`, no.error?.code === 'CONFIRMATION_REQUIRED' && no.data === null, no);
  answer = { action: 'accept', content: { confirm: true } };

  const told = [];
  const slow = await run(2, { onprogress: (progress) => {
    if (progress.message?.startsWith('scripts/')) told.push(progress); // version 2 adds lines of its own about what it asks
  } });
  check(`${party}: a slow run tells that it lives`,
    slow.data?.status === 'success' && told.length >= 3 && told.some(({ message }) => message?.includes('is running')) &&
    told.every(({ progress }, i) => i === 0 || progress > told[i - 1].progress), { told, status: slow.data?.status });

  const abort = new AbortController();
  const cancelled = run(40, { signal: abort.signal, onprogress: ({ message }) => { if (message?.includes('is running')) abort.abort('enough'); } })
    .catch((error) => error);
  check(`${party}: a cancelled call ends`, (await cancelled) instanceof Error, await cancelled);
  let last = await newest();
  for (let i = 0; i < 200 && last.status !== 'canceled'; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    last = await newest();
  }
  check(`${party}: and its run with it`, last.status === 'canceled', last);
  await client.close();
}

for (const [party, client, transport] of parties) {
  try {
    await drive(party, client(), transport());
  } catch (error) {
    check(`${party}: no error`, false, `${error?.stack ?? error}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
