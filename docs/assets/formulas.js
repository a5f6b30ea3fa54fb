// Typeset the formulas of a page: arithmatex leaves each as \(…\) or \[…\] in an element of its own.
for (const element of document.querySelectorAll(".arithmatex")) {
  const formula = element.textContent.trim().slice(2, -2);
  katex.render(formula, element, { displayMode: element.tagName === "DIV", throwOnError: false });
}
