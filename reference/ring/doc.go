// Package ring is the vocabulary that every part of ringcheck shares: the two
// semantics, data types, dense arrays of columns, masks, snapshots of a ring's
// positions, and one typed error for each code of the case format.
//
// Axes are always b h s d: batch row, key/value head, column, head dimension.
// A column is a physical slot of the s axis; a row is one sequence of the
// batch. All bytes are little-endian and row-major.
//
// The package knows no cache and no operation. It imports the standard library
// only, and nothing else of this module.
package ring
