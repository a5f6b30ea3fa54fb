// The page for respondents: asks, shows what would leave before it does, counts what it costs, and sends it.
// It trusts neither the task nor whoever serves it: lapwing-local.mjs refuses a task that lies, and draws the report.

import { openDevice, readTask, revealed, Refused } from "./lapwing-local.mjs";

const page = document.getElementById("page");
const address = (name) => new URL(name, location.href).href;
const percent = (share, places = 1) => `${(100 * share).toFixed(places)}\u00a0%`;

// Build elements without markup: what a task says is text, whatever is in it.
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key != "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}
const paragraph = (text, className = "") => make("p", { className }, text);

// What may be answered, as fields; each gives its answer as a text.

const FEW = 12;
let fields = 0;
function field(question, asked, document_) {
  const name = `answer-${++fields}`, values = document_.values;
  if (values && values.length <= FEW) {
    const choices = values.map((value) => make("label", { className: "choice" },
      make("input", { type: "radio", name, value, required: true }), make("span", {}, value)));
    const element = make("fieldset", {}, make("legend", {}, question), ...choices);
    return { element, answer: () => element.querySelector("input:checked")?.value };
  }
  let input, hint = "";
  if (values) {
    input = make("select", { id: name, required: true }, make("option", { value: "" }, "Please choose"), ...values.map((value) => make("option", { value }, value)));
  } else if (document_.number) {
    const { lower, upper } = document_.number;
    hint = `A number such as ${lower}; below ${lower} counts as ${lower}, above ${upper} as ${upper}.`;
    input = make("input", { id: name, type: "text", inputMode: "decimal", autocomplete: "off", required: true, "aria-describedby": `${name}-hint` });
  } else {
    hint = `A text of at most ${document_.text.most_bytes} bytes.`;
    input = make("input", { id: name, type: "text", autocomplete: "off", required: true, "aria-describedby": `${name}-hint` });
  }
  const element = make("fieldset", {}, make("legend", {}, make("label", { htmlFor: name }, question)), input, hint ? make("p", { className: "quiet", id: `${name}-hint` }, hint) : null);
  return { element, answer: () => input.value.trim() || undefined };
}

// The mechanism in words: what leaves with which chance, and what nobody can tell from it.

const share = (threshold) => Number(threshold >> 11n) / 2 ** 53;
function chances(task) { // of each answer, how often each value leaves; null if reports are of another kind
  const p = task.parameters, values = task.document.values;
  if (task.mechanism == "binary") {
    const yes = [share(p.threshold_no), share(p.threshold_yes)];
    return [0, 1].map((x) => [1 - yes[x], yes[x]]);
  }
  if (task.mechanism != "k-ary" || values.length > 5) return null;
  const own = share(p.threshold);
  return values.map((_, x) => values.map((_, y) => x == y ? own : (1 - own) / (values.length - 1)));
}
function explained(task) {
  const values = task.document.values, table = chances(task), parts = [];
  if (table) {
    parts.push(paragraph("Your device throws dice before anything leaves it. What leaves is not your answer, but this:"));
    parts.push(make("ul", {}, ...table.map((row, x) => make("li", {}, `If your answer is “${values[x]}”: `,
      row.map((chance, y) => `“${values[y]}” leaves with ${percent(chance)}`).join(", ") + "."))));
    if (values.length == 2) parts.push(paragraph(`So of 100 people who would answer “${values[0]}”, about ${Math.round(100 * table[0][1])} send “${values[1]}” all the same. Whoever sees that you sent “${values[1]}” cannot tell whether you are one of them.`));
  } else {
    parts.push(paragraph("Your device throws dice before anything leaves it. What leaves is a noisy form of your answer, and any answer could have led to it."));
  }
  parts.push(paragraph(`Whoever held two answers for equally likely can, after seeing what leaves, hold one of them for ${task.sure} % likely at most. That is so whoever gets it, and whatever they know or do; it is the meaning of ε = ${task.document.epsilon}.`));
  if (task.parameters.cohorts && task.remembers) parts.push(paragraph("Every report names this device's group, always the same one.", "quiet"));
  parts.push(paragraph("From the reports of many people together, the shares of the answers can be estimated. Of one person, nothing more can be learned than stated here."));
  return parts;
}

// What leaves, in words and as it is.

function shown(task, line) {
  const { r } = JSON.parse(line), values = task.document.values;
  const word = task.mechanism == "binary" || task.mechanism == "k-ary" || task.mechanism == "memoised" ? values[r]
    : task.mechanism == "subset" ? `one of: ${r.map((x) => values[x]).join(", ")}` : null;
  return [
    word === null ? paragraph("This leaves your device:") : make("p", { className: "leaves" }, `“${word}”`),
    make("details", { open: word === null }, make("summary", {}, "Exactly what is sent"), make("pre", {}, line),
      paragraph("The number after “id” is random, so that a report that is sent twice counts once. No address and no time are kept with it.", "quiet")),
  ];
}

// The result, as bars with intervals and as a table.

