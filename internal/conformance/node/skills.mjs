// Reads the whole catalogue of an MCP endpoint with the SkillsClient of the official TypeScript SDK, which verifies every file against
// the digests that the server listed, walks the directories, and reads one revision by its own URI. What it must not find is given.
//
//   node skills.mjs --url URL | --command CMD [--command-arg A]... [--skills N] [--unlisted N]
//
// Prints a line per check and "N passed, M failed" last; exits 1 when a check failed.
import { parseArgs } from 'node:util';
import { createHash } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' }, command: { type: 'string' },
    'command-arg': { type: 'string', multiple: true, default: [] },
    skills: { type: 'string', default: '0' }, unlisted: { type: 'string', default: '0' },
  },
});

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

async function refused(promise) {
  try {
    return { answered: await promise };
  } catch (error) {
    return { code: error?.code };
  }
}

const rootOf = (skill) => skill.uri.slice(0, -'/SKILL.md'.length);

// files walks the directories below uri and returns the URIs of all files.
async function files(skills, uri) {
  const found = [];
  const { resources } = await skills.readDirectory(uri);
  for (const child of resources) {
    if (child.mimeType === 'inode/directory') found.push(...await files(skills, child.uri));
    else found.push(child.uri);
  }
  return found;
}

async function verify(era, skills, skill) {
  const name = `${era}: ${skill.uri}`;
  const got = (await skills.get(skill.uri)).skill;
  check(`${name} is the same entry alone`, JSON.stringify(got) === JSON.stringify(skill), got);
  let verified = 0;
  for (const resource of skill.resources) {
    const file = await skills.read(skill, resource.uri);
    const digest = `sha256:${createHash('sha256').update(file.bytes).digest('hex')}`;
    if (file.verified && digest === resource.digest && file.bytes.byteLength === resource.size) verified++;
  }
  check(`${name}: all ${skill.resources.length} files are what their digests say`, verified === skill.resources.length, verified);
  const walked = (await files(skills, rootOf(skill))).sort();
  const listed = skill.resources.map((resource) => resource.uri).sort();
  check(`${name}: the directories hold the files that are listed`, JSON.stringify(walked) === JSON.stringify(listed), { walked, listed });
}

async function drive(era, client) {
  const skills = new SkillsClient(client);
  check(`${era}: declares the extension and directories`, skills.supported && skills.directoryRead, client.getServerCapabilities());
  const { skills: entries, invalid } = await skills.list();
  check(`${era}: lists ${options.skills} skills, all valid`, entries.length === Number(options.skills) && invalid.length === 0,
    { entries: entries.map((entry) => entry.uri), invalid });
  const raw = await client.request({ method: 'skills/list', params: {} }, anything);
  check(`${era}: counts what it leaves out`, (raw._meta?.['dev.sallyport/unlisted'] ?? 0) === Number(options.unlisted), raw._meta);
  for (const entry of entries) {
    await verify(era, skills, entry);
    const pinned = (await skills.get(entry._meta['dev.sallyport/revision_uri'])).skill;
    check(`${era}: ${pinned.uri} has the same bytes`,
      JSON.stringify(pinned.resources.map(({ digest, size }) => [digest, size])) ===
      JSON.stringify(entry.resources.map(({ digest, size }) => [digest, size])), pinned);
    await verify(era, skills, pinned);
  }
  for (const uri of ['skill://default/no-such-skill/SKILL.md', 'skill://x/greet/SKILL.md', `${entries[0].uri}x`]) {
    for (const method of ['skills/get', 'resources/read', 'resources/directory/read']) {
      const got = await refused(client.request({ method, params: { uri } }, anything));
      check(`${era}: ${method} of ${uri} is refused as invalid params`, got.code === -32602, got);
    }
  }
  const { resources } = await client.listResources();
  check(`${era}: resources/list has the same skills`,
    JSON.stringify(resources.map((resource) => resource.uri).sort()) === JSON.stringify(entries.map((entry) => entry.uri).sort()), resources);
}

// anything is a schema that keeps what comes.
const anything = { '~standard': { version: 1, vendor: 'sallyport', validate: (value) => ({ value }) } };

for (const [era, mode] of [['2025-11-25', 'legacy'], ['2026-07-28', { pin: '2026-07-28' }]]) {
  const client = new Client({ name: 'sallyport-skills', version: '1.0.0' }, { versionNegotiation: { mode } });
  try {
    await client.connect(options.url
      ? new StreamableHTTPClientTransport(new URL(options.url))
      : new StdioClientTransport({ command: options.command, args: options['command-arg'], stderr: 'inherit' }));
    await drive(era, client);
  } catch (error) {
    check(`${era}: no error`, false, `${error?.stack ?? error}`);
  } finally {
    await client.close().catch(() => {});
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
