/** What is used of WebAssembly, which TypeScript has for browsers only. */
declare namespace WebAssembly {
  type Imports = Record<string, Record<string, (...args: any[]) => unknown>>;

  class Module {
    constructor(bytes: Uint8Array);
    static imports(module: Module): { module: string; name: string; kind: string }[];
  }

  class Instance {
    constructor(module: Module, imports: Imports);
    readonly exports: Record<string, unknown>;
  }

  class Memory {
    constructor(descriptor: { initial: number });
    readonly buffer: ArrayBuffer;
  }

  function compile(bytes: Uint8Array): Promise<Module>;
}
