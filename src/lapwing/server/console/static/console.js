// What makes the pages quicker. All of them work without it.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const digits = (number) => String(Number(number.toPrecision(3)));  // of what is chosen here; other figures come as texts
const typed = (field) => Number(field.value.trim().replace(",", "."));  // the server refuses a comma that may divide thousands
const plain = (text) => text.replace(/[±,]/g, "");  // a figure as a field takes it


// Drafts of queries (drafts.js) stay in this browser until sign-out, and never for the next person.
const forget = (others) => {
  try {
    for (const key of Object.keys(localStorage))
      if (key.startsWith("lapwing-draft ") && !(others && key.startsWith(`lapwing-draft ${others} `))) localStorage.removeItem(key);
  } catch { /* the browser keeps nothing */ }
};
if (document.body.dataset.person) forget(document.body.dataset.person);
else if (location.pathname === "/console/sign-in" && new URLSearchParams(location.search).has("out")) forget();

// Each row of a table that is too wide becomes a block, in which cells name their columns. Roles keep it a table.
const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
let wide = [];
const fit = () => {
  for (const table of wide) {
    table.classList.remove("blocks");
    table.classList.toggle("blocks", table.parentElement.scrollWidth > table.parentElement.clientWidth);
  }
};
const prepare = () => {
  for (const element of all(".scripted")) element.hidden = false;
  for (const element of all(".unscripted")) element.hidden = true;
  wide = all("main .scroll > table:not(.fit, .diff, .middle)").filter((table) => table.rows[0]?.cells.length > 2);
  for (const table of wide) {
    const heads = all("thead th", table);
    for (const part of [table, ...all("thead, tbody, tr, td, th", table)])
      part.role = part.tagName === "TH" ? (part.scope === "row" ? "rowheader" : "columnheader") : ROLES[part.tagName];
    for (const row of all("tbody tr", table))
      [...row.cells].forEach((cell, place) => {
        const head = heads[place];
        if (!cell.textContent.trim()) cell.classList.add("blank");
        else if (head && (place || cell.tagName === "TD") && !head.querySelector(".hidden")) cell.dataset.column = head.textContent.trim();
      });
  }
  fit();
};
prepare();
addEventListener("resize", fit);

// The tour of a demo: a step at a time. The browser remembers the step of each person.
const tour = document.getElementById("tour");
if (tour) {
  const steps = all("li", tour), [next, back] = all("button", tour), key = `lapwing-tour ${tour.dataset.tour}`;
  let step = 0;
  try { step = Number(localStorage.getItem(key)) || 0; } catch { /* the browser keeps nothing */ }
  const see = () => {
    steps.forEach((one, place) => { one.hidden = place !== step; });
    back.disabled = !step;
    next.textContent = step === steps.length - 1 ? "Done" : "Next";
    tour.hidden = step >= steps.length;
  };
  tour.querySelector("p").hidden = false;
  see();
  tour.addEventListener("click", (event) => {
    step += Number(event.target.dataset.step ?? 0);
    if (step >= steps.length) document.getElementById("main").focus();
    see();
    try { localStorage.setItem(key, step); } catch { /* the browser keeps nothing */ }
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.print !== undefined) window.print();
  if (button?.dataset.copy !== undefined) {
    const text = button.closest("details, .once").querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the text and copy it";
    }
  }
});

