package draw

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes one line of text that no terminal obeys and no reader is fooled
// by: what is not printable, such as escapes and marks that turn the direction
// of text, shows as "�". Its length is bounded by what a child may say in a
// message.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, clip(text, maxText))
}

// maxText is the bytes that are drawn of any text; a case's own texts are
// shorter.
const maxText = 1 << 13

// clip shortens a text to about n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// cleanLines cleans a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(strings.TrimRight(clip(text, maxText), "\n"), "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// link returns an address that may be followed, else "".
func link(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || clean(text) != text {
		return ""
	}
	return text
}
