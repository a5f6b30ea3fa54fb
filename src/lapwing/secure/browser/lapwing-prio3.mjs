// Prio3 for a client (draft-irtf-cfrg-vdaf-20): splits a measurement and the proof that it is valid into a share for each server.
// The shares are those of lapwing.secure.prio3 in Python, which has the proofs of the claims. No dependency.
// BigInt does not take constant time: whoever measures how long it takes may learn something of the measurement.

export class Refused extends Error { // kind: task or measurement; nothing was sent
  constructor(kind, text) { super(text); this.kind = kind }
}
const need = (good, kind, text) => { if (!good) throw new Refused(kind, `${text} Nothing was sent.`) };
const SEED = 32, NONCE = 16, VERSION = 18, PROOFS = 1;
const system = (size) => {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536)); // the most that it fills
  return bytes;
};
const wordOf = (bytes) => bytes.reduceRight((word, byte) => word << 8n | BigInt(byte), 0n); // little endian
const bytesOf = (word, size) => Uint8Array.from({ length: size }, (_, place) => Number(word >> BigInt(8 * place) & 255n));
function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) all.set(part, at), at += part.length;
  return all;
}

// TurboSHAKE128: Keccak-p[1600, 12] in a sponge (RFC 9861, section 2; FIPS 202, section 3.2). Lane (x, y) is at x + 5y.

const FULL = (1n << 64n) - 1n, RATE = 168;
const CONSTANTS = (() => { // bits of a linear feedback shift register, of the last 12 of 24 rounds
  const bits = [];
  for (let register = 1, turn = 0; turn < 168; turn++) bits.push(register & 1), register <<= 1, register ^= 0x171 * (register >> 8);
  const constant = (turn) => [0, 1, 2, 3, 4, 5, 6].reduce((sum, j) => sum | BigInt(bits[7 * turn + j]) << BigInt(2 ** j - 1), 0n);
  return Array.from({ length: 12 }, (_, turn) => constant(turn + 12));
})();
const MOVES = (() => { // where rho and pi bring each lane: from, to, and by how many bits it turns
  const moves = [[0, 0, 0n]];
  for (let x = 1, y = 0, turn = 0; turn < 24; turn++) {
    moves.push([x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), BigInt((turn + 1) * (turn + 2) / 2 % 64)]);
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  return moves;
})();
const turned = (lane, by) => (lane << by | lane >> (64n - by)) & FULL;
function permute(a) {
  for (const constant of CONSTANTS) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]), b = [];
    const d = c.map((_, x) => c[(x + 4) % 5] ^ turned(c[(x + 1) % 5], 1n));
    for (const [from, to, by] of MOVES) b[to] = turned(a[from] ^ d[from % 5], by);
    for (let at = 0; at < 25; at++) {
      const row = at - at % 5;
      a[at] = b[at] ^ (~b[row + (at + 1) % 5] & FULL & b[row + (at + 2) % 5]);
    }
    a[0] ^= constant;
  }
}
function stream(message, domain) { // returns a function that reads the next bytes of the output
  const padded = joined(message, [domain], new Uint8Array((RATE - (message.length + 1) % RATE) % RATE)), state = Array(25).fill(0n);
  padded[padded.length - 1] ^= 0x80;
  for (let at = 0; at < padded.length; at += RATE) {
    for (let lane = 0; lane < RATE / 8; lane++) state[lane] ^= wordOf(padded.subarray(at + 8 * lane, at + 8 * lane + 8));
    permute(state);
  }
  const squeezed = () => joined(...state.slice(0, RATE / 8).map((lane) => bytesOf(lane, 8)));
  let block = squeezed(), read = 0;
  return (size) => {
    const output = new Uint8Array(size);
    for (let at = 0; at < size; at++) {
      if (read == RATE) permute(state), block = squeezed(), read = 0;
      output[at] = block[read++];
    }
    return output;
  };
}

// The fields. A polynomial of degree below n is its values at the n-th roots of unity.

