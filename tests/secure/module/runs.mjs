// What the tests let the module of secure sums do, in Node and in Chromium alike.

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16));
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
function recorded(digits) {
  const bytes = bytesOf(digits), read = (size) => bytes.slice(read.used, read.used += size);
  read.used = 0;
  return read;
}
async function told(act) {
  try { return await act() } catch (error) { return { kind: error.kind ?? "bug", text: error.kind ? error.message : error.stack } }
}
const url64 = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const jobs = {
  records: async (module, each) => Promise.all(each.map(({ task, answer, random }) => told(async () => {
    const read = recorded(random), asked = await module.readTask(task);
    const { client, parts } = await (asked.grid ? module.gridRecordsOf : module.recordsOf)(asked, answer, read);
    return { digest: asked.digest, records: parts.map((part) => hex(client) + hex(part)), used: read.used };
  }))),
  tasks: async (module, each) => Promise.all(each.map((task) => told(async () => (await module.readTask(task)).digest))),
  envelopes: async (module, { task, answers }) => {
    const asked = await module.readTask(task), found = [];
    for (const answer of answers) found.push(hex(await module.envelopeOf(asked, answer)));
    return found;
  },
  cells: async (module, { task, answers }) => {
    const asked = await module.readTask(task);
    return Promise.all(answers.map((answer) => told(() => module.cellsOf(asked, answer).map(String))));
  },
  seal: async (module, { theirs, own, info, plain }) => { // with the ephemeral key of a published vector
    const point = bytesOf(own.point), jwk = { kty: "EC", crv: "P-256", x: url64(point.slice(1, 33)), y: url64(point.slice(33)), ext: true };
    const curve = { name: "ECDH", namedCurve: "P-256" };
    const pair = {
      publicKey: await crypto.subtle.importKey("jwk", jwk, curve, true, []),
      privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d: url64(bytesOf(own.secret)) }, curve, true, ["deriveBits"]),
    };
    return hex(await module.seal(bytesOf(theirs), bytesOf(info), bytesOf(plain), pair));
  },
};
export const run = async (module, { job, given }) => JSON.parse(JSON.stringify(await jobs[job](module, given)));
