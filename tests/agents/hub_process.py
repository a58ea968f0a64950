"""A hub in its own process, to be killed: `python -m tests.agents.hub_process DATA EVENT`.

It prints a line when the ledger has the event.

"""

import asyncio
import sys
from pathlib import Path

from tests.agents.running_hub import running_hub


async def main(data: Path, event: str) -> None:
    """Run until killed."""
    settings = (data / "dragoman.toml").read_text()
    async with running_hub(data, settings) as hub:
        await hub.until(lambda: any(line.event == event for line in hub.lines()))
        sys.stdout.write(f"{event}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
