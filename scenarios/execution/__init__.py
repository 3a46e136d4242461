"""Runs the scenarios of a bot: takes events from the queue, executes actions, stores what became of each.

    events ─▶ event_handler ─▶ driver ─▶ step_executor ─▶ the action
                                 │ ▲
             runs (Redis) ◀──────┘ └── wake-ups: a delivery has ended, a slow action has ended

Guarantees: a run survives the death of any process at any point and goes on where it was; an action ends once; a
repeated event gives no second run; a run that waits occupies no worker. What an action does outside is keyed by
`Context.identity`, so that its repetition after a crash has no second effect.

Neighbours: `scenarios.engine` decides what follows, `core.queue` has the tasks. `cli` runs the process (`process`).
"""
