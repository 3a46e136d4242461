"""The types of the directory over HTTP: people and collections, CSV import and export, linking of contacts."""
