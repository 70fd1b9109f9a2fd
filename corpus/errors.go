package corpus

import "fmt"

// Problem says what is wrong with one place of a case.
type Problem struct {
	Op    int    // index of the operation; -1 for the header
	Verb  Verb   // of that operation, where it is known
	Field string // path of the field within the operation or the header, such as "want.state.idx"; "" for all of it
	What  string
}

func (p Problem) String() string {
	s := p.What
	if p.Field != "" {
		s = p.Field + ": " + s
	}
	switch {
	case p.Op < 0:
		return s
	case p.Verb == "":
		return fmt.Sprintf("operation %d: %s", p.Op, s)
	}
	return fmt.Sprintf("operation %d (%s): %s", p.Op, p.Verb, s)
}

// Error refuses text that is no case, or a file that cannot be read or filed.
// Err is the cause where the file system is to blame.
type Error struct {
	File string
	Problem
	Err error
}

func (e *Error) Error() string {
	if e.File == "" {
		return e.Problem.String()
	}
	return e.File + ": " + e.Problem.String()
}

func (e *Error) Unwrap() error { return e.Err }

func fail(field, format string, args ...any) *Error {
	return &Error{Problem: Problem{Op: -1, Field: field, What: fmt.Sprintf(format, args...)}}
}

// within puts name before the path of the field that err complains of, unless
// it is the path within an operation already.
func within(name string, err error) error {
	if e, ok := err.(*Error); ok && e.Op < 0 {
		if e.Field != "" {
			name += "." + e.Field
		}
		e.Field = name
	}
	return err
}

// inOp says of err which operation it belongs to.
func inOp(i int, v Verb, err error) error {
	if e, ok := err.(*Error); ok {
		e.Op, e.Verb = i, v
	}
	return err
}
