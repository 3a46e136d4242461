/** Messages that were sent: newest first, each with a plain verdict, live. */

import { h, paint, field } from "../lib/dom.js";
import { has, moment, t, word, comingMoment, currentLanguage, fullMoment, number, period } from "../lib/words.js";
import { api } from "../lib/api.js";
import { BY_ADA, explainOne, plainOf, tag, textOf, toast, toastError, verdict, explain, fact, notice, statusTag, withStates } from "../lib/page.js";
import { confirm, ask, open, reasonField } from "../lib/dialog.js";
import { table } from "../lib/table.js";
import { follow } from "../lib/live.js";
import { draftAgain, draftFollowUp, inZone, LONGEST_TEXT, uninformed } from "../lib/draft.js";
import { timeField } from "../lib/when.js";

const STATES = ["scheduled", "released", "finished", "cancelled", "expired"];

export default {
  title: "page.messages",
  right: "read",
  async render(root, parameters, context) {
    if (context.query.message && await opened(context)) return;
    const place = h("div"), repeated = h("div");
    paint(root, h("h1", {}, t("page.messages")),
      context.me.rights.includes("write") && h("div", { class: "actions" }, h("a", { class: "button primary", href: "#/write" }, t("messages.new"))), repeated, place);
    drawSeries(repeated, context);
    const seesAll = context.me.kind === "key" || context.me.role === "admin";
    const list = table(place, {
      label: t("page.messages"), context, id: (row) => row.id, href: (row) => `#/message/${row.id}`,
      filters: [
        { name: "text", label: t(context.me.role === "admin" ? "messages.own_text" : "messages.text"), type: "search" },
        { name: "state", label: t("messages.state"), options: [["", t("messages.any")], ...STATES.map((one) => [one, word("delivery_state", one)])] },
        seesAll && { name: "sender", label: t("messages.sender"), type: "search" },
        { name: "tag", label: t("messages.tag"), type: "search" },
        { name: "since", label: t("messages.since"), type: "date" },
      ].filter(Boolean),
      columns: [
        { title: t("messages.text"), width: "3fr", name: textOf, cell: (row) => [row.kind === "trial" && [tag("info", t("messages.trial")), " "], BY_ADA.includes(row.kind) && [tag("info", t("messages.by_ada")), " "], h("span", { class: "cut", dir: "auto" }, textOf(row))] },
        { title: t("messages.sender"), width: "2fr", cell: (row) => senderOf(row.sender) },
        { title: t("messages.when"), width: "9.5rem", cell: (row) => moment(row.deliver_at) },
        { title: t("messages.verdict"), width: "11.5rem", cell: verdict },
        { title: t("messages.repeat"), width: "7.5rem", cell: (row) => !row.text_hidden && !["reply", ...BY_ADA].includes(row.kind) && h("button", { class: "plain", onclick: () => writeAgain(row, context) }, t("messages.repeat")) },
      ],
      load: async ({ cursor, signal, since, ...filters }) => {
        const page = await api.get("/v1/deliveries", { ...filters, since: since && inZone(`${since}T00:00`, context.me.timezone), cursor, limit: 50 }, { signal });
        return { rows: page.deliveries, next: page.next };
      },
      whenEmpty: { title: t(seesAll ? "messages.none" : "messages.none_own"), text: t("messages.none_text"), action: h("a", { class: "button primary", href: "#/write" }, t("messages.new")) },
    });
    follow(["deliveries"], () => list.update(), context.signal);
  },
};

/** Goes to the delivery of the message that the address names: channel:address:reference. Returns whether there is one. */
async function opened({ query: { message }, signal }) {
  const { deliveries } = await api.get("/v1/deliveries", { message, limit: 1 }, { signal });
  if (deliveries.length) location.replace(`#/message/${encodeURIComponent(deliveries[0].id)}`);
  else toast(t("messages.unknown"), "bad");
  return deliveries.length > 0;
}

