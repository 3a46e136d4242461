/** All groups of the directory, and the supergroups with their groups. */

import { field, h, paint } from "../lib/dom.js";
import { number, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { tag } from "../lib/page.js";
import { table } from "../lib/table.js";
import { ask } from "../lib/dialog.js";
import { idOf, pageOf, titleOf } from "../lib/directory.js";

export default {
  title: "page.groups",
  right: "people",
  render(root, parameters, context) {
    const place = h("div");
    const add = () => addGroup(context);
    paint(root, h("h1", {}, t("page.groups")),
      h("div", { class: "actions" }, h("button", { class: "primary", onclick: add }, t("groups.add"))), place);
    table(place, {
      label: t("page.groups"), context, id: (row) => String(row.id), href: (row) => !row.groups && pageOf("group", row.id),
      filters: [{ name: "kind", label: t("groups.virtual"), options: [["", t("page.groups")], ["supergroups", t("groups.supergroups")]] }],
      columns: [
        { title: t("groups.title"), width: "3fr", name: titleOf, cell: titleOf },
        { title: t("groups.id"), width: "10rem", cell: (row) => String(row.id) },
        { title: t("groups.size"), width: "7rem", class: "number", cell: (row) => number(row.size) },
        { title: t("groups.virtual"), width: "2fr", cell: (row) => (row.groups ? row.groups.map((one) => [h("a", { href: pageOf("group", one) }, String(one)), " "]) : row.virtual && tag("", t("groups.virtual_tag"))) },
      ],
      load: async ({ cursor, signal, kind = "groups" }) => {
        const page = await api.get(`/v1/${kind}`, { cursor, limit: 100 }, { signal });
        return { rows: page[kind], next: page.next };
      },
      whenEmpty: { title: t("groups.none"), text: t("groups.none_text"), action: h("button", { class: "primary", onclick: add }, t("groups.add")) },
    });
  },
};

async function addGroup(context) {
  const created = await ask({
    title: t("groups.add"), action: t("groups.add"),
    fields: [
      field({ label: t("groups.id"), hint: t("people.id_hint") }, h("input", { name: "id", required: true, maxlength: 64, autocomplete: "off" })),
      field({ label: t("groups.title") }, h("input", { name: "title", autocomplete: "off" })),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "virtual" }), t("groups.virtual_label")),
    ],
    submit: ({ id, title, virtual }) => api.post("/v1/groups", { id: idOf(id), title: title || null, virtual }),
  });
  if (created) context.go(`group/${encodeURIComponent(created.id)}`);
}
