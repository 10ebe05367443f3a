"""Measures the cost of hostile packages: reading, and a verdict of both profiles.

    .venv/bin/python -m benchmarks.hostile_packages [NAME …]

Each runs in a separate process. A verdict other than IW or WA, or a crash of the process, is a
fault of the judge.
"""

from __future__ import annotations

import json
import os
import resource
import time

from benchmarks.command_line import parser_of, run_command
from tests.bounds import bound_process
from tests.unit.compare.rules.hostile_packages import LARGE, SMALL
from tests.unit.compare.rules.test_hostile import RULES, facts, judge

CPU_S, MEMORY_BYTES = 180, 3 << 30


def measured(name: str) -> dict[str, object]:
    """Measures one package in its full size."""
    data = SMALL[name] if name in SMALL else LARGE[name][0](1.0)
    kinds = ("all",) if name in SMALL else LARGE[name][1]
    rules = [rule for rule in RULES if rule["type"] in kinds or "all" in kinds]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        bound_process(cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        spent = [time.process_time()]
        facts(data, as_text=False)
        spent.append(time.process_time())
        verdicts = [judge(data, rules, "spider2v", profile) for profile in ("official", "standard")]
        spent.append(time.process_time())
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        result = {
            "facts_s": round(spent[1] - spent[0], 2),
            "verdicts_s": round(spent[2] - spent[1], 2),
            "memory_mb": grown // 1024,
            "official": verdicts[0],
            "standard": verdicts[1],
        }
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"ended": os.waitstatus_to_exitcode(status)}


def main() -> None:
    """Prints a line for each package, and the worst figures."""
    packages = [*SMALL, *LARGE]
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", choices=packages, metavar="NAME")
    names = parser.parse_args().names or packages
    results = {}
    for name in names:
        results[name] = measured(name)
        print(f"{name}: {json.dumps(results[name])}", flush=True)
    ended = [name for name, facts in results.items() if "ended" in facts]
    print(f"{len(results)} packages, {len(ended)} without a verdict")
    for figure in ("facts_s", "verdicts_s", "memory_mb"):
        worst = max(results, key=lambda name: float(str(results[name].get(figure, 0))))
        print(f"worst {figure}: {results[worst].get(figure)} ({worst})")


if __name__ == "__main__":
    run_command(main)
