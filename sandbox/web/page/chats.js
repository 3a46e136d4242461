// The columns of one person: a chat per channel, updated live.

import { at, button, element, pause, Refusal, request, setConnected } from "./dom.js";
import { update } from "./log.js";
import { currentLanguage, explain, say, translate } from "./words.js";

const ACTIONS = {
  telegram: [["read", "read/telegram"]],
  "telegram-bot": [
    ["sharePhone", "contact/telegram-bot"], ["join", "join/telegram-bot"], ["block", "block/telegram-bot"],
  ],
  furtherBot: [["sharePhone", "contact/telegram-bot"], ["block", "block/telegram-bot"]],
  group: [["leave", "leave/telegram-bot"]],
  groupOfMax: [["leave", "leave/max"]],
  max: [["start", "start/max"], ["sharePhone", "contact/max"], ["join", "join/max"], ["block", "stop/max"]],
  vk: [["read", "read/vk"], ["allow", "allow/vk"], ["deny", "deny/vk"]],
};
const WRITABLE = ["telegram", "telegram-bot", "vk", "max", "sms"];
const QUOTING = ["telegram-bot", "vk", "max"];
let following = new AbortController();
let person = null;
let chats = {};

/** Shows the chats of a person until another one is shown; `onGone` is called if the person was removed. */
export async function follow(shown, onGone) {
  stopFollowing();
  const { signal } = following = new AbortController();
  person = shown || null;
  chats = {};
  at("columns").replaceChildren();
  for (let query = ""; person && !signal.aborted;) {
    try {
      const found = await request("GET", `people/${person.number}/chats${query}`, undefined, { signal });
      setConnected(true);
      chats = found.chats;
      renderChats();
      query = `?after=${found.revision}&wait=20`;
      await pause(150);
    } catch (failure) {
      if (signal.aborted) return;
      if (failure instanceof Refusal && failure.status === 404) return onGone();
      setConnected(false);
      query = "";
      await pause(1000);
    }
  }
}

export const stopFollowing = () => following.abort();

export function renderChats() {
  if (!person) return;
  for (const column of [...at("columns").children]) if (!chats[column.dataset.chat]) column.remove();
  for (const [key, chat] of Object.entries(chats)) {
    const column = at(`chat-${key}`) || at("columns").appendChild(newColumn(key, chat));
    renderChat(column, key, chat);
  }
}

/** Returns the channel of a chat: that of a group, or of a further bot, is named after both. */
function channelOf(key) {
  if (chats[key].bot) return "telegram-bot";
  if (!chats[key].chat) return key;
  return key.startsWith("max") ? "max" : "telegram-bot";
}

function newColumn(key, chat) {
  const channel = channelOf(key);
  const column = at("column").content.cloneNode(true).firstElementChild;
  column.id = `chat-${key}`;
  column.dataset.chat = key;
  column.dataset.channel = channel;
  column.querySelector(".address").textContent = chat.chat || chat.address;
  const form = column.querySelector("form"), field = form.querySelector("input");
  form.hidden = !WRITABLE.includes(channel);
  field.id = `write-${key}`;
  const picker = form.querySelector("input[type=file]");
  picker.hidden = channel !== "telegram-bot";
  picker.onchange = () => sendFile(key, column, field, picker);
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (await act(key, `write/${channel}`, { ...written(channel, field.value), ...quoteOf(column) })) {
      field.value = "";
      quoteMessage(column, null);
    }
  };
  return column;
}

/** Sends a file, with what is written in the field as its caption. */
async function sendFile(key, column, field, picker) {
  const caption = field.value ? { text: field.value } : {};
  if (picker.files.length && await act(key, "file/telegram-bot", { file: picker.files[0], ...caption, ...quoteOf(column) })) {
    field.value = "";
    quoteMessage(column, null);
  }
  picker.value = "";
}

const quoteOf = (column) => column.quoted ? { reply_to: column.quoted } : {};

/** Has the next message reply to one of the chat; null: to none. */
function quoteMessage(column, message) {
  const field = column.querySelector("form input");
  column.quoted = message && (message.number ?? message.id);
  field.placeholder = message ? `${say("reply")}: ${(message.text || "").slice(0, 40)}` : "";
  if (message) field.focus();
}

/** Returns what a message of the person contains. The bot also sees the name and the language. */
function written(channel, text) {
  if (channel === "max") return { text, name: person.name };
  return channel === "telegram-bot" ? { text, name: person.name, language: currentLanguage() } : { text };
}

/** Lets the person act; returns whether it worked. The chat changes with the next update. */
async function act(key, path, body = {}) {
  const problem = at(`chat-${key}`).querySelector(".problem"), { address, chat, bot } = chats[key];
  problem.textContent = "";
  try {
    await request("POST", path, { address, ...(chat ? { chat } : {}), ...(bot ? { bot } : {}), ...body });
    return true;
  } catch (failure) {
    problem.textContent = explain(failure);
    return false;
  }
}

