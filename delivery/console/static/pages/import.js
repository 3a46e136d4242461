/** Import of a table, CSV or .xlsx: it is checked first, with every change shown; then it is imported as a whole. And export. */

import { field, h, paint } from "../lib/dom.js";
import { currentLanguage, has, t, word } from "../lib/words.js";
import { ApiError, address, api, randomKey } from "../lib/api.js";
import { explainOne, notice, submits, toast, toastError } from "../lib/page.js";
import { choice, columnName, idOf } from "../lib/directory.js";

const ENCODINGS = ["utf-8", "utf-16", "windows-1251", "koi8-r", "mac-cyrillic", "cp866", "windows-1252"];
const KINDS = ["users", "groups", "members", "contacts", "supergroups", "ownerships"];
const EXPORTED = KINDS.filter((one) => one !== "contacts");
const TABLE = { "Content-Type": "application/octet-stream" };
const PROGRESS_PAUSE = 1000;
const LEFT_OUT = "-", UNKNOWN = "?";
const RIGHT_ROWS = { wrong_rows: "leave_out" };

export default {
  title: "page.import",
  right: "people",
  render(root, parameters, { signal }) {
    const result = h("div");
    const reset = () => paint(result);
    const check = submits(async (form) => {
      const { kind, file, encoding } = form.elements;
      if (!file.files.length) return;
      // The bytes that were checked are the ones that are imported, also if the file is changed meanwhile.
      const chosen = { query: { kind: kind.value, ...(encoding.value && { encoding: encoding.value }) }, name: file.files[0].name, content: new Blob([await file.files[0].arrayBuffer()]), key: randomKey() };
      reset();
      await showCheck(result, chosen, signal, form);
    });
    paint(root,
      h("h1", {}, t("page.import")),
      h("form", { class: "panel", onsubmit: check, onchange: reset },
        field({ label: t("import.kind") }, choice("kind", KINDS.map((one) => [one, word("import_kind", one)]))),
        field({ label: t("import.file"), hint: t("import.file_hint"), pick: t("field.pick") }, h("input", { type: "file", name: "file", accept: ".csv,.txt,.xlsx,text/csv", required: true })),
        field({ label: t("import.encoding") }, choice("encoding", [["", t("import.encoding_found")], ...ENCODINGS.map((one) => [one, one])])),
        h("div", { class: "actions" }, h("button", { class: "primary" }, t("import.check")),
          h("a", { class: "button", href: sampleOf(KINDS[0]), download: true, onclick: (event) => { event.currentTarget.href = sampleOf(event.currentTarget.closest("form").elements.kind.value); } }, t("import.sample")))),
      result,
      h("section", { class: "panel" }, h("h2", {}, t("import.export")), h("p", {}, t("import.export_text")),
        h("ul", { class: "actions plain-list" }, EXPORTED.map((one) => h("li", {}, h("a", { class: "button", href: `/v1/export/${one}?excel=1&language=${currentLanguage()}`, download: `${one}.csv` }, word("import_kind", one)))))));
  },
};

/** The address of a small table of this kind, as the import reads it. */
const sampleOf = (kind) => address("/v1/import/sample", { kind, excel: "1", language: currentLanguage() });

async function showCheck(result, chosen, signal, form) {
  const again = (changes) => checkAgain(result, chosen, changes, signal, form);
  try {
    chosen.columns ||= await api.post("/v1/import/columns", chosen.content, { query: chosen.query, headers: TABLE, signal });
    const found = await api.post("/v1/import", chosen.content, { query: { ...chosen.query, ...RIGHT_ROWS, dry_run: "1" }, headers: TABLE, signal });
    paint(result, mapping(chosen, again), wrongRows(found, chosen, again), mailContact(found, chosen, again), changes(found, chosen, result, signal, form));
  } catch (error) {
    if (!isAboutRows(error)) throw error;
    paint(result, chosen.columns && mapping(chosen, again), errors(error, chosen, again));
  }
}

