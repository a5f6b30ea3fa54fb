// Lapwing's local client: it reads a task, refuses one that states a wrong ε, and makes answers noisy on this device.
// The law, bytes and names of lapwing.local.client in Python, which has the proofs.
// Whoever collects reports is trusted with nothing: the guarantee rests on this file and on crypto.getRandomValues.

export class Refused extends Error { // kind: task, answer, limit, device or randomness; nothing was sent
  constructor(kind, text) { super(text); this.kind = kind }
}
const refuse = (kind, text) => { throw new Refused(kind, text + (kind == "task" ? "" : " Nothing was sent.")) };
const need = (good, text) => good || refuse("task", text);
const damaged = () => refuse("answer", "The device's data for this task are damaged.");

// Random words: least significant byte first, each coin and integer with an exact rational law.

const WHOLE = 1n << 64n, PRIME = 2147483647n;
const system = (size) => crypto.getRandomValues(new Uint8Array(size));
function exactly(read, size) {
  const bytes = read(size);
  return bytes.length == size ? bytes : refuse("randomness", "The source of randomness gave too few bytes.");
}
const word = (read) => exactly(read, 8).reduceRight((all, byte) => all << 8n | BigInt(byte), 0n);
const coin = (threshold, read) => word(read) < threshold;
function below(bound, read) {
  for (;;) {
    const drawn = word(read);
    if (drawn < WHOLE - WHOLE % bound) return drawn % bound;
  }
}
function randomizedResponse(threshold, bound, true_, read) {
  const kept = coin(threshold, read), other = below(bound - 1n, read);
  return kept ? true_ : other + BigInt(other >= true_);
}
function others(count, bound, true_, read) { // Floyd's sampling
  const chosen = new Set();
  for (let last = bound - 1n - count; last < bound - 1n; last++) {
    const pick = below(last + 1n, read);
    chosen.add(chosen.has(pick) ? last : pick);
  }
  return [...chosen].map((index) => index + BigInt(index >= true_));
}

// Bits as hexadecimal digits: bit i is bit i mod 8 of byte ⌊i/8⌋.

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
function bits(count, isSet) {
  const bytes = new Uint8Array(Number(count) + 7 >> 3);
  for (let i = 0; i < count; i++) bytes[i >> 3] |= isSet(i) << (i & 7);
  return hex(bytes);
}
const bit = (digits, i) => parseInt(digits.substr(i >> 3 << 1, 2), 16) >> (i & 7) & 1;
const unary = (p, size, x, read) => bits(size, (i) => coin(i == x ? p.threshold_own : p.threshold_other, read));
const again = (p, size, kept, read) => bits(size, (i) => coin(bit(kept, i) ? p.threshold_one : p.threshold_zero, read));
const keptBits = (digits, count) =>
  typeof digits == "string" && /^[0-9a-f]*$/.test(digits) && digits.length == 2 * (Number(count) + 7 >> 3) ? digits : damaged();

// Exact fractions [n, d], and their logarithms in units of 10⁻¹², rounded up.

const div = ([a, b], [c, d]) => [a * d, b * c];
const pow = ([a, b], times) => [a ** BigInt(times), b ** BigInt(times)];
const mix = (share, [a, b], [c, d]) => [share[0] * a * d + (share[1] - share[0]) * c * b, share[1] * b * d];
const not = ([a, b]) => [b - a, b];
const either = ([a, b]) => a < b ? [b, a] : [a, b];
const max = (x, y) => x[0] * y[1] < y[0] * x[1] ? y : x;
const part = (threshold) => [threshold, WHOLE];
const response = (threshold, count) => either([threshold * (count - 1n), WHOLE - threshold]);
const PLACES = 256n, length = (n) => n.toString(2).length;
function atanh2(n, d) { // 2 atanh(n/d) = ln((d+n)/(d−n)), times 2^256, for |n/d| ≤ 1/3
  const square = (n * n << PLACES) / (d * d);
  let sum = 0n, power = (n << PLACES + 1n) / d;
  for (let odd = 1n; power; odd += 2n, power = power * square / (1n << PLACES)) sum += power / odd;
  return sum;
}
export function epsilonUp([n, d]) {
  if (n == d) return 0n;
  const shift = BigInt(Math.max(0, length(d) - 512));
  n = (n >> shift) + BigInt(shift > 0), d >>= shift;
  const twos = BigInt(length(n) - length(d));
  const log = twos * atanh2(1n, 3n) + atanh2(n - (d << twos), n + (d << twos));
  return -(-((log * 10n ** 12n) + (1n << PLACES) / 10n ** 38n) >> PLACES); // errs by less than the 1e-50 that it adds
}
export const plain = (units) => {
  const digits = String(units).padStart(13, "0");
  return (digits.slice(0, -12) + "." + digits.slice(-12)).replace(/\.?0+$/, "");
};

// SHA-256 and MD5, for digests of tasks and of words.

