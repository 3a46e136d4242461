/** Write a message: recipients, text, channels and time; then check what will become of it, and send it once. */

import { field, h, paint } from "../lib/dom.js";
import { moment, t, word } from "../lib/words.js";
import { ApiError, NoResponse, api, watchConnection } from "../lib/api.js";
import { clearToasts, notice, toast, toastError } from "../lib/page.js";
import { LONGEST_TEXT, bodyOf, dropDraft, hasContent, hasMarks, keepDraft, lengthOf, readDraft, seriesOf } from "../lib/draft.js";
import { findPeople } from "../lib/directory.js";
import { isPast, timeField } from "../lib/when.js";
import { Attachments, RecipientTable, faults } from "./write_files.js";
import { drawTemplates, readTemplates } from "./write_templates.js";
import { facts, shownTo } from "./write_check.js";
import { drawTerms } from "./write_terms.js";

const SUMMARY_PAUSE = 500;
const MOST_SHOWN = 50;
const LONGEST_TITLE = 60;
const LANGUAGES = ["ru", "en"];
const VISIBLE = ["named", "hidden", "anonymous"];
const AUDIENCES = ["students", "guardians", "both"];
const CHECK = "check";
const NOTHING = { people: [], groups: [], supergroups: [] };

export default {
  title: "page.write",
  right: "write",
  render(root, parameters, context) {
    const writing = new Writing(root, context);
    writing.start();
    // What could not be asked while Ada was away.
    return watchConnection((connection) => connection === "online" && writing.problem && writing.summarise());
  },
};

class Writing {
  constructor(root, context) {
    Object.assign(this, { root, context, me: context.me, draft: readDraft(), groups: [], supergroups: [], channels: [], templates: [], found: NOTHING, said: null, problem: null, parts: 0, isSending: false });
    this.attachments = new Attachments(this);
    this.table = new RecipientTable(this);
  }

  async start() {
    this.paintForm();
    const { signal } = this.context;
    try {
      this.channels = (await api.get("/v1/channels", {}, { signal })).channels;
      await Promise.all([this.readGroups(signal), readTemplates(this)]);
    } catch (error) {
      toastError(error);
    }
    if (!this.isChecking) this.paintForm();
    if (this.context.parameters[0] === CHECK && this.isReady()) return this.check();
    return this.summarise();
  }

  async readGroups(signal) {
    const { groups, supergroups, owns_all: ownsAll, scopes } = this.me;
    if (!ownsAll || !scopes.some((one) => one === "manage" || one === "admin")) return Object.assign(this, { groups, supergroups });
    this.groups = (await api.get("/v1/groups", { limit: 1000 }, { signal })).groups;
    this.supergroups = (await api.get("/v1/supergroups", { limit: 1000 }, { signal })).supergroups;
    return undefined;
  }

