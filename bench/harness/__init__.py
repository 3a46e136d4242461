"""The common part of all benchmarks.

environment     a Valkey in a temporary directory, and the processes of one benchmark
child_process   one such process, started and stopped; what it announces is read as facts
process_cost    CPU seconds of processes, commands that the server executed
measurements    what the server reports: scripts, keys, bytes, transitions
report          result rows as a table or as JSON lines; progress and targets on stderr
"""
