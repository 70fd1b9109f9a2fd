package corpus

import (
	"bytes"
	"embed"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed cases
var embedded embed.FS

//go:embed case.schema.json
var jsonSchema []byte

// JSONSchema returns the JSON Schema (draft 2020-12) of a case file. It says
// all that [Parse] demands but for what a schema cannot say: rows of one
// length, names in one list only, and the bounds on a whole case.
func JSONSchema() []byte { return bytes.Clone(jsonSchema) }

// FS returns the cases that come with the package, by folder: mlx-lm, exact,
// known, found.
func FS() fs.FS {
	sub, err := fs.Sub(embedded, "cases")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// File is a case and where it stands.
type File struct {
	Path string
	Case Case
}

// All yields the cases of fsys, which are its .json files in all folders, in
// the order of their paths. With an error, an [*Error], Path says where, and
// the walk goes on.
func All(fsys fs.FS) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		n := 0
		_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			f := File{Path: name}
			switch {
			case err != nil:
				err = unreadable(name, err)
			case d.IsDir() || path.Ext(name) != ".json" || strings.HasPrefix(d.Name(), "."):
				return nil
			case n == MaxFiles:
				yield(f, &Error{File: name, Problem: fail("", "the folder has more than %d files", MaxFiles).Problem})
				return fs.SkipAll
			default:
				n++
				f.Case, err = read(fsys, name)
			}
			if !yield(f, err) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// Dir yields the case in the file at name, or, where name is a folder, the cases
// under it as [All] does. Symbolic links that lead out of the folder are
// refused.
func Dir(name string) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		found := func(f File, err error) bool {
			f.Path = name
			return yield(f, err)
		}
		info, err := os.Stat(name)
		if err != nil {
			found(File{}, unreadable(name, err))
			return
		}
		if !info.IsDir() {
			c, err := read(os.DirFS(filepath.Dir(name)), filepath.Base(name))
			found(File{Case: c}, rename(err, name))
			return
		}
		root, err := os.OpenRoot(name)
		if err != nil {
			found(File{}, unreadable(name, err))
			return
		}
		defer root.Close()
		for f, err := range All(root.FS()) {
			f.Path = filepath.Join(name, filepath.FromSlash(f.Path))
			if !yield(f, rename(err, f.Path)) {
				return
			}
		}
	}
}

// rename says of err which file it is about.
func rename(err error, file string) error {
	if e, ok := err.(*Error); ok {
		e.File = file
	}
	return err
}

// read reads the case in one file, at most MaxFile bytes of it. What is no
// regular file, such as a pipe, might never end or never begin.
func read(fsys fs.FS, name string) (Case, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return Case{}, unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return Case{}, unreadable(name, errors.New("not a regular file"))
	}
	f, err := fsys.Open(name)
	if err != nil {
		return Case{}, unreadable(name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return Case{}, unreadable(name, err)
	}
	return Parse(text, name)
}

func unreadable(name string, err error) *Error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the path, which it says too, is said already
	}
	return &Error{File: name, Problem: fail("", "cannot be read: %v", err).Problem, Err: err}
}

// Add files c in canonical form in the folder dir, which it makes where needed,
// and returns the path. The name is the case's with .json, or its content id
// for a case that a run has found. Adding what is there already changes
// nothing, where a found case is there if its content is. A file that holds
// anything else stays as it is, and the error wraps [fs.ErrExist]. The file
// appears whole or not at all, whatever else writes to dir or ends the process.
// An error is an [*Error].
func Add(dir string, c Case) (string, error) {
	text := Format(c)
	name := c.Name
	if c.Found != nil {
		name = c.Content()
	}
	file := filepath.Join(dir, name+".json")
	if _, err := Parse(text, file); err != nil {
		return "", err // among others, of a name that is none
	}
	err := publish(dir, file, text)
	if errors.Is(err, fs.ErrExist) && holds(file, c, text) {
		err = nil
	}
	if err != nil {
		return "", &Error{File: file, Problem: fail("", "cannot be written: %v", err).Problem, Err: err}
	}
	return file, nil
}

// holds reports whether file has c, whose canonical text is given, already.
func holds(file string, c Case, text []byte) bool {
	old, err := os.ReadFile(file)
	if err != nil || c.Found == nil {
		return err == nil && bytes.Equal(old, text)
	}
	there, err := Parse(old, file)
	return err == nil && there.Content() == c.Content()
}

// publish writes text to a new file. It appears under its name by a link,
// which, unlike a rename, fails where the name is taken.
func publish(dir, file string, text []byte) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".case-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), file)
}