const utf8 = (text) => new TextEncoder().encode(text);
const rotate = (x, n) => x << n | x >>> 32 - n;
function hash(bytes, start, little, round) {
  const size = bytes.length, view = new DataView(new ArrayBuffer(size + 72 >> 6 << 6)), state = [...start];
  new Uint8Array(view.buffer).set([...bytes, 128]);
  view.setUint32(view.byteLength - (little ? 8 : 4), size * 8, little);
  for (let at = 0; at < view.byteLength; at += 64) {
    const words = Array.from({ length: 16 }, (_, i) => view.getUint32(at + 4 * i, little));
    let next = [...state];
    for (let i = 0; i < 64; i++) next = round(next, i, words);
    next.forEach((x, i) => state[i] = state[i] + x | 0);
  }
  const out = new DataView(new ArrayBuffer(4 * state.length));
  state.forEach((x, i) => out.setInt32(4 * i, x, little));
  return new Uint8Array(out.buffer);
}
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
function root(n, power) { // the first 32 bits behind the point
  let found = 0n;
  for (let at = 1n << 37n; at; at >>= 1n) if ((found + at) ** power <= BigInt(n) << 32n * power) found += at;
  return Number(BigInt.asIntN(32, found));
}
const START = primes.slice(0, 8).map((prime) => root(prime, 2n)), CUBES = primes.map((prime) => root(prime, 3n));
const sha256 = (data) => hash(data, START, false, ([a, b, c, d, e, f, g, h], i, w) => {
  if (i > 15) {
    const x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (rotate(x, 25) ^ rotate(x, 14) ^ x >>> 3) + (rotate(y, 15) ^ rotate(y, 13) ^ y >>> 10) | 0;
  }
  const t = h + (rotate(e, 26) ^ rotate(e, 21) ^ rotate(e, 7)) + (e & f ^ ~e & g) + CUBES[i] + w[i] | 0;
  return [t + (rotate(a, 30) ^ rotate(a, 19) ^ rotate(a, 10)) + (a & b ^ a & c ^ b & c) | 0, a, b, c, d + t | 0, e, f, g];
});
const TURNS = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
const md5 = (data) => hash(data, [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476], true, ([a, b, c, d], i, w) => {
  const r = i >> 4, f = [b & c | ~b & d, d & b | ~d & c, b ^ c ^ d, c ^ (b | ~d)][r];
  const x = a + f + w[[i, 5 * i + 1, 3 * i + 5, 7 * i][r] & 15] + (Math.abs(Math.sin(i + 1)) * 2 ** 32 | 0) | 0;
  return [d, b + rotate(x, TURNS[r][i & 3]) | 0, b, c];
});

// Words, as points and buckets.

const point = (data) => {
  const at = sha256(data).slice(0, 8).reduceRight((all, byte) => all << 8n | BigInt(byte), 0n), half = 1n << 31n;
  return [at % half % PRIME, (at >> 31n) % half % PRIME];
};
const bucket = ([a, c, b], [x, y], count) => (a * x + c * y + b) % PRIME % count;
const numbered = (p, number) => ["x", "y", "shift"].map((name) => {
  const seed = p["seed_" + name];
  return (seed % PRIME + number * (seed / PRIME)) % PRIME;
});
function prefixSizes(p, size) {
  const sizes = [];
  for (let at = p.first; at < 8n * size; at += p.step) sizes.push(Number(at));
  return [...sizes, ...Array(Number(p.checking) + 1).fill(Number(8n * size))];
}
function prefix(data, count, size) {
  const bytes = new Uint8Array(Number(size));
  bytes.set(data);
  const kept = bytes.slice(0, count + 7 >> 3);
  kept[kept.length - 1] &= 255 << (8 - count % 8) % 8;
  return kept;
}
function bloom(text, cohort, p) {
  const data = new DataView(new ArrayBuffer(4));
  data.setUint32(0, cohort);
  const digest = md5([...new Uint8Array(data.buffer), ...utf8(text)]).slice(0, Number(p.hashes));
  return bits(p.bits, (i) => digest.some((byte) => byte % Number(p.bits) == i));
}

// The mechanisms. Each has its parameters with what they may be, the worst ratio of one report, and how it is drawn:
// say(parameters, size, answer, random bytes, memory, period) gives what the report says, and the memory to keep.
// more: the other ε that a task states. after: the ratios of so many reports, for an answer that never changes, or may.

