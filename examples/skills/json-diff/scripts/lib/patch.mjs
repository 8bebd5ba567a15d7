// Applying RFC 6902 operations, all or none.

import { Fault, MAX_DEPTH, clone, equal } from './json.mjs';
import { index, split } from './pointer.mjs';

// A patch that copies a document into itself doubles it with every operation; it is stopped here.
const MAX_COPIED_VALUES = 2_000_000;

// measure counts the values in a value, and its levels.
function measure(value) {
  const children = value instanceof Map ? [...value.values()] : Array.isArray(value) ? value : [];
  let count = 1;
  let depth = 0;
  for (const child of children) {
    const inside = measure(child);
    count += inside.count;
    depth = Math.max(depth, inside.depth);
  }
  return { count, depth: depth + 1 };
}

// apply returns the changed document; the one given stays as it is. Operations are {op, path, from?, value?}.
export function apply(document, operations) {
  let root = clone(document);
  let copied = 0;

  operations.forEach((operation, number) => {
    const fail = (code, message) => {
      throw new Fault(code, `operation ${number} (${operation.op} ${JSON.stringify(operation.path)}): ${message}`, { operation: number });
    };
    const segments = (pointer) => {
      try {
        return split(pointer);
      } catch {
        return fail('BAD_PATCH', `${JSON.stringify(pointer)} is not a JSON Pointer`);
      }
    };
    const find = (path) => {
      let here = root;
      for (const part of path) {
        if (here instanceof Map && here.has(part)) here = here.get(part);
        else if (Array.isArray(here) && index(part, here.length - 1) !== undefined) here = here[index(part, here.length - 1)];
        else fail('PATH_NOT_FOUND', `there is nothing at ${JSON.stringify(part)}`);
      }
      return here;
    };
    const fits = (path, value) => {
      const { count, depth } = measure(value);
      copied += count;
      if (copied > MAX_COPIED_VALUES) fail('BAD_PATCH', `the patch adds more than ${MAX_COPIED_VALUES} values`);
      if (path.length + depth > MAX_DEPTH) fail('TOO_DEEP', `the result would be nested deeper than ${MAX_DEPTH} levels`);
    };
    const add = (path, value) => {
      fits(path, value);
      if (!path.length) {
        root = value;
        return;
      }
      const parent = find(path.slice(0, -1));
      const last = path.at(-1);
      if (parent instanceof Map) parent.set(last, value);
      else if (Array.isArray(parent)) {
        const at = last === '-' ? parent.length : index(last, parent.length);
        if (at === undefined) fail('PATH_NOT_FOUND', `${JSON.stringify(last)} is no place in an array of ${parent.length}`);
        parent.splice(at, 0, value);
      } else fail('PATH_NOT_FOUND', 'the parent is neither an object nor an array');
    };
    const remove = (path) => {
      const value = find(path);
      if (!path.length) fail('BAD_PATCH', 'the whole document cannot be removed');
      const parent = find(path.slice(0, -1));
      if (parent instanceof Map) parent.delete(path.at(-1));
      else parent.splice(Number(path.at(-1)), 1);
      return value;
    };
    const replace = (path, value) => {
      fits(path, value);
      find(path);
      if (!path.length) {
        root = value;
        return;
      }
      const parent = find(path.slice(0, -1));
      if (parent instanceof Map) parent.set(path.at(-1), value);
      else parent[Number(path.at(-1))] = value;
    };

    const path = segments(operation.path);
    switch (operation.op) {
      case 'add':
        add(path, clone(operation.value));
        break;
      case 'remove':
        remove(path);
        break;
      case 'replace':
        replace(path, clone(operation.value));
        break;
      case 'test':
        if (!equal(find(path), operation.value)) fail('TEST_FAILED', 'the value is another one');
        break;
      case 'copy':
        add(path, clone(find(segments(operation.from))));
        break;
      case 'move': {
        const from = segments(operation.from);
        if (from.length < path.length && from.every((part, i) => part === path[i])) {
          fail('BAD_PATCH', 'a value cannot be moved into itself');
        }
        add(path, remove(from));
        break;
      }
      default:
        fail('BAD_PATCH', 'the operation is unknown');
    }
  });
  return root;
}

// toOperations checks a parsed patch document and returns it as plain operations.
export function toOperations(patch) {
  if (!Array.isArray(patch)) throw new Fault('BAD_PATCH', 'a patch is a list of operations');
  return patch.map((step, number) => {
    const bad = (message) => {
      throw new Fault('BAD_PATCH', `operation ${number} ${message}`, { operation: number });
    };
    if (!(step instanceof Map)) bad('is not an object');
    const operation = { op: step.get('op'), path: step.get('path') };
    if (!['add', 'remove', 'replace', 'move', 'copy', 'test'].includes(operation.op)) bad('has no known op');
    if (typeof operation.path !== 'string') bad('needs a path');
    if (['add', 'replace', 'test'].includes(operation.op)) {
      if (!step.has('value')) bad('needs a value');
      operation.value = step.get('value');
    }
    if (['move', 'copy'].includes(operation.op)) {
      operation.from = step.get('from');
      if (typeof operation.from !== 'string') bad('needs a from');
    }
    return operation;
  });
}