/** Shows the messages that are sent again and again, and what can be done with them. */
async function drawSeries(place, context) {
  const { series } = context.me.rights.includes("write") ? await api.get("/v1/series", { limit: 1000 }, { signal: context.signal }).catch(() => ({ series: [] })) : { series: [] };
  const after = (work) => work.then(() => drawSeries(place, context), toastError);
  const change = (one, state) => after(api.patch(`/v1/series/${one.id}`, { state }));
  const remove = async (one) => await confirm({ title: t("series.remove_title"), action: t("series.remove"), danger: true }) && after(api.del(`/v1/series/${one.id}`));
  paint(place, series.length > 0 && h("details", { key: "series", class: "panel", open: true }, h("summary", {}, t("series.title", { count: series.length })),
    h("ul", { class: "plain-list" }, series.map((one) => h("li", { key: one.id },
      h("span", { class: "cut", dir: "auto" }, plainOf(one.message) || t("messages.no_text")),
      h("p", { class: "quiet" }, one.when, ". ", one.next.length ? t("series.next", { when: moment(one.next[0]) }) : word("series_state", one.state), ". ", h("a", { href: `#/messages?tag=${encodeURIComponent(one.tag)}` }, t("series.sent", { count: one.sent }))),
      one.problem && h("p", { class: "notice bad" }, t("series.problem", { when: moment(one.problem.at), why: explainOne({ code: one.problem.code, message: one.problem.detail }) })),
      h("div", { class: "actions" },
        one.state === "active" && h("button", { onclick: () => change(one, "stopped") }, t("series.stop")),
        one.state === "stopped" && h("button", { onclick: () => change(one, "active") }, t("series.go_on")),
        h("button", { class: "danger", onclick: () => remove(one) }, t("series.remove"))))))));
}

/** Returns the name of who has sent something; what Ada sends by itself has no person behind it. */
export const senderOf = ({ id, name }) => name || (has(`sender.${id}`) ? t(`sender.${id}`) : String(id));

/** Returns why somebody was not reached, in words: what is not yet due is not being sent. */
export const whyNot = (why, state) => word("why", why === "waiting" && state === "scheduled" ? "scheduled" : why);

/** Opens the page that writes with a message again. */
export async function writeAgain(message, context) {
  try {
    await draftAgain(message, context.signal);
    context.go("write");
  } catch (error) {
    toastError(error);
  }
}

/** Opens the page that writes to those of a message who are `of`: unreached, or unanswered. */
export function writeAfter(message, context, of) {
  draftFollowUp(message, of);
  context.go("write");
}

// one of them

const PAINT_PAUSE = 500;
/** Reminders by hand of a question that plans none. */
const MOST_REMINDERS = 3;
/** Of a question, first what needs action. */
const ANSWER_STATES = ["open", "silent", "unreachable", "late", "not_asked", "answered"];
/** Of the filter of answers: children whose guardians differ. */
const CONFLICT = "conflict";

/** One message: who was not reached, why, and what can be done; every outcome, live. */
export const message = {
  title: "page.message",
  right: "read",
  render(root, [id], context) {
    const where = `/v1/deliveries/${encodeURIComponent(id)}`;
    const head = h("div"), rows = h("div");
    paint(root, h("h1", {}, t("page.message")), head, rows);
    let list = null, shownNow = null, read = {}; // read: the text of somebody else, after a reason was given
    const again = withStates(head, async () => {
      const { signal } = context;
      const [message, reasons] = await Promise.all([api.get(where, { limit: 1 }, { signal }), api.get(`${where}/reasons`, {}, { signal })]);
      if (reasons.reasons.waiting) reasons.halted = await haltedOf(message, signal);
      return { message: { ...message, ...read }, reasons };
    }, ({ message, reasons }) => {
      shownNow = message;
      list ||= recipients(rows, where, context, message, again);
      list.offer(reasons, message);
      return summary(where, context, message, reasons, list, () => { again(); list.reload(); }, (chosen) => { context.setQuery({ q: "", why: "", answer: "", ...chosen }); list.refilter(); }, async () => {
        read = await askForText(where) || read;
        again();
      });
    });
    return watch(where, () => { again(); list?.update(); }, () => shownNow);
  },
};

/** Whether something may still change: the delivery has not ended, or its question is open. */
const goesOn = (message) => !message || !message.finished_at || (message.answers && !message.answers.closed_at);

