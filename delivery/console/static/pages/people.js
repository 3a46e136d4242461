/** All people, with a search by what the directory can look up: name, e-mail address, contact, group, role. */

import { field, h, paint } from "../lib/dom.js";
import { t, word, LANGUAGES, dayName, fullMoment, moment, number } from "../lib/words.js";
import { api, inOneAction } from "../lib/api.js";
import { tag, fact, notice, statusTag, textOf, toast, toastError, withStates } from "../lib/page.js";
import { table } from "../lib/table.js";
import { ask, confirm } from "../lib/dialog.js";
import { channelNames, channelOptions, choice, idOf, nameOf, pageOf, roleOptions, titleOf, pathOf } from "../lib/directory.js";
import { personalKeys } from "./keys.js";
import { whyNot } from "./messages.js";
import { pickGroups, pickPeople } from "../lib/pick.js";

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

// one of them

/**
 * One person: fields, contacts, guardians and children, groups, what it may receive and write to, what was sent to it. It is
 * edited, blocked, merged with another, deleted.
 */
export const person = {
  title: "page.person",
  right: "people",
  render(root, [id], context) {
    const { signal } = context;
    const load = () => Promise.all([
      api.get(pathOf("users", id), {}, { signal }).then(async (user) => [user, await Promise.all(guardiansOf(user).map((one) => api.get(pathOf("users", one), {}, { signal })))]),
      api.get("/v1/users", { guardian: id }, { signal }),
      api.get("/v1/ownerships", { user: id }, { signal }),
      channelNames(signal),
      api.get(`${pathOf("users", id)}/groups`, {}, { signal }),
      api.get("/v1/fields", {}, { signal }),
      api.get(`${pathOf("users", id)}/keys`, {}, { signal }),
    ]);
    const head = h("div"), programs = h("section"), sent = h("div");
    paint(root, head, programs, sent);
    const again = withStates(head, load, ([[user, guardians], { users: children }, { ownerships }, channels, { groups }, { fields }, { keys }]) => {
      context.title(nameOf(user));
      if (!sent.hasChildNodes()) showSent(sent, id, context);
      if (keys.length && !programs.hasChildNodes()) showKeys(programs, id, context);
      // `paint` keeps the handlers of an element that is alike, so what was changed is a new element.
      return h("div", { key: JSON.stringify([user, guardians, children, ownerships, groups, fields]) },
        h("h1", { tabindex: "-1" }, nameOf(user)),
        user.blocked && notice("warn", t("person.blocked")),
        facts(user, fields),
        h("div", { class: "actions" },
          h("button", { class: "primary", onclick: () => edit(user, channels, fields, again) }, t("person.edit")),
          context.me.kind !== "person" && context.me.rights.includes("read") && h("a", { class: "button", href: `#/messages?${new URLSearchParams({ sender: user.id })}` }, t("person.sent_by")),
          h("button", { onclick: () => block(user, again) }, t(user.blocked ? "person.unblock" : "person.block")),
          h("button", { onclick: () => merge(user, again) }, t("person.merge")),
          h("button", { class: "danger", onclick: () => remove(user, context) }, t("person.delete"))),
        contacts(user, channels, again),
        family(user, guardians, children, again),
        h("section", { class: "panel" }, h("h2", {}, t("page.groups")),
          groups.length ? h("ul", { class: "chips" }, groups.map((one) => h("li", {}, h("a", { class: "button chip", href: pageOf("group", one.id) }, titleOf(one))))) : h("p", {}, t("person.no_group")),
          h("div", { class: "actions" }, h("button", { onclick: () => addToGroups(user, groups, again) }, t("person.add_to_groups")))),
        owned(user, ownerships, again));
    });
  },
};

const reachable = (user) => (user.blocked ? [] : Object.keys(user.contacts).filter((one) => !user.opt_out.includes(one)));

const facts = (user, fields) => h("dl", { class: "facts" },
  fact("person.receives", reachable(user).map((one) => word("channel", one)).join(", ") || t("person.receives_nothing")),
  fact("people.id", String(user.id)),
  fact("people.email", user.email),
  fact("people.role", user.role && word("role", user.role)),
  fact("person.locale", LANGUAGES[user.locale] || t("person.no_locale")),
  user.hours && fact("person.hours", user.hours),
  fact("person.opt_out", user.opt_out.map((one) => word("channel", one)).join(", ")),
  Object.entries(user.fields || {}).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, shown(value, fields.find((one) => one.name === name)?.type)))));

