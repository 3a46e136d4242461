/** API keys: what each may do, when it was made and last used. A new one shows its secret once; revoking asks. */

import { field, h, paint } from "../lib/dom.js";
import { ago, fullMoment, moment, t, word } from "../lib/words.js";
import { ApiError, api } from "../lib/api.js";
import { tag, toast, toastError } from "../lib/page.js";
import { table } from "../lib/table.js";
import { ask, confirm, showOnce } from "../lib/dialog.js";

const SCOPES = ["send", "read", "manage", "urgent", "updates", "scim", "inspect", "admin", "operator"];
// What admin does not include: core/admission/api_keys.py.
const NOT_OF_ADMIN = ["inspect", "operator"];

/** Whether the API lets somebody with these scopes give this one away. */
const permits = (scopes, scope) => scopes.includes("operator") || scopes.includes(scope) || (scopes.includes("admin") && !NOT_OF_ADMIN.includes(scope));

export default {
  title: "page.keys",
  right: "keys",
  render(root, parameters, context) {
    const { me } = context;
    const mayChange = permits(me.scopes, "admin");
    const seesAll = me.scopes.includes("operator") || me.scopes.includes("inspect");
    const place = h("div");
    const make = async () => { if (await create("/v1/api-keys", SCOPES.filter((scope) => permits(me.scopes, scope)), tenantField(me))) list.reload(); };
    const end = async (key) => { if (await revoke("/v1/api-keys", key, t(key.id === me.id ? "keys.revoke_own" : "keys.revoke_text"))) list.reload(); };
    paint(root, h("h1", {}, t("page.keys")), mayChange && h("div", { class: "actions" }, h("button", { class: "primary", onclick: make }, t("keys.create"))), place);
    const list = table(place, {
      label: t("page.keys"), context, id: (key) => key.id,
      columns: [
        { title: t("keys.name"), width: "2fr", cell: (key) => [h("span", { class: "cut" }, key.name), key.id === me.id && tag("info", t("keys.yours"))] },
        { title: t("keys.scopes"), width: "3fr", cell: scopeTags },
        seesAll && { title: t("keys.tenant"), width: "1fr", cell: (key) => key.tenant },
        { title: t("keys.created"), width: "9rem", cell: (key) => moment(key.created_at) },
        { title: t("keys.used"), width: "9rem", cell: lastUse },
        mayChange && { title: t("keys.change"), width: "9rem", cell: (key) => key.scopes.every((scope) => permits(me.scopes, scope))
          && h("button", { class: "danger", "aria-label": t("keys.revoke_one", { name: key.name }), onclick: () => end(key) }, t("keys.revoke")) },
      ].filter(Boolean),
      load: async ({ signal }) => ({ rows: (await api.get("/v1/api-keys", {}, { signal })).api_keys, next: null }),
      whenEmpty: { title: t("keys.none") },
    });
  },
};

const tenantField = (me) => me.scopes.includes("operator")
  && field({ label: t("keys.tenant") }, h("input", { name: "tenant", value: me.tenant, required: true, maxlength: 64, autocomplete: "off" }));

/** Asks for the name and some of these scopes of a new key, creates it, and shows its secret. `further`: a further field. */
export async function create(path, scopes, further) {
  const made = await ask({
    title: t("keys.create"), action: t("keys.create"),
    fields: [
      field({ label: t("keys.name"), hint: t("keys.name_hint") }, h("input", { name: "name", required: true, maxlength: 128, autocomplete: "off" })),
      h("fieldset", {}, h("legend", {}, t("keys.scopes")), scopes.map((scope) =>
        h("label", { class: "check" }, h("input", { type: "checkbox", name: `scope ${scope}` }), h("span", {}, h("code", {}, scope), " – ", word("scope", scope))))),
      further,
    ],
    submit: ({ name, tenant, days, ...chosen }) => {
      const wanted = scopes.filter((scope) => chosen[`scope ${scope}`]);
      if (!wanted.length) throw new ApiError({ title: t("keys.no_scope") });
      return api.post(path, { name, scopes: wanted, ...(tenant && { tenant }), ...(days && { days: Number(days) }) });
    },
  });
  if (!made) return made;
  const isCalendar = made.key.scopes.includes("calendar");
  await showOnce({
    title: t("keys.created_title", { name: made.key.name }), label: t(isCalendar ? "keys.calendar" : "keys.secret"),
    secret: isCalendar ? `${location.origin}/v1/calendar/${made.secret}.ics` : made.secret,
  });
  return made;
}

/** Asks, and revokes a key. Returns whether the list may have changed. */
async function revoke(path, key, text) {
  if (!await confirm({ title: t("keys.revoke_title", { name: key.name }), text, action: t("keys.revoke"), danger: true })) return false;
  try {
    await api.del(`${path}/${encodeURIComponent(key.id)}`);
    toast(t("keys.revoked", { name: key.name }));
  } catch (error) {
    toastError(error);
  }
  return true;
}

/** Shows the personal keys at a path, each with a button that revokes it. Returns the table. */
export function personalKeys(place, path, context) {
  const end = async (key) => { if (await revoke(path, key, t("account.key_revoke_text"))) list.reload(); };
  const list = table(place, {
    label: t("person.keys"), context, id: (key) => key.id,
    columns: [
      { title: t("keys.name"), width: "2fr", cell: (key) => h("span", { class: "cut" }, key.name) },
      { title: t("keys.scopes"), width: "2fr", cell: scopeTags },
      { title: t("account.key_until"), width: "9rem", cell: (key) => moment(key.expires_at) },
      { title: t("keys.used"), width: "9rem", cell: lastUse },
      { title: t("keys.change"), width: "9rem", cell: (key) => h("button", { class: "danger", "aria-label": t("keys.revoke_one", { name: key.name }), onclick: () => end(key) }, t("keys.revoke")) },
    ],
    load: async ({ signal }) => ({ rows: (await api.get(path, {}, { signal })).keys, next: null }),
    whenEmpty: { title: t("account.no_keys") },
  });
  return list;
}

const scopeTags = (key) => key.scopes.map((scope) => [tag("", scope), " "]);
const lastUse = (key) => (key.used_at ? h("time", { datetime: key.used_at, title: fullMoment(key.used_at) }, ago(key.used_at)) : t("keys.never"));