/** Calls `changed` at most twice a second while outcomes and answers change; the stream is the delivery's own. Returns what ends it. */
function watch(where, changed, message) {
  let timer = 0;
  const stream = new EventSource(`${where}/events?answers=yes`);
  const later = () => { timer ||= setTimeout(() => { timer = 0; changed(); }, PAINT_PAUSE); };
  for (const name of ["outcome", "state", "finished", "answer", "closed"]) stream.addEventListener(name, later);
  stream.addEventListener("finished", () => { if (message() && !message().answers) stream.close(); });
  stream.onerror = () => { if (!goesOn(message())) stream.close(); else if (stream.readyState === EventSource.CLOSED) later(); };
  return () => { clearTimeout(timer); stream.close(); };
}

function summary(where, context, message, reasons, list, reread, choose, readText) {
  const { counts } = message;
  const mayWrite = mayChange(context, message);
  return [
    h("p", { class: "large" }, verdict(message)),
    message.text_hidden && !("content" in message)
      ? notice("info", h("p", {}, t("message.hidden")), h("button", { onclick: readText }, t("message.read")))
      : h("blockquote", { class: "panel said", dir: "auto" }, plainOf(message) || t("messages.no_text")),
    attached(where, message),
    h("details", { key: "about" }, h("summary", {}, t("message.from", { name: senderOf(message.sender), when: moment(message.deliver_at) })), h("dl", { class: "facts" },
      fact("message.sender", senderOf(message.sender)),
      fact("message.when", fullMoment(message.deliver_at)),
      message.moved_from && fact("message.asked_for", fullMoment(message.moved_from)),
      fact("message.state", word("delivery_state", message.state)))),
    message.refused_replies > 0 && h("p", {}, t("message.refused_replies", { count: message.refused_replies })),
    uninformed(message).map((one) => h("p", {}, one)),
    links(message),
    h("div", { class: "actions" }, mayWrite && [
      ["scheduled", "released"].includes(message.state) && h("button", { class: "danger", onclick: () => cancel(where, counts.recipients, reread) }, t("message.cancel")),
      message.state === "scheduled" && h("button", { onclick: () => move(where, context, reread) }, t("message.move")),
      counts.failed + counts.unknown > 0 && h("button", { onclick: () => retry(where, counts.failed + counts.unknown, reread) }, t("message.retry")),
      reasons.not_reached > 0 && message.state !== "scheduled" && h("button", { onclick: () => writeAfter(message, context, "unreached") }, t("message.write_unreached")),
      h("button", { onclick: () => writeAgain(message, context) }, t("messages.repeat"))],
      h("a", { class: "button", href: `${where}/recipients.csv?excel&language=${currentLanguage()}`, download: true }, t("message.csv")),
      h("button", { onclick: () => list.all().then(() => print()) }, t("message.print"))),
    message.answers && answers(where, context, message, list, reread, choose),
    h("h2", {}, t("message.recipients")),
    reasons.not_reached > 0 && message.state !== "scheduled" && h("div", { class: "reasons" },
      h("p", {}, t("message.not_reached", { count: reasons.not_reached })),
      h("ul", { class: "plain-list" }, Object.entries(reasons.reasons).map(([why, count]) => h("li", {},
        h("button", { class: "plain", onclick: () => choose({ why }) }, t("message.why_count", { why: word("why", why), count })),
        h("span", { class: "quiet" }, (why === "waiting" && reasons.halted) || word("advice", why)))))),
    reasons.not_reached === 0 && notice("good", t("message.everybody")),
  ];
}

/** The files of the message; an uploaded picture is shown, unless the text was read for a reason. */
function attached(where, { content, text_hidden: isOfOthers }) {
  const address = ({ file, url }) => (file && !isOfOthers ? `${where}/files/${encodeURIComponent(file)}` : url);
  const shown = (one) => {
    const name = one.name || one.url || word("feature", one.type), href = address(one);
    return h("li", {}, one.type === "photo" && one.file && !isOfOthers && h("a", { href, target: "_blank" }, h("img", { class: "picture", src: href, alt: name, onerror: ({ target }) => target.parentNode.remove() })),
      h("span", { class: "upload-name", dir: "auto" }, href && /^(\/|https?:)/.test(href) ? h("a", { href, download: one.file && name, target: one.file ? undefined : "_blank", rel: "noreferrer" }, name) : name));
  };
  return content?.attachments?.length > 0 && h("ul", { class: "plain-list uploads", "aria-label": t("message.files") }, content.attachments.map(shown));
}

