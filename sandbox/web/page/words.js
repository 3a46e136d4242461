// The words of the page in both languages, and the switch between them.

import { at, Refusal } from "./dom.js";

const WORDS = {
  en: {
    title: "Sandbox", people: "People", all: "All messages", faults: "Faults and counters", disconnected: "connection lost, retrying",
    newPerson: "New person", name: "Name", telegramId: "Telegram id", vkId: "VK id", maxId: "MAX id", phone: "Phone", mail: "E-mail", create: "Create",
    remove: "Remove this person", channel: "Channel", address: "Address", any: "all", showAll: "Show all", number: "No.", time: "Time",
    text: "Text", count: "{count} messages", rules: "Rules in force", method: "Method", fault: "Fault", value: "Value", times: "Times left",
    addRule: "Add this rule", clearRules: "Remove all rules", magic: "Addresses with a fault", meaning: "Meaning", counters: "Counters",
    settings: "Settings of a client", send: "Send", write: "Write as {name}", read: "Mark as read", sharePhone: "Share the phone number", sendFile: "Send a file",
    join: "Join a group", leave: "Leave the group", whichGroup: "The id of a group, or an invite link", new_chat_members: "joined",
    left_chat_member: "left",
    allow: "Allow messages", deny: "Forbid messages",
    start: "Start the bot", block: "Block the bot", blocked: "The bot is blocked. Who writes to it starts it again.", edited: "edited", seen: "read", reply: "Reply",
    search: "Search", delivery: "Its delivery", close: "Close", view_html: "HTML", view_text: "Text", view_source: "Source", view_headers: "Headers",
    browsers: "Browsers with notifications", gone: "This mail is not kept any more; the newest 100 are.", message: "Message {number}", size: "{size} bytes", mailView: "The mail as HTML", open: "Open message {number}",
    nothing: "No messages yet", everyAddress: "Every address exists: messages to it appear here.",
    telegram: "Telegram", "telegram-bot": "Bot in Telegram", vk: "VK", max: "MAX", sms: "SMS", email: "Mailbox",
    photo: "photo", image: "photo", file: "document", document: "document", voice: "voice message", video: "video", animation: "animation", audio: "audio", contact: "contact", offline: "The sandbox does not respond.",
    problems: {},
  },
  ru: {
    title: "Песочница", people: "Люди", all: "Все сообщения", faults: "Сбои и счётчики", disconnected: "связь потеряна, ещё попытка",
    newPerson: "Новый человек", name: "Имя", telegramId: "Номер в Telegram", vkId: "Номер в VK", maxId: "Номер в MAX", phone: "Телефон", mail: "Почта", create: "Создать",
    remove: "Убрать этого человека", channel: "Канал", address: "Адрес", any: "все", showAll: "Показать все", number: "№", time: "Время",
    text: "Текст", count: "Сообщений: {count}", rules: "Действующие правила", method: "Метод", fault: "Сбой", value: "Значение", times: "Осталось раз",
    addRule: "Добавить правило", clearRules: "Убрать все правила", magic: "Адреса со сбоем", meaning: "Смысл", counters: "Счётчики",
    settings: "Настройки клиента", send: "Отправить", write: "Написать как {name}", read: "Отметить прочитанным", sharePhone: "Поделиться номером", sendFile: "Отправить файл",
    join: "Вступить в группу", leave: "Выйти из группы", whichGroup: "Номер группы или ссылка-приглашение", new_chat_members: "вступление",
    left_chat_member: "выход",
    allow: "Разрешить сообщения", deny: "Запретить сообщения",
    start: "Запустить бота", block: "Заблокировать бота", blocked: "Бот заблокирован. Новое сообщение запустит его снова.", edited: "изменено", seen: "прочитано", reply: "Ответить",
    search: "Поиск", delivery: "Её рассылка", close: "Закрыть", view_html: "HTML", view_text: "Текст", view_source: "Исходный текст", view_headers: "Заголовки",
    browsers: "Браузеры с уведомлениями", gone: "Это письмо больше не хранится: хранятся последние 100.", message: "Сообщение {number}", size: "{size} байт", mailView: "Письмо в HTML", open: "Открыть сообщение {number}",
    nothing: "Сообщений пока нет", everyAddress: "Существует любой адрес: сообщения ему появятся здесь.",
    telegram: "Telegram", "telegram-bot": "Бот в Telegram", vk: "VK", max: "MAX", sms: "SMS", email: "Почта",
    photo: "фото", image: "фото", file: "файл", document: "файл", voice: "голосовое сообщение", video: "видео", animation: "анимация", audio: "аудио", contact: "контакт", offline: "Песочница не отвечает.",
    problems: {
      NO_INBOUND_URL: "Входящие SMS некому передать: адрес для них не задан (--inbound-url).",
      ADDRESS_TAKEN: "Такой адрес уже есть у другого человека.", NO_ADDRESS: "Нужен хотя бы один адрес.",
      TOO_MANY_PEOPLE: "Людей слишком много.", VALIDATION_FAILED: "Поле заполнено неверно.", NOT_FOUND: "Этого больше нет.",
    },
  },
};

let language = localStorage.getItem("language") || (navigator.language.startsWith("ru") ? "ru" : "en");

export const currentLanguage = () => language;

export const say = (name, values = {}) => WORDS[language][name].replace(/\{(\w+)\}/g, (_, value) => values[value]);

/** Returns what a failure means. A refusal without words of its own is shown in those of the sandbox. */
export function explain(problem) {
  if (!(problem instanceof Refusal)) return say("offline");
  const known = WORDS[language].problems[problem.code];
  return known && problem.code === "VALIDATION_FAILED" ? `${known} ${problem.message}` : known || problem.message;
}

export function translate(root = document) {
  for (const one of root.querySelectorAll("[data-text]")) one.textContent = say(one.dataset.text);
}

/** Translates the page now and at each change of the language; `rerender` shows the rest again. */
export function startWords(rerender) {
  const show = () => {
    document.documentElement.lang = at("language").value = language;
    document.title = say("title");
    translate();
    rerender();
  };
  at("language").onchange = () => {
    language = at("language").value;
    localStorage.setItem("language", language);
    show();
  };
  show();
}
