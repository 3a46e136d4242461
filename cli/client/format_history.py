"""Formats a history as text for people. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from core.model.states import VERDICT_MEANINGS, Verdict

History = Mapping[str, Any]
"""A history as the API returns it."""

NO_CONTACT = "no_contact"
_WIDTH = 80
_WITHHELD = "anonymous: totals after the closing, from five answers on"


def verdict_text(history: History) -> str:
    """Return the verdict in words; its name, if a newer server returned it."""
    verdict, reached, recipients = history["verdict"], history["counts"]["reached"], history["counts"]["recipients"]
    if verdict == Verdict.ALL_REACHED and reached == recipients:
        return "every recipient was reached"
    if verdict == Verdict.ALL_REACHED:
        others = "the others have no contact, are blocked, want no messages, or have got the message before"
        if not history.get("left_out"):
            others = "the others have no contact, are blocked or want no messages"
        return f"{reached} of {recipients} recipients were reached; {others}"
    return VERDICT_MEANINGS[Verdict(verdict)] if verdict in list(Verdict) else verdict


def format_history(history: History) -> str:
    return "\n".join([*header_lines(history), "", *recipient_lines(history)])


def header_lines(history: History) -> Iterator[str]:
    sender = history["sender"]
    yield f"{history['id']}  {history['state']}: {verdict_text(history)}"
    yield f"from  {sender.get('name') or sender['id']}, by {history['origin']}"
    yield f"text  {shorten(history['text'])}"
    if history.get("content"):
        yield f"with  {format_content(history['content'])}"
    if history.get("follows"):
        yield f"to    the {history['follows']['of']} of {history['follows']['id']}"
    for one in history.get("followed_by", ()):
        yield f"then  to the {one['of']}: {one['id']}"
    for name in ("created_at", "deliver_at", "moved_from", "released_at", "finished_at", "expires_at"):
        if history.get(name):
            yield f"{name.replace('_', ' '):<12} {history[name]}"
    counts = {**history["counts"], "left out": history.get("left_out", 0)}
    yield "  ".join(f"{name} {count}" for name, count in counts.items() if count and name != NO_CONTACT)
    yield from map(format_uninformed, history.get("uninformed", ()))
    if history.get("answers"):
        yield f"question     {question_terms(history['answer'])}"
        yield f"answers      {answer_totals(history['answers'], history['answer'])}"
    yield from reminder_lines(history.get("reminders") or {})
    if history.get("refused_replies"):
        yield f"replies      {history['refused_replies']} replied, and nobody reads it"


def format_uninformed(one: Mapping[str, Any]) -> str:
    """Return why a guardian gets nothing of a delivery."""
    who = format_recipient({"id": one.get("guardian") or one["child"], "name": one.get("name")})
    if one["why"] == "no_guardian":
        return f"  {who} has no guardian who gets it"
    return f"  {who} is blocked as a guardian of {one['child']}, and gets nothing"


def question_terms(question: Mapping[str, Any]) -> str:
    """Return what a delivery asks for, and its terms beside the usual ones."""
    need, escalate = question.get("need"), question.get("escalate")
    terms = [
        question["kind"],
        f"until {question['until']}" if question["until"] else "",
        "" if question["change"] else "the first answer is final",
        "late answers count" if question["late"] == "count" else "",
        "" if question["visible"] == "named" else question["visible"],
        f"until {need} confirm, the next are asked after {question['wave']}" if need else "",
        f"without an answer after {escalate['after']} by {', '.join(escalate['channels'])}" if escalate else "",
        "one refusal counts" if question.get("consent") else "",
    ]
    return ", ".join(filter(None, terms))


def format_preview(seen: Mapping[str, Any]) -> str:
    """Return the people that a delivery would reach, and a line for each channel."""
    counted = ("no_contact", "person_blocked", "opted_out", "duplicates", "cannot_answer")
    counts = {name.replace("_", " "): seen.get(name, 0) for name in counted}
    lines = ["  ".join([f"people {seen['people']}", *(f"{name} {count}" for name, count in counts.items() if count)])]
    rows = [[name, f"people {one['people']}", _sms_of(one)] for name, one in seen["channels"].items()]
    lines += align(rows)
    lines += align(_question_rows(seen))
    lines += map(format_uninformed, seen.get("uninformed", ()))
    if fallback := seen.get("fallback"):
        names = [str(one["name"] or one["id"]) for one in fallback["first"]]
        more = [f"{fallback['people'] - len(names)} more"] if fallback["people"] > len(names) else []
        lines.append(f"fallback text for {fallback['people']} of {seen['people']}: {', '.join([*names, *more])}")
    if seen["moved_from"]:
        lines.append(f"quiet hours: moved to {seen['deliver_at']}")
    if seen["quota"] and not seen["quota"]["allowed"]:
        lines.append(f"the quota of {seen['quota']['limit']} is used up")
    return "\n".join([*lines, "nothing was sent"])


def _question_rows(seen: Mapping[str, Any]) -> Iterator[list[str]]:
    """Emit how people answer in each channel that reaches somebody; nothing if the delivery asks nothing."""
    for name, shown in seen["shown"].items():
        one, by = seen["channels"][name], shown.get("answer_by")
        if not one["people"] or not (by or "answer" in shown["not_shown"]):
            continue
        reminders = f"at most {one['reminders']} reminders" if one.get("reminders") else ""
        later = "only without an answer" if one.get("only_unanswered") else ""
        yield list(filter(None, [name, f"answers by {by}" if by else "nobody can answer", reminders, later]))


def _sms_of(channel: Mapping[str, Any]) -> str:
    """Return how many SMS a channel sends; "" for one whose messages have no parts."""
    if "total_parts" not in channel:
        return ""
    price = f", each {channel['price']}" if channel.get("price") else ""
    return f"{channel['parts']} SMS each, {channel['total_parts']} in all{price}"


def format_answers(page: Mapping[str, Any]) -> str:
    """Return the totals of a question, and a line for each recipient."""
    rows = [[format_recipient(one), format_answer(one["answer"])] for one in page["recipients"]]
    return "\n".join([answer_totals(page["answers"], page["question"]), "", *align(rows)])


def reminder_lines(reminders: Mapping[str, Any]) -> Iterator[str]:
    """Emit a line for each wave of reminders, and when the next one is planned."""
    for wave in reminders.get("sent", ()):
        by = f", by {wave['by']}" if wave["by"] else ""
        yield f"reminded     {wave['people']} at {wave['at']}{by}"
    if reminders.get("next_at"):
        yield f"reminder     planned for {reminders['next_at']}"


def answer_totals(answers: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Return how many recipients have each state of the question, and how many have chosen each option."""
    counts = {name: n for name, n in answers.items() if isinstance(n, int) and name != "withheld"}
    states = [f"{name.replace('_', ' ')} {n}" for name, n in counts.items() if n]
    line = answers.get("waiting") or {}
    options = [
        f"{option['text']}: {answers['options'].get(option['key'], 0)}{_places(option, line)}"
        for option in question["options"]
    ]
    options = [_WITHHELD] if answers.get("withheld") else options
    options += [f"sum {answers['sum']:g}"] if "sum" in answers else []
    options += [f"mean {answers['mean']:g}"] if "mean" in answers else []
    closed = [f"closed at {answers['closed_at']}"] if answers["closed_at"] else []
    return "  ".join([*states, *options, *closed])


