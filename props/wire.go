package props

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"example.com/ringcheck/corpus"
	"example.com/ringcheck/reference/ring"
)

// Protocol is the version of the wire protocol; see docs/wire.md.
const Protocol = 1

// MaxLine is the longest line of the protocol, in bytes, its end included.
const MaxLine = 64 << 20

// wireVerbs are the operations of the protocol: all but attend, whose answer
// holds only to a tolerance.
var wireVerbs = slices.DeleteFunc(slices.Clone(corpus.Verbs), notOnWire)

func notOnWire(v corpus.Verb) bool { return v == corpus.Attend }

var errLineTooLong = fmt.Errorf("a line of more than %d bytes", MaxLine)

// readLine returns the next line without its end. A last line that has no end
// is an io.ErrUnexpectedEOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return nil, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

const (
	helloRequest = `{"cmd":"hello","protocol":1}` + "\n"
	byeRequest   = `{"cmd":"bye"}` + "\n"
)

// request is one line to an implementation.
type request struct {
	cmd      string
	protocol int
	seq      uint64
	c        corpus.Case
	layout   bool
	dir      string
}

func encodeRun(seq uint64, c corpus.Case, layout bool, dir string) ([]byte, error) {
	b := strconv.AppendUint([]byte(`{"cmd":"run","seq":`), seq, 10)
	b = append(b, `,"case":`...)
	b = append(b, corpus.CompactJSON(c)...)
	b = append(b, `,"layout":`...)
	b = strconv.AppendBool(b, layout)
	b = append(b, `,"dir":`...)
	b = appendText(b, dir)
	b = append(b, "}\n"...)
	if len(b) > MaxLine {
		return nil, fmt.Errorf("case %q takes %d bytes, a line of the protocol at most %d", c.Name, len(b), MaxLine)
	}
	return b, nil
}

func decodeRequest(line []byte) (r request, err error) {
	given := map[string]bool{}
	err = decodeObject(line, func(name string, value []byte) error {
		given[name] = true
		switch name {
		case "cmd":
			return decodeValue(value, &r.cmd)
		case "protocol":
			return decodeValue(value, &r.protocol)
		case "seq":
			return decodeValue(value, &r.seq)
		case "case":
			var err error
			r.c, err = corpus.Parse(value, "case")
			return err
		case "layout":
			return decodeValue(value, &r.layout)
		case "dir":
			return decodeValue(value, &r.dir)
		}
		return errUnknownField
	})
	if err != nil {
		return r, err
	}
	var needs []string
	switch r.cmd {
	case "hello":
		needs = []string{"protocol"}
	case "run":
		needs = []string{"seq", "case"}
	case "bye":
	default:
		return r, fmt.Errorf("unknown cmd %q: use hello, run or bye", r.cmd)
	}
	return r, require(given, needs...)
}

// encodeHello is the answer to hello.
func encodeHello(info Info) []byte {
	b := []byte(`{"protocol":1,"name":`)
	b = appendText(b, info.Name)
	b = append(b, `,"version":`...)
	b = appendText(b, info.Version)
	b = appendTexts(b, "kinds", info.Kinds)
	b = appendTexts(b, "ops", slices.DeleteFunc(slices.Clone(info.Ops), notOnWire))
	b = appendTexts(b, "dtypes", info.DTypes)
	b = appendTexts(b, "semantics", info.Semantics)
	b = append(b, `,"quant":[`...)
	for i, q := range info.Quant {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%d,%d]", q.GroupSize, q.Bits)
	}
	b = append(b, ']')
	b = appendTexts(b, "fills", info.Fills)
	b = append(b, `,"layout":`...)
	b = strconv.AppendBool(b, info.Level == Layout)
	return append(b, "}\n"...)
}

func appendTexts[T any](b []byte, name string, list []T) []byte {
	b = fmt.Appendf(b, `,%q:[`, name)
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, fmt.Sprint(v))
	}
	return append(b, ']')
}

