// Command quantize holds the reference's Quantize and Dequantize against the
// real MLX on the CPU, byte by byte, on hard groups of every combination of
// data type, group size and bits:
//
//	go run ./ci/quantize [-groups 10000] [-seed N] [-python PATH]
//
// The child, ci/mlxlm/quantize.py, is sent the groups and answers with what
// MLX made of them: packed codes, scales, biases, the groups dequantized, and
// the same codes dequantized with scales and biases that no quantizer chose.
//
// One thing is made equal before the comparison: an element of MLX's scales,
// biases or dequantized values that is a NaN gets the bits of the one NaN that
// the reference stores. How many that changed is printed. Packed codes are
// compared as they are.
//
// It prints the seed and a line for each combination, which ends with the start
// of the SHA-256 of what MLX answered, and exits 1 where a byte differs, 2 where
// the comparison could not be run. testdata holds such a table, against which
// go test checks the reference without Python.
package main
