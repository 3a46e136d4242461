/** All people, with a search by what the directory can look up: name, e-mail address, contact, group, role. */

import { field, h, paint } from "../lib/dom.js";
import { t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { tag } from "../lib/page.js";
import { table } from "../lib/table.js";
import { ask } from "../lib/dialog.js";
import { channelNames, channelOptions, choice, idOf, nameOf, pageOf, roleOptions, titleOf } from "../lib/directory.js";

const MOST_GROUPS = 200;
/** More groups than this are not offered as a list: the number of the group is typed. */
const SHORTEST = 3;
/** The API refuses shorter e-mail addresses. */

export default {
  title: "page.people",
  right: "people",
  async render(root, parameters, context) {
    const { signal } = context;
    const [channels, groups] = await Promise.all([channelNames(signal), api.get("/v1/groups", { limit: MOST_GROUPS }, { signal })]);
    const place = h("div");
    const add = () => addPerson(context);
    paint(root, h("h1", {}, t("page.people")),
      h("div", { class: "actions" },
        h("button", { class: "primary", onclick: add }, t("people.add")),
        h("a", { class: "button", href: "#/import" }, t("page.import")),
        h("a", { class: "button", href: "#/fields" }, t("page.fields"))),
      place);
    table(place, {
      label: t("page.people"), context, id: (row) => String(row.id), href: (row) => pageOf("person", row.id),
      filters: [
        { name: "name", label: t("people.by_name"), type: "search" },
        { name: "email", label: t("people.whole_email") },
        { name: "address", label: t("people.whole_address") },
        groups.next ? { name: "group", label: t("people.group_id") } : { name: "group", label: t("people.group"), options: [["", t("people.any")], ...groups.groups.map((one) => [String(one.id), titleOf(one)])] },
        { name: "role", label: t("people.role"), options: roleOptions(t("people.any")) },
        { name: "where", label: t("page.fields"), example: t("people.where_hint") },
      ],
      columns: [
        { title: t("people.name"), width: "2fr", name: nameOf, cell: (row) => [nameOf(row), row.blocked && [" ", tag("warn", t("people.blocked"))]] },
        { title: t("people.id"), width: "9.5rem", cell: (row) => String(row.id) },
        { title: t("people.email"), width: "2fr", cell: (row) => row.email || "" },
        { title: t("people.role"), width: "9.5rem", cell: (row) => (row.role ? word("role", row.role) : "") },
        { title: t("people.contacts"), width: "2fr", cell: (row) => Object.keys(row.contacts).map((one) => word("channel", one)).join(", ") },
      ],
      load: (query) => load(query, channels),
      whenEmpty: { title: t("people.none"), text: t("people.none_text"), action: h("a", { class: "button primary", href: "#/import" }, t("page.import")) },
    });
  },
};

async function load({ cursor, signal, name, email, address, group, role, where }, channels) {
  if (email && email.length < SHORTEST) return { rows: [], next: null };
  const find = (contact) => api.get("/v1/users", { name, email, contact, group, role, where, sort: "name", cursor, limit: 50 }, { signal });
  const pages = await Promise.all(address ? channels.map((one) => find(`${one}:${address}`)) : [find()]);
  return { rows: [...new Map(pages.flatMap((one) => one.users).map((one) => [one.id, one])).values()], next: pages[0].next };
}


async function addPerson(context) {
  const channels = await channelNames(context.signal);
  const created = await ask({
    title: t("people.add"), action: t("people.add"),
    fields: [
      field({ label: t("people.name") }, h("input", { name: "name", autocomplete: "off" })),
      field({ label: t("people.email") }, h("input", { name: "email", type: "email", autocomplete: "off" })),
      field({ label: t("people.role") }, choice("role", roleOptions(t("people.no_role")))),
      field({ label: t("people.channel") }, choice("channel", channelOptions(channels))),
      field({ label: t("people.address"), hint: t("people.address_hint") }, h("input", { name: "address", autocomplete: "off" })),
      field({ label: t("people.id"), hint: t("people.new_id_hint") }, h("input", { name: "id", maxlength: 64, autocomplete: "off" })),
    ],
    submit: ({ id, name, email, role, channel, address }) => api.post("/v1/users", {
      ...(id && { id: idOf(id) }), name: name || null, email: email || null, role: role || null, contacts: address ? { [channel]: [address] } : {},
    }),
  });
  if (created) context.go(`person/${encodeURIComponent(created.id)}`);
}
