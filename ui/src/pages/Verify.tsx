// Proof that nothing in the ledger was lost or changed, asked of the hub.
import { useState } from "react";

import { post } from "../api/client";
import type { LedgerProof } from "../api/types";
import { Button, Refusal, wordsOf } from "../parts/controls";
import { Mark } from "../parts/marks";
import { roughly } from "../parts/time";

export function Verify() {
  const [isBusy, setBusy] = useState(false);
  const [proof, setProof] = useState<LedgerProof | null>(null);
  const [refusal, setRefusal] = useState("");
  const verify = async () => {
    setBusy(true);
    setRefusal("");
    setProof(null);
    try {
      setProof(await post<LedgerProof>("/v1/ledger/verify"));
    } catch (error) {
      setRefusal(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button disabled={isBusy} onClick={() => void verify()}>
        {isBusy ? "Verifying…" : "Verify"}
      </Button>
      <span role="status">
        {proof && proof.findings.length === 0 && (
          <Mark shape="✓" tone="good">
            every hash of {proof.entries.toLocaleString()} entries in {proof.streams.toLocaleString()} streams is right ({roughly(proof.durationMs)})
          </Mark>
        )}
      </span>
      {proof?.findings.map((finding) => <Refusal key={finding} text={finding} />)}
      {refusal && <Refusal text={refusal} onClose={() => setRefusal("")} />}
    </>
  );
}
