/** The files of a message and its table of recipients: chosen on this device, uploaded at once; the draft keeps their ids. */

import { field, h } from "../lib/dom.js";
import { number, t } from "../lib/words.js";
import { api, randomKey, ApiError } from "../lib/api.js";
import { explain, explainOne, notice } from "../lib/page.js";

const LONGEST_NAME = 255;
const REFUSALS = { BODY_TOO_LARGE: "write.file_too_large", FILES_FULL: "write.files_full", FILE_EMPTY: "write.file_empty", FILE_NOT_FOUND: "write.file_gone" };

/** Returns the sentence about an error of a message that may have files. */
export function explainFile(error) {
  const known = REFUSALS[error.errors?.[0]?.code || error.code];
  return known ? t(known) : explain(error);
}

const pictures = new Map();

/** Returns a small view of a picture that was chosen here since the page was loaded; nothing for any other file. */
export const pictureOf = ({ id, file = id, name }) => (pictures.has(file) ? h("img", { class: "picture", src: pictures.get(file), alt: name || "" }) : null);

export class Attachments {
  /** `writing` has the draft, keeps its changes and paints the form. `coming`: files that are not uploaded yet, or were refused. */
  constructor(writing) {
    Object.assign(this, { writing, coming: [] });
  }

  get areComing() {
    return this.coming.some((one) => !one.problem);
  }

  forget() {
    for (const one of this.coming) one.ending.abort();
    this.coming = [];
  }

  draw() {
    const { uploads } = this.writing.draft;
    return h("div", { key: "attachments" },
      field({ label: t("write.uploads"), hint: t("write.uploads_hint"), pick: t("field.pick_files") }, h("input", { id: "uploads", type: "file", multiple: true, onchange: (event) => this.choose(event.target) })),
      uploads.length + this.coming.length > 0 && h("ul", { class: "plain-list uploads", "aria-label": t("write.uploads") },
        uploads.map((one) => this.row(one, () => this.writing.changed({ uploads: this.others(one) }))),
        this.coming.map((one) => this.row(one, () => { one.ending.abort(); this.drop(one); }, one.problem
          ? h("span", { class: "field-error", role: "alert" }, explainFile(one.problem)) : h("span", { class: "quiet", role: "status" }, t("write.uploading"))))));
  }

  row(one, remove, state) {
    return h("li", { key: one.id }, pictureOf(one), h("span", { class: "upload-name", dir: "auto" }, one.name || one.id),
      one.bytes !== undefined && h("span", { class: "quiet small" }, sizeOf(one.bytes)),
      h("button", { type: "button", class: "plain", "aria-label": t("write.remove", { name: one.name || one.id }), onclick: () => { remove(); this.show(); } }, "×"), state);
  }

  others({ id }) {
    return this.writing.draft.uploads.filter((one) => one.id !== id);
  }

  drop(one) {
    this.coming = this.coming.filter((other) => other !== one);
  }

  show() {
    if (!this.writing.isChecking) this.writing.paintForm();
  }

  /** Uploads one after the other, so that a slow network finishes some of them. */
  async choose(input) {
    const chosen = [...input.files].map((file) => ({ id: randomKey(), file, name: file.name, bytes: file.size, ending: new AbortController() }));
    input.value = "";
    this.coming = [...this.coming.filter((one) => !one.problem), ...chosen];
    this.show();
    for (const one of chosen) if (!one.ending.signal.aborted) await this.upload(one);
  }

  async upload(one) {
    const leave = () => one.ending.abort(), { signal } = this.writing.context;
    signal.addEventListener("abort", leave);
    try {
      const query = { name: one.name.slice(-LONGEST_NAME) };
      const { id, name, type, bytes } = await api.post("/v1/files", one.file, { query, signal: one.ending.signal, isUpload: true });
      this.drop(one);
      if (type === "photo" && !pictures.has(id)) pictures.set(id, URL.createObjectURL(one.file));
      this.writing.changed({ uploads: [...this.others({ id }), { id, name, type, bytes }] });
    } catch (error) {
      if (error.name !== "AbortError") one.problem = error;
    } finally {
      signal.removeEventListener("abort", leave);
    }
    if (!one.ending.signal.aborted) this.show();
  }
}

const MEGA = 1_000_000;
const sizeOf = (bytes) => number(bytes >= MEGA ? bytes / MEGA : Math.ceil(bytes / 1000), { style: "unit", unit: bytes >= MEGA ? "megabyte" : "kilobyte", maximumFractionDigits: 1 });

// a table of recipients: its columns can be put into the text as {{marks}}

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
