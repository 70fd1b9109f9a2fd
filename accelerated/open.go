package accelerated

import (
	"slices"
	"strings"
	"sync"
)

// devices is the table of those that are linked into this program.
var devices struct {
	sync.Mutex
	open map[string]func() (Device, error)
}

// order is the order in which Open("auto") tries devices.
var order = []string{"metal", "cuda", "cpu"}

// Register makes a device known to [Open] under a name. Device packages call
// it as they are initialized; importing one for that alone is enough.
func Register(name string, open func() (Device, error)) {
	devices.Lock()
	defer devices.Unlock()
	if devices.open == nil {
		devices.open = map[string]func() (Device, error){}
	}
	devices.open[name] = open
}

// Open opens a device by name: "cpu", "cuda" or "metal"; or "auto", which
// takes the first of metal, cuda and cpu that opens. A device that is not
// linked in or not present is an [*UnavailableError]. The caller closes it,
// after the caches that use it.
func Open(name string) (Device, error) {
	if name != "auto" {
		devices.Lock()
		open := devices.open[name]
		devices.Unlock()
		if open == nil {
			if !slices.Contains(order, name) {
				return nil, &UnavailableError{name, "no such device; use auto, " + strings.Join(order, ", ")}
			}
			return nil, &UnavailableError{name, "it is not linked in; import example.com/ringcheck/accelerated/" + name}
		}
		return open()
	}
	var why []string
	for _, name := range order {
		d, err := Open(name)
		if err == nil {
			return d, nil
		}
		why = append(why, err.Error())
	}
	return nil, &UnavailableError{"auto", strings.Join(why, "; ")}
}
