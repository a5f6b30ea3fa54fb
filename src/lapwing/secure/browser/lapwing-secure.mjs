// Lapwing's client for secure sums: splits an answer into parts, and seals each for its server, so that a relay sees none.
// The same parts from the same random bytes as lapwing.secure in Python, which has the proofs. No dependency.

export class Refused extends Error { // kind: task, answer, limit or device; nothing was sent
  constructor(kind, text) { super(text); this.kind = kind }
}
const refuse = (kind, text) => { throw new Refused(kind, `${text} Nothing was sent.`) };
const need = (good, text) => good || refuse("task", text);

const MODULUS = (1n << 61n) - 1n, ID_BYTES = 16, MARK = "lapwing://sealing/1/", SEAL = "lapwing secure seal 1\n";
const GRID = (1 << 24) - 3, MOST_CELLS = 1 << 20, SEED_BYTES = 32, POINT_BYTES = 3; // of values on a grid
const system = (size) => {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536)); // the most that it fills
  return bytes;
};
const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) all.set(part, at), at += part.length;
  return all;
}

// Exact numbers: texts such as 12, -0.5 or 1/3 as fractions [n, d].

function fraction(text) {
  const found = /^(-?)([0-9]{1,40})(?:\.([0-9]{1,40})|\/([1-9][0-9]{0,40}))?$/.exec(text);
  if (!found) return null;
  const [, sign, whole, places = "", below] = found;
  const n = BigInt(whole + places) * (sign ? -1n : 1n);
  return [n, below ? BigInt(below) : 10n ** BigInt(places.length)];
}
const minus = ([a, b], [c, d]) => [a * d - c * b, b * d];
const over = ([a, b], [c, d]) => [a * d, b * c];
const below = ([a, b], [c, d]) => a * d < c * b;
const same = ([a, b], [c, d]) => a * d == c * b;
const nearest = ([n, d]) => (2n * n + d) / (2n * d); // of two the upper one; n is not below 0
function root(n) { // ⌊√n⌋
  if (n < 2n) return n;
  let x = 1n << BigInt((n.toString(2).length + 1) >> 1);
  for (let y = (x + n / x) >> 1n; y < x; y = (x + n / x) >> 1n) x = y;
  return x;
}

// What may be answered, as the cells of an answer.

