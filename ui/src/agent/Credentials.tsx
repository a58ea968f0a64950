// The tokens of an agent: a new one is shown once; one that is revoked is refused from then on.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { call, post } from "../api/client";
import { tokensQuery } from "../api/queries";
import type { IssuedToken } from "../api/types";
import { ActionButton, Button, Dialog, Field } from "../parts/controls";
import { Mark } from "../parts/marks";
import page from "../parts/page.module.css";
import { Command, Failed } from "../parts/states";
import { Moment } from "../parts/time";

export function Credentials({ agent }: { agent: string }) {
  const client = useQueryClient();
  const found = useQuery(tokensQuery(agent));
  const [isAsked, setAsked] = useState(false);
  const [issued, setIssued] = useState<IssuedToken | null>(null);
  const path = `/v1/agents/${encodeURIComponent(agent)}/tokens`;
  const refresh = () => client.invalidateQueries({ queryKey: ["agents"] });
  const issue = async (form: FormData) => {
    setIssued(await post<IssuedToken>(path, { days: Number(form.get("days")) }));
    await refresh();
  };
  const revoke = (id: string) => async () => {
    await call("DELETE", `${path}/${encodeURIComponent(id)}`);
    await refresh();
  };
  const tokens = found.data?.tokens ?? [];
  return (
    <section aria-label="Tokens">
      <h3>Tokens</h3>
      {found.error && <Failed error={found.error} />}
      {tokens.length > 0 && (
        <table className={page.table}>
          <tbody>
            {tokens.map((token) => (
              <tr key={token.id}>
                <td>
                  <code>{token.id}</code>
                </td>
                <td>{token.state === "good" ? <Mark shape="✓" tone="good">good</Mark> : <span className={page.quiet}>{token.state}</span>}</td>
                <td className={page.quiet}>
                  until <Moment at={token.expiresAt} />
                </td>
                <td className={page.number}>{token.state === "good" && <ActionButton run={revoke(token.id)}>Revoke</ActionButton>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Button onClick={() => setAsked(true)}>New token…</Button>
      {isAsked && (
        <Dialog title={`A new token for ${agent}`} confirm="Create" run={issue} onClose={() => setAsked(false)}>
          <p>Who has it speaks for {agent}. It is shown once, after this.</p>
          <Field label="Good for so many days">
            <input name="days" type="number" min={1} max={366} defaultValue={90} required autoFocus />
          </Field>
        </Dialog>
      )}
      {issued && (
        <div role="status" className={page.issued}>
          <p>Copy it now: the hub keeps only its digest, and shows it never again.</p>
          <Command text={issued.token} />
          <Button onClick={() => setIssued(null)}>I have it</Button>
        </div>
      )}
    </section>
  );
}
