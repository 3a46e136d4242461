/** The message that is being written: kept in the browser, so that a reload, a lost network or another tab loses nothing. */

import { api, randomKey } from "./api.js";
import { plainOf } from "./page.js";
import { t } from "./words.js";

const PLACE = "ada.draft";
const MOST_TITLES = 20;

/** Returns an empty draft. `key` is its Idempotency-Key: whatever is pressed, and in however many tabs, it is sent once. */
const fresh = () => ({ key: randomKey(), groups: [], supergroups: [], people: [], to: "students", table: null, followUp: null, text: "", texts: {}, buttons: [], uploads: [], files: "", channels: [], order: "first", when: "", every: "", last: "", answer: "", options: "", until: "", visible: "named", consent: false, terms: {} });

export function readDraft() {
  try {
    return { ...fresh(), ...JSON.parse(localStorage.getItem(PLACE) || "{}") };
  } catch {
    return fresh();
  }
}

export const keepDraft = (draft) => localStorage.setItem(PLACE, JSON.stringify(draft));

export const dropDraft = () => localStorage.removeItem(PLACE);

/** Returns who has got a message: a guardian has children, and a child that got it too is its own. */
function audienceOf(rows) {
  if (rows.some((one) => one.children?.some(({ id }) => id === one.id))) return "both";
  return rows.some((one) => one.children) ? "guardians" : "students";
}

/** Returns a line for each reason why guardians get nothing, with the ids of the children, or of the guardians. */
export const uninformed = ({ uninformed: found = [] }) => Object.entries(Object.groupBy(found, (one) => one.why)).map(([why, some]) =>
  t(`uninformed.${why}`, { names: [...new Set(some.map((one) => one.name || one.guardian || one.child))].join(", ") }));

/**
 * Begins a draft with a message that was sent, to the same groups and people; a follow-up goes to those whom its first message still leaves.
 * All channels that there are mean all that people have.
 */
export async function draftAgain(message, signal) {
  const { channels: all } = await api.get("/v1/channels", {}, { signal }), { follows } = message;
  const again = { ...fresh(), ...contentOf(message), asTyped: isAsTyped(message) };
  if (again.channels.length === all.length) again.channels = [];
  const first = follows && await api.get(`/v1/deliveries/${encodeURIComponent(follows.id)}`, { limit: 1 }, { signal }).catch((error) => { if (error.status !== 404) throw error; });
  keepDraft({ ...again, ...(first ? { followUp: { id: first.id, of: follows.of, text: plainOf(first) || "" } } : await recipientsOf(message, signal)) });
}

/** Returns the groups and people of a message, as a draft has them. */
async function recipientsOf(message, signal) {
  const rows = [];
  let cursor;
  do {
    const page = await api.get(`/v1/deliveries/${encodeURIComponent(message.id)}/recipients`, { limit: 1000, cursor }, { signal });
    rows.push(...page.recipients);
    cursor = page.next;
  } while (cursor);
  const groups = [...new Set(rows.flatMap((one) => one.origin))].map((id) => ({ id, title: id }));
  await Promise.all(groups.slice(0, MOST_TITLES).map((one) => titled(one, signal)));
  const named = rows.filter((one) => !one.origin.length).flatMap((one) => one.children || [one]);
  return { to: audienceOf(rows), groups, people: [...new Map(named.map(({ id, name }) => [id, { id, name }])).values()] };
}

/** Gives a group of a history its title; a program that may not read the directory sees the id. */
async function titled(group, signal) {
  const found = await api.get("/v1/addressees", { name: group.id }, { signal, tries: 1 }).catch(() => ({ groups: [] }));
  group.title = found.groups.find(({ id }) => String(id) === String(group.id))?.title || group.id;
}

/** Begins a draft to those whom a message did not reach, or who have not answered it, over channels that are chosen anew. */
export const draftFollowUp = (message, of) =>
  keepDraft({ ...fresh(), ...contentOf(message), channels: [], asTyped: isAsTyped(message), followUp: { id: message.id, of, text: plainOf(message) } });

const isAsTyped = (message) => hasMarks(message) && !message.personal;

/** Returns the question of a message for a draft, all but its closing. */
function askedIn({ answer = {} }) {
  const { kind = "", options = [], visible = "named", consent = false, change, late, remind, escalate, need, wave } = answer;
  const terms = { ...(change === false && visible !== "anonymous" && { change }), ...(late === "count" && { late }), ...(remind && { remind }), ...(escalate && { escalate }), ...(need && { need, wave }) };
  return { answer: kind, visible, consent, terms, options: options.map(({ text, places }) => (places ? `${text}=${places}` : text)).join("\n") };
}

/** Returns the fields of a draft that a message or a template has. */
export function contentOf(message) {
  const content = message.content || {};
  const texts = Object.fromEntries(Object.entries(message.texts || {}).map(([language, text]) => [language, marksOf(text, content.parse_mode)]));
  return { text: marksOf(message.text, content.parse_mode), texts, channels: Object.keys(message.channels), order: message.strategy, ...askedIn(message),
    buttons: (content.inline || []).flat().filter((one) => one.url).map(({ text, url }) => ({ text, url })),
    uploads: (content.attachments || []).filter((one) => one.file).map(({ file, name, type }) => ({ id: file, name, type })),
    files: (content.attachments || []).map((one) => one.url).filter(Boolean).join("\n") };
}

const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };
const MARKED = [[/<b>([\s\S]*?)<\/b>/g, "**$1**"], [/<i>([\s\S]*?)<\/i>/g, "__$1__"], [/<a href="([^"]*)">([\s\S]*?)<\/a>/g, "[$2]($1)"]];

