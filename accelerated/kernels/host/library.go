package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"example.com/ringcheck/accelerated"
	"example.com/ringcheck/accelerated/kernels"
	"github.com/ebitengine/purego"
)

// Library is the kernels as the host's compiler made them. It stays loaded.
type Library struct {
	entries map[string]func(buffers, args unsafe.Pointer, warps uint32)
	alloc   func(size uintptr) unsafe.Pointer
	free    func(p unsafe.Pointer)
	layouts func(n *uint32) *uint32
}

var flags = []string{
	"-std=c++14", "-O2", "-shared", "-fPIC", "-fno-strict-aliasing",
	"-ffp-contract=off", "-fno-fast-math", "-fvisibility=default",
}

var sanitizers = []string{"-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// Load compiles the kernels, once for each source and compiler, and loads
// them. Without a compiler it is an [*accelerated.UnavailableError]; kernels
// that do not compile are another error.
var Load = sync.OnceValues(load)

func load() (*Library, error) {
	path, err := build(kernels.HostSource(), os.Getenv("RINGCHECK_SANITIZE") == "1")
	if errors.Is(err, errNoCompiler) {
		return nil, &accelerated.UnavailableError{Device: name, Why: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return open(path)
}

// open loads a library.
func open(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l := &Library{entries: map[string]func(buffers, args unsafe.Pointer, warps uint32){}}
	for name, f := range map[string]any{"host_alloc": &l.alloc, "host_free": &l.free, "host_layouts": &l.layouts} {
		if err := bind(handle, name, f); err != nil {
			return nil, err
		}
	}
	for name := range kernels.Entries {
		var f func(buffers, args unsafe.Pointer, warps uint32)
		if err := bind(handle, name, &f); err != nil {
			return nil, err
		}
		l.entries[name] = f
	}
	return l, nil
}

func bind(handle uintptr, name string, f any) error {
	symbol, err := purego.Dlsym(handle, name)
	if err != nil {
		return err
	}
	purego.RegisterFunc(f, symbol)
	return nil
}

// Call runs a kernel over a number of warps, to its end. Buffers are where its
// pointers point.
func (l *Library) Call(kernel string, buffers []unsafe.Pointer, args []byte, warps int) error {
	e, f := kernels.Entries[kernel], l.entries[kernel]
	if f == nil || len(buffers) != e.Buffers || len(args) != e.ArgBytes {
		return fmt.Errorf("kernel %q with %d buffers and %d bytes of arguments: there is none like that", kernel, len(buffers), len(args))
	}
	// Argument structures are aligned to 8 bytes, as their numbers are.
	aligned := make([]uint64, (len(args)+7)/8)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), len(args)), args)
	f(unsafe.Pointer(&buffers[0]), unsafe.Pointer(&aligned[0]), uint32(warps))
	runtime.KeepAlive(buffers)
	return nil
}

// patience is how long a compiler may take.
const patience = 5 * time.Minute

// build returns the path of the library of a source, which it compiles if it is
// not in the cache.
func build(source string, sanitize bool) (string, error) {
	compiler, err := findCompiler()
	if err != nil {
		return "", err
	}
	options := flags
	if sanitize {
		options = append(append([]string{}, flags...), sanitizers...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	compile := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, compiler, args...)
		// What is preloaded is for this program.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "LD_PRELOAD=") })
		return cmd
	}
	version, err := compile("--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", compiler, err)
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{source, compiler, string(version)}, options...), "\x00")))
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "ringcheck")
	path := filepath.Join(dir, "kernels-"+hex.EncodeToString(sum[:12])+".so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	text, library := filepath.Join(temp, "kernels.cpp"), filepath.Join(temp, "kernels.so")
	if err := os.WriteFile(text, []byte(source), 0o644); err != nil {
		return "", err
	}
	out, err := compile(append(options, "-o", library, text)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", compiler, err, out)
	}
	return path, os.Rename(library, path)
}

var errNoCompiler = errors.New("there is no C++ compiler (c++, g++, clang++); install one, on Debian with apt-get install g++, on macOS with xcode-select --install")

func findCompiler() (string, error) {
	if cxx := os.Getenv("CXX"); cxx != "" {
		return exec.LookPath(cxx)
	}
	for _, name := range []string{"c++", "g++", "clang++"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoCompiler
}