const integer = (n, least, most) => Number.isInteger(n) && n >= least && n <= most;
const texts = (list, most = 10000) => Array.isArray(list) && list.length > 1 && list.length <= most && new Set(list).size == list.length && list.every((text) => typeof text == "string" && text.length);
const inside = (x, low, high) => below(x, low) ? low : below(high, x) ? high : x;
const KINDS = {
  values: (values, grid) => {
    const most = grid ? MOST_CELLS : 10000;
    need(texts(values, most), `There must be 2 to ${most} values, no two the same.`);
    const cell = (answer) => values.includes(answer) ? values.indexOf(answer) : refuse("answer", "The answer is none of those that are asked for.");
    const encode = (answer) => { const own = cell(answer); return values.map((_, place) => BigInt(place == own)) };
    return { width: values.length, l1: 2n, l2: 2n, encode, cell };
  },
  words: ({ alphabet, length, followed, more }) => { // a cell for each prefix that is followed, with each choice of more letters; and one for all others
    need(typeof alphabet == "string" && Array.isArray(followed) && followed.length > 0 && followed.every((prefix) => typeof prefix == "string"), "A level of words has an alphabet and prefixes.");
    const letters = [...alphabet], begun = [...followed[0]].length, known = new Set(letters), depth = begun + more;
    need(letters.length > 1 && letters.length <= 256 && known.size == letters.length && integer(length, 1, 64) && integer(more, 1, length) && depth <= length, "A level of words has an alphabet, and no more letters than a word.");
    need(new Set(followed).size == followed.length && followed.every((prefix) => [...prefix].length == begun && [...prefix].every((letter) => known.has(letter))), "The prefixes of a level are of one length and of the alphabet.");
    const width = followed.length * letters.length ** more + 1;
    need(width <= MOST_CELLS, "A level has too many prefixes.");
    const cell = (answer) => {
      const word = [...String(answer)], whole = [...word, ...Array(Math.max(0, length - word.length)).fill(letters[0])].slice(0, depth), place = followed.indexOf(whole.slice(0, begun).join(""));
      if (word.length > length || place < 0 || !word.every((letter) => letter != letters[0] && known.has(letter))) return width - 1;
      return whole.slice(begun).reduce((all, letter) => all * letters.length + letters.indexOf(letter), place);
    };
    const encode = (answer) => { const own = cell(answer); return Array.from({ length: width }, (_, place) => BigInt(place == own)) };
    return { width, l1: 2n, l2: 2n, encode, cell };
  },
  number: ({ lower, upper, steps }) => {
    const low = fraction(lower), high = fraction(upper), n = BigInt(integer(steps, 1, 1 << 24) ? steps : 0);
    need(low && high && below(low, high) && n, "A number has bounds and steps.");
    const step = over(minus(high, low), [n, 1n]);
    const encode = (answer) => [nearest(over(minus(inside(fraction(String(answer).trim()) ?? refuse("answer", "The answer is not a number such as 12 or 0.5."), low, high), low), step))];
    return { width: 1, l1: n, l2: n * n, encode, steps: n };
  },
  vector: ({ names, upper, steps, norm, bound }) => {
    const high = fraction(upper), n = BigInt(integer(steps, 1, 1 << 24) ? steps : 0), width = names?.length, most = /^[1-9][0-9]{0,18}$/.test(bound) ? BigInt(bound) : 0n;
    need(texts(names) && high && high[0] > 0n && n && most && ["l1", "l2"].includes(norm), "A vector has names, an upper bound, steps, and a bound of l1 or l2.");
    const size = (cells) => cells.reduce((sum, cell) => sum + (norm == "l1" ? cell : cell * cell), 0n);
    const smaller = (x, y) => x < y ? x : y, all = BigInt(width);
    const l2 = smaller(2n * (norm == "l1" ? smaller(n, most) * most : most), all * n * n), l1 = norm == "l1" ? smaller(2n * most, all * n) : smaller(root(all * l2), l2);
    const encode = (answer) => {
      const numbers = String(answer).split(",").map((text) => fraction(text.trim()));
      if (numbers.length != width || numbers.includes(null)) refuse("answer", `The answer is not ${width} numbers between commas, such as 1, 0.5 for two.`);
      const cells = numbers.map((number) => nearest(over(inside(number, [0n, 1n], high), over(high, [n, 1n])))), whole = size(cells);
      if (whole <= most) return cells;
      return cells.map((cell) => norm == "l1" ? cell * most / whole : root(cell * cell * most / whole));
    };
    return { width, l1, l2, encode, steps: n, slack: (cells) => most - size(cells), most };
  },
};
function weightsUpTo(most) { // powers of two and a rest, of which every whole number up to most is a sum
  const powers = Array.from({ length: (most + 1n).toString(2).length - 1 }, (_, place) => 1n << BigInt(place));
  const rest = most - powers.reduce((sum, power) => sum + power, 0n);
  return rest ? [...powers, rest] : powers;
}
function bitsOf(number, weights) { // the largest first, whenever the others cannot do without it
  const chosen = weights.map(() => 0n);
  for (const place of weights.map((_, place) => place).sort((x, y) => weights[x] == weights[y] ? x - y : weights[x] < weights[y] ? 1 : -1)) {
    if (weights[place] <= number) chosen[place] = 1n, number -= weights[place];
  }
  return chosen;
}

// What Gaussian noise promises: δ at ε, of vectors √l2 apart, in floating point; the tails by erfc, which is relative.

const number = ([n, d]) => { // of long integers the first 53 bits and more do
  const shift = BigInt(Math.max(0, Math.min(n.toString(2).length, d.toString(2).length) - 80));
  return Number(n >> shift) / Number(d >> shift);
};
function erfc(x) {
  if (x < 0) return 2 - erfc(-x);
  if (x < 2) { // by the series of erf
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-18 * sum; n++) term *= -x * x / n, sum += term / (2 * n + 1);
    return 1 - 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = 0; // by the continued fraction of Laplace
  for (let n = 120; n; n--) fraction = n / 2 / (x + fraction);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
}
const tail = (x) => erfc(x / Math.SQRT2) / 2; // of the normal law, above x
const gaussianDelta = (epsilon, mu) => tail(epsilon / mu - mu / 2) - Math.exp(epsilon) * tail(epsilon / mu + mu / 2);
const TOLERANCE = 1e-6; // of δ, relative: what floating point may err by, and more

