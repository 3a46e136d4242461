"""The commands: the one place that reads settings, wires the parts and starts processes."""