const T = [1n, WHOLE], SHOW = { threshold_zero: [0n, WHOLE], threshold_one: [1n, WHOLE + 1n] };
const FLIP = { threshold_flip: [1n, WHOLE / 2n] };
const fresh = (ranges, ratio, draw) => ({ ranges, ratio, say: (...all) => [draw(...all), all[4]] });
const windowed = { threshold: T, width: [1n, (1n << 40n) + 1n], shift: [1n, (1n << 20n) + 1n] };
function drawWindow({ threshold, width, shift }, size, x, read) {
  const kept = coin(threshold, read), start = x * shift, place = below(kept ? width : (size - 1n) * shift, read);
  return kept ? start + place : place + (place >= start ? width : 0n);
}
const windowRatio = ({ threshold, width, shift }, size) => either([threshold * (size - 1n) * shift, (WHOLE - threshold) * width]);
const drawEnd = (threshold, steps, x, read) => BigInt(below(steps, read) < x == coin(threshold, read));
const sketched = (more) => ({
  threshold: T, functions: [1n, (1n << 20n) + 1n], ...more,
  seed_x: [0n, PRIME ** 2n], seed_y: [0n, PRIME ** 2n], seed_shift: [0n, PRIME ** 2n],
});

const constant = (a, b, count, times) => { // of reports of one kept value, which never changes
  const [n, d] = a, [power, whole] = pow(b, times);
  return [(n * power + (count - 1n) * d * whole), (power * d + n * whole + (count - 2n) * d * whole)];
};
const times = (x, y) => [x[0] * y[0], x[1] * y[1]];
function constantBits([own, other], [one, zero], reports) {
  const likelier = (x, y) => div(mix(own, x, y), mix(other, x, y));
  return either(div(likelier(pow(one, reports), pow(zero, reports)), likelier(pow(not(one), reports), pow(not(zero), reports))));
}
function changingBits(first, [one, zero], count, reports, pairs, most) {
  const single = pow(constantBits(first, [one, zero], 1), pairs);
  if (reports == 1) return single;
  if (!zero[0] || one[0] == one[1] || count * (reports - 1) > most) return null;
  return times(single, pow(max(either(div(one, zero)), either(div(not(one), not(zero)))), count * (reports - 1)));
}
const layers = (p) => [[part(WHOLE - p.threshold_flip), part(p.threshold_flip)], [part(p.threshold_one), part(p.threshold_zero)]];
const unaryLayers = (p) => [[part(p.threshold_own), part(p.threshold_other)], [part(p.threshold_one), part(p.threshold_zero)]];
const rounds = (p, k) => [response(p.threshold_first, k), response(p.threshold_second, k)];
const ownBits = ([own, other]) => either(div(times(own, not(other)), times(other, not(own))));

function rapporRule(ranges, hashes, count, say) {
  const forEver = (p) => pow(part(WHOLE - p.threshold_flip).map((n, i) => i ? p.threshold_flip : n), 2 * hashes(p));
  const after = (p, k, reports) => [
    reports * hashes(p) <= 1024 ? pow(constantBits(...layers(p), reports), hashes(p)) : forEver(p),
    changingBits(...layers(p), count(p, k), reports, hashes(p), 4096),
  ];
  return { ranges: () => ({ ...ranges, ...FLIP, ...SHOW }), ratio: (p, k) => after(p, k, 1)[0], more: { epsilon_unchanged: forEver }, after, say };
}
function sayKept(p, size, pattern, read, memory) {
  const responses = memory.permanent ?? {};
  if (typeof responses != "object" || "permanent" in memory && !Object.keys(responses).length) damaged();
  const kept = keptBits(responses[pattern] ?? bits(size, (i) => bit(pattern, i) ^ coin(p.threshold_flip, read)), size);
  return [again(p, size, kept, read), { ...memory, permanent: { ...responses, [pattern]: kept } }];
}
const hashesOf = (p) => (need(2n * p.hashes <= p.bits, "There must be twice as many bits as hashes, or more."), Number(p.hashes));
const BLOOM = { bits: [2n, 257n], hashes: [1n, 17n], cohorts: [1n, 1025n] };

