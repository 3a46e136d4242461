/** The forms that people have filled in for the bot; the answers to one as a table, and as a file. */

import { h, paint } from "../lib/dom.js";
import { moment, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { toast, withStates } from "../lib/page.js";
import { table } from "../lib/table.js";
import { open } from "../lib/dialog.js";
import { remembered } from "./runs.js";

const MOST_COLUMNS = 6;
// More questions than these stand in one column.

export default {
  title: "page.forms",
  right: "inspect",
  render(root, [name], context) {
    return name ? showForm(root, name, context) : showForms(root, context);
  },
};

const path = (name) => `/v1/forms/${encodeURIComponent(name)}`;

function showForms(root, context) {
  const place = h("div");
  paint(root, h("h1", {}, t("page.forms")), place);
  table(place, {
    label: t("page.forms"), context, id: (name) => name, href: (name) => `#/forms/${encodeURIComponent(name)}`,
    columns: [{ title: t("forms.name"), cell: (name) => name }],
    load: async ({ signal }) => ({ rows: (await api.get("/v1/forms", {}, { signal })).forms, next: null }),
    whenEmpty: { title: t("forms.none"), text: t("forms.none_text") },
  });
}

function showForm(root, name, context) {
  context.title(name);
  const rows = h("div");
  const load = (cursor, signal) => api.get(path(name), { cursor, limit: 100 }, { signal });
  withStates(root, () => load(null, context.signal), ({ columns }) => {
    table(rows, {
      label: name, context, id: (row) => `${row.person} ${row.answers.row || ""}`,
      columns: [
        { title: t("runs.person"), width: "1.5fr", cell: (row) => h("button", { class: "plain cut", title: row.person, onclick: () => showMemory(row, context.signal) }, row.name || row.person) },
        { title: t("forms.last"), width: "10rem", cell: (row) => moment(row.last) },
        ...(columns.length > MOST_COLUMNS ? [{ title: t("forms.answers"), width: "4fr", cell: (row) => all(row) }]
          : columns.map((one) => ({ title: one, cell: (row) => h("span", { class: "cut", dir: "auto", title: text(row.answers[one]) }, text(row.answers[one])) }))),
      ],
      load: async ({ cursor, signal }) => {
        const page = await load(cursor, signal);
        return { rows: page.rows, next: page.next };
      },
    });
    return [
      h("h1", {}, name),
      h("div", { class: "actions" },
        h("a", { class: "button", href: `${path(name)}/answers.csv?excel`, download: `${name}.csv` }, t("actions.csv")),
        h("a", { class: "button", href: "#/forms" }, t("page.forms"))),
      rows,
    ];
  });
}

/** Shows what the bot remembers of the person of a row, also from other forms. */
async function showMemory({ person, name }, signal) {
  try {
    const found = await remembered(person, signal), title = t("runs.remembered");
    await open(name || person, (close) => [
      h("p", { class: "quiet" }, title), h("pre", { tabindex: 0, "aria-label": title }, JSON.stringify(found, null, 2)),
      h("div", { class: "actions" }, h("button", { onclick: () => close() }, t("action.back"))),
    ]);
  } catch (error) {
    if (error.name !== "AbortError") toast(error.message, "bad");
  }
}

const text = (value) => [value ?? ""].flat().join(", ") || "–";

const all = ({ answers }) => Object.entries(answers).map(([name, value]) => h("div", {}, h("span", { class: "quiet" }, `${name}: `), text(value)));
