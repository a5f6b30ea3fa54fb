// What makes the pages quicker. All of them work without it.
"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const digits = (number) => String(Number(number.toPrecision(2)));

for (const element of all(".scripted")) element.hidden = false;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.print !== undefined) window.print();
  if (button?.dataset.copy !== undefined) {
    const text = button.closest("details, .once").querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it, and copy it by hand";
    }
  }
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) return event.preventDefault();
  if (form.dataset.buy !== undefined) {
    form.querySelector(".progress").hidden = false;
    setTimeout(() => { for (const button of all("button", form)) button.disabled = true; });  // when it has been sent
  }
});
window.addEventListener("pageshow", () => {
  for (const button of all("[data-buy] button")) button.disabled = false;
});

// ---- Asking: the price while one types ----

const form = document.getElementById("ask");
if (form) {
  const preview = document.getElementById("preview");
  const [sql, epsilon, error, slider] = ["sql", "epsilon", "error", "slider"].map((id) => document.getElementById(id));
  let waiting = 0, newest = 0, underWay = null;

  const outdate = () => { for (const button of all("[data-buy] button", preview)) button.disabled = true; };

  const price = async () => {
    const number = ++newest;
    underWay?.abort();
    underWay = new AbortController();
    if (!sql.value.trim()) return preview.replaceChildren();
    try {
      const body = new URLSearchParams(new FormData(form));
      const response = await fetch(form.dataset.preview, { method: "POST", body, signal: underWay.signal, redirect: "manual" });
      const text = await response.text();
      if (number !== newest) return;
      if (response.type === "opaqueredirect") return tell("You are signed out. Copy your question, and sign in again.");
      if (response.status === 429) return later(1500);
      if (!response.ok) return;
      const parsed = new DOMParser().parseFromString(text, "text/html");
      preview.replaceChildren(...parsed.body.childNodes);
      link();
    } catch (failure) {
      if (failure.name !== "AbortError" && number === newest) tell("The service cannot be reached at present.");
    }
  };
  const tell = (text) => {
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.textContent = text;
    preview.replaceChildren(notice);
  };
  const later = (milliseconds = 350) => {
    outdate();
    clearTimeout(waiting);
    waiting = setTimeout(price, milliseconds);
  };
  // Price and error belong together: what is typed decides, and the other field follows.
  const link = () => {
    const fault = preview.querySelector("[data-line]")?.dataset;
    window.lapwingEditor?.mark(fault && {
      line: Number(fault.line), column: Number(fault.column), length: Number(fault.length), message: fault.message, mend: fault.name,
    });
    const verdict = preview.querySelector("[data-epsilon]");
    if (!verdict) return;
    if (form.elements.by.value === "error") {
      epsilon.value = digits(Number(verdict.dataset.epsilon));
      slider.value = Math.log10(Number(verdict.dataset.epsilon));
    } else if (verdict.dataset.halfWidth) error.value = digits(Number(verdict.dataset.halfWidth));
  };

  form.addEventListener("input", (event) => {
    if (event.target === epsilon) document.getElementById("by-epsilon").checked = true;
    if (event.target === error) document.getElementById("by-error").checked = true;
    if (event.target === slider) {
      epsilon.value = digits(10 ** Number(slider.value));
      document.getElementById("by-epsilon").checked = true;
    }
    if (event.target === epsilon && Number(epsilon.value) > 0) slider.value = Math.log10(Number(epsilon.value));
    later();
  });
  if (Number(epsilon.value) > 0) slider.value = Math.log10(Number(epsilon.value));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      clearTimeout(waiting);
      price().then(() => preview.querySelector("[data-buy] button, [data-mend] button")?.focus());
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    price();
  });
  for (const name of all("[data-insert]")) {
    name.tabIndex = 0;
    name.role = "button";
    name.title = "Put it into the question";
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
}
