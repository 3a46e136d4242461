"""Benchmarks of deliveries.

lag      how late first attempts are, with up to a million other deliveries pending
enqueue  deliveries per second that one API process accepts
deliver  messages per second through courier processes, by channel
idle     what an idle fleet costs
memory   bytes of a scheduled delivery
console  what open consoles cost beside a million pending tasks

programs are the processes that these start.
"""
