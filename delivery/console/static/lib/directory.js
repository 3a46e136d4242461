/** What the pages about people and groups have in common: names, ids, finding somebody, choices. */

import { h } from "./dom.js";
import { word } from "./words.js";
import { ApiError, api } from "./api.js";

const ROLES = ["student", "trainer", "staff", "admin"];
const CHANNELS = ["sms", "email", "telegram", "telegram-bot", "vk", "max"];

/** Returns the path of an API for one object: pathOf("users", 7). */
export const pathOf = (collection, ...ids) => `/v1/${[collection, ...ids.map((id) => encodeURIComponent(id))].join("/")}`;

/** Returns the address of a page about one object: pageOf("person", 7). */
export const pageOf = (page, id) => `#/${page}/${encodeURIComponent(id)}`;

export const nameOf = (user) => user.name || String(user.id);
export const titleOf = (group) => group.title || String(group.id);

/** Returns the id that was typed: a number as a number, as the import of files does. */
export const idOf = (text) => (/^-?\d+$/.test(text) && String(Number(text)) === text && Number.isSafeInteger(Number(text)) ? Number(text) : text);

/** Returns the names of the channels, SMS first, as phone numbers are what is typed most; the usual ones for somebody who may not list them. */
export async function channelNames(signal) {
  try {
    const { channels } = await api.get("/v1/channels", {}, { signal });
    return channels.map((one) => one.channel).sort((one, other) => (other === "sms") - (one === "sms"));
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return CHANNELS;
    throw error;
  }
}

/** Returns people by id, e-mail address or the beginnings of words of the name. */
export async function findPeople(text, options) {
  const unknown = (error) => { if (error.status !== 404) throw error; return []; };
  if (text.includes("@")) return (await api.get("/v1/users", { email: text }, options)).users;
  const [one, { users }] = await Promise.all([api.get(pathOf("users", text), {}, options).then((found) => [found], unknown), api.get("/v1/users", { name: text, limit: 50 }, options)]);
  return [...one, ...users.filter((user) => user.id !== one[0]?.id)];
}

/** Returns what people call a field of a person, also contacts.sms and fields.course. */
export function columnName(name) {
  if (name.startsWith("fields.")) return name.slice("fields.".length);
  return name.startsWith("contacts.") ? word("channel", name.slice("contacts.".length)) : word("column", name);
}

/** Returns a list to choose from; `options` are [value, text]. */
export const choice = (name, options, chosen = "") => h("select", { name }, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));

export const roleOptions = (none) => [["", none], ...ROLES.map((one) => [one, word("role", one)])];
export const channelOptions = (names) => names.map((one) => [one, word("channel", one)]);
