// Package models says what must be true of a key/value cache, and knows no
// ring: a row is a list of tokens, and each query sees the last few of them.
//
// [Model] steps through the operations of a case and answers, for each, what
// must be observed ([Expect]): the code of a refusal, every row's position, how
// wide a result or a mask is, which tokens it must hold, and which of them each
// query of a real token sees. [Judge] holds observations, as token ids, against
// that, rule by rule ([Rules]). [Model.Legal] says beforehand whether an
// operation is refused, and whether the model can speak of it at all;
// [Model.Info] and its neighbours answer what a generator of cases must know.
// [Shapes] is a table of real models.
//
// The invariant: of a row only the number of its tokens, those that are still
// held, and its padding are kept. Padding, columns and bytes are never stored,
// and left padding is derived by conservation. Four integers of a ring (columns
// in use, write index, total, rotated) serve widths and the one defect of
// mlx-lm's masks that a specification must predict (O-1).
//
// Where mlx-lm corrupts silently (a trim after the window has filled, a
// negative trim, a filter while padding is pending, …) there is nothing true
// to say: the cache is lost, and nothing is predicted of it or of what is made
// from it until it is restored.
//
// What does not belong here: bytes, physical layout, anything read from an
// implementation. This package and package reference must not know each other.
package models
