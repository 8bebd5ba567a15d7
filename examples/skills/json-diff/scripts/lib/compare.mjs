// The difference of two values as RFC 6902 operations.

import { edits } from './arrays.mjs';
import { Fault, Num, canonicalKey, equal } from './json.mjs';
import { join, split } from './pointer.mjs';

// compare returns {patch, notes}. The patch turns before into after, except at the places that ignore names.
// An operation is {op, path, value?}; before: the value that a replace or a remove takes away.
export function compare(before, after, { idKey, ignore = [] } = {}) {
  const patterns = ignore.map(split);
  const patch = [];
  const notes = [];
  const ignored = (path) =>
    patterns.some((p) => p.length === path.length && p.every((part, i) => part === '*' || part === String(path[i])));

  // reach is the path where the value stands in after (ignore patterns name places as a reader sees them); at is where it
  // stands in the document while the patch is being applied. Inside arrays the two differ.
  function walk(a, b, at, reach) {
    if (ignored(reach)) return;
    if (a instanceof Map && b instanceof Map) return objects(a, b, at, reach);
    if (Array.isArray(a) && Array.isArray(b)) return arrays(a, b, at, reach);
    if (!equal(a, b)) patch.push({ op: 'replace', path: join(at), value: b, before: a });
  }

  function objects(a, b, at, reach) {
    for (const [key, value] of a) {
      if (b.has(key)) walk(value, b.get(key), [...at, key], [...reach, key]);
      else if (!ignored([...reach, key])) patch.push({ op: 'remove', path: join([...at, key]), before: value });
    }
    for (const [key, value] of b) {
      if (!a.has(key) && !ignored([...reach, key])) patch.push({ op: 'add', path: join([...at, key]), value });
    }
  }

  function arrays(a, b, at, reach) {
    // What is ignored inside the elements must not keep two of them from matching. A pattern that names one index
    // only makes sense by position.
    const below = patterns.filter((p) => p.length > reach.length && p.slice(0, reach.length).every((part, i) => part === '*' || part === String(reach[i])));
    if (below.some((p) => p[reach.length] !== '*' || p.length === reach.length + 1)) return byPosition(a, b, at, reach);
    const inside = below.map((p) => p.slice(reach.length + 1));
    const keysA = a.map((item) => keyOf(item, idKey, inside));
    const keysB = b.map((item) => keyOf(item, idKey, inside));
    if (idKey !== undefined) {
      unique(keysA, at, 'before');
      unique(keysB, at, 'after');
    }
    const steps = edits(...numbered(keysA, keysB));
    if (steps === null) {
      notes.push(`${join(reach) || 'the document'}: ${a.length} and ${b.length} elements are too many and too different; compared by position`);
      return byPosition(a, b, at, reach);
    }
    // A removal followed by an addition at one place is one element that changed.
    let place = 0;
    for (let s = 0; s < steps.length; s++) {
      const [kind, i, j] = steps[s];
      if (kind === 'keep') {
        walk(a[i], b[j], [...at, place], [...reach, j]);
        place++;
        continue;
      }
      let removes = 0;
      let adds = 0;
      let end = s;
      while (end < steps.length && steps[end][0] !== 'keep') {
        if (steps[end][0] === 'remove') removes++;
        else adds++;
        end++;
      }
      const pairs = idKey === undefined ? Math.min(removes, adds) : pairable(keysA, keysB, i, j, removes, adds);
      for (let n = 0; n < pairs; n++) walk(a[i + n], b[j + n], [...at, place++], [...reach, j + n]);
      for (let n = pairs; n < removes; n++) patch.push({ op: 'remove', path: join([...at, place]), before: a[i + n] });
      for (let n = pairs; n < adds; n++) patch.push({ op: 'add', path: join([...at, place++]), value: b[j + n] });
      s = end - 1;
    }
  }

  function byPosition(a, b, at, reach) {
    const common = Math.min(a.length, b.length);
    for (let i = 0; i < common; i++) walk(a[i], b[i], [...at, i], [...reach, i]);
    // Extra elements stay as they are only when all of them are ignored: leaving one out would shift the others.
    const extra = Array.from({ length: Math.max(a.length, b.length) - common }, (_, n) => common + n);
    if (extra.every((i) => ignored([...reach, i]))) return;
    for (let i = a.length - 1; i >= common; i--) patch.push({ op: 'remove', path: join([...at, i]), before: a[i] });
    for (let i = common; i < b.length; i++) patch.push({ op: 'add', path: join([...at, '-']), value: b[i] });
  }

  walk(before, after, [], []);
  return { patch, notes };
}

// numbered replaces equal keys by equal numbers: the table compares each pair, and keys can be long.
function numbered(...lists) {
  const numbers = new Map();
  return lists.map((keys) =>
    keys.map((key) => {
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      return numbers.get(key);
    }),
  );
}

// With ids, two elements that were paired by position are different things unless neither has an id.
function pairable(keysA, keysB, i, j, removes, adds) {
  let n = 0;
  while (n < removes && n < adds && !keysA[i + n].startsWith('id:') && !keysB[j + n].startsWith('id:')) n++;
  return n;
}

function keyOf(item, idKey, inside) {
  if (idKey !== undefined && item instanceof Map && item.has(idKey)) {
    const id = item.get(idKey);
    if (typeof id === 'string' || id instanceof Num) return 'id:' + canonicalKey(id);
  }
  return 'value:' + canonicalKey(inside.length ? strip(item, inside) : item);
}

// strip is a copy of value without the places that the patterns name.
function strip(value, patterns) {
  const keep = (key, item) => {
    const next = patterns.filter((p) => p[0] === '*' || p[0] === String(key)).map((p) => p.slice(1));
    if (next.some((p) => p.length === 0)) return [];
    return [[key, next.length ? strip(item, next) : item]];
  };
  if (value instanceof Map) return new Map([...value].flatMap(([key, item]) => keep(key, item)));
  if (Array.isArray(value)) return value.flatMap((item, at) => keep(at, item).map(([, kept]) => kept));
  return value;
}

function unique(keys, at, side) {
  const seen = new Set();
  for (const key of keys) {
    if (!key.startsWith('id:')) continue;
    if (seen.has(key)) throw new Fault('DUPLICATE_ID', `two elements of ${join(at) || 'the document'} in ${side} have the id ${key.slice(3)}`);
    seen.add(key);
  }
}
