// Package promptfile reads and writes prompt-cache files as mlx-lm's
// save_prompt_cache and load_prompt_cache do, so that each side loads what the
// other saved.
//
// A file is a safetensors file. The states of its caches ([reference.State])
// are a tree; each leaf is a tensor whose name is the path to it, numbers
// joined by dots, the cache's index first. What is no array in Python is a
// tensor too: a number or a truth value a scalar, a text its code points, None
// an empty array. The metadata name the classes of the caches, and the tensors
// that stand for such values. Keys of the metadata start with 0. (the user's),
// 1. (classes) or 2. (values that are no arrays).
//
// MLX places the tensors of a file in no order that could be repeated: two files
// are equal if they hold the same tensors and metadata, not the same bytes.
//
// The invariant: a file is untrusted. It is bounded before it is read
// ([MaxFile], [MaxHeader], [MaxDepth]), memory follows what the file really
// holds, and what could not have come from a cache is an [*Error] that names
// the file and the place in it.
//
// What a cache's state is, and which states are valid, does not belong here:
// see [reference.FromState].
package promptfile
