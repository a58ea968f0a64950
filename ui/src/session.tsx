import { createContext, useContext } from "react";

import type { Session } from "./api/types";

export const SessionContext = createContext<Session | null>(null);

/** The person who is signed in, and what the role allows. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("useSession outside of a session");
  return session;
}
