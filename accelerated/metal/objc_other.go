//go:build !(darwin && (amd64 || arm64))

package metal

import "example.com/ringcheck/accelerated"

func load() (api, error) {
	return nil, &accelerated.UnavailableError{Device: "metal", Why: "Metal exists on macOS only; use cuda or cpu"}
}