/** The message that this one follows, and those that follow it. An id ends with the nanoseconds of its time. */
function links({ follows, followed_by: followers = [] }) {
  const link = (text, { id }) => h("li", {}, text, " ", h("a", { href: `#/message/${encodeURIComponent(id)}` }, moment(new Date(Number(id.split(".").pop().slice(0, -6))).toISOString())));
  return (follows || followers.length > 0) && h("ul", { class: "plain-list" }, follows && link(t(`message_follows.${follows.of}`), follows), followers.map((one) => link(t(`message_followed.${one.of}`), one)));
}

/** The totals of the question, first what needs action, and what can be done. */
function answers(where, context, message, list, reread, choose) {
  const { answers: counts, answer: { options, remind: plan }, reminders: { sent, next_at: next } } = message;
  const mayRemind = counts.open > 0 && sent.length < (plan?.most || MOST_REMINDERS);
  const mayWrite = mayChange(context, message);
  return h("section", { class: "reasons" },
    h("h2", {}, t("message.answers")),
    terms(message.answer).map((one) => h("p", { class: "quiet small" }, one.join(": "))),
    counts.closed_at && h("p", { class: "quiet" }, t("message.closed", { when: moment(counts.closed_at) })),
    h("ul", { class: "plain-list" },
      ANSWER_STATES.filter((state) => counts[state]).map((state) => h("li", {},
        h("button", { class: "plain", onclick: () => choose({ answer: state }) }, t("message.why_count", { why: word("answer_state", state), count: counts[state] })))),
      counts.conflicts > 0 && h("li", {}, message.answer.visible === "hidden" ? t("message.conflicts", { count: counts.conflicts })
        : h("button", { class: "plain", onclick: () => choose({ answer: CONFLICT }) }, t("message.conflicts", { count: counts.conflicts }))),
      counts.withheld ? h("li", { class: "quiet" }, t("message.withheld")) : options.map((one) => h("li", { class: "option", dir: "auto" }, chosen(one, counts))),
      ["sum", "mean"].filter((name) => name in counts).map((name) => h("li", {}, t(`message_numbers.${name}`, { number: number(counts[name]) }))),
      sent.map((one) => h("li", { class: "quiet" }, t("message.reminder_sent", { when: moment(one.at), count: one.people }))),
      next && !counts.closed_at && h("li", { class: "quiet" }, t("message.remind_next", { when: moment(next) }))),
    h("div", { class: "actions" },
      mayWrite && mayRemind && h("button", { onclick: act("remind", reread, async () => toast(saidOfReminder(await api.post(`${where}/answers:remind`, {}))), counts.open) }, t("message.remind")),
      mayWrite && !counts.closed_at && h("button", { onclick: act("close", reread, () => api.post(`${where}/answers:close`, {})) }, t("message.close")),
      mayWrite && counts.closed_at && message.state !== "cancelled" && h("button", { onclick: act("reopen", reread, () => api.post(`${where}/answers:reopen`, {})) }, t("message.reopen")),
      mayWrite && counts.answered < message.counts.recipients && h("button", { onclick: () => writeAfter(message, context, "unanswered") }, t("message.write_unanswered")),
      message.answer.visible === "hidden" && mayOpen(context.me) && h("button", { onclick: async () => { list.opened = await askForAnswers(where) || list.opened; list.paint(); } }, t("message.open_answers")),
      h("a", { class: "button", href: `${where}/answers.csv?excel&language=${currentLanguage()}`, download: true }, t("message.answers_csv"))));
}

const saidOfReminder = ({ people, reason }) => (people ? t("message.reminded", { count: people }) : t(`message_nobody.${reason}`));

const mayOpen = ({ role, scopes }) => role === "admin" || scopes.includes("admin") || scopes.includes("operator");

/** Returns the answers to a hidden question by their people, after a reason was given. */
const askForAnswers = (where) => ask({
  title: t("message.open_answers"), action: t("message.open_answers"),
  fields: [reasonField({ name: "why", required: true })],
  submit: async ({ why }) => {
    const found = {};
    let cursor;
    do {
      const page = await api.get(`${where}/answers`, { limit: 1000, cursor }, { headers: { "Ada-Reason": encodeURIComponent(why) } });
      for (const { id, answer } of page.recipients) found[id] = answer;
      cursor = page.next;
    } while (cursor);
    return found;
  },
});