/** What each column of the file is, which may be changed; open if a heading is unknown. */
function mapping(chosen, again) {
  const { columns, names } = chosen.columns;
  const choose = ({ target }) => {
    columns[target.name].column = target.value;
    again({ query: { ...chosen.query, columns: columns.map((one) => one.column ?? UNKNOWN).join() } });
  };
  return h("details", { class: "panel", open: columns.some((one) => one.column === null) }, h("summary", {}, t("import.columns")),
    h("form", { onchange: choose }, columns.map(({ heading, column, value }, place) => field({ label: heading || "–", hint: value.slice(0, 50) },
      h("select", { name: String(place) }, [...new Set([column ?? UNKNOWN, ...names, LEFT_OUT])].map((one) => h("option", { value: one, selected: one === column },
        one === LEFT_OUT ? t("import.left_out") : one === UNKNOWN ? "–" : columnName(one))))))));
}

/** Says who could not be mailed, and uses the address to sign in for messages, too, if that is ticked. */
function mailContact({ not_mailed: count = 0 }, chosen, again) {
  const { mail_contact: isChosen, ...query } = chosen.query;
  return (count > 0 || isChosen) && notice(isChosen ? "info" : "warn",
    count > 0 && h("p", {}, t("import.not_mailed", { count })),
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: Boolean(isChosen), onchange: ({ target }) => again({ query: target.checked ? { ...query, mail_contact: "1" } : query }) }), t("import.mail_contact")));
}

const wrongRows = (found, chosen, again) => found.wrong.length > 0 && [errors({ errors: found.wrong.flatMap((one) => one.errors) }, chosen, again),
  h("p", {}, h("a", { class: "button", download: `! ${chosen.name.replace(/\.\w+$/, "")}.csv`, href: URL.createObjectURL(fileOf(found, chosen)) }, t("import.wrong_file")))];

/** A table of the wrong rows with the reasons in a last column, which is not read when they are imported again. */
function fileOf({ header, wrong }, chosen) {
  const line = (cells) => cells.map((one) => `"${one.replaceAll('"', '""')}"`).join(";");
  const rows = wrong.map(({ cells, errors }) => [...header.map((_, place) => cells[place] ?? ""), errors.map((one) => reasonOf(one, chosen)).join(" ")]);
  return new Blob(["\ufeff", [[...header, t("import.error")], ...rows].map(line).join("\r\n")], { type: "text/csv" });
}

const checkAgain = (result, chosen, changes, signal, form) =>
  showCheck(result, { ...chosen, ...changes, key: randomKey() }, signal, form).catch(toastError);

const isAboutRows = (error) => error instanceof ApiError && error.errors.some((one) => one.row);

/** Returns a table with a caption; it can be scrolled by the keyboard where it is wider than the window. */
const grid = (caption, titles, rows) => h("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": caption },
  h("table", {}, h("caption", { class: "off-screen" }, caption),
    h("thead", {}, h("tr", {}, titles.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((one) => h("td", {}, one)))))));

/** Groups that do not exist are one finding; `again` checks anew. */
function errors(error, chosen, again) {
  const isUnknownGroup = (one) => one.code === "GROUP_NOT_FOUND" && one.value;
  const groups = [...new Set(error.errors.filter(isUnknownGroup).map((one) => one.value))];
  const others = error.errors.filter((one) => !isUnknownGroup(one));
  const sheets = others.find((one) => one.code === "SHEET_UNCLEAR")?.value?.split("\n");
  return h("section", { class: "panel" },
    h("h2", { tabindex: "-1" }, t(sheets ? "import.sheets" : "import.errors")),
    sheets && field({ label: t("write.sheet") }, h("select", { onchange: ({ target }) => again({ query: { ...chosen.query, sheet: target.value } }) },
      ["", ...sheets].map((one) => h("option", { value: one }, one || "–")))),
    groups.length > 0 && notice("warn", h("p", { dir: "auto" }, t("import.unknown_groups", { count: groups.length, groups: groups.join(", ") })),
      h("button", { onclick: () => createGroups(groups).then(() => again({}), (problem) => toastError(problem)) }, t("import.create_groups", { count: groups.length }))),
    others.length > 0 && !sheets && [notice("bad", t("import.errors_text", { count: others.length })),
      grid(t("import.errors"), [t("import.row"), t("import.column"), t("import.error")], others.map((one) => [String(one.row ?? ""), one.column || "", [one.value && h("p", { dir: "auto" }, h("strong", {}, one.value)), reasonOf(one, chosen)]]))]);
}

