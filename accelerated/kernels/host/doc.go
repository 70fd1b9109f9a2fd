// Package host runs the kernels on the processor, as the host's C++ compiler
// makes them: so that the very bodies that run on Metal and CUDA can be held
// to the reference, and looked at by sanitizers, where there is neither. It is
// a device for tests, not for speed, and does not register itself.
//
// The invariant: what is compiled is the text that Metal and CUDA get, with
// another prelude; nothing contracts or reorders floating point.
//
// A device needs a C++ compiler ($CXX, c++, g++ or clang++) the first time; the
// library is kept in the user's cache folder. With RINGCHECK_SANITIZE=1 the
// library has the address and undefined-behaviour sanitizers in it, and the
// program must have been started with their runtime preloaded:
// ci/kernels/sanitize does both.
//
// What kernels compute does not belong here: see accelerated/kernels.
package host
