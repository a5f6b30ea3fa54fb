// Light or dark as the reader chose in the footer, before anything is drawn. The choice stays in this browser; it is no cookie.
"use strict";

const theme = () => {
  let chosen = "";
  try {
    chosen = localStorage.getItem("lapwing-theme") ?? "";
  } catch { /* the browser keeps nothing: then the system decides */ }
  return ["light", "dark"].includes(chosen) ? chosen : "";
};
const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media?.mediaText.includes("dark"));
const system = rules.map((rule) => rule.media.mediaText);
const wear = (chosen) => {
  rules.forEach((rule, place) => { rule.media.mediaText = { light: "not all", dark: "all" }[chosen] ?? system[place]; });
  document.documentElement.style.colorScheme = chosen;
};
wear(theme());
addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("theme");
  if (!list) return;  // the full screen of a dashboard has no choice
  list.value = theme();
  list.addEventListener("change", () => {
    try {
      localStorage.setItem("lapwing-theme", list.value);
    } catch { /* it holds for this page */ }
    wear(list.value);
  });
});
addEventListener("storage", (event) => { if (event.key === "lapwing-theme") wear(theme()); });  // chosen in another tab
