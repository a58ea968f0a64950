// How an agent ranks for a goal, and why: the parts of its score, what it needs, and what speaks against it.
import { type FormEvent, useState } from "react";

import { post } from "../api/client";
import { Button, Refusal, wordsOf } from "../parts/controls";
import { Mark } from "../parts/marks";
import page from "../parts/page.module.css";

interface Candidate {
  agent_id: string;
  trust: string;
  score: number;
  parts: Record<string, number>;
  threshold: number;
  results: number;
  successes: number;
  eligible: boolean;
  reasons: string[];
}

interface Ranking {
  candidates: Candidate[];
  of: number;
  next?: number;
}

const PAGE = 100;

/** The place and the row of an agent; null: it is no candidate. */
async function rank(agent: string, goal: string): Promise<{ place: number; of: number; row: Candidate } | null> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: Ranking = await post<Ranking>("/v1/ccos/ccos.rank", { goal, after, limit: PAGE });
    const at = page.candidates.findIndex((one) => one.agent_id === agent);
    if (at >= 0) return { place: after + at + 1, of: page.of, row: page.candidates[at]! };
    after = page.next;
  }
  return null;
}

export function Score({ agent }: { agent: string }) {
  const [found, setFound] = useState<Awaited<ReturnType<typeof rank>> | undefined>();
  const [refusal, setRefusal] = useState("");
  const ask = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setRefusal("");
    try {
      setFound(await rank(agent, String(new FormData(event.currentTarget).get("goal")).trim()));
    } catch (error) {
      setRefusal(wordsOf(error));
    }
  };
  return (
    <section aria-label="Score">
      <h3>Score for a goal</h3>
      <form className={page.ask} onSubmit={(event) => void ask(event)}>
        <input name="goal" aria-label="Goal" placeholder="such as: fix a failing test in Python" required maxLength={4096} dir="auto" />
        <Button type="submit">Rank</Button>
      </form>
      {refusal && <Refusal text={refusal} />}
      {found === null && <p className={page.quiet}>It is no candidate: it has not registered what it can do (`ccos.register`).</p>}
      {found && (
        <>
          <p>
            {found.row.eligible ? (
              <Mark shape="✓" tone="good">
                {`place ${found.place} of ${found.of}`}
              </Mark>
            ) : (
              <Mark shape="▲" tone="bad">
                {`place ${found.place} of ${found.of}, and not eligible`}
              </Mark>
            )}
            , {found.row.successes} of {found.row.results} results were successes, trust {found.row.trust}
          </p>
          {found.row.reasons.map((reason) => (
            <p key={reason} dir="auto">
              ▲ {reason}
            </p>
          ))}
          <table className={page.table}>
            <tbody>
              {Object.entries(found.row.parts).map(([name, value]) => (
                <tr key={name}>
                  <td>{name}</td>
                  <td className={page.number}>{value.toFixed(3)}</td>
                </tr>
              ))}
              <tr>
                <th scope="row">score; it needs {found.row.threshold.toFixed(3)}</th>
                <td className={page.number}>
                  <b>{found.row.score.toFixed(3)}</b>
                </td>
              </tr>
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}
