package cli

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/sallyport-dev/sallyport"
)

type versionCommand struct{}

type versionData struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (*versionCommand) kind() string { return "version" }

func (*versionCommand) run(_ context.Context, a *app) error {
	data := versionData{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				data.Revision = setting.Value
			case "vcs.modified":
				data.Modified = setting.Value == "true"
			}
		}
	}
	return showOwn(a, sallyport.Success("version", "", data), func(p *page, data versionData) {
		p.line("sallyport %s (%s, %s)", data.Version, data.Go, data.Platform)
	})
}

// Version is what this binary calls itself, from its build information: a release's number, else dev.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