// decodeHello reads a child's claims. Only quant and layout may be missing.
func decodeHello(line []byte) (info Info, err error) {
	given := map[string]bool{}
	protocol := 0
	err = decodeAnswer(line, func(name string, value []byte) error {
		given[name] = true
		switch name {
		case "protocol":
			return decodeValue(value, &protocol)
		case "name":
			return decodeLabel(value, &info.Name)
		case "version":
			return decodeLabel(value, &info.Version)
		case "kinds":
			return decodeNames(value, &info.Kinds, among(corpus.Kinds))
		case "ops":
			return decodeNames(value, &info.Ops, among(wireVerbs))
		case "dtypes":
			return decodeNames(value, &info.DTypes, among([]ring.DType{ring.BFloat16, ring.Float16, ring.Float32}))
		case "semantics":
			return decodeNames(value, &info.Semantics, among([]ring.Semantics{ring.MLXLM, ring.Exact}))
		case "fills":
			return decodeNames(value, &info.Fills, among([]corpus.Fill{corpus.Grid, corpus.Bits}))
		case "quant":
			var pairs [][]int
			if err := decodeValue(value, &pairs); err != nil {
				return err
			}
			for _, p := range pairs {
				if len(p) != 2 || p[0] <= 0 || p[1] <= 0 {
					return fmt.Errorf("%v is not [group size, bits]", p)
				}
				info.Quant = append(info.Quant, corpus.Quant{GroupSize: p[0], Bits: p[1]})
			}
			return nil
		case "layout":
			layout := false
			if err := decodeValue(value, &layout); err != nil {
				return err
			}
			if layout {
				info.Level = Layout
			}
			return nil
		}
		return errUnknownField
	})
	if err == nil {
		err = require(given, "protocol", "name", "version", "kinds", "ops", "dtypes", "semantics", "fills")
	}
	if err == nil {
		err = checkClaims(&info)
	}
	if err == nil && protocol != Protocol {
		err = fmt.Errorf("protocol is %d, want %d", protocol, Protocol)
	}
	if err != nil {
		return Info{}, fmt.Errorf("answered hello wrongly: %w", err)
	}
	return info, nil
}

// maxLabel is how many characters of its name, and of its version, a child keeps.
const maxLabel = 100

// decodeLabel reads what a child calls itself, as short and plain as it may be
// printed and filed: it may call itself anything.
func decodeLabel(value []byte, into *string) error {
	if err := decodeValue(value, into); err != nil {
		return err
	}
	plain := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, *into))
	*into = string(plain[:min(len(plain), maxLabel)])
	return nil
}

// checkClaims refuses claims from which no case could be made.
func checkClaims(info *Info) error {
	switch {
	case len(info.Kinds) == 0:
		return errors.New("kinds is empty; claim at least one")
	case !slices.Contains(info.Ops, corpus.New):
		return errors.New(`ops has no "new", with which every case begins`)
	case len(info.DTypes) == 0:
		return errors.New("dtypes is empty; claim at least one")
	case len(info.Semantics) == 0:
		return errors.New("semantics is empty; claim at least one")
	case len(info.Fills) == 0:
		return errors.New("fills is empty; claim at least one")
	case len(info.Quant) == 0 && slices.ContainsFunc(info.Kinds, quantizes):
		return errors.New("quant is empty, although a quantized kind is claimed")
	}
	return nil
}

func quantizes(k corpus.Kind) bool {
	return k == corpus.Quantized || k == corpus.RotatingQuantized || k == corpus.BatchRotatingQuantized
}

func decodeNames[T any](value []byte, into *[]T, parse func(string) (T, error)) error {
	var names []string
	if err := decodeValue(value, &names); err != nil {
		return err
	}
	for _, name := range names {
		v, err := parse(name)
		if err != nil {
			return err
		}
		*into = append(*into, v)
	}
	return nil
}

// among makes a parser of the names of all.
func among[T any](all []T) func(string) (T, error) {
	return func(name string) (none T, err error) {
		for _, v := range all {
			if fmt.Sprint(v) == name {
				return v, nil
			}
		}
		return none, fmt.Errorf("%q is unknown: use %v", name, all)
	}
}

func decodeBye(line []byte) error {
	err := decodeAnswer(line, func(string, []byte) error { return errUnknownField })
	if err != nil {
		return fmt.Errorf("answered bye wrongly: %w", err)
	}
	return nil
}

