// Reads drawings as those do who draw them: a JSON line with {form, text} comes in, one with what was read goes out.
// The first argument is the folder where the packages are.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const load = (file) => import(pathToFileURL(`${process.argv[2]}/node_modules/${file}`));

// Mermaid cleans labels with a browser's help. There is none here, and the labels are compared as they are.
const { default: purify } = await load("dompurify/dist/purify.es.mjs");
Object.assign(purify, { addHook() {}, sanitize: (text) => text });
const { default: mermaid } = await load("mermaid/dist/mermaid.core.mjs");
const { instance } = await load("@viz-js/viz/dist/viz.js");
const graphviz = await instance();

const read = {
  async mermaid(text) {
    await mermaid.parse(text); // also makes it know the kinds of diagrams
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    return {
      nodes: [...db.getVertices().values()].map(({ id, text }) => [id, text]),
      edges: db.getEdges().map(({ start, text, end }) => [start, text, end]),
    };
  },
  async dot(text) {
    return { svg: graphviz.renderString(text, { format: "svg" }) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { form, text } = JSON.parse(line);
  let said;
  try {
    said = await read[form](text);
  } catch (error) {
    said = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
