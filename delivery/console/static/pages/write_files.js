/** The files of a message: chosen on this device, uploaded at once; the draft keeps their ids. */

import { field, h } from "../lib/dom.js";
import { number, t } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { explain } from "../lib/page.js";

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