/** Returns the value of an own field as it is read: 4,5 and 1 сентября 2010 г. */
function shown(value, type) {
  if (type === "number" && !Number.isNaN(Number(value))) return number(Number(value), { maximumFractionDigits: 18 });
  return type === "date" && IS_DATE.test(value) ? dayName(value) : value;
}

const IS_DATE = /^\d{4}-\d\d-\d\d$/;

/** Returns the inputs of the own fields that have a type or a value; a value of another type is shown as it is. */
const inputs = (user, fields) => [...fields, ...Object.keys(user.fields || {}).filter((name) => !fields.some((one) => one.name === name)).map((name) => ({ name }))].map(({ name, type, choices }) => {
  const value = user.fields?.[name] ?? "", about = { name: `fields.${name}`, value, autocomplete: "off" };
  if (type === "choice") return field({ label: name }, choice(about.name, [...new Set(["", value, ...choices])].map((one) => [one, one || "–"]), value));
  if (type === "date" && (!value || IS_DATE.test(value))) return field({ label: name }, h("input", { ...about, type: "date" }));
  return field({ label: name }, h("input", { ...about, inputmode: type === "number" ? "decimal" : null }));
});

/** Does something and shows the person anew; says why if it did not work. */
async function attempt(work, done, again) {
  try {
    await work();
    toast(done);
    again(done);
  } catch (error) {
    toastError(error);
  }
}

async function edit(user, channels, fields, again) {
  const offered = [...new Set([...channels, ...user.opt_out])];
  const changed = await ask({
    title: t("person.edit_title", { name: nameOf(user) }), action: t("person.save"),
    fields: [
      field({ label: t("people.name") }, h("input", { name: "name", value: user.name || "", autocomplete: "off" })),
      field({ label: t("people.email") }, h("input", { name: "email", type: "email", value: user.email || "", autocomplete: "off" })),
      field({ label: t("people.role") }, choice("role", roleOptions(t("people.no_role")), user.role || "")),
      field({ label: t("person.locale") }, choice("locale", [["", t("person.no_locale")], ...Object.entries(LANGUAGES)], user.locale || "")),
      inputs(user, fields),
      h("fieldset", {}, h("legend", {}, t("person.opt_out")), offered.map((one) => h("label", { class: "check" },
        h("input", { type: "checkbox", name: `no ${one}`, checked: user.opt_out.includes(one) }), word("channel", one)))),
    ],
    submit: ({ name, email, role, locale, ...ticks }) => api.patch(pathOf("users", user.id), {
      name: name || null, email: email || null, role: role || null, locale: locale || null, opt_out: offered.filter((one) => ticks[`no ${one}`]),
      fields: Object.fromEntries(Object.entries(ticks).filter(([key]) => key.startsWith("fields.")).map(([key, value]) => [key.slice("fields.".length), value])),
    }),
  });
  if (!changed) return;
  toast(t("person.saved"));
  again();
}

async function block(user, again) {
  const { blocked } = user;
  const title = t(blocked ? "person.unblock_title" : "person.block_title", { name: nameOf(user) });
  if (!await confirm({ title, text: t(blocked ? "person.unblock_text" : "person.block_text"), action: t(blocked ? "person.unblock" : "person.block"), danger: !blocked })) return;
  await attempt(() => api.patch(pathOf("users", user.id), { blocked: !blocked }), t("person.saved"), again);
}

/** Asks for the other person, shows what would become of the two, and merges them. */
async function merge(user, again) {
  const path = `${pathOf("users", user.id)}:merge`;
  const shown = await pickPeople({
    title: t("person.merge_title", { name: nameOf(user) }), text: t("person.merge_text"), action: t("person.merge_show"), label: t("person.merge_other"), isOne: true,
    submit: ([other]) => api.post(path, { other: other.id }, { query: { dry_run: "true" } }),
  });
  if (!shown) return;
  const { other } = shown;
  const text = h("dl", { class: "facts" },
    fact("person.merge_deleted", `${nameOf(other)} (${other.id})`),
    fact("people.name", nameOf(shown.user)),
    fact("people.email", shown.user.email),
    fact("people.role", shown.user.role && word("role", shown.user.role)),
    fact("people.contacts", Object.entries(shown.user.contacts).map(([channel, some]) => `${word("channel", channel)}: ${some.join(", ")}`).join("; ")),
    fact("person.merge_groups", shown.groups.join(", ")),
    fact("person.merge_lost", Object.values(shown.lost).join(", ")),
    fact("person.merge_jobs", shown.jobs.join(", ")));
  if (!await confirm({ title: t("person.merge_title", { name: nameOf(user) }), text, action: t("person.merge"), danger: true })) return;
  await attempt(() => api.post(path, { other: other.id }), t("person.merged"), again);
}

