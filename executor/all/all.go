// Package all is the list of the executor kinds in this binary.
//
// It owns the list and nothing else; it leaves every kind's work to its package and the choice between them to the
// configuration. Its one invariant: a folder of executor that holds a kind is on the list, and the list is in a fixed
// order.
package all

import (
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/container"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/executor/unsafelocal"
)

// Config holds the configuration of every kind. A kind reads its own field only.
type Config struct {
	Bubblewrap  bubblewrap.Config
	Container   container.Config
	Remote      remote.Config
	UnsafeLocal unsafelocal.Config
}

// Kind is one kind of executor.
type Kind struct {
	// Name is what Executor.Kind returns, and the name of the folder.
	Name string
	// New makes the executor. It fails only for a configuration that cannot be meant; a host that cannot serve is told by
	// the executor's capabilities.
	New func(Config) (sallyport.Executor, error)
}

// Kinds lists every kind; the first one is the default.
func Kinds() []Kind {
	return []Kind{
		{bubblewrap.Kind, func(c Config) (sallyport.Executor, error) { return made(bubblewrap.New(c.Bubblewrap)) }},
		{container.Kind, func(c Config) (sallyport.Executor, error) { return made(container.New(c.Container)) }},
		{remote.Kind, func(c Config) (sallyport.Executor, error) { return made(remote.New(c.Remote)) }},
		{unsafelocal.Kind, func(c Config) (sallyport.Executor, error) { return made(unsafelocal.New(c.UnsafeLocal)) }},
	}
}

// New makes the executor of the named kind; an empty name means the default. A name that is not on the list is
// INVALID_ARGUMENT, never another kind.
func New(name string, cfg Config) (sallyport.Executor, error) {
	kinds := Kinds()
	if name == "" {
		name = kinds[0].Name
	}
	var names []string
	for _, k := range kinds {
		if k.Name == name {
			return k.New(cfg)
		}
		names = append(names, k.Name)
	}
	return nil, sallyport.Errorf("executor.new", sallyport.CodeInvalidArgument, "there is no executor %q; there is %s", name, strings.Join(names, ", "))
}

// made keeps a failed constructor's nil from becoming an executor that is not nil.
func made[E sallyport.Executor](e E, err error) (sallyport.Executor, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}
