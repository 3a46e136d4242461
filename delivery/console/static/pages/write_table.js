/** A table of recipients: chosen on this device, uploaded at once; its columns can be put into the text as {{marks}}. */

import { field, h } from "../lib/dom.js";
import { t } from "../lib/words.js";
import { ApiError, api } from "../lib/api.js";
import { explainOne, notice } from "../lib/page.js";
import { explainFile } from "./write_files.js";

const LONGEST_NAME = 255;
const MOST_NAMED = 10;
const MOST_MARKS = 20;

export class RecipientTable {
  /** `writing` has the draft, keeps its changes and paints the form. `problem`: why the last file is no table; `refused`: that file. */
  constructor(writing) {
    Object.assign(this, { writing, problem: null, refused: null, isComing: false });
  }

  forget() {
    Object.assign(this, { problem: null, refused: null });
  }

  draw() {
    return h("div", { key: "table" },
      field({ label: t("write.table"), hint: t("write.table_hint"), pick: t("field.pick") }, h("input", { id: "table", type: "file", accept: ".csv,.xlsx,text/csv", onchange: (event) => this.choose(event.target) })),
      this.isComing && h("p", { class: "quiet", role: "status" }, t("write.uploading")),
      this.problem && [faults(this.problem), this.sheets()]);
  }

  /** The sheets of a workbook of which one is to be chosen. */
  sheets() {
    const unclear = this.problem.errors?.find((one) => one.code === "SHEET_UNCLEAR");
    if (!unclear) return undefined;
    const names = unclear.value.split("\n");
    return field({ label: t("write.sheet") }, h("select", { id: "sheet", onchange: (event) => this.look({ ...this.refused, sheet: event.target.value }) },
      ["", ...names].map((one) => h("option", { value: one }, one || "…"))));
  }

  async choose(input) {
    const [file] = input.files;
    input.value = "";
    if (!file) return;
    await this.trying(async () => {
      const query = { name: file.name.slice(-LONGEST_NAME) };
      const { id, name } = await api.post("/v1/files", file, { query, signal: this.writing.context.signal, isUpload: true });
      await this.read({ id, name });
    });
  }

  look(table) {
    return this.trying(() => this.read(table));
  }

  async read(table) {
    this.refused = table;
    const { columns, rows } = await api.get(`/v1/files/${table.id}/table`, table.sheet ? { sheet: table.sheet } : {}, { signal: this.writing.context.signal });
    this.forget();
    this.writing.changed({ table: { ...table, rows, columns: columns.map((one) => one.name) } });
  }

  async trying(work) {
    Object.assign(this, { isComing: true, problem: null });
    this.show();
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.problem = error;
      this.writing.changed({ table: null });
    } finally {
      this.isComing = false;
    }
    this.show();
  }

  show() {
    if (!this.writing.isChecking) this.writing.paintForm();
  }

  /** What can be put into the text for each person. */
  marks() {
    const { table } = this.writing.draft;
    const names = table ? table.columns.filter((one) => !/[{}|]/.test(one)) : [t("write.first_name"), t("write.full_name")];
    return h("div", { class: "actions", role: "toolbar", "aria-label": t("write.insert") }, h("span", { class: "quiet small" }, t("write.insert")),
      names.slice(0, MOST_MARKS).map((one) => h("button", { type: "button", onclick: () => this.writing.insert(`{{${one}}}`) }, one)),
      names.length > MOST_MARKS && h("span", { class: "quiet small" }, t("write.more_marks", { count: names.length - MOST_MARKS })));
  }
}

/** Returns what is wrong with a message or its table: a sentence, and the first rows and people that it concerns. */
export function faults(error) {
  const listed = error instanceof ApiError ? error.errors.filter((one) => one.row || one.value) : [];
  if (!listed.length) return notice("bad", explainFile(error));
  return notice("bad", t("write.faults", { count: listed.length }),
    h("ul", {}, listed.slice(0, MOST_NAMED).map((one) => h("li", { dir: "auto" }, fault(one)))),
    listed.length > MOST_NAMED && h("p", {}, t("write.more_faults", { count: listed.length - MOST_NAMED })));
}

function fault({ code, message, row, column, value }) {
  if (code === "VALUE_MISSING") return row ? t("write.value_missing_in_row", { row, field: column, name: value }) : t("write.value_missing", { field: column, name: value });
  const known = { row, column, value: (value || "").split("\n").join(", "), what: explainOne({ code, message }) };
  if (!row) return t("write.fault_of_person", known);
  const place = [t("write.fault_row", known), column && t("write.fault_column", known), value && t("write.fault_value", known)];
  return t("write.fault_at", { place: place.filter(Boolean).join(", "), what: known.what });
}
