"""Executes parcels: claims them, calls the courier of the channel, decides about retries and throttles, writes
outcomes.

Guarantees: all recipients who can be served now are served before those who must wait. A throttle applies only to its
scope. A crash doubles no message where the provider recognises a repeat, and otherwise ends as `unknown`. After an
attempt that may have sent the message, no status claims that it was not sent.

This package exports all that a courier may import of core: `Message` in with its `Content`, `Outcome` out, reasons,
`SetupError`, `sentence`, `e164`, `split_text`, `cut_text`, `sms_parts`, `MessageFiles`, `Transfers`,
`KnownIds`, `Subscription`. The process is `couriers.sending.runtime.Runtime`.

Neighbours: `core.queue` (claims), `core.deliveries` (outcomes, delivery reports), `couriers/` (the channels), `cli`
(starts the processes).
"""

from core.errors import SetupError, StoreError
from core.model.contacts.addresses import e164, malformed
from core.model.contacts.subscription import Subscription, is_endpoint, origin_of
from core.model.content import (
    BEGINNING,
    EVERY_FEATURE,
    Attachment,
    AttachmentType,
    Button,
    Content,
    Feature,
    KeyboardLimits,
    Limits,
    ParseMode,
)
from core.model.public_addresses import TargetForbidden, guarded_socket, plain_socket
from core.model.states import Reason
from core.model.text.text_entities import marked
from core.model.text.text_marks import Span, cut_text, plain_text, spans
from core.model.text.text_parts import beginning_of, coding_of, sms_parts, split_text, utf16_length
from core.sentence import Sentence, say, sentence
from core.updates.events import SEND_REPLY
from couriers.sending.files import (
    File,
    FileNotLoaded,
    LoadedFile,
    MessageFiles,
    Transfers,
    file_name,
    find_files,
    label_of,
    media_groups,
)
from couriers.sending.interface import (
    FOREVER,
    NEVER,
    Announces,
    AnswerRow,
    Courier,
    Deferred,
    Halted,
    Message,
    NotWanted,
    Outcome,
    Partly,
    ReadMark,
    ReceivedText,
    Rejected,
    Scope,
    Sent,
    Split,
    Unknown,
)
from couriers.sending.known_ids import KnownIds, StoredIds
from couriers.sending.presentation import without_contact_buttons

__all__ = [
    "BEGINNING",
    "EVERY_FEATURE",
    "FOREVER",
    "NEVER",
    "SEND_REPLY",
    "Announces",
    "AnswerRow",
    "Attachment",
    "AttachmentType",
    "Button",
    "Content",
    "Courier",
    "Deferred",
    "Feature",
    "File",
    "FileNotLoaded",
    "Halted",
    "KeyboardLimits",
    "KnownIds",
    "Limits",
    "LoadedFile",
    "Message",
    "MessageFiles",
    "NotWanted",
    "Outcome",
    "ParseMode",
    "Partly",
    "ReadMark",
    "Reason",
    "ReceivedText",
    "Rejected",
    "Scope",
    "Sent",
    "Sentence",
    "SetupError",
    "Span",
    "Split",
    "StoreError",
    "StoredIds",
    "Subscription",
    "TargetForbidden",
    "Transfers",
    "Unknown",
    "beginning_of",
    "coding_of",
    "cut_text",
    "e164",
    "file_name",
    "find_files",
    "guarded_socket",
    "is_endpoint",
    "label_of",
    "malformed",
    "marked",
    "media_groups",
    "origin_of",
    "plain_socket",
    "plain_text",
    "say",
    "sentence",
    "sms_parts",
    "spans",
    "split_text",
    "utf16_length",
    "without_contact_buttons",
]
