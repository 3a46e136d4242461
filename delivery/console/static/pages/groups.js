/** All groups of the directory, and the supergroups with their groups. */

import { field, h, paint } from "../lib/dom.js";
import { number, t, word } from "../lib/words.js";
import { api, inOneAction } from "../lib/api.js";
import { tag, toast, toastError } from "../lib/page.js";
import { table } from "../lib/table.js";
import { ask, bulk, confirm, eachOf } from "../lib/dialog.js";
import { idOf, pageOf, titleOf, nameOf, pathOf } from "../lib/directory.js";
import { pickGroups, pickPeople } from "../lib/pick.js";

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

// one of them

/** One group: its title, members and owners. */
export const group = {
  title: "page.group",
  right: "people",
  async render(root, [id], context) {
    const group = await api.get(pathOf("groups", id), {}, { signal: context.signal });
    const head = h("div"), people = h("div"), owners = h("div");
    paint(root, head, h("h2", {}, t("group.members")), people, h("section", { class: "panel" }, h("h2", {}, t("group.owners")), owners));
    const list = members(people, group, context);
    drawHead(head, group, context, list);
    drawOwners(owners, group, context.signal, null);
  },
};

function drawHead(head, group, context, list) {
  context.title(titleOf(group));
  paint(head,
    h("h1", { tabindex: "-1" }, titleOf(group)),
    h("p", { class: "quiet" }, t("group.id", { id: String(group.id) }), " ", group.virtual && tag("", t("groups.virtual_tag"))),
    h("div", { class: "actions", key: `actions ${group.title}` },
      h("button", { class: "primary", onclick: () => addMembers(group, list) }, t("group.add_member")),
      h("button", { onclick: () => rename(group, (changed) => drawHead(head, changed, context, list)) }, t("group.rename")),
      h("button", { class: "danger", onclick: () => remove(group, context) }, t("group.delete"))));
}

async function rename(group, changed) {
  const answer = await ask({
    title: t("group.rename"), action: t("person.save"),
    fields: [field({ label: t("groups.title") }, h("input", { name: "title", value: group.title || "", autocomplete: "off" }))],
    submit: ({ title }) => api.patch(pathOf("groups", group.id), { title: title || null }),
  });
  if (answer) changed(answer);
}

async function remove(group, context) {
  if (!await confirm({ title: t("group.delete_title", { title: titleOf(group) }), text: t("group.delete_text"), action: t("group.delete"), danger: true })) return;
  try {
    await api.del(pathOf("groups", group.id));
    context.go("groups", t("group.deleted", { title: titleOf(group) }));
  } catch (error) {
    toastError(error);
  }
}

// members

const members = (place, group, context) => table(place, {
  label: t("group.members"), context, filters: [{ name: "name", label: t("people.by_name"), type: "search" }], id: (row) => String(row.id), href: (row) => pageOf("person", row.id),
  columns: [
    { title: t("people.name"), width: "2fr", name: nameOf, cell: nameOf },
    { title: t("people.id"), width: "8rem", cell: (row) => String(row.id) },
    { title: t("people.role"), width: "8rem", cell: (row) => (row.role ? word("role", row.role) : "") },
    { title: t("people.contacts"), width: "2fr", cell: (row) => Object.keys(row.contacts).map((one) => word("channel", one)).join(", ") },
  ],
  load: async ({ cursor, signal, name }) => {
    const page = await api.get(`${pathOf("groups", group.id)}/members`, { name, sort: "name", cursor, limit: 100 }, { signal });
    return { rows: page.users, next: page.next };
  },
  actions: [{ title: t("group.move"), run: (ids) => move(group, ids) }, { title: t("group.take_out"), danger: true, run: (ids) => takeOut(group, ids) }],
  whenEmpty: { title: t("group.no_members"), text: t("group.no_members_text") },
});

async function takeOut(group, ids) {
  return bulk({
    title: t("group.take_out_title", { count: ids.length, title: titleOf(group) }), text: t("group.take_out_text"), action: t("group.take_out"), count: ids.length, danger: true,
    changed: (count) => t("group.taken_out", { count }), unchanged: (count) => t("group.not_taken_out", { count }),
    step: eachOf(ids, (id, options) => api.del(pathOf("groups", group.id, "members", id), {}, options)),
  });
}

/** Each is in the new group before it leaves this one, so that whatever happens nobody is in neither. */
async function move(group, ids) {
  const target = await pickGroups({
    title: t("group.move_title", { count: ids.length }), action: t("group.move"), isOne: true, without: [String(group.id)],
    submit: async ([other]) => {
      const options = inOneAction();
      for (const id of ids) {
        await api.put(pathOf("groups", other.id, "members", id), undefined, options);
        await api.del(pathOf("groups", group.id, "members", id), {}, options);
      }
      return other;
    },
  });
  if (target) toast(t("group.moved", { count: ids.length, title: titleOf(target) }));
  return Boolean(target);
}

async function addMembers(group, list) {
  const added = await pickPeople({
    title: t("group.add_member"), action: t("group.add_member"),
    submit: async (people) => {
      const options = inOneAction();
      for (const user of people) await api.put(pathOf("groups", group.id, "members", user.id), undefined, options);
      return people;
    },
  });
  if (!added) return;
  toast(t("group.added", { count: added.length, name: added.map(nameOf).join(", ") }));
  list.reload();
}

// owners

/** The API lists what a person owns, not who owns a group: the owners come from the export, when they are asked for. */
async function ownersOf(group, signal) {
  const text = await api.get("/v1/export/ownerships", {}, { signal });
  const rows = text.replace(/^\uFEFF/, "").split(/\r?\n/).map(cellsOf);
  return rows.filter(([, kind, id]) => kind === "group" && id === String(group.id)).map(([user]) => user);
}

/** Returns the cells of a line of CSV. */
const cellsOf = (line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain);

function drawOwners(place, group, signal, owners) {
  const again = async () => {
    try {
      drawOwners(place, group, signal, await ownersOf(group, signal));
    } catch (error) {
      toastError(error);
    }
  };
  paint(place,
    h("p", {}, t(owners && !owners.length ? "group.no_owners" : "group.owners_text")),
    h("ul", { class: "plain-list" }, (owners || []).map((user) => h("li", { class: "line", key: user },
      h("a", { href: pageOf("person", user) }, user),
      h("button", { class: "plain", "aria-label": t("group.withdraw_title", { user }), onclick: () => withdraw(group, user, again) }, t("person.withdraw"))))),
    h("div", { class: "actions" },
      !owners && h("button", { key: "show", onclick: again }, t("group.show_owners")),
      h("button", { key: "add", onclick: () => addOwner(group, again) }, t("group.add_owner"))));
}

async function addOwner(group, again) {
  const added = await pickPeople({
    title: t("group.add_owner"), action: t("group.add_owner"), isOne: true,
    submit: ([user]) => api.put(pathOf("ownerships", user.id, "group", group.id)),
  });
  if (added) again();
}

async function withdraw(group, user, again) {
  if (!await confirm({ title: t("group.withdraw_title", { user }), text: t("person.withdraw_text"), action: t("person.withdraw"), danger: true })) return;
  try {
    await api.del(pathOf("ownerships", user, "group", group.id));
    again();
  } catch (error) {
    toastError(error);
  }
}