// encodeFault is the answer to a run that could not be done.
func encodeFault(seq uint64, message string) []byte {
	b := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	b = append(b, `,"fault":{"message":`...)
	b = appendText(b, message)
	return append(b, "}}\n"...)
}

// encodeSteps is the answer to a run; stored planes only with layout.
func encodeSteps(seq uint64, steps []corpus.Step, layout bool) []byte {
	b := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	b = append(b, `,"steps":[`...)
	for i := range steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendStep(b, &steps[i], layout)
	}
	return append(b, "]}\n"...)
}

// appendStep writes one observation.
func appendStep(b []byte, s *corpus.Step, layout bool) []byte {
	b = append(b, '{')
	start := len(b)
	name := func(name string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, '"', ':')
	}
	if s.Unsupported != "" {
		name("unsupported")
		return append(appendText(b, s.Unsupported), '}')
	}
	if s.Error != "" {
		name("error")
		b = appendText(b, s.Error)
		name("message")
		b = appendText(b, s.Message)
	}
	if s.Returned != nil {
		name("returned")
		b = appendPlanes(b, s.Returned)
	}
	if s.Stored != nil && layout {
		name("stored")
		b = appendPlanes(b, s.Stored)
	}
	if s.Mask != nil {
		name("mask")
		b = corpus.AppendMask(b, s.Mask)
	}
	if s.State != nil {
		name("state")
		b = corpus.AppendState(b, s.State)
	}
	if s.Trimmed != nil {
		name("trimmed")
		b = strconv.AppendInt(b, int64(*s.Trimmed), 10)
	}
	if s.Offsets != nil {
		name("offsets")
		b = appendInts(b, s.Offsets)
	}
	if s.Bytes != nil {
		name("bytes")
		b = strconv.AppendInt(b, int64(*s.Bytes), 10)
	}
	return append(b, '}')
}

func appendPlanes(b []byte, planes []corpus.Plane) []byte {
	b = append(b, '{')
	for i, p := range planes {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `%q:{"dtype":%q,"shape":`, p.Name, p.Array.DType)
		b = appendInts(b, p.Array.Shape[:])
		b = append(b, `,"data":"`...)
		b = base64.StdEncoding.AppendEncode(b, p.Array.Data)
		b = append(b, `"}`...)
	}
	return append(b, '}')
}

func appendInts(b []byte, list []int) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, ']')
}

func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string always marshals
	return append(b, quoted...)
}

// decodeRun reads the answer to the run of c under seq. refused is the message
// of a child that says itself that it could not do the run.
func decodeRun(line []byte, seq uint64, c corpus.Case, info Info) (steps []corpus.Step, refused string, err error) {
	given := map[string]bool{}
	var gotSeq uint64
	err = decodeAnswer(line, func(name string, value []byte) error {
		given[name] = true
		switch name {
		case "seq":
			return decodeValue(value, &gotSeq)
		case "steps":
			steps = make([]corpus.Step, 0, len(c.Ops))
			return decodeArray(value, func(i int, value []byte) error {
				if i >= len(c.Ops) {
					return fmt.Errorf("more than one observation an operation (%d)", len(c.Ops))
				}
				if i > 0 && steps[i-1].Unsupported != "" {
					return fmt.Errorf("an observation after the unsupported #%d", i-1)
				}
				s, err := decodeStep(value)
				if err == nil {
					err = checkStep(&s, &c.Ops[i], info.Level == Layout)
				}
				if err == nil && s.Unsupported != "" && info.Lacks(c) == "" {
					err = errors.New("says unsupported, though hello claims all that the case needs")
				}
				if err != nil {
					return fmt.Errorf("#%d %s: %w", i, c.Ops[i].Verb, err)
				}
				steps = append(steps, s)
				return nil
			})
		case "fault":
			return decodeObject(value, func(name string, value []byte) error {
				given["fault."+name] = true
				if name != "message" {
					return errUnknownField
				}
				return decodeValue(value, &refused)
			})
		}
		return errUnknownField
	})
	if err == nil {
		err = require(given, "seq")
	}
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("answered a run wrongly: %w", err)
	case gotSeq != seq:
		return nil, "", fmt.Errorf("answered seq %d, want %d", gotSeq, seq)
	case given["fault"] && !given["steps"]:
		if err := require(given, "fault.message"); err != nil {
			return nil, "", fmt.Errorf("answered a run wrongly: %w", err)
		}
		return nil, quoted(refused), nil
	case given["fault"] || !given["steps"]:
		return nil, "", errors.New("answered a run wrongly: want steps or a fault, one of the two")
	case len(steps) < len(c.Ops) && (len(steps) == 0 || steps[len(steps)-1].Unsupported == ""):
		return nil, "", fmt.Errorf("answered a run wrongly: %s for %s", plural(len(steps), "observation"), plural(len(c.Ops), "operation"))
	}
	return steps, "", nil
}

