#!/usr/bin/env node
// Applies an RFC 6902 patch: arguments as JSON on standard input, the result in $SKILL_OUTPUT and result.json.

import { equal, stringify } from './lib/json.mjs';
import { apply, toOperations } from './lib/patch.mjs';
import { MAX_RESULT_BYTES, document, main, readArguments, writeArtifact, writeOutput } from './lib/skill.mjs';

main('json-diff', () => {
  const args = readArguments();
  const before = document(args, 'document');
  const operations = toOperations(document(args, 'patch'));
  const result = apply(before, operations);
  const text = stringify(result, 2) + '\n';
  writeArtifact('result.json', text);
  const output = new Map([
    ['operations', operations.length],
    ['changed', !equal(before, result)],
    ['result_left_out', Buffer.byteLength(text) > MAX_RESULT_BYTES],
  ]);
  if (!output.get('result_left_out')) output.set('result', result);
  writeOutput(output);
  process.stdout.write(`${operations.length} operations applied, ${output.get('changed') ? 'the document changed' : 'nothing changed'}\n`);
});
