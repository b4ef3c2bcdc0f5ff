package policyfile

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/policies"
)

// Pack returns the built-in pack with a name.
func Pack(name string) (fs.FS, error) {
	pack, ok := policies.Pack(name)
	if ok {
		return pack, nil
	}
	fix := "the packs are " + PackList()
	if near := suggest.Name(name, policies.Names()); near != "" {
		fix = "did you mean " + policies.Prefix + near + "? " + fix
	}
	return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("policy pack %q: there is none of this name", name), Fix: fix}
}

// PackList lists the names of the built-in packs.
func PackList() string {
	names := policies.Names()
	for i, name := range names {
		names[i] = policies.Prefix + name
	}
	return strings.Join(names, ", ")
}