def _places(option: Mapping[str, Any], line: Mapping[str, int]) -> str:
    """Return how many places an option has, and how many wait for one; "" without places."""
    if not option.get("places"):
        return ""
    waiting = line.get(option["key"], 0)
    return f" of {option['places']}" + (f", {waiting} waiting" if waiting else "")


def format_answer(answer: Mapping[str, Any]) -> str:
    """Return the state of the question for a recipient, and its answer."""
    said = answer.get("text") or answer.get("value")
    text = f": {shorten(said)}" if said else ""
    note = f" ({shorten(answer['note'])})" if answer.get("note") else ""
    entered = f", entered by {answer['who']}" if answer.get("by") == "on_behalf" else ""
    voices = answer.get("voices") or ()  # of the guardians of a child: the first word of each changes no other
    changes = len(answer.get("revisions") or ()) - max(0, len(voices) - 1)
    changed = f", changed {'once' if changes == 1 else f'{changes} times'}" if changes > 0 else ""
    waiting = ", waits for a place" if answer.get("waiting") else ""
    waiting += ", its place went to the next" if answer.get("freed") else ""
    said_by = ", ".join(f"{one['name'] or one['who']}: {one['text']}" for one in voices)
    conflict = ", conflict" if answer.get("conflict") else ""
    guardians = f" ({said_by})" if len(voices) > 1 or conflict else ""
    return f"{answer['state'].replace('_', ' ')}{text}{note}{entered}{waiting}{changed}{conflict}{guardians}"


