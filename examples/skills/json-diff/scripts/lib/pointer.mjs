// RFC 6901 JSON Pointers, as text and as lists of segments.

import { Fault } from './json.mjs';

export function split(pointer) {
  if (pointer === '') return [];
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) {
    throw new Fault('BAD_ARGUMENT', `${JSON.stringify(pointer)} is not a JSON Pointer`);
  }
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function join(segments) {
  return segments.map((part) => '/' + String(part).replaceAll('~', '~0').replaceAll('/', '~1')).join('');
}

// index reads an array index: digits without a leading zero, at most limit. Undefined otherwise.
export function index(segment, limit) {
  if (!/^(0|[1-9]\d{0,15})$/.test(segment)) return undefined;
  const number = Number(segment);
  return number <= limit ? number : undefined;
}
