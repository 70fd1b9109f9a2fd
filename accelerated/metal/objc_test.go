package metal

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	_ "pgregory.net/rapid"
)

// TestColons holds each selector to the type that it is sent with: a receiver,
// the selector, and as many arguments as it has colons.
func TestColons(t *testing.T) {
	var m messages
	all := m.selectors()
	if n := reflect.TypeFor[messages]().NumField(); n != len(all) {
		t.Errorf("%d messages, %d of them listed", n, len(all))
	}
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.name] {
			t.Errorf("%s is listed twice", s.name)
		}
		seen[s.name] = true
		s.message.bind(7, func(function any) {
			f := reflect.TypeOf(function).Elem()
			if f.NumIn() < 2 || f.In(0) != reflect.TypeFor[id]() || f.In(1) != reflect.TypeFor[selector]() {
				t.Fatalf("%s is sent as %v: without receiver and selector", s.name, f)
			}
			if got, want := f.NumIn()-2, strings.Count(s.name, ":"); got != want {
				t.Errorf("%s has %d arguments and is sent with %d", s.name, want, got)
			}
		})
	}
}

// sent are the messages of each method: what is sent to what with what, in the
// method's arguments, which are a1, a2 and so on.
var sent = map[string]string{
	"createDevice":       "",
	"newPool":            "alloc [pool]; init [r]",
	"drain":              "drain [a1]",
	"retain":             "retain [a1]",
	"release":            "release [a1]",
	"newString":          "alloc [string]; initWithCString:encoding: [r a1 4]",
	"text":               "UTF8String [a1]",
	"errorDomain":        "domain [a1]",
	"errorCode":          "code [a1]",
	"errorDescription":   "localizedDescription [a1]",
	"deviceName":         "name [a1]",
	"maxBufferLength":    "maxBufferLength [a1]",
	"workingSetSize":     "recommendedMaxWorkingSetSize [a1]",
	"newQueue":           "newCommandQueue [a1]",
	"newOptions":         "alloc [options]; init [r]",
	"hasMathMode":        "respondsToSelector: [a1 setMathMode:]; respondsToSelector: [a1 setMathFloatingPointFunctions:]",
	"setMathMode":        "setMathMode: [a1 a2]",
	"setMathFunctions":   "setMathFloatingPointFunctions: [a1 a2]",
	"setFastMath":        "setFastMathEnabled: [a1 a2]",
	"newLibrary":         "newLibraryWithSource:options:error: [a1 a2 a3 a4]",
	"newFunction":        "newFunctionWithName: [a1 a2]",
	"newPipeline":        "newComputePipelineStateWithFunction:error: [a1 a2 a3]",
	"maxThreads":         "maxTotalThreadsPerThreadgroup [a1]",
	"executionWidth":     "threadExecutionWidth [a1]",
	"newBuffer":          "newBufferWithLength:options: [a1 a2 a3]",
	"contents":           "contents [a1]",
	"commandBuffer":      "commandBuffer [a1]",
	"encoder":            "computeCommandEncoder [a1]",
	"commit":             "commit [a1]",
	"waitUntilCompleted": "waitUntilCompleted [a1]",
	"status":             "status [a1]",
	"commandsError":      "error [a1]",
	"setPipeline":        "setComputePipelineState: [a1 a2]",
	"setBuffer":          "setBuffer:offset:atIndex: [a1 a2 a3 a4]",
	"setBytes":           "setBytes:length:atIndex: [a1 a2 a3 a4]",
	"dispatch":           "dispatchThreadgroups:threadsPerThreadgroup: [a1 a2 a3]",
	"endEncoding":        "endEncoding [a1]",
}

