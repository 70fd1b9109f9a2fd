//go:build amd64 || arm64

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

const library = "libcuda.so.1"

// load binds the driver's library. It stays loaded: the driver does not
// survive being unloaded.
func load() (*driver, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w; install NVIDIA's driver", err)
	}
	d := new(driver)
	if err := d.bind(func(name string) (uintptr, error) { return purego.Dlsym(handle, name) }); err != nil {
		return nil, fmt.Errorf("%s: %w", library, err)
	}
	return d, nil
}
