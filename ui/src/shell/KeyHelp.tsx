import { Dialog } from "../parts/controls";
import styles from "./Shell.module.css";

const KEYS: [string, string][] = [
  ["j  k", "next and previous"],
  ["Enter", "open what is selected"],
  ["Esc", "close the panel"],
  ["m", "move the selected task"],
  ["a", "assign the selected task"],
  ["x", "choose the selected task for an action on several"],
  [".", "pause and go on with live updates"],
  ["/", "search and commands (or Ctrl K, ⌘K)"],
  ["r", "reply to the open letter"],
  ["← →", "in the past: an entry; with Shift: a minute"],
  ["?", "this list"],
];

export function KeyHelp({ pages, onClose }: { pages: { name: string; key: string }[]; onClose: () => void }) {
  const rows = [...pages.map((page) => [`g ${page.key}`, page.name] as const), ...KEYS];
  return (
    <Dialog title="Keys" confirm="Close" run={async () => undefined} onClose={onClose}>
      <dl className={styles.keys}>
        {rows.map(([keys, words]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").filter(Boolean).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
