/** What a send would do, before it is sent: facts in a list, and the message as each channel shows it. */

import { field, h, paint } from "../lib/dom.js";
import { comingMoment, number, sum, t, word } from "../lib/words.js";
import { uninformed } from "../lib/draft.js";
import { explain, notice } from "../lib/page.js";
import { pictureOf } from "./write_files.js";

const SEARCH_PAUSE = 300;

const cost = (price, parts) => (price ? ` (${sum(price, parts)})` : "");

/** Returns what is to be paid at most and probably, where a channel is only for those whom no channel before it reaches. */
function lastResort({ addresses, people, first, parts, total_parts: most, price }) {
  const likely = first * (parts || Math.ceil(most / addresses));
  return t("write.paid_last", { count: people, most: `${number(most)}${cost(price, most)}`, likely: `${number(likely)}${cost(price, likely)}` });
}

const paid = ({ parts, total_parts, price, fields }) => {
  if (fields) return t("write.parts_personal", { count: total_parts }) + cost(price, total_parts);
  return price ? t("write.parts_price", { count: total_parts, parts, price: sum(price), sum: sum(price, total_parts) }) : t("write.parts", { count: total_parts, parts });
};

/** Returns what goes to those who do not answer, and what it costs at most. */
const later = (name, { addresses, total_parts: parts, price }) =>
  t("write.only_unanswered", { channel: word("channel", name), count: addresses }) + cost(price, parts);

/** Returns how many reminders are paid at most. */
const reminded = (name, { reminders, parts, price }) =>
  t("write.reminders", { channel: word("channel", name), count: reminders }) + cost(price, reminders * parts);

/** Returns how many people a channel is tried for first: each person is counted in one channel, unless it gets the message by all. */
const counted = (name, { people, first: count = people }) => count > 0 && t("write.by_channel", { channel: word("channel", name), count });

/** Returns the list of what a send would do. */
export function facts(said) {
  const used = Object.entries(said.channels).filter(([, one]) => one.people);
  const lines = [
    ...used.map(([name, one]) => (one.only_unanswered ? later(name, one) : counted(name, one))),
    ...used.filter(([, one]) => one.reminders && one.parts).map(([name, one]) => reminded(name, one)),
    ...used.filter(([, one]) => one.total_parts && !one.only_unanswered).map(([, one]) => (one.first === undefined || one.first === one.people ? paid({ ...one, fields: said.fields }) : lastResort(one))),
    ...Object.entries(said.languages || {}).map(([language, count]) => t(`write_in.${language}`, { count })),
    ...Object.entries(said.follow_up?.left_out || {}).map(([why, count]) => t(`write_left_out.${why}`, { count })),
    said.follow_up?.waiting && t("write.follow_up_waiting", { count: said.follow_up.waiting }),
    said.duplicates && t("write.duplicates", { count: said.duplicates }),
    ...uninformed(said),
    said.no_contact && t("write.no_contact", { count: said.no_contact }),
    said.cannot_answer && t("write.cannot_answer", { count: said.cannot_answer }),
    said.later && t("write.later", { count: said.later }),
    said.person_blocked && t("write.person_blocked", { count: said.person_blocked }),
    said.opted_out && t("write.opted_out", { count: said.opted_out }),
    said.moved_from && t("write.moved", { at: comingMoment(said.deliver_at) }),
    !said.moved_from && said.deliver_at && t("write.at", { at: comingMoment(said.deliver_at) }),
    said.next && t("series.next", { when: said.next.map(comingMoment).join("; ") }),
    said.quota && (said.quota.allowed ? t("write.quota_left", { count: said.quota.left, limit: said.quota.limit }) : t("write.quota_spent", { hours: number(Math.ceil(said.quota.resets_in / 3600)) })),
  ];
  return h("ul", { class: "plain-list" }, lines.filter(Boolean).map((one) => h("li", {}, one)));
}

/** Returns what people will see, and a field that shows what one of them will. `preview(query)` returns the preview for it. */
export function shownTo(said, preview) {
  const place = h("div", { "aria-live": "polite" });
  let timer = 0;
  const show = ({ shown, channels, recipient, fields, people }) => {
    const names = Object.keys(shown).filter((name) => recipient || channels[name].people);
    const step = async (by) => {
      const number = (recipient.number + by + people) % people;
      await preview({ number }).then(show, (error) => error.name === "AbortError" || paint(place, notice("bad", explain(error))));
    };
    paint(place,
      fields && h("div", { class: "actions" }, h("button", { type: "button", onclick: () => step(-1) }, t("write.previous")),
        h("button", { type: "button", onclick: () => step(1) }, t("write.next")), h("span", { class: "quiet" }, t("write.nth", { number: recipient.number + 1, people }))),
      recipient && h("p", {}, h("strong", { dir: "auto" }, recipient.name || String(recipient.id)), !names.length && [" – ", t("person.receives_nothing")]),
      h("div", { class: "cards shown" }, names.map((name) => shownIn(name, shown[name]))));
  };
  const ask = async (input) => {
    const text = input.value.trim();
    const found = await (text ? preview({ recipient: text }) : Promise.resolve(said)).catch((error) => error);
    if (text !== input.value.trim() || found.name === "AbortError") return;
    if (found instanceof Error) paint(place, h("p", { class: "quiet" }, found.status === 404 ? t("table.nothing_found") : explain(found)));
    else show(found);
  };
  const search = ({ target }) => { clearTimeout(timer); timer = setTimeout(() => ask(target), SEARCH_PAUSE); };
  show(said);
  return [field({ label: t("write.shown_to"), hint: t("write.shown_to_hint") }, h("input", { type: "search", name: "shown_to", maxlength: 128, autocomplete: "off", oninput: search })), place];
}

/** Returns a message as a channel shows it. */
export function shownIn(name, one) {
  return h("article", { class: "card bubble" }, h("h3", {}, word("channel", name)),
    one.empty && notice("bad", t("write.shown_empty")),
    one.subject && h("p", { class: "quiet small", dir: "auto" }, t("write.subject", { subject: one.subject })),
    one.messages.map((message) => h("p", { class: "said", dir: "auto" }, marked(message))),
    one.buttons.flat().map((button) => h("p", { class: "fake-button" }, button.text)),
    one.answer_by && h("p", { class: "quiet small" }, word("answer_by", one.answer_by)),
    one.files.map((file) => pictureOf(file) || h("p", { class: "quiet small" }, file.url || file.name || file.type)),
    one.not_shown.length > 0 && h("p", { class: "quiet small" }, t("write.not_shown", { what: one.not_shown.map(feature).join(", ") })));
}

/** Returns what is not shown in words; behind the feature may stand the name of a file. */
function feature(what) {
  const [name, ...file] = what.split(" ");
  return [word("feature", name), ...file].join(" ");
}

const TAGS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code", pre: "code" };

/** Returns nodes of a text with its marked ranges; a range inside another one keeps only the outer mark. */
function marked({ text, spans }) {
  const found = [];
  let end = 0;
  for (const one of [...spans].sort((a, b) => a.offset - b.offset || b.length - a.length)) {
    if (one.offset < end) continue;
    found.push(text.slice(end, one.offset), h(TAGS[one.kind] || "u", {}, text.slice(one.offset, one.offset + one.length)));
    end = one.offset + one.length;
  }
  return [...found, text.slice(end)];
}
