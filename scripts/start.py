"""Install mcp-memory into .venv of this checkout and show what it does: `python3 scripts/start.py`."""

from environment import CHECKOUT, Environment, run

home = Environment(".venv")
home.prepare(CHECKOUT / "requirements" / "run.txt")
home.install("--no-deps", "--force-reinstall", CHECKOUT)
print(f"Installed: {home.programs / 'mcp-memory'}\n", flush=True)
run(home.python, "-m", "mcp_memory", "demo")
