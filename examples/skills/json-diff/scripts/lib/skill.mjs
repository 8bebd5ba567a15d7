// What both scripts share: reading arguments and files, writing the result.

import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { Fault, parse, stringify } from './json.mjs';

// A result above this is left to the artifact: what a run may return is bounded.
export const MAX_RESULT_BYTES = 160 * 1024;

const decoder = new TextDecoder('utf-8', { fatal: true });

function decode(bytes, name) {
  try {
    return decoder.decode(bytes); // drops a byte order mark
  } catch {
    throw new Fault('BAD_JSON', `${name} is not UTF-8`);
  }
}

export function readArguments() {
  const text = decode(readFileSync(0), 'standard input');
  const args = parse(text.trim() === '' ? '{}' : text, 'standard input');
  if (!(args instanceof Map)) throw new Fault('BAD_ARGUMENT', 'standard input must be a JSON object');
  return args;
}

// document returns the argument called name, or the parsed file that name_file names.
export function document(args, name) {
  const file = args.get(`${name}_file`);
  if (args.has(name) === (file !== undefined)) throw new Fault('BAD_ARGUMENT', `send exactly one of ${name} and ${name}_file`);
  if (file === undefined) return args.get(name);
  if (typeof file !== 'string') throw new Fault('BAD_ARGUMENT', `${name}_file must be the name of an input file`);
  let bytes;
  try {
    const root = realpathSync(process.env.SKILL_INPUT ?? '.');
    const full = realpathSync(path.join(root, file));
    if (!full.startsWith(root + path.sep)) throw new Error('outside');
    bytes = readFileSync(full);
  } catch {
    throw new Fault('FILE_NOT_FOUND', `no input file named ${JSON.stringify(file)} was sent`);
  }
  return parse(decode(bytes, file), file);
}

// argument returns an optional argument of the type named, or the fallback.
export function argument(args, name, type, fallback) {
  if (!args.has(name)) return fallback;
  const value = args.get(name);
  if (typeof value !== type) throw new Fault('BAD_ARGUMENT', `${name} must be a ${type}`);
  return value;
}

export function writeArtifact(name, text) {
  writeFileSync(path.join(process.env.SKILL_ARTIFACTS ?? '.', name), text);
}

export function writeOutput(value) {
  if (process.env.SKILL_OUTPUT) writeFileSync(process.env.SKILL_OUTPUT, stringify(value));
}

// main runs a script and turns a Fault into exit code 2; every other error is a bug and exit code 70.
export function main(name, script) {
  try {
    script();
  } catch (error) {
    const known = error instanceof Fault;
    const described = new Map([
      ['code', known ? error.code : 'INTERNAL'],
      ['message', known ? error.message : 'the script itself failed'],
      ...(known && error.details.operation !== undefined ? [['operation', error.details.operation]] : []),
    ]);
    writeOutput(new Map([['error', described]]));
    process.stderr.write(known ? `${name}: ${error.message}\n` : `${name}: ${error.stack}\n`);
    process.exitCode = known ? 2 : 70;
  }
}
