// What the tests let the module do, in Node and in Chromium alike: one request with what is given, one answer as JSON.

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16));
function recorded(hex) {
  const bytes = bytesOf(hex), read = (size) => bytes.subarray(read.used, read.used += size);
  read.used = 0;
  return read;
}
const sayable = (value) => JSON.parse(JSON.stringify(value, (_, one) => typeof one == "bigint" ? String(one) : one));
function told(act) {
  try { return act() } catch (error) { return { kind: error.kind ?? "bug", text: error.kind ? error.message : error.stack } }
}

const jobs = {
  reports: (module, each) => each.map(({ task, answer, memory, period, random }) => told(() => {
    const read = recorded(random), asked = module.readTask(task);
    const [line, kept] = module.reportWithMemory(asked, answer, memory ?? {}, period ?? 1, read);
    return { digest: asked.digest, line, kept, used: read.used };
  })),
  tasks: (module, each) => each.map((task) => told(() => module.readTask(task).digest)),
  device: (module, { began, limit, steps }) => {
    let device = { ...module.newDevice(began), limit };
    return steps.map(({ task, answer, today, random }) => told(() => {
      const [line, after] = module.answerWith(device, module.readTask(task), answer, today, recorded(random));
      device = after;
      return { line, device, revealed: module.revealed(device), unchanged: module.revealed(device, { unchanged: true }) };
    }));
  },
  delta: (module, device) => told(() => module.revealedDelta(device)),
  law: (module, { task, answer, draws, part }) => {
    const asked = module.readTask(task), counts = {};
    for (let i = 0; i < draws; i++) {
      const said = JSON.parse(module.reportWithMemory(asked, answer)[0]).r, key = JSON.stringify(part ? said[part] : said);
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  },
  epsilons: (module, ratios) => ratios.map(([n, d]) => module.plain(module.epsilonUp([BigInt(n), BigInt(d)]))),
};
export const run = (module, { job, given }) => sayable(jobs[job](module, given));
