// Command kernels compiles the kernels' source to PTX with NVIDIA's runtime
// compiler, NVRTC, and writes it where it is embedded. With -check it compares
// instead. The script build beside it fetches the pinned NVRTC first: another
// version makes other text of the same source.
//
// What the kernels do does not belong here: see accelerated/kernels.
package main