// A task, from its JSON: refused if its noise is not what its promise takes.

const JOINT = [14n, 10n ** 18n]; // δ of each cell, if the three servers draw one noise together
const sorted = (value) => Array.isArray(value) ? value.map(sorted) : value && typeof value == "object"
  ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value;
function sealingKey({ name, certificate }) { // in the certificate, as a name of it
  const der = atob(certificate.replace(/-----[^-]+-----|\s/g, "")), at = der.indexOf(MARK), digits = der.substr(at + MARK.length, 130);
  need(at >= 0 && /^04[0-9a-f]{128}$/.test(digits), `The server ${name} has no key for sealed parts.`);
  return bytesOf(digits);
}

export async function readTask(text) {
  let document;
  try { document = JSON.parse(text) } catch { refuse("task", "The task is no JSON.") }
  const kinds = Object.keys(KINDS).filter((kind) => document && typeof document == "object" && kind in document);
  need(document?.format === "lapwing secure task 1" && kinds.length == 1, "This is no secure task, or one of another version.");
  const known = ["format", "question", kinds[0], "epsilon", "delta", "noise", "least_clients", "servers", ...["checked", "joint", "grid"].filter((flag) => document[flag] === true)];
  need(Object.keys(document).sort().join() == known.sort().join(), "The task has unknown or missing parts.");
  const checked = document.checked === true, joint = document.joint === true, grid = document.grid === true;
  const asked = KINDS[kinds[0]](document[kinds[0]] ?? {}, grid), epsilon = fraction(document.epsilon), { servers, noise } = document;
  need(!grid || asked.cell && checked && !joint, "A grid is for checked values or words; its noise cannot be joint.");
  need(grid || !document.words, "Words take a grid.");
  need(epsilon && epsilon[0] > 0n, "The task's epsilon is no number above 0.");
  const scale = fraction(noise?.scale), delta = fraction(document.delta);
  need(delta && delta[0] >= 0n && delta[0] < delta[1] && scale && scale[0] > 0n, "The task has no delta or no noise.");
  need(!joint || same(delta, [JOINT[0] * BigInt(asked.width), JOINT[1]]), "The task states another delta than its joint noise has.");
  need(!grid || !below([1n << 16n, 1n], scale), "The counts of a grid have no room for so much noise.");
  const enough = !delta[0] || joint ? noise.mechanism == "discrete Laplace" && same(scale, over([asked.l1, 1n], epsilon))
    : noise.mechanism == "rounded Gaussian" && gaussianDelta(number(epsilon), Math.sqrt(Number(asked.l2)) / number(scale)) <= number(delta) * (1 + TOLERANCE);
  need(enough, "The task states other noise than its promise takes.");
  const least = document.least_clients;
  need(integer(least, 1, grid ? 1 << 22 : 1e7) && !below([1n, BigInt(least)], delta), "The task's delta is above one over its least number of clients: it may publish the exact answer of somebody.");
  need(Array.isArray(servers) && servers.length >= 2 && servers.length <= 16 && (!(checked || joint) || servers.length == 3) && new Set(servers.map(({ name }) => name)).size == servers.length, "A task has 2 to 16 servers; one that is checked, or whose noise is joint, has three.");
  const keys = servers.map(sealingKey), plain = JSON.stringify(sorted(document));
  const digest = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(plain))));
  return { document, digest, asked, epsilon, delta, checked, joint, grid, servers: servers.map(({ name }, i) => ({ name, key: keys[i] })) };
}

// Parts of an answer.

