package main

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"example.com/ringcheck/accelerated/kernels"
	"github.com/ebitengine/purego"
)

const out = "accelerated/kernels/kernels.ptx.gz"

func main() {
	library := flag.String("nvrtc", "libnvrtc.so.12", "NVRTC's `library`")
	check := flag.Bool("check", false, "compare "+out+" with what NVRTC makes; write nothing")
	to := flag.String("o", out, "the `file` to write")
	flag.Parse()
	if err := build(*library, *to, *check); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func build(library, to string, check bool) error {
	ptx, err := compile(library)
	if err != nil {
		return err
	}
	ptx = kernels.PTXHeader() + ptx
	if check {
		if ptx != kernels.PTX() {
			return errors.New(out + " is not what this NVRTC makes of the source; run make kernels")
		}
		fmt.Println(out, "is what NVRTC makes of the source")
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(to), ".kernels-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	pack, err := gzip.NewWriterLevel(temp, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = pack.Write([]byte(ptx))
	if err = errors.Join(err, pack.Close(), temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), to)
}

// nvrtc is the part of NVRTC that compiles.
type nvrtc struct {
	version     func(major, minor *int32) int32
	errorString func(code int32) string
	create      func(prog *uintptr, src, name string, headers int32, sources, names unsafe.Pointer) int32
	compile     func(prog uintptr, n int32, options **byte) int32
	logSize     func(prog uintptr, size *uintptr) int32
	log         func(prog uintptr, log *byte) int32
	ptxSize     func(prog uintptr, size *uintptr) int32
	ptx         func(prog uintptr, ptx *byte) int32
	destroy     func(prog *uintptr) int32
}

func compile(library string) (string, error) {
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return "", fmt.Errorf("%w; run ci/kernels/build, which fetches it", err)
	}
	var n nvrtc
	for _, f := range []struct {
		of   any
		name string
	}{
		{&n.version, "nvrtcVersion"}, {&n.errorString, "nvrtcGetErrorString"},
		{&n.create, "nvrtcCreateProgram"}, {&n.compile, "nvrtcCompileProgram"},
		{&n.logSize, "nvrtcGetProgramLogSize"}, {&n.log, "nvrtcGetProgramLog"},
		{&n.ptxSize, "nvrtcGetPTXSize"}, {&n.ptx, "nvrtcGetPTX"}, {&n.destroy, "nvrtcDestroyProgram"},
	} {
		symbol, err := purego.Dlsym(lib, f.name)
		if err != nil {
			return "", err
		}
		purego.RegisterFunc(f.of, symbol)
	}
	return n.run()
}

func (n *nvrtc) run() (string, error) {
	var prog uintptr
	if code := n.create(&prog, kernels.CUDASource(), "kernels.cu", 0, nil, nil); code != 0 {
		return "", errors.New(n.errorString(code))
	}
	defer n.destroy(&prog)
	options := make([]*byte, len(kernels.NVRTCOptions))
	for i, o := range kernels.NVRTCOptions {
		options[i] = unsafe.StringData(o + "\x00")
	}
	code := n.compile(prog, int32(len(options)), &options[0])
	runtime.KeepAlive(options)
	if code != 0 {
		text, err := read(prog, n.logSize, n.log)
		if err != nil {
			text = err.Error()
		}
		return "", fmt.Errorf("%s\n%s", n.errorString(code), text)
	}
	return read(prog, n.ptxSize, n.ptx)
}

// read reads one of the texts that NVRTC has, without the NUL behind it.
func read(prog uintptr, size func(uintptr, *uintptr) int32, get func(uintptr, *byte) int32) (string, error) {
	var n uintptr
	if code := size(prog, &n); code != 0 || n == 0 {
		return "", fmt.Errorf("NVRTC has no text: error %d", code)
	}
	text := make([]byte, n)
	if code := get(prog, &text[0]); code != 0 {
		return "", fmt.Errorf("NVRTC gives no text: error %d", code)
	}
	return string(text[:n-1]), nil
}
