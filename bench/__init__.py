"""The measurements behind docs/performance.md: `./ada bench NAME`. Each brings its own server and processes.

Modules with a table entry in `cli.commands.bench` are benchmarks; the others are what they stand on:

    ground     a Valkey in a directory of its own, and the processes of one benchmark
    child      one such process · cost: what it costs, in CPU and in commands · rows: how results are shown
"""