/** Returns the text with the marks that a person writes, of a text in HTML. */
function marksOf(text, mode) {
  if (mode !== "HTML") return text;
  return MARKED.reduce((found, [pattern, mark]) => found.replace(pattern, mark), text).replace(/&(lt|gt|quot|amp);/g, (one) => ENTITIES[one]);
}

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const MARKS = [
  [/\*\*(\S[\s\S]*?)\*\*/g, "<b>$1</b>"],
  [/__(\S[\s\S]*?)__/g, "<i>$1</i>"],
  [/\[([^\]\n]+)\]\((https?:\/\/[^\s)"]+)\)/g, '<a href="$2">$1</a>'],
];
const FILES = { photo: /\.(jpe?g|png|webp)$/i, video: /\.(mp4|mov|webm)$/i, animation: /\.gif$/i, audio: /\.(mp3|m4a|wav)$/i, voice: /\.(ogg|opus)$/i };

/** Whether braces in the texts may stand for the values of each person. */
export const hasMarks = ({ text, texts = {} }) => [text, ...Object.values(texts)].some((one) => one.includes("{{"));

export const LONGEST_TEXT = 4096;
export const lengthOf = (text) => [...text].length;

/** Whether there is something to send. */
export const hasContent = ({ text, files, uploads }) => Boolean(text.trim() || files.trim() || uploads.length);

function attachment(url) {
  const path = url.split(/[?#]/)[0];
  return { type: Object.keys(FILES).find((type) => FILES[type].test(path)) || "document", url };
}

const markedUp = (text) => MARKS.reduce((found, [pattern, tag]) => found.replace(pattern, tag), escaped(text));

/** Returns the question of a draft. "Option=20" is an option with places. */
const questionOf = ({ answer, options, until, every, visible, consent, terms, to }, me) => ({
  kind: answer, ...terms,
  ...(visible !== "named" && { visible }),
  ...(consent && answer === "choice" && to !== "students" && { consent }),
  ...(answer === "choice" && { options: options.split("\n").filter((line) => line.trim()).map((line, place) => {
    const [, text, places] = line.match(/^(.*?)(?:=(\d{1,6}))?$/);
    return { key: String(place + 1), text: text.trim(), ...(places && { places: Number(places) }) };
  }) }),
  ...(until && !every && { until: inZone(until, me.timezone) }),
});

/** Returns the body of POST /v1/deliveries. A text without marks goes letter for letter. */
export function bodyOf(draft, me) {
  const texts = Object.entries(draft.texts).filter(([, text]) => text.trim());
  const isMarked = [draft.text, ...texts.map(([, text]) => text)].some((text) => markedUp(text) !== escaped(text));
  const sent = (text) => (isMarked ? markedUp(text) : text);
  const buttons = draft.buttons.filter((one) => one.text.trim() || one.url.trim()).map((one) => [{ text: one.text.trim(), url: one.url.trim() }]);
  const files = [...draft.uploads.map(({ id, type }) => ({ type, file: id })), ...draft.files.split(/\s+/).filter(Boolean).map(attachment)];
  const content = { ...(isMarked && { parse_mode: "HTML" }), ...(buttons.length && { inline: buttons }), ...(files.length && { attachments: files }) };
  return {
    sender: { id: me.id, name: me.name || undefined },
    recipients: draft.followUp ? [{ follow_up: draft.followUp.id, of: draft.followUp.of }] : [...(draft.table ? [{ table: draft.table.id, sheet: draft.table.sheet }] : []), ...draft.groups.map((one) => ({ group: one.id })), ...draft.supergroups.map((one) => ({ supergroup: one.id })), ...draft.people.map((one) => ({ id: one.id }))],
    ...(draft.to !== "students" && !draft.followUp && { audience: draft.to }),
    ...(draft.text.trim() && { text: sent(draft.text) }),
    ...(texts.length > 0 && { texts: Object.fromEntries(texts.map(([language, text]) => [language, sent(text)])) }),
    ...(Object.keys(content).length && { content }),
    ...(draft.channels.length && { channels: draft.channels }),
    ...(draft.order === "first" && { strategy: "first" }),
    ...(draft.answer && { answer: questionOf(draft, me) }),
    ...(draft.when && !draft.every && { deliver_at: inZone(draft.when, me.timezone), ...(draft.far === draft.when && { far: true }) }),
    ...((hasMarks(draft) || draft.table || draft.followUp || texts.length > 0) && { personal: hasMarks(draft) && !draft.asTyped }),
    origin: "web",
  };
}

/** Returns the body of POST /v1/series: the message, when it is sent, and its last day. */
export const seriesOf = (draft, me) =>
  ({ message: bodyOf(draft, me), when: draft.every, zone: me.timezone, ...(draft.last && { until: inZone(`${draft.last}T23:59`, me.timezone) }) });

/** Returns the moment at which the clock of a zone shows `wall` ("2026-11-23T10:00"), as RFC 3339. */
export function inZone(wall, timeZone) {
  const wanted = Date.parse(`${wall}Z`);
  const offset = (at) => {
    const parts = new Intl.DateTimeFormat("en-CA", { timeZone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" }).formatToParts(at);
    const part = (type) => parts.find((one) => one.type === type).value;
    return Date.parse(`${part("year")}-${part("month")}-${part("day")}T${part("hour")}:${part("minute")}Z`) - at;
  };
  const near = wanted - offset(wanted);
  return new Date(wanted - offset(near)).toISOString();
}
