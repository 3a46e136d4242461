/** A dialog to choose people or groups from what a search finds, so that nobody is taken for another of the same name. */

import { field, h, paint } from "./dom.js";
import { t } from "./words.js";
import { ApiError, api } from "./api.js";
import { ask } from "./dialog.js";
import { findPeople, nameOf, titleOf } from "./directory.js";

const SEARCH_PAUSE = 300;
const MOST_GROUPS = 1000;

const addressOf = (user) => user.email || Object.values(user.contacts).flat()[0] || String(user.id);

/** Asks for people: pickPeople({title, text, action, isOne, submit}). `submit(people)` does the work. */
export const pickPeople = (options) => pick({ label: t("pick.who"), ...options,
  find: async (text) => (text ? await findPeople(text) : []).map((one) => ({ ...one, shown: nameOf(one), about: addressOf(one) })) });

/** The same for groups, without those with an id of `without`. */
export async function pickGroups({ without, ...options }) {
  const { groups } = await api.get("/v1/groups", { limit: MOST_GROUPS });
  const offered = groups.filter((one) => !without.includes(String(one.id))).map((one) => ({ ...one, shown: titleOf(one), about: t("write.people_in", { count: one.size }) }));
  return pick({ label: t("pick.group"), ...options, find: (text) => offered.filter((one) => one.shown.toLocaleLowerCase().includes(text.toLocaleLowerCase())) });
}

function pick({ label, isOne, find, submit, ...options }) {
  const chosen = new Map(), place = h("div", { class: "picked" });
  let found = [], searched, timer = 0;
  const take = (one, isTaken) => {
    if (isOne) chosen.clear();
    if (isTaken) chosen.set(one.id, one);
    else chosen.delete(one.id);
    draw();
  };
  const draw = () => paint(place,
    chosen.size > 0 && !isOne && h("p", { class: "quiet small", key: "count", role: "status" }, t("table.selected", { count: chosen.size })),
    searched && !found.length && h("p", { class: "quiet", role: "status" }, t("table.nothing_found")),
    h("ul", { class: "picks", key: "picks" }, [...chosen.values(), ...found.filter((one) => !chosen.has(one.id))].map((one) => h("li", { key: String(one.id) }, h("label", { class: "check" },
      h("input", { type: isOne ? "radio" : "checkbox", name: "picked", checked: chosen.has(one.id), onchange: ({ target }) => take(one, target.checked) }),
      h("span", { dir: "auto" }, one.shown), h("span", { class: "quiet small" }, one.about))))));
  const search = async (text) => {
    if (text === searched) return;
    searched = text;
    const now = await find(text);
    if (text !== searched) return;
    found = now;
    draw();
  };
  const later = (text) => { clearTimeout(timer); timer = setTimeout(() => search(text).catch(() => {}), SEARCH_PAUSE); };
  search("");
  return ask({ ...options,
    fields: [field({ label }, h("input", { name: "who", type: "search", autocomplete: "off", oninput: ({ target }) => later(target.value.trim()) })), place],
    submit: async ({ who }) => {
      clearTimeout(timer);
      await search(who);
      if (!chosen.size && found.length === 1) chosen.set(found[0].id, found[0]);
      if (!chosen.size) throw new ApiError({ code: "NOT_CHOSEN", title: t(found.length ? "pick.several" : "pick.nobody") });
      return submit([...chosen.values()]);
    } });
}
