package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Say which remit this is",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if asJSON {
				a.writeJSON(v)
				return nil
			}
			_, err := fmt.Fprintln(a.out, v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// versionRecord says which build this is.
type versionRecord struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where the build knows it
	Modified bool   `json:"modified"`           // the source was changed after that revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String is what people read.
func (v versionRecord) String() string {
	return fmt.Sprintf("remit %s (%s, %s)", v.Version, v.Go, v.Platform)
}

// readVersion reads what the build wrote into the program.
func readVersion() versionRecord {
	v := versionRecord{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
