// The edits that turn one list into another, by their longest common subsequence.

// The search by Myers gives up beyond this many edits: its time and memory grow with their square.
const MAX_EDITS = 2000;

// edits returns [kind, i, j] in order of both lists: keep a[i] = b[j], remove a[i], add b[j]. The elements are keys: equal
// for elements that match. Null when the lists repeat keys and differ in too many places.
export function edits(a, b) {
  let start = 0;
  let endA = a.length;
  let endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const middleA = a.slice(start, endA);
  const middleB = b.slice(start, endB);
  const matches = isUnique(middleA) && isUnique(middleB) ? byIncreasing(middleA, middleB) : byMyers(middleA, middleB);
  if (matches === null) return null;

  const out = [];
  for (let k = 0; k < start; k++) out.push(['keep', k, k]);
  let i = start;
  let j = start;
  for (const [x, y] of [...matches, [middleA.length, middleB.length]]) {
    while (i < start + x) out.push(['remove', i++, j]);
    while (j < start + y) out.push(['add', i, j++]);
    if (i < endA && j < endB) out.push(['keep', i++, j++]);
  }
  for (let k = 0; k < a.length - endA; k++) out.push(['keep', endA + k, endB + k]);
  return out;
}

function isUnique(list) {
  return new Set(list).size === list.length;
}

// byIncreasing: where no key repeats, the longest common subsequence is the longest run of a's places in b that only grow.
function byIncreasing(a, b) {
  const places = new Map(b.map((key, j) => [key, j]));
  const pairs = a.flatMap((key, i) => (places.has(key) ? [[i, places.get(key)]] : []));
  const tails = []; // tails[n]: the pair with the smallest place that ends a run of n + 1
  const previous = new Map();
  for (const pair of pairs) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tails[middle][1] < pair[1]) low = middle + 1;
      else high = middle;
    }
    previous.set(pair, tails[low - 1]);
    tails[low] = pair;
  }
  const run = [];
  for (let pair = tails.at(-1); pair; pair = previous.get(pair)) run.push(pair);
  return run.reverse();
}

// byMyers is the greedy search of E. W. Myers: for each number of edits d the furthest place on every diagonal.
function byMyers(a, b) {
  const n = a.length;
  const m = b.length;
  const history = [];
  let front = new Int32Array(3);
  for (let d = 0; d <= Math.min(n + m, MAX_EDITS); d++) {
    const next = new Int32Array(2 * d + 3); // diagonal k is at k + d + 1
    for (let k = -d; k <= d; k += 2) {
      // front holds d - 1: diagonal k is at k + d there.
      const down = d === 0 || k === -d || (k !== d && front[k - 1 + d] < front[k + 1 + d]);
      let x = d === 0 ? 0 : down ? front[k + 1 + d] : front[k - 1 + d] + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) {
        x++;
        y++;
      }
      next[k + d + 1] = x;
      if (x >= n && y >= m) {
        history.push(next);
        return trace(history, n, m);
      }
    }
    history.push(next);
    front = next;
  }
  return null;
}

function trace(history, n, m) {
  const matches = [];
  let x = n;
  let y = m;
  for (let d = history.length - 1; d >= 0; d--) {
    const k = x - y;
    let fromX = 0;
    let fromY = 0;
    if (d > 0) {
      const front = history[d - 1];
      const down = k === -d || (k !== d && front[k - 1 + d] < front[k + 1 + d]);
      const previous = down ? k + 1 : k - 1;
      fromX = front[previous + d];
      fromY = fromX - previous;
    }
    const stepX = d === 0 ? 0 : k < fromX - fromY ? fromX : fromX + 1;
    while (x > stepX && y > stepX - k) matches.push([--x, --y]);
    x = fromX;
    y = fromY;
  }
  return matches.reverse();
}