// A field with the name "dataset" hides the property of its form, so the property is read where no field can hide it.
const { get: dataOf } = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "dataset"), data = (form) => dataOf.call(form);

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented) return;
  if (data(form).confirm && !window.confirm(data(form).confirm)) return event.preventDefault();
  if (form.getAttribute("action") === "/console/sign-out") forget();
  if (form.method === "post") {  // a second click on what has been sent sends nothing
    if (data(form).sent) return event.preventDefault();
    data(form).sent = "1";
    setTimeout(() => { delete data(form).sent; }, 3000);
  }
  if (data(form).buy !== undefined) {
    const progress = form.querySelector(".progress");
    progress.hidden = false;
    const bar = progress.querySelector("progress");
    if (bar) {  // towards the public deadline: how far the question is, nobody is told
      const begun = performance.now();
      const step = () => {
        bar.value = Math.min(bar.max, (performance.now() - begun) / 1000);
        if (bar.value < bar.max) setTimeout(step, 100);
      };
      step();
    }
    setTimeout(() => { for (const button of all("button", form)) button.disabled = true; });  // when it has been sent
  }
});
window.addEventListener("pageshow", () => {
  for (const button of all("[data-buy] button")) button.disabled = false;
});

// ---- Forms are sent by a script: what was typed stays, passwords too, and Back never sends a form again ----

const clear = (form) => {
  for (const fault of all(".fault", form)) fault.remove();
  for (const field of all("[aria-invalid]", form)) {
    field.removeAttribute("aria-invalid");
    const about = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => !id.startsWith("error-"));
    if (about.join("")) field.setAttribute("aria-describedby", about.join(" "));
    else field.removeAttribute("aria-describedby");
  }
};
const again = (form) => {  // it can be sent again
  delete data(form).sent;
  for (const button of all("button", form)) button.disabled = false;
  for (const progress of all(".progress", form)) progress.hidden = true;
};
const complain = (form, notice) => {
  document.getElementById("refusal")?.remove();
  notice.id = "refusal";
  const preview = document.getElementById("preview");  // a form of it may be gone meanwhile: another cost has come
  (form.isConnected ? form.closest("#preview") ?? form : preview ?? document.querySelector("main > *")).before(notice);
  notice.scrollIntoView({ block: "nearest" });
};
const refuse = (form, shown) => {
  again(form);
  if (!form.closest("[data-verdict]")) for (const old of all("[data-verdict]")) old.remove();  // it is of what was sent before
  const other = all("form", shown).find((one) => one.getAttribute("action") === form.getAttribute("action") && one.querySelector("[aria-invalid]"));
  const marked = other?.querySelector("[aria-invalid]");
  const field = marked && form.querySelector(`[name="${CSS.escape(marked.name)}"]:not([type=hidden])`);
  if (field) {
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", marked.getAttribute("aria-describedby"));
    field.after(other.querySelector(".fault"));
    for (let box = field.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    return field.focus();
  }
  const notice = shown.querySelector("main .fault, main .notice.bad[role=alert]");
  if (!notice) return location.reload();
  notice.className = "notice bad";
  complain(form, notice);
  if (form.closest("#preview")) document.getElementById("sql")?.dispatchEvent(new Event("input", { bubbles: true }));
};
const swap = (shown) => {  // the page that answers stands in the place of this one, and Back leads to this one
  history.replaceState({ ...history.state, before: true }, "");
  history.pushState({ answer: true }, "");
  document.title = shown.title;
  const main = document.adoptNode(shown.querySelector("main")), first = main.querySelector("[autofocus]");
  first?.removeAttribute("autofocus");  // a browser complains about it where something has the focus already
  document.querySelector("main").replaceWith(main);
  prepare();
  scrollTo(0, 0);
  (first ?? main).focus();
};
addEventListener("popstate", (event) => { if (event.state?.before) location.reload(); });

const send = async (form, button) => {
  clear(form);
  document.getElementById("refusal")?.remove();
  const body = new URLSearchParams(new FormData(form)), headers = { "Lapwing-Scripted": "1" };
  if (button?.name) body.set(button.name, button.value);
  const action = button?.getAttribute("formaction") ?? form.getAttribute("action");
  let response, text;
  try {
    response = await fetch(action, { method: "POST", body, headers });
    text = await response.text();
  } catch {
    again(form);
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.textContent = "The service does not respond. Check your connection and try again.";
    return complain(form, notice);
  }
  const next = response.headers.get("Lapwing-Location");
  if (next && data(form).buy !== undefined) window.lapwingDrafts?.ran(body.get("sql"));
  if (next) return location.assign(next);
  const shown = new DOMParser().parseFromString(text, "text/html");
  if (response.status >= 400) return refuse(form, shown);
  if (!shown.querySelector("[data-nonce]")) return swap(shown);
  again(form);  // a page with the editor, whose styles need a policy of its own; the form changes nothing
  data(form).native = "1";
  form.requestSubmit(button);
};
const scripted = (form) => form.method === "post" && data(form).native === undefined && data(form).nonce === undefined
  && form.getAttribute("action") !== "/console/sign-out" && (data(form).buy === undefined || Boolean(document.querySelector("#ask, form[data-keys]")));
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || !scripted(event.target)) return;
  event.preventDefault();
  send(event.target, event.submitter);
});
document.addEventListener("input", (event) => { if (event.target.form && event.target.ariaInvalid) clear(event.target.form); });

