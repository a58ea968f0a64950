// The ledger as it grows. Of all open tabs one reads the stream and tells the others, because a browser
// opens few connections to one host; the lock of the reader passes on when its tab is closed.
import { parseShown } from "../api/answers";
import type { EntryResource } from "../api/types";

export type Connection = "connecting" | "live" | "lost" | "signed-out";

type News =
  | { kind: "entries"; entries: EntryResource[] }
  | { kind: "state"; state: Connection; at: number }
  | { kind: "gap" }
  | { kind: "ask" };

interface Listener {
  entries: (entries: EntryResource[]) => void;
  state: () => void;
  /** Entries have not come: what is shown is to be read anew. */
  gap: () => void;
}

const NAME = "dragoman-stream";
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 8_000;
/** The hub sends a comment every 15 seconds: after a longer silence the connection is dead. */
const SILENCE_MS = 40_000;
const BATCH_MS = 40;

export class LiveStream {
  state: Connection = "connecting";
  /** When the hub was last known to answer. */
  seenAt = 0;
  private readonly channel = new BroadcastChannel(NAME);
  private readonly stopped = new AbortController();
  private isReader = false;
  private waiting: EntryResource[] = [];
  private batch: ReturnType<typeof setTimeout> | undefined;

  /** `position`: up to which the page has read the ledger. */
  constructor(
    private position: number,
    private readonly listener: Listener,
  ) {
    this.channel.onmessage = (event: MessageEvent<News>) => this.receive(event.data);
    this.channel.postMessage({ kind: "ask" } satisfies News);
    void this.takeTurn();
  }

  close(): void {
    this.stopped.abort();
    clearTimeout(this.batch);
    this.channel.close();
  }

  /** Read the stream as soon as no other tab does. */
  private async takeTurn(): Promise<void> {
    const { signal } = this.stopped;
    if (!("locks" in navigator)) return this.readUntilStopped();
    try {
      await navigator.locks.request(NAME, { signal }, () => this.readUntilStopped());
    } catch {
      // The page was left before its turn came.
    }
  }

  private async readUntilStopped(): Promise<void> {
    this.isReader = true;
    let pause = RETRY_MS;
    while (!this.stopped.signal.aborted) {
      try {
        await this.readOnce(() => (pause = RETRY_MS));
      } catch (error) {
        if (this.stopped.signal.aborted) return;
        if (error instanceof SignedOut) return this.tell("signed-out");
      }
      this.tell("lost");
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }

  /** Read until the connection ends. */
  private async readOnce(onOpen: () => void): Promise<void> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENCE_MS);
    try {
      const response = await fetch(`/v1/stream?after=${this.position}`, {
        headers: { Accept: "text/event-stream" },
        signal: AbortSignal.any([this.stopped.signal, silent.signal]),
        cache: "no-store",
      });
      if (response.status === 401) throw new SignedOut();
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      onOpen();
      this.tell("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE_MS);
        const frames = (rest + value).split("\n\n");
        rest = frames.pop() ?? "";
        frames.forEach((frame) => this.takeFrame(frame));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private takeFrame(frame: string): void {
    const fields = new Map<string, string>();
    for (const line of frame.split("\n")) {
      const colon = line.indexOf(": ");
      if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2));
    }
    const id = fields.get("id");
    if (id) this.position = Number(id);
    if (fields.get("event") === "gap") return this.publish({ kind: "gap" });
    const data = fields.get("data");
    if (!data) return;
    this.waiting.push(parseShown(data) as EntryResource);
    this.batch ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  private flush(): void {
    const entries = this.waiting;
    this.waiting = [];
    this.batch = undefined;
    this.publish({ kind: "entries", entries });
  }

  private tell(state: Connection): void {
    this.publish({ kind: "state", state, at: Date.now() });
  }

  private publish(news: News): void {
    this.channel.postMessage(news);
    this.receive(news);
  }

  private receive(news: News): void {
    switch (news.kind) {
      case "entries":
        this.seenAt = Date.now();
        this.position = Math.max(this.position, news.entries.at(-1)?.position ?? 0);
        return this.listener.entries(news.entries);
      case "gap":
        return this.listener.gap();
      case "state":
        this.state = news.state;
        if (news.state === "live") this.seenAt = news.at;
        return this.listener.state();
      case "ask":
        if (this.isReader) this.tell(this.state);
    }
  }
}

class SignedOut extends Error {}
