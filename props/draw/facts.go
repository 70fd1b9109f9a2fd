package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/props"
)

// facts lists what was answered in numbers and words, of a state what is compared
// at a level.
func facts(want, got *observation, level props.Level) []Fact {
	var list []Fact
	add := func(name, w, g string) {
		if w == "" && g == "" {
			return
		}
		w, g = clean(w), clean(g)
		f := Fact{Name: name, Want: w}
		if got.there && w != g {
			f.Want, f.Got, f.Differs = cmp.Or(w, "none"), cmp.Or(g, "none"), true
		}
		list = append(list, f)
	}
	add("error", want.Error, got.Error)
	for _, m := range []string{want.message, got.message} {
		if m != "" {
			list = append(list, Fact{Name: "message", Want: clean(m)})
			break
		}
	}
	add("trimmed", number(want.Trimmed), number(got.Trimmed))
	add("offsets", numbers(want.Offsets), numbers(got.Offsets))
	add("bytes", number(want.Bytes), number(got.Bytes))
	if want.attended > 0 {
		list = append(list, Fact{Name: "attended", Want: plural(want.attended, "number")})
	}
	was, is := stateTexts(want.State, level), stateTexts(got.State, level)
	for _, f := range was {
		g := ""
		if got.there && len(is) > 0 {
			k := slices.IndexFunc(is, func(other Fact) bool { return other.Name == f.Name })
			if k < 0 {
				g = "absent"
			} else if g = is[k].Want; g == f.Want {
				g = ""
			}
		}
		list = append(list, Fact{Name: f.Name, Want: f.Want, Got: g, Differs: g != ""})
	}
	return list
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func numbers(n []int) string {
	if n == nil {
		return ""
	}
	return clip(fmt.Sprint(n), 400)
}

// stateTexts are the fields of a state, those of a list's children by their
// path.
func stateTexts(s corpus.State, level props.Level) []Fact {
	var list []Fact
	for _, f := range s {
		if !props.Compared(f.Name, level) {
			continue
		}
		name := f.Name.String()
		switch f.Kind {
		case corpus.States:
			for i, child := range f.States {
				for _, c := range stateTexts(child, level) {
					list = append(list, Fact{Name: fmt.Sprintf("%s.%d.%s", name, i, c.Name), Want: c.Want})
				}
			}
			continue
		case corpus.Int:
			list = append(list, Fact{Name: name, Want: fmt.Sprint(f.Int)})
		case corpus.Bool:
			list = append(list, Fact{Name: name, Want: fmt.Sprint(f.Int != 0)})
		case corpus.Ints:
			list = append(list, Fact{Name: name, Want: numbers(f.Ints)})
		default:
			list = append(list, Fact{Name: name, Want: "null"})
		}
	}
	return list
}

// ranges lists ids, runs of tokens as "3–7".
func ranges(ids []int) string {
	var b strings.Builder
	for i := 0; i < len(ids); {
		j := i + 1
		for j < len(ids) && ids[j] == ids[j-1]+1 && ids[i] > 0 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(idText(ids[i]))
		if j-i > 1 {
			b.WriteString(map[bool]string{true: "–", false: ", "}[j-i > 2] + idText(ids[j-1]))
		}
		i = j
	}
	return clip(b.String(), 120)
}