const VALUES = {
  binary: fresh(() => ({ threshold_yes: T, threshold_no: T }),
    ({ threshold_yes: yes, threshold_no: no }) => max(either([yes, no]), either([WHOLE - yes, WHOLE - no])),
    (p, k, x, read) => BigInt(coin(x ? p.threshold_yes : p.threshold_no, read))),
  "k-ary": fresh(() => ({ threshold: T }), (p, k) => response(p.threshold, k),
    (p, k, x, read) => randomizedResponse(p.threshold, k, x, read)),
  subset: fresh((k) => ({ threshold: T, size: [1n, k] }),
    (p, k) => either([p.threshold * (k - p.size), (WHOLE - p.threshold) * p.size]),
    (p, k, x, read) => {
      const kept = coin(p.threshold, read), chosen = others(p.size - BigInt(kept), k, x, read);
      return [...chosen, ...(kept ? [x] : [])].sort((a, b) => a < b ? -1 : 1);
    }),
  unary: fresh(() => ({ threshold_own: T, threshold_other: T }), (p) => ownBits(unaryLayers({ threshold_one: 1n, threshold_zero: 1n, ...p })[0]), unary),
  hashing: fresh(() => ({ threshold: T, range: [2n, PRIME] }), (p) => response(p.threshold, p.range),
    (p, k, x, read) => {
      const a = below(PRIME, read), b = below(PRIME, read);
      return [a, b, randomizedResponse(p.threshold, p.range, (a * x + b) % PRIME % p.range, read)];
    }),
  memoised: {
    ranges: (k) => ({ threshold_first: [WHOLE / k + 1n, WHOLE], threshold_second: [WHOLE / k + 1n, WHOLE] }),
    ratio: (p, k) => constant(...rounds(p, k), k, 1),
    more: { epsilon_unchanged: (p, k) => rounds(p, k)[0] },
    after: (p, k, reports) => {
      const [a, b] = rounds(p, k);
      return [reports > 1024 ? a : constant(a, b, k, reports), times(constant(a, b, k, 1), pow(b, reports - 1))];
    },
    say: (p, k, x, read, memory) => {
      const kept = BigInt(whole(memory[x] ?? Number(randomizedResponse(p.threshold_first, k, x, read)), 0, k - 1n));
      return [randomizedResponse(p.threshold_second, k, kept, read), { ...memory, [x]: Number(kept) }];
    },
  },
  "memoised-unary": {
    ranges: () => ({ threshold_own: T, threshold_other: T, threshold_one: T, threshold_zero: T }),
    ratio: (p) => constantBits(...unaryLayers(p), 1),
    more: { epsilon_unchanged: (p) => ownBits(unaryLayers(p)[0]) },
    after: (p, k, reports) => [
      reports > 1024 ? ownBits(unaryLayers(p)[0]) : constantBits(...unaryLayers(p), reports),
      changingBits(...unaryLayers(p), Number(k), reports, 1, 8192),
    ],
    say: (p, k, x, read, memory) => {
      const kept = keptBits(memory[x] ?? unary(p, k, x, read), k);
      return [again(p, k, kept, read), { ...memory, [x]: kept }];
    },
  },
  tree: {
    ranges: () => ({ threshold: T, levels: [1n, 11n], changes: [1n, 1001n], days: [1n, 367n] }),
    ratio: (p) => response(p.threshold, 2n),
    more: { epsilon_all: (p) => response(p.threshold, 2n) },
    say: (p, k, x, read, memory, period) => {
      const slots = Number(p.changes), periods = 1 << Number(p.levels), now = Number(x);
      const before = Object.keys(memory).length ? memory
        : { level: Number(below(p.levels + 1n, read)), slot: Number(below(p.changes, read)), period: 0, answer: 0, changes: 0, change: 0 };
      const level = whole(before.level, 0, p.levels), slot = whole(before.slot, 0, slots - 1);
      const answered = whole(before.period, 0, periods), last = whole(before.answer, 0, 1);
      const seen = whole(before.changes, 0, slots), block = period - 1 >> level;
      let change = whole(before.change, -1, 1);
      if (!(answered < period && period <= periods)) refuse("answer", `Period ${period} of ${periods} cannot follow period ${answered}: one answer a period.`);
      if (block != answered - 1 >> level) change = 0;
      if (now != last && seen == slot) change = now - last;
      const after = { level, slot, period, answer: now, changes: Math.min(seen + (now != last), slots), change };
      if (period % (1 << level)) return [null, after];
      const limit = change ? change > 0 ? p.threshold : WHOLE - p.threshold : WHOLE / 2n;
      return [[level, block, Number(coin(limit, read))], after];
    },
  },
  "basic-rappor": rapporRule({}, () => 1, (p, k) => Number(k), (p, k, x, read, memory) => sayKept(p, k, bits(k, (i) => i == x), read, memory)),
};
const NUMBERS = {
  duchi: fresh(() => ({ threshold: T }), (p) => response(p.threshold, 2n), (p, size, x, read) => drawEnd(p.threshold, size - 1n, x, read)),
  piecewise: fresh(() => windowed, windowRatio, drawWindow),
  hybrid: fresh(() => ({ piecewise: T, ...windowed, threshold_ends: T }),
    (p, size) => max(windowRatio(p, size), response(p.threshold_ends, 2n)),
    (p, size, x, read) => coin(p.piecewise, read) ? [1, drawWindow(p, size, x, read)] : [0, drawEnd(p.threshold_ends, size - 1n, x, read)]),
};
const TEXTS = {
  sketch: fresh(() => sketched({ buckets: [2n, 65537n] }), (p) => pow(response(p.threshold, 2n), 2),
    (p, size, text, read) => {
      const number = below(p.functions, read), own = bucket(numbered(p, number), point(utf8(text)), p.buckets);
      return [number, bits(p.buckets, (i) => coin(p.threshold, read) == (i == own))];
    }),
  hadamard: fresh(() => sketched({ order: [1n, 21n] }), (p) => response(p.threshold, 2n),
    (p, size, text, read) => {
      const number = below(p.functions, read), row = below(1n << p.order, read);
      const own = bucket(numbered(p, number), point(utf8(text)), 1n << p.order), right = coin(p.threshold, read);
      return [number, row, length(own & row) && (own & row).toString(2).replaceAll("0", "").length % 2 ^ !right];
    }),
  prefixes: fresh((size) => ({ first: [1n, 8n * size + 1n], step: [1n, 8n * size + 1n], checking: [0n, 101n], range: [2n, PRIME], threshold: T }),
    (p) => response(p.threshold, p.range),
    (p, size, text, read) => {
      const sizes = prefixSizes(p, size), group = below(BigInt(sizes.length), read);
      const f = [below(PRIME, read), below(PRIME, read), below(PRIME, read)];
      const x = bucket(f, point(prefix(utf8(text), sizes[group], size)), p.range);
      return [group, ...f, randomizedResponse(p.threshold, p.range, x, read)];
    }),
  rappor: rapporRule(BLOOM, hashesOf, (p) => Number(p.bits), (p, size, text, read, memory) => {
    const empty = !Object.keys(memory).length, cohort = whole(empty ? Number(below(p.cohorts, read)) : memory.cohort, 0, p.cohorts - 1n);
    if (!empty && !("permanent" in memory)) damaged();
    const [said, kept] = sayKept(p, p.bits, bloom(text, cohort, p), read, { ...memory, cohort });
    return [[cohort, said], kept];
  }),
  "rappor-once": fresh(() => ({ ...BLOOM, ...FLIP }), (p) => pow([WHOLE - p.threshold_flip, p.threshold_flip], 2 * hashesOf(p)),
    (p, size, text, read) => {
      const cohort = Number(below(p.cohorts, read)), pattern = bloom(text, cohort, p);
      return [cohort, bits(p.bits, (i) => bit(pattern, i) ^ coin(p.threshold_flip, read))];
    }),
};
function whole(number, least, most) { return Number.isInteger(number) && number >= least && number <= most ? number : damaged() }

