// The page for respondents: asks, shows what would leave before it does, counts what it costs, and sends it.
// It trusts neither the task nor whoever serves it: lapwing-local.mjs refuses a task that lies, and draws the report.

import { openDevice, readTask, revealed, Refused } from "./lapwing-local.mjs";

const page = document.getElementById("page");
const address = (name) => new URL(name, location.href).href;

// Numbers and dates as the reader's language writes them. Reports and the task keep their own form.

const LANGUAGES = [document.documentElement.dataset.language, ...navigator.languages].filter(Boolean);
const number = (value, places) => new Intl.NumberFormat(LANGUAGES, { minimumFractionDigits: places, maximumFractionDigits: places }).format(value);
const percent = (share, places = 1) => new Intl.NumberFormat(LANGUAGES, { style: "percent", minimumFractionDigits: places, maximumFractionDigits: places }).format(share);
const date = (day) => new Intl.DateTimeFormat(LANGUAGES, { dateStyle: "long", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));

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
    hint = `A number from ${lower} to ${upper}. Other numbers count as the nearer limit.`;
    input = make("input", { id: name, type: "text", inputMode: "decimal", autocomplete: "off", required: true, "aria-describedby": `${name}-hint` });
  } else {
    hint = `A text of at most ${document_.text.most_bytes} bytes.`;
    input = make("input", { id: name, type: "text", autocomplete: "off", required: true, "aria-describedby": `${name}-hint` });
  }
  const element = make("fieldset", {}, make("legend", {}, make("label", { htmlFor: name }, question)), input, hint ? make("p", { className: "quiet", id: `${name}-hint` }, hint) : null);
  return { element, answer: () => document_.number ? decimal(input.value.trim()) : input.value.trim() || undefined };
}

// A decimal comma is a point. One that may divide thousands is no answer: the two numbers differ a thousandfold.

function decimal(text) {
  if (/^-?[1-9][0-9]{0,2},[0-9]{3}$/.test(text)) {
    throw new Error(`${text} can mean two numbers. Write ${text.replace(",", "")}, or ${text.replace(",", ".")} with a decimal point.`);
  }
  return text.replace(/^(-?[0-9]+),([0-9]+)$/, "$1.$2") || undefined;
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
    parts.push(paragraph("Your device draws random noise before it sends anything. It sends this instead of your answer:"));
    parts.push(make("ul", {}, ...table.map((row, x) => make("li", {}, `If your answer is “${values[x]}”: `,
      row.map((chance, y) => `“${values[y]}” is sent with ${percent(chance)}`).join(", ") + "."))));
    if (values.length == 2) parts.push(paragraph(`So of 100 people who would answer “${values[0]}”, about ${Math.round(100 * table[0][1])} still send “${values[1]}”. Someone who sees that you sent “${values[1]}” cannot tell whether you are one of them.`));
  } else {
    parts.push(paragraph("Your device draws random noise before it sends anything. It sends a noisy form of your answer. Any answer could have led to this form."));
  }
  parts.push(paragraph(`Someone who thought two answers equally likely can become at most ${task.sure} % sure of one. This is true for anyone, with any other knowledge. It is the meaning of ε = ${task.document.epsilon}.`));
  if (task.parameters.cohorts && task.remembers) parts.push(paragraph("Every report names the group of this device. The group never changes.", "quiet"));
  parts.push(paragraph("The reports of many people together show the shares of the answers. Nobody can learn more about one person than stated here."));
  return parts;
}

// What leaves, in words and as it is.

