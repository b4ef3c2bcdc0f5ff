// Package version reads which build of remit this is.
package version

import (
	"runtime"
	"runtime/debug"
)

// Version identifies a build.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // revision of the source, if the build knows it
	Modified bool   `json:"modified"`           // the source has changes after the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String formats the version for people.
func (v Version) String() string {
	return "remit " + v.Version + " (" + v.Go + ", " + v.Platform + ")"
}

// Read reads the version that the build stored in the program.
func Read() Version {
	v := Version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
