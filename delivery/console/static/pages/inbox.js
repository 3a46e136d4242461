/** Replies of people to messages: the threads of an inbox, the newest first. */

import { h, paint, field, newId } from "../lib/dom.js";
import { moment, t, word } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { countUnread, tag, submits, toast, withStates } from "../lib/page.js";
import { follow } from "../lib/live.js";
import { table } from "../lib/table.js";
import { ask, confirm } from "../lib/dialog.js";
import { Attachments } from "./write_files.js";

export default {
  title: "page.inbox",
  right: ["read", "person"],
  render(root, parameters, context) {
    const place = h("div"), choice = h("div");
    paint(root, h("h1", {}, t("page.inbox")), choice, place);
    const list = table(place, {
      label: t("page.inbox"), context, id: (row) => row.id, href: (row) => `#/thread/${row.id}`,
      filters: [{ name: "q", label: t("inbox.search"), type: "search" }, { name: "unread", label: t("inbox.shown"), options: [["", t("inbox.all")], ["true", t("inbox.unread_only")]] }],
      columns: [
        { title: t("inbox.person"), width: "1.5fr", name: nameOf, cell: (row) => [h("strong", {}, nameOf(row)), row.unread > 0 && [" ", tag("info", t("inbox.unread", { count: row.unread }))]] },
        { title: t("inbox.text"), width: "3fr", cell: (row) => [answering(row, context.me), h("span", { class: "cut", dir: "auto" }, lineOf(row))] },
        { title: t("inbox.channel"), width: "9rem", cell: (row) => word("channel", row.channel) },
        { title: t("inbox.when"), width: "9rem", cell: (row) => moment(row.last_at) },
      ],
      load: async ({ signal, ...asked }) => {
        let page;
        do { // a search of many threads may find none in the first of them
          page = await api.get("/v1/threads", { inbox: context.query.inbox, ...asked, limit: 50 }, { signal });
          asked.cursor = page.next;
        } while (page.next && !page.threads.length);
        countUnread(page.inboxes);
        paint(choice, page.inboxes.length > 1 && chooser(page.inboxes, context, list));
        return { rows: page.threads, next: page.next };
      },
      whenEmpty: { title: t("inbox.none") },
    });
    follow(["reply"], () => list.update(), context.signal);
  },
};

export const nameOf = ({ person }) => person.name || t("inbox.stranger");

/** The name of another reader of an office who is answering at this moment. */
export const colleagueOf = ({ answering }, me) => answering && String(answering.id) !== String(me.id) ? answering.name : "";

function answering(row, me) {
  const name = colleagueOf(row, me);
  return name && [tag("info", t("inbox.answering", { name })), " "];
}

function lineOf({ newest }) {
  const text = newest && (newest.text || newest.attachments.map((one) => one.name).join(", ") || t("inbox.files", { count: newest.files }));
  return newest?.side === "staff" ? `${t("inbox.answered")}: ${text}` : text;
}

const chooser = (inboxes, context, list) => h("label", { class: "field" }, t("inbox.whose"), h("select", {
  onchange: (event) => { context.setQuery({ inbox: event.target.value }); list.reload(); },
}, inboxes.map(({ id, title, unread }) => h("option", { value: id, selected: id === (context.query.inbox || inboxes[0].id) }, unread ? `${title} (${unread})` : title))));

// one of them

const ASKED = { ADDRESS_IN_TEXT: ["with_addresses", "inbox.address"], ANSWERED_ALREADY: ["again", "inbox.second"], ANSWERING_NOW: ["again", "inbox.second"] };
// The server forgets after a minute who is answering.
const NOTED_EVERY = 20000, FORGOTTEN_AFTER = 61000;

