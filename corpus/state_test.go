package corpus

import (
	"errors"
	"reflect"
	"testing"

	"example.com/ringcheck/reference/ring"
)

func TestState(t *testing.T) {
	s := State{
		IntsField(FOffset, []int{}), IntsField(FLeftPadding, []int{-1, 2}), IntField(FIdx, 3), IntField(FTotal, 1<<53),
		BoolField(FRotated, true), IntsField(FEnds, nil), IntField(FSize, -1), BoolField(FTrimmable, false),
		{Name: FCaches, Kind: States, States: []State{{}, {IntField(FOffset, 1)}}},
	}
	const text = `{"offset":[],"left_padding":[-1,2],"idx":3,"total":9007199254740992,"rotated":true,"ends":null,"size":-1,"trimmable":false,"caches":[{},{"offset":1}]}`
	if got := string(AppendState([]byte("x"), s)); got != "x"+text {
		t.Errorf("AppendState = %s, want x%s", got, text)
	}
	if f, ok := s.Get(FIdx); !ok || f.Int != 3 {
		t.Errorf("Get(idx) = %v, %t", f, ok)
	}
	if f, ok := s.Get(FBuffer); ok {
		t.Errorf("Get(buffer) = %v", f)
	}
	// The order of the text does not matter.
	for _, text := range []string{text, ` {"caches":[{},{"offset":1}],"trimmable":false,"size":-1,"rotated":true,"left_padding":[-1,2],"ends":null,"offset":[],"total":9007199254740992,"idx":3}`} {
		if got, err := ParseState([]byte(text)); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("ParseState(%s) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `[]`, `{"idx":1}{}`, `{"idx":null}`, `{"offset":null}`, `{"ends":1}`, `{"caches":1}`, `{"caches":null}`, `{"size":9007199254740993}`} {
		var typed *Error
		if got, err := ParseState([]byte(text)); !errors.As(err, &typed) {
			t.Errorf("ParseState(%s) = %v, %v, want an *Error", text, got, err)
		}
	}
}

func TestMaskText(t *testing.T) {
	for text, m := range map[string]*ring.Mask{
		`null`:                  {},
		`[]`:                    {N: 1},
		`[[""]]`:                {B: 1, N: 1},
		`[["011"]]`:             {B: 1, N: 1, S: 3, Data: []bool{false, true, true}},
		`[["0","1"]]`:           {B: 1, N: 2, S: 1, Data: []bool{false, true}},
		`[["10"],["01"]]`:       {B: 2, N: 1, S: 2, Data: []bool{true, false, false, true}},
		`[["",""],["",""]]`:     {B: 2, N: 2},
		`[["1","0"],["1","1"]]`: {B: 2, N: 2, S: 1, Data: []bool{true, false, true, true}},
	} {
		if got := string(AppendMask(nil, m)); got != text {
			t.Errorf("AppendMask(%v) = %s, want %s", m, got, text)
		}
		if got, err := ParseMask([]byte(text)); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("ParseMask(%s) = %v, %v, want %v", text, got, err, m)
		}
	}
	// A mask of no rows has one text, however wide it was.
	if got := string(AppendMask(nil, &ring.Mask{B: 0, N: 3, S: 5})); got != `[]` {
		t.Errorf("AppendMask of no rows = %s", got)
	}
	for _, text := range []string{``, `{}`, `["1"]`, `[[]]`, `[[1]]`, `[["2"]]`, `[["1"],["11"]]`, `[["1"]]x`} {
		var typed *Error
		if got, err := ParseMask([]byte(text)); !errors.As(err, &typed) {
			t.Errorf("ParseMask(%s) = %v, %v, want an *Error", text, got, err)
		}
	}
}
