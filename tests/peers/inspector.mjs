// The Inspector's command line, many commands in one process: each line of standard input is the list of its
// arguments, each line of standard output what it printed and how it ended. Its launcher calls the same function.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { runCli } = await import(pathToFileURL(process.argv[2]));
const write = process.stdout.write.bind(process.stdout);

for await (const line of createInterface({ input: process.stdin })) {
  const printed = [];
  process.stdout.write = (piece, ...more) => {
    printed.push(piece);
    const written = more.at(-1);
    if (typeof written === "function") written();
    return true;
  };
  const ended = { code: 0, error: "" };
  try {
    await runCli(["node", "inspector-cli", ...JSON.parse(line)]);
    ended.code = process.exitCode ?? 0;
  } catch (error) {
    ended.code = error.exitCode ?? 1;
    ended.error = String(error.message ?? error);
  }
  process.exitCode = 0;
  process.stdout.write = write;
  write(JSON.stringify({ ...ended, printed: printed.join("") }) + "\n");
}
process.exit(0);