/** A thread: what a person and an inbox have written to each other, and the answer. */
export const thread = {
  title: "page.inbox",
  right: ["read", "person"],
  render(root, [id], context) {
    const path = `/v1/threads/${encodeURIComponent(id)}`, place = newId("answer");
    let isFirst = true;
    // The answer that is being written outlives Back, a reload and the end of the session, with the key by which it is sent once.
    const kept = `ada.answer.${id}`, draft = { key: randomKey(), uploads: [], ...JSON.parse(sessionStorage.getItem(kept)) };
    const changed = (part) => sessionStorage.setItem(kept, JSON.stringify(Object.assign(draft, part)));
    const files = new Attachments({ draft, context, changed, paintForm: () => show() });
    const load = async () => {
      const found = await api.get(path, { limit: 1000 }, { signal: context.signal });
      if (found.thread.unread) await api.post(`${path}:read`);
      return found;
    };
    const answers = async (answer) => {
      const asked = await api.post(`${path}/messages`, answer, { idempotencyKey: draft.key }).then(() => null, (error) => {
        if (!ASKED[error.code] || answer[ASKED[error.code][0]]) throw error;
        return ASKED[error.code];
      });
      changed({ key: randomKey() });
      return !asked || await confirm({ title: t(asked[1]), action: t("inbox.address_send") }) && answers({ ...answer, [asked[0]]: true });
    };
    const send = submits(async (form) => {
      const text = form.elements.text.value;
      if (files.areComing) return toast(t("write.files_coming"), "bad");
      if (!text.trim() && !draft.uploads.length) return form.elements.text.focus();
      if (!await answers({ ...text.trim() && { text }, files: draft.uploads.map((one) => one.id) })) return;
      form.elements.text.value = "";
      changed({ text: "", uploads: [] });
      notedAt = 0;
      toast(t("inbox.sent"));
      await show();
    });
    let notedAt = 0, forgotten = 0;
    const note = (text) => { // colleagues of an office see who is answering
      const ended = !text.trim();
      if (ended ? !notedAt : Date.now() < notedAt + NOTED_EVERY) return;
      notedAt = ended ? 0 : Date.now();
      api.post(`${path}:answering`, { ended }).catch(() => { notedAt = 0; });
    };
    const mark = async (what, body) => {
      await api.post(`${path}:${what}`, body);
      await show();
    };
    const hide = async () => {
      await api.post(`${path}:hide`);
      location.hash = "#/inbox";
    };
    const report = () => ask({
      title: t("inbox.report"), text: t("inbox.report_text"), action: t("inbox.address_send"),
      fields: field({ label: t("inbox.report_why") }, h("input", { name: "why", maxlength: 256, required: true })),
      submit: async ({ why }) => { await api.post(`${path}:report`, { why }); toast(t("inbox.reported")); },
    });
    const show = withStates(root, load, ({ thread, messages }) => {
      context.title(nameOf(thread));
      const colleague = colleagueOf(thread, context.me);
      clearTimeout(forgotten);
      if (colleague) forgotten = setTimeout(() => !context.signal.aborted && show(), FORGOTTEN_AFTER);
      if (isFirst) requestAnimationFrame(() => root.querySelector("form")?.scrollIntoView({ block: "nearest" }));
      isFirst = false;
      return [
        h("h1", {}, nameOf(thread)),
        h("p", { class: "quiet" }, t("inbox.way", { channel: word("channel", thread.channel) }), " ",
          thread.delivery && h("a", { href: `#/message/${encodeURIComponent(thread.delivery)}` }, t("inbox.about"))),
        h("ol", { class: "thread", "aria-live": "polite" }, [...messages].reverse().map((one) => bubble(one, thread, context.me))),
        h("p", { class: "quiet", role: "status" }, colleague && t("inbox.answering", { name: colleague })),
        h("form", { class: "thread-answer", onsubmit: send }, h("label", { for: place }, t("inbox.answer")),
          h("textarea", { id: place, name: "text", rows: 3, maxlength: 4096, dir: "auto", value: draft.text || "", oninput: ({ target }) => { changed({ text: target.value }); if (thread.inbox.startsWith("office:")) note(target.value); } }),
          files.draw(),
          h("div", { class: "actions" }, h("button", { class: "primary" }, t("inbox.send")), h("a", { class: "button", href: "#/inbox" }, t("inbox.back")))),
        h("p", { class: "actions" },
          h("button", { type: "button", onclick: () => mark("mute", { muted: !thread.muted }) }, t(thread.muted ? "inbox.unmute" : "inbox.mute")),
          h("button", { type: "button", onclick: hide }, t("inbox.hide")),
          h("button", { type: "button", onclick: report }, t("inbox.report"))),
        thread.muted && h("p", { class: "quiet" }, t("inbox.is_muted")),
      ];
    });
    follow(["reply"], (events) => events.some(({ topic, data }) => topic === "reread" || data.thread === id) && show(), context.signal);
  },
};

const bubble = (one, thread, me) => h("li", { key: one.number, class: one.side },
  h("p", { class: "quiet" }, authorOf(one, thread, me), ` · ${moment(one.at)}`, one.corrects && ` · ${t("inbox.corrects")}`),
  one.unverified && h("p", { class: "quiet" }, t("inbox.unverified")),
  one.text && h("p", { class: "said", dir: "auto" }, one.text),
  one.attachments.map(({ id, name }) => h("p", {}, h("a", { href: `/v1/threads/${thread.id}/messages/${one.number}/files/${id}`, download: name }, name))),
  one.files > 0 && h("p", { class: "quiet" }, t("inbox.files", { count: one.files })),
  one.small_pictures > 0 && h("p", { class: "quiet" }, t("inbox.logos", { count: one.small_pictures })));

function authorOf({ side, by }, thread, me) {
  if (side === "person") return nameOf(thread);
  return t(String(by) === String(me.id) ? "inbox.answer" : "inbox.colleague");
}
