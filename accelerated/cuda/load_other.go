//go:build !linux || !(amd64 || arm64)

package cuda

import "errors"

func load() (*driver, error) {
	return nil, errors.New("it is for Linux on amd64 and arm64; use metal or cpu")
}
