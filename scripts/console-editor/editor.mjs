// The editor of questions and catalogs: CodeMirror in the place of the text area, which stays what the form sends.
// It marks what the service refuses, where the service says it, and completes the names that the page shows.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL } from "@codemirror/lang-sql";
import { bracketMatching, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, hoverTooltip, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

const area = document.querySelector("textarea[data-editor]");
const isSql = area.dataset.editor === "sql";
const label = document.querySelector(`label[for=${area.id}]`);
// Each name once, with what the catalog says of it: all of these are texts, and are shown as such.
const names = (selector, key, type, boost) =>
  [...new Map([...document.querySelectorAll(selector)].map(({ dataset }) => [dataset[key], dataset]))]
    .map(([label, { meaning, about }]) => ({ label, type, boost, detail: meaning, info: about }));
const words = (
  "SELECT FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT AS AND OR NOT IN BETWEEN LIKE IS_NULL IS_NOT_NULL CASE WHEN THEN ELSE " +
  "END JOIN LEFT_JOIN ON EXISTS WITH DISTINCT DESC COUNT(*) COUNT( SUM( AVG( MIN( MAX( MEDIAN( STDDEV( VARIANCE("
).split(" ").map((word) => ({ label: word.replaceAll("_", " "), type: "keyword" }));
const options = [
  ...names("[data-insert]", "insert", "property", 2), ...names("[data-table]", "table", "class", 1), ...words,
];
// A word that is whole, and begins no longer name, needs no list: the list would take the next Enter.
const isWhole = (text) => {
  const typed = text.toLowerCase(), labels = options.map(({ label }) => label.toLowerCase());
  return labels.includes(typed) && !labels.some((label) => label !== typed && label.startsWith(typed));
};
const completions = (context) => {
  const word = context.matchBefore(/["\w]+/);
  if (!context.explicit && (!word || isWhole(word.text))) return null;
  return { from: word ? word.from : context.pos, options, validFor: (text) => /^["\w]*$/.test(text) && !isWhole(text) };
};

const explained = new Map(options.filter(({ info }) => info).map(({ label, info }) => [label.toLowerCase(), info]));
const hover = hoverTooltip((view, pos) => {
  const { from, text } = view.state.doc.lineAt(pos);
  for (const word of text.matchAll(/"(?:[^"]|"")*"|\w+/g)) {
    const start = from + word.index, end = start + word[0].length;
    const info = start <= pos && pos <= end && explained.get(word[0].toLowerCase());
    if (info) return {
      pos: start, end, above: true,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "cm-about";
        dom.textContent = info;
        return { dom };
      },
    };
  }
  return null;
});

// Catalogs: sections, keys, texts, numbers and comments of TOML, as far as colours need them.
const toml = StreamLanguage.define({
  startState: () => ({ value: false, within: [] }),
  token(stream, state) {
    if (stream.sol() && !state.within.length) state.value = false;
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (!state.value && !state.within.length && stream.match(/^\[[^\]]*\]?/)) return "keyword";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'[^']*'?/)) return state.value ? "string" : "propertyName";
    if (stream.eat("=")) { state.value = true; return null; }
    const opens = stream.match(/^[\[{]/);
    if (opens) { state.within.push(opens[0]); state.value = opens[0] === "["; return null; }
    if (stream.match(/^[\]}]/)) { state.within.pop(); state.value = true; return null; }
    if (stream.eat(",")) { state.value = state.within.at(-1) === "["; return null; }
    if (stream.match(/^(?:true|false)\b/)) return "bool";
    if (stream.match(/^[-+]?\d[\w.:+-]*/)) return "number";
    if (stream.match(/^[\w-]+/)) return state.value ? null : "propertyName";
    stream.next();
    return null;
  },
  copyState: (state) => ({ ...state, within: [...state.within] }),
  languageData: { commentTokens: { line: "#" } },
});
const language = isSql
  ? [PostgreSQL.language, PostgreSQL.language.data.of({ autocomplete: completions }), autocompletion({ icons: false }), hover, EditorView.lineWrapping]
  : [toml];

const told = EditorView.updateListener.of((update) => {
  if (!update.docChanged) return;
  area.value = update.state.doc.toString();
  area.dispatchEvent(new Event("input", { bubbles: true }));
});

// Over a selection, Chromium keeps its colour by an inline style, which the page's policy forbids: so the editor writes.
const over = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const selection = getSelection();
    if (event.inputType !== "insertText" || !event.data || view.composing || selection.isCollapsed) return false;
    const range = selection.getRangeAt(0);
    const from = view.posAtDOM(range.startContainer, range.startOffset);
    const to = view.posAtDOM(range.endContainer, range.endOffset);
    const written = () => view.state.update({
      changes: { from, to, insert: event.data }, selection: { anchor: from + event.data.length },
      userEvent: "input.type", scrollIntoView: true,
    });
    event.preventDefault();
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, from, to, event.data, written))) view.dispatch(written());
    return true;
  },
});

const view = new EditorView({
  doc: area.value,
  extensions: [
    EditorView.cspNonce.of(area.form.getAttribute("data-nonce")),  // a field may be called dataset
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    syntaxHighlighting(classHighlighter),
    language,
    over,
    EditorState.tabSize.of(2),
    EditorView.contentAttributes.of({
      "aria-label": label.textContent, ...(isSql ? { "aria-describedby": "keys" } : {}), spellcheck: "false", autocapitalize: "none", dir: "ltr",
    }),
    // Tab leaves the editor, as everywhere on the page; Mod-Enter belongs to the form.
    keymap.of([
      { key: "Mod-Enter", run: () => true },
      ...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap,
    ]),
    told,
  ],
});
if (!isSql) view.scrollDOM.tabIndex = 0;  // it is longer and wider than what is seen of it
area.before(view.dom);
area.hidden = true;
label.addEventListener("click", () => view.focus());

window.lapwingEditor = {
  insert(text) {
    view.dispatch(view.state.replaceSelection(text));
    view.focus();
  },
  set(text) {
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
  },
  // Mark `length` characters at a place, as the service counts it: lines and columns from 1; null for nothing.
  mark(fault) {
    const doc = view.state.doc;
    const marks = [];
    if (fault && fault.line <= doc.lines) {
      const line = doc.line(fault.line);
      const from = Math.min(line.from + fault.column - 1, line.to);
      const to = Math.max(from, Math.min(from + fault.length, line.to));
      const actions = fault.mend
        ? [{ name: `Write ${fault.mend}`, apply: (editor, a, b) => editor.dispatch({ changes: { from: a, to: b, insert: fault.mend } }) }]
        : [];
      marks.push({ from, to, severity: "error", message: fault.message, actions });
    }
    view.dispatch(setDiagnostics(view.state, marks));
  },
};