// What may be answered: a list of values, a number on a grid, or a text.

const printable = (name, text) =>
  need(typeof text == "string" && text && [...text].length <= 500 && !/[^\P{C}]|[^\P{Z} ]/u.test(text) && text.normalize() === text,
    `A ${name} must be 1 to 500 printable characters, in Unicode's form NFC.`);
const NUMBER = /^-?[0-9]{1,12}(\.[0-9]{1,6})?$/;
const millionths = (text) => {
  const [whole, places = ""] = text.replace("-", "").split(".");
  return BigInt(whole + places.padEnd(6, "0")) * (text[0] == "-" ? -1n : 1n);
};
const integer = (n, least, most) => Number.isInteger(n) && n >= least && n <= most;
const has = (object, ...keys) => object && typeof object == "object" && Object.keys(object).sort().join() == keys.sort().join();
const KINDS = {
  values: (texts) => {
    need(Array.isArray(texts) && texts.length > 1 && texts.length <= 1e5 && new Set(texts).size == texts.length, "There must be 2 to 100,000 values, no two the same.");
    texts.forEach((text) => printable("value", text));
    const { binary, tree, ...rules } = VALUES;
    const check = (answer) => texts.includes(answer) || refuse("answer", `The answer must be one of ${texts.slice(0, 20).join(", ")}.`);
    return { size: texts.length, rules: texts.length == 2 ? VALUES : rules, check, code: (answer) => BigInt(texts.indexOf(answer)) };
  },
  number: (grid) => {
    const good = (text) => NUMBER.test(text) && !/\..*0$/.test(text);
    need(has(grid, "lower", "upper", "steps") && good(grid.lower) && good(grid.upper) && integer(grid.steps, 1, 1e6), "A number has decimals lower and upper, as texts, and 1 to 1,000,000 steps.");
    const low = millionths(grid.lower), high = millionths(grid.upper);
    need(low < high, "lower must be below upper.");
    const check = (answer) => typeof answer == "string" && NUMBER.test(answer) || refuse("answer", "The answer must be a number such as 12.5.");
    const code = (answer, read) => { // one of the two nearest points, right on average
      const at = millionths(answer), inside = (at < low ? low : at > high ? high : at) - low;
      let n = inside * BigInt(grid.steps), d = high - low;
      for (var a = n, b = d; b;) [a, b] = [b, a % b];
      n /= a, d /= a;
      return n / d + BigInt(below(d, read) < n % d);
    };
    return { size: grid.steps + 1, rules: NUMBERS, check, code };
  },
  text: (text) => {
    need(has(text, "most_bytes") && integer(text.most_bytes, 1, 1000), "most_bytes must be a whole number from 1 to 1,000.");
    const check = (answer) => {
      const size = typeof answer == "string" && !/\p{Cs}/u.test(answer) && utf8(answer.normalize()).length;
      if (!size || size > text.most_bytes) refuse("answer", `The answer must have 1 to ${text.most_bytes} bytes in UTF-8.`);
    };
    return { size: text.most_bytes, rules: TEXTS, check, code: (answer) => answer.normalize() };
  },
};

