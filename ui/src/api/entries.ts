// The ledger from a position back.
import { entriesPage } from "./queries";
import type { EntryResource } from "./types";

const SHOWN = 100;
const PAGE = 1_000;

/** The entries up to a position, the newest first; what is filtered is looked for ever further back. */
export async function readBack(until: number, type: string, task: string, signal: AbortSignal): Promise<{ entries: EntryResource[]; begin: number }> {
  const found: EntryResource[] = [];
  let begin = until;
  for (let span = type || task ? PAGE : SHOWN; begin > 0 && found.length < SHOWN; span *= 4) {
    const inside: EntryResource[] = [];
    const from = Math.max(0, begin - span);
    for (let after = from, isFull = true; isFull && after < begin; ) {
      const { events } = await entriesPage(after, PAGE, type, signal, task);
      inside.push(...events.filter((entry) => entry.position <= begin));
      isFull = events.length === PAGE;
      after = events.at(-1)?.position ?? begin;
    }
    found.push(...inside.reverse());
    begin = from;
  }
  return { entries: found, begin };
}