function uniform(count, read) { // numbers below the modulus: words of its length, those beyond it dropped
  const numbers = [];
  while (numbers.length < count) {
    const data = read(8 * (count - numbers.length));
    if (data.length != 8 * (count - numbers.length)) refuse("device", "The source of randomness gave too few bytes.");
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    for (let at = 0; at < data.length; at += 8) {
      const word = view.getBigUint64(at, true) & MODULUS;
      if (word < MODULUS) numbers.push(word);
    }
  }
  return numbers;
}
const modulo = (number) => (number % MODULUS + MODULUS) % MODULUS;
export function cellsOf(task, answer) {
  const cells = task.asked.encode(answer), { steps, slack, most } = task.asked;
  if (!task.checked || !steps) return cells;
  const weights = weightsUpTo(steps), sent = cells.flatMap((cell) => bitsOf(cell, weights));
  return slack ? [...sent, ...bitsOf(slack(cells), weightsUpTo(most))] : sent;
}
function parts(values, servers, checked, read) {
  const width = values.length;
  if (checked) {
    const slopes = uniform(width, read);
    return [1n, 2n, 3n].map((point) => values.map((value, i) => modulo(value + slopes[i] * point)));
  }
  const drawn = uniform((servers - 1) * width, read), masks = Array.from({ length: servers - 1 }, (_, i) => drawn.slice(i * width, (i + 1) * width));
  return [...masks, values.map((value, i) => modulo(value - masks.reduce((sum, mask) => sum + mask[i], 0n)))];
}

// A fresh client's id, and its part for each server, as bytes; `gridRecordsOf` is for tasks with a grid.
export function recordsOf(task, answer, read = system) {
  need(!task.grid, "The task has a grid.");
  const cells = cellsOf(task, answer), client = read(ID_BYTES);
  return { client, parts: parts(cells, task.servers.length, task.checked, read).map((part) => {
    const view = new DataView(new ArrayBuffer(8 * part.length));
    part.forEach((cell, i) => view.setBigUint64(8 * i, cell, true));
    return new Uint8Array(view.buffer);
  }) };
}

// On a grid an answer is a row and a column: points of a line through each number, of which the first ones are a seed.

export async function gridRecordsOf(task, answer, read = system) {
  need(task.grid, "The task has no grid.");
  const { width, cell } = task.asked, rows = Math.floor(Math.sqrt(width - 1)) + 1, columns = Math.ceil(width / rows), own = cell(answer);
  const numbers = [[rows, Math.floor(own / columns)], [columns, own % columns]].flatMap(([count, one]) => Array.from({ length: count - 1 }, (_, at) => Number(at == one)));
  const client = read(ID_BYTES), seed = read(SEED_BYTES), first = await stretched(seed, numbers.length);
  if (client.length != ID_BYTES || seed.length != SEED_BYTES) refuse("device", "The source of randomness gave too few bytes.");
  return { client, parts: [seed, ...[2, 3].map((n) => packed(first.map((point, i) => (n * point + (n - 1) * (GRID - numbers[i])) % GRID)))] };
}
async function stretched(seed, count) { // words of AES-256 in counter mode, those beyond the modulus dropped
  const key = await crypto.subtle.importKey("raw", seed, "AES-CTR", false, ["encrypt"]), points = [];
  for (let spare = 16; points.length < count; spare *= 2) {
    const stream = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-CTR", counter: new Uint8Array(16), length: 64 }, key, new Uint8Array(POINT_BYTES * (count + spare))));
    points.length = 0;
    for (let at = 0; at < stream.length && points.length < count; at += POINT_BYTES) {
      const word = stream[at] | stream[at + 1] << 8 | stream[at + 2] << 16;
      if (word < GRID) points.push(word);
    }
  }
  return points;
}
const packed = (points) => Uint8Array.from(points.flatMap((point) => [point & 255, point >> 8 & 255, point >> 16]));

// HPKE (RFC 9180) in base mode: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM.

