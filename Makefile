# Each target is a part, or parts, of ci/parts; ci/run has their time budgets.
.PHONY: ci test lint race cross fuzz mlx-lm live mutants kernels bench

ci:
	ci/run
test:
	go test ./...
lint:
	ci/run gofmt vet staticcheck imports
race cross fuzz:
	ci/run $@
mutants:
	go run ./ci/mutants
mlx-lm:
	ci/mlxlm/setup
live: mlx-lm
	ci/run live quantize
kernels:
	ci/kernels/build
bench:
	go test -run='^$$' -bench=. ./...
