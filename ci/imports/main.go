package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// layer is one part of the module: a folder and all below it, unless a longer
// entry names them. Paths are relative to the module's root.
type layer struct {
	path    string
	may     []string // layers of ours it may import, besides itself
	stdOnly bool     // nothing but the standard library and may
	rapid   bool     // may import rapid outside tests
}

// layers is the rule. Tests are free; what it says holds for all other files.
var layers = []layer{
	{path: "."}, // the map at the module's root
	{path: "reference/ring", stdOnly: true},
	{path: "reference/promptfile", may: []string{"reference", "reference/ring"}},
	{path: "reference", may: []string{"reference/ring"}, stdOnly: true},
	{path: "corpus", may: []string{"reference/ring"}},
	{path: "models", may: []string{"corpus", "reference/ring"}},
	{path: "accelerated", may: []string{"reference/ring"}},
	{path: "props", may: []string{"accelerated", "models", "corpus", "reference", "reference/promptfile", "reference/ring"}, rapid: true},
	{path: "cmd", may: []string{"props", "accelerated", "models", "corpus", "reference", "reference/promptfile", "reference/ring"}},
	{path: "ci", may: []string{"props", "accelerated", "models", "corpus", "reference", "reference/promptfile", "reference/ring"}},
}

const rapid = "pgregory.net/rapid"

// platforms are those whose files are looked at: build tags hide imports.
var platforms = []string{"linux", "darwin"}

// pkg is what the rules need of one package, as `go list -json` prints it.
type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
	Module     struct{ Path string }
}

func main() {
	broken := map[string]bool{}
	count := 0
	for _, goos := range platforms {
		pkgs, err := list(goos)
		if err != nil {
			fmt.Fprintln(os.Stderr, "imports:", err)
			os.Exit(2)
		}
		count = max(count, len(pkgs))
		for _, p := range pkgs {
			for _, b := range check(p) {
				broken[b] = true
			}
		}
	}
	if len(broken) > 0 {
		lines := make([]string, 0, len(broken))
		for b := range broken {
			lines = append(lines, b)
		}
		slices.Sort(lines)
		fmt.Println(strings.Join(lines, "\n"))
		os.Exit(1)
	}
	fmt.Printf("%d packages keep the import rules\n", count)
}

// list returns the module's packages as they are built for goos. Cgo is on, so
// that a file that uses it is seen.
func list(goos string) ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles,Module", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return decode(strings.NewReader(string(out)))
}

// decode reads the concatenated JSON objects of go list.
func decode(r io.Reader) ([]pkg, error) {
	var pkgs []pkg
	for d := json.NewDecoder(r); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
}

// check returns a sentence for each rule that p breaks.
func check(p pkg) []string {
	var broken []string
	if len(p.CgoFiles) > 0 {
		broken = append(broken, fmt.Sprintf("%s uses cgo in %v; nothing here may", p.ImportPath, p.CgoFiles))
	}
	home, ok := layerOf(p.ImportPath, p.Module.Path)
	if !ok {
		return append(broken, fmt.Sprintf("%s is in no layer; add its folder to the table in ci/imports", p.ImportPath))
	}
	for _, imp := range p.Imports {
		if why := refuse(home, imp, p.Module.Path); why != "" {
			broken = append(broken, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imp, why))
		}
	}
	return broken
}

// refuse says why a package of the layer home may not import imp; "" if it may.
func refuse(home layer, imp, module string) string {
	if target, ours := layerOf(imp, module); ours {
		if target.path == home.path || slices.Contains(home.may, target.path) {
			return ""
		}
		return fmt.Sprintf("%s may import of ours only %v", home.path, home.may)
	}
	first, _, _ := strings.Cut(imp, "/")
	switch standard := !strings.Contains(first, "."); {
	case !standard && home.stdOnly:
		return home.path + " uses the standard library only"
	case imp == rapid && !home.rapid:
		return "outside tests only props uses rapid"
	}
	return ""
}

// layerOf returns the layer of the package at path: the longest match.
func layerOf(path, module string) (layer, bool) {
	rel, ours := strings.CutPrefix(path, module+"/")
	if path == module {
		rel, ours = ".", true
	}
	var best layer
	if ours {
		for _, l := range layers {
			if (rel == l.path || strings.HasPrefix(rel, l.path+"/")) && len(l.path) > len(best.path) {
				best = l
			}
		}
	}
	return best, best.path != ""
}
