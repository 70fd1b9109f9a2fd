// Package corpus is the case language of ringcheck, and the cases.
//
// A [Case] is a value: a configuration and a list of operations on named
// caches, each with what must be observed of it. [Parse] reads one from text
// that nobody vouches for, [Format] prints the one canonical text of it, and
// [Lint] finds what a reader cannot: names used before they are defined, tokens
// fed twice, wants that can never hold. A case names tokens, not bytes;
// [AppendToken] and [TokenArray] make the bytes, and a [Lookup] finds the ids
// again. [FS] holds the cases that come with the package, [Dir] reads others,
// and [Add] files one.
//
// The invariant: Parse(Format(c)) is c, and Format(Parse(text)) is the same
// bytes for every text of the same case.
//
// Text is not trusted: what Parse accepts is bounded, and so is what running it
// asks for, since the operations of a case touch at most [MaxWork] bytes.
//
// What operations do does not belong here (package reference), nor what is
// right (package models), nor the comparison of an answer with a want (package
// props).
package corpus