const field = (p, size, levels) => {
  const power = (base, exponent) => {
    let result = 1n;
    for (; exponent; exponent >>= 1n, base = base * base % p) if (exponent & 1n) result = result * base % p;
    return result;
  };
  const generator = power(7n, (p - 1n) >> levels), inverse = (x) => power(x, p - 2n), modulo = (x) => (x % p + p) % p;
  const roots = (n) => {
    const w = power(generator, (1n << levels) / BigInt(n)), powers = [1n];
    while (powers.length < n) powers.push(powers.at(-1) * w % p);
    return powers;
  };
  const at = (coefficients) => { // the values at the n-th roots, by halves: f(x) = even(x²) + x·odd(x²)
    const n = coefficients.length;
    if (n == 1) return coefficients;
    const [even, odd] = [0, 1].map((start) => at(coefficients.filter((_, place) => place % 2 == start))), w = roots(n);
    return [...even.map((a, i) => modulo(a + w[i] * odd[i])), ...even.map((a, i) => modulo(a - w[i] * odd[i]))];
  };
  const doubled = (values) => { // the values at the 2n-th roots
    const n = values.length, scale = inverse(BigInt(n)), w = roots(2 * n), [first, ...rest] = at(values);
    const between = at([first, ...rest.reverse()].map((each, i) => scale * each % p * w[i] % p));
    return values.flatMap((value, i) => [value, between[i]]);
  };
  return { p, size, modulo, doubled, encode: (elements) => joined(...elements.map((each) => bytesOf(each, size))) };
};
const FIELD64 = field((1n << 64n) - (1n << 32n) + 1n, 8, 32n), FIELD128 = field((1n << 66n) * 4611686018427387897n + 1n, 16, 66n);

// What may be measured: its encoding, and the inputs of the gadget in each call.

const whole = (number, most) => {
  need((typeof number == "bigint" || Number.isSafeInteger(number)) && number >= 0 && BigInt(number) <= most, "measurement", `A measurement must be a whole number from 0 to ${most}.`);
  return BigInt(number);
};
const bitsOf = (number, most) => { // powers of two, and a rest that makes all of them add up to most
  const places = most.toString(2).length - 1, powers = (1n << BigInt(places)) - 1n, last = BigInt(number > powers);
  const rest = number - last * (most - powers);
  return [...Array.from({ length: places }, (_, place) => rest >> BigInt(place) & 1n), last];
};
const pairs = (inputs) => inputs.reduce((sum, input, i) => i % 2 ? sum : sum + input * inputs[i + 1], 0n);
const checkedRanges = (chunk) => (vector, joint) => joint.map((r, call) => {
  let power = 1n;
  return Array.from({ length: chunk }, (_, place) => vector[call * chunk + place] ?? 0n).flatMap((element) => {
    power = power * r % FIELD128.p;
    return [power * element % FIELD128.p, FIELD128.modulo(element - 1n)];
  });
});
const requireMost = (most, { p }) => need(typeof most == "bigint" && most > 0n && most < p, "task", "The largest measurement is a BigInt from 1 to below the modulus.");
const requireLength = (length, chunk) => need(Number.isInteger(length) && length > 0 && length <= 1 << 20 && Number.isInteger(chunk) && chunk > 0 && chunk <= length, "task", "A measurement has 1 to 1,048,576 elements, and a chunk has one to all of them.");
const ranges = (algorithm, length, chunk, encode) => {
  requireLength(length, chunk);
  return { algorithm, field: FIELD128, arity: 2 * chunk, joint: Math.ceil(length / chunk), calls: Math.ceil(length / chunk), length, encode, inputs: checkedRanges(chunk), gadget: pairs };
};
export const count = () => ({ algorithm: 1, field: FIELD64, arity: 2, joint: 0, calls: 1, length: 1, encode: (measurement) => [whole(measurement, 1n)], inputs: ([x]) => [[x, x]], gadget: pairs });
export function sum(most) {
  requireMost(most, FIELD64);
  const length = most.toString(2).length;
  return { algorithm: 2, field: FIELD64, arity: 1, joint: 0, calls: length, length, encode: (measurement) => bitsOf(whole(measurement, most), most), inputs: (bits) => bits.map((bit) => [bit]), gadget: ([x]) => x * (x - 1n) };
}
export function sumVec(length, most, chunk) {
  requireMost(most, FIELD128);
  return ranges(3, length * most.toString(2).length, chunk, (measurement) => {
    need(Array.isArray(measurement) && measurement.length == length, "measurement", `The measurement must be a vector of ${length} whole numbers.`);
    return measurement.flatMap((each) => bitsOf(whole(each, most), most));
  });
}
export const histogram = (length, chunk) => ranges(4, length, chunk, (measurement) => {
  const bucket = whole(measurement, BigInt(length - 1));
  return Array.from({ length }, (_, each) => BigInt(BigInt(each) == bucket));
});

