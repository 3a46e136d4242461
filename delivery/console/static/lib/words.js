/**
 * The words of the page in the language of the reader; no sentence is built from pieces. What the first page and every page
 * needs is in words/<language>.json, all else in words/pages/<language>.json.
 */

export const LANGUAGES = { en: "English", ru: "Русский" };
const CHOICE = "ada.language";
/** The plural forms of a text, in their order; no count is a fraction. */
const FORMS = { en: ["one", "other"], ru: ["one", "few", "many"] };

let language = "en";
let words = {};
let further = null;
let plural, numbers;
let zone;
let known = null; // the translated texts of Ada, as `sayings` returns them

/** Returns the language: chosen by hand, else the first of the browser's that there is. */
function preferred() {
  const wanted = [localStorage.getItem(CHOICE), ...navigator.languages].filter(Boolean);
  return wanted.map((one) => one.slice(0, 2)).find((one) => one in LANGUAGES) || "en";
}

/** The server sends {"write.send": "…"} as {"write": {"send": "…"}}, which is smaller. */
async function read(name) {
  const response = await fetch(new URL(`../words/${name}.json`, import.meta.url));
  const groups = await response.json();
  return Object.fromEntries(Object.entries(groups).flatMap(([group, found]) => Object.entries(found).map(([key, text]) => [`${group}.${key}`, text])));
}

/** Loads the words of the first pages. Must end before the first `t`. */
export async function loadWords() {
  language = preferred();
  further = known = null;
  words = await read(language);
  plural = new Intl.PluralRules(language);
  numbers = new Intl.NumberFormat(language);
  document.documentElement.lang = language;
}

/** Loads the words of the other pages, once. */
export function loadFurtherWords() {
  const own = words;
  further ||= read(`pages/${language}`).then((more) => { Object.assign(own, more); known = null; }).catch((error) => {
    further = null;
    throw error;
  });
  return further;
}

export const currentLanguage = () => language;

/** Chooses a language for this browser and loads its words. */
export function chooseLanguage(name) {
  localStorage.setItem(CHOICE, name);
  return loadWords();
}

/** Times are shown in this zone (IANA name); without one, in that of the browser. */
export const setZone = (name) => { zone = name || undefined; };
export const currentZone = () => zone || Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Whether there is a text with this key. */
export const has = (key) => key in words;

function template(key, values) {
  const text = words[key];
  if (text === undefined) {
    console.error(`words: ${key} is missing in ${language}.json`);
    return key;
  }
  if (typeof text === "string") return text;
  const [before, behind, ...forms] = text;
  return before + (forms[FORMS[language].indexOf(plural.select(values.count))] ?? forms.at(-1)) + behind;
}

const shown = (value) => (typeof value === "number" ? numbers.format(value) : String(value));

/** Returns a text: t("messages.selected", {count: 3}). Numbers are written as in the language; `count` chooses the plural form. */
export function t(key, values = {}) {
  return template(key, values).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? shown(values[name]) : whole));
}

/** The same, with nodes among the values: rich("home.sign_in", {link: h("a", …)}) returns a list for `h`. */
export function rich(key, values = {}) {
  return template(key, values).split(/(\{\w+\})/).map((part) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    return name === undefined || !(name in values) ? part : values[name] instanceof Node ? values[name] : shown(values[name]);
  });
}

/** Returns the word for a value of the API: word("status", "sent"). A value that is new here is shown as it is. */
export const word = (table, value) => (has(`${table}.${value}`) ? t(`${table}.${value}`) : String(value).replaceAll("_", " "));

const SAID = "said.";

/** Returns [pattern, key] for the texts of Ada that have a translation, the longest first. A key is `said.` and the text, with {names}. */
function sayings() {
  known ||= Object.keys(words).filter((key) => key.startsWith(SAID)).sort((one, other) => other.length - one.length)
    .map((key) => [new RegExp(`^${key.slice(SAID.length).replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.+?)")}$`), key]);
  return known;
}

