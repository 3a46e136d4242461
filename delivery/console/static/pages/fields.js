/** The own fields of people that have a type: add, change, make text again. */

import { field, h } from "../lib/dom.js";
import { t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, toastError, withStates } from "../lib/page.js";
import { ask, confirm } from "../lib/dialog.js";
import { choice, pathOf } from "../lib/directory.js";

const TYPES = ["text", "number", "date", "choice"];

export default {
  title: "page.fields",
  right: "people",
  render(root, parameters, { signal }) {
    const again = withStates(root, () => api.get("/v1/fields", {}, { signal }), ({ fields }) => {
      const add = h("button", { class: "primary", onclick: () => define({ type: "number", choices: [] }, again) }, t("fields.add"));
      return [
        h("h1", {}, t("page.fields")),
        h("p", { class: "quiet" }, t("fields.text")),
        fields.length ? h("div", { class: "actions" }, add) : empty({ title: t("fields.none"), action: add }),
        h("ul", { class: "plain-list" }, fields.map((one) => card(one, again))),
      ];
    });
  },
};

const card = (one, again) => h("li", { class: "panel", key: JSON.stringify(one) },
  h("h2", { class: "cut" }, one.name),
  h("p", {}, [word("field_type", one.type), ...one.choices].join(" · ")),
  h("div", { class: "actions" },
    h("a", { class: "button", href: `#/people?${new URLSearchParams({ where: `${one.name}=` })}` }, t("fields.without")),
    h("button", { onclick: () => define(one, again) }, t("person.edit")),
    h("button", { class: "danger", onclick: () => undefine(one, again) }, t("person.remove"))));

async function define({ name, type, choices }, again) {
  const done = await ask({
    title: name || t("fields.add"), action: t("person.save"),
    fields: [
      !name && field({ label: t("people.name") }, h("input", { name: "name", required: true, maxlength: 64, autocomplete: "off" })),
      field({ label: t("fields.type") }, choice("type", TYPES.map((one) => [one, word("field_type", one)]), type)),
      field({ label: t("fields.choices"), hint: t("fields.choices_hint") }, h("textarea", { name: "choices", rows: 4 }, choices.join("\n"))),
    ],
    submit: (given) => api.put(pathOf("fields", name || given.name), {
      type: given.type, choices: given.type === "choice" ? given.choices.split("\n").map((one) => one.trim()).filter(Boolean) : [],
    }),
  });
  if (done) again();
}

async function undefine({ name }, again) {
  if (!await confirm({ title: t("fields.remove_title", { name }), text: t("fields.remove_text"), action: t("person.remove"), danger: true })) return;
  try {
    await api.del(pathOf("fields", name));
    again();
  } catch (error) {
    toastError(error);
  }
}
