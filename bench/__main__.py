"""`python -m bench [NAME...]`: runs the benches, each in a process of its own, and writes build/bench.json.

A bench is a module here whose `run()` returns its figures; `KEYS` says under which key they go.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# None: the figures bring keys of their own.
KEYS = {
    "gate": "gate_vs_echo",
    "engine": "engine_vs_pokerkit",
    "deck": "decks_vs_echo",
    "history": "history_vs_celery",
    "table": "actions_vs_echo",
    "wallet": None,
}
OUTPUT = Path("build/bench.json")
BENCH_SECONDS_MAX = 900


def main(names: list[str]) -> int:
    figures: dict[str, object] = {"cpus": os.cpu_count(), "load_average_before": os.getloadavg()[0]}
    for name in names or [name for name in KEYS if (Path(__file__).parent / f"{name}.py").exists()]:
        print(f"{name} ...", flush=True)
        code = f"import json; from bench import {name}; print(json.dumps({name}.run()))"
        command = [sys.executable, "-c", code]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=BENCH_SECONDS_MAX)
        measured = json.loads(result.stdout.splitlines()[-1])
        key = KEYS[name]
        figures |= {key: measured} if key is not None else measured
        print(json.dumps(measured, indent=1), flush=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"written to {OUTPUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
