// Signing in: by the one-time link of `dragoman open`, or by a token, which is exchanged for a cookie.
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";

import { post } from "../api/client";
import { sessionQuery } from "../api/queries";
import type { Session } from "../api/types";
import { Button, Field, Refusal, wordsOf } from "../parts/controls";
import { Command } from "../parts/states";
import styles from "./SignIn.module.css";

export function SignIn({ hasEnded }: { hasEnded: boolean }) {
  const client = useQueryClient();
  const [path, navigate] = useLocation();
  const [refusal, setRefusal] = useState("");
  const [isBusy, setBusy] = useState(false);
  const hasTried = useRef(false);

  const signIn = async (credential: { code: string } | { token: string }) => {
    setBusy(true);
    setRefusal("");
    try {
      const session = await post<Session>("/v1/sign-in", credential);
      await client.cancelQueries();
      // Nothing of who was signed in before stays on the page.
      client.removeQueries({ predicate: (query) => query.queryKey[0] !== sessionQuery.queryKey[0] });
      client.setQueryData(sessionQuery.queryKey, session);
      if (path === "/sign-in") navigate("/", { replace: true });
    } catch (error) {
      setRefusal(wordsOf(error));
      setBusy(false);
    }
  };

  useEffect(() => {
    const code = location.hash.slice(1);
    if (!code || hasTried.current) return;
    hasTried.current = true;
    // The code leaves the address before anything else: it stays in no history.
    history.replaceState(null, "", location.pathname);
    void signIn({ code });
  });

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token")).trim();
    void signIn({ token });
  };

  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={submit}>
        <h1>{hasEnded ? "Your session has ended" : "Sign in to this hub"}</h1>
        <p>
          On the machine of the hub this command prints a link that signs you in; it works once, for a minute:
        </p>
        <Command text="dragoman open" />
        <Field label="Or sign in with your token" hint="It is exchanged for a cookie of this browser, and kept nowhere else.">
          <input name="token" type="password" autoComplete="off" required maxLength={2048} autoFocus />
        </Field>
        {refusal && <Refusal text={refusal} />}
        <Button kind="primary" type="submit" disabled={isBusy}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
