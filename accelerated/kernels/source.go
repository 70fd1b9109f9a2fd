package kernels

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io"
	"sync"
)

var (
	//go:embed source/kernels.h
	body string
	//go:embed source/cuda.h
	cuda string
	//go:embed source/metal.h
	metal string
	//go:embed source/host.h
	host string
	//go:embed source/layouts.h
	layouts string

	//go:embed kernels.ptx.gz
	compressed []byte
)

// PTX is what NVRTC makes of the kernels, for CUDA's driver. Its first line says
// which source it was made of; `make kernels` makes it anew.
var PTX = sync.OnceValue(func() string {
	var text []byte
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err == nil {
		text, err = io.ReadAll(r)
	}
	if err != nil {
		panic(err) // not as long as the program is whole
	}
	return string(text)
})

// NVRTCOptions are the options that PTX is compiled with: every operation
// rounds by itself, and nothing is flushed to zero.
var NVRTCOptions = []string{
	"--gpu-architecture=compute_80", "--std=c++14",
	"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false",
}

// CUDASource is the kernels' text for CUDA.
func CUDASource() string { return cuda + body }

// MetalSource is the kernels' text for Metal.
func MetalSource() string { return metal + body }

// HostSource is the kernels' text for the host's C++ compiler, with a table of
// how it lays out argument structures.
func HostSource() string { return host + body + layouts }

// PTXHeader is the first line of PTX: the hash of what it is compiled from.
func PTXHeader() string {
	h := sha256.New()
	h.Write([]byte(CUDASource()))
	for _, o := range NVRTCOptions {
		h.Write([]byte("\x00" + o))
	}
	return "// ringcheck kernels " + hex.EncodeToString(h.Sum(nil)) + "\n"
}