function shown(task, line) {
  const { r } = JSON.parse(line), values = task.document.values;
  const word = task.mechanism == "binary" || task.mechanism == "k-ary" || task.mechanism == "memoised" ? values[r]
    : task.mechanism == "subset" ? `one of: ${r.map((x) => values[x]).join(", ")}` : null;
  return [
    word === null ? paragraph("Your device sends this:") : make("p", { className: "leaves" }, `“${word}”`),
    make("details", { open: word === null }, make("summary", {}, "Exact report"), make("pre", {}, line),
      paragraph("The number after “id” is random. With this number, a report that arrives twice counts once. The collector stores no address and no time with the report.", "quiet")),
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
    make("p", {}, `${row.value}: ${percent(row.share)}${row.seen === false ? " (may be 0)" : ""}`),
    draw("svg", { viewBox: "-4 0 1008 20", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("rect", { class: "bar", x: Math.min(x(0), x(row.share)), y: 2, width: Math.max(1, Math.abs(x(row.share) - x(0))), height: 16, opacity: row.seen === false ? 0.4 : 1 }),
      draw("path", { class: "axis", d: `M${x(0)} 0V20`, ...still }),
      ...(row.low == null ? [] : [draw("path", { class: "interval", d: `M${x(row.low)} 10H${x(row.high)}M${x(row.low)} 5v10M${x(row.high)} 5v10`, ...still })])))));
}
function result({ reports, confidence, estimates }, task) {
  if (!estimates.length) return [make("h2", {}, "Result"), paragraph("There are too few reports for a result.")];
  const groups = Map.groupBy ? Map.groupBy(estimates, (row) => row.question ?? task.document.question)
    : estimates.reduce((all, row) => all.set(row.question ?? task.document.question, [...(all.get(row.question ?? task.document.question) ?? []), row]), new Map());
  const parts = [make("h2", {}, "Result")];
  for (const [question, rows] of groups) {
    if (groups.size > 1) parts.push(make("h3", {}, question));
    const of = (row) => row.mean !== undefined ? { name: "mean", value: number(row.mean, 2), low: number(row.low, 2), high: number(row.high, 2) }
      : { name: row.value ?? `period ${row.period}`, value: percent(row.share), low: row.low == null ? "?" : percent(row.low), high: row.high == null ? "?" : percent(row.high) };
    if (rows[0].share !== undefined) parts.push(chart(rows.slice(0, 40).map((row) => ({ value: `period ${row.period}`, ...row })), `Estimated shares: ${rows.slice(0, 40).map((row) => `${of(row).name} ${of(row).value}`).join(", ")}`));
    parts.push(make("table", {},
      make("thead", {}, make("tr", {}, ...["answer", "estimate", "from", "to"].map((name, i) => make("th", { scope: "col", className: i ? "number" : "" }, name)))),
      make("tbody", {}, ...rows.map(of).map((row) => make("tr", {}, make("th", { scope: "row" }, row.name), ...[row.value, row.low, row.high].map((text) => make("td", { className: "number" }, text)))))));
  }
  parts.push(paragraph(`From ${number(reports, 0)} noisy reports. Each interval holds with ${percent(confidence, 0)} confidence if the respondents are a random sample. Shares below 0 are noise.`, "quiet"));
  return parts;
}

// The page, step by step.

const STORAGE = "This browser stores the count of ε that this device has revealed. A cleared storage, a private window or another browser starts a new count. Your old reports remain, and your device then draws new noise, which reveals more.";