/** The terms of a question that are not the usual ones, in the words in which they were chosen. */
const terms = ({ until, change, late, visible, need, wave, escalate, consent }) => [
  until && [t("write.until"), fullMoment(until)],
  !change && [t("write_terms.change")],
  late === "count" && [t("write_terms.late")],
  visible !== "named" && [t("write.visible"), word("write_visible", visible)],
  need && [t("write_terms.need"), need],
  need && wave && [t("write_terms.wave"), period(wave)],
  escalate && [t("write_terms.escalate"), `${period(escalate.after)}, ${escalate.channels.map((one) => word("channel", one)).join(", ")}`],
  consent && [t("write.consent")],
].filter(Boolean);

/** How many have chosen an option, and how many of its places that are. */
const chosen = ({ key, text, places }, { options, waiting }) => (places
  ? t("message.places", { answer: text, count: options[key], places, waiting: waiting[key] })
  : t("message.why_count", { why: text, count: options[key] }));

/** Returns what stands in place of "wait": which channels that still have to send this message have stopped, or pause. */
async function haltedOf(message, signal) {
  const channels = (await api.get("/v1/channels", {}, { signal })).channels.filter((one) => message.channels[one.channel]?.state === "pending");
  const named = (some) => ({ channels: some.map((one) => word("channel", one.channel)).join(", ") });
  const halted = channels.filter((one) => one.halted), paused = channels.filter((one) => one.paused);
  if (halted.length) return t(halted.every((one) => one.informed) ? "message.halted_informed" : "message.halted", named(halted));
  return paused.length > 0 && t("message.paused", named(paused));
}

/** What somebody else has sent is only looked at. */
const mayChange = ({ me }, message) => me.rights.includes("write") && !message.text_hidden;

/** Returns the text and content of somebody else's message, after a reason was given. */
const askForText = (where) => ask({
  title: t("message.read"), action: t("message.read"),
  fields: [reasonField({ name: "why", required: true })],
  submit: async ({ why }) => {
    const { text, content = null } = await api.get(where, { limit: 1 }, { headers: { "Ada-Reason": encodeURIComponent(why) } });
    return { text, content };
  },
});

function recipients(root, where, context, message, again) {
  const isFile = message.answer?.kind === "file", isEntered = !isFile && message.answer?.visible !== "anonymous" && mayChange(context, message);
  const whys = [], whyOf = (why) => whyNot(why, message.state);
  const list = table(root, {
    label: t("message.recipients"), context, id: (row) => String(row.id),
    filters: [
      { name: "q", label: t("message.search"), type: "search" },
      { name: "why", label: t("message.why"), options: whys },
      ...(message.answers ? [{ name: "answer", label: t("message.answer"), options: [["", t("message.all")], ...ANSWER_STATES.map((one) => [one, word("answer_state", one)]), ...(message.answer.consent !== undefined || message.answers.conflicts || context.query.answer === CONFLICT ? [[CONFLICT, t("message.conflict")]] : [])] }] : []),
    ],
    columns: [
      { title: t("message.person"), width: "2fr", name: (row) => row.name || String(row.id), cell: (row) => [h("span", { dir: "auto" }, row.name || String(row.id)), row.children && h("div", { class: "quiet small", dir: "auto" }, t("message.about", { names: row.children.map((one) => one.name || one.id).join(", ") }))] },
      ...(message.personal ? [{ title: t("message.own_text"), width: "3fr", cell: (row) => h("span", { class: "said cut", dir: "auto" }, plainOf({ text: row.text || "", content: message.content })) }] : []),
      { title: t("message.outcomes"), width: "3fr", cell: (row) => outcomes(row, context.me.rights.includes("keys") && where) },
      ...(message.answers ? [{ title: t("message.answer"), width: "2fr", cell: (row) => [answered({ ...row, answer: (!row.answer.text && list.opened?.[row.id]) || row.answer }, isFile && where, message.answer), isEntered && (!row.children || row.children.some(({ id }) => id === row.id)) && h("div", {}, h("button", { class: "plain small", onclick: () => answerFor(where, row, message.answer, () => { again(); list.update(); }) }, t("message.answer_for")))] }] : []),
      { title: t("message.why"), width: "2fr", cell: (row) => row.why && whyOf(row.why) },
    ],
    load: async ({ cursor, signal, answer, ...filters }) => {
      const asked = answer === CONFLICT ? { conflict: "yes" } : { answer };
      const page = await api.get(`${where}/recipients`, { ...filters, ...asked, cursor, limit: 100 }, { signal });
      return { rows: page.recipients, next: page.next };
    },
    actions: mayChange(context, message) ? [
      { title: t("message.retry_chosen"), run: async (ids) => tried(await api.post(`${where}/retry`, { recipients: ids })) },
      { title: t("message.cancel_chosen"), danger: true, run: async (ids) => {
        if (!await confirm({ title: t("message.cancel_title", { count: ids.length }), action: t("message.cancel"), count: ids.length, danger: true })) return false;
        cancelled(await api.del(where, { recipient: ids }));
        return true;
      } },
    ] : undefined,
  });
  list.offer = ({ reasons }, now) => {
    message = now;
    const found = [...new Set([...Object.keys(reasons), context.query.why].filter(Boolean))];
    whys.splice(0, whys.length, ["", t("message.all")], ...found.map((one) => [one, whyOf(one)]));
    const select = list.filters.querySelector("[name=why]");
    paint(select, whys.map(([value, text]) => h("option", { value, selected: value === (context.query.why || "") }, text)));
  };
  list.refilter = () => { list.filters.replaceWith(list.filters = list.filterForm()); list.reload(); root.scrollIntoView(); };
  return list;
}

