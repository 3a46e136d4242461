"""The processes that `./ada up` starts and supervises, and what each of them needs at its start."""