async function remove(user, context) {
  const isSure = await confirm({ title: t("person.delete_title", { name: nameOf(user) }), text: t("person.delete_text"), action: t("person.delete"), danger: true });
  if (isSure) await attempt(() => api.del(pathOf("users", user.id)), t("person.deleted", { name: nameOf(user) }), (done) => context.go("people", done));
}

async function addToGroups(user, groups, again) {
  const added = await pickGroups({
    title: t("person.add_to_groups"), action: t("person.add_to_groups"), without: groups.map((one) => String(one.id)),
    submit: async (chosen) => { const options = inOneAction(); for (const one of chosen) await api.put(pathOf("groups", one.id, "members", user.id), undefined, options); },
  });
  if (added) again();
}

// contacts

function contacts(user, channels, again) {
  const all = Object.entries(user.contacts).flatMap(([channel, addresses]) => addresses.map((address) => ({ channel, address })));
  return h("section", { class: "panel" },
    h("h2", {}, t("people.contacts")),
    all.length === 0 && h("p", {}, t("person.no_contact")),
    h("ul", { class: "plain-list" }, all.map((one) => h("li", { class: "line", key: `${one.channel}:${one.address}` },
      h("span", {}, t("person.contact", { channel: word("channel", one.channel), address: one.address })),
      h("button", { class: "plain", "aria-label": t("person.remove_contact", one), onclick: () => removeContact(user, one, again) }, t("person.remove"))))),
    h("div", { class: "actions" }, h("button", { onclick: () => addContact(user, channels, again) }, t("person.add_contact"))));
}

async function addContact(user, channels, again) {
  const added = await ask({
    title: t("person.add_contact"), action: t("person.add_contact"),
    fields: [
      field({ label: t("people.channel") }, choice("channel", channelOptions(channels))),
      field({ label: t("people.address"), hint: t("people.address_hint") }, h("input", { name: "address", required: true, autocomplete: "off" })),
    ],
    submit: ({ channel, address }) => api.post("/v1/contacts", { user: user.id, channel, address }),
  });
  if (added) again();
}

async function removeContact(user, { channel, address }, again) {
  const isSure = await confirm({ title: t("person.remove_contact", { address }), text: t("person.remove_contact_text"), action: t("person.remove"), danger: true });
  if (isSure) await attempt(() => api.del(pathOf("contacts", user.id, channel, address)), t("person.contact_removed"), again);
}

// guardians and children

const guardiansOf = ({ guardians = [], blocked_guardians: blocked = [] }) => [...new Set([...guardians, ...blocked])];

const link = (user) => h("a", { href: pageOf("person", user.id), dir: "auto" }, nameOf(user));

function family(user, guardians, children, again) {
  const { guardians: named = [], blocked_guardians: blocked = [] } = user;
  const without = (some, one) => some.filter((id) => id !== String(one.id));
  const save = (change) => attempt(() => api.patch(pathOf("users", user.id), change), t("person.saved"), again);
  return h("section", { class: "panel" },
    h("h2", {}, t("person.guardians")),
    !guardians.length && h("p", {}, t("person.no_guardian")),
    h("ul", { class: "plain-list" }, guardians.map((one) => {
      const isBlocked = blocked.includes(String(one.id)), name = nameOf(one);
      const change = isBlocked ? without(blocked, one) : [...blocked, String(one.id)];
      return h("li", { class: "line", key: String(one.id) },
        h("span", {}, link(one), isBlocked && h("span", { class: "quiet small" }, " ", t("person.guardian_blocked"))),
        h("span", {},
          h("button", { class: "plain", "aria-label": t(isBlocked ? "person.inform_guardian" : "person.block_guardian", { name }), onclick: () => save({ blocked_guardians: change }) }, t(isBlocked ? "person.inform" : "person.inform_no_more")),
          h("button", { class: "plain", "aria-label": t("person.remove_guardian", { name }), onclick: () => save({ guardians: without(named, one), blocked_guardians: without(blocked, one) }) }, t("person.remove"))));
    })),
    h("div", { class: "actions" }, h("button", { onclick: () => addGuardians(user, named, again) }, t("person.add_guardian"))),
    children.length > 0 && [h("h2", {}, t("person.children")), h("ul", { class: "plain-list" }, children.map((one) => h("li", { class: "line", key: String(one.id) }, link(one))))]);
}

