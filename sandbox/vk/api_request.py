"""One HTTP request to the API: its calls, the faults injected into it, and its response."""

from collections.abc import Callable, Mapping

from sandbox.events import ANY, Fault
from sandbox.faults import VK
from sandbox.state import SandboxState
from sandbox.vk.community import Community
from sandbox.vk.dialogs import DialogMessage
from sandbox.vk.errors import CallFailed, ConnectionFault, RequestFailed, parameter_error, text_of
from sandbox.vk.parameters import Message, read_content, read_ids, read_message, read_number
from sandbox.vk.people_actions import PeopleActions
from sandbox.vk.uploads import Uploads
from sandbox.vkscript import CompileError, RunError, Value, execute

REQUEST_FAULTS = frozenset(
    {
        "request_error",
        "too_fast",
        "rate_limit",
        "bad_gateway",
        "not_json",
        "stored_then_error",
        "timeout",
        "disconnect_before",
        "disconnect_after",
    }
)
CALL_FAULTS = frozenset({"call_error", "peer_poison", "execute_errors_mismatch"})
_AFTER_COMMIT = frozenset({"stored_then_error", "stored_then_refused", "disconnect_after"})
_NOT_PERMITTED = 901
_CODES = {"too_fast": 6, "peer_poison": 100, "execute_errors_mismatch": 10}

GROUP = 1  # the id of the sandbox's community
Parameters = Mapping[str, Value]


