#!/usr/bin/env node
// Compares two JSON documents: arguments as JSON on standard input, a patch in $SKILL_OUTPUT and patch.json.

import { compare } from './lib/compare.mjs';
import { Fault, equal, stringify } from './lib/json.mjs';
import { apply } from './lib/patch.mjs';
import { split } from './lib/pointer.mjs';
import { MAX_RESULT_BYTES, argument, document, main, readArguments, writeArtifact, writeOutput } from './lib/skill.mjs';

const MAX_CHANGES = 200;

function short(value) {
  const text = stringify(value);
  return text.length <= 120 ? text : text.slice(0, 119) + '…';
}

function operation(step) {
  const out = new Map([['op', step.op], ['path', step.path]]);
  if ('value' in step) out.set('value', step.value);
  return out;
}

function change(step) {
  const out = new Map([['op', step.op], ['path', step.path]]);
  if ('before' in step) out.set('before', short(step.before));
  if ('value' in step) out.set('after', short(step.value));
  return out;
}

function words(step) {
  const path = JSON.stringify(step.path === '' ? '(document)' : step.path).slice(1, -1);
  if (step.op === 'add') return `+ ${path}: ${short(step.value)}`;
  if (step.op === 'remove') return `- ${path}: ${short(step.before)}`;
  return `~ ${path}: ${short(step.before)} -> ${short(step.value)}`;
}

main('json-diff', () => {
  const args = readArguments();
  const before = document(args, 'before');
  const after = document(args, 'after');
  const ignore = args.get('ignore') ?? [];
  if (!Array.isArray(ignore) || !ignore.every((item) => typeof item === 'string')) {
    throw new Fault('BAD_ARGUMENT', 'ignore must be a list of JSON Pointers');
  }
  ignore.forEach(split);
  const idKey = argument(args, 'id_key', 'string', undefined);
  const withTests = argument(args, 'with_tests', 'boolean', false);

  const { patch, notes } = compare(before, after, { idKey, ignore });
  const steps = patch.flatMap((step) =>
    withTests && 'before' in step ? [{ op: 'test', path: step.path, value: step.before }, step] : [step],
  );
  prove(before, after, steps, { idKey, ignore });
  const operations = steps.map(operation);
  writeArtifact('patch.json', stringify(operations, 2) + '\n');

  const counts = new Map(['add', 'remove', 'replace'].map((op) => [op, patch.filter((step) => step.op === op).length]));
  const result = new Map([
    ['equal', patch.length === 0],
    ['counts', counts],
    ['changes', patch.slice(0, MAX_CHANGES).map(change)],
    ['changes_left_out', Math.max(0, patch.length - MAX_CHANGES)],
    ['notes', notes],
    ['patch_left_out', false],
    ['patch', operations],
  ]);
  if (Buffer.byteLength(stringify(result)) > MAX_RESULT_BYTES) {
    result.set('patch_left_out', true);
    result.delete('patch');
  }
  writeOutput(result);

  const lines = patch.slice(0, MAX_CHANGES).map(words);
  if (!patch.length) lines.push('The documents are equal.');
  else lines.unshift(`${patch.length} difference${patch.length === 1 ? '' : 's'}: ${counts.get('add')} added, ${counts.get('remove')} removed, ${counts.get('replace')} replaced`);
  if (patch.length > MAX_CHANGES) lines.push(`... and ${patch.length - MAX_CHANGES} more, see patch.json`);
  notes.forEach((note) => lines.push(`note: ${note}`));
  process.stdout.write(lines.join('\n') + '\n');
});

// prove applies the patch: what comes out must be after, or differ from it only where it was told to.
function prove(before, after, steps, options) {
  const result = apply(before, steps);
  const same = options.ignore.length ? compare(result, after, options).patch.length === 0 : equal(result, after);
  if (!same) throw new Error('the patch does not lead from before to after');
}
