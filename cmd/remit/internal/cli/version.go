package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version says which build this is.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where the build knows it
	Modified bool   `json:"modified"`           // the source was changed after that revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String is what people read.
func (v version) String() string {
	return fmt.Sprintf("remit %s (%s, %s)", v.Version, v.Go, v.Platform)
}

// ReadVersion reads what the build wrote into the program.
func ReadVersion() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
