/** The clients that an application may bring. */

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The clients that an application may bring, by version: from a URL, for a cluster and by sentinels. */
export const kinds = {
  "ioredis 5": ioredis("ioredis-5"),
  "ioredis 6": ioredis("ioredis"),
  "node-redis 4": nodeRedis("redis-4"),
  "node-redis 5": nodeRedis("redis-5"),
  "node-redis 6": nodeRedis("redis-6"),
};

function ioredis(name) {
  const { Redis, Cluster, default: older } = require(name);
  const Client = Redis ?? older;
  const begun = (app) => app.on("error", () => {}) && app;
  return {
    package: name,
    version: require(`${name}/package.json`).version,
    create: (url, { prefix = "", lazy = false } = {}) => begun(new Client(url, { keyPrefix: prefix, lazyConnect: lazy })),
    cluster: (ports) => begun(new (Cluster ?? Client.Cluster)(ports.map((port) => ({ host: "127.0.0.1", port })))),
    sentinel: (port, group) => begun(new Client({ sentinels: [{ host: "127.0.0.1", port }], name: group })),
    end: (app) => app.disconnect(),
  };
}

function nodeRedis(name) {
  const { createClient, createCluster, createSentinel } = require(name);
  const begun = async (app, lazy) => {
    app.on("error", () => {});
    await (lazy ? undefined : app.connect());
    return app;
  };
  return {
    package: name,
    version: require(`${name}/package.json`).version,
    create: (url, { lazy } = {}) => begun(createClient({ url }), lazy),
    cluster: (ports) => begun(createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })),
    sentinel:
      createSentinel &&
      ((port, group) => begun(createSentinel({ name: group, sentinelRootNodes: [{ host: "127.0.0.1", port }] }))),
    end: async (app) => {
      if (app.isOpen !== false) {
        await (app.destroy ? app.destroy() : app.disconnect());
      }
    },
  };
}