function askedOf(document) {
  const kinds = Object.keys(KINDS).filter((kind) => kind in document);
  need(kinds.length == 1, "Of values, number and text, there must be exactly one.");
  const answers = KINDS[kinds[0]](document[kinds[0]]), { name, ...stated } = document.mechanism ?? {}, size = BigInt(answers.size);
  need(Object.hasOwn(answers.rules, name), `The mechanism of such ${kinds[0]} must be one of ${Object.keys(answers.rules).join(", ")}.`);
  const rule = answers.rules[name], ranges = rule.ranges(size), p = {};
  need(has(stated, ...Object.keys(ranges)), `The mechanism ${name} has the parameters ${Object.keys(ranges).join(", ")}.`);
  for (const [key, [least, end]] of Object.entries(ranges)) {
    need(/^(0|[1-9][0-9]{0,19})$/.test(stated[key]) && typeof stated[key] == "string", `${key} must be the digits of a whole number, as a text.`);
    p[key] = BigInt(stated[key]);
    need(p[key] >= least && p[key] < end, `${key} must be from ${least} to ${end - 1n}.`);
  }
  const ratios = { epsilon: rule.ratio(p, size) };
  for (const [key, ratio] of Object.entries(rule.more ?? {})) ratios[key] = ratio(p, size);
  return {
    kind: kinds[0], mechanism: name, parameters: p, ratios, remembers: !!rule.more, check: answers.check,
    together: (reports) => rule.after ? rule.after(p, size, reports) : Array(2).fill(rule.more ? ratios.epsilon_all : pow(ratios.epsilon, reports)),
    say: (answer, read, memory, period) => (answers.check(answer), rule.say(p, size, answers.code(answer, read), read, memory, period)),
  };
}
function attributesOf({ attributes, mechanism, ...document }) {
  need(Array.isArray(attributes) && has(mechanism, "name") && ["one-attribute", "all-attributes"].includes(mechanism.name) && !Object.keys(KINDS).some((kind) => kind in document), "Several attributes have the mechanism one-attribute or all-attributes, and no other answers.");
  const all = mechanism.name == "all-attributes";
  const each = attributes.map(({ question, ...rest }) => {
    printable("question", question);
    const asked = askedOf(rest);
    need(has(rest, asked.kind, "mechanism") && !asked.remembers && asked.kind != "text", "An attribute has a question, values or a number, and a mechanism that keeps nothing.");
    return { question, ...asked };
  });
  const questions = each.map(({ question }) => question);
  need(each.length > 1 && each.length <= 100 && new Set(questions).size == each.length, "There must be 2 to 100 attributes, no two questions the same.");
  const ratio = each.map(({ ratios }) => ratios.epsilon).reduce(all ? times : max);
  return {
    kind: "attributes", mechanism: mechanism.name, parameters: {}, each, ratios: { epsilon: ratio }, remembers: false,
    together: (reports) => [pow(ratio, reports), pow(ratio, reports)],
    say: (answer, read, memory) => {
      if (!has(answer, ...questions)) refuse("answer", "There must be an answer to each question.");
      each.forEach(({ question, check }) => check(answer[question]));
      if (all) return [each.map(({ question, say }) => say(answer[question], read, {}, 1)[0]), memory];
      const chosen = Number(below(BigInt(each.length), read));
      return [[chosen, each[chosen].say(answer[questions[chosen]], read, {}, 1)[0]], memory];
    },
  };
}

// A task, from its JSON (the document that its digest is of): refused if a part is wrong, or any ε is not the true one.

const sorted = (value) => Array.isArray(value) ? value.map(sorted) : value && typeof value == "object"
  ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value;
const isDay = (text) => /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text) && !isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) == text;

export function readTask(source) {
  let document = source;
  if (typeof source == "string") try { document = JSON.parse(source) } catch { refuse("task", "The task is no JSON.") }
  need(document && typeof document == "object" && document.version === 1, "A task is a JSON object of version 1.");
  const asked = ("attributes" in document ? attributesOf : askedOf)(document), stated = Object.keys(asked.ratios);
  need(has(document, "version", "question", "mechanism", asked.kind, "unit", "opens", "closes", "retention_days", ...stated), `The mechanism ${asked.mechanism} has ${stated.join(", ")}; state them, and nothing unknown.`);
  printable("question", document.question), printable("unit", document.unit);
  need(isDay(document.opens) && isDay(document.closes) && document.opens <= document.closes && integer(document.retention_days, 0, 36500), "A task opens before it closes, and keeps its reports for 0 to 36500 days after that.");
  for (const name of stated) {
    const found = plain(epsilonUp(asked.ratios[name]));
    need(document[name] === found, `The task states ${name} ${document[name]}, but its thresholds have ${name} ${found}; send nothing.`);
  }
  const digest = hex(sha256(utf8(JSON.stringify(sorted(document)))));
  const [n, d] = asked.ratios.epsilon, task = { document, digest, id: digest.slice(0, 32), sure: Number((1000n * n + n + d - 1n) / (n + d)) / 10, ...asked };
  return tasks.size > 200 && tasks.clear(), tasks.set(JSON.stringify(document), task), task;
}

