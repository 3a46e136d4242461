"""One HTTP request to the API: its calls, the failures it meets, and what it answers."""

from collections.abc import Callable, Mapping

from sandbox.events import ANY, Fault
from sandbox.faults import VK
from sandbox.state import World
from sandbox.vk.community import Community
from sandbox.vk.errors import CallFailed, Interrupted, RequestFailed, parameter_error, text_of
from sandbox.vk.parameters import Message, message, people
from sandbox.vkscript import CompileError, RunError, Value, execute

REQUEST_FAULTS = frozenset(
    {
        "request_error",
        "too_fast",
        "bad_gateway",
        "not_json",
        "stored_then_error",
        "timeout",
        "disconnect_before",
        "disconnect_after",
    }
)
CALL_FAULTS = frozenset({"call_error", "peer_poison", "execute_errors_mismatch"})
_AFTERWARDS = frozenset({"stored_then_error", "disconnect_after"})
_CODES = {"too_fast": 6, "peer_poison": 100, "execute_errors_mismatch": 10}

GROUP = 1  # the id of the sandbox's community
Parameters = Mapping[str, Value]


class Exchange:
    """Runs the calls of one HTTP request; `afterwards` is the failure that strikes once its messages are stored."""

    def __init__(self, world: World, community: Community) -> None:
        self._world = world
        self._community = community
        self.afterwards: Fault | None = None
        self._errors: list[Value] = []
        self._methods: dict[str, Callable[[Parameters], Value]] = {
            "messages.send": self._send,
            "messages.isMessagesFromGroupAllowed": self._is_allowed,
            "users.get": self._users,
            "groups.getById": self._group,
        }

    def answer(self, method: str, parameters: Parameters) -> dict[str, Value]:
        """Return the body of the answer; raises ApiError, or Interrupted when the connection fails instead."""
        self._meet(self._world.fault("vk", ANY, method, REQUEST_FAULTS))
        if method == "execute":
            return self._execute(str(parameters.get("code", "")))
        return {"response": self._call(method, parameters)}

    def _execute(self, code: str) -> dict[str, Value]:
        self._world.count("vk", "execute")
        try:
            response = execute(code, self._call_in_execute)
        except CompileError as wrong:
            raise RequestFailed(12, str(wrong)) from None
        except RunError as wrong:
            # VK has done the calls before this one, and so their messages stay.
            self._community.commit()
            raise RequestFailed(13, str(wrong)) from None
        return {"response": response, "execute_errors": self._errors} if self._errors else {"response": response}

    def _call_in_execute(self, method: str, parameters: Parameters) -> Value:
        try:
            return self._call(method, parameters)
        except CallFailed as failed:
            if failed.listed:
                self._errors.append({"method": method, "error_code": failed.code, "error_msg": str(failed)})
            return False

    def _call(self, method: str, parameters: Parameters) -> Value:
        self._world.count("vk", "calls")
        self._world.count("vk", method if method in self._methods else "unknown method")
        if method not in self._methods:
            raise CallFailed(3)
        self._meet(self._world.fault("vk", ANY, method, CALL_FAULTS))
        return self._methods[method](parameters)

    # failures

    def _meet(self, fault: Fault | None) -> None:
        """Fail the way a request or a call fails, now or once all is stored; other faults are left alone."""
        if fault is None:
            return
        code = fault.value or _CODES.get(fault.name, 1)
        if fault.name in CALL_FAULTS:
            raise CallFailed(code, listed=fault.name != "execute_errors_mismatch")
        if fault.name in ("request_error", "too_fast"):
            raise RequestFailed(code)
        if fault.name in _AFTERWARDS:
            self.afterwards = fault
        elif fault.name in REQUEST_FAULTS:
            raise Interrupted(fault)

    def _refusal(self, peer: int) -> int | None:
        """Return the error code that this peer's entry carries; failures of the call or the request are raised."""
        # One failure of the connection per request: a rule for everybody must not count down with every peer.
        only = ("error",) if self.afterwards is not None else VK
        fault = self._world.fault("vk", str(peer), "messages.send", only)
        if fault is not None and fault.name == "error":
            return fault.value or 1
        self._meet(fault)
        return None

    # methods

    def _send(self, parameters: Parameters) -> Value:
        wanted = message(parameters)
        # All peers are asked before the first message is sent: a call that is refused as a whole sends none.
        refusals = [self._refusal(peer) for peer in wanted.peers]
        if not wanted.many:
            return self._send_to_one(wanted, refusals[0])
        return [self._entry(peer, wanted, refusal) for peer, refusal in zip(wanted.peers, refusals, strict=True)]

    def _send_to_one(self, wanted: Message, refusal: int | None) -> Value:
        if refusal is not None:
            raise CallFailed(refusal)
        return self._community.send(str(wanted.peers[0]), wanted.text, wanted.random_id)

    def _entry(self, peer: int, wanted: Message, refusal: int | None) -> Value:
        if refusal is not None:
            return {"peer_id": peer, "message_id": 0, "error": {"code": refusal, "description": text_of(refusal)}}
        return {"peer_id": peer, "message_id": self._community.send(str(peer), wanted.text, wanted.random_id)}

    def _is_allowed(self, parameters: Parameters) -> Value:
        asked = people(parameters.get("user_id"), "user_id")
        if len(asked) != 1:
            raise parameter_error("user_id is a required parameter")
        fault = self._world.fault("vk", str(asked[0]), "messages.isMessagesFromGroupAllowed", ("error",))
        return {"is_allowed": int(fault is None or fault.value != 901)}

    def _users(self, parameters: Parameters) -> Value:
        asked = people(parameters.get("user_ids"), "user_ids")
        return [{"id": user, "first_name": "Person", "last_name": str(user)} for user in asked]

    def _group(self, parameters: Parameters) -> Value:
        group: Value = {"id": GROUP, "name": "Sandbox", "screen_name": "sandbox", "type": "group", "is_closed": 0}
        return {"groups": [group], "profiles": []}
