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

function field({ question, values, words, number, vector }) {
  if (values && values.length <= 12) {
    const element = make("fieldset", {}, make("legend", {}, question), ...values.map((value) => make("label", { className: "choice" },
      make("input", { type: "radio", name: "answer", value, required: true }), make("span", {}, value))));
    return { element, answer: () => element.querySelector("input:checked")?.value };
  }
  const choose = values && values.length <= 1000;
  const hint = values && !choose ? `Type one of ${values.length} values, exactly as it is spelled.` : words ? `A word of at most ${words.length} letters, of ${words.alphabet.slice(1)}. Other words count as “other”.` : number ? `A number from ${number.lower} to ${number.upper}. Other numbers count as the nearer limit.`
    : vector ? `Numbers from 0 to ${vector.upper}, separated by commas: ${vector.names.join(", ")}.` : "Please choose.";
  const input = choose ? make("select", { id: "answer", required: true }, make("option", { value: "" }, "Please choose"), ...values.map((value) => make("option", { value }, value)))
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
    page.replaceChildren(make("h1", {}, "Your device refused this question"), make("section", { role: "alert" }, paragraph("Your device checked the promise of this page. The promise is false, or this browser cannot check it.", "warning"), paragraph(error.message)));
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
    cost.replaceChildren(make("h2", {}, "Privacy cost"),
      paragraph(`This answer costs ε = ${asked.epsilon}${asked.delta === "0" ? "" : ` and δ = ${value(asked.delta)}`}, no matter who sees the result. This device has spent ${spent === null ? "an unlimited amount" : `ε = ${spent}`}${chance === "0" ? "" : ` and δ = ${Number(chance)}`} so far on questions of this site${allowed.length ? `. Your limit is ${allowed.join(" and ")}` : ""}.`),
      make("details", {}, make("summary", {}, "Set a limit"), make("form", { onsubmit: async (event) => {
        event.preventDefault();
        try { await device.setLimit(limit.value.trim() || null, deltaLimit.value.trim() || null); await showCost() } catch (error) { wrong.textContent = error.message }
      } }, labelled(limit, "Maximum ε for this device (empty: no limit)"), labelled(deltaLimit, `Maximum δ, the chance that ε fails (empty: ${MOST_DELTA} if ε has a limit)`), wrong, make("button", { className: "second" }, "Save limits"))),
      paragraph("This browser stores the count. A cleared storage, a private window or another browser starts a new count.", "quiet"));
  }
  async function send() {
    const results = (await device.send()).filter((one) => one.task == task.digest), last = results.at(-1)?.status ?? 200;
    news.textContent = last == 200 ? "Sent: a sealed part for each server. Thank you."
      : last == 409 ? "This question is closed and accepts no more answers."
        : "There is no connection. Your sealed answer stays on this device. This page sends it later: keep the page open, or come back.";
    action.replaceChildren(make("section", {}, news));
  }
  function ask() {
    const { element, answer } = field(asked), wrong = make("p", { role: "alert", className: "warning" }), button = make("button", { id: "send" }, "Split, seal and send");
    const large = value(asked.delta) > value(MOST_DELTA), accept = make("input", { id: "accept", type: "checkbox" });
    const consent = large ? make("label", { className: "choice" }, accept, make("span", {}, `I accept the chance δ = ${value(asked.delta)} that ε fails. In that case my exact answer may become known.`)) : null;
    action.replaceChildren(make("form", { noValidate: true, onsubmit: async (event) => {
      event.preventDefault();
      const given = answer();
      if (given === undefined) { wrong.textContent = "Please answer first."; return }
      if (large && !accept.checked) { wrong.textContent = "To answer, accept δ first. Otherwise close this page."; return }
      button.disabled = true;
      try { await device.answer(task, given, url, large ? { acceptDelta: asked.delta } : {}) } catch (error) { wrong.textContent = error.message; button.disabled = false; return }
      await send();
      await showCost();
    } }, element, consent, wrong, button));
  }
  addEventListener("online", send);
  const epsilon = value(asked.epsilon), sure = Math.ceil(1000 / (1 + Math.exp(-epsilon))) / 10;
  const but = asked.delta === "0" ? "" : ` (except with probability δ = ${value(asked.delta)})`;
  const colluding = task.checked ? `any two of ${listed(names)}` : `all of ${listed(names)}`;
  page.replaceChildren(make("h1", {}, asked.question), paragraph("Your device splits your answer. Each server gets a part that reveals nothing."), action,
    make("section", {}, make("h2", {}, "Privacy"),
      paragraph(`To see your answer, ${colluding} would have to combine their parts.${task.joint && !task.checked ? " Any two of them can remove the noise from the totals." : ""} The server of this page forwards sealed parts and cannot open them. It sees that you take part, and when.`),
      paragraph(`The servers add up the parts of all people. ${task.joint ? "Together they add noise that none of them knows" : "Each server adds noise"}. Someone who thought two answers of yours equally likely can become at most ${sure} % sure of one${but}. This is the meaning of ε = ${asked.epsilon}. With fewer than ${asked.least_clients} people, the servers release nothing.`),
      paragraph("The operator of this page could change it. Use the page only if you trust its address and its operator.", "quiet")),
    cost, make("p", { className: "quiet" }, `Task ${task.digest}.`));
  await showCost();
  if ((await device.waiting()).includes(task.digest)) await send();
  else if (await device.answered(task)) action.replaceChildren(make("section", {}, paragraph("This device has answered this question. Thank you.")));
  else ask();
}

main().catch(() => {
  page.replaceChildren(make("h1", {}, "This page does not work at the moment"), make("section", { role: "alert" }, paragraph("This page cannot reach the relay or the storage of this browser. Nothing was sent.", "warning")));
}).finally(() => page.removeAttribute("aria-busy"));