// Reports: JSON on one line, and all that leaves this device.

const said = (value) => Array.isArray(value) ? `[${value.map(said)}]` : typeof value == "string" ? `"${value}"` : String(value);

export function reportWithMemory(task, answer, memory = {}, period = 1, read = system) {
  const id = hex(exactly(read, 16)), [r, kept] = task.say(answer, read, memory, period);
  return [r === null ? null : `{"v":1,"task":"${task.id}","id":"${id}","m":"${task.mechanism}","r":${said(r)}}`, kept];
}
export function report(task, answer, read = system) {
  if (task.remembers) refuse("answer", `The mechanism ${task.mechanism} needs the device's memory.`);
  return reportWithMemory(task, answer, {}, 1, read)[0];
}

// What this device has revealed, by the same document as the file of the Python client.

const LIMIT = /^[0-9]{1,12}(\.[0-9]{1,12})?$/, MOST_REPORTS = 10000;
const DELTA = /^(0(\.[0-9]{1,24})?|1)$/, EXACT = /^([0-9]{1,40})(?:\.([0-9]{1,40})|\/([1-9][0-9]{0,40}))?$/, DELTA_UNIT = 10n ** 24n;
function chance(text) { // a δ in 10^-24, rounded up
  const [, whole, places = "", below] = text.match(EXACT), n = BigInt(whole + places), d = below ? BigInt(below) : 10n ** BigInt(places.length);
  return (n * DELTA_UNIT + d - 1n) / d;
}
const units = (text) => {
  const [whole, places = ""] = text.split(".");
  return BigInt(whole + places.padEnd(12, "0"));
};
export const newDevice = (today) => ({ format: 1, began: today, limit: null, reported: [] });

const sumsOf = (device) => device.summed ?? []; // what secure sums were answered, which another module keeps there
const deltaOf = ({ delta, kept }) => chance(delta ?? kept.delta); // of earlier versions' sums the module of sums has it
const tasks = new Map(); // what was read, by the document's text
const textOf = (task) => typeof task == "string" ? task : JSON.stringify(task);
const knownTask = (text) => tasks.get(text) ?? readTask(text);
function readDevice(device) {
  try {
    const each = device.reported.map(({ task, days, memory }, at) => {
      const read = knownTask(textOf(task)), counts = Object.entries(days), reports = counts.reduce((all, [, count]) => all + count, 0);
      if (!counts.every(([day, count]) => isDay(day) && integer(count, 1, MOST_REPORTS)) || reports > MOST_REPORTS) throw 0;
      if (read.remembers != !!Object.keys(memory).length) throw 0;
      return { task: read, reports, days, memory, at };
    });
    if (!sumsOf(device).every((one) => LIMIT.test(one.epsilon) && isDay(one.day) && deltaOf(one) <= DELTA_UNIT)) throw 0;
    if (device.format !== 1 || !isDay(device.began) || device.limit !== null && !LIMIT.test(device.limit) || device.delta_limit != null && !DELTA.test(device.delta_limit)) throw 0;
    return new Map(each.map((one) => [one.task.digest, one]));
  } catch {
    refuse("device", "The data of this device are damaged, so nobody knows what it revealed.");
  }
}
const spent = (task, reports, unchanged) => {
  const ratio = reports ? task.together(reports)[unchanged ? 0 : 1] : [1n, 1n];
  return ratio && epsilonUp(ratio);
};
const total = (each) => each.includes(null) ? null : each.reduce((all, one) => all + one, 0n);

// ε of all that left this device, as a text, or null if there is no bound; with a task, as if one report more left.
export function revealed(device, { task, unchanged = false } = {}) {
  return revealedBy(device, readDevice(device), task, unchanged);
}
function revealedBy(device, known, task, unchanged) {
  const counts = new Map([...known].map(([digest, one]) => [digest, [one.task, one.reports]]));
  if (task) counts.set(task.digest, [task, (counts.get(task.digest)?.[1] ?? 0) + 1]);
  const sum = total([...[...counts.values()].map(([task, reports]) => spent(task, reports, unchanged)), ...sumsOf(device).map(({ epsilon }) => units(epsilon))]);
  return sum === null ? null : plain(sum);
}

// δ of all that left, as a text. Reports have none, so it does not limit them.
export function revealedDelta(device) {
  readDevice(device);
  const all = sumsOf(device).reduce((all, one) => all + deltaOf(one), 0n);
  return `${all / DELTA_UNIT}.${String(all % DELTA_UNIT).padStart(24, "0")}`.replace(/\.?0+$/, "");
}

