// One message: what it says, and of a mail its HTML, text, source, headers and files. HTML is shown in a frame that may do nothing.

import { at, button, element, Refusal, request } from "./dom.js";
import { currentLanguage, say } from "./words.js";

let shown = 0;

at("message-close").onclick = () => { shown = 0; at("message").hidden = true; };

/** Shows a message. `console`: the address of Ada's console, which finds its delivery; "" if it is not known. */
export async function openMessage(message, console) {
  shown = message.number;
  at("message-title").textContent = message.subject || say("message", { number: message.number });
  at("message-facts").textContent = [message.channel, message.address, new Date(message.at * 1000).toLocaleString(currentLanguage()), message.reference].filter(Boolean).join(" · ");
  at("delivery").hidden = !console;
  at("delivery").href = `${console}/#/messages?${new URLSearchParams({ message: `${message.channel}:${message.address}:${message.reference}` })}`;
  at("files").replaceChildren();
  at("views").replaceChildren();
  at("view").replaceChildren(text(message.text));
  at("message").hidden = false;
  at("message").focus();
  if (message.channel === "email") await openMail(message.number);
}

const text = (said) => element("pre", { tabIndex: 0 }, said);

async function openMail(number) {
  let mail;
  try {
    mail = await request("GET", `mails/${number}`);
  } catch (failure) {
    if (shown === number) at("view").prepend(element("p", { className: "problem" }, say(failure instanceof Refusal ? "gone" : "offline")));
    return;
  }
  if (shown !== number) return;
  const views = {
    ...(mail.html && { view_html: () => frame(number) }),
    view_text: () => text(mail.text),
    view_headers: () => element("dl", {}, ...mail.headers.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    view_source: () => text(mail.source),
  };
  const choose = (name) => {
    at("view").replaceChildren(views[name]());
    for (const one of at("views").children) one.setAttribute("aria-pressed", String(one.dataset.view === name));
  };
  at("views").replaceChildren(...Object.keys(views).map((name) => {
    const made = button(say(name), () => choose(name));
    made.dataset.view = name;
    return made;
  }));
  choose(Object.keys(views)[0]);
  at("files").replaceChildren(...mail.files.map((one, n) => element("li", {},
    element("a", { href: `mails/${number}/files/${n}`, download: one.name }, one.name), ` ${one.type}, ${say("size", { size: one.size })}`)));
}

/** The frame has no rights: no script, no form, no link that opens here, nothing from other hosts. */
function frame(number) {
  const made = element("iframe", { src: `mails/${number}/html`, title: say("mailView") });
  made.setAttribute("sandbox", "");
  return made;
}
