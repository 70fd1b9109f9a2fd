// Package draw draws a case, step by step: the columns of each cache with their
// tokens, row by row, the masks beside their keys, and, where an implementation
// answered otherwise than it should, what was wanted and what came.
//
// [New] computes a [Drawing], a plain value, from a case and the answers to it.
// It is rendered as text for a terminal ([Drawing.Text]), as one self-contained
// web page ([Drawing.Page]) and, one step at a time, as a picture
// ([Drawing.SVG]); none of them computes anything about caches. A [Report] is
// what a whole run found, as a page and as JUnit XML.
//
// The invariant: everything in a Drawing that a file or a child has had a hand
// in is harmless text already. It holds printable runes only, so no terminal
// obeys it; and whatever writes markup escapes it.
//
// Who is right does not belong here (package props compares), nor files and
// flags (cmd/ringcheck).
package draw