// An invite stands after # in its link, where no server sees it. It leaves the address at once.
const invite = document.querySelector("[data-fragment]");
if (invite && location.hash.length > 1) {
  invite.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  invite.form.requestSubmit();
}

// ---- What a budget means, while its figures are typed ----

for (const place of all("[data-guess]")) {
  const form = place.closest("form"), fields = ["epsilon", "delta", "noun"].map((name) => form.elements[name]).filter(Boolean);
  let waiting = 0, newest = 0;
  const guess = async () => {
    const number = ++newest;
    if (!fields[0].value.trim()) return place.replaceChildren();
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(place.dataset.guess, { method: "POST", body, redirect: "manual" }).catch(() => null);
    const text = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html").body.textContent : "";
    if (number === newest) place.textContent = text.trim();
  };
  for (const field of fields) field.addEventListener("input", () => {
    newest++;
    place.textContent = "";
    clearTimeout(waiting);
    waiting = setTimeout(guess, 350);
  });
  guess();
}

// ---- Keys ----

const KEYS = [
  ["?", "show these shortcuts"], ["g then h", "data sets"], ["g then q", "queue"], ["g then a", "query this data set"],
  ["g then t", "tables"], ["g then s", "saved queries"], ["g then d", "dashboards"], ["g then y", "history"],
  ["g then b", "budget"], ["Ctrl or ⌘, Enter", "in a query: move to the Run button; in several queries: show the cost"],
  ["Ctrl, Space", "in a query: complete names and keywords"],
];
const PLACES = {
  h: "Data sets", q: "Queue", a: "Query", t: "Tables", s: "Saved", d: "Dashboards", y: "History", b: "Budget",
};
let going = 0;
const showKeys = () => {
  let dialog = document.getElementById("all-keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "all-keys";
    const title = document.createElement("h2"), list = document.createElement("dl"), close = document.createElement("button");
    title.textContent = "Keyboard shortcuts";
    title.id = "all-keys-title";
    dialog.setAttribute("aria-labelledby", title.id);
    list.className = "facts";
    for (const [key, what] of KEYS) {
      const name = document.createElement("dt"), text = document.createElement("dd"), kbd = document.createElement("kbd");
      kbd.textContent = key;
      name.append(kbd);
      text.textContent = what;
      list.append(name, text);
    }
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(title, list, close);
    document.body.append(dialog);
  }
  dialog.showModal();
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
  if (event.key === "?") showKeys();
  else if (event.key === "g") going = Date.now();
  else if (Date.now() - going < 1500 && PLACES[event.key]) {
    going = 0;
    all("nav a, main .row a").find((link) => link.textContent.trim() === PLACES[event.key])?.click();
  }
});

document.querySelector("form[data-keys]")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
});

// ---- Asking: the price while one types ----

