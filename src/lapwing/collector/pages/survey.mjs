// The page for respondents: asks, shows what would leave before it does, counts what it costs, and sends it.
// It trusts neither the task nor whoever serves it: lapwing-local.mjs refuses a task that lies, and draws the report.

import { openDevice, readTask, revealed, Refused } from "./lapwing-local.mjs";

const page = document.getElementById("page");
const address = (name) => new URL(name, location.href).href;

// Numbers and dates as the reader's language writes them. Reports and the task keep their own form.

const LANGUAGES = [document.documentElement.dataset.language, ...navigator.languages].filter(Boolean);
const number = (value, places) => new Intl.NumberFormat(LANGUAGES, { minimumFractionDigits: places, maximumFractionDigits: places }).format(value);
const percent = (share, places = 1) => new Intl.NumberFormat(LANGUAGES, { style: "percent", minimumFractionDigits: places, maximumFractionDigits: places }).format(share);
const typed = (text) => new Intl.NumberFormat(LANGUAGES, { useGrouping: false, numberingSystem: "latn", maximumFractionDigits: 20 }).format(text); // as the field takes it
const localized = (text) => /^\d+(\.\d+)?$/.test(text) ? number(Number(text), (String(text).split(".")[1] ?? "").length) : text;
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
// Texts in the reader's language, from the catalogue that the collector put into the page; English where it has none.
// They become text nodes and attributes, never markup.
const TEXTS = JSON.parse(document.getElementById("texts")?.textContent || "{}");
const say = (text, values = {}) => (TEXTS[text] ?? text).replace(/\{(\w+)\}/g, (place, name) => name in values ? values[name] : place);
// Units that Lapwing proposes are known in other languages. Others are as the organiser wrote them.
const UNITS = [say("one answer of one person"), say("all answers of one person"), say("one answer of one person, which never changes")];
const unitOf = (unit) => UNITS.includes(say(unit)) ? say(unit) : unit;
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
    input = make("select", { id: name, required: true }, make("option", { value: "" }, say("Please choose")), ...values.map((value) => make("option", { value }, value)));
  } else if (document_.number) {
    const { lower, upper } = document_.number;
    hint = say("A number from {lower} to {upper}. Other numbers count as the nearer limit.", { lower: typed(lower), upper: typed(upper) });
    input = make("input", { id: name, type: "text", inputMode: "decimal", autocomplete: "off", required: true, "aria-describedby": `${name}-hint` });
  } else {
    hint = say("A text of at most {count} bytes.", { count: number(document_.text.most_bytes, 0) });
    input = make("input", { id: name, type: "text", autocomplete: "off", required: true, "aria-describedby": `${name}-hint` });
  }
  const element = make("fieldset", {}, make("legend", {}, make("label", { htmlFor: name }, question)), input, hint ? make("p", { className: "quiet", id: `${name}-hint` }, hint) : null);
  return { element, answer: () => document_.number ? decimal(input.value.trim()) : input.value.trim() || undefined };
}

// A decimal comma is a point. One that may divide thousands is no answer: the two numbers differ a thousandfold.