/** Why a cell is wrong, in words for the kind of its column. */
function reasonOf(one, chosen) {
  const column = chosen.columns?.columns.find(({ heading }) => heading === one.column)?.column ?? "";
  const channel = `import_address.${column.slice("contacts.".length)}`;
  if (one.code === "ADDRESS_MALFORMED" && column.startsWith("contacts.") && has(channel)) return t(channel);
  return one.code === "COLUMN_UNKNOWN" && chosen.columns ? t("import.unmapped") : explainOne(one);
}

/** A group that somebody else has created meanwhile is there, too. */
async function createGroups(names) {
  for (const name of names) await api.post("/v1/groups", { id: idOf(name), title: name }).catch((error) => { if (error.code !== "GROUP_EXISTS") throw error; });
}

function changes(found, chosen, result, signal, form) {
  const count = found.created + found.updated;
  const run = submits((one) => importNow(one, chosen, result, signal, form));
  return h("section", { class: "panel" },
    h("h2", {}, t("import.changes", { file: chosen.name })),
    h("p", { role: "status" }, t("import.counts", { created: found.created, updated: found.updated, unchanged: found.unchanged })),
    found.changes.length > 0 && grid(t("import.changes", { file: chosen.name }), [t("import.row"), t("import.change")], found.changes.map((one) => [String(one.row), changeOf(one)])),
    found.more_changes > 0 && h("p", {}, t("import.more", { count: found.more_changes })),
    count ? h("form", { class: "actions", onsubmit: run }, h("button", { class: "primary" }, t(found.wrong.length ? "import.only_right" : "import.run", { count })), h("span", { role: "status" })) : !found.wrong.length && notice("info", t("import.nothing")));
}

/** Returns what a row changes: of a new person all its fields in one line, else each field with its old and new value. */
function changeOf({ id, created, fields }) {
  const said = (one) => [columnName(one.field), ": ", !created && [h("del", {}, one.old || t("import.empty")), " → "], h("ins", {}, one.new || t("import.empty"))];
  return [h("p", { class: "quiet small" }, created ? t("import.is_new") : id),
    h(created ? "p" : "div", { dir: "auto" }, fields.map((one, place) => (created ? [place > 0 && " · ", said(one)] : h("p", {}, said(one)))))];
}

async function importNow(own, chosen, result, signal, form) {
  const ending = new AbortController(), again = (changes) => checkAgain(result, chosen, changes, signal, form);
  followProgress(own.querySelector("[role=status]"), ending.signal);
  try {
    const done = await api.post("/v1/import", chosen.content, { query: { ...chosen.query, ...RIGHT_ROWS }, headers: TABLE, idempotencyKey: chosen.key });
    form.reset();
    form.elements.file.dispatchEvent(new Event("change"));
    paint(result, notice("good", t("import.done", { created: done.created, updated: done.updated, unchanged: done.unchanged })), wrongRows(done, chosen, again));
    if (signal.aborted) toast(t("import.done", done));
  } catch (error) {
    if (!isAboutRows(error)) throw error;
    paint(result, errors(error, chosen, again));
  } finally {
    ending.abort();
  }
}

/** Shows how far the import is, until the signal ends it. That it cannot be read is no reason to stop the import. */
async function followProgress(place, signal) {
  const timer = setInterval(async () => {
    const found = await api.get("/v1/import", {}, { signal, tries: 1 }).catch(() => null);
    if (found && found.rows && !signal.aborted) place.textContent = t("import.progress", { done: found.done, rows: found.rows });
  }, PROGRESS_PAUSE);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}
