// The tab of all messages received, newest first.

import { at, button, element, pause, request, row, setConnected } from "./dom.js";
import { openMessage } from "./message.js";
import { openPerson } from "./people.js";
import { currentLanguage, say } from "./words.js";

const SHOWN = 200;
const CHANNELS = ["telegram", "telegram-bot", "vk", "max", "sms", "email"];
let following = new AbortController();
let consoleAddress = "";

at("channel").append(...CHANNELS.map((name) => element("option", { value: name }, name)));

export const leaveMessages = () => following.abort();
export const rerenderMessages = () => { if (!at("tab-all").hidden) showMessages(); };

/** Shows the messages that the filter allows, until the tab or the filter changes. */
export async function showMessages() {
  leaveMessages();
  const { signal } = following = new AbortController();
  at("messages").replaceChildren();
  const fields = { channel: "channel", address: "address", text: "search" };
  const filter = Object.fromEntries(Object.entries(fields).map(([name, id]) => [name, at(id).value.trim()]).filter(([, value]) => value));
  for (let after = -1, wait = 0; !signal.aborted;) {
    try {
      const newest = await showCount(signal);
      if (after < 0) after = Object.keys(filter).length ? 0 : Math.max(0, newest - SHOWN);
      const query = new URLSearchParams({ ...filter, after, wait, limit: 10000 });
      const { messages } = await request("GET", `inbox.json?${query}`, undefined, { signal });
      messages.slice(-SHOWN).forEach(showMessage);
      after = messages.at(-1)?.number || after;
      wait = 20;  // first show the existing messages, then wait for new ones
      await pause(200);
    } catch {
      if (signal.aborted) return;
      setConnected(false);
      await pause(1000);
    }
  }
}

async function showCount(signal) {
  const { inbox, console, environment } = await request("GET", "state.json", undefined, { signal });
  consoleAddress = console;
  const service = environment.ADA_WEB_PUSH_SERVICE;
  Object.assign(at("browsers"), { hidden: !service, href: service ?? "" });
  setConnected(true);
  at("count").textContent = say("count", { count: inbox.stored });
  return inbox.newest;
}

function showMessage(message) {
  const person = button(message.address, () => openPerson(message.channel, message.address));
  const time = new Date(message.at * 1000).toLocaleTimeString(currentLanguage());
  const number = button(message.number, () => openMessage(message, consoleAddress));
  number.setAttribute("aria-label", say("open", { number: message.number }));
  const line = row(number, time, message.channel, person, message.text);
  line.title = message.reference;
  line.lastChild.className = "text";
  if (message.subject) line.lastChild.prepend(element("div", { className: "subject" }, message.subject));
  line.onclick = (event) => { if (!event.target.closest("button")) openMessage(message, consoleAddress); };
  at("messages").prepend(line);
  if (at("messages").rows.length > SHOWN) at("messages").deleteRow(SHOWN);
}

at("filter").oninput = showMessages;
at("filter").onsubmit = (event) => { event.preventDefault(); showMessages(); };
at("filter").onreset = () => setTimeout(showMessages);