function decimal(text) {
  if (/^-?[1-9][0-9]{0,2},[0-9]{3}$/.test(text)) {
    throw new Error(say("{text} can mean two numbers. Write {whole}, or {decimal} with a decimal point.",
      { text, whole: text.replace(",", ""), decimal: text.replace(",", ".") }));
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
function guessed(task) { // first, in words that can be read aloud: `sure` bounds how often a guess is right, too
  const count = Math.ceil(task.sure);
  return count > 99 ? say("Someone may guess which of two answers you gave. With your report, the guess may be right nearly always. This question hardly protects you.")
    : say("Someone may guess which of two answers you gave, if both seem equally likely. Without your report, the guess is right 50 times out of 100. With your report, it is right at most {count} times out of 100.", { count });
}
function explained(task) {
  const values = task.document.values, table = chances(task), parts = [paragraph(guessed(task))];
  if (table) {
    parts.push(paragraph(say("Your device draws random noise before it sends anything. It sends this instead of your answer:")));
    parts.push(make("ul", {}, ...table.map((row, x) => make("li", {}, say("If your answer is “{answer}”: {chances}.", { answer: values[x],
      chances: row.map((chance, y) => say("“{sent}” is sent in {chance} of cases", { sent: values[y], chance: percent(chance) })).join(say(", ")) })))));
    if (values.length == 2) parts.push(paragraph(say("So of 100 people who would answer “{answer}”, about {count} still send “{sent}”. Someone who sees that you sent “{sent}” cannot tell whether you are one of them.",
      { answer: values[0], sent: values[1], count: Math.round(100 * table[0][1]) })));
  } else {
    parts.push(paragraph(say("Your device draws random noise before it sends anything. It sends a noisy form of your answer. Any answer could have led to this form.")));
  }
  parts.push(paragraph(say("Someone who thought two answers equally likely can become at most {percent} sure of one. This is true for anyone, with any other knowledge. It is the meaning of ε = {epsilon}.",
    { percent: percent(task.sure / 100), epsilon: localized(task.document.epsilon) })));
  if (task.parameters.cohorts && task.remembers) parts.push(paragraph(say("Every report names the group of this device. The group never changes."), "quiet"));
  parts.push(paragraph(say("The reports of many people together show the shares of the answers. Nobody can learn more about one person than stated here.")));
  return parts;
}

// What leaves, in words and as it is.

function shown(task, line) {
  const { r } = JSON.parse(line), values = task.document.values;
  const word = task.mechanism == "binary" || task.mechanism == "k-ary" || task.mechanism == "memoised" ? values[r]
    : task.mechanism == "subset" ? say("one of: {answers}", { answers: r.map((x) => values[x]).join(say(", ")) }) : null;
  return [
    word === null ? paragraph(say("Your device sends this:")) : make("p", { className: "leaves" }, `“${word}”`),
    make("details", { open: word === null }, make("summary", {}, say("Exact report")), make("pre", {}, line),
      paragraph(say("The number after “id” is random. With this number, a report that arrives twice counts once. The collector stores no address and no time with the report."), "quiet")),
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
    make("p", {}, row.seen === false ? say("{answer}: {share} (may be 0)", { answer: row.value, share: percent(row.share) }) : `${row.value}: ${percent(row.share)}`),
    draw("svg", { viewBox: "-4 0 1008 20", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("rect", { class: "bar", x: Math.min(x(0), x(row.share)), y: 2, width: Math.max(1, Math.abs(x(row.share) - x(0))), height: 16, opacity: row.seen === false ? 0.4 : 1 }),
      draw("path", { class: "axis", d: `M${x(0)} 0V20`, ...still }),
      ...(row.low == null ? [] : [draw("path", { class: "interval", d: `M${x(row.low)} 10H${x(row.high)}M${x(row.low)} 5v10M${x(row.high)} 5v10`, ...still })])))));
}
function result({ reports, confidence, estimates }, task) {
  if (!estimates.length) return [make("h2", {}, say("Result")), paragraph(say("There are too few reports for a result."))];
  const groups = Map.groupBy ? Map.groupBy(estimates, (row) => row.question ?? task.document.question)
    : estimates.reduce((all, row) => all.set(row.question ?? task.document.question, [...(all.get(row.question ?? task.document.question) ?? []), row]), new Map());
  const parts = [make("h2", {}, say("Result"))], period = (row) => say("period {number}", { number: row.period });
  for (const [question, rows] of groups) {
    if (groups.size > 1) parts.push(make("h3", {}, question));
    const of = (row) => row.mean !== undefined ? { name: say("mean"), value: number(row.mean, 2), low: number(row.low, 2), high: number(row.high, 2) }
      : { name: row.value ?? period(row), value: percent(row.share), low: row.low == null ? "?" : percent(row.low), high: row.high == null ? "?" : percent(row.high) };
    if (rows[0].share !== undefined) parts.push(chart(rows.slice(0, 40).map((row) => ({ value: period(row), ...row })),
      say("Estimated shares: {shares}", { shares: rows.slice(0, 40).map((row) => `${of(row).name} ${of(row).value}`).join(say(", ")) })));
    parts.push(make("table", {},
      make("thead", {}, make("tr", {}, ...[say("answer"), say("estimate"), say("from"), say("to")].map((name, i) => make("th", { scope: "col", className: i ? "number" : "" }, name)))),
      make("tbody", {}, ...rows.map(of).map((row) => make("tr", {}, make("th", { scope: "row" }, row.name), ...[row.value, row.low, row.high].map((text) => make("td", { className: "number" }, text)))))));
  }
  parts.push(paragraph(say("From {count} noisy reports. Each interval holds with {confidence} confidence if the respondents are a random sample. Shares below 0 are noise.",
    { count: number(reports, 0), confidence: percent(confidence, 0) }), "quiet"));
  return parts;
}

// The page, step by step.

const STORAGE = say("This browser stores the count of ε that this device has revealed. A cleared storage, a private window or another browser starts a new count. Your old reports remain, and your device then draws new noise, which reveals more.");

async function main() {
  const text = await (await fetch(address("task"), { cache: "no-store" })).text();
  let task;
  try {
    task = readTask(text);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    page.replaceChildren(make("h1", {}, say("Your device refused this question")), make("section", { role: "alert" },
      paragraph(say("Your device checked the promise of this page, and the promise is false. Nothing was sent."), "warning"), paragraph(error.message)));
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
    const alone = (epsilon) => epsilon === null ? say("an unlimited ε") : `ε = ${localized(epsilon)}`;
    const said = (epsilon) => chance === "0" ? alone(epsilon) : say("{epsilon} and δ = {delta}", { epsilon: alone(epsilon), delta: Number(chance) }); // δ of secure sums: reports have none
    const field = make("input", { id: "limit", type: "text", inputMode: "decimal", value: limit ?? "", autocomplete: "off" });
    const wrong = make("p", { role: "alert", className: "warning" });
    cost.replaceChildren(make("h2", {}, say("Privacy cost")),
      paragraph([
        now === "0" && chance === "0" ? say("This device has revealed nothing so far on all questions of this site.")
          : say("This device has revealed {epsilon} so far on all questions of this site.", { epsilon: said(now) }),
        say("With one more report here, the total is {epsilon}.", { epsilon: said(next) }),
        ...(limit === null ? [] : [say("Your limit is {limit}.", { limit })])].join(" ")),
      paragraph(say("A smaller ε reveals less. Below 1, a report reveals little. Above 5, a report almost reveals your answer."), "quiet"),
      make("details", {}, make("summary", {}, say("Set a limit")), make("form", { onsubmit: async (event) => {
        event.preventDefault();
        try { await device.setLimit(field.value.trim() || null); await showCost() } catch (error) { wrong.textContent = error.message }
      } }, make("fieldset", {}, make("legend", {}, make("label", { htmlFor: "limit" }, say("Maximum ε for this device (empty: no limit)"))), field), wrong, make("button", { className: "second" }, say("Save limit")))),
      make("details", {}, make("summary", {}, say("Storage of the count")), paragraph(STORAGE)));
  }

  async function send(button) {
    agreed = true;
    if (button) button.disabled = true;
    const results = await device.send(url);
    if (results.some(({ status }) => status >= 400 && status < 500 && status != 408 && status != 429)) {
      news.textContent = say("The collector rejected your report: {reason} This page will not send the report again.",
        { reason: JSON.parse(results.at(-1).text || "{}").detail ?? say("no reason given.") });
    } else if ((await waiting()).length) {
      news.textContent = say("There is no connection to the collector. Your report stays on this device. This page sends it later: keep the page open, or come back.");
      if (button) button.disabled = false;
      return;
    } else {
      news.textContent = say("Sent and stored by the collector. Thank you.");
    }
    action.replaceChildren(make("section", {}, news));
  }
  addEventListener("online", () => { if (agreed) send() });

  function showReport(line, again = false) {
    const button = make("button", { id: "send", onclick: () => send(button) }, say("Send report"));
    const heading = make("h2", { tabIndex: -1 }, again ? say("Report not sent yet") : say("Your noisy report"));
    action.replaceChildren(make("section", {}, heading,
      paragraph(again ? say("Your device made this noisy report before and counted its ε.")
        : say("Your device drew the noise. Nothing was sent yet. Your true answer stays on this device, and this page has forgotten it.")),
      ...shown(task, line),
      paragraph(say("This report counts as revealed even if you do not send it. You cannot draw again, because a choice among reports would reveal more."), "quiet"), button, news));
    heading.focus();
  }

  function ask() {
    const each = asked.attributes ? asked.attributes.map((one) => field(one.question, task, one)) : [field(asked.question, task, asked)];
    const wrong = make("p", { role: "alert", className: "warning" });
    const button = make("button", { id: "toss" }, say("Add noise"));
    action.replaceChildren(make("form", { noValidate: true, onsubmit: async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      let answers;
      try { answers = each.map(({ answer }) => answer()) } catch (error) { wrong.textContent = error.message; return }
      if (answers.includes(undefined)) { wrong.textContent = say("Please answer first."); return }
      const answer = asked.attributes ? Object.fromEntries(asked.attributes.map(({ question }, i) => [question, answers[i]])) : answers[0];
      button.disabled = true;
      try {
        const line = await device.answer(task, answer, url);
        if (line) showReport(line);
        else action.replaceChildren(make("section", {}, paragraph(say("Stored on this device. No report is due today. A later report does not show today's answer by itself."))));
      } catch (error) {
        wrong.textContent = error.message;
        button.disabled = false;
      }
      await showCost();
    } }, ...each.map(({ element }) => element), wrong, button));
  }

  const isOpen = !status.closed && new Date().toISOString().slice(0, 10) >= asked.opens;
  const intro = !asked.attributes ? null : paragraph(task.mechanism == "one-attribute" ? say("Your device picks one of these questions at random. It adds noise to that answer and sends only that one.")
    : say("Your device adds separate noise to each answer and sends all of them together. The collector can then make tables of two questions. ε covers all your answers together."));
  page.replaceChildren(...[make("h1", {}, asked.question), isOpen ? paragraph(say("Nobody gets your true answer. Your device adds noise before it sends anything.")) : null, isOpen ? intro : null,
    action, isOpen ? make("section", {}, make("h2", {}, say("Privacy")), ...explained(task)) : null, isOpen ? cost : null,
    make("p", { className: "quiet" }, say("Open from {opens} to {closes}. Protected: {unit}. The collector deletes reports {days} days after the end. Task {task}.",
      { opens: date(asked.opens), closes: date(asked.closes), unit: unitOf(asked.unit), days: number(asked.retention_days, 0), task: task.id }))].filter(Boolean));
  if (status.closed) {
    const response = await fetch(address("estimate"));
    action.replaceChildren(make("section", {}, paragraph(status.deleted ? say("This question is closed. The collector deleted its reports on {day}. Their total follows.", { day: date(status.deleted) })
      : say("This question is closed.")),
      ...(response.ok ? result(await response.json(), task) : [paragraph((await response.json()).detail)])));
  } else if (!isOpen) {
    action.replaceChildren(make("section", {}, paragraph(say("This question opens on {day}.", { day: date(asked.opens) }))));
  } else {
    await showCost();
    const [held] = await waiting();
    if (held) showReport(held.line, true);
    else ask();
  }
}

main().catch((error) => {
  page.replaceChildren(make("h1", {}, say("This page does not work at the moment")), make("section", { role: "alert" }, paragraph(error instanceof Refused ? error.message : say("This page cannot reach the collector or the storage of this browser. Nothing was sent."), "warning")));
}).finally(() => page.removeAttribute("aria-busy"));