async function main() {
  const text = await (await fetch(address("task"), { cache: "no-store" })).text();
  let task;
  try {
    task = readTask(text);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    page.replaceChildren(make("h1", {}, "Your device refused this question"), make("section", { role: "alert" },
      paragraph("Your device checked the promise of this page, and the promise is false. Nothing was sent.", "warning"), paragraph(error.message)));
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
    const said = (epsilon) => (epsilon === null ? "an unlimited ε" : `ε = ${epsilon}`) + (chance === "0" ? "" : ` and δ = ${Number(chance)}`); // δ of secure sums: reports have none
    const field = make("input", { id: "limit", type: "text", inputMode: "decimal", value: limit ?? "", autocomplete: "off" });
    const wrong = make("p", { role: "alert", className: "warning" });
    cost.replaceChildren(make("h2", {}, "Privacy cost"),
      paragraph(`This device has revealed ${now === "0" && chance === "0" ? "nothing" : said(now)} so far on all questions of this site. With one more report here, the total is ${said(next)}.${limit === null ? "" : ` Your limit is ${limit}.`}`),
      paragraph("A smaller ε reveals less. Below 1, a report reveals little. Above 5, a report almost reveals your answer.", "quiet"),
      make("details", {}, make("summary", {}, "Set a limit"), make("form", { onsubmit: async (event) => {
        event.preventDefault();
        try { await device.setLimit(field.value.trim() || null); await showCost() } catch (error) { wrong.textContent = error.message }
      } }, make("fieldset", {}, make("legend", {}, make("label", { htmlFor: "limit" }, "Maximum ε for this device (empty: no limit)")), field), wrong, make("button", { className: "second" }, "Save limit"))),
      make("details", {}, make("summary", {}, "Storage of the count"), paragraph(STORAGE)));
  }

  async function send(button) {
    agreed = true;
    if (button) button.disabled = true;
    const results = await device.send(url);
    if (results.some(({ status }) => status >= 400 && status < 500 && status != 408 && status != 429)) {
      news.textContent = "The collector rejected your report: " + (JSON.parse(results.at(-1).text || "{}").detail ?? "no reason given.") + " This page will not send the report again.";
    } else if ((await waiting()).length) {
      news.textContent = "There is no connection to the collector. Your report stays on this device. This page sends it later: keep the page open, or come back.";
      if (button) button.disabled = false;
      return;
    } else {
      news.textContent = "Sent and stored by the collector. Thank you.";
    }
    action.replaceChildren(make("section", {}, news));
  }
  addEventListener("online", () => { if (agreed) send() });

  function showReport(line, again = false) {
    const button = make("button", { id: "send", onclick: () => send(button) }, "Send report");
    const heading = make("h2", { tabIndex: -1 }, again ? "Report not sent yet" : "Your noisy report");
    action.replaceChildren(make("section", {}, heading,
      paragraph(again ? "Your device made this noisy report before and counted its ε." : "Your device drew the noise. Nothing was sent yet. Your true answer stays on this device, and this page has forgotten it."),
      ...shown(task, line),
      paragraph("This report counts as revealed even if you do not send it. You cannot draw again, because a choice among reports would reveal more.", "quiet"), button, news));
    heading.focus();
  }

  function ask() {
    const each = asked.attributes ? asked.attributes.map((one) => field(one.question, task, one)) : [field(asked.question, task, asked)];
    const wrong = make("p", { role: "alert", className: "warning" });
    const button = make("button", { id: "toss" }, "Add noise");
    action.replaceChildren(make("form", { noValidate: true, onsubmit: async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      let answers;
      try { answers = each.map(({ answer }) => answer()) } catch (error) { wrong.textContent = error.message; return }
      if (answers.includes(undefined)) { wrong.textContent = "Please answer first."; return }
      const answer = asked.attributes ? Object.fromEntries(asked.attributes.map(({ question }, i) => [question, answers[i]])) : answers[0];
      button.disabled = true;
      try {
        const line = await device.answer(task, answer, url);
        if (line) showReport(line);
        else action.replaceChildren(make("section", {}, paragraph("Stored on this device. No report is due today. A later report does not show today's answer by itself.")));
      } catch (error) {
        wrong.textContent = error.message;
        button.disabled = false;
      }
      await showCost();
    } }, ...each.map(({ element }) => element), wrong, button));
  }

  const isOpen = !status.closed && new Date().toISOString().slice(0, 10) >= asked.opens;
  const intro = !asked.attributes ? null : paragraph(task.mechanism == "one-attribute" ? "Your device picks one of these questions at random. It adds noise to that answer and sends only that one."
    : "Your device adds separate noise to each answer and sends all of them together. The collector can then make tables of two questions. ε covers all your answers together.");
  page.replaceChildren(...[make("h1", {}, asked.question), isOpen ? paragraph("Nobody gets your true answer. Your device adds noise before it sends anything.") : null, isOpen ? intro : null,
    action, isOpen ? make("section", {}, make("h2", {}, "Privacy"), ...explained(task)) : null, isOpen ? cost : null,
    make("p", { className: "quiet" }, `Open from ${date(asked.opens)} to ${date(asked.closes)}. Protected: ${asked.unit}. The collector deletes reports ${asked.retention_days} days after the end. Task ${task.id}.`)].filter(Boolean));
  if (status.closed) {
    const response = await fetch(address("estimate"));
    action.replaceChildren(make("section", {}, paragraph("This question is closed." + (status.deleted ? ` The collector deleted its reports on ${date(status.deleted)}. Their total follows.` : "")),
      ...(response.ok ? result(await response.json(), task) : [paragraph((await response.json()).detail)])));
  } else if (!isOpen) {
    action.replaceChildren(make("section", {}, paragraph(`This question opens on ${date(asked.opens)}.`)));
  } else {
    await showCost();
    const [held] = await waiting();
    if (held) showReport(held.line, true);
    else ask();
  }
}

main().catch((error) => {
  page.replaceChildren(make("h1", {}, "This page does not work at the moment"), make("section", { role: "alert" }, paragraph(`${error instanceof Refused ? error.message : "This page cannot reach the collector or the storage of this browser. Nothing was sent."}`, "warning")));
}).finally(() => page.removeAttribute("aria-busy"));