function renderChat(column, key, chat) {
  const title = chat.title || say(key);
  column.querySelector("h2").textContent = title;
  column.querySelector("input").setAttribute("aria-label", say("write", { name: person.name }));
  const picker = column.querySelector("input[type=file]");
  picker.title = picker.ariaLabel = say("sendFile");
  translate(column);
  const log = column.querySelector(".log");
  log.setAttribute("aria-label", title);
  update(log, chat.messages, currentLanguage(), (message) => bubble(key, message));
  renderAnswer(column.querySelector(".answer"), chat);
  renderKeyboard(column.querySelector(".keyboard"), key, chat.keyboard || [], chat.contact_buttons || []);
  renderActions(column.querySelector(".actions"), key);
}

function bubble(key, message) {
  const hasKind = (message.kind || "text") !== "text" && !message.files?.length;
  const kind = hasKind ? `[${say(message.kind)}] ` : "";
  const made = element("div", { className: `message ${message.from === "person" ? "person" : ""}` });
  if (message.author) made.append(element("p", { className: "subject" }, message.author));
  if (message.subject) made.append(element("p", { className: "subject" }, message.subject));
  if (kind || message.text) made.append(element("p", { className: "text" }, kind + message.text));
  made.append(...(message.files || []).map((one) => file(key, one)));
  for (const buttons of message.buttons || []) {
    made.append(element("div", { className: "buttons row" }, ...buttons.map((one) => inlineButton(key, message, one))));
  }
  const marks = [new Date(message.at * 1000).toLocaleTimeString(currentLanguage())];
  if (message.edited) marks.push(say("edited"));
  if (message.read) marks.push(`✓✓ ${say("seen")}`);
  made.append(element("span", { className: "meta" }, marks.join(" · ")));
  if (message.from !== "person" && QUOTING.includes(chats[key].bot ? channelOf(key) : key)) {
    const quote = button("↩", () => quoteMessage(at(`chat-${key}`), message));
    quote.className = "quote";
    quote.title = quote.ariaLabel = say("reply");
    made.append(quote);
  }
  return made;
}

function file(key, one) {
  const bot = chats[key].bot ? `?bot=${encodeURIComponent(chats[key].bot)}` : "";
  const src = `${channelOf(key)}/files/${encodeURIComponent(one.attachment)}${bot}`, title = `[${say(one.type)}] ${one.name}`;
  if (one.url) return link({ url: one.url, text: title });
  if (["photo", "image"].includes(one.type)) return element("img", { src, alt: one.name, className: "photo" });
  if (["audio", "voice"].includes(one.type)) return element("audio", { src, controls: true, title });
  return element("a", { href: src, download: one.name }, title);
}

const link = (one) => element("a", { href: one.url, target: "_blank", rel: "noopener noreferrer" }, one.text);

function inlineButton(key, message, one) {
  if (/^https?:/.test(one.url)) return link(one);
  return button(one.text, () => act(key, `press/${channelOf(key)}`, { message: message.number ?? message.id, button: one.data || one.text }));
}

/** Shows what the bot answered to the button pressed last, as Telegram shows it for a moment. */
function renderAnswer(line, chat) {
  const newest = (chat.answers || []).at(-1);
  line.textContent = chat.blocked ? say("blocked") : newest?.text || "";
  line.hidden = !line.textContent;
}

function renderKeyboard(keyboard, key, rows, contacts) {
  const state = JSON.stringify([rows, contacts]);
  if (keyboard.state === state) return;
  keyboard.state = state;
  keyboard.replaceChildren(...rows.flat().map((one) => keyboardButton(key, one, contacts)));
}

/** A button of Telegram is a text to write, or shares the contact; one of VK may have data or an address. */
function keyboardButton(key, one, contacts) {
  const channel = channelOf(key);
  if (channel === "vk") return one.url ? link(one) : button(one.text, () => act(channel, "press/vk", { message: 0, button: one.text }));
  if (contacts.includes(one)) return button(one, () => act(key, `contact/${channel}`, person.sms ? { phone: person.sms } : {}));
  return button(one, () => act(key, `write/${channel}`, written(channel, one)));
}

function renderActions(actions, key) {
  if (actions.state === currentLanguage()) return;
  actions.state = currentLanguage();
  const bodies = { sharePhone: () => (person.sms ? { phone: person.sms } : {}), join: askForGroup };
  actions.replaceChildren(...(ACTIONS[actionsOf(key)] || []).map(([name, path]) => {
    const made = button(say(name), () => {
      const body = bodies[name] ? bodies[name]() : {};
      if (body) act(key, path, body);
    });
    made.dataset.action = name;
    return made;
  }));
}

/** Returns the name of the list of what a person can do in a chat. */
function actionsOf(key) {
  if (!chats[key].chat) return chats[key].bot ? "furtherBot" : key;
  return channelOf(key) === "max" ? "groupOfMax" : "group";
}

/** Returns the group that the person names, by its id or by an invite link; null if none. */
function askForGroup() {
  const named = window.prompt(say("whichGroup"), "-1001000000001")?.trim();
  if (!named) return null;
  return named.includes("t.me/") ? { link: named } : { chat: Number(named) };
}
