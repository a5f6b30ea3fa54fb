// The page for people who answer a secure task: it asks, says who would have to collude to see the answer, and sends.

import { MOST_DELTA, openDevice, readTask, Refused } from "./lapwing-secure.mjs";

const page = document.getElementById("page"), url = new URL("answers", location.href).href;
function make(name, properties = {}, ...children) { // without markup: what a task says is text, whatever is in it
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}
const paragraph = (text, className = "") => make("p", { className }, text);

function field({ question, values, number, vector }) {
  if (values && values.length <= 12) {
    const element = make("fieldset", {}, make("legend", {}, question), ...values.map((value) => make("label", { className: "choice" },
      make("input", { type: "radio", name: "answer", value, required: true }), make("span", {}, value))));
    return { element, answer: () => element.querySelector("input:checked")?.value };
  }
  const hint = number ? `A number from ${number.lower} to ${number.upper}; what is beyond counts as the nearer of these.`
    : vector ? `Numbers from 0 to ${vector.upper}, between commas: ${vector.names.join(", ")}.` : "Please choose.";
  const input = values ? make("select", { id: "answer", required: true }, make("option", { value: "" }, "Please choose"), ...values.map((value) => make("option", { value }, value)))
    : make("input", { id: "answer", type: "text", autocomplete: "off", required: true, "aria-describedby": "hint" });
  const element = make("fieldset", {}, make("legend", {}, make("label", { htmlFor: "answer" }, question)), input, make("p", { className: "quiet", id: "hint" }, hint));
  return { element, answer: () => input.value.trim() || undefined };
}
const value = (text) => text.split("/").map(Number).reduce((n, d) => n / d); // of an exact text, such as 1/3
const listed = (names) => names.length == 2 ? names.join(" and ") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

async function main() {
  let task;
  try {
    task = await readTask(await (await fetch("task", { cache: "no-store" })).text());
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    page.replaceChildren(make("h1", {}, "This question is refused"), make("section", { role: "alert" }, paragraph("Your device checked what this page promises, and it is not true, or cannot be checked here.", "warning"), paragraph(error.message)));
    return;
  }
  const { document: asked } = task, device = await openDevice(), names = task.servers.map(({ name }) => name);
  document.title = asked.question;
  const action = make("div"), news = make("p", { role: "status" }), cost = make("section");

  async function showCost() {
    const spent = await device.revealed(), chance = await device.revealedDelta(), limits = await device.limits(), wrong = make("p", { role: "alert", className: "warning" });
    const input = (id, value) => make("input", { id, type: "text", inputMode: "decimal", autocomplete: "off", value: value ?? "" }), limit = input("limit", limits.epsilon), deltaLimit = input("delta-limit", limits.delta);
    const labelled = (control, text) => make("fieldset", {}, make("legend", {}, make("label", { htmlFor: control.id }, text)), control);
    const allowed = [limits.epsilon === null ? null : `ε = ${limits.epsilon}`, limits.delta === null ? null : `δ = ${Number(limits.delta)}`].filter((text) => text);
    cost.replaceChildren(make("h2", {}, "What it costs"),
      paragraph(`This answer costs ε = ${asked.epsilon}${asked.delta === "0" ? "" : ` and δ = ${value(asked.delta)}`}, whoever sees the result. This device has spent ${spent === null ? "more than any bound" : `ε = ${spent}`}${chance === "0" ? "" : ` and δ = ${Number(chance)}`} so far on questions of this site${allowed.length ? `, of ${allowed.join(" and ")} that you allow` : ""}.`),
      make("details", {}, make("summary", {}, "Set a limit"), make("form", { onsubmit: async (event) => {
        event.preventDefault();
        try { await device.setLimit(limit.value.trim() || null, deltaLimit.value.trim() || null); await showCost() } catch (error) { wrong.textContent = error.message }
      } }, labelled(limit, "The most that this device may spend (ε); empty for no limit"), labelled(deltaLimit, `The same of δ, the chance that ε does not hold; ${MOST_DELTA} if it is empty and ε has a limit`), wrong, make("button", { className: "second" }, "Keep these limits"))),
      paragraph("This is counted in this browser's storage. Clearing it, a private window or another browser begins anew.", "quiet"));
  }
  async function send() {
    const results = (await device.send()).filter((one) => one.task == task.digest), last = results.at(-1)?.status ?? 200;
    news.textContent = last == 200 ? "Sent: a sealed part for each server. Thank you."
      : last == 409 ? "The question is closed: nobody takes answers any more."
        : "There is no connection. Your sealed answer stays on this device and is sent when there is one: keep this page open, or come back to it.";
    action.replaceChildren(make("section", {}, news));
  }
  function ask() {
    const { element, answer } = field(asked), wrong = make("p", { role: "alert", className: "warning" }), button = make("button", { id: "send" }, "Split, seal and send");
    const large = value(asked.delta) > value(MOST_DELTA), accept = make("input", { id: "accept", type: "checkbox" });
    const consent = large ? make("label", { className: "choice" }, accept, make("span", {}, `I accept that ε need not hold with a chance of δ = ${value(asked.delta)}: my exact answer may become known then.`)) : null;
    action.replaceChildren(make("form", { noValidate: true, onsubmit: async (event) => {
      event.preventDefault();
      const given = answer();
      if (given === undefined) { wrong.textContent = "Please answer first."; return }
      if (large && !accept.checked) { wrong.textContent = "Please say first that you accept δ, or close this page."; return }
      button.disabled = true;
      try { await device.answer(task, given, url, large ? { acceptDelta: asked.delta } : {}) } catch (error) { wrong.textContent = error.message; button.disabled = false; return }
      await send();
      await showCost();
    } }, element, consent, wrong, button));
  }
  addEventListener("online", send);
  const epsilon = value(asked.epsilon), sure = Math.ceil(1000 / (1 + Math.exp(-epsilon))) / 10;
  const but = asked.delta === "0" ? "" : ` (but for a chance of δ = ${value(asked.delta)})`;
  const colluding = task.checked ? `any two of ${listed(names)}` : `all of ${listed(names)}`;
  page.replaceChildren(make("h1", {}, asked.question), paragraph("Your answer is split on this device: each server gets a part that tells nothing."), action,
    make("section", {}, make("h2", {}, "Who can see what"),
      paragraph(`Only if ${colluding} put together what they hold can they see your answer${task.joint && !task.checked ? "; any two of them can take the noise off the totals" : ""}. This page's own server passes on sealed parts that it cannot open; it sees that you take part, and when.`),
      paragraph(`The servers add up the parts of everybody, and ${task.joint ? "add noise that they draw together and none of them knows" : "each adds noise"}. Whoever held two answers of yours for equally likely can, after seeing the totals, hold one of them for ${sure} % likely at most${but}: that is the meaning of ε = ${asked.epsilon}. Below ${asked.least_clients} people nothing is released.`),
      paragraph("Whoever serves this page could change it. Trust its address, and whoever runs it, for the page itself.", "quiet")),
    cost, make("p", { className: "quiet" }, `Task ${task.digest}.`));
  await showCost();
  if ((await device.waiting()).includes(task.digest)) await send();
  else if (await device.answered(task)) action.replaceChildren(make("section", {}, paragraph("This device has answered this question. Thank you.")));
  else ask();
}

main().catch(() => {
  page.replaceChildren(make("h1", {}, "This page cannot be used now"), make("section", { role: "alert" }, paragraph("The relay or this browser's storage cannot be reached. Nothing was sent.", "warning")));
}).finally(() => page.removeAttribute("aria-busy"));
