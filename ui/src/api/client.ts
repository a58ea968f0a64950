// Requests to the hub: as the person who signed in, by the cookie of the session.

import { parseShown } from "./answers";

/** A refusal or a fault, in the words of the hub. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }

  /** True if nobody is signed in any more. */
  get isSignedOut(): boolean {
    return this.status === 401;
  }
}

/** The hub did not answer at all. */
export const UNREACHABLE = "unreachable";

const SESSION = "dragoman-session";
const session = new BroadcastChannel(SESSION);

/** Tell every tab of this browser, this one too, that its session may have ended. */
export const tellSessionEnd = (): void => session.postMessage("ended");

/** Call a function when the session may have ended; returns what stops that. */
export function onSessionEnd(act: () => void): () => void {
  const heard = new BroadcastChannel(SESSION);
  heard.onmessage = act;
  return () => heard.close();
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method !== "GET") headers["Dragoman-Page"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      signal: signal ?? null,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, UNREACHABLE, "The hub does not answer. Does it still run?");
  }
  const text = await response.text();
  // Signing in and the question who is signed in tell of a refusal themselves.
  if (response.status === 401 && path !== "/v1/sign-in" && !(path === "/v1/session" && method === "GET")) {
    tellSessionEnd();
    throw new Problem(401, "unauthenticated", "Your session has ended: sign in again.");
  }
  if (!response.ok) throw toProblem(response.status, text);
  return (text ? parseShown(text) : undefined) as T;
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => call<T>("GET", path, undefined, signal);

export const post = <T>(path: string, body: unknown = {}): Promise<T> => call<T>("POST", path, body);

/** A path with the parameters that have a value. */
export function withQuery(path: string, parameters: Record<string, string | number | boolean | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

function toProblem(status: number, text: string): Problem {
  try {
    const told = parseShown(text) as { code?: string; detail?: string; error?: { code?: string; detail?: string } };
    const { code, detail } = told.error ?? told;
    return new Problem(status, code ?? "", detail || `The hub answered ${status}.`);
  } catch {
    return new Problem(status, "", `The hub answered ${status}.`);
  }
}