function proofOf(circuit, vector, seeds, joint) {
  const calls = circuit.inputs(vector, joint);
  let n = 1; // the least power of two with room for a seed and all calls
  while (n <= circuit.calls) n *= 2;
  const wires = seeds.map((seed, input) => circuit.field.doubled(Array.from({ length: n }, (_, at) => at ? calls[at - 1]?.[input] ?? 0n : seed)));
  const values = Array.from({ length: 2 * n - 1 }, (_, at) => circuit.field.modulo(circuit.gadget(wires.map((wire) => wire[at]))));
  return [...seeds, ...values];
}

// A client's report: the public share, and an input share for each server. Nonce and randomness are fresh for each report.

export const randomnessBytes = (circuit, servers) => (circuit.joint ? 2 : 1) * servers * SEED;
export function shard(circuit, context, measurement, { servers = 2, nonce = system(NONCE), randomness = system(randomnessBytes(circuit, servers)) } = {}) {
  need(Number.isInteger(servers) && servers >= 2 && servers <= 255 && context.length <= 65527, "task", "There are 2 to 255 servers, and an application's name has at most 65,527 bytes.");
  need(nonce.length == NONCE && randomness.length == randomnessBytes(circuit, servers), "task", "The nonce or the randomness has the wrong length.");
  const { field: { p, size, modulo, encode }, algorithm } = circuit, vector = circuit.encode(measurement);
  const usage = (number, seed, binder) => {
    const tag = joined([VERSION, 0, 0, 0, 0, algorithm, 0, number], context);
    return stream(joined([tag.length & 255, tag.length >> 8], tag, [seed.length], seed, binder), 1);
  };
  const mask = (1n << BigInt(p.toString(2).length)) - 1n;
  const elements = (read, length) => {
    const found = [];
    while (found.length < length) {
      const word = wordOf(read(size)) & mask;
      if (word < p) found.push(word);
    }
    return found;
  };
  const seeds = Array.from({ length: randomness.length / SEED }, (_, i) => randomness.slice(i * SEED, (i + 1) * SEED)), proveSeed = seeds.pop();
  const leaderBlind = circuit.joint ? seeds.pop() : [];
  const helpers = circuit.joint ? seeds.filter((_, i) => i % 2 == 0) : seeds, blinds = [leaderBlind, ...helpers.map((_, i) => circuit.joint ? seeds[2 * i + 1] : [])];
  const without = (numbers, shares) => numbers.map((number, i) => modulo(shares.reduce((rest, share) => rest - share[i], number)));
  const masks = helpers.map((seed, i) => elements(usage(1, seed, [i + 1]), vector.length)), leader = without(vector, masks);
  const parts = circuit.joint ? [leader, ...masks].map((share, place) => usage(7, blinds[place], joined([place], nonce, encode(share)))(SEED)) : [];
  const joint = circuit.joint ? elements(usage(3, usage(6, new Uint8Array(SEED), joined(...parts))(SEED), [PROOFS]), circuit.joint) : [];
  const full = proofOf(circuit, vector, elements(usage(4, proveSeed, [PROOFS]), circuit.arity), joint);
  const proof = without(full, helpers.map((seed, i) => elements(usage(2, seed, [PROOFS, i + 1]), full.length)));
  const shares = [encode([...leader, ...proof]), ...helpers];
  return { nonce, publicShare: joined(...parts), inputShares: shares.map((share, place) => joined(share, blinds[place])) };
}