const KEM = joined(utf8("KEM"), Uint8Array.of(0, 16)), SUITE = joined(utf8("HPKE"), Uint8Array.of(0, 16, 0, 1, 0, 1)), NONE = new Uint8Array();
async function hmac(key, data) {
  const held = await crypto.subtle.importKey("raw", key.length ? key : new Uint8Array(32), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", held, data));
}
const extract = (suite, salt, label, secret) => hmac(salt, joined(utf8("HPKE-v1"), suite, utf8(label), secret));
async function expand(suite, key, label, info, size) { // 32 bytes at most: one block
  return (await hmac(key, joined(Uint8Array.of(size >> 8, size & 255), utf8("HPKE-v1"), suite, utf8(label), info, Uint8Array.of(1)))).slice(0, size);
}
export async function seal(publicKey, info, plain, pair = null) { // pair: for vectors; a fresh one is drawn for each message
  const curve = { name: "ECDH", namedCurve: "P-256" }, theirs = await crypto.subtle.importKey("raw", publicKey, curve, false, []);
  const own = pair ?? await crypto.subtle.generateKey(curve, true, ["deriveBits"]);
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", own.publicKey));
  const dh = new Uint8Array(await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, own.privateKey, 256));
  const shared = await expand(KEM, await extract(KEM, NONE, "eae_prk", dh), "shared_secret", joined(enc, publicKey), 32);
  const context = joined(Uint8Array.of(0), await extract(SUITE, NONE, "psk_id_hash", NONE), await extract(SUITE, NONE, "info_hash", info));
  const secret = await extract(SUITE, shared, "secret", NONE);
  const key = await crypto.subtle.importKey("raw", await expand(SUITE, secret, "key", context, 16), "AES-GCM", false, ["encrypt"]);
  const iv = await expand(SUITE, secret, "base_nonce", context, 12);
  return joined(enc, new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, plain)));
}

// What a relay gets of one client: the id, and a sealed part for each server.
export async function envelopeOf(task, answer, read = system) {
  const { client, parts } = task.grid ? await gridRecordsOf(task, answer, read) : recordsOf(task, answer, read);
  const sealed = await Promise.all(task.servers.map(({ name, key }, i) => seal(key, joined(utf8(SEAL), bytesOf(task.digest), client, utf8(name)), parts[i])));
  return joined(client, ...sealed);
}

// What this device answered, in IndexedDB, in the document of lapwing-local.mjs if that is of the same site: one limit for
// all that leaves, whichever road it takes. Each task once, and what no relay has yet.

