"""One attempt at a parcel: which entries are open, their attempts, their outcomes."""