const SVG = "http://www.w3.org/2000/svg";
function draw(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function chart(rows, label) {
  const low = Math.min(0, ...rows.map((row) => row.low ?? row.share)), high = Math.max(0.1, ...rows.map((row) => row.high ?? row.share));
  const x = (value) => (value - low) / (high - low) * 1000;
  const still = { "vector-effect": "non-scaling-stroke" };
  return make("div", { role: "img", "aria-label": label }, ...rows.map((row) => make("div", { className: "row" },
    make("p", {}, `${row.value}: ${percent(row.share)}${row.seen === false ? " (cannot be told from 0)" : ""}`),
    draw("svg", { viewBox: "-4 0 1008 20", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("rect", { class: "bar", x: Math.min(x(0), x(row.share)), y: 2, width: Math.max(1, Math.abs(x(row.share) - x(0))), height: 16, opacity: row.seen === false ? 0.4 : 1 }),
      draw("path", { class: "axis", d: `M${x(0)} 0V20`, ...still }),
      ...(row.low == null ? [] : [draw("path", { class: "interval", d: `M${x(row.low)} 10H${x(row.high)}M${x(row.low)} 5v10M${x(row.high)} 5v10`, ...still })])))));
}
function result({ reports, confidence, estimates }, task) {
  if (!estimates.length) return [make("h2", {}, "Result"), paragraph("There are not enough reports for a result.")];
  const groups = Map.groupBy ? Map.groupBy(estimates, (row) => row.question ?? task.document.question)
    : estimates.reduce((all, row) => all.set(row.question ?? task.document.question, [...(all.get(row.question ?? task.document.question) ?? []), row]), new Map());
  const parts = [make("h2", {}, "Result")];
  for (const [question, rows] of groups) {
    if (groups.size > 1) parts.push(make("h3", {}, question));
    const of = (row) => row.mean !== undefined ? { name: "mean", value: row.mean.toFixed(2), low: row.low.toFixed(2), high: row.high.toFixed(2) }
      : { name: row.value ?? `period ${row.period}`, value: percent(row.share), low: row.low == null ? "?" : percent(row.low), high: row.high == null ? "?" : percent(row.high) };
    if (rows[0].share !== undefined) parts.push(chart(rows.slice(0, 40).map((row) => ({ value: `period ${row.period}`, ...row })), `Estimated shares: ${rows.slice(0, 40).map((row) => `${of(row).name} ${of(row).value}`).join(", ")}`));
    parts.push(make("table", {},
      make("thead", {}, make("tr", {}, ...["answer", "estimate", "from", "to"].map((name, i) => make("th", { scope: "col", className: i ? "number" : "" }, name)))),
      make("tbody", {}, ...rows.map(of).map((row) => make("tr", {}, make("th", { scope: "row" }, row.name), ...[row.value, row.low, row.high].map((text) => make("td", { className: "number" }, text)))))));
  }
  parts.push(paragraph(`From ${reports.toLocaleString("en")} noisy reports. Each interval holds with ${percent(confidence, 0)}, if those who answered are a random sample; shares below 0 are noise.`, "quiet"));
  return parts;
}

// The page, step by step.

const STORAGE = "What this device has revealed is counted in this browser's storage. Clearing the storage, a private window or another browser begins anew: what was said stays said, and answers that are kept noisy are drawn again, which reveals more.";

async function main() {
  const text = await (await fetch(address("task"), { cache: "no-store" })).text();
  let task;
  try {
    task = readTask(text);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    page.replaceChildren(make("h1", {}, "This question is refused"), make("section", { role: "alert" },
      paragraph("Your device checked what this page promises, and it is not true. Nothing was asked, and nothing was sent.", "warning"), paragraph(error.message)));
    return;
  }
  const { document: asked } = task;
  document.title = asked.question;
  let agreed = false; // whether the respondent let what waits leave, while this page is open
  const device = await openDevice(), url = address("reports"), status = await (await fetch(address("status"))).json();
  const cost = make("section"), action = make("div"), news = make("p", { role: "status" });
  const waiting = async () => (await device.waiting()).filter((one) => one.url == url);

  async function showCost() {
    const now = await device.revealed(), chance = await device.revealedDelta(), { limit } = await device.document(), next = await device.revealed({ task });
    const said = (epsilon) => (epsilon === null ? "without any bound" : `ε = ${epsilon}`) + (chance === "0" ? "" : ` and δ = ${Number(chance)}`); // δ of secure sums: reports have none
    const field = make("input", { id: "limit", type: "text", inputMode: "decimal", value: limit ?? "", autocomplete: "off" });
    const wrong = make("p", { role: "alert", className: "warning" });
    cost.replaceChildren(make("h2", {}, "What it costs"),
      paragraph(`This device has revealed ${now === "0" && chance === "0" ? "nothing" : said(now)} so far, on all questions of this site together. With one more report here it is ${said(next)}${limit === null ? "" : `, of ${limit} that you allow`}.`),
      paragraph("A smaller ε tells less. Below 1 is little; above 5, a report says your answer nearly outright.", "quiet"),
      make("details", {}, make("summary", {}, "Set a limit"), make("form", { onsubmit: async (event) => {
        event.preventDefault();
        try { await device.setLimit(field.value.trim() || null); await showCost() } catch (error) { wrong.textContent = error.message }
      } }, make("fieldset", {}, make("legend", {}, make("label", { htmlFor: "limit" }, "The most that this device may reveal (ε); empty for no limit")), field), wrong, make("button", { className: "second" }, "Keep this limit"))),
      make("details", {}, make("summary", {}, "Where this is counted"), paragraph(STORAGE)));
  }

  async function send(button) {
    agreed = true;
    if (button) button.disabled = true;
    const results = await device.send(url);
    if (results.some(({ status }) => status >= 400 && status < 500 && status != 408 && status != 429)) {
      news.textContent = "The collector did not take it: " + (JSON.parse(results.at(-1).text || "{}").detail ?? "it gave no reason") + " It is not sent again.";
    } else if ((await waiting()).length) {
      news.textContent = "There is no connection to the collector. Your report stays on this device and is sent when there is one: keep this page open, or come back to it.";
      if (button) button.disabled = false;
      return;
    } else {
      news.textContent = "Sent, and kept by the collector. Thank you.";
    }
    action.replaceChildren(make("section", {}, news));
  }
  addEventListener("online", () => { if (agreed) send() });

  function showReport(line, again = false) {
    const button = make("button", { id: "send", onclick: () => send(button) }, "Send this");
    const heading = make("h2", { tabIndex: -1 }, again ? "This was drawn and not sent yet" : "Here is what leaves");
    action.replaceChildren(make("section", {}, heading,
      paragraph(again ? "Your device made this noisy report before, and has counted it." : "The dice are thrown. Nothing was sent yet; your true answer stays here, and this page has forgotten it."),
      ...shown(task, line),
      paragraph("It is counted as revealed even if you do not send it. There is no second throw: whoever picks among several reveals more.", "quiet"), button, news));
    heading.focus();
  }

  function ask() {
    const each = asked.attributes ? asked.attributes.map((one) => field(one.question, task, one)) : [field(asked.question, task, asked)];
    const wrong = make("p", { role: "alert", className: "warning" });
    const button = make("button", { id: "toss" }, "Throw the dice");
    action.replaceChildren(make("form", { noValidate: true, onsubmit: async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      const answers = each.map(({ answer }) => answer());
      if (answers.includes(undefined)) { wrong.textContent = "Please answer first."; return }
      const answer = asked.attributes ? Object.fromEntries(asked.attributes.map(({ question }, i) => [question, answers[i]])) : answers[0];
      button.disabled = true;
      try {
        const line = await device.answer(task, answer, url);
        if (line) showReport(line);
        else action.replaceChildren(make("section", {}, paragraph("Kept on this device. Nothing is due today: what is sent later does not show this day's answer by itself.")));
      } catch (error) {
        wrong.textContent = error.message;
        button.disabled = false;
      }
      await showCost();
    } }, ...each.map(({ element }) => element), wrong, button));
  }

  const isOpen = !status.closed && new Date().toISOString().slice(0, 10) >= asked.opens;
  const intro = !asked.attributes ? null : paragraph(task.mechanism == "one-attribute" ? "One of these questions is drawn at random, and only that answer is made noisy and sent."
    : "Each of your answers is made noisy with dice of its own, and all are sent together, so that tables of two questions can be made. ε counts all of them together.");
  page.replaceChildren(...[make("h1", {}, asked.question), isOpen ? paragraph("Nobody gets your true answer: your device adds noise to it before anything leaves.") : null, isOpen ? intro : null,
    action, isOpen ? make("section", {}, make("h2", {}, "What can be learned about you"), ...explained(task)) : null, isOpen ? cost : null,
    make("p", { className: "quiet" }, `Open from ${asked.opens} to ${asked.closes}. Hidden: ${asked.unit}. Reports are kept until ${asked.retention_days} days after the end. Task ${task.id}.`)].filter(Boolean));
  if (status.closed) {
    const response = await fetch(address("estimate"));
    action.replaceChildren(make("section", {}, paragraph("This question is closed." + (status.deleted ? ` Its reports were deleted on ${status.deleted}; this is what they added up to.` : "")),
      ...(response.ok ? result(await response.json(), task) : [paragraph((await response.json()).detail)])));
  } else if (!isOpen) {
    action.replaceChildren(make("section", {}, paragraph(`This question opens on ${asked.opens}.`)));
  } else {
    await showCost();
    const [held] = await waiting();
    if (held) showReport(held.line, true);
    else ask();
  }
}

main().catch((error) => {
  page.replaceChildren(make("h1", {}, "This page cannot be used now"), make("section", { role: "alert" }, paragraph(`${error instanceof Refused ? error.message : "The collector or this browser's storage cannot be reached. Nothing was sent."}`, "warning")));
}).finally(() => page.removeAttribute("aria-busy"));