const form = document.getElementById("ask");
if (form) {
  const preview = document.getElementById("preview");
  const [sql, epsilon, error, slider] = ["sql", "epsilon", "error", "slider"].map((id) => document.getElementById(id));
  let waiting = 0, newest = 0, underWay = null;

  const outdate = () => {
    preview.ariaBusy = "true";  // console.css shows it as out of date
    for (const button of all("[data-buy] button", preview)) button.disabled = true;
  };

  const price = async () => {
    const number = ++newest;
    underWay?.abort();
    underWay = new AbortController();
    if (!sql.value.trim()) {
      preview.ariaBusy = null;
      return preview.replaceChildren();
    }
    try {
      const body = new URLSearchParams(new FormData(form));
      const response = await fetch(form.dataset.preview, { method: "POST", body, signal: underWay.signal, redirect: "manual" });
      const text = await response.text();
      if (number !== newest) return;
      if (response.type === "opaqueredirect") return tell("You are signed out. Copy your query and sign in again.");
      if (response.status === 429) return later(1500);
      if (!response.ok) return tell("Lapwing could not show the cost. Load the page again.");
      const parsed = new DOMParser().parseFromString(text, "text/html");
      preview.ariaBusy = null;
      preview.replaceChildren(...parsed.body.childNodes);
      link();
    } catch (failure) {
      if (failure.name !== "AbortError" && number === newest) tell("The service does not respond. Check your connection and try again.");
    }
  };
  const tell = (text) => {
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.textContent = text;
    preview.ariaBusy = null;
    preview.replaceChildren(notice);
  };
  const later = (milliseconds = 350) => {
    outdate();
    newest++;  // a cost on its way is of another query, and its button must not come
    clearTimeout(waiting);
    waiting = setTimeout(price, milliseconds);
  };
  const at = () => {  // the field that a refusal is about
    clear(form);
    const { field: name, fault: text } = preview.querySelector("[data-field]")?.dataset ?? {}, field = name && form.elements[name];
    if (!field) return;
    const fault = document.createElement("span");
    Object.assign(fault, { className: "fault", id: `error-${field.id}`, role: "alert", textContent: text });
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", [fault.id, field.getAttribute("aria-describedby") ?? ""].join(" ").trim());
    field.after(fault);
  };
  // Price and error belong together: what is typed decides, and the other field follows.
  const link = () => {
    const fault = preview.querySelector("[data-line]")?.dataset;
    window.lapwingEditor?.mark(fault && {
      line: Number(fault.line), column: Number(fault.column), length: Number(fault.length), message: fault.message, mend: fault.name,
    });
    at();
    const verdict = preview.querySelector("[data-epsilon]");
    if (!verdict) return;
    const by = form.elements.by.value;
    document.getElementById("typical").placeholder = verdict.dataset.typical;
    if (by !== "epsilon") {
      epsilon.value = plain(verdict.dataset.epsilonText);
      slider.value = Math.log10(Number(verdict.dataset.epsilon));
    }
    if (by !== "error") error.value = plain(verdict.dataset.halfWidth || "");
  };

  // The builder writes the query, and what is typed into the query is read back. What is under way is dropped for what is newer.
  let building = 0, latest = 0, writing = false;
  const build = async (write) => {
    const number = latest, body = new URLSearchParams(new FormData(form));
    if (write) body.set("write", "1");
    const response = await fetch(form.dataset.build, { method: "POST", body, redirect: "manual" }).catch(() => null);
    if (!response?.ok) {
      if (number !== latest) return;
      return response?.status === 429 ? rebuild(write, 1500) : tell("Lapwing could not write the query. Load the page again.");
    }
    const text = await response.text();
    if (number !== latest) return;
    const old = document.getElementById("builder"), { id, selectionStart } = old.contains(document.activeElement) ? document.activeElement : {};
    const made = new DOMParser().parseFromString(text, "text/html").getElementById("builder");
    for (const element of all(".unscripted", made)) element.hidden = true;
    old.replaceWith(made);
    if (id) {
      const field = document.getElementById(id);
      field?.focus();
      if (field?.type === "text") field.setSelectionRange(selectionStart, selectionStart);
    }
    if (!write || made.dataset.sql === sql.value) return;
    writing = true;
    if (window.lapwingEditor) window.lapwingEditor.set(made.dataset.sql);
    else sql.value = made.dataset.sql;
    writing = false;
    later(0);
  };
  const rebuild = (write, milliseconds) => {
    latest++;
    clearTimeout(building);
    building = setTimeout(build, milliseconds, write);
  };

  form.addEventListener("input", (event) => {
    if (writing) return;
    if (event.target.closest("#builder")) {
      outdate();
      return rebuild(true, event.target.tagName === "SELECT" ? 0 : 350);
    }
    if (event.target === sql && document.getElementById("builder")) rebuild(false, 350);
    if (event.target === epsilon) document.getElementById("by-epsilon").checked = true;
    if (event.target === error) document.getElementById("by-error").checked = true;
    if (event.target === slider) {
      epsilon.value = digits(10 ** Number(slider.value));
      document.getElementById("by-epsilon").checked = true;
    }
    if (event.target === epsilon && typed(epsilon) > 0) slider.value = Math.log10(typed(epsilon));
    later();
  });
  if (typed(epsilon) > 0) slider.value = Math.log10(typed(epsilon));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      clearTimeout(waiting);
      price().then(() => preview.querySelector("[data-buy] button, [data-mend] button")?.focus());
    }
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.name) return;  // to another page
    event.preventDefault();
    clearTimeout(waiting);
    price();
  });
  for (const name of all("[data-insert]")) {
    name.tabIndex = 0;
    name.role = "button";
    name.title = "Insert into the query";
    const put = () => {
      if (window.lapwingEditor) return window.lapwingEditor.insert(name.dataset.insert);
      sql.setRangeText(name.dataset.insert, sql.selectionStart, sql.selectionEnd, "end");
      sql.focus();
      later();
    };
    name.addEventListener("click", put);
    name.addEventListener("keydown", (event) => { if (event.key === "Enter") put(); });
  }
  if (preview.querySelector("section")) link();
  else price();
  // Whoever came by a form of the page is where they were: in the question, one key from the button.
  if (form.dataset.back !== undefined && !form.querySelector("[autofocus]")) document.querySelector("label[for=sql]").click();
}

