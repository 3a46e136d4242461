/** Templates of the page that writes a message: use one, save the message as one, delete one. */

import { field, h } from "../lib/dom.js";
import { t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { toast, toastError } from "../lib/page.js";
import { ask, confirm } from "../lib/dialog.js";
import { bodyOf, contentOf, hasContent } from "../lib/draft.js";

export async function readTemplates(writing) {
  writing.templates = (await api.get("/v1/templates", {}, { signal: writing.context.signal })).templates;
}

/** Returns the templates with their buttons, closed at first. */
export const drawTemplates = (writing) => h("details", { key: "templates" }, h("summary", {}, t("templates.title")),
  h("ul", { class: "plain-list" }, writing.templates.map((one) => h("li", { class: "line", key: one.id },
    h("button", { type: "button", class: "plain", onclick: () => use(writing, one) }, one.title),
    (!one.shared || writing.me.kind === "key") && h("button", { type: "button", class: "plain", "aria-label": t("templates.delete_one", one), onclick: () => remove(writing, one) }, t("templates.delete"))))),
  h("div", { class: "actions" }, h("button", { type: "button", onclick: () => save(writing) }, t("templates.save"))));

function use(writing, { message }) {
  const channels = Object.fromEntries((message.channels || []).map((one) => [one, {}]));
  writing.paintForm(); // what was typed and not yet painted is taken back, too
  writing.changed(contentOf({ text: "", strategy: "all", ...message, channels }));
  writing.paintForm();
}

async function save(writing) {
  if (!hasContent(writing.draft)) return toast(t("templates.empty"), "bad");
  const { text, texts, content, channels, strategy, answer } = bodyOf({ ...writing.draft, until: "" }, writing.me);
  const saved = await ask({
    title: t("templates.save"), action: t("templates.save"),
    fields: [field({ label: t("templates.name") }, h("input", { name: "title", required: true, maxlength: 128, autocomplete: "off" }))],
    submit: ({ title }) => api.post("/v1/templates", { title, message: { text, texts, content, channels, strategy, answer } }),
  });
  if (saved) await again(writing);
  return undefined;
}

async function remove(writing, one) {
  if (!await confirm({ title: t("templates.delete_one", one), action: t("templates.delete"), danger: true })) return;
  await api.del(`/v1/templates/${encodeURIComponent(one.id)}`).catch(toastError);
  await again(writing);
}

async function again(writing) {
  await readTemplates(writing);
  writing.paintForm();
}