class ApiRequest:
    """Runs the calls of one HTTP request. `fault_after_commit` is to be injected once its messages are stored."""

    def __init__(
        self,
        state: SandboxState,
        community: Community,
        uploads: Uploads,
        people: PeopleActions,
        long_poll_server: Callable[[], dict[str, Value]],
    ) -> None:
        self._state = state
        self._uploads = uploads
        self._people = people
        self._long_poll_server = long_poll_server
        self._community = community
        self.fault_after_commit: Fault | None = None
        self._is_counted = False
        self._errors: list[Value] = []
        self._methods: dict[str, Callable[[Parameters], Value]] = {
            "messages.send": self._send,
            "messages.edit": self._edit,
            "messages.delete": self._delete,
            "messages.getByConversationMessageId": self._get_by_number,
            "messages.sendMessageEventAnswer": self._answer_event,
            "messages.setActivity": self._set_activity,
            "photos.getMessagesUploadServer": self._get_photo_server,
            "photos.saveMessagesPhoto": self._save_photo,
            "docs.getMessagesUploadServer": self._get_document_server,
            "docs.save": self._save_document,
            "messages.isMessagesFromGroupAllowed": self._is_allowed,
            "users.get": self._get_users,
            "groups.getById": self._get_group,
            "groups.getLongPollServer": self._get_long_poll_server,
        }

    def run(self, method: str, parameters: Parameters) -> dict[str, Value]:
        """Return the response body. Raises ApiError, or ConnectionFault if the connection is to fail instead."""
        self._inject(self._state.fault("vk", ANY, method, REQUEST_FAULTS))
        if method == "execute":
            return self._execute(str(parameters.get("code", "")))
        return {"response": self._call(method, parameters)}

    def _execute(self, code: str) -> dict[str, Value]:
        self._state.count("vk", "execute")
        try:
            response = execute(code, self._call_in_execute)
        except CompileError as error:
            raise RequestFailed(12, str(error)) from None
        except RunError as error:
            # VK has executed the calls before this one, so their messages are stored.
            self._community.commit()
            raise RequestFailed(13, str(error)) from None
        return {"response": response, "execute_errors": self._errors} if self._errors else {"response": response}

    def _call_in_execute(self, method: str, parameters: Parameters) -> Value:
        try:
            return self._call(method, parameters)
        except CallFailed as failed:
            if failed.listed:
                self._errors.append({"method": method, "error_code": failed.code, "error_msg": str(failed)})
            return False

    def _call(self, method: str, parameters: Parameters) -> Value:
        self._state.count("vk", "calls")
        self._state.count("vk", method if method in self._methods else "unknown method")
        if method not in self._methods:
            raise CallFailed(3)
        self._inject(self._state.fault("vk", ANY, method, CALL_FAULTS))
        return self._methods[method](parameters)

    # faults

    def _inject(self, fault: Fault | None) -> None:
        """Raise the fault of a request or a call, or keep it for after the commit. Other faults are ignored."""
        if fault is None:
            return
        code = fault.value or _CODES.get(fault.name, 1)
        if fault.name == "rate_limit":
            self._check_rate(fault.value or 1)
            return
        if fault.name in CALL_FAULTS:
            raise CallFailed(code, listed=fault.name != "execute_errors_mismatch")
        if fault.name in ("request_error", "too_fast"):
            raise RequestFailed(code)
        if fault.name in _AFTER_COMMIT:
            self.fault_after_commit = fault
        elif fault.name in REQUEST_FAULTS:
            raise ConnectionFault(fault)

    def _check_rate(self, requests_per_second: int) -> None:
        """Raise error 6 beyond the rate. A request counts once, whatever its number of peers."""
        if not self._is_counted and not self._community.accepts_request(requests_per_second):
            self._state.count("vk", "refused")
            raise RequestFailed(6)
        self._is_counted = True

    def _peer_error(self, peer: int, random_id: int) -> int | None:
        """Return the error code of this peer's entry. Raises the faults of the call or the request."""
        # At most one connection fault per request: a rule for all addresses must not count down for each peer.
        only = ("error",) if self.fault_after_commit is not None else VK
        fault = self._state.fault("vk", str(peer), "messages.send", only)
        if fault is not None and fault.name == "error":
            return fault.value or 1
        if self._people.has_denied(str(peer)):
            return _NOT_PERMITTED
        if fault is not None and fault.name == "stored_then_refused" and self._community.knows(str(peer), random_id):
            return _NOT_PERMITTED
        self._inject(fault)
        return None

    # methods

    def _send(self, parameters: Parameters) -> Value:
        message = read_message(parameters, self._uploads)
        # Check all peers before the first message is sent: a call that is refused as a whole sends none.
        errors = [self._peer_error(peer, message.random_id) for peer in message.peers]
        if not message.many:
            return self._send_to_one(message, errors[0])
        return [self._entry(peer, message, error) for peer, error in zip(message.peers, errors, strict=True)]

    def _send_to_one(self, message: Message, error: int | None) -> Value:
        if error is not None:
            raise CallFailed(error)
        return self._draft(message.peers[0], message).id

    def _entry(self, peer: int, message: Message, error: int | None) -> Value:
        if error is not None:
            return {"peer_id": peer, "message_id": 0, "error": {"code": error, "description": text_of(error)}}
        sent = self._draft(peer, message)
        return {"peer_id": peer, "message_id": sent.id, "conversation_message_id": sent.number}

    def _draft(self, peer: int, message: Message) -> DialogMessage:
        if message.content.reply_to:
            self._community.dialogs.check(str(peer), message.content.reply_to)
        return self._community.send(str(peer), message.content, message.random_id)

    def _edit(self, parameters: Parameters) -> Value:
        """Edit a message by its number in the dialog, which replies, presses and messages.send have."""
        peer, number = read_number(parameters, "peer_id"), read_number(parameters, "conversation_message_id")
        self._inject(self._state.fault("vk", str(peer), "messages.edit", CALL_FAULTS))
        self._community.dialogs.edit(str(peer), number, read_content(parameters, self._uploads))
        self._state.changed()
        return 1

    def _delete(self, parameters: Parameters) -> Value:
        """Delete messages. A community deletes its own; those of others only in chats, where it is an administrator."""
        peer, numbers = read_number(parameters, "peer_id"), read_ids(parameters.get("cmids"), "cmids")
        if not numbers:
            raise parameter_error("cmids is a required parameter")
        deleted = [self._community.dialogs.delete(str(peer), number) for number in numbers]
        self._state.changed()
        return [
            {"peer_id": peer, "conversation_message_id": number, "response": int(was_own)}
            for number, was_own in zip(numbers, deleted, strict=True)
        ]

    def _get_by_number(self, parameters: Parameters) -> Value:
        """Return messages by their numbers in the dialog; those that do not exist are left out, also those of people
        without files.
        """
        peer, name = read_number(parameters, "peer_id"), "conversation_message_ids"
        numbers = read_ids(parameters.get(name), name)
        found = [self._community.dialogs.get(str(peer), one) for one in numbers]
        items: list[Value] = [message.item() for message in found if message is not None]
        items += [
            self._people.with_files[str(peer), one] for one in numbers if (str(peer), one) in self._people.with_files
        ]
        return {"count": len(items), "items": items}

    def _answer_event(self, parameters: Parameters) -> Value:
        person, peer = read_number(parameters, "user_id"), read_number(parameters, "peer_id")
        event = str(parameters.get("event_id", ""))
        self._people.answer(str(person), str(peer), event, str(parameters.get("event_data") or ""))
        return 1

    def _set_activity(self, parameters: Parameters) -> Value:
        read_number(parameters, "peer_id")
        if parameters.get("type") not in ("typing", "audiomessage"):
            raise parameter_error("type is a required parameter")
        return 1

    def _get_photo_server(self, _: Parameters) -> Value:
        return self._uploads.server("photo")

    def _save_photo(self, parameters: Parameters) -> Value:
        return self._uploads.save_photo(str(parameters.get("photo", "")), str(parameters.get("hash", "")))

    def _get_document_server(self, parameters: Parameters) -> Value:
        read_number(parameters, "peer_id")
        kind = str(parameters.get("type") or "doc")
        if kind not in ("doc", "audio_message"):
            raise parameter_error("type should be one of doc, audio_message")
        return self._uploads.server(kind)

    def _save_document(self, parameters: Parameters) -> Value:
        return self._uploads.save_document(str(parameters.get("file", "")), str(parameters.get("title") or ""))

    def _get_long_poll_server(self, parameters: Parameters) -> Value:
        if read_ids(parameters.get("group_id"), "group_id") != (GROUP,):
            raise parameter_error("group_id is invalid")
        return self._long_poll_server()

    def _is_allowed(self, parameters: Parameters) -> Value:
        users = read_ids(parameters.get("user_id"), "user_id")
        if len(users) != 1:
            raise parameter_error("user_id is a required parameter")
        fault = self._state.fault("vk", str(users[0]), "messages.isMessagesFromGroupAllowed", ("error",))
        return {"is_allowed": int(fault is None or fault.value != 901)}

    def _get_users(self, parameters: Parameters) -> Value:
        users = read_ids(parameters.get("user_ids"), "user_ids")
        return [{"id": user, "first_name": "Person", "last_name": str(user)} for user in users]

    def _get_group(self, parameters: Parameters) -> Value:
        group: Value = {"id": GROUP, "name": "Sandbox", "screen_name": "sandbox", "type": "group", "is_closed": 0}
        return {"groups": [group], "profiles": []}
