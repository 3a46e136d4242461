"""Reads histories, and their stored form: fields, pages of recipients, parcels.

Guarantees: each history is read in one atomic step; another tenant's is not found. `encoding` and
`parcels` define the stored form, `projection` derives a `History` from it; all three are pure.
"""
