/** One person: fields, contacts, channels in which no messages are wanted, and what this person may write to. */

import { field, h, paint } from "../lib/dom.js";
import { LANGUAGES, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, explain, toast, withStates } from "../lib/states.js";
import { ask, confirm } from "../lib/dialog.js";
import { channelNames, channelOptions, choice, nameOf, pageOf, pathOf, roleOptions } from "../lib/directory.js";

export default {
  title: "page.person",
  right: "people",
  render(root, [id], context) {
    if (!id) {
      paint(root, h("h1", {}, t("page.person")), empty({ title: t("person.choose"), action: h("a", { class: "button primary", href: "#/people" }, t("page.people")) }));
      return;
    }
    const { signal } = context;
    const load = () => Promise.all([
      api.get(pathOf("users", id), {}, { signal }),
      api.get("/v1/ownerships", { user: id }, { signal }),
      channelNames(signal),
    ]);
    const again = withStates(root, load, ([user, { ownerships }, channels]) => {
      context.title(nameOf(user));
      // `paint` keeps the handlers of an element that is alike, so what was changed is a new element.
      return h("div", { key: JSON.stringify([user, ownerships]) },
        h("h1", { tabindex: "-1" }, nameOf(user)),
        facts(user),
        h("div", { class: "actions" },
          h("button", { class: "primary", onclick: () => edit(user, channels, again) }, t("person.edit")),
          context.me.kind !== "person" && context.me.rights.includes("read") && h("a", { class: "button", href: `#/messages?${new URLSearchParams({ sender: user.id })}` }, t("person.sent_by")),
          h("button", { class: "danger", onclick: () => remove(user, context) }, t("person.delete"))),
        contacts(user, channels, again),
        owned(user, ownerships, again));
    });
  },
};

const fact = (key, value) => h("div", {}, h("dt", {}, t(key)), h("dd", {}, value || "–"));

const facts = (user) => h("dl", { class: "facts" },
  fact("people.id", String(user.id)),
  fact("people.email", user.email),
  fact("people.role", user.role && word("role", user.role)),
  fact("person.locale", LANGUAGES[user.locale] || user.locale),
  fact("person.opt_out", user.opt_out.map((one) => word("channel", one)).join(", ")));

/** Does something and shows the person anew; says why if it did not work. */
async function attempt(work, done, again) {
  try {
    await work();
    toast(done);
    again();
  } catch (error) {
    toast(explain(error), "bad");
  }
}

async function edit(user, channels, again) {
  const offered = [...new Set([...channels, ...user.opt_out])];
  const changed = await ask({
    title: t("person.edit_title", { name: nameOf(user) }), action: t("person.save"),
    fields: [
      field({ label: t("people.name") }, h("input", { name: "name", value: user.name || "", autocomplete: "off" })),
      field({ label: t("people.email") }, h("input", { name: "email", type: "email", value: user.email || "", autocomplete: "off" })),
      field({ label: t("people.role") }, choice("role", roleOptions(t("people.no_role")), user.role || "")),
      field({ label: t("person.locale") }, choice("locale", Object.entries(LANGUAGES), user.locale)),
      h("fieldset", {}, h("legend", {}, t("person.opt_out")), offered.map((one) => h("label", { class: "check" },
        h("input", { type: "checkbox", name: `no ${one}`, checked: user.opt_out.includes(one) }), word("channel", one)))),
    ],
    submit: ({ name, email, role, locale, ...ticks }) => api.patch(pathOf("users", user.id), {
      name: name || null, email: email || null, role: role || null, locale, opt_out: offered.filter((one) => ticks[`no ${one}`]),
    }),
  });
  if (!changed) return;
  toast(t("person.saved"));
  again();
}

async function remove(user, context) {
  const isSure = await confirm({ title: t("person.delete_title", { name: nameOf(user) }), text: t("person.delete_text"), action: t("person.delete"), danger: true });
  if (isSure) await attempt(() => api.del(pathOf("users", user.id)), t("person.deleted", { name: nameOf(user) }), () => context.go("people"));
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