// decodeStep reads one observation.
func decodeStep(value []byte) (s corpus.Step, err error) {
	given := 0
	err = decodeObject(value, func(name string, value []byte) error {
		given++
		switch name {
		case "returned":
			s.Returned, err = decodePlanes(value)
			return err
		case "stored":
			s.Stored, err = decodePlanes(value)
			return err
		case "mask":
			s.Mask, err = corpus.ParseMask(value)
			return err
		case "state":
			s.State, err = corpus.ParseState(value)
			return err
		case "trimmed":
			s.Trimmed = new(int)
			return decodeValue(value, s.Trimmed)
		case "offsets":
			return decodeValue(value, &s.Offsets)
		case "bytes":
			s.Bytes = new(int)
			return decodeValue(value, s.Bytes)
		case "error":
			return decodeValue(value, &s.Error)
		case "message":
			return decodeValue(value, &s.Message)
		case "unsupported":
			return decodeValue(value, &s.Unsupported)
		}
		return errUnknownField
	})
	switch {
	case err != nil:
	case s.Unsupported != "" && given > 1:
		err = errors.New("unsupported stands alone")
	case s.Error != "" && !slices.Contains(ring.Codes, s.Error):
		err = fmt.Errorf("error is %q: use one of %s", s.Error, strings.Join(ring.Codes, ", "))
	}
	return s, err
}

// checkStep refuses an observation that lacks what its operation answers, or
// has what only other operations do.
func checkStep(s *corpus.Step, op *corpus.Op, layout bool) error {
	switch {
	case s.Unsupported != "":
		if s.Unsupported != string(op.Verb) {
			return fmt.Errorf("unsupported is %q, want the operation's name", s.Unsupported)
		}
		return nil
	case s.Stored != nil && !layout:
		return errors.New(`stored was not asked for`)
	case s.Error != "":
		if s.Returned != nil || s.Mask != nil || s.Trimmed != nil || s.Offsets != nil || s.Bytes != nil {
			return errors.New("a refused operation answers error, message and state only")
		}
		return nil
	case s.Message != "":
		return errors.New("message without error")
	}
	a := answersOf(op.Verb)
	for _, part := range []struct {
		name string
		has  bool
		rule presence
	}{
		{"returned", s.Returned != nil, a.returned},
		{"mask", s.Mask != nil, a.mask},
		{"trimmed", s.Trimmed != nil, a.trimmed},
		{"offsets", s.Offsets != nil, a.offsets},
		{"bytes", s.Bytes != nil, a.bytes},
		{"state", s.State != nil, a.state},
	} {
		if part.rule == must && !part.has {
			return fmt.Errorf("the observation has no %s", part.name)
		}
		if part.rule == mustNot && part.has {
			return fmt.Errorf("%s is no answer to %s", part.name, op.Verb)
		}
	}
	return nil
}

// presence says whether a part of an observation is there.
type presence uint8

const (
	mustNot presence = iota
	may
	must
)

// answers are the parts of an operation's observation.
type answers struct{ returned, mask, trimmed, offsets, bytes, state presence }

