"""Setting up the programs that people talk to a model with: which file each one reads, and how to put us into it."""