// The report of an answer, and the device's document to keep before the report is sent.
export function answerWith(device, task, answer, today, read = system) {
  const { opens, closes } = task.document, days = task.parameters.days;
  if (today < opens || today > closes) refuse("answer", `The task is open from ${opens} to ${closes}.`);
  const known = readDevice(device), before = known.get(task.digest) ?? { reports: 0, days: {}, memory: {}, at: device.reported.length };
  if (before.reports >= MOST_REPORTS) refuse("limit", "The device sent 10,000 reports to this task, and counts no more.");
  if (device.limit !== null) {
    const whole = revealedBy(device, known, task);
    if (whole === null || units(whole) > units(device.limit)) refuse("limit", `With this report the device would have revealed ${whole ? "epsilon " + whole : "no bound"} in all, above its limit of ${device.limit}.`);
  }
  const period = days ? Math.floor((Date.parse(today) - Date.parse(opens)) / 864e5 / Number(days)) + 1 : 1;
  const [line, memory] = reportWithMemory(task, answer, before.memory, period, read);
  const after = { task: task.document, days: line === null ? before.days : { ...before.days, [today]: (before.days[today] ?? 0) + 1 }, memory };
  const reported = [...device.reported];
  reported.splice(before.at, 1, after);
  return [line, { ...device, reported }];
}

// The device's document and the reports that are to be sent, in IndexedDB: one transaction keeps both, durably, and
// only then does a report leave, so none leaves uncounted; transactions of all tabs follow one another. Tasks are texts there.
export async function openDevice(name = "lapwing-local") {
  const db = await new Promise((done, failed) => {
    const open = indexedDB.open(name, 1);
    open.onupgradeneeded = () => (open.result.createObjectStore("device"), open.result.createObjectStore("outbox", { keyPath: "id" }));
    open.onsuccess = () => done(open.result), open.onerror = () => failed(open.error);
  });
  const inside = (store, key, change) => new Promise((done, failed) => {
    const transaction = db.transaction(["device", "outbox"], "readwrite", { durability: "strict" }), place = (name) => transaction.objectStore(name);
    const get = key ? place(store).get(key) : place(store).getAll();
    let result, error;
    get.onsuccess = () => { try { result = change(get.result, place) } catch (wrong) { error = wrong, transaction.abort() } };
    transaction.oncomplete = () => done(result), transaction.onabort = () => failed(error ?? transaction.error);
  });
  const day = () => new Date().toISOString().slice(0, 10);
  const withTasks = (device, form) => ({ ...device, reported: device.reported.map((one) => ({ ...one, task: form(textOf(one.task)) })) });
  const document = () => inside("device", "all", (device) => withTasks(device ?? newDevice(day()), JSON.parse));
  return {
    document,
    revealed: async (how) => revealed(await document(), how),
    revealedDelta: async () => revealedDelta(await document()),
    setLimit: (limit, delta) => inside("device", "all", (device, place) => { // a δ that is left out stays as it is
      if (limit !== null && !LIMIT.test(limit)) refuse("device", "A limit is a number such as 1.5.");
      if (delta != null && !DELTA.test(delta)) refuse("device", "A limit of delta is a number from 0 to 1 such as 0.000001.");
      const before = device ?? newDevice(day());
      place("device").put({ ...before, limit: limit === null ? null : plain(units(limit)), ...(delta === undefined ? {} : { delta_limit: delta }) }, "all");
    }),
    answer: (task, answer, url, today = day()) => inside("device", "all", (device, place) => {
      const [line, next] = answerWith(device ?? newDevice(today), task, answer, today), after = withTasks(next, String);
      place("device").put(after, "all"), place("device").put(revealed({ ...after, summed: [] }), "reported"); // for the module of secure sums
      if (line) place("outbox").put({ id: JSON.parse(line).id, url, line });
      return line;
    }),
    waiting: () => inside("outbox", null, (all) => all),
    // Send what waits; what the collector acknowledged or refused for good is dropped, all else stays for later.
    async send(only) { // to this address only, if one is stated
      const results = [];
      for (const { id, url, line } of await this.waiting()) {
        if (only && url != only) continue;
        let status = 0, text = "";
        try {
          const response = await fetch(url, { method: "POST", body: line, headers: { "content-type": "application/x-ndjson" }, credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", redirect: "error" });
          text = await response.text();
          const { taken, code } = JSON.parse(text);
          if (response.ok ? Number.isInteger(taken) : typeof code == "string") status = response.status;
        } catch { /* offline, sent on to elsewhere, or not the collector's answer, as of a page to sign in to a network: it stays */ }
        if (status >= 200 && status < 300 || status >= 400 && status < 500 && status != 408 && status != 429) await inside("outbox", id, (_, place) => { place("outbox").delete(id) });
        results.push({ id, status, text });
      }
      return results;
    },
    close: () => db.close(),
  };
}
