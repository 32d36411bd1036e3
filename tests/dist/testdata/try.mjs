// Acquires a lock twice with the package as it is installed, and prints where that is and the fencing tokens.

import { fileURLToPath } from "node:url";

import { connect } from "libredlock";

const redlock = await connect({ nodes: [process.argv[2]] });
console.log(fileURLToPath(import.meta.resolve("libredlock")));
for (let i = 0; i < 2; i++) {
  await redlock.mutex("dist").using((held) => console.log(`${held.fence}`));
}
await redlock.close();