/** The channels that a person has, each with its outcome and what the service said; the others in one short line. */
function outcomes(row, where) {
  const all = Object.entries(row.outcomes);
  const used = all.filter(([, one]) => one.status !== "no_contact"), missing = all.filter(([, one]) => one.status === "no_contact");
  if (!used.length) return row.member ? t(row.child ? "message.child" : "dry_run.chat") : statusTag("no_contact");
  const part = used.find(([, one]) => one.reason === "in_day_message");
  return [
    used.map(([channel, one]) => [
      h("span", { class: "outcome" }, word("channel", channel), " ", statusTag(one.status)),
      one.not_before && h("div", { class: "quiet small" }, t("message.not_before", { when: comingMoment(one.not_before) })),
      one.detail && h("div", { class: "quiet small", dir: "auto" }, one.detail)]),
    part && h("div", { class: "quiet small" }, t("message.in_day", { when: moment(part[1].at) })),
    where && used.some(([, one]) => one.detail) && h("button", { class: "plain small", onclick: () => showExchange(where, row) }, t("message.exchange")),
    missing.length > 0 && h("details", { class: "quiet small" }, h("summary", {}, t("message.no_contact_more", { count: missing.length })),
      t("message.no_contact_in", { channels: missing.map(([channel]) => word("channel", channel)).join(", ") })),
  ];
}

/** Shows every call of the attempts that failed, as the services answered them. */
function showExchange(where, row) {
  return open(t("message.exchange"), (close) => {
    const place = h("div");
    withStates(place, () => api.get(`${where}/exchanges`, { recipient: String(row.id) }), ({ exchanges }) => [
      !exchanges.length && h("p", {}, t("message.exchange_none")),
      exchanges.map((one) => h("section", { class: "reasons" },
        h("p", {}, h("strong", {}, word("channel", one.channel)), ` · ${fullMoment(one.at)} · `, word("exchange", one.outcome), one.times > 1 && ` · ${t("message.exchange_times", { count: one.times })}`),
        h("ul", { class: "plain-list" }, one.calls.map((call) => h("li", { class: "small" },
          h("code", {}, call.method), " ", call.status ? String(call.status) : t("message.exchange_silent"), ` · ${number(call.took_ms, { style: "unit", unit: "millisecond" })}`,
          call.words && h("div", { class: "quiet", dir: "auto" }, call.words)))),
        one.detail && !one.calls.some((call) => call.words === one.detail) && h("p", { class: "quiet small", dir: "auto" }, one.detail))),
    ]);
    return [h("p", { class: "hint" }, t("message.exchange_hint")), place, h("div", { class: "actions" }, h("button", { type: "button", onclick: () => close() }, t("action.back")))];
  });
}

