package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// try runs the commands of a page's console blocks in the folder dir, one after
// the other, and compares what they print, to either stream, with what the page
// says. There … stands for any text: as a line for lines, else within one.
func try(dir, page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			commands++
			cmd := exec.Command("bash", "-c", command)
			cmd.Dir = dir
			got, err := cmd.CombinedOutput()
			if err != nil && cmd.ProcessState == nil {
				return err
			}
			plain := strings.ReplaceAll(string(got), "\u00a0", " ") // go-cmp indents with either
			if !pattern(want).MatchString(plain) {
				return fmt.Errorf("%s: %s\nprints (exit status %d)\n%s\nand not\n%s", page, command, cmd.ProcessState.ExitCode(), got, want)
			}
		}
	}
	if commands == 0 {
		return fmt.Errorf("%s: no commands in it", page)
	}
	fmt.Printf("%s: %d commands print what it says\n", page, commands)
	return nil
}

// pattern is what a command may print.
func pattern(want string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimSuffix(want, "\n"))
	text = regexp.MustCompile(`(?m)^…(\n|$)`).ReplaceAllString(text, `(?:.*\n)*?`)
	text = strings.ReplaceAll(text, "…", ".*")
	return regexp.MustCompile(`^` + text + `\s*$`)
}