async function addGuardians(user, named, again) {
  const added = await pickPeople({
    title: t("person.add_guardian"), text: t("person.guardian_text"), action: t("person.add_guardian"),
    submit: (chosen) => api.patch(pathOf("users", user.id), { guardians: [...new Set([...named, ...chosen.map((one) => String(one.id))])] }),
  });
  if (added) again();
}

// ownerships

const owned = (user, ownerships, again) => h("section", { class: "panel" },
  h("h2", {}, t("person.owns")),
  ownerships.length === 0 && h("p", {}, t("person.owns_nothing")),
  h("ul", { class: "plain-list" }, ownerships.map((one) => h("li", { class: "line", key: `${one.kind} ${one.id}` },
    one.kind === "group" ? h("a", { href: pageOf("group", one.id) }, t("person.owned_group", { id: String(one.id) })) : h("span", {}, t("person.owned_supergroup", { id: String(one.id) })),
    h("button", { class: "plain", "aria-label": t("person.withdraw_title", { id: String(one.id) }), onclick: () => withdraw(user, one, again) }, t("person.withdraw"))))),
  h("div", { class: "actions" }, h("button", { onclick: () => addOwned(user, again) }, t("person.add_owned"))));

async function addOwned(user, again) {
  const added = await ask({
    title: t("person.add_owned"), action: t("person.add_owned"),
    fields: [
      field({ label: t("person.kind") }, choice("kind", ["group", "supergroup"].map((one) => [one, word("object_kind", one)]))),
      field({ label: t("groups.id") }, h("input", { name: "id", required: true, autocomplete: "off" })),
    ],
    submit: ({ kind, id }) => api.put(pathOf("ownerships", user.id, kind, id)),
  });
  if (added) again();
}

async function withdraw(user, { kind, id }, again) {
  const isSure = await confirm({ title: t("person.withdraw_title", { id: String(id) }), text: t("person.withdraw_text"), action: t("person.withdraw"), danger: true });
  if (isSure) await attempt(() => api.del(pathOf("ownerships", user.id, kind, id)), t("person.withdrawn"), again);
}

// keys of the person's own programs

function showKeys(root, id, context) {
  const place = h("div");
  paint(root, h("h2", {}, t("person.keys")), place);
  personalKeys(place, `${pathOf("users", id)}/keys`, context);
}

// what was sent

function showSent(root, id, context) {
  const place = h("div");
  paint(root, h("h2", {}, t("person.sent_to")), place);
  table(place, {
    label: t("person.sent_to"), context, id: (row) => row.id, href: (row) => pageOf("message", row.id),
    columns: [
      { title: t("write.message"), width: "3fr", cell: (row) => h("span", { class: "cut", dir: "auto" }, textOf(row)) },
      { title: t("message.when"), width: "9rem", cell: (row) => h("time", { datetime: row.created_at, title: fullMoment(row.created_at) }, moment(row.created_at)) },
      { title: t("message.outcomes"), width: "3fr", cell: (row) => Object.entries(row.outcomes).filter(([, one]) => one.status !== "no_contact")
        .map(([channel, one]) => h("span", { class: "outcome" }, word("channel", channel), " ", statusTag(one.status))) },
      { title: t("message.why"), width: "2fr", cell: (row) => row.why && whyNot(row.why, row.state) },
    ],
    load: async ({ cursor, signal }) => {
      const page = await api.get(`${pathOf("users", id)}/deliveries`, { cursor, limit: 20 }, { signal });
      return { rows: page.deliveries, next: page.next };
    },
    whenEmpty: { title: t("person.nothing_sent") },
  });
}
