package corpus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestNumberBounds(t *testing.T) {
	for name, c := range map[string]struct {
		codec     codec[int]
		low, high int
	}{
		"int":    {intType, -MaxNumber, MaxNumber},
		"count":  {countType, 0, MaxNumber},
		"answer": {answerType, -MaxAnswer, MaxAnswer},
		"slots":  {slotsType, 0, MaxSlots},
		"width":  {widthType, 1, MaxWidth},
		"token":  {tokenType, -1 << 31, 1<<31 - 1},
		"step":   {stepType, 1, MaxStep},
	} {
		for n, ok := range map[int]bool{c.low: true, c.high: true, c.low - 1: false, c.high + 1: false} {
			got, err := c.codec.read(raw(strconv.Itoa(n)))
			if (err == nil) != ok || ok && got != n {
				t.Errorf("%s: reading %d gives %d, %v", name, n, got, err)
			}
		}
	}
}

func TestNames(t *testing.T) {
	if want := fmt.Sprintf("{0,%d}$", MaxName-1); !strings.HasSuffix(namePattern, want) {
		t.Errorf("namePattern = %s does not end in %s", namePattern, want)
	}
	schemaName := regexp.MustCompile(namePattern)
	for name, ok := range map[string]bool{
		"a": true, "9": true, "A-b_c.safetensors": true, strings.Repeat("x", MaxName): true,
		"": false, strings.Repeat("x", MaxName+1): false, ".": false, "..": false, ".a": false, "-a": false, "_a": false,
		"a/b": false, `a\b`: false, "a b": false, "a\n": false, "é": false, "a:b": false, "a\x00": false,
	} {
		_, err := nameType.read(appendString(nil, name))
		if (err == nil) != ok || schemaName.MatchString(name) != ok {
			t.Errorf("name %q: %v, want accepted %t", name, err, ok)
		}
	}
}

func TestSizeBounds(t *testing.T) {
	list := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	for name, c := range map[string]struct {
		most int
		text func(n int) string
	}{
		"file":    {MaxFile, func(n int) string { return caseOf() + strings.Repeat(" ", n-len(caseOf())) }},
		"ops":     {MaxOps, func(n int) string { return head + `"ops":` + list(n, `{"op":"finalize","cache":"a"}`) + "}" }},
		"rows":    {MaxRows, func(n int) string { return caseOf(`{"op":"filter","cache":"a","rows":` + list(n, "0") + `}`) }},
		"columns": {MaxColumns, func(n int) string { return caseOf(`{"op":"update","cache":"a","tokens":[` + list(n, "1") + `]}`) }},
		"masks": {MaxRows, func(n int) string {
			return caseOf(`{"op":"append_window_under","cache":"a","tokens":[[1]],"mask":` + list(n, `["1"]`) + `}`)
		}},
		"names": {MaxRows, func(n int) string { return caseOf(`{"op":"merge","out":"a","caches":` + list(n, `"b"`) + `}`) }},
		"heads": {MaxHeads, func(n int) string {
			return strings.Replace(caseOf(), `"kv_heads":1`, fmt.Sprintf(`"kv_heads":%d`, n), 1)
		}},
		"states": {MaxDepth, func(n int) string {
			return caseOf(`{"op":"finalize","cache":"a","want":{"state":` + strings.Repeat(`{"caches":[`, n) + "{}" + strings.Repeat(`]}`, n) + `}}`)
		}},
		"lists": {MaxDepth, func(n int) string {
			ops := []string{`{"op":"new","kind":"kv","out":"l0"}`}
			for i := range n {
				ops = append(ops, fmt.Sprintf(`{"op":"new","kind":"list","out":"l%d","caches":["l%d"]}`, i+1, i))
			}
			return caseOf(ops...)
		}},
	} {
		if _, err := Parse([]byte(c.text(c.most)), ""); err != nil {
			t.Errorf("%s: %d: %v", name, c.most, err)
		}
		if _, err := Parse([]byte(c.text(c.most+1)), ""); err == nil {
			t.Errorf("%s: %d accepted", name, c.most+1)
		}
	}
}

