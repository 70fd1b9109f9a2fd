// Command docs writes what is generated in the folder docs:
//
//	go run ./ci/docs
//
// The page quirks.md is the ledger of package reference, with the kinds of
// cache of each row's case. In all pages, the block of code after a line such
// as
//
//	<!-- code: examples/python/port.py -->
//	<!-- code: examples/python/port.py RotatingCache -->
//
// is what stands in that file: all of it, or one declaration with the comment
// before it. So what a page shows is what CI has run.
//
// The test fails where a page is not what this command writes.
//
//	go run ./ci/docs -try DIR docs/testing-a-port.md …
//
// runs the commands of the pages' console blocks in DIR, a copy of the module,
// and fails where one prints something else than its page says.
package main
