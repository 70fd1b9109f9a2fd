// Package props judges implementations of ring KV caches.
//
// A [Target] takes a whole [corpus.Case] and answers with an observation an
// operation. Targets run in process, or as a child process ([StartChild]) that
// speaks the protocol of docs/wire.md; [Serve] is the other end of it. Two
// answers to one case are held against each other by [CompareRuns], an answer
// against what the case itself wants by [CompareWants], both at one of the
// three levels of agreement: [Layout], [Columns], [Visible]. [Tokens] turns
// bytes back into the token ids that a case names, so that a [Difference] reads
// as tokens, and [Listing] and [DrawColumns] show where it is.
//
// [Properties] are what must be true of a target whatever the case; [Check]
// holds a target to them. [Generate] makes cases of a [Domain], legal ones and a
// few that must be refused, and asks only package models, never a target;
// [Situations] count what they get into, and [Exhaust] tries every short one.
// [Reduce] makes a failing case small, [File] keeps it. A [Suite] does all of
// this, for go test and for the command.
//
// The invariant: a refusal is an answer, and an error of Run says nothing about
// caches. So a child can crash, hang, flood or lie without a case being judged
// by it: all of that is a [*Fault].
//
// What a child sends is bounded before it is believed: lines, shapes, the
// number of steps.
//
// What a cache must do does not belong here (packages reference and models),
// nor the format of a case (package corpus).
package props
