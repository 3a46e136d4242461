"""Chains on a real server: what an author wrote is executed, stored and sent, and can be read afterwards."""

from tests.scenarios.execution.conftest import Installation, states


async def test_a_chain_sends_its_messages_in_order(installation: Installation) -> None:
    installation.actions("""
    - {type: send, text: "Привет, {event_text}"}
    - {type: send, text: "id {last_message_id}", chain: completed}
    - {type: send, text: "never", chain: failed}
    - {type: send, text: "after the skipped one", chain: drop}
""")
    await installation.start()
    run = await installation.play("мир")
    assert installation.texts == ["Привет, мир", "id 101", "after the skipped one"]
    assert states(run) == ["completed", "completed", "drop", "completed"]