/** The state of the question for a person, and what it has answered. */
const answered = ({ id, answer, reminders = [] }, where, { options }) => [
  (where || answer.state !== "answered" || !answer.text) && [word("answer_state", answer.state), " "],
  where && answer.text && h("a", { class: "outcome", href: `${where}/answers/file?recipient=${encodeURIComponent(id)}`, download: answer.text, dir: "auto" }, answer.text),
  !where && answer.text && h("span", { dir: "auto" }, `${answer.text}${answer.note ? ` (${answer.note})` : ""}`),
  answer.freed && h("span", { class: "quiet" }, ` (${t("message.freed")})`),
  answer.waiting && h("span", { class: "quiet" }, ` (${t("message.waits")})`),
  answer.by === "on_behalf" && h("div", { class: "quiet small", dir: "auto" }, t("message.entered_by", { who: answer.who })),
  (answer.revisions || []).map((one) => h("div", { class: "quiet small", dir: "auto" }, t("message.before", { answer: said(one, options), when: moment(one.at) }))),
  answer.conflict && h("div", { class: "small", dir: "auto" }, tag("warn", t("message.conflict")), " ", answer.voices.map((one) => `${one.name || one.who}: ${one.text}`).join(", ")),
  reminders.map((one) => h("span", { class: "outcome small" }, t("message.reminder", { number: one.wave }), " ", statusTag(one.status))),
];

/** What an earlier answer said: the text of the option, or the words. */
const said = ({ value, text }, options) => options.find((one) => one.key === value)?.text || text || value;

const tried = ({ queued }) => toast(t("message.tried", { count: queued }), queued ? "good" : "bad");
const cancelled = (answer) => toast(t("message.cancelled", { count: answer.cancelled, sent: answer.already_sent.length }));

async function cancel(where, count, reread) {
  if (!await confirm({ title: t("message.cancel_title", { count }), text: t("message.cancel_text"), action: t("message.cancel"), count, danger: true })) return;
  await shown(async () => cancelled(await api.del(where)));
  reread();
}

/** Returns what asks, works and reads again. */
const act = (name, reread, work, count) => async () => {
  if (!await confirm({ title: t(`message.${name}`), text: t(`message.${name}_text`), action: t(`message.${name}`), count })) return;
  await shown(work);
  reread();
};

/** Enters an answer on behalf of a person. */
async function answerFor(where, { id, name }, { kind, options }, reread) {
  const input = options.length ? h("select", { name: "value" }, options.map((one) => h("option", { value: one.key }, one.text)))
    : h(kind === "text" ? "textarea" : "input", { name: "value", required: true, maxlength: LONGEST_TEXT, ...(kind === "date" && { type: "date" }) });
  const counted = await ask({ title: `${t("message.answer_for")}: ${name || id}`, fields: [field({ label: t("message.answer") }, input)], action: t("message.answer_save"),
    submit: ({ value }) => api.post(`${where}/answers`, { recipient: id, value }) });
  if (counted && !["answered", "changed", "late"].includes(counted.result)) toast(t("message.answer_stays"), "bad");
  reread();
}

async function retry(where, count, reread) {
  if (!await confirm({ title: t("message.retry_title", { count }), text: t("message.retry_text"), action: t("message.retry"), count })) return;
  await shown(async () => tried(await api.post(`${where}/retry`, {})));
  reread();
}

async function shown(work) {
  await work().catch(toastError);
}

async function moveTo(where, body) {
  try {
    return await api.patch(where, body);
  } catch (error) {
    if (error.code !== "DELIVER_AT_FAR" || !await confirm({ title: t("message.move"), text: explain(error), action: t("write.far") })) throw error;
    return api.patch(where, { ...body, far: true });
  }
}

async function move(where, context, reread) {
  const place = h("div");
  const draw = (wall) => paint(place, timeField(wall, context.me, { name: "deliver_at", required: true, onchange: ({ target }) => draw(target.value) }));
  draw("");
  const moved = await ask({ title: t("message.move"), fields: [place], action: t("message.move"),
    submit: ({ deliver_at }) => moveTo(where, { deliver_at: inZone(deliver_at, context.me.timezone) }) });
  if (moved) { toast(t("message.moved", { at: comingMoment(moved.deliver_at) })); reread(); }
}