// TestMessages holds each method to what it sends.
func TestMessages(t *testing.T) {
	const result = id(999)
	o := &system{device: func() id { return result }, poolClass: 501, stringClass: 502, optionsClass: 503}
	names := map[any]string{result: "r", o.poolClass: "pool", o.stringClass: "string", o.optionsClass: "options"}
	var log []string
	for i, s := range o.selectors() {
		names[selector(i+1)] = s.name
		s.message.bind(selector(i+1), func(function any) {
			f := reflect.ValueOf(function).Elem()
			f.Set(reflect.MakeFunc(f.Type(), func(in []reflect.Value) []reflect.Value {
				var words []string
				for _, v := range append(in[:1:1], in[2:]...) {
					if name, known := names[v.Interface()]; known {
						words = append(words, name)
					} else {
						words = append(words, fmt.Sprint(v.Interface()))
					}
				}
				log = append(log, names[in[1].Interface()]+" ["+strings.Join(words, " ")+"]")
				if f.Type().NumOut() == 0 {
					return nil
				}
				r := reflect.New(f.Type().Out(0)).Elem()
				switch {
				case r.Type() == reflect.TypeFor[id]():
					r.SetUint(uint64(result))
				case r.Kind() == reflect.Bool:
					r.SetBool(true)
				}
				return []reflect.Value{r}
			}))
		})
	}
	methods := reflect.TypeFor[api]()
	if n := methods.NumMethod(); n != len(sent) {
		t.Errorf("%d methods, %d in the table", n, len(sent))
	}
	calls := o.calls()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		want, known := sent[name]
		call, callable := calls[name]
		if !known || !callable {
			t.Errorf("%s is not in the tables of this test", name)
			continue
		}
		f := reflect.ValueOf(call)
		var args []reflect.Value
		given := map[any]string{}
		for j := range f.Type().NumIn() {
			v := argument(f.Type().In(j), j)
			args = append(args, v)
			given[v.Interface()] = fmt.Sprintf("a%d", j+1)
		}
		for v, a := range given {
			names[v] = a
		}
		log = nil
		f.Call(args)
		for v := range given {
			delete(names, v)
		}
		if got := strings.Join(log, "; "); got != want {
			t.Errorf("%s sends %s, want %s", name, got, want)
		}
	}
}

// argument is a value that no other argument has.
func argument(t reflect.Type, i int) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[size]():
		v.Set(reflect.ValueOf(size{uint(10 * i), 1, 2}))
	case t == reflect.TypeFor[unsafe.Pointer]():
		v.SetPointer(unsafe.Pointer(new(int)))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case v.CanUint():
		v.SetUint(uint64(700 + i))
	case v.CanInt():
		v.SetInt(int64(700 + i))
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.String:
		v.SetString("text")
	default:
		panic(t)
	}
	return v
}

// calls are the methods of a, by name: reflection does not reach unexported ones.
func (o *system) calls() map[string]any {
	a := api(o)
	return map[string]any{
		"createDevice": a.createDevice, "newPool": a.newPool, "drain": a.drain, "retain": a.retain, "release": a.release,
		"newString": a.newString, "text": a.text, "errorDomain": a.errorDomain, "errorCode": a.errorCode,
		"errorDescription": a.errorDescription, "deviceName": a.deviceName, "maxBufferLength": a.maxBufferLength,
		"workingSetSize": a.workingSetSize, "newQueue": a.newQueue, "newOptions": a.newOptions, "hasMathMode": a.hasMathMode,
		"setMathMode": a.setMathMode, "setMathFunctions": a.setMathFunctions, "setFastMath": a.setFastMath,
		"newLibrary": a.newLibrary, "newFunction": a.newFunction, "newPipeline": a.newPipeline, "maxThreads": a.maxThreads,
		"executionWidth": a.executionWidth, "newBuffer": a.newBuffer, "contents": a.contents, "commandBuffer": a.commandBuffer,
		"encoder": a.encoder, "commit": a.commit, "waitUntilCompleted": a.waitUntilCompleted, "status": a.status,
		"commandsError": a.commandsError, "setPipeline": a.setPipeline, "setBuffer": a.setBuffer, "setBytes": a.setBytes,
		"dispatch": a.dispatch, "endEncoding": a.endEncoding,
	}
}

// TestNilText: a string that is not there is empty, and nothing is sent to it.
func TestNilText(t *testing.T) {
	if s := new(system).text(0); s != "" {
		t.Errorf("%q", s)
	}
}