// Depth that only the bytes have is refused without being followed.
func TestDeepText(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", MaxFile), strings.Repeat(`{"a":`, MaxFile/5),
		head + `"ops":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}",
	} {
		if _, err := Parse([]byte(text), ""); err == nil {
			t.Error("accepted")
		}
	}
}

// A small file must not make an implementation hold or compute without bound.
func TestWork(t *testing.T) {
	const rows4096 = MaxRows
	var tokens, rows strings.Builder
	for i := range MaxColumns {
		fmt.Fprintf(&tokens, ",%d", i+1)
	}
	for range rows4096 {
		rows.WriteString(",0")
	}
	row := "[" + tokens.String()[1:] + "]"
	all := "[" + rows.String()[1:] + "]"
	const kv = `{"op":"new","kind":"kv","out":"a"}`
	repeat := func(n int, op func(i int) string) (ops []string) {
		for i := range n {
			ops = append(ops, op(i))
		}
		return ops
	}
	var atoms []string // 500 caches in one list
	list := ""
	for i := range 500 {
		atoms = append(atoms, fmt.Sprintf(`{"op":"new","kind":"kv","out":"k%d"}`, i))
		list += fmt.Sprintf(`,"k%d"`, i)
	}
	atoms = append(atoms, `{"op":"new","kind":"list","out":"a","caches":[`+list[1:]+`]}`)
	for name, ops := range map[string][]string{
		"filter": {kv, `{"op":"update","cache":"a","tokens":[` + row + `]}`, `{"op":"filter","cache":"a","rows":` + all + `}`},
		"doubling by merge": append([]string{kv, `{"op":"update","cache":"a","tokens":[[1]]}`, `{"op":"merge","out":"m0","caches":["a","a"]}`},
			repeat(40, func(i int) string { return fmt.Sprintf(`{"op":"merge","out":"m%d","caches":["m%d","m%d"]}`, i+1, i, i) })...),
		"doubling by extend": append([]string{kv, `{"op":"update","cache":"a","tokens":[[1]]}`},
			repeat(120, func(i int) string {
				return fmt.Sprintf([]string{`{"op":"snapshot","cache":"a","as":"s%d"}`, `{"op":"adopt","out":"b%[1]d","from":"s%[1]d"}`, `{"op":"extend","cache":"a","other":"b%d"}`}[i%3], i/3)
			})...),
		"doubling by file": append([]string{kv, `{"op":"update","cache":"a","tokens":[[1]]}`, `{"op":"merge","out":"m0","caches":["a","a"]}`},
			repeat(120, func(i int) string {
				return []string{`{"op":"save","caches":["m0"],"file":"f"}`, fmt.Sprintf(`{"op":"load","outs":["x%d"],"file":"f"}`, i), fmt.Sprintf(`{"op":"extend","cache":"m0","other":"x%d"}`, i-1)}[i%3]
			})...),
		"restored":         {kv, `{"op":"update","cache":"a","tokens":[` + row + `]}`, `{"op":"snapshot","cache":"a","as":"s"}`, `{"op":"new","kind":"kv","out":"b"}`, `{"op":"restore","cache":"b","from":"s"}`, `{"op":"filter","cache":"b","rows":` + all + `}`},
		"adopted":          {kv, `{"op":"update","cache":"a","tokens":[` + row + `]}`, `{"op":"snapshot","cache":"a","as":"s"}`, `{"op":"adopt","out":"b","from":"s"}`, `{"op":"filter","cache":"b","rows":` + all + `}`},
		"extracted":        {kv, `{"op":"update","cache":"a","tokens":[` + row + `]}`, `{"op":"extract","cache":"a","row":0,"out":"b"}`, `{"op":"filter","cache":"b","rows":` + all + `}`},
		"mask":             {kv, `{"op":"mask","cache":"a","n":1048576}`},
		"negative trim":    {kv, `{"op":"trim","cache":"a","n":-1048576}`, `{"op":"mask","cache":"a","n":65536}`},
		"left padding":     {`{"op":"new","kind":"batch_rotating","max_size":1048576,"out":"a","left_padding":[-1048576]}`, `{"op":"mask","cache":"a","n":65536}`},
		"prepared":         {`{"op":"new","kind":"batch_kv","out":"a","left_padding":[]}`, `{"op":"prepare","cache":"a","lengths":` + all + `}`, `{"op":"mask","cache":"a","n":65536}`},
		"attend":           {kv, `{"op":"attend","cache":"a","queries":1048576,"scale":1}`},
		"many long caches": append([]string{kv, `{"op":"update","cache":"a","tokens":[` + row + `]}`}, repeat(9000, func(i int) string { return fmt.Sprintf(`{"op":"extract","cache":"a","row":0,"out":"x%d"}`, i) })...),
		"wide lists":       append(atoms, repeat(9000, func(i int) string { return fmt.Sprintf(`{"op":"snapshot","cache":"a","as":"x%d"}`, i) })...),
		"list of all":      append(atoms, `{"op":"merge","out":"m","caches":[`+strings.Repeat(`"a",`, MaxRows-1)+`"a"]}`),
	} {
		_, err := Parse([]byte(caseOf(ops...)), "")
		if err == nil || !strings.Contains(err.Error(), "bytes up to here, want at most 4294967296") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Parse([]byte(caseOf(kv, `{"op":"new","kind":"list","out":"l","caches":["a","a"]}`)), "")
	if want := `operation 1 (new): caches: "a" is in a list already; a cache belongs to one list`; err == nil || err.Error() != want {
		t.Errorf("a cache twice in a list: %v, want %s", err, want)
	}
	// What goes into a list counts where the list is used, and back.
	for _, use := range []string{`{"op":"filter","cache":"l","rows":` + all + `}`, `{"op":"extract","cache":"l","row":0,"out":"b"},{"op":"filter","cache":"b","rows":` + all + `}`} {
		_, err := Parse([]byte(caseOf(kv, `{"op":"new","kind":"list","out":"l","caches":["a"]}`, `{"op":"update","cache":"a","tokens":[`+row+`]}`, use)), "")
		if err == nil || !strings.Contains(err.Error(), "(filter): the case touches") {
			t.Errorf("list: %v", err)
		}
	}
}
