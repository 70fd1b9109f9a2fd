// The little of Node that is used here, so that the compiler is the only
// package that the build needs.

declare module "node:readline" {
  export function createInterface(options: { input: unknown }): AsyncIterable<string>;
}

declare const process: {
  readonly stdin: unknown;
  readonly stdout: { write(text: string): boolean };
};

declare const Buffer: {
  alloc(size: number): Uint8Array & { toString(encoding: "base64"): string };
};
