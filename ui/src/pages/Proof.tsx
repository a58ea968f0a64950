// What was signed: the checkpoints, and the proof that an entry is part of one.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { get } from "../api/client";
import type { CheckpointList, EntryProof } from "../api/types";
import { Button } from "../parts/controls";
import { Mark } from "../parts/marks";
import page from "../parts/page.module.css";
import { Failed, Loading } from "../parts/states";
import { Moment } from "../parts/time";
import { useSession } from "../session";

export function Checkpoints() {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={page.more} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Signed checkpoints</summary>
      {isOpen && <CheckpointTable />}
    </details>
  );
}

function CheckpointTable() {
  // Under the key of the ledger: it grows with it.
  const found = useQuery({
    queryKey: ["ledger", "checkpoints"],
    queryFn: ({ signal }) => get<CheckpointList>("/v1/ledger/checkpoints", signal),
  });
  if (found.data === undefined) {
    return found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : <Loading rows={2} />;
  }
  const { checkpoints, invalid } = found.data;
  return (
    <>
      {invalid > 0 && (
        <Mark shape="▲" tone="bad">
          {invalid === 1 ? "1 line does" : `${invalid} lines do`} not hold: dragoman verify names them
        </Mark>
      )}
      {checkpoints.length === 0 ? (
        <p>Nothing is signed yet.</p>
      ) : (
        <table className={page.table} aria-label="Checkpoints, the newest first">
          <thead>
            <tr>
              <th className={page.number}>Entries</th>
              <th>Signed</th>
              <th>Root</th>
              <th>Signature, by key</th>
            </tr>
          </thead>
          <tbody>
            {checkpoints.map((one) => (
              <tr key={one.signature}>
                <td className={page.number}>{one.size.toLocaleString()}</td>
                <td>
                  <Moment at={one.at} />
                </td>
                <td className={page.hash}>
                  <code>{one.root}</code>
                </td>
                <td className={page.hash}>
                  <code>{one.signature}</code>
                  <small className={page.small}>
                    <code>{one.key}</code>
                  </small>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

/** The proof of one entry, made when somebody asks for it. */
export function Proof({ position }: { position: number }) {
  const session = useSession();
  const [isAsked, setAsked] = useState(false);
  const found = useQuery({
    queryKey: ["proof", position],
    queryFn: ({ signal }) => get<EntryProof>(`/v1/ledger/proof?position=${position}`, signal),
    enabled: isAsked,
    gcTime: 0,
  });
  if (!session.may.pause) return null;
  if (!isAsked) {
    return (
      <Button kind="quiet" onClick={() => setAsked(true)}>
        Proof
      </Button>
    );
  }
  if (found.data === undefined) return found.error ? <Failed error={found.error} retry={() => void found.refetch()} /> : <Loading rows={1} />;
  const { checkpoint, path, verified } = found.data;
  if (!checkpoint) return <p role="status">No checkpoint signs it yet.</p>;
  return (
    <div role="status">
      <Mark shape={verified ? "✓" : "▲"} tone={verified ? "good" : "bad"}>
        {verified ? "verified" : "not verified: this is not what was signed"}
      </Mark>{" "}
      as entry {position} of the {checkpoint.size} under the checkpoint of <Moment at={checkpoint.at} />, root <code>{checkpoint.root}</code>, signed by the key <code>{checkpoint.key}</code>
      {path.length > 0 && (
        <ol aria-label="Path to the root">
          {path.map((node, index) => (
            <li key={index}>
              <code>{node}</code>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
