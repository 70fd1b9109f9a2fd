//go:build amd64 || arm64

package metal

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
)

// frameworks are loaded before anything of them is asked for: a class is known
// once its framework is there. Metal gives a program without windows a default
// device if Core Graphics is loaded.
var frameworks = [...]string{
	"/System/Library/Frameworks/Foundation.framework/Foundation",
	"/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics",
	"/System/Library/Frameworks/Metal.framework/Metal",
}

// load finds classes, selectors and functions, once. Frameworks stay loaded.
var load = sync.OnceValues(func() (api, error) {
	o, err := find()
	if err != nil {
		return nil, unavailable(err)
	}
	return o, nil
})

func find() (*system, error) {
	for _, path := range frameworks {
		if _, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			return nil, err
		}
	}
	o := new(system)
	for name, class := range map[string]*id{
		"NSAutoreleasePool": &o.poolClass, "NSString": &o.stringClass, "MTLCompileOptions": &o.optionsClass,
	} {
		if *class = id(objc.GetClass(name)); *class == 0 {
			return nil, fmt.Errorf("the system has no class %s; use cpu", name)
		}
	}
	device, err := purego.Dlsym(purego.RTLD_DEFAULT, "MTLCreateSystemDefaultDevice")
	if err != nil {
		return nil, err
	}
	purego.RegisterFunc(&o.device, device)
	send, err := purego.Dlsym(purego.RTLD_DEFAULT, "objc_msgSend")
	if err != nil {
		return nil, err
	}
	for _, s := range o.selectors() {
		s.message.bind(selector(objc.RegisterName(s.name)), func(function any) { purego.RegisterFunc(function, send) })
	}
	return o, nil
}