/** Returns the word for a value in a text of Ada, where blanks stand for the underscores of the value. An error is a text of its own. */
function wordIn(table, value) {
  const key = `${table}.${value.replaceAll(" ", "_")}`;
  if (table === "error") return said(value);
  return has(key) ? t(key) : value;
}

/** Returns a field of what the API returned in the language of the reader if its `translations` have it; else as it is. */
export const translated = (row, name) => row.translations[language]?.[name] ?? row[name];

/**
 * Returns a text that Ada has written in English, such as a reason, in the language of the reader if it is known; else as it is.
 * `errors`: English → that of the reader, for the errors in it.
 */
export function said(text, errors = {}) {
  const table = ["reason", "webhook_error"].find((one) => has(`${one}.${text}`));
  if (table) return word(table, text);
  for (const [pattern, key] of sayings()) {
    const found = pattern.exec(text);
    if (found) return t(key, Object.fromEntries(Object.entries(found.groups || {}).map(([name, value]) => [name, errors[value] ?? wordIn(name, value)])));
  }
  return text;
}

export const number = (value, options) => (options ? new Intl.NumberFormat(language, options).format(value) : numbers.format(value));

/** Returns a duration of ISO 8601 in words: "12 hours". */
export const period = (iso) => [...iso.matchAll(/(\d+)([DHMS])/g)].map(([, value, unit]) => number(Number(value), { style: "unit", unit: UNITS.find(([name]) => name[0] === unit.toLowerCase())[0], unitDisplay: "long" })).join(" ");

/** Returns the price of many parts, in the form in which the operator has written that of one: "4.20 ₽". */
export const sum = (price, count = 1) => price.replace(/\d+(?:[.,]\d+)?/, (one) => number(Number(one.replace(",", ".")) * count, { minimumFractionDigits: 2, maximumFractionDigits: 2 }));

const format = (value, options) => new Intl.DateTimeFormat(language, { timeZone: zone, ...options }).format(new Date(value));
const isToday = (value) => format(value, { dateStyle: "short" }) === format(Date.now(), { dateStyle: "short" });
const isThisYear = (value) => format(value, { year: "numeric" }) === format(Date.now(), { year: "numeric" });

/** Returns a moment: "14:05" today, "3 Nov, 14:05" this year, with the year before that. */
export function moment(value) {
  const time = { hour: "2-digit", minute: "2-digit" };
  if (isToday(value)) return format(value, time);
  const day = { day: "numeric", month: "short", ...time };
  return format(value, isThisYear(value) ? day : { ...day, year: "numeric" });
}

/** Returns a moment in full, with its zone. */
export const fullMoment = (value) => format(value, { dateStyle: "long", timeStyle: "long" });

/** Returns a day such as 2026-11-30 in words. */
export const dayName = (day) => new Intl.DateTimeFormat(language, { timeZone: "UTC", dateStyle: "long" }).format(new Date(`${day}T00:00:00Z`));

/** Returns the name of a month such as 2026-11. */
export const monthName = (month) => new Intl.DateTimeFormat(language, { timeZone: "UTC", month: "long", year: "numeric" }).format(new Date(`${month}-01T00:00:00Z`));

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

const dayOf = (value) => Date.parse(new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(new Date(value)));

/** Returns a moment to come with its weekday and its distance: "Friday, 27 November at 10:00, in 2 days". */
export function comingMoment(value) {
  const days = (dayOf(value) - dayOf(Date.now())) / 86400000;
  const distance = days ? new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(days, "day") : ago(value);
  const year = isThisYear(value) ? {} : { year: "numeric" };
  return t("time.coming", { at: format(value, { weekday: "long", day: "numeric", month: "long", ...year, hour: "2-digit", minute: "2-digit" }), distance });
}

/** Returns how long ago or ahead a moment is: "5 minutes ago", "in 2 hours". */
export function ago(value) {
  const seconds = (new Date(value) - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) || UNITS.at(-1);
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(Math.trunc(seconds / size), unit);
}

/** Returns a length of time from seconds: "45 s", "3 min", "2 h". */
export function duration(seconds) {
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) || UNITS.at(-1);
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 }).format(seconds / size);
}