func answersOf(v corpus.Verb) answers {
	switch v {
	case corpus.MaskOp:
		return answers{mask: must, state: may}
	case corpus.Update:
		return answers{returned: must, state: must}
	case corpus.AppendDecode, corpus.AppendWindow, corpus.AppendWindowUnder: // a read comes with its mask
		return answers{returned: must, mask: may, state: must}
	case corpus.TemporalView:
		return answers{returned: must, state: may}
	case corpus.Trim:
		return answers{trimmed: must, state: must}
	case corpus.ValidOffset:
		return answers{offsets: must, state: may}
	case corpus.ProjectedBytes:
		return answers{bytes: must, state: may}
	case corpus.Save, corpus.Load, corpus.Snapshot, corpus.Release:
		return answers{state: may}
	}
	return answers{state: must}
}

// planeSets are the names that planes may have, in the order they are kept in;
// slot.0, slot.1 and so on stand alone.
var planeSets = [][]string{
	{"keys", "values"},
	{"keys.packed", "keys.scales", "keys.biases", "values.packed", "values.scales", "values.biases"},
}

// decodePlanes reads planes by name, and returns them in their one order.
func decodePlanes(value []byte) ([]corpus.Plane, error) {
	planes := []corpus.Plane{}
	err := decodeObject(value, func(name string, value []byte) error {
		if len(planes) > corpus.MaxSlots {
			return fmt.Errorf("more than %d planes", corpus.MaxSlots)
		}
		a, err := decodeArrayOf(value)
		planes = append(planes, corpus.Plane{Name: name, Array: a})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(planes) == 0 {
		return planes, nil // recurrent state of which nothing is set
	}
	for _, set := range planeSets {
		if slices.Contains(set, planes[0].Name) {
			slices.SortFunc(planes, func(a, b corpus.Plane) int {
				return slices.Index(set, a.Name) - slices.Index(set, b.Name)
			})
			if !slices.EqualFunc(planes, set, func(p corpus.Plane, name string) bool { return p.Name == name }) {
				for _, name := range set {
					if !slices.ContainsFunc(planes, func(p corpus.Plane) bool { return p.Name == name }) {
						return nil, fmt.Errorf("planes %s: %s is missing", planeNames(planes), name)
					}
				}
				return nil, fmt.Errorf("planes %s: want only %s", planeNames(planes), strings.Join(set, ", "))
			}
			for _, p := range planes {
				if (p.Array.DType == ring.Uint32) != strings.HasSuffix(p.Name, ".packed") {
					return nil, fmt.Errorf("%s: dtype is %v; packed planes are uint32, all others floats", p.Name, p.Array.DType)
				}
			}
			return planes, nil
		}
	}
	for _, p := range planes {
		if slot(p.Name) < 0 {
			return nil, fmt.Errorf("planes %s: want keys and values, or the six quantized planes, or slot.0 to slot.%d",
				planeNames(planes), corpus.MaxSlots-1)
		}
	}
	slices.SortFunc(planes, func(a, b corpus.Plane) int { return slot(a.Name) - slot(b.Name) })
	return planes, nil
}

func planeNames(planes []corpus.Plane) string {
	names := make([]string, len(planes))
	for i, p := range planes {
		names[i] = strconv.Quote(p.Name)
	}
	return strings.Join(names, ", ")
}

// slot returns the number in a name such as "slot.3", and -1 for any other name.
func slot(name string) int {
	digits, ok := strings.CutPrefix(name, "slot.")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || strconv.Itoa(n) != digits || n >= corpus.MaxSlots {
		return -1
	}
	return n
}

// decodeArrayOf reads one plane: its data must fill its shape.
func decodeArrayOf(value []byte) (a ring.Array, err error) {
	given := map[string]bool{}
	var dtype string
	var shape []int
	var data string
	err = decodeObject(value, func(name string, value []byte) error {
		given[name] = true
		switch name {
		case "dtype":
			return decodeValue(value, &dtype)
		case "shape":
			return decodeValue(value, &shape)
		case "data":
			return decodeValue(value, &data)
		}
		return errUnknownField
	})
	if err == nil {
		err = require(given, "dtype", "shape", "data")
	}
	if err == nil {
		a.DType, err = ring.ParseDType(dtype)
	}
	if err != nil {
		return ring.Array{}, err
	}
	if len(shape) != 4 {
		return ring.Array{}, fmt.Errorf("shape has %d axes, want [b, h, s, d]", len(shape))
	}
	// An axis of none leaves no data to bound the others, hence the second
	// product.
	size, extent := a.DType.Size(), 1
	for i, n := range shape {
		if n < 0 || n > MaxLine {
			return ring.Array{}, fmt.Errorf("shape is %v: each axis is 0 to %d", shape, MaxLine)
		}
		a.Shape[i] = n
		size *= n
		extent *= max(n, 1)
		if extent > MaxLine {
			return ring.Array{}, fmt.Errorf("shape is %v: more than %d elements", shape, MaxLine)
		}
	}
	if len(data) != base64.StdEncoding.EncodedLen(size) {
		broken := ""
		if strings.ContainsAny(data, "\r\n") {
			broken = "; it holds a line break"
		}
		return ring.Array{}, fmt.Errorf("data has %d characters; %v%v is %d bytes, in base64 %d characters%s",
			len(data), a.DType, shape, size, base64.StdEncoding.EncodedLen(size), broken)
	}
	a.Data, err = base64.StdEncoding.AppendDecode(make([]byte, 0, size), []byte(data))
	if err == nil && len(a.Data) != size {
		err = fmt.Errorf("data has %d bytes; %v%v is %d", len(a.Data), a.DType, shape, size)
	}
	if err != nil {
		return ring.Array{}, err
	}
	return a, nil
}

// Strict JSON: names are exact, each occurs once, nothing is unknown, and null
// is no value.

var errUnknownField = errors.New("unknown field")

// decodeAnswer is decodeObject for a whole line.
func decodeAnswer(line []byte, f func(name string, value []byte) error) error {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
		return errors.New("not JSON: an empty line")
	case text[0] == '{' && bytes.IndexByte([]byte("{[,:"), text[len(text)-1]) >= 0: // printed for people
		return errors.New("not JSON: it goes on after the end of the line; the answer must be on one line")
	}
	return decodeObject(text, f)
}

// decodeObject calls f for each member of an object.
func decodeObject(data []byte, f func(name string, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := open(d, '{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		name := token.(string) // the decoder lets nothing else stand here
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(err)
		}
		if seen[name] {
			return fmt.Errorf("field %q occurs twice", name)
		}
		seen[name] = true
		if err := f(name, value); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return shut(d)
}

// decodeArray calls f for each element of an array.
func decodeArray(data []byte, f func(i int, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := open(d, '[', "an array"); err != nil {
		return err
	}
	for i := 0; d.More(); i++ {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(err)
		}
		if err := f(i, value); err != nil {
			return err
		}
	}
	return shut(d)
}

func open(d *json.Decoder, delim json.Delim, what string) error {
	token, err := d.Token()
	if err != nil {
		return notJSON(err)
	}
	if token != delim {
		return fmt.Errorf("not %s", what)
	}
	return nil
}

func shut(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("not JSON: something follows the end")
	}
	return nil
}

func notJSON(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("not JSON: %w", err)
}

// decodeValue reads a scalar, or a list of them.
func decodeValue(value []byte, into any) error {
	if bytes.Contains(value, []byte("null")) && value[0] != '"' {
		return errors.New("null is no value here")
	}
	err := json.Unmarshal(value, into)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	want := ""
	switch into.(type) {
	case *string:
		want = "a string"
	case *bool:
		want = "true or false"
	case *int, *uint64:
		want = "a number"
		if strings.HasPrefix(wrong.Value, "number") { // as a number it is no good
			want = "a whole number within bounds"
		}
	case *[]string:
		want = "a list of strings"
	case *[]int:
		want = "a list of whole numbers"
	case *[][]int:
		want = "a list of lists of whole numbers"
	}
	return fmt.Errorf("is %s, want %s", clip(string(value)), want)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// require refuses an object without the fields that it must have.
func require(given map[string]bool, names ...string) error {
	for _, name := range names {
		if !given[name] {
			return fmt.Errorf("field %q is missing", name)
		}
	}
	return nil
}