def recipient_lines(history: History) -> Iterator[str]:
    """Emit a table with a line for each recipient and a column for each channel that somebody has a contact in."""
    recipients = history["recipients"]
    channels = list(dict.fromkeys(channel for recipient in recipients for channel in reachable(recipient)))
    heading = [["", *channels]] if channels else []
    table = list(align([*heading, *(row_of(one, channels) for one in recipients)]))
    yield from table if max(map(len, table), default=0) <= _WIDTH else align(map(_short_row, recipients))
    if history.get("next"):
        yield "  …"


def _short_row(recipient: Mapping[str, Any]) -> list[str]:
    """Return the cells of a recipient where a column for each channel would not fit."""
    outcomes = [format_outcome(channel, one) for channel, one in reachable(recipient).items()]
    return [format_recipient(recipient), ", ".join(outcomes) or "no contact", *_behind(recipient)]


def row_of(recipient: Mapping[str, Any], channels: Sequence[str]) -> list[str]:
    return [format_recipient(recipient), *cells(recipient, channels), *_behind(recipient)]


def _behind(recipient: Mapping[str, Any]) -> list[str]:
    """Return the children of a recipient, its answer, its reminders and its own text, if it has them."""
    names = [str(one["name"] or one["id"]) for one in recipient.get("children", ())]
    children = [f"about {', '.join(names)}"] if names else []
    answer = [format_answer(recipient["answer"])] if recipient.get("answer") else []
    sent = recipient.get("reminders", ())
    again = (
        [", ".join(f"reminder {one['wave']}: {format_outcome(one['channel'], one)}" for one in sent)] if sent else []
    )
    return [*children, *answer, *again, *own_text(recipient)]


