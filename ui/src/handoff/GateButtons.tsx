// The gate of a handoff: a person approves or denies exactly the package with this hash.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { handoffQuery } from "../api/queries";
import { Button, Dialog, Field } from "../parts/controls";
import { Failed, Loading } from "../parts/states";
import { useAct } from "../task/act";
import styles from "./handoff.module.css";

export function GateButtons({ handoff }: { handoff: string }) {
  const [asked, setAsked] = useState<"approve" | "deny" | null>(null);
  return (
    <>
      <Button kind="primary" onClick={() => setAsked("approve")}>
        Approve…
      </Button>
      <Button onClick={() => setAsked("deny")}>Deny…</Button>
      {asked && <GateDialog handoff={handoff} action={asked} onClose={() => setAsked(null)} />}
    </>
  );
}

function GateDialog({ handoff, action, onClose }: { handoff: string; action: "approve" | "deny"; onClose: () => void }) {
  const act = useAct();
  const found = useQuery(handoffQuery(handoff));
  const hash = found.data?.package_hash ?? "";
  const decide = (form: FormData) =>
    act("/v1/acp/acp_handoff", { action, handoff_id: handoff, ...(hash ? { package_hash: hash } : {}), notes: String(form.get("notes") ?? "").trim() });
  return (
    <Dialog
      title={action === "approve" ? "Approve this package" : "Deny this package"}
      confirm={action === "approve" ? "Approve" : "Deny"}
      kind={action === "approve" ? "primary" : "danger"}
      run={decide}
      onClose={onClose}
    >
      {found.error && <Failed error={found.error} />}
      {found.isPending && <Loading rows={2} />}
      {found.data && (
        <>
          <p className={styles.gate} dir="auto">
            {found.data.title}: from {found.data.from_agent} to {found.data.to_agent}
          </p>
          <div>
            <h3>Hash of the package</h3>
            <code className={styles.hash}>{hash || "the package has no hash"}</code>
          </div>
          <Field label="Note" hint="It stands with your decision.">
            <textarea name="notes" maxLength={4096} dir="auto" />
          </Field>
        </>
      )}
    </Dialog>
  );
}