// ---- A catalog: what it would change while one types ----

const draft = document.getElementById("draft");
if (draft) {
  const preview = document.getElementById("preview");
  let waiting = 0, newest = 0, underWay = null;
  const mark = () => {
    const fault = preview.querySelector("[data-line]")?.dataset;
    window.lapwingEditor?.mark(fault && {
      line: Number(fault.line), column: Number(fault.column), length: Number(fault.length), message: fault.message,
    });
  };
  const look = async () => {
    const number = ++newest;
    underWay?.abort();
    underWay = new AbortController();
    try {
      const body = new URLSearchParams(new FormData(draft));
      const response = await fetch(draft.dataset.preview, { method: "POST", body, signal: underWay.signal, redirect: "manual" });
      const text = await response.text();
      if (number !== newest) return;
      if (response.status === 429) return later(1500);
      if (!response.ok) return preview.replaceChildren();
      preview.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      mark();
    } catch (failure) {
      if (failure.name !== "AbortError") throw failure;
    }
  };
  const later = (milliseconds = 700) => {
    newest++;
    for (const button of all("[data-buy] button", preview)) button.disabled = true;  // what was looked at is another text
    clearTimeout(waiting);
    waiting = setTimeout(look, milliseconds);
  };
  draft.addEventListener("input", () => later());
  draft.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      clearTimeout(waiting);
      look().then(() => preview.querySelector("[data-buy] button")?.focus());
    }
  });
  mark();
}
