// Build the editor bundle: `npm ci && npm run build`. The results are committed, so the server needs no Node.
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.env.OUT || join(here, "..");

const result = await build({
  absWorkingDir: here,
  entryPoints: { editor: "editor/index.mjs" },
  bundle: true,
  minify: true,
  format: "esm",
  splitting: true,
  chunkNames: "editor-[name]",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  outdir: out,
});

// Browsers take Brotli over HTTPS: a sixth less than gzip.
for (const path of Object.keys(result.metafile.outputs)) {
  const file = join(out, basename(path));
  writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
}

// Write the license of each package in the bundle.
const packages = [...new Set(Object.keys(result.metafile.inputs)
  .map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
  .filter(Boolean))].sort();
const license = (name) => {
  const folder = join(here, "node_modules", name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
};
writeFileSync(join(out, "editor.LICENSES.txt"), packages.map(license).join(`\n${"-".repeat(80)}\n\n`));
