/** Programs that the tests run as processes of their own. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LIMIT_MS = 30_000;

/** Where a program imports the package from. */
export const packageUrl = new URL("../../src/index.js", import.meta.url).href;

/**
 * Runs a module, in which PACKAGE stands for the package, and gives what it wrote and how it ended.
 */
export async function runScript(t, source, { args = [], flags = [], node = process.execPath } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "redlock-script-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "program.mjs");
  writeFileSync(file, source.replaceAll("PACKAGE", JSON.stringify(packageUrl)));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env; // it is no test of its own
  const child = spawn(node, [...flags, file, ...args], { stdio: ["ignore", "pipe", "pipe"], env });
  t.after(() => child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "", code: undefined, signal: undefined, ms: 0 };
  child.stdout.setEncoding("utf8").on("data", (text) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (output.stderr += text));
  const began = performance.now();
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  [output.code, output.signal] = await new Promise((resolve) => child.on("close", (...end) => resolve(end)));
  clearTimeout(timer);
  output.ms = performance.now() - began;
  return output;
}
