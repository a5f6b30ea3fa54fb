// Drafts: what is typed into the page Query stays in this browser until its person signs out (console.js clears it).
// The page of a step of the history has its own draft, so Back shows the query that was there. A new page begins with the latest.
"use strict";

{
  const form = document.getElementById("ask"), { draft: key, edited } = document.currentScript.dataset;
  const FIELDS = ["sql", "by", "epsilon", "error", "delta", "label", "assuming", "typical"].filter((name) => form.elements[name]), MOST = 10, PREVIEW = 70, NEW = "new";
  const values = () => Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value]));
  const read = () => {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? [];
    } catch {
      return [];  // a browser that keeps nothing
    }
  };
  const write = (drafts) => {
    try {
      localStorage.setItem(key, JSON.stringify(drafts.slice(0, MOST)));
    } catch {
      if (drafts.length > 1) write(drafts.slice(0, -1));  // there is no room for the oldest
    }
  };
  const first = values(), opened = new URLSearchParams(location.search).has("sql");
  let own = history.state?.draft;

  const keep = () => {
    if (!own) {
      own = crypto.randomUUID?.() ?? `${Date.now()} ${Math.random()}`;
      history.replaceState({ draft: own }, "");
    }
    const shown = values(), ran = read().find((one) => one.sql === shown.sql)?.ran;
    write([{ id: own, time: Date.now(), ran, ...shown }, ...read().filter((one) => one.id !== own && one.sql !== shown.sql)]);
  };
  const put = (fields) => {
    for (const name of FIELDS) form.elements[name].value = fields[name] ?? "";
  };
  const open = (id) => {
    history.replaceState({ draft: id }, "");
    location.reload();
  };

  const button = (text, press) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", press);
    return made;
  };
  const show = (restored, others) => {
    const box = document.createElement("div");
    box.className = "notice row apart";
    box.id = "drafts";
    if (restored) {
      const line = document.createElement("p"), text = document.createElement("span");
      line.className = "row apart";
      line.setAttribute("role", "status");
      text.textContent = `This is your draft of ${new Date(restored.time).toLocaleString()}. Only this browser has it.`;
      line.append(text, button("Discard draft", () => {
        write(read().filter((one) => ![restored.id, own].includes(one.id)));
        open(NEW);
      }));
      box.append(line);
    }
    if (others.length) {
      const details = document.createElement("details"), summary = document.createElement("summary"), list = document.createElement("ul");
      summary.textContent = restored ? "Earlier drafts" : "Your drafts in this browser";
      list.className = "choices";
      for (const one of others) {
        const item = document.createElement("li"), text = one.sql.replace(/\s+/g, " ").trim();
        const line = button(text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text, () => open(one.id));
        line.className = "quiet draft";
        line.dir = "ltr";
        item.append(line);
        list.append(item);
      }
      details.append(summary, list);
      box.append(details);
    }
    if (box.childNodes.length) form.before(box);
  };

  const drafts = read(), mine = drafts.find((one) => one.id === own), empty = own === NEW;
  const others = drafts.filter((one) => one !== mine && !one.ran && one.sql !== first.sql && one.sql.trim());
  if (!mine) own = undefined;
  if (edited !== undefined && !mine) keep();
  else if (mine) {
    put(mine);
    const priced = () => document.getElementById("sql").dispatchEvent(new Event("input", { bubbles: true }));
    if (mine.sql !== first.sql) addEventListener("DOMContentLoaded", priced);
    show(mine.ran || mine.sql === first.sql ? null : mine, others);
  } else if (!opened && !empty && others.length) {
    put(others[0]);
    show(others[0], others.slice(1));
  } else show(null, others);
  form.addEventListener("input", keep);
  // A query that ran is in the history: Back still shows it, and no page offers it as a draft.
  window.lapwingDrafts = { ran: (sql) => write(read().map((one) => (one.sql === sql ? { ...one, ran: true } : one))) };
}