  /** Keeps the draft, and says anew what it would do. */
  changed(changes) {
    Object.assign(this.draft, changes);
    keepDraft(this.draft);
    clearToasts();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.summarise(), SUMMARY_PAUSE);
  }

  hasRecipients() {
    const { groups, supergroups, people, table, followUp } = this.draft;
    return Boolean(followUp) || groups.length + supergroups.length + people.length + Boolean(table) > 0;
  }

  isReady() {
    return this.hasRecipients() && hasContent(this.draft);
  }

  isTooLong() {
    return lengthOf(this.draft.text) > LONGEST_TEXT;
  }

  isPast() {
    return !this.draft.every && isPast(this.draft.when, this.me);
  }

  /** As long as nobody is chosen: what the writer itself would get. */
  preview(query) {
    const { me } = this;
    const body = bodyOf(this.draft, me);
    if (!this.hasRecipients()) Object.assign(body, { recipients: [me.kind === "person" ? { id: me.id } : { id: "0", contacts: {} }], audience: undefined });
    return api.post("/v1/deliveries/preview", body, { query, signal: this.context.signal });
  }

  async summarise() {
    const asked = this.asked = JSON.stringify(this.draft);
    if (!hasContent(this.draft) || this.isTooLong() || this.isPast()) Object.assign(this, { said: null, problem: null, parts: 0 });
    else if (this.draft.buttons.some(isHalf)) Object.assign(this, { said: null, problem: new ApiError({ title: t("write.half_button") }) });
    else {
      try {
        const said = await this.preview();
        if (this.draft.every && this.isReady()) Object.assign(said, await api.post("/v1/series/preview", seriesOf(this.draft, this.me), { signal: this.context.signal }));
        if (asked === this.asked) Object.assign(this, { said: this.isReady() ? said : null, problem: null, parts: said.channels.sms?.parts || 0 });
      } catch (error) {
        if (error.name === "AbortError") return;
        if (asked === this.asked) Object.assign(this, { said: null, problem: this.hasRecipients() ? error : null });
      }
    }
    if (!this.isChecking && asked === this.asked) this.paintForm();
  }

  // the form

  paintForm() {
    this.isChecking = false;
    const { draft } = this;
    paint(this.root,
      h("h1", { key: "title" }, t("page.write")),
      h("form", { key: "form", class: "write", onsubmit: (event) => { event.preventDefault(); this.check(); } },
        h("section", { class: "panel" }, h("h2", {}, t("write.to")), draft.followUp ? this.followed() : [this.chosen(), this.choices(), this.table.draw(), this.audience()]),
        h("section", { class: "panel" }, h("h2", {}, t("write.message")), drawTemplates(this), this.toolbar(), this.table.marks(),
          field({ label: t("write.text"), hint: t("write.text_hint"), error: this.isTooLong() && t("write.too_long", { count: lengthOf(draft.text) - LONGEST_TEXT }) },
            h("textarea", { id: "text", name: "text", rows: 8, dir: "auto", value: draft.text, oninput: (event) => this.typed(event.target.value) })),
          h("p", { class: "quiet small" }, t("write.length", { count: lengthOf(draft.text), limit: LONGEST_TEXT }), this.parts > 0 && [" · ", t("write.sms_parts", { count: this.parts })]),
          this.personal(), this.question(), this.languages(),
          this.attachments.draw(),
          h("details", { open: draft.buttons.length > 0 || Boolean(draft.files) || undefined }, h("summary", {}, t("write.more")), this.buttons(),
            field({ label: t("write.files"), hint: t("write.files_hint") }, h("textarea", { id: "files", name: "files", rows: 2, value: draft.files,
              oninput: (event) => this.changed({ files: event.target.value }) })))),
        h("section", { class: "panel" }, h("h2", {}, t("write.how")), this.ways(),
          !draft.every && timeField(draft.when, this.me, { name: "when", onchange: (event) => { this.changed({ when: event.target.value }); this.paintForm(); } }), this.repeating()),
        h("div", { class: "write-end" }, this.summary(),
          h("div", { class: "actions" }, h("button", { class: "primary" }, t("write.check")),
            h("button", { type: "button", onclick: () => this.begin() }, t("write.clear"))))));
  }

  begin() {
    this.paintForm(); // what was typed and not yet painted is taken back, too
    dropDraft();
    this.attachments.forget();
    this.table.forget();
    Object.assign(this, { draft: readDraft(), said: null, problem: null, found: NOTHING, search: "" });
    this.paintForm();
  }

  /** Whether those who are chosen get it, or their guardians. */
  audience() {
    return h("div", { key: "audience" }, field({ label: t("write.audience") }, h("select", { id: "audience", name: "audience", onchange: ({ target }) => { this.changed({ to: target.value }); this.paintForm(); } },
      AUDIENCES.map((one) => h("option", { value: one, selected: one === this.draft.to }, t(`write_audience.${one}`))))));
  }

  /** Whom a follow-up goes to: nobody else. */
  followed() {
    const { of, text } = this.draft.followUp, name = t(`write_follow_up.${of}`, { text: text.slice(0, LONGEST_TITLE) });
    return h("ul", { class: "chips", "aria-label": t("write.chosen") }, h("li", {}, h("button", { type: "button", class: "chip", dir: "auto", "aria-label": t("write.remove", { name }),
      onclick: () => { this.changed({ followUp: null }); this.paintForm(); } }, name, " ×")));
  }

  chosen() {
    const { groups, supergroups, people, table } = this.draft;
    const one = (kind, item) => h("li", {}, h("button", { type: "button", class: "chip", "aria-label": t("write.remove", { name: nameOf(item) }),
      onclick: () => this.take(kind, item, false) }, nameOf(item), " ×"));
    const rows = table && t("write.table_rows", { name: table.name, count: table.rows });
    const ofTable = table && h("li", {}, h("button", { type: "button", class: "chip", "aria-label": t("write.remove", { name: rows }),
      onclick: () => { this.changed({ table: null }); this.paintForm(); } }, rows, " ×"));
    const all = [ofTable || [], ...groups.map((item) => one("groups", item)), ...supergroups.map((item) => one("supergroups", item)), ...people.map((item) => one("people", item))];
    return all.flat().length ? h("ul", { key: "chosen", class: "chips", "aria-label": t("write.chosen") }, all) : h("p", { key: "chosen", class: "quiet" }, t("write.nobody_chosen"));
  }

  choices() {
    const wanted = (this.search || "").trim().toLocaleLowerCase();
    const fits = (item) => nameOf(item).toLocaleLowerCase().includes(wanted);
    const all = (kind) => [...this[kind].filter(fits), ...this.found[kind].filter(({ id }) => !this[kind].some((one) => one.id === id))];
    const rows = [
      ...all("supergroups").map((item) => this.choice("supergroups", item, t("write.groups_in", { count: item.size ?? item.groups?.length ?? 0 }))),
      ...all("groups").map((item) => this.choice("groups", item, item.size === undefined ? "" : t("write.people_in", { count: item.size }))),
      ...this.found.people.map((item) => this.choice("people", item, item.email || (item.groups || []).join(", "))),
    ];
    const isAlone = !this.groups.length && !this.supergroups.length;
    return [
      isAlone && !this.me.owns_all && notice("info", t("write.no_group")),
      field({ label: t("write.search"), hint: t(this.readsDirectory() ? "write.search_hint" : "write.search_name_hint") }, h("input", { id: "search", type: "search", name: "search", value: this.search || "", autocomplete: "off",
        oninput: (event) => this.searched(event.target.value) })),
      rows.length ? h("ul", { class: "picks" }, rows.slice(0, MOST_SHOWN)) : wanted && h("p", { class: "quiet" }, t("table.nothing_found")),
      rows.length > MOST_SHOWN && h("p", { class: "quiet small" }, t("write.more_found", { count: rows.length - MOST_SHOWN })),
    ];
  }

  choice(kind, item, about) {
    const isChosen = this.draft[kind].some((one) => String(one.id) === String(item.id));
    return h("li", { key: `${kind} ${item.id}` }, h("label", { class: "check" },
      h("input", { type: "checkbox", checked: isChosen, onchange: (event) => this.take(kind, item, event.target.checked) }),
      h("span", { dir: "auto" }, nameOf(item)), about && h("span", { class: "quiet small" }, about)));
  }

  take(kind, item, isTaken) {
    const rest = this.draft[kind].filter((one) => String(one.id) !== String(item.id));
    this.changed({ [kind]: isTaken ? [...rest, { id: item.id, title: item.title, name: item.name }] : rest });
    this.paintForm();
  }

  readsDirectory() {
    return this.me.rights.includes("people");
  }

  searched(text) {
    this.search = text;
    this.paintForm();
    clearTimeout(this.searching);
    this.searching = setTimeout(() => this.searchPeople(text.trim()), 300);
  }

  async searchPeople(text) {
    const found = text ? await this.called(text).catch(() => NOTHING) : NOTHING;
    if (text !== (this.search || "").trim()) return;
    this.found = found;
    if (!this.isChecking) this.paintForm();
  }

  async called(name) {
    const { signal } = this.context;
    return this.readsDirectory() ? { ...NOTHING, people: await findPeople(name, { signal }) } : api.get("/v1/addressees", { name }, { signal, tries: 1 });
  }

  toolbar() {
    const mark = (before, after, label) => h("button", { type: "button", onclick: () => this.mark(before, after) }, label);
    return h("div", { class: "actions", role: "toolbar", "aria-label": t("write.format") },
      mark("**", "**", t("write.bold")), mark("__", "__", t("write.italic")), mark("[", "](https://)", t("write.link")));
  }

  mark(before, after) {
    const area = this.root.querySelector("#text");
    const { selectionStart: start, selectionEnd: end } = area;
    area.focus();
    area.setRangeText(before + area.value.slice(start, end) + after, start, end, "end");
    if (start === end) area.setSelectionRange(start + before.length, start + before.length);
    this.changed({ text: area.value });
  }

  /** Puts a text where the cursor is. */
  insert(text) {
    const area = this.root.querySelector("#text");
    area.focus();
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    this.typed(area.value);
  }

  typed(text) {
    const hadMarks = hasMarks(this.draft);
    this.changed({ text });
    if (hadMarks !== hasMarks(this.draft)) this.paintForm();
  }

  /** Whether braces in the text stand for the values of each person. */
  personal() {
    return hasMarks(this.draft) && h("label", { key: "personal", class: "check" },
      h("input", { type: "checkbox", checked: !this.draft.asTyped, onchange: (event) => this.changed({ asTyped: !event.target.checked }) }), h("span", {}, t("write.personal")));
  }

  /** The texts for people of one language, in place of the text. */
  languages() {
    const { texts } = this.draft;
    return h("details", { key: "languages", open: Object.values(texts).some(Boolean) || undefined }, h("summary", {}, t("write.languages")), LANGUAGES.map((one) =>
      field({ label: t(`write_text.${one}`) }, h("textarea", { id: `text-${one}`, rows: 4, dir: "auto", value: texts[one] || "", maxlength: LONGEST_TEXT, oninput: ({ target }) => this.changed({ texts: { ...this.draft.texts, [one]: target.value } }) }))));
  }

  /** What everybody is asked. */
  question() {
    const { answer, options, until, every, visible, consent, terms, channels, to, followUp } = this.draft;
    const ways = this.channels.map((one) => one.channel).filter((one) => !channels.includes(one) || terms.escalate?.channels.includes(one));
    return [
      field({ label: t("message.answer") }, h("select", { id: "answer", onchange: ({ target }) => { this.changed({ answer: target.value }); this.paintForm(); } },
        ["", "confirm", "choice", "text", "number", "date", "file"].map((kind) => h("option", { value: kind, selected: kind === answer }, t(`write_answer.${kind || "none"}`))))),
      answer === "choice" && field({ label: t("write.options"), hint: t("write.options_hint") }, h("textarea", { id: "options", rows: 3, dir: "auto", value: options, oninput: ({ target }) => this.changed({ options: target.value }) })),
      answer && followUp && h("p", { key: "anew", class: "quiet small" }, t("write.asked_anew")),
      answer === "choice" && to !== "students" && !followUp && h("p", { key: "consent" }, h("label", { class: "check" },
        h("input", { id: "consent", type: "checkbox", checked: consent, onchange: ({ target }) => this.changed({ consent: target.checked }) }), h("span", {}, t("write.consent")))),
      answer && h("div", { key: "visible" }, field({ label: t("write.visible") }, h("select", { id: "visible", onchange: ({ target }) => this.changed({ visible: target.value }) },
        VISIBLE.map((one) => h("option", { value: one, selected: one === visible }, t(`write_visible.${one}`)))))),
      answer && !every && field({ label: t("write.until") }, h("input", { id: "until", type: "datetime-local", value: until, onchange: ({ target }) => this.changed({ until: target.value }) })),
      answer && drawTerms(this.draft, ways, (changed) => { this.changed({ terms: changed }); this.paintForm(); }),
    ];
  }

  /** Whether it is sent again and again. */
  repeating() {
    const { every, last, followUp, table } = this.draft;
    const set = (changes) => { this.changed(changes); this.paintForm(); };
    return !followUp && !table && h("details", { key: "every", open: Boolean(every) || undefined }, h("summary", {}, t("write.repeat")),
      field({ label: t("write.every"), hint: t("write.every_hint") }, h("input", { id: "every", value: every, maxlength: 128, autocomplete: "off", onchange: ({ target }) => set({ every: target.value.trim() }) })),
      every && field({ label: t("write.last") }, h("input", { id: "last", type: "date", value: last, onchange: ({ target }) => set({ last: target.value }) })));
  }

  buttons() {
    const { buttons } = this.draft;
    const set = (place, changes) => this.changed({ buttons: this.draft.buttons.map((one, index) => (index === place ? { ...one, ...changes } : one)) });
    return [
      buttons.map((one, place) => h("div", { class: "button-row" },
        field({ label: t("write.button_text") }, h("input", { id: `button-${place}`, value: one.text, maxlength: 256, oninput: (event) => set(place, { text: event.target.value }) })),
        field({ label: t("write.button_url") }, h("input", { id: `url-${place}`, type: "url", value: one.url, placeholder: "https://", oninput: (event) => set(place, { url: event.target.value }) })))),
      h("div", { class: "actions" }, h("button", { type: "button", onclick: () => { this.changed({ buttons: [...this.draft.buttons, { text: "", url: "" }] }); this.paintForm(); } }, t("write.add_button"))),
    ];
  }

  ways() {
    const { channels, order } = this.draft;
    const set = (name, isOn) => this.changed({ channels: this.channels.map((one) => one.channel).filter((one) => (one === name ? isOn : this.draft.channels.includes(one))) });
    return [
      h("fieldset", {}, h("legend", {}, t("write.channels")), h("p", { class: "hint" }, t("write.channels_hint")),
        this.channels.map((one) => h("label", { class: "check" },
          h("input", { type: "checkbox", checked: channels.includes(one.channel), onchange: (event) => set(one.channel, event.target.checked) }),
          h("span", {}, word("channel", one.channel)), (one.halted || one.paused) && h("span", { class: "quiet small" }, t("write.halted"))))),
      h("fieldset", {}, h("legend", {}, t("write.order")), ["first", "all"].map((value) => h("label", { class: "check" },
        h("input", { type: "radio", name: "order", value, checked: order === value, onchange: () => this.changed({ order: value }) }), h("span", {}, word("write_order", value))))),
    ];
  }

  /** What a send would do, in a few lines, while one writes. */
  summary() {
    if (this.problem) return [problemOf(this.problem), this.problem.code === "DELIVER_AT_FAR" && this.farButton()];
    if (!this.said) return h("p", { class: "quiet" }, t("write.not_ready"));
    const { said } = this;
    return h("div", { class: "summary", role: "status" }, h("p", {}, t("write.people", { count: said.people })), facts(said));
  }

  farButton() {
    return h("button", { type: "button", onclick: () => this.changed({ far: this.draft.when }) }, t("write.far"));
  }

  // the check

  async check() {
    if (this.attachments.areComing) return toast(t("write.files_coming"), "bad");
    if (!this.hasRecipients()) return this.asksFor("search", "write.nobody_chosen");
    if (!hasContent(this.draft) || this.isTooLong()) return this.asksFor("text", !this.isTooLong() && "write.no_content");
    if (this.isPast()) return this.asksFor("when");
    await this.summarise();
    if (!this.said) return undefined;
    if (!location.hash.endsWith(CHECK)) {
      history.pushState(null, "", `#/write/${CHECK}`);
      this.hasForm = true;
    }
    this.paintCheck();
    this.root.querySelector("h1").focus();
    window.scrollTo(0, 0);
    return undefined;
  }

  /** Goes to what is missing, or has its error beside it. */
  asksFor(id, what) {
    if (this.isChecking || location.hash.endsWith(CHECK)) history.replaceState(null, "", "#/write");
    this.paintForm();
    if (what) toast(t(what), "bad");
    this.root.querySelector(`#${id}`).focus();
  }

  /** The page of the form is shown anew, from the draft. */
  leaveCheck() {
    if (this.hasForm) history.back();
    else this.context.go("write", "", true);
  }

  paintCheck(problem, news) {
    this.isChecking = true;
    const { said } = this;
    const isRefused = said.quota && !said.quota.allowed;
    const missed = said.no_contact + said.person_blocked + said.opted_out;
    const reached = said.people - missed;
    paint(this.root,
      h("h1", { key: "check", tabindex: -1 }, t("write.check_title")),
      h("div", { key: "checked" },
        notice(verdictOf(reached, said.people), t("write.will_reach", { reached, people: said.people })),
        this.draft.every && h("p", {}, t("write.every_said", { when: this.draft.every, zone: this.me.timezone })),
        facts(said),
        said.unreachable.length > 0 && named("write.unreachable", missed, said, said.unreachable),
        said.fallback && named("write.fallback", said.fallback.people, said, said.fallback.first),
        h("h2", {}, t("write.shown")),
        shownTo(said, (query) => this.preview(query)),
        problem && (isUnconfirmed(problem) ? notice("bad", t("write.not_confirmed")) : problemOf(problem)),
        news && notice("info", news),
        h("div", { class: "actions", "aria-busy": this.isSending ? "true" : null },
          h("button", { class: "primary", disabled: isRefused || !reached || undefined, "aria-disabled": this.isSending ? "true" : null, onclick: () => this.send() },
            this.isSending ? t("write.sending") : this.sends(reached)),
          this.me.kind === "person" && h("button", { onclick: () => this.sendToMyself() }, t("write.to_myself")),
          h("button", { onclick: () => this.leaveCheck() }, t("write.change")))));
  }

  /** The key of the draft goes with every attempt, so a second press or a repeat after a lost answer sends nothing again. */
  async send() {
    await this.once(async () => {
      if (this.draft.every) return this.repeat();
      const sent = await api.post("/v1/deliveries", bodyOf(this.draft, this.me), { idempotencyKey: this.draft.key });
      dropDraft();
      this.context.go(`message/${sent.id}`, t("write.sent"), true);
    });
  }

  sends(reached) {
    return this.draft.every ? t("write.send_every") : t("write.send", { count: reached });
  }

  async repeat() {
    await api.post("/v1/series", seriesOf(this.draft, this.me), { idempotencyKey: this.draft.key });
    dropDraft();
    this.context.go("messages", t("write.repeats"), true);
  }

  /** A trial of the same content has the same key, so it is sent once, too. */
  async sendToMyself() {
    const { text, content } = this.said, own = text === undefined ? {} : { text, content, personal: undefined };
    const body = { ...bodyOf({ ...this.draft, when: "", to: "students" }, this.me), ...own, recipients: [{ id: this.me.id }], kind: "trial", tags: ["test"] };
    await this.once(async () => {
      const sent = await api.post("/v1/deliveries", body, { idempotencyKey: `${this.draft.key}-${hashOf(JSON.stringify(body))}` });
      return sent.moved_from ? t("write.moved", { at: moment(sent.deliver_at) }) : t("write.sent_to_myself");
    });
  }

  /** Does one thing at a time; what became of it stands at the button. */
  async once(work) {
    if (this.isSending) return;
    this.isSending = true;
    this.paintCheck();
    const [problem, news] = await work().then((said) => [null, said], (error) => [error]);
    this.isSending = false;
    this.paintCheck(problem, news);
  }
}

/** Returns how many people something concerns, and in it the first of them. */
const named = (key, count, { people }, first) => h("details", { key }, h("summary", {}, t(key, { count, people })),
  h("ul", {}, first.map((one) => h("li", {}, h("span", { dir: "auto" }, nameOf(one)), one.why && [" – ", word("why", one.why)])),
    count > first.length && h("li", {}, t("write.more_faults", { count: count - first.length }))));

/** Returns the colour of how many are reached. */
function verdictOf(reached, people) {
  if (!reached) return "bad";
  return reached < people ? "warn" : "good";
}

const isUnconfirmed = (error) => error instanceof NoResponse || error.status >= 500;

function problemOf(error) {
  if (isUnconfirmed(error)) return notice("bad", t("write.unchecked"));
  return error.code === "BODY_TOO_LARGE" ? notice("bad", t("write.too_large")) : faults(error);
}

/** Returns 32 bits of a text (FNV-1a). */
const hashOf = (text) => [...text].reduce((hash, letter) => Math.imul(hash ^ letter.codePointAt(0), 16777619), 2166136261) >>> 0;

const isHalf = ({ text, url }) => !text.trim() !== !url.trim();

const nameOf = (item) => item.title || item.name || String(item.id);
