"""What keeps a memory good over the years: duplicates, splits, the report. Pure functions on facts that are passed in.

Nothing here alters anything: what should change is said, and a tool or a person decides."""