const PLACES = 12, DELTA_PLACES = 24, today = () => new Date().toISOString().slice(0, 10);
const units = (text, places = PLACES) => { const [n, d] = fraction(text); return (n * 10n ** BigInt(places) + d - 1n) / d }; // rounded up
const plain = (number, places = PLACES) => `${number / 10n ** BigInt(places)}.${String(number % 10n ** BigInt(places)).padStart(places, "0")}`.replace(/\.?0+$/, "");
const chance = (text) => units(text, DELTA_PLACES), written = (delta) => plain(delta, DELTA_PLACES);
export const MOST_DELTA = "0.00001"; // of a task whose owner was not asked, and of all if the owner set a limit of ε and none of δ
export async function openDevice(name = "lapwing-local") {
  const opening = indexedDB.open(name, 1), asked = (request) => new Promise((done, failed) => { request.onsuccess = () => done(request.result); request.onerror = () => failed(request.error) });
  opening.onupgradeneeded = () => { opening.result.createObjectStore("device"); opening.result.createObjectStore("outbox", { keyPath: "id" }) };
  const database = await asked(opening);
  // Read the document, and what its local reports cost together; and keep the document that `change` returns first, if any.
  const inside = (change) => new Promise((done, failed) => {
    const transaction = database.transaction("device", "readwrite", { durability: "strict" }), store = transaction.objectStore("device");
    const all = store.get("all"), reported = store.get("reported");
    let result, wrong;
    reported.onsuccess = () => {
      try {
        const device = all.result ?? { format: 1, began: today(), limit: null, reported: [] };
        if (device.format !== 1 || !Array.isArray(device.reported)) refuse("device", "The data of this device are damaged, so nobody knows what it revealed.");
        const [after, value] = change(device, device.reported.length ? reported.result : "0");
        if (after) store.put(after, "all");
        result = value;
      } catch (error) { wrong = error; transaction.abort() }
    };
    transaction.oncomplete = () => done(result), transaction.onabort = () => failed(wrong ?? transaction.error);
  });
  const sums = ({ summed }) => summed ?? [], waiting = (device) => sums(device).filter(({ kept }) => kept.envelope);
  const deltas = (device) => sums(device).reduce((all, { delta, kept }) => all + chance(delta ?? kept.delta), 0n), mostDelta = ({ limit, delta_limit }) => delta_limit ?? (limit === null ? null : MOST_DELTA);
  const total = (device, reported) => typeof reported == "string" ? sums(device).reduce((all, { epsilon }) => all + units(epsilon), units(reported)) : null;
  return {
    // Keep an answer to a task, sealed, to be sent to its relay; and count it, before it may leave.
    async answer(task, answer, url, { acceptDelta = MOST_DELTA } = {}) { // the owner accepts such a δ of this task
      if (!fraction(acceptDelta) || below(fraction(acceptDelta), task.delta)) refuse("limit", `The task has delta ${task.document.delta}: with such a chance its epsilon need not hold. This device accepts ${acceptDelta} at most.`);
      const envelope = hex(await envelopeOf(task, answer)), { question, epsilon, delta } = task.document, more = units(epsilon);
      await inside((device, reported) => {
        if (sums(device).some(({ task: digest }) => digest == task.digest)) refuse("limit", "This device answered the task already.");
        const whole = deltas(device) + chance(delta), most = mostDelta(device);
        if (chance(delta) && most !== null && whole > chance(most)) refuse("limit", `With this answer the device would reveal delta ${written(whole)}, and its limit is ${most}.`);
        const before = total(device, reported);
        if (device.limit !== null && (before === null || before + more > units(device.limit))) refuse("limit", `With this answer the device would reveal ${before === null ? "what has no bound" : "epsilon " + plain(before + more)}, and its limit is ${device.limit}.`);
        return [{ ...device, summed: [...sums(device), { task: task.digest, question, epsilon: plain(more), delta: written(chance(delta)), day: today(), kept: { delta, url, envelope } }] }];
      });
    },
    // Bring what waits to its relay; what is not acknowledged stays, and counts once however often it is sent.
    async send() {
      const results = [];
      for (const { task, kept: { url, envelope } } of await inside((device) => [null, waiting(device)])) {
        let status = 0;
        try { // no redirect, and a receipt: a sign-in page that answers in the relay's place took nothing
          const reply = await fetch(url, { method: "POST", body: bytesOf(envelope), headers: { "content-type": "application/octet-stream" }, credentials: "omit", redirect: "error" });
          status = reply.status != 200 || Number.isInteger((await reply.json()).new) ? reply.status : 0;
        } catch { /* no connection */ }
        if (status == 200) await inside((device) => [{ ...device, summed: sums(device).map((one) => one.task == task ? { ...one, kept: { ...one.kept, envelope: null } } : one) }]);
        results.push({ task, status });
      }
      return results;
    },
    answered: ({ digest }) => inside((device) => [null, sums(device).some(({ task }) => task == digest)]),
    waiting: () => inside((device) => [null, waiting(device).map(({ task }) => task)]),
    // ε of all that left this device together, as a number for people; null if there is no bound.
    revealed: () => inside((device, reported) => { const all = total(device, reported); return [null, all === null ? null : Number(plain(all))] }),
    revealedDelta: () => inside((device) => [null, written(deltas(device))]), // its δ, as a text
    // Limits of ε and of δ; a δ that is left out stays as it is.
    setLimit: (epsilon, delta) => inside((device) => {
      if (epsilon !== null && !(/^[0-9]{1,12}(\.[0-9]{1,12})?$/.test(epsilon) && units(epsilon) > 0n)) refuse("limit", "A limit is a number above 0 such as 1.5, or null.");
      if (delta != null && !/^(0(\.[0-9]{1,24})?|1)$/.test(delta)) refuse("limit", "A limit of delta is a number from 0 to 1 such as 0.000001, or null.");
      return [{ ...device, limit: epsilon === null ? null : plain(units(epsilon)), delta_limit: delta === undefined ? device.delta_limit ?? null : delta }];
    }),
    limits: () => inside((device) => [null, { epsilon: device.limit, delta: mostDelta(device) }]), // as texts, null for none
    close() { database.close() },
  };
}