def reachable(recipient: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the outcomes in the channels in which the recipient has a contact."""
    return {channel: one for channel, one in recipient["outcomes"].items() if one["status"] != NO_CONTACT}


def own_text(recipient: Mapping[str, Any]) -> list[str]:
    """Return the text of the recipient, if the text of the delivery is personal."""
    return [shorten(recipient["text"])] if "text" in recipient else []


def cells(recipient: Mapping[str, Any], channels: Sequence[str]) -> list[str]:
    outcomes = reachable(recipient)
    if not outcomes:
        return ["no contact", *[""] * (len(channels) - 1)]
    return [format_status(outcomes[channel]) if channel in outcomes else "–" for channel in channels]


def align(lines: Iterable[Sequence[str]]) -> Iterator[str]:
    """Emit rows as lines, their columns at least two spaces apart."""
    rows = list(lines)
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    for row in rows:
        yield "  ".join(["", *(text.ljust(width) for text, width in zip(row, widths, strict=False))]).rstrip()


def format_exchanges(exchanges: Sequence[Mapping[str, Any]]) -> str:
    """Return each attempt that failed, with its calls, in the order of time."""
    lines = [line for one in exchanges for line in _exchange_lines(one)]
    return "\n".join(lines) or "nothing failed in the last seven days"


def _exchange_lines(exchange: Mapping[str, Any]) -> Iterator[str]:
    reason = f" ({exchange['reason']})" if exchange["reason"] else ""
    times = f", {exchange['times']} times" if exchange["times"] > 1 else ""
    said = f": {exchange['detail']}" if exchange["detail"] else ""
    yield f"{exchange['at']}  {exchange['channel']} {exchange['outcome']}{reason}{times}{said}"
    for call in exchange["calls"]:
        words = f"  {call['words']}" if call["words"] else ""
        yield f"    {call['method']}  {call['status'] or 'no answer'}  {call['took_ms']} ms{words}"


def format_outcome(channel: str, outcome: Mapping[str, Any]) -> str:
    return f"{channel} {format_status(outcome)}"


def format_status(outcome: Mapping[str, Any]) -> str:
    """Return the status with its reason and the provider's words, and what the channel could not show."""
    words = ": ".join(filter(None, (outcome.get("reason"), outcome.get("detail"))))
    reason = f" ({words})" if words else ""
    not_shown = f" without {', '.join(map(format_feature, outcome['not_shown']))}" if outcome.get("not_shown") else ""
    waits = f", in its own hours from {outcome['not_before']}" if outcome.get("not_before") else ""
    return f"{outcome['status']}{reason}{not_shown}{waits}"


def format_feature(what: str) -> str:
    """Return what is not shown, in words: "text_end" or, with the name of a file, "file_name a_b.txt"."""
    feature, *name = what.split(" ", 1)
    words = {"answer": "the question"}
    return " ".join([words.get(feature, feature.replace("_", " ")), *name])


def format_content(content: Mapping[str, Any]) -> str:
    """Return what a delivery has besides its text: HTML, 3 buttons, photo, …"""
    buttons = sum(len(row) for name in ("inline", "reply") for row in content.get(name, ()))
    parts = [content.get("parse_mode", ""), f"{buttons} button{'s' * (buttons > 1)}" if buttons else ""]
    parts += [f"{attachment['type']}" for attachment in content.get("attachments", ())]
    parts += [f"{name.replace('_', ' ')} {content[name]}" for name in ("reply_to", "edit", "remove") if name in content]
    return ", ".join(filter(None, parts)) or "no keyboard"


def format_recipient(recipient: Mapping[str, Any]) -> str:
    name = recipient.get("name")
    return f"{name} ({recipient['id']})" if name else str(recipient["id"])


def format_event(name: str, data: Mapping[str, Any]) -> str:
    """Return one line for one event of a delivery."""
    if name == "outcome":
        reminder = f"reminder {data['reminder']}: " if data.get("reminder") else ""
        return f"{data['recipient']!s:<24} {reminder}{format_outcome(data['channel'], data['outcome'])}"
    if name == "answer":
        return f"{data['recipient']!s:<24} {format_answer(data['answer'])}"
    if name == "closed":
        return f"question closed at {data['closed_at']}"
    return f"{data['state']} for {data['deliver_at']}" if name == "state" else str(data["state"])


def shorten(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def format_series(one: Mapping[str, Any]) -> str:
    """Return a line for a series, and another one if nothing was sent at its last moment."""
    moment = f"next {one['next'][0]}" if one["next"] else one["state"]
    text = shorten(one["message"].get("text", ""))
    line = f"{one['id']}  {one['when']} ({one['zone']})  {moment}  sent {one['sent']}  {text}"
    problem = one["problem"]
    failed = f"\n    nothing was sent at {problem['at']}: {problem['detail']} ({problem['code']})" if problem else ""
    return line + (f"  missed {one['missed']}" if one["missed"] else "") + failed
