package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
)

// Every case that comes with the package is canonical, sound, and named after
// its file.
func TestEmbeddedCases(t *testing.T) {
	count := map[string]int{}
	for f, err := range All(FS()) {
		if err != nil {
			t.Error(err)
			continue
		}
		folder, base, _ := strings.Cut(f.Path, "/")
		count[folder]++
		name := f.Case.Name
		if folder == "found" {
			name = f.Case.Content()
		}
		if base != name+".json" || (folder == "found") != (f.Case.Found != nil) {
			t.Errorf("%s is in the wrong place", f.Path)
		}
		text, err := fs.ReadFile(FS(), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, Format(f.Case)) {
			t.Errorf("%s is not in canonical form; use ringcheck add", f.Path)
		}
		for _, p := range Lint(f.Case) {
			t.Errorf("%s: %v", f.Path, p)
		}
	}
	if count["mlx-lm"] < 200 || count["exact"] < 80 {
		t.Errorf("cases by folder: %v, want at least 200 in mlx-lm and 80 in exact", count)
	}
}

// collect returns the cases and the errors of a walk by path.
func collect(walk iter.Seq2[File, error]) (ok, bad []string) {
	for f, err := range walk {
		var typed *Error
		switch {
		case err == nil:
			ok = append(ok, f.Path)
		case errors.As(err, &typed) && typed.File == f.Path:
			bad = append(bad, err.Error())
		default:
			bad = append(bad, fmt.Sprintf("%s: no *Error of this file: %#v", f.Path, err))
		}
	}
	return ok, bad
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDir(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "in")
	outside := write(t, filepath.Join(tmp, "out", "case.json"), caseOf())
	b := write(t, filepath.Join(dir, "b.json"), caseOf())
	a := write(t, filepath.Join(dir, "sub", "a.json"), caseOf())
	write(t, filepath.Join(dir, "README.md"), "no case")
	write(t, filepath.Join(dir, ".case-1.json"), "half")
	c := write(t, filepath.Join(dir, "c.json"), "{}")
	large := write(t, filepath.Join(dir, "large.json"), strings.Repeat(" ", MaxFile+1))
	for name, to := range map[string]string{"inner.json": "b.json", "outer.json": outside, "up.json": "../out/case.json", "folder": filepath.Dir(outside), "none.json": "nothing"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	ok, bad := collect(Dir(dir))
	equal(t, "cases", ok, []string{b, filepath.Join(dir, "inner.json"), a})
	for i, want := range []string{
		c + ": schema: is missing",
		large + ": is 8388609 bytes long, want at most 8388608",
		filepath.Join(dir, "none.json") + ": cannot be read: ",
		filepath.Join(dir, "outer.json") + ": cannot be read: ",
		filepath.Join(dir, "pipe.json") + ": cannot be read: not a regular file",
		filepath.Join(dir, "up.json") + ": cannot be read: ",
	} {
		if i >= len(bad) || !strings.HasPrefix(bad[i], want) {
			t.Errorf("error %d of %q, want %s", i, bad, want)
		}
	}
	// A file that is named is read, whatever it is called and wherever it leads.
	named := filepath.Join(dir, "outer.json")
	ok, bad = collect(Dir(named))
	equal(t, "a named link", append(ok, bad...), []string{named})
	ok, bad = collect(Dir(c))
	equal(t, "a named file", append(ok, bad...), []string{c + ": schema: is missing"})
	nothing := filepath.Join(dir, "nothing")
	ok, bad = collect(Dir(nothing))
	if len(ok) != 0 || len(bad) != 1 || !strings.HasPrefix(bad[0], nothing+": cannot be read: ") {
		t.Errorf("nothing: %v, %v", ok, bad)
	}
	for range Dir(dir) {
		break // an early end must not go on
	}
}

type failing struct{ fs.FS }

func (f failing) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "gone") {
		return nil, fs.ErrPermission
	}
	file, err := f.FS.Open(name)
	if err == nil && strings.HasPrefix(name, "torn") {
		file = torn{file}
	}
	return file, err
}

func (f failing) Stat(name string) (fs.FileInfo, error) { return fs.Stat(f.FS, name) }

type torn struct{ fs.File }

func (torn) Read([]byte) (int, error) { return 0, errors.New("torn") }

func TestAllErrors(t *testing.T) {
	files := failing{fstest.MapFS{
		"a.json": {Data: []byte(caseOf())}, "gone.json": {}, "gone/b.json": {}, "torn.json": {}, "z.json": {Data: []byte(caseOf())},
	}}
	ok, bad := collect(All(files))
	equal(t, "cases", ok, []string{"a.json", "z.json"})
	equal(t, "errors", bad, []string{
		"gone: cannot be read: permission denied", "gone.json: cannot be read: permission denied", "torn.json: cannot be read: torn",
	})
	many := fstest.MapFS{}
	for i := range MaxFiles + 2 {
		many[fmt.Sprint(i, ".json")] = &fstest.MapFile{Data: []byte("1")}
	}
	n, last := 0, error(nil)
	for _, err := range All(many) {
		n, last = n+1, err
	}
	if n != MaxFiles+1 || !strings.HasSuffix(last.Error(), "the folder has more than 100000 files") {
		t.Errorf("%d files, at last %v", n, last)
	}
}

func TestAdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	c := must(t, caseOf(`{"op":"new","kind":"kv","out":"a"}`))
	add := func(c Case, want string, cause error) {
		t.Helper()
		file, err := Add(dir, c)
		var typed *Error
		switch {
		case cause == nil && (err != nil || file != filepath.Join(dir, want)):
			t.Errorf("Add = %s, %v, want %s", file, err, want)
		case cause != nil && (!errors.As(err, &typed) || !errors.Is(err, cause)):
			t.Errorf("Add = %s, %v, want an *Error that wraps %v", file, err, cause)
		}
	}
	add(c, "n.json", nil)
	add(c, "n.json", nil)
	if text, err := os.ReadFile(filepath.Join(dir, "n.json")); err != nil || !bytes.Equal(text, Format(c)) {
		t.Errorf("the file holds %s, %v", text, err)
	}
	other := c
	other.Notes = "other"
	add(other, "", fs.ErrExist)
	if text, err := os.ReadFile(filepath.Join(dir, "n.json")); err != nil || !bytes.Equal(text, Format(c)) {
		t.Errorf("the file holds %s, %v", text, err)
	}
	// A found case is there if its content is, whatever is told of it.
	c.Found = &Found{"window", "cpu", 1, "v1"}
	id := c.Content() + ".json"
	add(c, id, nil)
	again := c
	again.Found = &Found{"window", "cuda", 2, "v2"}
	add(again, id, nil)
	if text, err := os.ReadFile(filepath.Join(dir, id)); err != nil || !bytes.Equal(text, Format(c)) {
		t.Errorf("the file holds %s, %v", text, err)
	}
	write(t, filepath.Join(dir, id), "not a case")
	add(c, "", fs.ErrExist)
	if text, err := os.ReadFile(filepath.Join(dir, id)); err != nil || string(text) != "not a case" {
		t.Errorf("the file holds %s, %v", text, err)
	}
	for name, spoil := range map[string]func(*Case){
		"name": func(c *Case) { c.Found, c.Name = nil, "../n" },
		"text": func(c *Case) { c.Ops = []Op{{Verb: "jump"}} },
	} {
		bad := c
		spoil(&bad)
		var typed *Error
		if file, err := Add(dir, bad); !errors.As(err, &typed) {
			t.Errorf("%s: %s, %v", name, file, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v, %v, want two files", left, err)
	}
	// A folder that cannot be made or written.
	file := filepath.Join(dir, "n.json")
	if _, err := Add(filepath.Join(file, "x"), c); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("in a file: %v", err)
	}
	if _, err := Add(file, c); err == nil {
		t.Error("a file taken for a folder")
	}
}

// Many writers of the same names, one of them each time with something else:
// exactly the first stays.
func TestAddConcurrently(t *testing.T) {
	dir := t.TempDir()
	for round := range 20 {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for w := range errs {
			wg.Go(func() {
				c := Case{Name: fmt.Sprint("n", round), Source: fmt.Sprint(w % 2), Semantics: 1, Step: 1, Shape: Shape{1, 4, 4, 1}}
				_, errs[w] = Add(dir, c)
			})
		}
		wg.Wait()
		var stays Case
		for f, err := range Dir(filepath.Join(dir, fmt.Sprint("n", round, ".json"))) {
			if err != nil {
				t.Fatal(err)
			}
			stays = f.Case
		}
		for w, err := range errs {
			if same := fmt.Sprint(w%2) == stays.Source; same != (err == nil) || !same && !errors.Is(err, fs.ErrExist) {
				t.Errorf("writer %d: %v, the file is of %s", w, err, stays.Source)
			}
		}
	}
}

const killedDir = "RINGCHECK_TEST_KILLED_DIR"

// A process that is killed while it files cases leaves only whole ones.
func TestAddKilled(t *testing.T) {
	if dir := os.Getenv(killedDir); dir != "" {
		for i := 0; ; i++ {
			c := Case{Name: fmt.Sprint("n", i), Source: strings.Repeat("s", MaxText), Semantics: 1, Step: 1, Shape: Shape{1, 4, 4, 1}}
			file, err := Add(dir, c)
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(file)
		}
	}
	dir := t.TempDir()
	for round := 1; round <= 5; round++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAddKilled$")
		cmd.Env = append(os.Environ(), killedDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 7 * round {
			if !lines.Scan() || !strings.HasSuffix(lines.Text(), ".json") {
				t.Errorf("the writer says %q", lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // of a killed process, always an error
	}
	ok, bad := collect(Dir(dir))
	if len(bad) != 0 || len(ok) < 35 {
		t.Errorf("%d cases, errors %v", len(ok), bad)
	}
}
