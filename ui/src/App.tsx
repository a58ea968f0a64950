import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";

import { onSessionEnd, Problem } from "./api/client";
import { sessionQuery } from "./api/queries";
import { LiveProvider } from "./live/live";
import { Board } from "./pages/Board";
import { Agents } from "./pages/Agents";
import { Handoffs } from "./pages/Handoffs";
import { Inbox } from "./pages/Inbox";
import { Ledger } from "./pages/Ledger";
import { NeedsYou } from "./pages/NeedsYou";
import { SignIn } from "./pages/SignIn";
import { TaskPage } from "./pages/Task";
import { Failed } from "./parts/states";
import { SessionContext } from "./session";
import { Shell } from "./shell/Shell";

export function App() {
  const [path] = useLocation();
  const isSignIn = path === "/sign-in";
  const session = useQuery({ ...sessionQuery, enabled: !isSignIn });
  const isSignedOut = session.error instanceof Problem && session.error.isSignedOut;

  // At the end of a session the page says so, at once and not at the next click.
  const endsAt = session.data?.expiresAt;
  const { refetch } = session;
  useEffect(() => (isSignIn ? undefined : onSessionEnd(() => void refetch())), [isSignIn, refetch]);
  useEffect(() => {
    if (!endsAt) return;
    const timer = setTimeout(() => void refetch(), Math.max(0, Date.parse(endsAt) - Date.now()) + 1_000);
    return () => clearTimeout(timer);
  }, [endsAt, refetch]);

  if (isSignIn || isSignedOut) return <SignIn hasEnded={isSignedOut && session.data !== undefined} />;
  if (session.data === undefined) {
    return session.error ? <Failed error={session.error} retry={() => void refetch()} /> : null;
  }
  return (
    <SessionContext value={session.data}>
      <LiveProvider>
        <Shell>
          <Switch>
            <Route path="/" component={NeedsYou} />
            <Route path="/board" component={Board} />
            <Route path="/tasks/:id">{({ id }) => <TaskPage key={id} id={decoded(id)} />}</Route>
            <Route path="/inbox" component={Inbox} />
            <Route path="/handoffs/:id?">{({ id }) => <Handoffs id={id === undefined ? null : decoded(id)} />}</Route>
            <Route path="/agents/:name?">{({ name }) => <Agents name={name === undefined ? null : decoded(name)} />}</Route>
            <Route path="/ledger" component={Ledger} />
            <Route>
              <Redirect to="/" replace />
            </Route>
          </Switch>
        </Shell>
      </LiveProvider>
    </SessionContext>
  );
}

/** A name out of a path; one that is not encoded is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
