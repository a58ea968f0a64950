// What was handed over with a task: each artifact by its name, with the hash of its content.
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { handoffQuery, handoffsQuery } from "../api/queries";
import type { HandoffDetail } from "../api/types";
import { HandoffStatus } from "../parts/marks";
import page from "../parts/page.module.css";
import { Empty, Failed, Loading } from "../parts/states";

interface Artifact {
  path: string;
  hash: string;
  state: string;
}

export function Artifacts({ id }: { id: string }) {
  const found = useQuery(handoffsQuery("", id));
  const handoffs = useQueries({ queries: (found.data?.handoffs ?? []).map((one) => handoffQuery(one.handoff_id)) });
  const failed = [found, ...handoffs].find((one) => one.error && one.data === undefined);
  if (failed) return <Failed error={failed.error} retry={() => void failed.refetch()} />;
  const read = handoffs.flatMap((one) => one.data ?? []);
  if (found.data === undefined || read.length < handoffs.length) return <Loading rows={4} />;
  const rows = read.flatMap((handoff) => artifactsOf(handoff).map((artifact) => ({ handoff, artifact })));
  if (!rows.length) return <Empty>No artifact was handed over with this task.</Empty>;
  return (
    <div className={page.main} tabIndex={0} role="group" aria-label="Artifacts">
      <table className={page.table}>
        <thead>
          <tr>
            <th>Artifact</th>
            <th>SHA-256</th>
            <th>Handed over</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ handoff, artifact }, index) => (
            <tr key={index}>
              <td>
                <bdi>{artifact.path}</bdi>
                <small className={page.small}>{artifact.state}</small>
              </td>
              <td className={page.hash}>{artifact.hash ? <code>{artifact.hash}</code> : "none"}</td>
              <td>
                <Link href={`/handoffs/${encodeURIComponent(handoff.handoff_id)}`}>
                  <HandoffStatus status={handoff.status} />
                </Link>
                <small className={page.small}>
                  <bdi>{handoff.from_agent}</bdi> to <bdi>{handoff.to_agent}</bdi>
                </small>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The artifacts of the package, then those of the completion. */
function artifactsOf(handoff: HandoffDetail): Artifact[] {
  const named = namedIn(handoff.package.artifacts).map(({ artifact_id: id, ref: { path, sha256 = "" } }) => {
    const verified = handoff.artifacts[id];
    const state = verified ? "copy kept and verified" : handoff.artifacts_left_out.includes(id) ? "left out by its recipient" : "not verified";
    return { path, hash: verified ?? sha256, state };
  });
  const final = handoff.notes.flatMap((note) => namedIn(note.data.final_artifacts));
  return [...named, ...final.map(({ ref: { path, sha256 = "" } }) => ({ path, hash: sha256, state: "named with the completion" }))];
}

interface Named {
  artifact_id: string;
  ref: { path: string; sha256?: string };
}

/** What is refused for its shape is kept as it came: then it has none. */
function namedIn(artifacts: unknown): Named[] {
  if (!Array.isArray(artifacts)) return [];
  return artifacts.filter((one: Partial<Named> | null): one is Named => typeof one?.ref?.path === "string");
}
