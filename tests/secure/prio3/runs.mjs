// What the tests let the browser's module of Prio3 do, in Node.

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16));
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const big = (value) => Array.isArray(value) ? value.map(big) : BigInt(value);

function one(module, { kind, sizes, context, servers, measurement, nonce, rand }) {
  try {
    const circuit = module[kind](...sizes.map((size) => typeof size == "string" ? BigInt(size) : size));
    const given = { servers, ...(rand ? { nonce: bytesOf(nonce), randomness: bytesOf(rand) } : {}) };
    const report = module.shard(circuit, bytesOf(context), typeof measurement == "boolean" ? measurement : big(measurement), given);
    return { nonce: hex(report.nonce), public: hex(report.publicShare), shares: report.inputShares.map(hex) };
  } catch (error) {
    return { kind: error.kind ?? "bug", text: error.kind ? "" : error.stack };
  }
}
export const run = (module, given) => given.map((each) => one(module, each));
