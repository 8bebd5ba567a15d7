// JSON as values that lose nothing: objects are Maps in the order given, numbers keep their digits.

// A result that nests deeper than 64 levels would not be taken; an operation stands three levels above its value.
export const MAX_DEPTH = 60;

// Fault is what the caller can mend: a stable code, a sentence, and details.
export class Fault extends Error {
  constructor(code, message, details = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

// Num is a JSON number: raw is what was written, key is the same for numbers of equal value.
export class Num {
  constructor(raw) {
    this.raw = raw;
    this.key = canonical(raw);
  }
}

// canonical writes a number as digits and exponent without leading or trailing zeros: 1.50 and 15e-1 are both 15e-1.
function canonical(raw) {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(raw);
  const digits = (whole + fraction).replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  if (short === '') return '0';
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - short.length);
  return `${sign}${short}e${power}`;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const SPACE = /[ \t\n\r]*/y;
const ESCAPES = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

// parse reads one JSON document (RFC 8259). Throws BAD_JSON with line and column, DUPLICATE_KEY or TOO_DEEP.
export function parse(text, name = 'the input') {
  let at = 0;

  const fail = (message, code = 'BAD_JSON') => {
    const before = text.slice(0, at);
    const line = before.split('\n').length;
    const column = at - before.lastIndexOf('\n');
    throw new Fault(code, `${name}, line ${line}, column ${column}: ${message}`);
  };
  const skip = () => {
    SPACE.lastIndex = at;
    SPACE.exec(text);
    at = SPACE.lastIndex;
  };

  function string() {
    let out = '';
    at++;
    for (;;) {
      PLAIN.lastIndex = at;
      out += PLAIN.exec(text)[0];
      at = PLAIN.lastIndex;
      const c = text[at];
      if (c === '"') {
        at++;
        return out;
      }
      if (c === undefined) fail('the string is not closed');
      if (c !== '\\') fail('a control character in a string must be escaped');
      const escape = text[at + 1];
      if (escape === 'u') {
        const hex = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) fail('\\u needs four hex digits');
        out += String.fromCharCode(parseInt(hex, 16));
        at += 6;
      } else if (Object.hasOwn(ESCAPES, escape ?? '')) {
        out += ESCAPES[escape];
        at += 2;
      } else fail('unknown escape in a string');
    }
  }

  function value(depth) {
    if (depth > MAX_DEPTH) fail(`nested deeper than ${MAX_DEPTH} levels`, 'TOO_DEEP');
    const c = text[at];
    if (c === '"') return string();
    if (c === '{') return object(depth);
    if (c === '[') return array(depth);
    for (const [word, meaning] of [['true', true], ['false', false], ['null', null]]) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    NUMBER.lastIndex = at;
    const found = NUMBER.exec(text);
    if (!found) fail(c === undefined ? 'the document ends too early' : `unexpected ${JSON.stringify(c)}`);
    const exponent = /[eE][+-]?(\d+)$/.exec(found[0]);
    if (found[0].length > 10000 || (exponent && exponent[1].length > 18)) fail('the number is too long');
    at = NUMBER.lastIndex;
    return new Num(found[0]);
  }

  function object(depth) {
    const out = new Map();
    at++;
    skip();
    if (text[at] === '}') {
      at++;
      return out;
    }
    for (;;) {
      if (text[at] !== '"') fail('expected a key in double quotes');
      const start = at;
      const key = string();
      if (out.has(key)) {
        at = start;
        fail(`the key ${JSON.stringify(key)} is given twice`, 'DUPLICATE_KEY');
      }
      skip();
      if (text[at] !== ':') fail('expected a colon');
      at++;
      skip();
      out.set(key, value(depth + 1));
      skip();
      if (text[at] === '}') {
        at++;
        return out;
      }
      if (text[at] !== ',') fail('expected a comma or a closing brace');
      at++;
      skip();
    }
  }

  function array(depth) {
    const out = [];
    at++;
    skip();
    if (text[at] === ']') {
      at++;
      return out;
    }
    for (;;) {
      out.push(value(depth + 1));
      skip();
      if (text[at] === ']') {
        at++;
        return out;
      }
      if (text[at] !== ',') fail('expected a comma or a closing bracket');
      at++;
      skip();
    }
  }

  skip();
  const result = value(1);
  skip();
  if (at < text.length) fail('unexpected text after the document');
  return result;
}

// stringify writes a value; indent 0 writes it on one line.
export function stringify(value, indent = 0, level = 0) {
  if (value instanceof Num) return value.raw;
  if (!(value instanceof Map) && !Array.isArray(value)) return JSON.stringify(value);
  const parts =
    value instanceof Map
      ? [...value].map(([key, item]) => `${JSON.stringify(key)}:${indent ? ' ' : ''}${stringify(item, indent, level + 1)}`)
      : value.map((item) => stringify(item, indent, level + 1));
  const [open, close] = value instanceof Map ? '{}' : '[]';
  if (!parts.length) return open + close;
  if (!indent) return open + parts.join(',') + close;
  const pad = '\n' + ' '.repeat(indent * (level + 1));
  return open + pad + parts.join(',' + pad) + '\n' + ' '.repeat(indent * level) + close;
}

// canonicalKey is equal for equal values: members sorted, numbers by value.
export function canonicalKey(value) {
  if (value instanceof Num) return value.key;
  if (value instanceof Map) {
    const keys = [...value.keys()].sort();
    return '{' + keys.map((key) => JSON.stringify(key) + ':' + canonicalKey(value.get(key))).join(',') + '}';
  }
  if (Array.isArray(value)) return '[' + value.map(canonicalKey).join(',') + ']';
  return JSON.stringify(value);
}

export function equal(a, b) {
  if (a instanceof Num) return b instanceof Num && a.key === b.key;
  if (a instanceof Map) {
    return b instanceof Map && a.size === b.size && [...a].every(([key, item]) => b.has(key) && equal(item, b.get(key)));
  }
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]));
  return a === b;
}

export function clone(value) {
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, clone(item)]));
  return Array.isArray(value) ? value.map(clone) : value;
}
